"""Errors to be expected, in closed form: a prepared release and its clusters come in, expected measures leave.

A cluster C is released as one value Y. Over its records, Σ(x - Y)² = SSE(C) + |C|·(Y - μ)² with μ their mean, so the
expectation needs no more than the first two moments of Y: a centre, moved by clipped Laplace noise. No noise is drawn.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.cluster_methods import ClusterMethod
from shoal.mechanisms.mask import Clusters
from shoal.noise.families import NOISES
from shoal.release.protect import Preparation
from shoal.sensitivity.sums import cluster_sum_scale
from shoal.tuning.clipped import clipped_moments


def has_closed_form(prepared: Preparation) -> bool:
    """Whether the expected row error of a release is known without making one."""
    method, described = prepared.method, prepared.described
    return (
        isinstance(method, ClusterMethod)
        and method.sum_shares(described.n, prepared.plan) is not None
        and NOISES[method.noise].closed_form
        and not (described.nominal or described.flagged)
        and (method.link or len(described.columns) == 1)
    )


def expected_measures(prepared: Preparation, frozen: tuple[Clusters, ...]) -> dict[str, float | None]:
    """Expected SSE, normalised SSE and scaled SSE of a release, as `shoal.evaluate` would measure them on average.

    Args:
        prepared: the release; `has_closed_form` must hold.
        frozen: its clusters, from the method's `freeze`.

    Cost:
        One pass over the records and attributes.

    Reference:
        MDAI-2017 has the two terms for noise that is not clipped; docs/guide/tuning.md.
    """
    described = prepared.described
    errors = expected_errors(prepared, frozen)
    sse, normalised, scaled = [], [], []
    for name, error in errors.items():
        values = described.original(name)
        values = values[np.isfinite(values)]
        scaled.append(error / float(described.lattices[name].width) ** 2)
        if not described.attribute(name).kind_facts.measured or not values.size:
            continue
        sse.append(error)
        if values.min() < values.max():
            normalised.append(error / values.size / float(values.var()))
    return {
        "sse": math.fsum(sse) if sse else None,
        "normalised_sse": math.fsum(normalised) / len(normalised) if normalised else None,
        "scaled_sse": math.fsum(scaled),
    }


def expected_errors(prepared: Preparation, frozen: tuple[Clusters, ...]) -> dict[str, float]:
    """Expected sum of squared errors of each column, over the rows that have a value."""
    method, described = prepared.method, prepared.described
    assert isinstance(method, ClusterMethod)
    shares = method.sum_shares(described.n, prepared.plan)
    assert shares is not None
    found: dict[str, float] = {}
    for group, clusters in zip(method.resolve_groups(described.columns), frozen, strict=True):
        for number, name in enumerate(group):
            scales = None if clusters.scales is None else clusters.scales[number].astype(np.float64)
            found[name] = _column_error(described, name, method, clusters, shares[name], scales)
    return {name: found[name] for name in described.columns}


def _column_error(
    described: Described,
    name: str,
    method: ClusterMethod,
    clusters: Clusters,
    share: Fraction,
    scales: NDArray[np.float64] | None,
) -> float:
    partition, lattice = clusters.partition, described.lattices[name]
    sizes = partition.sizes.astype(np.float64)
    positions, _ = described.positions(name)
    sums = method.calibration.sums(positions, partition).astype(np.float64)
    if scales is None:
        scales = np.full(sizes.size, float(cluster_sum_scale(lattice.steps, share)))
    step = float(lattice.step)
    if method.clip:
        ends = sizes * (float(lattice.width) / step)
        sums = np.minimum(sums, ends)
        shift, square = clipped_moments(scales, sums, ends - sums)
    else:
        shift, square = clipped_moments(scales, np.full(sizes.size, np.inf), np.full(sizes.size, np.inf))
    shift, square = shift * step / sizes, square * (step / sizes) ** 2

    values = described.original(name)
    present = np.isfinite(values)
    labels, values = partition.labels[present], values[present]
    counts = np.bincount(labels, minlength=sizes.size)
    means = np.bincount(labels, weights=values, minlength=sizes.size) / np.maximum(counts, 1)
    within = float(np.sum((values - means[labels]) ** 2))
    off = lattice.values(sums / sizes) - means
    return within + float(np.sum(counts * (square + 2.0 * off * shift + off * off)))
