"""Attributes of any kind in, whole-number distances of records to the corners of the public domain out.

The distance of a record to a corner (thesis, Eq. 6.7) needs of every attribute only how far the record's value is from
the low and from the high end of the attribute's domain, divided by the distance between the ends. Numbers and concepts
of a taxonomy differ in how that is measured and in nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError

# Squared distances are whole multiples of a small unit; their sums stay below 2^60, so that the sum for a record that
# is gone can be marked by something larger that still fits.
_LARGEST_BITS = 60


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """One attribute as the distance to a corner sees it.

    Attributes:
        values: numbers that settle the order of records at equal distance: different values, different numbers.
        low: distance of each record's value to the low end, in units of the distance between the ends.
        high: the same to the high end.
        reach: what neither of them can exceed, whatever the records; a public number.
    """

    values: NDArray[np.int64] | NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    reach: float = 1.0


def numeric_ends(values: ArrayLike, lo: float, hi: float) -> Ends:
    """Numbers inside their public domain [lo, hi].

    >>> ends = numeric_ends([0, 3, 10], 0, 10)
    >>> ends.low.tolist(), ends.high.tolist()
    ([0.0, 0.3, 1.0], [1.0, 0.7, 0.0])
    """
    numbers = np.asarray(values)
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise OptionError("public-domain-needs-lo-hi-both", found=lo, hi=hi)
    # written so that a missing value counts as outside
    outside = ~((numbers >= lo) & (numbers <= hi))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("row-outside-domain", row=row + 1, found=numbers[row], lo=lo, hi=hi)
    width = hi - lo
    return Ends(numbers, (numbers - lo) / width, (hi - numbers) / width)


def nominal_ends(codes: ArrayLike, to_low: ArrayLike, to_high: ArrayLike, between: float) -> Ends:
    """Values of a finite public domain, numbered, with the distances of all its values to either end.

    Args:
        codes: number of each record's value.
        to_low: distance of value 0, 1, ... of the domain to the low end.
        to_high: distance of value 0, 1, ... of the domain to the high end.
        between: distance of the two ends; 0 in a domain of one value, where there is nothing to divide.

    >>> ends = nominal_ends([0, 2, 1], to_low=[0.0, 0.5, 0.8], to_high=[0.8, 0.6, 0.0], between=0.8)
    >>> ends.low.tolist(), ends.high.round(2).tolist(), ends.reach
    ([0.0, 1.0, 0.625], [1.0, 0.0, 0.75], 1.0)
    """
    numbers = np.asarray(codes, dtype=np.int64)
    low, high = np.asarray(to_low, dtype=np.float64), np.asarray(to_high, dtype=np.float64)
    outside = (numbers < 0) | (numbers >= low.size)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("row-code-domain-values-0", row=row + 1, found=numbers[row], most=low.size - 1)
    unit = between if between > 0 else 1.0
    reach = float(max(low.max(), high.max())) / unit
    return Ends(numbers, (low / unit)[numbers], (high / unit)[numbers], reach)


def distance_unit(ends: Sequence[Ends]) -> int:
    """How many bits of a squared distance are kept behind the point: as many as sums over all attributes allow.

    >>> distance_unit([numeric_ends([1], 0, 2)] * 4)
    57
    """
    most = sum(math.ceil(one.reach) ** 2 for one in ends)
    return _LARGEST_BITS - most.bit_length()


def squared(distances: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Squares in units of 2^-bits, rounded to the nearest: functions of the value alone, and exact to add up.

    >>> squared(np.array([0.5, 1.0]), 4).tolist()
    [4, 16]
    """
    exact = distances * distances
    exact *= 2.0**bits
    return np.rint(exact, out=exact).astype(np.int64)
