"""Rebuild: noisy cluster sums come in, one value per cluster or row leaves. All of it is post-processing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import Lattice


def centroids(
    sums: NDArray[np.int64], sizes: NDArray[np.int64], lattice: Lattice, *, clip: bool
) -> NDArray[np.float64]:
    """Cluster means in the attribute's own units, inside the public domain unless `clip` is off."""
    means = lattice.values(sums / sizes)
    return np.clip(means, float(lattice.lo), float(lattice.hi)) if clip else means
