from shoal.ledger.account import SYMBOLS as SYMBOLS
from shoal.ledger.account import Account as Account
from shoal.ledger.account import Balance as Balance
from shoal.ledger.account import Charge as Charge
from shoal.ledger.account import Deposit as Deposit
from shoal.ledger.account import KeyReusedError as KeyReusedError
from shoal.ledger.account import LedgerEntry as LedgerEntry
from shoal.ledger.account import LedgerError as LedgerError
from shoal.ledger.account import OverdrawnError as OverdrawnError
from shoal.ledger.account import QuotaError as QuotaError
from shoal.ledger.account import Receipt as Receipt
from shoal.ledger.account import Register as Register
from shoal.ledger.account import Standing as Standing
from shoal.ledger.account import Terms as Terms
from shoal.ledger.account import UnpricedError as UnpricedError
from shoal.ledger.account import canonical as canonical
from shoal.ledger.account import decimals as decimals
from shoal.ledger.account import fraction_text as fraction_text
from shoal.ledger.account import rounded_up as rounded_up
from shoal.ledger.ledger import ChainFinding as ChainFinding
from shoal.ledger.ledger import Examination as Examination
from shoal.ledger.ledger import GroupCommit as GroupCommit
from shoal.ledger.ledger import Ledger as Ledger
from shoal.ledger.ledger import examine as examine
from shoal.ledger.ledger import open_ledger as open_ledger
from shoal.ledger.ledger import verify as verify
from shoal.ledger.releases import RecordedRelease as RecordedRelease
from shoal.ledger.releases import charge_choice as charge_choice
from shoal.ledger.releases import choice_words as choice_words
from shoal.ledger.releases import declare_unit as declare_unit
from shoal.ledger.releases import keep_choice as keep_choice
from shoal.ledger.releases import kept_bound_key as kept_bound_key
from shoal.ledger.releases import named_dataset as named_dataset
from shoal.ledger.releases import opened_budget as opened_budget
from shoal.ledger.releases import record_release as record_release
from shoal.ledger.releases import releases_in as releases_in
from shoal.ledger.store import digest_of as digest_of

__all__ = [
    "Charge",
    "Ledger",
    "OverdrawnError",
    "RecordedRelease",
    "Register",
    "open_ledger",
]
