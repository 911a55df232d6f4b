"""Privacy budgets and noise scales as exact fractions, rounded towards more noise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError

SMALLEST = Fraction(1, 10**9)
LARGEST = Fraction(10**6)
# Bounded digits and exponent: the exact fraction of "1e-999999999" would fill the memory.
_DECIMAL = re.compile(r"\+?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,3})?", re.ASCII)
Scale = int | np.integer[Any] | Fraction

LARGEST_NUMERATOR = 1 << 52
LARGEST_DENOMINATOR = 1 << 20


def parse_epsilon(value: str | int | float | Decimal | Fraction) -> Fraction:
    """The exact value of ε: 0.1 means one tenth, not the nearest binary number.

    A float is read through its shortest decimal text, which is what the user typed.

    Raises:
        OptionError: not a number, or outside 1e-9 .. 1e6.

    >>> parse_epsilon(0.1), parse_epsilon("2.50"), parse_epsilon(1)
    (Fraction(1, 10), Fraction(5, 2), Fraction(1, 1))
    """
    exact = exact_number(value)
    if exact is None or not SMALLEST <= exact <= LARGEST:
        raise OptionError("epsilon-out-of-range", option="epsilon", found=shown(value))
    return exact


def exact_number(value: object) -> Fraction | None:
    """The fraction that a number or its decimal text denotes, or None."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    # str() of a numpy float is its shortest text in its own precision.
    text = value.strip() if isinstance(value, str) else None
    if isinstance(value, float | Decimal | np.floating):
        text = str(value)
    if text is None or not (matched := _DECIMAL.fullmatch(text.removeprefix("-"))):
        return None
    sign = -1 if text.startswith("-") else 1
    return sign * Fraction(matched.group())


def shown(value: object) -> str:
    """A value as printed in error messages: never longer than a line."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # the interpreter refuses to print integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:40] + "..."


def round_up_scale(exact: Fraction | int) -> Fraction:
    """The smallest fraction of at least `exact` that the sampler supports.

    Below 2^20 that is the smallest fraction with a denominator of at most 2^20, above it the next integer.
    Integers and fractions with a small denominator are unchanged, and rounding is monotone. The relative increase
    is at most 2^-19 for scales of at least 2^-20.

    Raises:
        OptionError: the scale is negative, or larger than 2^52.

    Guarantee:
        Never rounds down, so a mechanism that needs `exact` keeps its ε.

    >>> round_up_scale(Fraction(10, 3)), round_up_scale(Fraction(10**9 + 1, 10**9))
    (Fraction(10, 3), Fraction(1048577, 1048576))
    """
    scale = _as_fraction(exact)
    if scale < 0 or scale > LARGEST_NUMERATOR:
        raise _bad_scale(exact)
    if scale >= LARGEST_DENOMINATOR:
        return Fraction(-(-scale.numerator // scale.denominator))
    near = scale.limit_denominator(LARGEST_DENOMINATOR)
    # The nearest fraction is the answer when it lies above; otherwise the answer is its right Farey neighbour p'/q':
    # p'q - pq' = 1 with the largest admissible q'.
    if near >= scale:
        return near
    p, q = near.numerator, near.denominator
    residue = -pow(p, -1, q) % q if q > 1 else 0
    neighbour = LARGEST_DENOMINATOR - (LARGEST_DENOMINATOR - residue) % q
    return Fraction((1 + p * neighbour) // q, neighbour)


def split_scale(scale: Scale | NDArray[Any] | Sequence[Scale]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numerators and denominators of one scale (two zero-dimensional arrays) or of an array of scales.

    >>> [part.tolist() for part in split_scale([2, Fraction(3, 2)])]
    [[2, 3], [1, 2]]
    """
    values = np.asarray(scale)
    if values.dtype.kind in "iu":
        if values.size and (int(values.min()) < 0 or int(values.max()) > LARGEST_NUMERATOR):
            raise _bad_scale(values.min() if int(values.min()) < 0 else values.max())
        # One denominator for all: the sampler then divides by a constant.
        return values.astype(np.int64), np.asarray(1, dtype=np.int64)
    fractions = [_as_fraction(value) for value in values.ravel().tolist()]
    for fraction in fractions:
        if (
            fraction < 0
            or fraction.numerator > LARGEST_NUMERATOR
            or fraction.denominator > LARGEST_DENOMINATOR
        ):
            raise _bad_scale(fraction)
    numerators = np.array([f.numerator for f in fractions], dtype=np.int64).reshape(values.shape)
    denominators = np.array([f.denominator for f in fractions], dtype=np.int64).reshape(values.shape)
    return numerators, denominators


def _as_fraction(value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    # An integer survives conversion to a binary float; other numbers may not.
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return Fraction(int(value))
    raise _bad_scale(value)


def _bad_scale(value: object) -> OptionError:
    if isinstance(value, Fraction | int | np.integer) and not isinstance(value, bool):
        if value < 0:
            return OptionError("scale-least-0", option="scale", found=shown(value))
        if value > LARGEST_NUMERATOR:
            return OptionError("scale-larger-than-2-52-lattice", found=shown(value))
        return OptionError("scale-numerator-above-2-52-denominator", found=shown(value))
    return OptionError("scale-whole-number-fraction", option="scale", found=shown(value))
