"""Released numbers: computed values come in, values as a column of their type and step holds them leave."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.lattice import MAX_STEPS, Lattice

# steps of the released values over the domain, at least
_FEW_STEPS = 10_000
_MOST_DECIMALS = 17


def with_few_decimals(lattice: Lattice) -> Lattice:
    """The lattice that values of a column without a step are released on: about four digits of its public width.

    More decimals than that are noise, and would only show how a number was computed. At least two are kept, as far as
    float64 has room for them.

    >>> from fractions import Fraction
    >>> with_few_decimals(Lattice(Fraction(0), Fraction(200), Fraction(1, 2**20))).step
    Fraction(1, 100)
    """
    decimals = 2
    while Fraction(1, 10**decimals) * _FEW_STEPS > lattice.width:
        decimals += 1
    size = max(abs(lattice.lo), abs(lattice.hi))
    while decimals > 0 and size * 10**decimals > MAX_STEPS:
        decimals -= 1
    step = Fraction(1, 10**decimals)
    # whole multiples of the step inside the domain, so that values read like numbers somebody wrote down
    lo, hi = (step * end for end in (math.ceil(lattice.lo / step), math.floor(lattice.hi / step)))
    return lattice if lo >= hi or (hi - lo) / step > MAX_STEPS else Lattice(lo, hi, step)


def on_step(values: NDArray[np.float64], lattice: Lattice, *, clip: bool) -> NDArray[np.float64]:
    """Values rounded to the lattice, with no more decimals than its step has.

    >>> from fractions import Fraction
    >>> on_step(np.array([1.2345]), Lattice(Fraction(0), Fraction(9), Fraction(1, 100)), clip=True).tolist()
    [1.23]
    """
    positions = np.rint((values - float(lattice.lo)) / float(lattice.step))
    if clip:
        positions = np.clip(positions, 0, math.floor(lattice.width / lattice.step))
    digits = max(_decimals(part) for part in (lattice.lo, lattice.step))
    return np.asarray(np.round(lattice.values(positions), digits))


def _decimals(value: Fraction) -> int:
    """How many decimals a number has; as many as a float64 can tell, where they have no end."""
    return next((d for d in range(_MOST_DECIMALS) if (value * 10**d).denominator == 1), _MOST_DECIMALS)


def narrow_floats(
    values: NDArray[np.float64], lattice: Lattice, kind: type[np.floating[Any]], *, clip: bool
) -> NDArray[np.floating[Any]]:
    """Values as the storage type has them, inside the domain: rounding to fewer digits must not leave it."""
    limit = float(np.finfo(kind).max)
    rounded = np.clip(values, -limit, limit).astype(kind)
    if not clip:
        return rounded
    # compared as float64: a plain number would be rounded to the array's type first
    above = rounded.astype(np.float64) > float(lattice.hi)
    below = rounded.astype(np.float64) < float(lattice.lo)
    rounded[above] = np.nextafter(rounded[above], kind(-np.inf))
    rounded[below] = np.nextafter(rounded[below], kind(np.inf))
    return rounded


def whole_numbers(
    values: NDArray[np.float64], lattice: Lattice, limits: tuple[int, int], *, clip: bool
) -> NDArray[np.int64]:
    """Values of an integer column, rounded as the very last step, inside the domain and the storage type."""
    lo, hi = limits
    if clip:
        lo, hi = max(lo, math.ceil(lattice.lo)), min(hi, math.floor(lattice.hi))
    rounded = np.clip(np.rint(values), float(lo), float(hi)).astype(np.int64)
    # float64 cannot hold every 64-bit limit
    return np.clip(rounded, lo, hi)
