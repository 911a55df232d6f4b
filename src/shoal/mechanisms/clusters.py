"""Noisy cluster means: sums of each cluster, calibrated noise, and values reconstructed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described, Lattice
from shoal.display import internal
from shoal.errors import OptionError, closest
from shoal.mechanisms.cluster_methods import PartitionMethod
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.partition_stage import Group, check_group, partition_group
from shoal.mechanisms.sensitivity import cluster_scales
from shoal.mechanisms.strata import check_strata, strata_of, strata_terms
from shoal.noise import (
    NOISES,
    categorical_centroids,
    check_response,
    discrete_laplace,
    randomised_response,
    reversal_probability,
    round_up_scale,
)
from shoal.partition import Partition, check_k
from shoal.privacy import Accountant, Plan, Spend, split_budget
from shoal.progress import Progress
from shoal.text import Message


def sums_of(columns: Sequence[str], *, together: bool = False) -> str:
    """The purpose for which ε is reserved: sums of each column, or of several columns `together` with one share.

    >>> sums_of(["age"]), sums_of(["age", "rent"], together=True)
    ('cluster sums of age', 'cluster sums of age, rent together')
    """
    return f"cluster sums of {', '.join(columns)}{' together' if together else ''}"


def concepts_of(column: str) -> str:
    """The same purpose for a column whose values are unordered."""
    return f"cluster concepts of {column}"


def gaps_of(column: str) -> str:
    """The same purpose for whether a value is missing."""
    return f"whether {column} is missing"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """The masked statistics of every cluster, one array per attribute of the group; safe to post-process.

    Attributes:
        summaries: noisy sums of positions, or, for a nominal attribute, one concept that represents the cluster.
    """

    partition: Partition
    summaries: tuple[NDArray[np.int64], ...]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The clusters of a group, with everything a claim "given the partition" takes as fixed.

    Attributes:
        scales: noise scale of every cluster, one array per attribute, if computed from the records.
    """

    partition: Partition
    scales: tuple[NDArray[np.object_], ...] | None = None


def calibrate(
    group: Group, partition: Partition, shares: Mapping[str, Fraction], method: PartitionMethod
) -> Clusters:
    """Determine the noise of every cluster from the actual records, unless public widths determine it when masking.

    Guarantee:
        Scales computed here protect the actual records against their neighbours only (`idp-given-partition`),
        as long as they are held fixed and not published.
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
    """The minimum noise scale of each attribute's cluster means, in lattice steps."""
    given = method.floor
    if isinstance(given, tuple):
        by_column = dict(given)
        least = [by_column.get(column, Fraction(0)) for column in group.columns]
    else:
        least = [given or Fraction(0)] * len(group.columns)
    return [floor / lattice.step for floor, lattice in zip(least, group.lattices, strict=True)]


def check_floor(method: PartitionMethod, columns: Sequence[str]) -> None:
    """Raise if a floor is given for a column that is not protected."""
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
    """Raise if the noise of a group cannot be drawn, for any clusters."""
    family = NOISES[method.noise]
    for together in [group.ordered] if family.joint else [[number] for number in group.ordered]:
        names = [group.columns[number] for number in together]
        with _naming(names):
            if names:
                family.check(tuple(group.lattices[number].steps for number in together), shares[names[0]])
    if method.calibration.changes is not None:
        for column, lattice, floor in zip(group.columns, group.lattices, floors(group, method), strict=True):
            with _naming([column]):
                # without extremes, three records change their sum by up to three times the width, more records by less
                round_up_scale(max(3 * lattice.steps / shares[column], floor * group.n))


@contextmanager
def _naming(columns: Sequence[str]) -> Iterator[None]:
    """Errors about noise name the affected columns."""
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

    A nominal attribute has no sums: one concept per cluster is drawn, more likely the closer it is to the records.

    Args:
        shares: ε of each attribute in one cluster.
        touched: number of clusters one record can change, each of which the budget covers.

    Guarantee:
        Laplace noise: attribute j's sums are `shares[j]`-DP with respect to any change that keeps their L1
        distance within the attribute's width (see `shoal.mechanisms.sensitivity.cluster_sum_scale`); over the group
        the shares add up.
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
    """Sums of the attributes that get joint noise."""
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
    """One draw for the sum of every cluster and attribute, by the clusters' own scales or by the public widths.

    Clusters' own scales come from `calibrate`, with the share that is spent here.
    """
    share, source = spend.take()
    with _naming(names):
        if scales is not None:
            return discrete_laplace(scales, source=source)[:, np.newaxis]
        return NOISES[method.noise].draw(steps, share, clusters, method.optimise or "variance", source)


def centroids(
    sums: NDArray[np.int64], sizes: NDArray[np.int64], lattice: Lattice, *, clip: bool
) -> NDArray[np.float64]:
    """Cluster means in the attribute's own units, inside the public domain unless `clip` is off."""
    means = lattice.values(sums / sizes)
    return np.clip(means, float(lattice.lo), float(lattice.hi)) if clip else means


