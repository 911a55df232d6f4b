"""Summarise, calibrate, mask: a group and its clusters come in, noisy cluster sums on the lattice leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms.cluster_methods import PartitionMethod
from shoal.mechanisms.partition_stage import Group
from shoal.mechanisms.sensitivity import cluster_scales
from shoal.noise import discrete_laplace, round_up_scale
from shoal.noise.choice import categorical_centroids
from shoal.noise.families import NOISES
from shoal.partition import Partition
from shoal.privacy import Accountant, Spend


def sums_of(columns: Sequence[str], *, together: bool = False) -> str:
    """What ε is reserved for and spent on: sums of columns by themselves, or `together` with one share.

    >>> sums_of(["age"]), sums_of(["age", "rent"], together=True)
    ('cluster sums of age', 'cluster sums of age, rent together')
    """
    return f"cluster sums of {', '.join(columns)}{' together' if together else ''}"


def concepts_of(column: str) -> str:
    """The same for a column whose values have no order."""
    return f"cluster concepts of {column}"


def gaps_of(column: str) -> str:
    """The same for whether a value is missing."""
    return f"whether {column} is missing"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """What is known of every cluster, one array per attribute of the group; safe to post-process at will.

    Attributes:
        summaries: noisy sums of positions, or, for a nominal attribute, one concept that stands for the cluster.
    """

    partition: Partition
    summaries: tuple[NDArray[np.int64], ...]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The clusters of a group, with what a claim "given the partition" takes as fixed.

    Attributes:
        scales: noise scale of every cluster, one array per attribute, where it is computed from the records.
    """

    partition: Partition
    scales: tuple[NDArray[np.object_], ...] | None = None


def calibrate(
    group: Group, partition: Partition, shares: Mapping[str, Fraction], method: PartitionMethod
) -> Clusters:
    """Settle the noise of every cluster: by public widths when masking, or here, by the actual records.

    Guarantee:
        Scales that come from here protect the actual records against their neighbours only
        (`idp-given-partition`), as long as they are held fixed and not published.
    """
    changes_of = method.calibration.changes
    if changes_of is None:
        return Clusters(partition)
    steps = [lattice.steps for lattice in group.lattices]
    return Clusters(
        partition,
        tuple(
            cluster_scales(
                [changes_of(x, width, partition) for x, width in zip(group.positions, steps, strict=True)],
                steps,
                [shares[column] for column in group.columns],
                partition,
                floors(group, method),
            )
        ),
    )


def floors(group: Group, method: PartitionMethod) -> list[Fraction]:
    """The least noise scale of each attribute's cluster means, in lattice steps."""
    given = method.floor
    if isinstance(given, tuple):
        by_column = dict(given)
        least = [by_column.get(column, Fraction(0)) for column in group.columns]
    else:
        least = [given or Fraction(0)] * len(group.columns)
    return [floor / lattice.step for floor, lattice in zip(least, group.lattices, strict=True)]


def check_floor(method: PartitionMethod, columns: Sequence[str]) -> None:
    """An error if a floor is given for a column that is not protected."""
    if isinstance(method.floor, tuple):
        for column, _ in method.floor:
            if column not in columns:
                raise OptionError(
                    "floor-names-column-not-protected",
                    column=column,
                    option="floor",
                    hint=closest(column, columns),
                )


def check_noise(group: Group, shares: Mapping[str, Fraction], method: PartitionMethod) -> None:
    """An error if the noise of a group cannot be drawn, whatever its clusters turn out to be."""
    family = NOISES[method.noise]
    for together in [group.ordered] if family.joint else [[number] for number in group.ordered]:
        names = [group.columns[number] for number in together]
        with _naming(names):
            if names:
                family.check(tuple(group.lattices[number].steps for number in together), shares[names[0]])
    if method.calibration.changes is not None:
        for column, lattice, floor in zip(group.columns, group.lattices, floors(group, method), strict=True):
            with _naming([column]):
                # without their extremes three records move their sum by three times the width, more of them by less
                round_up_scale(max(3 * lattice.steps / shares[column], floor * group.n))


