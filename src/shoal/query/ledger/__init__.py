"""The budget ledger: requests to spend come in, receipts or refusals leave, and nothing written is ever changed.

SQLAlchemy is loaded when a ledger is opened, not before.
"""

from shoal.query.ledger.account import Account, Balance, Standing, Terms
from shoal.query.ledger.entry import Entry
from shoal.query.ledger.errors import KeyReusedError, LedgerError, OverdrawnError, QuotaError
from shoal.query.ledger.group import GroupCommit
from shoal.query.ledger.ledger import Ledger, open_ledger
from shoal.query.ledger.operations import Charge, Deposit, Receipt, Register
from shoal.query.ledger.verification import Examination, Finding, examine, verify

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
