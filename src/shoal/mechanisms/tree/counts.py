"""Counts made consistent. In: noisy counts of the levels of a binary tree. Out: counts that add up, level by level.

Everything here is post-processing of noisy counts: floating-point numbers, no record, no budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

Floats = NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of noisy counts.

    Attributes:
        noisy: two children per node of the level above, left and right in turn.
        variance: of the noise on each of them.
        expected: share of each parent that its left child has if nothing is known but the levels above.
        doubt: standard deviation of that share.
    """

    noisy: Floats
    variance: float
    expected: Floats
    doubt: float


def consistent_counts(total: float, levels: Sequence[Level]) -> list[Floats]:
    """Non-negative counts of every level, children adding up to their parents and the root to `total`.

    Upwards every node combines its own noisy count with the sum of its children, weighted by their variances
    (least squares). Downwards the children share the parent's count: their noisy difference is weighted against
    the expected share, so that noise that drowns a small node falls back to what is expected.

    Reference:
        Hay, Rastogi, Miklau and Suciu, "Boosting the Accuracy of Differentially Private Histograms Through
        Consistency", section 4.

    >>> level = Level(np.array([40.0, 80.0]), 1.0, np.array([0.5]), 10.0)
    >>> [round(count, 2) for count in consistent_counts(100, [level])[1].tolist()]
    [30.0, 70.0]
    """
    gathered: list[tuple[Floats, float]] = []
    for level in reversed(levels):
        if not gathered:
            gathered.append((level.noisy, level.variance))
            continue
        below, variance = gathered[-1]
        sums, spread = below.reshape(-1, 2).sum(axis=1), 2 * variance
        own = spread / (spread + level.variance)
        gathered.append((own * level.noisy + (1 - own) * sums, own * level.variance))
    counts = [np.array([float(total)])]
    for level, (estimate, variance) in zip(levels, reversed(gathered), strict=True):
        parent = counts[-1]
        pairs = estimate.reshape(-1, 2)
        measured = (parent + pairs[:, 0] - pairs[:, 1]) / 2
        prior = (level.doubt * parent) ** 2
        trust = prior / (prior + variance / 2)
        left = np.clip(trust * measured + (1 - trust) * level.expected * parent, 0, parent)
        counts.append(np.column_stack((left, parent - left)).ravel())
    return counts


def rake(
    cells: Floats, groupings: Sequence[NDArray[np.int64]], targets: Sequence[Floats], rounds: int = 5
) -> Floats:
    """Cells scaled in turn so that every grouping of them approaches its target sums.

    >>> rake(np.array([1.0, 1.0, 2.0]), [np.array([0, 0, 1])], [np.array([3.0, 1.0])]).tolist()
    [1.5, 1.5, 1.0]
    """
    for _ in range(rounds):
        for group, target in zip(groupings, targets, strict=True):
            sums = np.bincount(group, cells, minlength=target.size)
            # a group without any cell weight cannot be scaled and is left to the others
            factor = np.divide(target, sums, out=np.ones_like(target), where=sums > 1e-9)
            cells = cells * factor[group]
    return cells


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """The non-negative counts that add up to `total` and are nearest to the noisy ones, by squared distance.

    >>> nearest_counts(np.array([7.0, 4.0, -2.0]), 10.0).tolist()
    [6.5, 3.5, 0.0]
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    # all counts lose the same, until those that would be negative are gone
    last = int(np.flatnonzero(falling >= excess)[-1])
    nearest: Floats = np.maximum(noisy - excess[last], 0.0)
    return nearest


def whole_counts(counts: Floats, total: int) -> NDArray[np.int64]:
    """Whole numbers that add up to `total`; every run of consecutive counts is off by less than one.

    >>> whole_counts(np.array([0.5, 0.5, 0.5, 0.5]), 2).tolist()
    [1, 0, 1, 0]
    """
    weight = counts.sum()
    shares = counts / weight if weight > 0 else np.full(counts.size, 1 / counts.size)
    ends = np.floor(np.cumsum(shares) * total + 0.5).astype(np.int64)
    ends = np.minimum(ends, total)
    ends[-1] = total
    return np.diff(ends, prepend=0)