# part of a column's ε spent on whether its value is missing
_FLAG_SHARE = Fraction(1, 2)
_TOGETHER = Message("grouped-share-epsilon")


def plan(method: PartitionMethod, described: Described) -> Plan:
    """Split ε among the attributes by their public widths."""
    found = _shared_out(method, described)
    return replace(found, conditions=(*found.conditions, *strata_conditions(method, described)))


def strata_conditions(method: PartitionMethod, described: Described) -> tuple[Message, ...]:
    """Statement messages about strata.

    Raises:
        OptionError: the claim is about the original records, and does not take the strata as known.
    """
    if not method.strata:
        return ()
    model = method.model(len(described.columns), len(described.nominal))
    if model in ("dp", "approximate-dp"):
        raise OptionError("strata-cannot-used-where-claim-here", option="strata", found=model)
    return (*strata_terms(method), Message("strata-known"))


def _shared_out(method: PartitionMethod, described: Described) -> Plan:
    names = described.columns
    check_floor(method, names)
    widths = [None if name in described.nominal else described.lattices[name].width for name in names]
    split = method.split if isinstance(method.split, str) else dict(method.split)
    shares = dict(zip(names, split_budget(method.budget, names, widths, split), strict=True))
    what = {name: concepts_of(name) if name in described.nominal else sums_of([name]) for name in names}
    if NOISES[method.noise].joint:
        if described.nominal:
            raise OptionError(
                "noise-columns-order-none", option="noise", noise=method.noise, nominal=described.nominal[0]
            )
        return _joint_plan(method.resolve_groups(names), shares)
    if described.flagged:
        return _with_flags(shares, what, described.flagged)
    spending = {what[name]: share for name, share in shares.items()}
    groups = method.resolve_groups(names)
    if method.calibration.changes is None or max(map(len, groups)) == 1:
        return Plan(spending, shares)
    # scales follow the record with the largest effect on all sums: one that changes a single sum can cost as much
    return Plan(spending, shares, (_TOGETHER,), _totals(groups, shares))


def _with_flags(shares: dict[str, Fraction], what: dict[str, str], flagged: tuple[str, ...]) -> Plan:
    """Spend half of the share of a column with a separate "missing" state on whether a value is missing."""
    flags = {name: shares[name] * _FLAG_SHARE for name in flagged}
    values = {name: share - flags.get(name, Fraction(0)) for name, share in shares.items()}
    spending: dict[str, Fraction] = {}
    for name, share in values.items():
        if name in flags:
            spending[gaps_of(name)] = flags[name]
        spending[what[name]] = share
    conditions = tuple(
        Message.of("gaps-by-randomised-response", column=name, reversed=float(reversal_probability(share)))
        for name, share in flags.items()
    )
    return Plan(spending, values, conditions, shares, flags)


def _joint_plan(groups: tuple[tuple[str, ...], ...], shares: dict[str, Fraction]) -> Plan:
    """All sums of a group share the group's ε, so each attribute separately is protected by that ε."""
    totals = _totals(groups, shares)
    spending = {sums_of(group, together=True): totals[group[0]] for group in groups}
    return Plan(spending, totals, (_TOGETHER,))


def _totals(groups: tuple[tuple[str, ...], ...], shares: dict[str, Fraction]) -> dict[str, Fraction]:
    """The ε of each attribute's group, by attribute."""
    return {
        name: sum((shares[other] for other in group), Fraction(0))
        for name in shares
        for group in groups
        if name in group
    }


def run(
    method: PartitionMethod,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
    touched: int = 1,
) -> Rebuilt:
    """Partition, sum, add noise and divide, group by group.

    Args:
        touched: number of clusters one record can change, if the plan's shares are those of one cluster.

    Guarantee:
        `method.case` states which claim holds and why.
    """
    return _spend(
        method,
        described,
        plan,
        account,
        progress,
        labels,
        lambda number, group: _clusters(group, method, plan),
        touched,
    )


