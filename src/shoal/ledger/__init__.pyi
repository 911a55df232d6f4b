from shoal.ledger.account import Account as Account
from shoal.ledger.account import Balance as Balance
from shoal.ledger.account import Standing as Standing
from shoal.ledger.account import Terms as Terms
from shoal.ledger.entry import SYMBOLS as SYMBOLS
from shoal.ledger.entry import Charge as Charge
from shoal.ledger.entry import Deposit as Deposit
from shoal.ledger.entry import KeyReusedError as KeyReusedError
from shoal.ledger.entry import LedgerEntry as LedgerEntry
from shoal.ledger.entry import LedgerError as LedgerError
from shoal.ledger.entry import OverdrawnError as OverdrawnError
from shoal.ledger.entry import QuotaError as QuotaError
from shoal.ledger.entry import Receipt as Receipt
from shoal.ledger.entry import Register as Register
from shoal.ledger.entry import UnpricedError as UnpricedError
from shoal.ledger.entry import canonical as canonical
from shoal.ledger.entry import decimals as decimals
from shoal.ledger.entry import fraction_text as fraction_text
from shoal.ledger.entry import rounded_up as rounded_up
from shoal.ledger.ledger import GroupCommit as GroupCommit
from shoal.ledger.ledger import Ledger as Ledger
from shoal.ledger.ledger import open_ledger as open_ledger
from shoal.ledger.releases import RecordedRelease as RecordedRelease
from shoal.ledger.releases import charge_choice as charge_choice
from shoal.ledger.releases import choice_words as choice_words
from shoal.ledger.releases import declare_unit as declare_unit
from shoal.ledger.releases import keep_choice as keep_choice
from shoal.ledger.releases import named_dataset as named_dataset
from shoal.ledger.releases import opened_budget as opened_budget
from shoal.ledger.releases import record_release as record_release
from shoal.ledger.releases import releases_in as releases_in
from shoal.ledger.store import digest_of as digest_of
from shoal.ledger.verification import ChainFinding as ChainFinding
from shoal.ledger.verification import Examination as Examination
from shoal.ledger.verification import examine as examine
from shoal.ledger.verification import verify as verify

__all__ = [
    "Charge",
    "Ledger",
    "OverdrawnError",
    "RecordedRelease",
    "Register",
    "open_ledger",
]
