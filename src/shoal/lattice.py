"""The public integer lattice of an attribute: values come in, integer positions go on, values come back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError

DEFAULT_REAL_STEPS = 2**20
# Positions are computed in float64, so the lattice must not be finer than its integers.
MAX_STEPS = 2**52
# Bounds, widths and steps, and ratios of any two of them, must be ordinary float64 numbers.
_LARGEST_EXPONENT = 150


def exact(value: object, what: str) -> Fraction:
    """A number as the fraction its decimal text means: 0.1 is one tenth, not its binary neighbour.

    >>> exact(0.1, "step")
    Fraction(1, 10)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise OptionError(f"{what} must be a number, got {value}.")
    if isinstance(value, np.generic):
        value = value.item()
    try:
        decimal = Decimal(str(value).strip())
    except InvalidOperation:
        raise OptionError(f"{what} must be a number, got '{value}'.") from None
    if not decimal.is_finite():
        raise OptionError(f"{what} must be finite, got {value}.")
    # asked before the fraction is made: the one of 1e999999999 would fill the memory
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise OptionError(
            f"{what} must be 0 or between 1e-{_LARGEST_EXPONENT} and 1e{_LARGEST_EXPONENT} in size, got {value}."
        )
    return Fraction(decimal)


def decimal_text(value: Fraction) -> str:
    """The shortest decimal text of a fraction that has one, otherwise 17 digits.

    >>> decimal_text(Fraction(3, 2)), decimal_text(Fraction(12000)), decimal_text(Fraction(1, 3))
    ('1.5', '12000', '0.33333333333333331')
    """
    if value.denominator == 1:
        return str(value.numerator)
    text = repr(float(value))
    if Fraction(Decimal(text)) == value:
        return text
    # a fraction that ends after d digits has a denominator that divides 10^d, and d is below its bit length
    digits = value.denominator.bit_length()
    if 10**digits % value.denominator == 0:
        with localcontext(prec=digits + len(str(value.numerator))):
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    return format(float(value), ".17g")


@internal()
@dataclass(frozen=True, slots=True)
class Lattice:
    """value = lo + step · position, positions 0 .. steps, all of it public.

    `steps` is the width in lattice units, rounded up, so sensitivities are never understated.

    >>> Lattice(Fraction(0), Fraction(10), Fraction(3)).steps
    4
    """

    lo: Fraction
    hi: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        if self.lo >= self.hi:
            raise OptionError(f"a domain needs lo < hi, got {decimal_text(self.lo)}:{decimal_text(self.hi)}.")
        if self.step <= 0:
            raise OptionError(f"a lattice step must be above 0, got {decimal_text(self.step)}.")
        if self.steps > MAX_STEPS or max(abs(self.lo), abs(self.hi)) / self.step > MAX_STEPS:
            raise OptionError(
                f"step {decimal_text(self.step)} is too fine for the domain "
                f"{decimal_text(self.lo)}:{decimal_text(self.hi)}: choose a larger step."
            )

    @property
    def steps(self) -> int:
        return math.ceil((self.hi - self.lo) / self.step)

    @property
    def width(self) -> Fraction:
        return self.hi - self.lo

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Nearest lattice positions; values outside the domain land on its ends."""
        # in place: a column may be as large as the memory allows
        scaled = values - float(self.lo)
        scaled /= float(self.step)
        np.rint(scaled, out=scaled)
        return np.clip(scaled, 0, self.steps, out=scaled).astype(np.int64)

    def values(self, positions: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Values at (possibly fractional) positions, not clipped."""
        return float(self.lo) + float(self.step) * np.asarray(positions, dtype=np.float64)
