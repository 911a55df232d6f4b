from shoal.partition.base import MISSING as MISSING
from shoal.partition.base import Partition as Partition
from shoal.partition.base import as_matrix as as_matrix
from shoal.partition.base import check_k as check_k
from shoal.partition.base import given as given
from shoal.partition.base import normalise as normalise
from shoal.partition.base import stable_order as stable_order
from shoal.partition.base import standing_for as standing_for
from shoal.partition.groups import EMD as EMD
from shoal.partition.groups import RULES as RULES
from shoal.partition.groups import ActualK as ActualK
from shoal.partition.groups import Coded as Coded
from shoal.partition.groups import Counts as Counts
from shoal.partition.groups import Form as Form
from shoal.partition.groups import GroupCounts as GroupCounts
from shoal.partition.groups import MissingRule as MissingRule
from shoal.partition.groups import Patterns as Patterns
from shoal.partition.groups import actual_k as actual_k
from shoal.partition.groups import approximate as approximate
from shoal.partition.groups import as_arrow as as_arrow
from shoal.partition.groups import as_wildcard as as_wildcard
from shoal.partition.groups import coded as coded
from shoal.partition.groups import column_codes as column_codes
from shoal.partition.groups import count_groups as count_groups
from shoal.partition.groups import distinct_for_units as distinct_for_units
from shoal.partition.groups import distinct_values as distinct_values
from shoal.partition.groups import exact as exact
from shoal.partition.groups import most_rows_of_a_unit as most_rows_of_a_unit
from shoal.partition.groups import patterns as patterns
from shoal.partition.groups import places as places
from shoal.partition.groups import ratio_distances as ratio_distances
from shoal.partition.groups import row_groups as row_groups
from shoal.partition.groups import units_of_groups as units_of_groups
from shoal.partition.groups import within as within
from shoal.partition.multivariate import CORNER_RULES as CORNER_RULES
from shoal.partition.multivariate import ORDERS as ORDERS
from shoal.partition.multivariate import CornerAxis as CornerAxis
from shoal.partition.multivariate import insensitive as insensitive
from shoal.partition.multivariate import insensitive_mixed as insensitive_mixed
from shoal.partition.multivariate import mdav as mdav
from shoal.partition.multivariate import mdav_mixed as mdav_mixed
from shoal.partition.multivariate import nominal_ends as nominal_ends
from shoal.partition.multivariate import numeric_ends as numeric_ends
from shoal.partition.multivariate import prepares_kernels as prepares_kernels
from shoal.partition.multivariate import vmdav as vmdav
from shoal.partition.univariate import best_k as best_k
from shoal.partition.univariate import expected_error as expected_error
from shoal.partition.univariate import group_sizes as group_sizes
from shoal.partition.univariate import optimal as optimal
from shoal.partition.univariate import ranking as ranking

__all__ = [
    "Coded",
    "Partition",
    "best_k",
    "expected_error",
    "given",
    "insensitive",
    "mdav",
    "normalise",
    "optimal",
    "ranking",
    "vmdav",
]
