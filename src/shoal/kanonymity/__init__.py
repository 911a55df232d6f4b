"""The k-anonymity family: groups, swapping, t-closeness, two linked tables, and what a table actually reaches."""

from shoal.kanonymity.allotment import Allotment, allot
from shoal.kanonymity.anatomy import Anatomy, dissect
from shoal.kanonymity.buckets import compound_buckets, nominal_buckets, ordered_buckets
from shoal.kanonymity.checks import check
from shoal.kanonymity.diversity import bring_close, diversify
from shoal.kanonymity.measured import Check
from shoal.kanonymity.merging import Merged
from shoal.kanonymity.swap import Swap, permute_within, swap, swap_mdav, swap_ranking
from shoal.kanonymity.tcloseness import CloseGroups, close_groups

__all__ = [
    "Allotment",
    "Anatomy",
    "Check",
    "CloseGroups",
    "Merged",
    "Swap",
    "allot",
    "bring_close",
    "check",
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
