"""Rebuild: noisy cluster sums come in, one value per cluster or row leaves. All of it is post-processing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.lattice import Lattice


def centroids(
    sums: NDArray[np.int64], sizes: NDArray[np.int64], lattice: Lattice, *, clip: bool
) -> NDArray[np.float64]:
    """Cluster means in the attribute's own units, inside the public domain unless `clip` is off."""
    means = lattice.values(sums / sizes)
    return np.clip(means, float(lattice.lo), float(lattice.hi)) if clip else means


def on_step(values: NDArray[np.float64], lattice: Lattice, *, clip: bool) -> NDArray[np.float64]:
    """Values rounded to the lattice, with no more decimals than its step has.

    >>> from fractions import Fraction
    >>> on_step(np.array([1.2345]), Lattice(Fraction(0), Fraction(9), Fraction(1, 100)), clip=True).tolist()
    [1.23]
    """
    positions = np.rint((values - float(lattice.lo)) / float(lattice.step))
    if clip:
        positions = np.clip(positions, 0, math.floor(lattice.width / lattice.step))
    exact = (len(str(part).partition(".")[2]) for part in (float(lattice.lo), float(lattice.step)))
    return np.asarray(np.round(lattice.values(positions), max(exact)))


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
