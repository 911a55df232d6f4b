"""One model of all pairs. In: a table for every pair of attributes. Out: a mixture of classes, independent inside.

Rows drawn from it agree with all tables as nearly as such a mixture can. Post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from shoal.display import internal

Floats = NDArray[np.float64]
Pair = tuple[int, int]

CLASSES = 128
ROUNDS = 200
# How wide a class is in each attribute at the start, in standard deviations.
_WIDTH = 0.7
_LEAST = 1e-9


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Classes with their weights, and the bins' probabilities inside, all attributes beside each other.

    Attributes:
        weights: of the classes.
        bins: (classes, all bins) probabilities, adding up to one for every class and attribute.
        starts: where each attribute's bins begin; one more for the end.
    """

    weights: Floats
    bins: Floats
    starts: NDArray[np.int64]


def fit(
    shares: Sequence[Floats],
    tables: Mapping[Pair, Floats],
    correlations: Floats,
    latent: Sequence[int],
    random: np.random.Generator,
    rounds: int = ROUNDS,
) -> Mixture:
    """Fit by expectation maximisation of the composite likelihood, the sum of those of all pairs.

    Args:
        shares: probabilities of every attribute's bins.
        correlations, latent: of latent normals, and the attributes they belong to: where classes begin.
    """
    starts = np.concatenate(([0], np.cumsum([own.size for own in shares])))
    if not tables:
        return Mixture(np.ones(1), np.concatenate(shares)[None], starts)
    target = np.zeros((starts[-1], starts[-1]))
    for (a, b), table in tables.items():
        target[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = table
    target += target.T
    bins, weights = _start(shares, correlations, latent, random), np.full(CLASSES, 1 / CLASSES)
    owner = np.repeat(np.arange(len(shares)), np.diff(starts))
    # attributes that take part in no table stay as they are
    taking = np.isin(owner, [number for pair in tables for number in pair])
    for _ in range(rounds):
        weighted = bins * weights[:, None]
        model = bins.T @ weighted
        ratio = np.divide(target, model, out=np.zeros_like(target), where=target > 0)
        # how many (in shares) of each bin belong to each class
        belonging = weighted * (bins @ ratio)
        own = np.add.reduceat(belonging, starts[:-1], axis=1)
        weights = own.sum(axis=1)
        weights /= weights.sum()
        scaled = belonging / np.maximum(own, 1e-300)[:, owner]
        bins = np.where(taking, np.maximum(scaled, _LEAST), bins)
    bins /= np.add.reduceat(bins, starts[:-1], axis=1)[:, owner]
    return Mixture(weights, bins, starts)


def _start(
    shares: Sequence[Floats], correlations: Floats, latent: Sequence[int], random: np.random.Generator
) -> Floats:
    """Classes around points of the latent normals; names a little different in every class."""
    centres = random.standard_normal((CLASSES, len(latent))) @ np.linalg.cholesky(correlations).T
    parts = []
    for number, own in enumerate(shares):
        if number in latent:
            ends = np.concatenate(([0.0], np.cumsum(own))) / own.sum()
            middle = ndtri(np.clip((ends[:-1] + ends[1:]) / 2, 1e-6, 1 - 1e-6))
            centre = centres[:, list(latent).index(number)]
            part = own * np.exp(-((middle - centre[:, None]) ** 2) / (2 * _WIDTH**2))
        else:
            part = own * random.gamma(2.0, 0.5, (CLASSES, own.size))
        part = np.maximum(part, _LEAST)
        parts.append(part / part.sum(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)
