"""The k-anonymity family: groups, swapping, t-closeness, two linked tables."""

from shoal.mechanisms.kanonymity.algorithms.allotment import Allotment, allot
from shoal.mechanisms.kanonymity.algorithms.anatomy import Anatomy, dissect
from shoal.mechanisms.kanonymity.algorithms.buckets import compound_buckets, nominal_buckets, ordered_buckets
from shoal.mechanisms.kanonymity.algorithms.diversity import bring_close, diversify
from shoal.mechanisms.kanonymity.algorithms.merging import Merged
from shoal.mechanisms.kanonymity.algorithms.swap import Swap, permute_within, swap, swap_mdav, swap_ranking
from shoal.mechanisms.kanonymity.algorithms.tcloseness import CloseGroups, close_groups

__all__ = [
    "Allotment",
    "Anatomy",
    "CloseGroups",
    "Merged",
    "Swap",
    "allot",
    "bring_close",
    "close_groups",
    "compound_buckets",
    "dissect",
    "diversify",
    "nominal_buckets",
    "ordered_buckets",
    "permute_within",
    "swap",
    "swap_mdav",
    "swap_ranking",
]
