"""Mechanisms with a known flaw, to show that the audit detects it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.auditing.trial import Released, World, published, release
from shoal.mechanisms.clusters import centroids
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.sensitivity import cluster_sum_scale
from shoal.noise import Source, discrete_laplace
from shoal.noise.entropy import Seeded


def redrawn_noise(world: World, source: Source) -> Released:
    """Every record of a cluster gets the cluster mean with noise of its own: averaging removes the noise."""
    values = {}
    for held in world.frozen:
        partition = held.partition
        for column in partition.columns:
            lattice = world.described.lattices[column]
            positions, _ = world.described.positions(column)
            scale = cluster_sum_scale(lattice.steps, world.plan.shares[column])
            sums = partition.sums(positions)[partition.labels]
            sums = sums + discrete_laplace(scale, sums.size, source)
            values[column] = centroids(
                sums, partition.sizes[partition.labels], lattice, clip=world.method.output.clip
            )
    rebuilt = Rebuilt(values, list(world.frozen), aligned=True)
    return published(world, rebuilt, source)


def small_scale(world: World, source: Source) -> Released:
    """The scale of the noise is 20% too small."""
    return _richer(world, source, Fraction(5, 4))


def without_noise(world: World, source: Source) -> Released:
    """The scale is so small that no noise is ever drawn."""
    return _richer(world, source, Fraction(10) ** 15)


def overspent(world: World, source: Source, times: int = 8) -> Released:
    """So many times the budget is spent."""
    richer: dict[str, Any] = {"epsilon": times * world.method.budget}
    method = replace(world.method, **richer)
    return release(replace(world, method=method, plan=method.plan(world.described)), source)


def reused_seed(world: World, source: Source) -> Released:
    """Every release draws the same numbers."""
    return release(world, Seeded(1))


def unshuffled(world: World, source: Source) -> Released:
    """Rows are released in the order of the input."""
    return release(world, _InOrder(source))


class _InOrder(Source):
    """The bits of another source; its permutations change nothing."""

    def __init__(self, source: Source) -> None:
        self.reproducible = source.reproducible
        self._source = source

    def words(self, n: int) -> NDArray[np.uint64]:
        return self._source.words(n)

    def permutation(self, n: int) -> NDArray[np.int64]:
        return np.arange(n, dtype=np.int64)


def _richer(world: World, source: Source, factor: Fraction) -> Released:
    """Noise for so many times the budget, from an account that has it, whatever is claimed."""
    plan, account = world.plan, world.method.account(world.plan, source)
    shares, account.reserved = (
        {name: amount * factor for name, amount in amounts.items()}
        for amounts in (plan.shares, account.reserved)
    )
    return release(replace(world, plan=replace(plan, shares=shares)), source, account)


FLAWS: Mapping[str, Callable[[World, Source], Released]] = {
    "noise redrawn per record": redrawn_noise,
    "scale 20% too small": small_scale,
    "reused seed": reused_seed,
    "rows not shuffled": unshuffled,
    "no noise": without_noise,
    "eight times the budget": overspent,
    "a hundred times the budget": partial(overspent, times=100),
}
