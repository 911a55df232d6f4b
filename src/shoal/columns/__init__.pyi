from shoal.columns.attribute import DROPPED_ROLES as DROPPED_ROLES
from shoal.columns.attribute import FACTS as FACTS
from shoal.columns.attribute import MISSING_VALUE as MISSING_VALUE
from shoal.columns.attribute import POLICIES as POLICIES
from shoal.columns.attribute import RECORDS as RECORDS
from shoal.columns.attribute import SOURCES as SOURCES
from shoal.columns.attribute import THRESHOLD as THRESHOLD
from shoal.columns.attribute import WEIGHT_RELEASES as WEIGHT_RELEASES
from shoal.columns.attribute import Attribute as Attribute
from shoal.columns.attribute import Role as Role
from shoal.columns.attribute import patterns as patterns
from shoal.columns.attribute import target_column as target_column
from shoal.columns.attribute import with_gaps as with_gaps
from shoal.columns.bound import bounded_rows as bounded_rows
from shoal.columns.bound import fresh_key as fresh_key
from shoal.columns.column import check_storable as check_storable
from shoal.columns.column import labels_of as labels_of
from shoal.columns.column import numbers as numbers
from shoal.columns.column import public_facts as public_facts
from shoal.columns.column import releasable as releasable
from shoal.columns.column import restored as restored
from shoal.columns.column import stored_numbers as stored_numbers
from shoal.columns.column import texts as texts
from shoal.columns.declaration import LEAST_REASON as LEAST_REASON
from shoal.columns.declaration import Declaration as Declaration
from shoal.columns.declaration import as_declared as as_declared
from shoal.columns.declaration import marked as marked
from shoal.columns.declaration import missing_texts as missing_texts
from shoal.columns.declaration import public_attribute as public_attribute
from shoal.columns.declaration import read_as_asked as read_as_asked
from shoal.columns.declaration import read_declared as read_declared
from shoal.columns.declaration import steps_run as steps_run
from shoal.columns.declaration import with_steps as with_steps
from shoal.columns.declaration import without_guessed_type as without_guessed_type
from shoal.columns.description import Absent as Absent
from shoal.columns.description import CodedByRules as CodedByRules
from shoal.columns.description import Described as Described
from shoal.columns.description import KeptElsewhere as KeptElsewhere
from shoal.columns.description import coded as coded
from shoal.columns.description import describe as describe
from shoal.columns.description import gaps_of as gaps_of
from shoal.columns.draft import COMMON as COMMON
from shoal.columns.draft import common_range as common_range
from shoal.columns.draft import stored_kind as stored_kind
from shoal.columns.kinds import DEFAULT_REAL_STEPS as DEFAULT_REAL_STEPS
from shoal.columns.kinds import ISO_DAY as ISO_DAY
from shoal.columns.kinds import KIND_FACTS as KIND_FACTS
from shoal.columns.kinds import KINDS as KINDS
from shoal.columns.kinds import ORDERED_KINDS as ORDERED_KINDS
from shoal.columns.kinds import OUTSIDE as OUTSIDE
from shoal.columns.kinds import ColumnKind as ColumnKind
from shoal.columns.kinds import Kind as Kind
from shoal.columns.kinds import Lattice as Lattice
from shoal.columns.kinds import day_number as day_number
from shoal.columns.kinds import day_text as day_text
from shoal.columns.kinds import is_day as is_day
from shoal.columns.provenance import MOST_DELTA as MOST_DELTA
from shoal.columns.provenance import MOST_EPSILON as MOST_EPSILON
from shoal.columns.provenance import TAKEN_FROM_DATA as TAKEN_FROM_DATA
from shoal.columns.provenance import Declared as Declared
from shoal.columns.provenance import Provenance as Provenance
from shoal.columns.provenance import Recorded as Recorded
from shoal.columns.rule_tests import rows_breaking as rows_breaking
from shoal.columns.rulebook import Rulebook as Rulebook
from shoal.columns.rulebook import applied_rules as applied_rules
from shoal.columns.rules import Derived as Derived
from shoal.columns.rules import Rule as Rule
from shoal.columns.schema import ROW as ROW
from shoal.columns.schema import Margin as Margin
from shoal.columns.schema import Publication as Publication
from shoal.columns.schema import Schema as Schema
from shoal.columns.schema import column_range as column_range
from shoal.columns.schema import draft_text as draft_text
from shoal.columns.schema import same_unit as same_unit
from shoal.columns.schema import unit_words as unit_words
from shoal.columns.schema import unsettled as unsettled
from shoal.columns.schema import weight_words as weight_words
from shoal.columns.steps import Step as Step
from shoal.columns.steps import breaks_of as breaks_of
from shoal.columns.steps import preview as preview

__all__ = [
    "ColumnKind",
    "Declared",
    "Lattice",
    "Recorded",
    "breaks_of",
]
