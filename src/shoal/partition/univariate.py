"""Univariate partitions: optimal groups, and groups of k consecutive ranks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.noise import parse_epsilon
from shoal.numbers import Floats, exact
from shoal.partition.base import Partition, check_k, rows_stood_for, stable_order

Real = TypeVar("Real", float, NDArray[np.float64])

_SPLITTER = 134217729.0  # 2^27 + 1
Number = str | int | float | Decimal | Fraction

# Squares of such values, and of their quotient with ε, are still finite.
_LARGEST = 1e150
_LARGEST_RANGE = 2**62
# Below this many values plain Python is faster than loading or compiling code.
COMPILED_FROM = 4096
COMPILED_FROM_ONCE_LOADED = 128
# Generous bound of the relative error of a path's cost in plain doubles; closer costs are computed with pairs.
ROUGH = 2.0**-47
# Paths whose costs differ by less, relative to their cost or to the sum of squares, count as equal: rounding of pairs,
# about 2^-104 for each of up to a million clusters, is far below, and real differences are far above.
PATH_TIE = 2.0**-84
SUMS_TIE = 2.0**-100


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """a + b, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def normalised(high: Real, low: Real) -> tuple[Real, Real]:
    """The same sum with `low` at most half a unit of `high`; |high| ≥ |low| on entry."""
    total = high + low
    return total, low - (total - high)


def two_product(a: Real, b: Real) -> tuple[Real, Real]:
    """a · b, and its rounding error."""
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def add(a: Real, a_low: Real, b: Real, b_low: Real) -> tuple[Real, Real]:
    """a + b, accurate to 2^-104 of the result even where almost everything cancels."""
    high, rest = two_sum(a, b)
    low, last = two_sum(a_low, b_low)
    high, rest = normalised(high, rest + low)
    return normalised(high, rest + last)


def square(a: Real, a_low: Real) -> tuple[Real, Real]:
    """a²."""
    product, rest = two_product(a, a)
    return normalised(product, rest + (2.0 * (a * a_low) + a_low * a_low))


def divide(a: Real, a_low: Real, by: Real) -> tuple[Real, Real]:
    """a / by, for a plain divisor."""
    quotient = a / by
    product, rest = two_product(quotient, by)
    return normalised(quotient, (((a - product) - rest) + a_low) / by)