@contextmanager
def _naming(columns: Sequence[str]) -> Iterator[None]:
    """Errors about noise name the columns it is for."""
    try:
        yield
    except OptionError as error:
        raise OptionError(
            "of-columns", number_of_columns=len(columns), columns=tuple(columns), reason=error
        ) from None


def mask_group(
    group: Group,
    clusters: Clusters,
    shares: Mapping[str, Fraction],
    account: Accountant,
    method: PartitionMethod,
    touched: int = 1,
) -> Masked:
    """Exact cluster sums plus one draw of noise per cluster and attribute, or per cluster for joint noise.

    A nominal attribute has no sums: one concept per cluster is drawn, the likelier the closer it is to the records.

    Args:
        shares: ε of each attribute in one cluster.
        touched: how many clusters one record can change, each of which the budget pays for.

    Guarantee:
        Laplace noise: attribute j's sums are `shares[j]`-DP with respect to whatever change keeps their L1 distance
        within the attribute's width (see `shoal.mechanisms.sensitivity.cluster_sum_scale`); over the group the
        shares add up.
        Staircase noise: the same, for changes of one cluster only. Box noise: all sums of the group together are
        DP with their common share, for changes of one cluster only (`PartitionMethod.allow_noise`). Scales of
        `calibrate`: the sums of the group together are individually DP with the sum of the shares. Concepts:
        `shares[j]`-DP for the change of one record in one cluster (`shoal.noise.choice`).

    Reference:
        MDAI-2017, Algorithms 1 and 2; PSD-2014, Algorithm 1; thesis, chapters 4 and 6; the iDP paper, section 4.
    """
    family = NOISES[method.noise]
    ordered = group.ordered
    summaries: dict[int, NDArray[np.int64]] = {}
    for together in [ordered] if family.joint else [[number] for number in ordered]:
        sums = _noisy_sums(group, clusters, shares, account, method, together, touched)
        summaries |= dict(zip(together, sums, strict=True))
    for number in range(len(group.columns)):
        tree = group.tree(number)
        if tree is not None:
            column = group.columns[number]
            spend = account.spend(concepts_of(column), shares[column], over="clusters", touched=touched)
            share, source = spend.take()
            summaries[number] = categorical_centroids(
                clusters.partition.labels,
                np.asarray(tree.domain, dtype=np.int64)[group.positions[number]],
                len(clusters.partition),
                tree,
                share,
                source,
                generalise=method.generalise,
            )
    return Masked(clusters.partition, tuple(summaries[number] for number in range(len(group.columns))))


def _noisy_sums(
    group: Group,
    clusters: Clusters,
    shares: Mapping[str, Fraction],
    account: Accountant,
    method: PartitionMethod,
    together: Sequence[int],
    touched: int,
) -> list[NDArray[np.int64]]:
    """Sums of the attributes that get their noise together."""
    if not together:
        return []
    partition = clusters.partition
    sums = method.calibration.sums
    names = [group.columns[number] for number in together]
    steps = tuple(group.lattices[number].steps for number in together)
    scales = None if clusters.scales is None else clusters.scales[together[0]]
    purpose = sums_of(names, together=NOISES[method.noise].joint)
    spend = account.spend(purpose, shares[names[0]], over="clusters", touched=touched)
    draws = sum_noise(names, steps, scales, spend, len(partition), method)
    return [
        sums(group.positions[number], partition) + draws[:, place] for place, number in enumerate(together)
    ]


def sum_noise(
    names: Sequence[str],
    steps: tuple[int, ...],
    scales: NDArray[np.object_] | None,
    spend: Spend,
    clusters: int,
    method: PartitionMethod,
) -> NDArray[np.int64]:
    """One draw for the sum of every cluster and attribute: by the clusters' own scales, or by the public widths.

    Scales of their own come from `calibrate`, with the share that is spent here.
    """
    share, source = spend.take()
    with _naming(names):
        if scales is not None:
            return discrete_laplace(scales, source=source)[:, np.newaxis]
        return NOISES[method.noise].draw(steps, share, clusters, method.optimise or "variance", source)
