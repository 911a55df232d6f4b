from shoal.evaluation.assessment import ATTEMPTS as ATTEMPTS
from shoal.evaluation.assessment import BEYOND as BEYOND
from shoal.evaluation.assessment import MOST_LINKED as MOST_LINKED
from shoal.evaluation.assessment import RISK_WORDS as RISK_WORDS
from shoal.evaluation.assessment import USE_WORDS as USE_WORDS
from shoal.evaluation.assessment import Check as Check
from shoal.evaluation.assessment import Closeness as Closeness
from shoal.evaluation.assessment import Measured as Measured
from shoal.evaluation.assessment import Persons as Persons
from shoal.evaluation.assessment import Requirement as Requirement
from shoal.evaluation.assessment import RiskLine as RiskLine
from shoal.evaluation.assessment import Verdict as Verdict
from shoal.evaluation.assessment import check as check
from shoal.evaluation.assessment import linkage_line as linkage_line
from shoal.evaluation.assessment import verdict as verdict
from shoal.evaluation.attacks.run import ONE_COLUMN as ONE_COLUMN
from shoal.evaluation.attacks.run import SEVERAL_COLUMNS as SEVERAL_COLUMNS
from shoal.evaluation.attacks.run import AttackReport as AttackReport
from shoal.evaluation.attacks.run import attack as attack
from shoal.evaluation.attacks.singling import AttackRisk as AttackRisk
from shoal.evaluation.disclosure.record_risk import Diversity as Diversity
from shoal.evaluation.disclosure.record_risk import Points as Points
from shoal.evaluation.disclosure.record_risk import PopulationUniques as PopulationUniques
from shoal.evaluation.disclosure.record_risk import Suda as Suda
from shoal.evaluation.disclosure.result import TOLERATED as TOLERATED
from shoal.evaluation.disclosure.result import Risk as Risk
from shoal.evaluation.disclosure.result import RiskFigures as RiskFigures
from shoal.evaluation.disclosure.result import risk as risk
from shoal.evaluation.in_parts.counts import BatchReading as BatchReading
from shoal.evaluation.in_parts.counts import Grouping as Grouping
from shoal.evaluation.in_parts.counts import Side as Side
from shoal.evaluation.in_parts.counts import count_groups as count_groups
from shoal.evaluation.in_parts.evaluate import check_in_parts as check_in_parts
from shoal.evaluation.in_parts.evaluate import evaluate_in_parts as evaluate_in_parts
from shoal.evaluation.in_parts.summaries import CountedColumn as CountedColumn
from shoal.evaluation.in_parts.summaries import CountingPlan as CountingPlan
from shoal.evaluation.in_parts.summaries import Cut as Cut
from shoal.evaluation.in_parts.summaries import Numbers as Numbers
from shoal.evaluation.in_parts.summaries import Standardisation as Standardisation
from shoal.evaluation.in_parts.summaries import TextCounts as TextCounts
from shoal.evaluation.in_parts.summaries import Values as Values
from shoal.evaluation.in_parts.summaries import count_together as count_together
from shoal.evaluation.in_parts.summaries import count_values as count_values
from shoal.evaluation.learning import Interval as Interval
from shoal.evaluation.learning import LearningSettings as LearningSettings
from shoal.evaluation.learning import Protocol as Protocol
from shoal.evaluation.learning import check_target as check_target
from shoal.evaluation.learning import divide as divide
from shoal.evaluation.learning import learn as learn
from shoal.evaluation.measures import Measure as Measure
from shoal.evaluation.measures import kept as kept
from shoal.evaluation.measures import mean_sse as mean_sse
from shoal.evaluation.measures import most as most
from shoal.evaluation.measures import needs_rows as needs_rows
from shoal.evaluation.measures import ranked_by as ranked_by
from shoal.evaluation.measures import register_measure as register_measure
from shoal.evaluation.pair import MOST_ROWS as MOST_ROWS
from shoal.evaluation.pair import SAMPLE as SAMPLE
from shoal.evaluation.pair import excerpt as excerpt
from shoal.evaluation.pair import released_rows as released_rows
from shoal.evaluation.pair import some_rows as some_rows
from shoal.evaluation.pair import unmatched as unmatched
from shoal.evaluation.result import Evaluation as Evaluation
from shoal.evaluation.result import evaluate as evaluate
from shoal.evaluation.result import five as five
from shoal.evaluation.result import most_moved as most_moved
from shoal.evaluation.survey import Estimate as Estimate
from shoal.evaluation.survey import Estimates as Estimates
from shoal.evaluation.survey import estimates as estimates
from shoal.evaluation.utility import Distribution as Distribution
from shoal.evaluation.utility import DomainParts as DomainParts
from shoal.evaluation.utility import Moments as Moments
from shoal.evaluation.utility import correlations as correlations
from shoal.partition.groups import Form as Form
from shoal.partition.groups import MissingRule as MissingRule

__all__ = [
    "AttackRisk",
    "Closeness",
    "Diversity",
    "Estimate",
    "Measure",
    "Measured",
    "Persons",
    "PopulationUniques",
    "Requirement",
    "RiskFigures",
    "RiskLine",
    "Suda",
]
from shoal.evaluation.pair import plain as plain
