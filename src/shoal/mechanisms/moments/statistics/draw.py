"""Rows from statistics: means, deviations, correlations and skewnesses of clusters come in, one row per record leaves.

Post-processing. The bits come from the same source as the noise, so that a seed repeats the rows too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.moments.statistics.power_sums import cluster_order
from shoal.mechanisms.moments.statistics.repair import nearest_correlations
from shoal.noise import Source

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# A skew-normal variable has |skewness| below (4-π)/2 · (2/(π-2))^1.5 = 0.99527.
LARGEST_SKEWNESS = 0.995
# Ranks of one attribute whose rows are drawn from a stream of their own.
BLOCK = 1 << 16
_HALF_NORMAL_MEAN = float(np.sqrt(2 / np.pi))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What rows of a cluster look like around its mean; one row of each array per cluster.

    Attributes:
        deviations: standard deviations.
        correlation: correlation matrices; None draws attributes independently.
        skewness: marginal skewnesses; None draws normal rows.
    """

    deviations: Floats
    correlation: Floats | None = None
    skewness: Floats | None = None


def standard_normal(count: int, source: Source) -> Floats:
    """Normal deviates by inversion, one 64-bit word each."""
    from scipy.special import ndtri

    uniform = ((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(ndtri(uniform))


def draw_rows(means: Floats, shape: Shape, labels: Whole, source: Source) -> tuple[Floats, int]:
    """One row for every record, from the distribution of its cluster, and how many clusters needed a milder skewness.

    Without skewness rows are multivariate normal, with it multivariate skew-normal; means and variances are kept.

    Reference:
        Azzalini and Dalla Valle, "The multivariate skew-normal distribution"; the cross-moment paper, section 5.2.
    """
    if shape.skewness is None:
        drawn, adjusted = _correlated(shape.correlation, means.shape[1], labels, source), 0
    elif shape.correlation is None:
        drawn, adjusted = _skewed_apart(shape.skewness, labels, source), 0
    else:
        drawn, adjusted = _skewed_together(shape.correlation, shape.skewness, labels, source)
    return means[labels] + shape.deviations[labels] * drawn, adjusted


def draw_ranks(
    means: Floats,
    deviations: Floats,
    skewness: Floats | None,
    sizes: Whole,
    first: int,
    source: Source,
) -> Floats:
    """One attribute of the records of consecutive ranks, from the distributions of their clusters.

    What a rank gets does not depend on the ranks before it: each block of ranks has a stream of its own, so that any
    part of a column can be drawn by itself.

    Args:
        means: of the clusters in order of rank, like the deviations and skewnesses.
        sizes: how many of the ranks belong to each.
        first: the first of the ranks.

    >>> from shoal.noise import Seeded
    >>> whole, tail = np.array([70_000, 9]), np.array([9])
    >>> drawn = draw_ranks(np.array([0.0, 5.0]), np.array([1.0, 2.0]), None, whole, 0, Seeded(1))
    >>> bool((drawn[-9:] == draw_ranks(np.array([5.0]), np.array([2.0]), None, tail, 70_000, Seeded(1))).all())
    True
    """
    labels = np.repeat(np.arange(sizes.size), sizes)
    if skewness is None:
        (drawn,) = _normals_of_ranks(first, labels.size, 1, source)
    else:
        delta = skewness_parameter(skewness)
        half, other = _normals_of_ranks(first, labels.size, 2, source)
        drawn = _skewed(delta[labels], half, other)
    return np.asarray(means[labels] + deviations[labels] * drawn)


def _normals_of_ranks(first: int, count: int, each: int, source: Source) -> Floats:
    """Normal deviates of consecutive ranks, several for each."""
    found = np.empty((each, count))
    for block in range(first // BLOCK, -(-(first + count) // BLOCK)):
        # a block is drawn as a whole, whatever part of it is asked for
        drawn = standard_normal(each * BLOCK, source.child("ranks", block)).reshape(each, BLOCK)
        low, high = max(first, block * BLOCK), min(first + count, (block + 1) * BLOCK)
        found[:, low - first : high - first] = drawn[:, low - block * BLOCK : high - block * BLOCK]
    return found


def skewness_parameter(skewness: Floats) -> Floats:
    """Azzalini's δ of standardised skew-normal variables with these skewnesses, which are at most 0.995 in size.

    >>> float(skewness_parameter(np.array(0.0))), round(float(skewness_parameter(np.array(0.995))), 3)
    (0.0, 1.0)
    """
    root = np.cbrt(2 * skewness / (4 - np.pi))
    return np.asarray(root / np.sqrt(1 + root**2) / _HALF_NORMAL_MEAN)


def _skewed_apart(skewness: Floats, labels: Whole, source: Source) -> Floats:
    """Independent skew-normal attributes of mean 0 and variance 1: δ|U| + √(1-δ²)·V, standardised."""
    delta = skewness_parameter(skewness)
    shape = (labels.size, skewness.shape[1])
    half = standard_normal(labels.size * shape[1], source).reshape(shape)
    other = standard_normal(labels.size * shape[1], source).reshape(shape)
    return _skewed(delta[labels], half, other)


def _skewed(delta: Floats, half: Floats, other: Floats) -> Floats:
    drawn = delta * np.abs(half) + np.sqrt(np.maximum(1 - delta**2, 0.0)) * other
    return _standardised(drawn, delta)


def _skewed_together(
    correlation: Floats, skewness: Floats, labels: Whole, source: Source
) -> tuple[Floats, int]:
    """Skew-normal rows: normal ones with one more component, and the sign of that one on all of them.

    The components' correlation matrix has δ beside it. Where no such matrix exists, the nearest one is used, which
    makes skewness and correlations milder.
    """
    delta = skewness_parameter(skewness)
    centre = _HALF_NORMAL_MEAN * delta
    spread = np.sqrt(1 - centre**2)
    count, number = delta.shape
    joint = np.empty((count, number + 1, number + 1))
    joint[:, 0, 0] = 1.0
    joint[:, 0, 1:] = joint[:, 1:, 0] = delta
    joint[:, 1:, 1:] = (
        correlation * spread[:, :, np.newaxis] * spread[:, np.newaxis, :]
        + centre[:, :, np.newaxis] * centre[:, np.newaxis, :]
    )
    joint, moved = nearest_correlations(joint)
    drawn = _correlated(joint, number + 1, labels, source)
    signed = np.where(drawn[:, :1] < 0, -drawn[:, 1:], drawn[:, 1:])
    return _standardised(signed, joint[:, 0, 1:][labels]), int(moved.sum())


def _standardised(drawn: Floats, delta: Floats) -> Floats:
    centre = _HALF_NORMAL_MEAN * delta
    return np.asarray((drawn - centre) / np.sqrt(1 - centre**2))


def _correlated(correlation: Floats | None, number: int, labels: Whole, source: Source) -> Floats:
    """Normal rows of mean 0 with the correlation matrix of their cluster."""
    normal = standard_normal(labels.size * number, source).reshape(labels.size, number)
    if correlation is None:
        return normal
    values, vectors = np.linalg.eigh(correlation)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
    order = cluster_order(labels)
    sizes = np.bincount(labels, minlength=len(roots))
    starts = np.cumsum(sizes) - sizes
    # one product for all clusters of a size: there are few different sizes
    for size in np.unique(sizes[sizes > 0]).tolist():
        clusters = np.flatnonzero(sizes == size)
        records = order[starts[clusters][:, np.newaxis] + np.arange(size)]
        normal[records] = normal[records] @ roots[clusters].transpose(0, 2, 1)
    return normal
