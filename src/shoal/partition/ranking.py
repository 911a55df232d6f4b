"""One attribute in, groups of k neighbours in rank order out; group positions depend on n and k only."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError, OptionError, closest
from shoal.partition.base import Partition, check_k
from shoal.partition.order import stable_order

_REMAINDERS = ("middle", "last", "first")
# records handled at a time where a whole column of intermediate values is too much
_PIECE = 1 << 20


def ranking(x: ArrayLike, k: int, remainder: str = "middle") -> Partition:
    """Individual ranking: sort one attribute (ties by record index) and group k consecutive ranks.

    Args:
        x: values of one attribute, integers or floats.
        k: minimum cluster size.
        remainder: which group takes the n mod k records that are left over. `last` and `first` enlarge that
            group. `middle` is univariate MDAV at rank-fixed positions: k from the low end, k from the high
            end, in turn, while at least 3k remain; if 2k to 3k-1 remain, k more from the low end; the rest,
            k to 2k-1 records, is the middle group.

    Guarantee: the clusters are not private by themselves. Because group boundaries are ranks fixed by n and
        k, replacing one record changes the vector of cluster sums by at most the width of the attribute's
        domain in L1 norm, which is what noise on the sums is calibrated to.
    Cost: one sort of plain integers, O(n log n) time, three arrays of n words.
    Reference: PSD-2014, Lemma 1; MDAI-2017 (`middle` is its IR-MDAV).

    >>> ranking([9, 1, 5, 3, 7], k=2).labels.tolist()
    [1, 0, 1, 0, 1]
    """
    values = np.asarray(x)
    if values.ndim != 1 or values.size == 0:
        raise InputError("ranking-works-attribute")
    if values.dtype.kind not in "iufb":
        raise InputError("ranking-needs-numbers-array-type", found=values.dtype)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError("row-missing-infinite", row=row + 1)
    sizes = group_sizes(values.size, check_k(k, values.size), remainder)
    order = stable_order(values)
    labels = np.empty(values.size, dtype=np.int64)
    # written cluster by cluster, many at a time: all labels in rank order at once would be one more column
    ends = np.cumsum(sizes)
    at_a_time = max(_PIECE // k, 1)
    for first in range(0, sizes.size, at_a_time):
        these = slice(first, first + at_a_time)
        ranks = slice(ends[first] - sizes[first], ends[these][-1])
        labels[order[ranks]] = np.repeat(np.arange(first, first + sizes[these].size), sizes[these])
    return Partition(labels, sizes)


def group_sizes(n: int, k: int, remainder: str = "middle") -> NDArray[np.int64]:
    """Sizes of the groups in rank order; they depend on n, k and the remainder rule only.

    >>> group_sizes(11, 2).tolist(), group_sizes(11, 2, "last").tolist()
    ([2, 2, 3, 2, 2], [2, 2, 2, 2, 3])
    """
    groups = max(n // k, 1)
    sizes = np.full(groups, k, dtype=np.int64)
    sizes[enlarged_group(groups, remainder)] = n - k * (groups - 1)
    return sizes


def enlarged_group(groups: int, remainder: str) -> int:
    """Which of the groups, in rank order, takes the records that are left over.

    >>> enlarged_group(5, "middle"), enlarged_group(5, "last")
    (2, 4)
    """
    if remainder not in _REMAINDERS:
        raise OptionError(
            "remainder-not-known",
            option="remainder",
            found=remainder,
            allowed=tuple(_REMAINDERS),
            hint=closest(remainder, _REMAINDERS),
        )
    if remainder == "first":
        return 0
    return groups - 1 if remainder == "last" else groups // 2
