"""Rebuild: noisy cluster sums come in, one value per cluster or row leaves. All of it is post-processing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shoal.lattice import Lattice


def centroids(
    sums: NDArray[np.int64], sizes: NDArray[np.int64], lattice: Lattice, *, clip: bool
) -> NDArray[np.float64]:
    """Cluster means in the attribute's own units, inside the public domain unless `clip` is off."""
    means = lattice.values(sums / sizes)
    return np.clip(means, float(lattice.lo), float(lattice.hi)) if clip else means


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
