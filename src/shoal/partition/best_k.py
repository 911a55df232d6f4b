"""One attribute in, the fixed cluster size with the least expected error out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.partition.interval_costs import Costs, Number, costs_of
from shoal.partition.ranking import enlarged_group

# Relative error of the costs in plain doubles, generously; sizes that are closer are compared exactly.
_ROUGH = 2.0**-44


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
