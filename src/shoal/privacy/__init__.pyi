from shoal.privacy.accountant import SPLITS as SPLITS
from shoal.privacy.accountant import Accountant as Accountant
from shoal.privacy.accountant import AccountEntry as AccountEntry
from shoal.privacy.accountant import Adjacency as Adjacency
from shoal.privacy.accountant import Currency as Currency
from shoal.privacy.accountant import Measurement as Measurement
from shoal.privacy.accountant import Measurements as Measurements
from shoal.privacy.accountant import OverspendError as OverspendError
from shoal.privacy.accountant import Parallel as Parallel
from shoal.privacy.accountant import Plan as Plan
from shoal.privacy.accountant import RecordSum as RecordSum
from shoal.privacy.accountant import Spend as Spend
from shoal.privacy.accountant import moved as moved
from shoal.privacy.accountant import row_budget as row_budget
from shoal.privacy.accountant import split_budget as split_budget
from shoal.privacy.accountant import unit_price as unit_price
from shoal.privacy.statement import CANNOT_CHECK as CANNOT_CHECK
from shoal.privacy.statement import NOTHING_RECORDED as NOTHING_RECORDED
from shoal.privacy.statement import PrivacyStatement as PrivacyStatement
from shoal.privacy.statement import computed_values as computed_values
from shoal.privacy.statement import declaration as declaration
from shoal.privacy.statement import domain_words as domain_words
from shoal.privacy.statement import recorded_words as recorded_words
from shoal.privacy.statement import state as state
from shoal.privacy.statement import three_parts as three_parts
from shoal.privacy.verdict import BY_STABILITY as BY_STABILITY
from shoal.privacy.verdict import DATA_DEPENDENT as DATA_DEPENDENT
from shoal.privacy.verdict import DECISION_CODES as DECISION_CODES
from shoal.privacy.verdict import DECISIONS as DECISIONS
from shoal.privacy.verdict import LEVELS as LEVELS
from shoal.privacy.verdict import MODELS as MODELS
from shoal.privacy.verdict import MOST_RANGE_ERROR as MOST_RANGE_ERROR
from shoal.privacy.verdict import MOST_SHARE_ERROR as MOST_SHARE_ERROR
from shoal.privacy.verdict import NO_NOISE as NO_NOISE
from shoal.privacy.verdict import AppliedClaim as AppliedClaim
from shoal.privacy.verdict import Case as Case
from shoal.privacy.verdict import Claim as Claim
from shoal.privacy.verdict import Decision as Decision
from shoal.privacy.verdict import Level as Level
from shoal.privacy.verdict import MethodTerms as MethodTerms
from shoal.privacy.verdict import Model as Model
from shoal.privacy.verdict import ModelFacts as ModelFacts
from shoal.privacy.verdict import PublicVerdict as PublicVerdict
from shoal.privacy.verdict import Reason as Reason
from shoal.privacy.verdict import StatementTerms as StatementTerms
from shoal.privacy.verdict import belief_words as belief_words
from shoal.privacy.verdict import budget_words as budget_words
from shoal.privacy.verdict import factor_words as factor_words
from shoal.privacy.verdict import public_verdict as public_verdict
from shoal.privacy.verdict import step_key as step_key

__all__ = [
    "Adjacency",
    "AppliedClaim",
    "Case",
    "Claim",
    "MethodTerms",
    "Plan",
    "PublicVerdict",
    "Reason",
    "StatementTerms",
]
