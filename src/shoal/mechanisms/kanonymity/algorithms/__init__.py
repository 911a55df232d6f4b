"""The k-anonymity family: groups, swapping, t-closeness, two linked tables, and what a table actually reaches."""

from typing import TYPE_CHECKING, Any

from shoal.mechanisms.kanonymity.algorithms.allotment import Allotment, allot
from shoal.mechanisms.kanonymity.algorithms.anatomy import Anatomy, dissect
from shoal.mechanisms.kanonymity.algorithms.buckets import compound_buckets, nominal_buckets, ordered_buckets
from shoal.mechanisms.kanonymity.algorithms.diversity import bring_close, diversify
from shoal.mechanisms.kanonymity.algorithms.merging import Merged
from shoal.mechanisms.kanonymity.algorithms.swap import Swap, permute_within, swap, swap_mdav, swap_ranking
from shoal.mechanisms.kanonymity.algorithms.tcloseness import CloseGroups, close_groups

if TYPE_CHECKING:
    from shoal.evaluation.checks import check
    from shoal.evaluation.measured import Check

# looked up when first used: making a table needs no measures
_ON_DEMAND = {"Check": "shoal.evaluation.measured", "check": "shoal.evaluation.checks"}

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


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'shoal.mechanisms.kanonymity.algorithms' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_ON_DEMAND[name]), name)