def check(method: PartitionMethod, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise: k, labels and gaps that do not fit the records, noise that cannot be drawn."""
    check_strata(method, described, method.size)
    for group in outlines(method, described, plan, labels):
        check_group(group, method)
        check_noise(group, plan.shares, method)
    for column, share in plan.flags.items():
        check_response(share, column)


def outlines(
    method: PartitionMethod, described: Described, plan: Plan, labels: ArrayLike | None
) -> Iterator[Group]:
    """The attribute groups without their values: enough to check whether they can be clustered and masked."""
    blank = np.broadcast_to(np.int64(0), (described.n,))
    given, strata = labels_in_use(labels, described), rows_by_stratum(method, described)
    for columns in method.resolve_groups(described.columns):
        yield Group(
            columns,
            tuple(described.lattices[column] for column in columns),
            (blank,) * len(columns),
            given,
            trees=tuple(described.tree(column) for column in columns),
            gaps={column: described.gaps[column] for column in columns if column in described.gaps},
            strata=strata,
        )


def freeze(
    method: PartitionMethod,
    described: Described,
    plan: Plan,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> tuple[Clusters, ...]:
    """The clusters of every attribute group and their own noise scales, held fixed while records change."""
    check_k(method.size, described.n)
    given = labels_in_use(labels, described)
    groups = method.resolve_groups(described.columns)
    return tuple(
        _clusters(group, method, plan)
        for group in attribute_groups(
            groups, described, plan, given, progress, clipped={}, strata=rows_by_stratum(method, described)
        )
    )


def run_frozen(
    method: PartitionMethod,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    frozen: tuple[Clusters, ...],
    touched: int = 1,
) -> Rebuilt:
    """Like `run`, with existing clusters, perhaps on a neighbouring table."""
    return _spend(
        method, described, plan, account, progress, None, lambda number, group: frozen[number], touched
    )


def _spend(
    method: PartitionMethod,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None,
    clusters_of: Callable[[int, Group], Clusters],
    touched: int,
) -> Rebuilt:
    check_k(method.size, described.n)
    groups = method.resolve_groups(described.columns)
    given = labels_in_use(labels, described)
    values: dict[str, NDArray[np.float64]] = {}
    partitions: list[Partition] = []
    clipped: dict[str, int] = {}
    exact: dict[str, int] = {}
    strata = rows_by_stratum(method, described)
    for place, group in enumerate(
        attribute_groups(groups, described, plan, given, progress, clipped, strata)
    ):
        clusters = clusters_of(place, group)
        made = clusters.partition
        masked = mask_group(group, clusters, plan.shares, account, method, touched)
        for number, (column, found) in enumerate(zip(group.columns, masked.summaries, strict=True)):
            by_cluster = found.astype(np.float64)
            if group.tree(number) is None:
                by_cluster = centroids(found, made.sizes, group.lattices[number], clip=method.clip)
            values[column] = by_cluster[made.labels]
        partitions.append(made)
        exact.update(_released_exactly(group, clusters))
        progress("protecting", len(values), len(described.columns))
    for column, share in plan.flags.items():
        spend = account.spend(gaps_of(column), share, over="rows")
        missing = randomised_response(described.absent(column), *spend.take())
        values[column] = np.where(missing, np.nan, values[column])
    internal: dict[str, object] = {
        "values_clipped": clipped,
        "clusters": [cluster_facts(made) for made in partitions],
    }
    if exact:
        internal["clusters_without_noise"] = exact
    return Rebuilt(
        values={column: values[column] for column in described.columns},
        partitions=partitions,
        aligned=method.link or len(described.columns) == 1,
        internal=internal,
    )


def labels_in_use(labels: ArrayLike | None, described: Described) -> NDArray[np.int64] | None:
    """The caller's cluster labels of the rows that take part."""
    if labels is None:
        return None
    given = np.asarray(labels)
    if given.ndim != 1 or given.size != described.table.n:
        raise OptionError(
            "labels-have-entry-per-row-shape", option="labels", n=described.table.n, shape=given.shape
        )
    return given if described.kept is None else given[described.kept]


def attribute_groups(
    groups: tuple[tuple[str, ...], ...],
    described: Described,
    plan: Plan,
    labels: NDArray[np.int64] | None,
    progress: Progress,
    clipped: dict[str, int],
    strata: tuple[NDArray[np.int64], ...] = (),
) -> Iterator[Group]:
    """One attribute group after the other, so that only one at a time is held as integers."""
    for columns in groups:
        positions = []
        for column in columns:
            found, clipped[column] = described.positions(column)
            positions.append(found)
        yield Group(
            columns,
            tuple(described.lattices[column] for column in columns),
            tuple(positions),
            labels,
            lambda done, total: progress("grouping records", done, total),
            tuple(plan.shares[column] for column in columns),
            lambda what: progress(what, 0, 1),
            tuple(described.tree(column) for column in columns),
            {column: described.gaps[column] for column in columns if column in described.gaps},
            strata,
        )


def rows_by_stratum(method: PartitionMethod, described: Described) -> tuple[NDArray[np.int64], ...]:
    """The rows of each stratum; empty if no column divides the table."""
    return tuple(stratum.rows for stratum in strata_of(method, described)) if method.strata else ()


def _clusters(group: Group, method: PartitionMethod, plan: Plan) -> Clusters:
    return calibrate(group, partition_group(group, method), plan.shares, method)


def _released_exactly(group: Group, clusters: Clusters) -> dict[str, int]:
    """Number of clusters without noise, a private fact; empty if the public width determines the scale."""
    if clusters.scales is None:
        return {}
    return {
        column: int(np.count_nonzero(scales == 0))
        for column, scales in zip(group.columns, clusters.scales, strict=True)
    }


def cluster_facts(made: Partition) -> dict[str, object]:
    """Facts about a partition for the internal report."""
    return {
        "columns": list(made.columns),
        "count": len(made),
        "smallest": int(made.sizes.min()),
        "largest": int(made.sizes.max()),
    }