def of_fraction(value: Fraction) -> tuple[float, float]:
    """The pair nearest to a fraction.

    >>> of_fraction(Fraction(1, 3))
    (0.3333333333333333, 1.850371707708594e-17)
    """
    high = float(value)
    return high, float(value - Fraction(high))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Costs of clusters of sorted values i .. j-1: squared error plus expected noise.

    With S and Q the sums of the values and of their squares over the cluster of L = j - i values, the cost is
    Q - S²/L + noise/L. All numbers are in units of 2^exponent (squares in 4^exponent).

    Attributes:
        order: record numbers in ascending order of value.
        sums: shape (n + 1, 5): S and Q from the median to position j, as pairs, and the sum of squares of all values
            below position j, which bounds rounding errors.
        noise: 2 (W/ε)² as a pair; `exact_noise` is the same as a fraction.
        exponent: binary exponent of the unit.
    """

    order: NDArray[np.int64]
    sums: Floats
    noise: tuple[float, float]
    exact_noise: Fraction
    exponent: int

    @property
    def n(self) -> int:
        return int(self.order.size)


def compiled(n: int) -> bool:
    """Whether n values are worth compiled code; fewer are, once it is loaded."""
    loaded = "shoal.partition._kernels" in sys.modules
    return rows_stood_for(n) >= (COMPILED_FROM_ONCE_LOADED if loaded else COMPILED_FROM)


def one_attribute(x: ArrayLike) -> NDArray[Any]:
    """The values of one attribute, finite numbers."""
    values = np.asarray(x)
    if values.ndim != 1 or values.size == 0:
        raise InputError("one-attribute-is-needed")
    if values.dtype.kind not in "iufb":
        raise InputError("numbers-needed-array-type", found=values.dtype)
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)
        wrong = ~(np.abs(values) <= _LARGEST)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError("row-cannot-be-grouped", row=row + 1, found=values[row], largest=_LARGEST)
        return values
    return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)


def noise_of_one(width: Number, epsilon: Number) -> Fraction:
    """2 (W/ε)²: the variance of the noise on a cluster sum, and so the expected error of a cluster of one."""
    span = exact(width, "width")
    if span <= 0:
        raise OptionError("width-above-0", option="width", found=width)
    # a share of an accepted ε may be smaller than any accepted ε
    share = epsilon if isinstance(epsilon, Fraction) and epsilon > 0 else parse_epsilon(epsilon)
    return 2 * (span / share) ** 2


def costs_of(x: ArrayLike, width: Number, epsilon: Number) -> Costs:
    """Sort one attribute and compute its running sums."""
    values = one_attribute(x)
    noise = noise_of_one(width, epsilon)
    order = stable_order(values)
    high, low = _centred(values[order])
    largest = max(abs(float(high[0])), abs(float(high[-1])), float(noise) ** 0.5)
    exponent = int(np.frexp(largest)[1])
    scaled = noise / Fraction(4) ** exponent
    unit = 2.0**-exponent
    high *= unit
    low *= unit
    sums = _running_sums(high, low)
    return Costs(order, sums, of_fraction(scaled), scaled, exponent)


def _centred(ordered: NDArray[Any]) -> tuple[Floats, Floats]:
    """Differences to the median as pairs of doubles, without any rounding."""
    middle = ordered[ordered.size // 2]
    if ordered.dtype.kind == "f":
        return two_sum(ordered, np.full(ordered.size, -middle))
    # unsigned differences are correct for any signs
    above = ordered.view(np.uint64) - ordered.view(np.uint64)[0]
    if int(above[-1]) > _LARGEST_RANGE:
        raise InputError("values-span-more-than-2-62")
    offsets = above.astype(np.int64) - int(above[ordered.size // 2])
    high = offsets.astype(np.float64)
    return high, (offsets - high.astype(np.int64)).astype(np.float64)


def _running_sums(high: Floats, low: Floats) -> Floats:
    n = high.size
    sums = np.zeros((n + 1, 5))
    if compiled(n):
        from shoal.partition import _kernels as kernels

        kernels.running_sums(high, low, sums)
        return sums
    squares, squares_low = square(high, low)
    sums[1:, 4] = np.cumsum(high * high)
    middle = n // 2
    for column, (part, part_low) in enumerate(((high, low), (squares, squares_low))):
        pair = slice(2 * column, 2 * column + 2)
        sums[middle + 1 :, pair] = _accumulated(part[middle:], part_low[middle:])
        sums[:middle, pair] = _accumulated(-part[:middle][::-1], -part_low[:middle][::-1])[::-1]
    return sums


def _accumulated(high: Floats, low: Floats) -> Floats:
    """Running sums as pairs, shape (n, 2): rounding errors are kept twice, so at most the last bits can be lost."""
    total = caught = rest = 0.0
    pairs = []
    for value, value_low in zip(high.tolist(), low.tolist(), strict=True):
        total, error = two_sum(total, value)
        caught, error = two_sum(caught, error)
        rest += error
        caught, error = two_sum(caught, value_low)
        rest += error
        first, second = two_sum(total, caught)
        pairs.append(normalised(first, second + rest))
    return np.array(pairs).reshape(-1, 2)


def expected_error(x: ArrayLike, partition: Partition, width: Number, epsilon: Number) -> float:
    """Expected squared error, before clipping, of noisy cluster means of one attribute, over all records.

    That is Σ_C [ SSE(C) + 2 (W/ε)² / |C| ] over the clusters C: the error of each of the |C| records is its
    distance from the mean plus noise of variance 2 (W/(|C|ε))².

    Args:
        x: values of one attribute.
        partition: any clusters of the records.
        width: W, the width of the attribute's public domain.
        epsilon: the attribute's share of the budget.

    Cost: O(n).
    Reference: MDAI-2017 and PSD-2014, which define this noise.

    >>> expected_error([1.0, 3.0, 8.0], Partition.from_labels([0, 0, 1]), width=10, epsilon=10)
    5.0
    """
    noise = noise_of_one(width, epsilon)
    values = one_attribute(x)
    if values.size != partition.n:
        raise InputError("there-values-partition-records", found=values.size, n=partition.n)
    first = values[0]
    # integers beyond 2^53 can be distinguished only by their differences
    centred = (values.astype(np.int64) - int(first) if values.dtype.kind != "f" else values - first).astype(
        np.float64
    )
    within = centred - partition.centroids(centred)[partition.labels]
    within -= partition.centroids(within)[partition.labels]
    return float(within @ within) + float(noise) * float((1.0 / partition.sizes).sum())


def optimal(x: ArrayLike, width: Number, epsilon: Number, k: int = 3) -> Partition:
    """The partition into clusters of at least k with minimum expected squared error of noisy cluster means.

    A cluster C costs Σ (x - mean)² + 2 (W/ε)² / |C|: the error of each record is its distance from the mean plus
    noise of variance 2 (W/(|C|ε))². The best clusters are runs of sorted values (ties in record order), larger where
    values are dense. Among several best partitions the one whose last cluster starts lowest is returned, then the last
    but one, and so on; costs count as equal if they agree to 25 digits. Clusters are numbered in order of value.

    Args:
        x: values of one attribute, integers or floats.
        width: W, the width of the attribute's public domain, in the units of x.
        epsilon: ε, the attribute's share of the budget.
        k: minimum cluster size. With 1, an isolated record can be a cluster on its own and stand out in a release.

    Guarantee: none by itself. The clusters depend on the values, so noise added to their means protects given the
        partition only.
    Cost: O(n log n) time, about 12 arrays of n words. The first large column of an installation waits some seconds
        for compilation, later ones do not.
    Reference: answers the open question of MDAI-2017 (variable size, k = 1).

    >>> optimal([0, 1, 2, 3, 50, 51, 52, 90, 91, 92], width=100, epsilon=10).sizes.tolist()
    [4, 3, 3]
    """
    costs = costs_of(x, width, epsilon)
    least = check_k(k, costs.n)
    previous = shortest_path(costs, least) if compiled(costs.n) else scanned_path(costs, least)
    ends = [costs.n]
    while (start := int(previous[ends[-1]])) > 0:
        ends.append(start)
    sizes: NDArray[np.int64] = np.diff([0, *reversed(ends)]).astype(np.int64)
    labels = np.empty(costs.n, dtype=np.int64)
    labels[costs.order] = np.repeat(np.arange(sizes.size), sizes)
    return Partition(labels, sizes)


def shortest_path(costs: Costs, k: int) -> NDArray[np.int64]:
    """The start of the last cluster in the best partition of the first j values, for every j ≥ k: O(n log n)."""
    from shoal.partition import _kernels as kernels

    return kernels.shortest_path(costs.sums, k, *costs.noise)


def scanned_path(costs: Costs, k: int) -> NDArray[np.int64]:
    """The same by trying every start for every j, O(n²): the definition, and fast for small inputs."""
    n, noise = costs.n, costs.noise
    sums = costs.sums
    listed: list[list[float]] = sums.tolist()
    cost = np.zeros(n + 1)
    pairs: list[tuple[float, float]] = [(0.0, 0.0)] * (n + 1)
    previous = np.zeros(n + 1, dtype=np.int64)
    possible = np.arange(n + 1)
    # nothing ends below k except the empty path
    possible = np.concatenate([possible[:1], possible[k:]])
    for j in range(k, n + 1):
        starts = possible[: max(j - 2 * k + 2, 1)]
        lengths = (j - starts).astype(np.float64)
        difference = sums[j] - sums[starts]
        s, q = difference[:, 0] + difference[:, 1], difference[:, 2] + difference[:, 3]
        roughly = cost[starts] + (q - (s * s - noise[0]) / lengths)
        doubt = ROUGH * (cost[starts] + q + noise[0] / lengths) + SUMS_TIE * sums[j, 4]
        near = starts[roughly - doubt <= (roughly + doubt).min()].tolist()
        closely = [_path_cost(pairs[i], listed[i], listed[j], j - i, noise) for i in near]
        least, least_low = min(closely)
        tie = PATH_TIE * least + SUMS_TIE * listed[j][4]
        chosen = next(at for at, (c, low) in enumerate(closely) if (c - least) + (low - least_low) <= tie)
        previous[j] = near[chosen]
        pairs[j] = closely[chosen]
        cost[j] = pairs[j][0]
    return previous


def _path_cost(
    before: tuple[float, float], start: list[float], end: list[float], length: int, noise: tuple[float, float]
) -> tuple[float, float]:
    s = add(end[0], end[1], -start[0], -start[1])
    q = add(end[2], end[3], -start[2], -start[3])
    mean = divide(*add(*square(*s), -noise[0], -noise[1]), float(length))
    return add(*before, *add(*q, -mean[0], -mean[1]))


_REMAINDERS = ("middle", "last", "first")
# number of records handled at once where a column of intermediate values would be too large
_PIECE = 1 << 20
# Generous bound of the relative error of costs in plain doubles; closer sizes are compared exactly.
_ROUGH = 2.0**-44


def ranking(x: ArrayLike, k: int, remainder: str = "middle") -> Partition:
    """Individual ranking: sort one attribute (ties by record index) and group k consecutive ranks.

    Args:
        x: values of one attribute, integers or floats.
        k: minimum cluster size.
        remainder: which group takes the n mod k left-over records. `last` and `first` enlarge that group.
            `middle` is univariate MDAV at rank-fixed positions: k from the low end, k from the high end, in turn, while
            at least 3k remain; if 2k to 3k-1 remain, k more from the low end; the rest, k to 2k-1 records, is the
            middle group.

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
    # written cluster by cluster, many at once: all labels in rank order would be one more column in memory
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
    """Index of the group, in rank order, that takes the left-over records.

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
    """The k for which individual ranking with noisy means has the smallest expected squared error.

    The expected error, before clipping, is Σ_C [ SSE(C) + 2 (W/ε)² / |C| ] over the groups C of `ranking(x, k,
    remainder)`: small k means much noise, large k much grouping. Every k from 1 to n is considered. Among equally good
    ones the largest is returned: one group of all n records is k = n.

    Args:
        x: values of one attribute, integers or floats.
        width: W, the width of the attribute's public domain, in the units of x.
        epsilon: ε, the attribute's share of the budget.
        remainder: which group takes the left-over records, as in `ranking`.

    Guarantee: none, the result is data-dependent. It taints a release that uses it, unless x is other data.
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
    """Sizes k and their expected errors, one batch for each number of groups."""
    n = costs.n
    high, low = np.ascontiguousarray(costs.sums[:, :2].T)
    squares = float(costs.sums[n, 2] - costs.sums[0, 2])
    # with k above half of n there is one group, whatever k is
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
    """Start and end positions of groups in rank order, one row for every k; all of them give this many groups."""
    at = np.arange(groups + 1)
    from_low = at * ks[:, np.newaxis]
    from_high = n - (groups - at) * ks[:, np.newaxis]
    return np.where(at <= enlarged_group(groups, remainder), from_low, from_high)


def _exact_error(costs: Costs, k: int, remainder: str) -> Fraction:
    """The expected error as a fraction: there are only two group sizes, so denominators stay small."""
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
