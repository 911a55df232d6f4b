"""The budget ledger: requests to spend come in, receipts or refusals leave, and nothing written is ever changed.

SQLAlchemy is loaded when a ledger is opened, not before.
"""

from shoal.ledger.account import Account, Balance, Standing, Terms
from shoal.ledger.entry import (
    Charge,
    Deposit,
    Entry,
    KeyReusedError,
    LedgerError,
    OverdrawnError,
    QuotaError,
    Receipt,
    Register,
)
from shoal.ledger.ledger import GroupCommit, Ledger, open_ledger
from shoal.ledger.verification import Examination, Finding, examine, verify

__all__ = [
    "Account",
    "Balance",
    "Charge",
    "Deposit",
    "Entry",
    "Examination",
    "Finding",
    "GroupCommit",
    "KeyReusedError",
    "Ledger",
    "LedgerError",
    "OverdrawnError",
    "QuotaError",
    "Receipt",
    "Register",
    "Standing",
    "Terms",
    "examine",
    "open_ledger",
    "verify",
]
