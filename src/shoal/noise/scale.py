"""Noise scales as fractions. In: exact rational scales. Out: fractions small enough for the sampler, never smaller."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.epsilon import shown

Scale = int | np.integer[Any] | Fraction

LARGEST_NUMERATOR = 1 << 52
LARGEST_DENOMINATOR = 1 << 20


def round_up_scale(exact: Fraction | int) -> Fraction:
    """The smallest fraction of at least `exact` that the sampler takes.

    Below 2^20 that is the smallest fraction with a denominator of at most 2^20, above it the next whole number.
    Whole numbers and fractions with a small denominator stay as they are, and larger scales never become smaller
    than rounded smaller ones. The relative increase is at most 2^-19 for scales of at least 2^-20.

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
    # A whole number survives the trip through a binary float; nothing else is what it seems.
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
