"""Numbers of about 106 bits, as unevaluated sums of two doubles: pairs (high, low) come in, pairs leave.

Every function works on floats and, element by element, on arrays.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", float, NDArray[np.float64])

_SPLITTER = 134217729.0  # 2^27 + 1


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """a + b, and what rounding took from it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def normalised(high: Real, low: Real) -> tuple[Real, Real]:
    """The same sum with `low` at most half a unit of `high`; |high| ≥ |low| on entry."""
    total = high + low
    return total, low - (total - high)


def two_product(a: Real, b: Real) -> tuple[Real, Real]:
    """a · b, and what rounding took from it."""
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
