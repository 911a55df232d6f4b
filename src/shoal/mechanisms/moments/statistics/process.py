"""Noisy statistics in, statistics that a cluster in the domain can have out, and how often that took a repair."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.moments.statistics.draw import LARGEST_SKEWNESS, Shape
from shoal.mechanisms.moments.statistics.repair import (
    correlations,
    nearest_correlations,
    skewness_caps,
    variance_caps,
)
from shoal.mechanisms.moments.statistics.summary import Summary

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Statistics of all clusters, attributes divided by their widths; safe to post-process at will.

    Attributes:
        means: shape (clusters, d), 0 at the low end of the domain and 1 at the high end.
        covariances: shape (clusters, d, d), zero where the summary has no entry; None for order 0.
        coskewnesses: one column per entry of the summary; None below order 2.
    """

    means: Floats
    covariances: Floats | None = None
    coskewnesses: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """Statistics after repair.

    Attributes:
        shape: what rows are drawn from; None for order 0, where every row is the mean.
        repairs: what had to be repaired, and in how many cases.
    """

    statistics: Statistics
    shape: Shape | None
    repairs: dict[str, int] = field(default_factory=dict)


def make_possible(noisy: Statistics, sizes: Whole, summary: Summary, *, clip: bool) -> Possible:
    """Means into the domain, variances between 0 and the largest possible one, correlations to the nearest valid ones.

    Variances are kept as they are when correlations are repaired. Matrices put together from noisy eigenvalues are
    covariance matrices: they keep their correlations when variances are capped. A skewness beyond what so many records
    can have is capped; rows are drawn with one of 0.995 at most, which is all that a skew-normal variable can have.

    Reference:
        the cross-moment paper, sections 4.3 and 5.2.
    """
    repairs: dict[str, int] = {}
    means = noisy.means
    if clip:
        means = np.clip(means, 0.0, 1.0)
        repairs["means outside the domain"] = int((means != noisy.means).sum())
    if noisy.covariances is None:
        return Possible(Statistics(means), None, repairs)
    found = np.diagonal(noisy.covariances, axis1=1, axis2=2)
    caps = variance_caps(sizes)[:, np.newaxis]
    variances = np.clip(found, 0.0, caps)
    repairs["variances below 0"] = int((found < 0).sum())
    # exact variances reach the cap, up to rounding
    repairs["variances above the largest possible"] = int((found > caps * (1 + 1e-12)).sum())
    deviations = np.sqrt(variances)
    correlation = None
    if summary.correlated:
        capped = noisy.covariances.copy()
        diagonal = np.arange(summary.attributes)
        capped[:, diagonal, diagonal] = variances
        valid = noisy.covariances if summary.form == "eigen" else capped
        correlation, moved = nearest_correlations(correlations(valid))
        covariances = _covariances(deviations, correlation)
        changed = moved if summary.form == "eigen" else np.abs(covariances - capped).max(axis=(1, 2)) > 1e-9
        repairs["covariance matrices that are none"] = int(changed.sum())
    else:
        covariances = _covariances(deviations, None)
    if noisy.coskewnesses is None:
        return Possible(Statistics(means, covariances), Shape(deviations, correlation), repairs)
    marginal = [summary.coskewness_entries.index((i, i, i)) for i in range(summary.attributes)]
    cubes = deviations**3
    raw = noisy.coskewnesses[:, marginal]
    largest = skewness_caps(sizes)[:, np.newaxis] * cubes
    coskewnesses = noisy.coskewnesses.copy()
    coskewnesses[:, marginal] = np.clip(raw, -largest, largest)
    repairs["skewness above the largest possible"] = int((np.abs(raw) > largest * (1 + 1e-9)).sum())
    ratio = np.zeros_like(cubes)
    np.divide(raw, cubes, out=ratio, where=cubes > 0)
    skewness = np.clip(ratio, -LARGEST_SKEWNESS, LARGEST_SKEWNESS)
    repairs["skewness beyond 0.995"] = int((skewness != ratio).sum())
    return Possible(
        Statistics(means, covariances, coskewnesses), Shape(deviations, correlation, skewness), repairs
    )


def _covariances(deviations: Floats, correlation: Floats | None) -> Floats:
    outer = deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :]
    return outer * (np.eye(deviations.shape[1]) if correlation is None else correlation)
