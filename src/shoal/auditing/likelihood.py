"""The likelihood ratio of two worlds, where the distribution of a release is known: cluster means with Laplace noise.

A statistic needs no proof: it is used as an attack, and the bound holds for whatever event is chosen. So linked
attribute groups are treated as independent, rounding is ignored, and large tables get an approximation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.auditing.trial import World
from shoal.display import internal
from shoal.mechanisms.cluster_methods import ClusterMethod
from shoal.progress import silent
from shoal.sensitivity.sums import cluster_sum_scale

Matrix = NDArray[np.float64]

# All assignments of clusters to rows are summed up to this many clusters, 2^8 · 8 terms.
_ASSIGNED = 8
_LARGEST = 4_000


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The clusters of one attribute group: which columns, their means, their noise scales, their sizes."""

    columns: tuple[int, ...]
    means: Matrix
    scales: Matrix
    sizes: NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodRatio:
    """log P(release | left) - log P(release | right), summed over attribute groups."""

    left: tuple[Blocks, ...]
    right: tuple[Blocks, ...]
    lo: Matrix
    hi: Matrix

    def __call__(self, outputs: Matrix) -> Matrix:
        total = np.zeros(outputs.shape[0])
        for left, right in zip(self.left, self.right, strict=True):
            total += _log_likelihood(outputs, left, self.lo, self.hi)
            total -= _log_likelihood(outputs, right, self.lo, self.hi)
        # ties that differ in the last digits would split an atom into many
        return np.round(total, 9)


def likelihood_ratio(left: World, right: World) -> LikelihoodRatio | None:
    """The ratio for two worlds, or None where their distribution is not known or the tables are large."""
    if not isinstance(left.method, ClusterMethod) or not left.method.likelihood:
        return None
    if left.described.n != right.described.n:
        return None
    sides = _blocks(left), _blocks(right)
    if max(left.described.n * len(block.sizes) for side in sides for block in side) > _LARGEST:
        return None
    lattices = left.described.lattices.values()
    lo = np.array([float(lattice.lo) for lattice in lattices])
    hi = np.array([float(lattice.hi) for lattice in lattices])
    return LikelihoodRatio(*sides, lo=lo, hi=hi)


def _blocks(world: World) -> tuple[Blocks, ...]:
    described, method, clusters = world.described, world.method, world.frozen
    assert isinstance(method, ClusterMethod)
    if clusters is None:
        clusters = method.freeze(described, world.plan, silent)
    found = []
    sums_of = method.calibration.sums
    for made in clusters:
        partition = made.partition
        means, scales = [], []
        for number, column in enumerate(partition.columns):
            lattice = described.lattices[column]
            positions, _ = described.positions(column)
            if made.scales is None:
                steps = float(cluster_sum_scale(lattice.steps, world.plan.shares[column]))
            else:
                # a cluster without noise still needs a density: one far narrower than a lattice step
                steps = np.maximum(made.scales[number].astype(np.float64), 1e-3)
            means.append(lattice.values(sums_of(positions, partition) / partition.sizes))
            scales.append(steps * float(lattice.step) / partition.sizes)
        numbers = tuple(described.columns.index(column) for column in partition.columns)
        found.append(Blocks(numbers, np.stack(means, 1), np.stack(scales, 1), partition.sizes))
    return tuple(found)


def _log_likelihood(outputs: Matrix, blocks: Blocks, lo: Matrix, hi: Matrix) -> Matrix:
    rows = outputs[:, :, list(blocks.columns)]
    size = int(blocks.sizes[0])
    if len(blocks.sizes) <= _ASSIGNED and (blocks.sizes == size).all():
        # equal sizes: every size-th of the sorted rows is one cluster, even when two clusters share a value
        order = np.lexsort(tuple(rows[:, :, j] for j in range(rows.shape[2])), axis=1)
        distinct = np.take_along_axis(rows, order[:, :, None], axis=1)[:, ::size]
        return _log_permanent(_log_densities(distinct, blocks, lo, hi))
    densities = _log_densities(rows, blocks, lo, hi) + np.log(blocks.sizes)
    peak = densities.max(axis=2, keepdims=True)
    mixed = np.log(np.exp(densities - peak).sum(axis=2)) + peak[:, :, 0]
    total: Matrix = mixed.sum(axis=1) / blocks.sizes.mean()
    return total


def _log_densities(rows: Matrix, blocks: Blocks, lo: Matrix, hi: Matrix) -> Matrix:
    """Log density of each row under each cluster, (runs, rows, clusters); the ends of a domain are atoms."""
    total = np.zeros((rows.shape[0], rows.shape[1], len(blocks.sizes)))
    for j, column in enumerate(blocks.columns):
        value = rows[:, :, j, None]
        mean, scale = blocks.means[:, j], blocks.scales[:, j]
        inside = -np.abs(value - mean) / scale - np.log(2 * scale)
        at_lo = np.log(0.5) - (mean - lo[column]) / scale
        at_hi = np.log(0.5) - (hi[column] - mean) / scale
        total += np.where(value <= lo[column], at_lo, np.where(value >= hi[column], at_hi, inside))
    return total


def _log_permanent(densities: Matrix) -> Matrix:
    """log of the sum over all assignments of rows to clusters, (runs, g, g) -> (runs,)."""
    g = densities.shape[1]
    peak = densities.max(axis=2)
    weights = np.exp(densities - peak[:, :, None])
    partial = {0: np.ones(densities.shape[0])}
    for row in range(g):
        following: dict[int, Matrix] = {}
        for used, weight in partial.items():
            for cluster in range(g):
                if not used >> cluster & 1:
                    key = used | 1 << cluster
                    following[key] = following.get(key, 0.0) + weight * weights[:, row, cluster]
        partial = following
    total: Matrix = np.log(np.maximum(partial[(1 << g) - 1], 1e-300)) + peak.sum(axis=1)
    return total
