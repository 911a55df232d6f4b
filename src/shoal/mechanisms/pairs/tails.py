"""Tails of one attribute. In: its distribution with the cuts of a tree. Out: the same with shaped outer intervals.

The first and the last interval reach to the ends of the domain and are mostly empty, and correlations of numbers depend
on how far into them values go. A curve through the cuts goes on in them; it is tilted to the noisy mean of the interval
as far as that is clear of noise. Post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.pairs.marginal import Fine
from shoal.mechanisms.pairs.thresholds import likely, places

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The curve goes through so many of the cuts, and may miss them by about this much.
_POINTS, _NOISE = 15, 0.01
# Tilts, in exponents per standard deviation of the interval.
_STEEPEST = 40.0


def with_tails(fine: Fine, edges: Integers, means: Floats, noise: Floats) -> Fine:
    """The distribution with its first and last interval in many pieces.

    Args:
        fine: one interval between any two edges.
        means: noisy mean position of each interval.
        noise: standard deviation of each.
    """
    size, filled = int(edges[-1]), np.flatnonzero(np.diff(edges) > 0)
    if filled.size < 3:
        return fine
    running = np.cumsum(fine.shares)[:-1]
    chosen = np.unique(np.linspace(0, running.size - 1, _POINTS).astype(np.int64))
    curve = likely(edges[None, 1:-1][:, chosen] / size, running[None, chosen], _NOISE)[0]
    parts = [
        tuple(part[here : here + 1] for part in (fine.lows, fine.highs, fine.shares, fine.slopes))
        for here in filled
    ]
    grid = np.rint(places() * size).astype(np.int64)
    for place in (0, -1):
        here = filled[place]
        inside = grid[(grid > edges[here]) & (grid < edges[here + 1])]
        cuts = np.unique(np.concatenate((edges[[here, here + 1]], inside)))
        weights = np.maximum(np.diff(np.interp(cuts / size, places(), curve)), 1e-12)
        middles = (cuts[:-1] + cuts[1:] - 1) / 2
        weights = towards_mean(weights / weights.sum(), middles, float(means[here]), float(noise[here]))
        parts[place] = (cuts[:-1], cuts[1:] - 1, fine.shares[here] * weights, np.zeros(weights.size))
    lows, highs, shares, slopes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Fine(lows, highs, shares, slopes)


def towards_mean(weights: Floats, middles: Floats, mean: float, noise: float) -> Floats:
    """Weights of pieces, tilted so that their mean moves to a measured one as far as this is clear of noise.

    >>> found = towards_mean(np.full(3, 1 / 3), np.array([0.0, 1.0, 2.0]), 1.5, 1e-9)
    >>> found.round(3).tolist()
    [0.116, 0.268, 0.616]
    """
    if weights.size < 2:
        return weights
    expected = float(weights @ middles)
    spread = float(np.sqrt(weights @ (middles - expected) ** 2))
    # a curve knows the mean of a tail about as well as the tail is narrow
    trust = spread**2 / (spread**2 + noise**2)
    wanted = expected + trust * (mean - expected)
    steps = (middles - expected) / spread
    low, high, found = -_STEEPEST, _STEEPEST, weights
    for _ in range(50):
        slope = (low + high) / 2
        exponents = slope * steps
        found = weights * np.exp(exponents - exponents.max())
        found = found / float(found.sum())
        low, high = (slope, high) if float(found @ middles) < wanted else (low, slope)
    return found
