"""Synthetic tables of several shapes, as positions and public domains.

The constants of `shoal.mechanisms.tree.intervals` were fitted to these, never to real tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

SHAPES = ("normal", "lognormal", "many zeros", "mixed", "uniform", "clusters")
_ROOM = {"normal": 2.0, "uniform": 1.2}


def made_up(shape: str, rows: int, attributes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A table of correlated whole numbers from 0, and the upper end of each column's domain."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(attributes, attributes))
    covariance = mixing @ mixing.T + 0.5 * attributes * np.eye(attributes)
    spread = np.sqrt(np.diag(covariance))
    z = rng.multivariate_normal(np.zeros(attributes), covariance / np.outer(spread, spread), rows)
    if shape == "normal":
        values = 100 + 25 * z
    elif shape == "lognormal":
        values = 1000 * np.exp(z)
    elif shape == "many zeros":
        values = np.where((rng.random(z.shape) < 0.45) | (z < -0.1), 0, 1000 * np.exp(1.2 * z))
    elif shape == "mixed":
        values = 50 + 15 * z
        values[:, 0] = 1000 * np.exp(1.3 * z[:, 0])
        values[:, 1] = np.where(rng.random(rows) < 0.4, 40, 40 + 8 * z[:, 1])
        values[:, -1] = np.where(z[:, -1] < 0, 0, 500 * np.exp(z[:, -1]))
    elif shape == "uniform":
        values = 1000 * norm.cdf(z)
    else:
        centres = 2 * rng.normal(size=(3, attributes))
        values = 500 + 100 * (centres[rng.integers(0, 3, rows)] + 0.5 * z)
    positions = np.maximum(np.rint(values), 0).astype(np.int64)
    return positions, np.ceil(_ROOM.get(shape, 1.5) * positions.max(axis=0)).astype(np.int64)
