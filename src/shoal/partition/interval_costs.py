"""One attribute in, running sums out from which the expected error of any run of sorted values is read off.

Sums of squares cancel badly where values have heavy tails: values are centred on their median, sums run outwards
from there, and everything is kept to about 106 bits.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.decimals import exact
from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.noise import parse_epsilon
from shoal.partition import double_double as dd
from shoal.partition.base import Partition, rows_stood_for
from shoal.partition.order import stable_order

Floats = NDArray[np.float64]
Number = str | int | float | Decimal | Fraction

# Squares of such values, and of their quotient with ε, are still finite.
_LARGEST = 1e150
_LARGEST_RANGE = 2**62
# Below this many values plain Python is faster than waiting for compiled code, or than fetching it.
COMPILED_FROM = 4096
COMPILED_FROM_ONCE_LOADED = 128


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What a cluster of sorted values i .. j-1 costs: its squared error plus its expected noise.

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
    """Whether n values are worth compiled code; once it is loaded, fewer are."""
    loaded = "shoal.partition._kernels_optimal" in sys.modules
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
    """Sort one attribute and add it up."""
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
    return Costs(order, sums, dd.of_fraction(scaled), scaled, exponent)


def _centred(ordered: NDArray[Any]) -> tuple[Floats, Floats]:
    """Differences to the median as pairs of doubles, without any rounding."""
    middle = ordered[ordered.size // 2]
    if ordered.dtype.kind == "f":
        return dd.two_sum(ordered, np.full(ordered.size, -middle))
    # unsigned differences are right whatever the signs
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
        from shoal.partition import _kernels_optimal as kernels

        kernels.running_sums(high, low, sums)
        return sums
    squares, squares_low = dd.square(high, low)
    sums[1:, 4] = np.cumsum(high * high)
    middle = n // 2
    for column, (part, part_low) in enumerate(((high, low), (squares, squares_low))):
        pair = slice(2 * column, 2 * column + 2)
        sums[middle + 1 :, pair] = _accumulated(part[middle:], part_low[middle:])
        sums[:middle, pair] = _accumulated(-part[:middle][::-1], -part_low[:middle][::-1])[::-1]
    return sums


def _accumulated(high: Floats, low: Floats) -> Floats:
    """Running sums as pairs, shape (n, 2): rounding is caught twice, so only the last bits of a pair can be lost."""
    total = caught = rest = 0.0
    pairs = []
    for value, value_low in zip(high.tolist(), low.tolist(), strict=True):
        total, error = dd.two_sum(total, value)
        caught, error = dd.two_sum(caught, error)
        rest += error
        caught, error = dd.two_sum(caught, value_low)
        rest += error
        first, second = dd.two_sum(total, caught)
        pairs.append(dd.normalised(first, second + rest))
    return np.array(pairs).reshape(-1, 2)


def expected_error(x: ArrayLike, partition: Partition, width: Number, epsilon: Number) -> float:
    """Expected squared error, before clipping, of noisy cluster means of one attribute, over all records.

    That is Σ_C [ SSE(C) + 2 (W/ε)² / |C| ] over the clusters C: each of the |C| records is off by its distance from
    the mean and by noise of variance 2 (W/(|C|ε))².

    Args:
        x: values of one attribute.
        partition: any clusters of the records.
        width: W, the width of the attribute's public domain.
        epsilon: the attribute's share of the budget.

    Cost: O(n).
    Reference: MDAI-2017 and PSD-2014, whose noise this is.

    >>> expected_error([1.0, 3.0, 8.0], Partition.from_labels([0, 0, 1]), width=10, epsilon=10)
    5.0
    """
    noise = noise_of_one(width, epsilon)
    values = one_attribute(x)
    if values.size != partition.n:
        raise InputError("there-values-partition-records", found=values.size, n=partition.n)
    first = values[0]
    # integers beyond 2^53 are told apart only by their differences
    centred = (values.astype(np.int64) - int(first) if values.dtype.kind != "f" else values - first).astype(
        np.float64
    )
    within = centred - partition.centroids(centred)[partition.labels]
    within -= partition.centroids(within)[partition.labels]
    return float(within @ within) + float(noise) * float((1.0 / partition.sizes).sum())
