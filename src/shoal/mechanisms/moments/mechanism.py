"""Noise on moments of clusters: attribute groups come in one at a time, rows drawn from noisy moments leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns.describe import Described
from shoal.columns.kinds import Lattice
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.base import Rebuilt
from shoal.mechanisms.clusters import (
    attribute_groups,
    cluster_facts,
    labels_in_use,
    outlines,
    rows_by_stratum,
    strata_conditions,
)
from shoal.mechanisms.moments import budget as budgets
from shoal.mechanisms.moments.budget import GroupBudget, MomentPlan, summary_of
from shoal.mechanisms.moments.masking import Fixed, calibrate, check_noise, mask
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.statistics import Summary
from shoal.mechanisms.moments.statistics.draw import Shape, draw_ranks, draw_rows
from shoal.mechanisms.moments.statistics.match import matched
from shoal.mechanisms.moments.statistics.power_sums import Centred, cluster_order
from shoal.mechanisms.moments.statistics.process import Possible, make_possible
from shoal.mechanisms.moments.table import joined, statistics_columns
from shoal.mechanisms.partition_stage import Group, check_group, partition_group
from shoal.mechanisms.strata import check_strata
from shoal.noise import Source
from shoal.partition import Partition
from shoal.partition.base import check_k
from shoal.privacy import Accountant
from shoal.privacy.budget import Plan
from shoal.progress import Progress

Floats = NDArray[np.float64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Protected:
    """One attribute group, protected.

    Attributes:
        rows: what is released, in input order but matched to no record; in the attributes' own units.
        measured: the same values, matched to the records as the method says.
    """

    partition: Partition
    rows: Floats
    measured: Floats
    possible: Possible


def plan(method: CrossMoment, described: Described) -> MomentPlan:
    """Share ε over attribute groups and their statistics."""
    found = budgets.plan(method, described)
    return replace(found, conditions=(*found.conditions, *strata_conditions(method, described)))


def run(
    method: CrossMoment,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Partition, summarise, mask, repair and draw rows, group by group.

    Guarantee:
        `method.case` says which claim holds and why.

    Cost:
        Besides the partition: one pass over the records per statistic, an eigendecomposition or a few per cluster.

    Reference:
        the cross-moment paper, Algorithms 1 to 3.
    """

    def fixed(number: int, group: Group) -> Fixed:
        made = partition_group(group, method)
        return calibrate(group, made, budget_of(plan, group), method)

    return _spend(method, described, plan, account, progress, labels, fixed)


