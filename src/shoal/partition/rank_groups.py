"""Groups of k neighbours in rank order, and the fixed k of least expected error."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError, OptionError, closest
from shoal.partition.base import Partition, check_k, stable_order
from shoal.partition.univariate import Costs, Number, costs_of

_REMAINDERS = ("middle", "last", "first")
# records handled at a time where a whole column of intermediate values is too much
_PIECE = 1 << 20
# Relative error of the costs in plain doubles, generously; sizes that are closer are compared exactly.
_ROUGH = 2.0**-44


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


def best_k(x: ArrayLike, width: Number, epsilon: Number, remainder: str = "middle") -> int:
    """The k for which individual ranking with noisy means has the least expected squared error.

    The expected error, before clipping, is Σ_C [ SSE(C) + 2 (W/ε)² / |C| ] over the groups C of `ranking(x, k,
    remainder)`: small k means much noise, large k much grouping. Every k from 1 to n is considered. Of equally good
    ones the largest is taken: one group of all n records is k = n.

    Args:
        x: values of one attribute, integers or floats.
        width: W, the width of the attribute's public domain, in the units of x.
        epsilon: ε, the attribute's share of the budget.
        remainder: where the records go that do not fill a group, as in `ranking`.

    Guarantee: none, the answer looks at the records. A release with this k is tainted by it, unless x is other data.
    Cost: O(n log n) time, O(n) memory.
    Reference: the automatic choice of k, an open question in MDAI-2017.

    >>> best_k([0, 1, 2, 50, 51, 52, 90, 91, 92], width=100, epsilon=10)
    3
    """
    costs = costs_of(x, width, epsilon)
    n = costs.n
    ks, errors = zip(*_rough_errors(costs, remainder), strict=True)
    sizes = np.concatenate(ks)
    error = np.concatenate(errors)
    doubt = _ROUGH * (error + costs.sums[n, 4])
    near: list[int] = sizes[error - doubt <= (error + doubt).min()].tolist()
    return min(near, key=lambda k: (_exact_error(costs, k, remainder), -k))


def _rough_errors(costs: Costs, remainder: str) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Sizes k and their expected errors, all sizes with the same number of groups at a time."""
    n = costs.n
    high, low = np.ascontiguousarray(costs.sums[:, :2].T)
    squares = float(costs.sums[n, 2] - costs.sums[0, 2])
    # more than half of the records leave one group, whatever k is
    smallest, largest = n, n
    while largest > 0:
        groups = n // largest
        ks = np.arange(smallest, largest + 1)
        bounds = _bounds(n, ks, groups, remainder)
        totals = np.diff(high[bounds], axis=1) + np.diff(low[bounds], axis=1)
        yield ks, squares - ((totals * totals - costs.noise[0]) / np.diff(bounds, axis=1)).sum(axis=1)
        largest = min(smallest - 1, n // 2)
        smallest = n // (n // largest + 1) + 1 if largest else 0


def _bounds(n: int, ks: NDArray[np.int64], groups: int, remainder: str) -> NDArray[np.int64]:
    """Where groups begin and end in rank order, one row for every k; all of them make this many groups."""
    at = np.arange(groups + 1)
    from_low = at * ks[:, np.newaxis]
    from_high = n - (groups - at) * ks[:, np.newaxis]
    return np.where(at <= enlarged_group(groups, remainder), from_low, from_high)


def _exact_error(costs: Costs, k: int, remainder: str) -> Fraction:
    """The expected error as a fraction: only two sizes of groups occur, so denominators stay small."""
    (bounds,) = _bounds(costs.n, np.array([k]), costs.n // k, remainder)
    sums = [Fraction(high) + Fraction(low) for high, low in costs.sums[bounds, :2].tolist()]
    by_size: dict[int, Fraction] = {}
    for group, size in enumerate(np.diff(bounds).tolist()):
        total = sums[group + 1] - sums[group]
        by_size[size] = by_size.get(size, Fraction(0)) + costs.exact_noise - total * total
    squares = sum(
        sign * (Fraction(costs.sums[at, 2]) + Fraction(costs.sums[at, 3])) for sign, at in ((1, -1), (-1, 0))
    )
    return squares + sum((part / size for size, part in by_size.items()), Fraction(0))