def check(method: CrossMoment, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise: k, labels and gaps that do not fit the records, noise that cannot be drawn."""
    check_strata(method, described, method.size)
    for group in outlines(method, described, plan, labels):
        check_group(group, method)
        check_noise(group, budget_of(plan, group), method)


def freeze(
    method: CrossMoment,
    described: Described,
    plan: Plan,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> tuple[Fixed, ...]:
    """The clusters of every attribute group, and in the eigen form the bounds taken from the actual records."""
    return tuple(
        replace(calibrate(group, partition_group(group, method), budget_of(plan, group), method), exact=None)
        for group in _groups(method, described, plan, progress, labels, {})
    )


def run_frozen(
    method: CrossMoment,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    frozen: tuple[Fixed, ...],
) -> Rebuilt:
    """Like `run`, with clusters and bounds made before, perhaps on a neighbouring table."""
    return _spend(method, described, plan, account, progress, None, lambda number, group: frozen[number])


def _spend(
    method: CrossMoment,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None,
    fixed_for: Callable[[int, Group], Fixed],
) -> Rebuilt:
    values: dict[str, Floats] = {}
    measured: dict[str, Floats] = {}
    partitions: list[Partition] = []
    statistics: list[dict[str, Any]] = []
    clipped: dict[str, int] = {}
    repairs: dict[str, int] = {}
    for number, group in enumerate(_groups(method, described, plan, progress, labels, clipped)):
        found = _protect(group, fixed_for(number, group), budget_of(plan, group), account, method)
        partitions.append(found.partition)
        for place, column in enumerate(group.columns):
            values[column], measured[column] = found.rows[:, place], found.measured[:, place]
        statistics.append(
            statistics_columns(group, found.partition, found.possible.statistics, _summary(method, group))
        )
        for what, count in found.possible.repairs.items():
            repairs[what] = repairs.get(what, 0) + count
        progress("protecting", len(values), len(described.columns))
    return Rebuilt(
        values={column: values[column] for column in described.columns},
        partitions=partitions,
        aligned=True,
        internal={
            "values_clipped": clipped,
            "clusters": [cluster_facts(made) for made in partitions],
            "repairs": repairs,
        },
        measured={column: measured[column] for column in described.columns},
        statistics=joined(statistics),
    )


def _protect(
    group: Group, fixed: Fixed, budget: GroupBudget | None, account: Accountant, method: CrossMoment
) -> _Protected:
    partition = fixed.partition
    possible = masked(group, fixed, budget, account, method)
    means = possible.statistics.means
    if possible.shape is None:
        rows = own_units(means, group.lattices, clip=method.clip)[partition.labels]
        return _Protected(partition, rows, rows, possible)
    source = account.free("rows from noisy moments")
    drawn, adjusted = _drawn(group, partition, means, possible.shape, source)
    if possible.shape.skewness is not None and possible.shape.correlation is not None:
        more = {"skewness and correlations that do not fit together": adjusted}
        possible = replace(possible, repairs={**possible.repairs, **more})
    rows = own_units(drawn, group.lattices, clip=method.clip)
    measured = rows if method.match == "none" else matched(rows, group.values(), partition, method.match)
    return _Protected(partition, rows, measured, possible)


def masked(
    group: Group,
    fixed: Fixed,
    budget: GroupBudget | None,
    account: Accountant,
    method: CrossMoment,
    centred: Centred | None = None,
) -> Possible:
    """Noisy statistics of every cluster of a group, such as a cluster in the domain can have.

    Guarantee: see `shoal.mechanisms.moments.masking.mask`.
    """
    sizes, summary = fixed.partition.sizes, _summary(method, group)
    if int(sizes.min()) < summary.smallest:
        raise OptionError(
            "cluster-records-moments-order-need-least",
            sizes=int(sizes.min()),
            order=summary.order,
            smallest=summary.smallest,
        )
    noisy = mask(group, fixed, budget, summary, account, method, centred)
    return make_possible(noisy, sizes, summary, clip=method.clip)


def _drawn(
    group: Group, partition: Partition, means: Floats, shape: Shape, source: Source
) -> tuple[Floats, int]:
    if len(group.columns) > 1:
        return draw_rows(means, shape, partition.labels, source)
    # cluster by cluster, as an engine draws a column that it never holds as a whole
    order = cluster_order(partition.labels)
    skewness = None if shape.skewness is None else shape.skewness[:, 0]
    own = rows_source(source, group.columns[0])
    drawn = np.empty((partition.n, 1))
    drawn[order, 0] = draw_ranks(means[:, 0], shape.deviations[:, 0], skewness, partition.sizes, 0, own)
    return drawn, 0


def rows_source(source: Source, column: str) -> Source:
    """Where the rows of a column that is drawn by itself come from."""
    return source.child("rows of a column", column.encode())


def own_units(scaled: Floats, lattices: Sequence[Lattice], *, clip: bool) -> Floats:
    """Values from multiples of the width, inside the domain unless `clip` is off."""
    columns = []
    for place, lattice in enumerate(lattices):
        column = lattice.values(scaled[:, place] * lattice.steps)
        columns.append(np.clip(column, float(lattice.lo), float(lattice.hi)) if clip else column)
    return np.stack(columns, axis=1)


def _summary(method: CrossMoment, group: Group) -> Summary:
    return summary_of(method, len(group.columns))


def budget_of(plan: Plan, group: Group) -> GroupBudget | None:
    """What a group may spend; None where nothing is masked."""
    assert isinstance(plan, MomentPlan)
    return None if plan.budgets is None else plan.budgets[group.columns]


def _groups(
    method: CrossMoment,
    described: Described,
    plan: Plan,
    progress: Progress,
    labels: ArrayLike | None,
    clipped: dict[str, int],
) -> Iterator[Group]:
    """One attribute group after the other, with the ε of its means for partitions that weigh the noise to come."""
    assert isinstance(plan, MomentPlan)
    check_k(method.size, described.n)
    groups = method.resolve_groups(described.columns)
    means: dict[str, Fraction] = {}
    for group in groups:
        budget = None if plan.budgets is None else plan.budgets[group]
        # without noise there is none to weigh
        shares = (Fraction(1),) * len(group) if budget is None else budget.means
        means.update(zip(group, shares, strict=True))
    weighed = Plan(plan.spending, means)
    given, strata = labels_in_use(labels, described), rows_by_stratum(method, described)
    return attribute_groups(groups, described, weighed, given, progress, clipped, strata)
