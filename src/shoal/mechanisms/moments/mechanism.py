"""Cross-moment microaggregation: noisy moments of each cluster, and the rows drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described, Lattice
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.clusters import (
    attribute_groups,
    cluster_facts,
    labels_in_use,
    outlines,
    rows_by_stratum,
    strata_conditions,
)
from shoal.mechanisms.method import Rebuilt
from shoal.mechanisms.moments import spectra as budgets
from shoal.mechanisms.moments import statistics
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.sampling import (
    ClusterShape,
    ClusterStatistics,
    Possible,
    draw_ranks,
    draw_rows,
    make_possible,
    matched,
)
from shoal.mechanisms.moments.spectra import (
    GroupBudget,
    MomentPlan,
    Spectra,
    all_of,
    check_sum_scales,
    kind_of,
    mask_spectra,
    summary_of,
    symmetric,
)
from shoal.mechanisms.moments.statistics import Centred, MomentSummary, cluster_order
from shoal.mechanisms.partition_stage import Group, check_group, partition_group
from shoal.mechanisms.strata import check_strata
from shoal.noise import NOISES, Source, discrete_laplace
from shoal.numbers import Floats, Integers
from shoal.partition import Partition, check_k
from shoal.privacy import Accountant, Plan, Spend
from shoal.progress import Progress

# The noise is about this many lattice steps wide, so that rounding to the lattice is negligible.
_WIDE = 1 << 20
_COARSEST, _FINEST = 1 << 12, 1 << 36


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """The parts of a group that a claim "given the partition" takes as fixed.

    Attributes:
        spectra: bounds computed from the actual records, for the eigen form.
        exact: the statistics of these records, needed for the bounds; None if other records may be masked.
    """

    partition: Partition
    spectra: Spectra | None = None
    exact: ClusterStatistics | None = None


def fineness(share: Fraction) -> int:
    """Number of lattice steps into which the sensitivity of a statistic is divided, for its ε: a public number.

    >>> fineness(Fraction(1, 4)) == 2**18, fineness(Fraction(1, 10**9)) == 2**12
    (True, True)
    """
    wanted = _WIDE * share
    power = 1 << max((wanted.numerator // wanted.denominator).bit_length() - 1, 0)
    return min(max(power, _COARSEST), _FINEST)


def calibrate(
    group: Group,
    partition: Partition,
    budget: GroupBudget | None,
    method: CrossMoment,
    centred: Centred | None = None,
) -> Fixed:
    """Calibrate the noise of a group: to public widths, or also to gaps of the actual covariances.

    `centred` represents the records of the clusters, if they are not taken from the group.
    """
    if method.form != "eigen" or budget is None:
        return Fixed(partition)
    exact = exact_statistics(group, centred or Centred.of(group.positions, partition), budget.summary)
    return Fixed(partition, Spectra.of(exact, partition.sizes, budget.summary), exact)


def exact_statistics(group: Group, centred: Centred, summary: MomentSummary) -> ClusterStatistics:
    """The exact statistics, rounded once to binary fractions; private."""
    widths = [lattice.steps for lattice in group.lattices]
    # means are not computed from the centred records
    means = np.zeros((centred.sizes.size, len(widths)))
    covariances = coskewnesses = None
    if summary.order >= 1:
        found = statistics.covariance_ratios(centred, widths, summary.covariance_entries).floats()
        covariances = symmetric(found, summary.covariance_entries, summary.attributes)
    if summary.order >= 2:
        coskewnesses = statistics.coskewness_ratios(centred, widths, summary.coskewness_entries).floats()
    return ClusterStatistics(means, covariances, coskewnesses)


def mask(
    group: Group,
    fixed: Fixed,
    budget: GroupBudget | None,
    summary: MomentSummary,
    account: Accountant,
    method: CrossMoment,
    centred: Centred | None = None,
) -> ClusterStatistics:
    """Noisy statistics of every cluster of a group; `centred` as for `calibrate`.

    Guarantee:
        With the clusters held fixed, replacing a record costs at most the group's ε: every statistic is exact,
        rounded to a lattice that does not depend on the records, and masked with discrete noise that also covers the
        rounding. In the eigen form the lattice and the noise do depend on the actual records, and the claim is about
        those and their neighbours. Without a budget nothing is masked and nothing is claimed.

    Reference:
        the cross-moment paper, Algorithms 1 and 2, Theorem 11; docs/proofs/trees.md#moments, sections 6 and 7.
    """
    partition = fixed.partition
    centred = centred or Centred.of(group.positions, partition)
    together = None
    if budget is not None and budget.parts is None:
        # the split among a cluster's statistics depends on its own records: they are one measurement
        together = account.spend(all_of(group.columns), budget.epsilon, over="clusters").take()
    sums = _masked_sums(group, fixed, centred, budget, account, together, method)
    steps = np.array([lattice.steps for lattice in group.lattices], dtype=np.float64)
    means = sums / (partition.sizes[:, np.newaxis] * steps)
    if summary.order == 0:
        return ClusterStatistics(means)
    if budget is None or fixed.spectra is not None:
        exact = fixed.exact or exact_statistics(group, centred, summary)
        if budget is None or fixed.spectra is None:
            return ClusterStatistics(means, exact.covariances, exact.coskewnesses)
        covariances, coskewnesses = mask_spectra(
            group.columns, exact, fixed.spectra, partition.sizes, budget, account, together
        )
        return ClusterStatistics(means, covariances, coskewnesses)
    return _mask_coefficients(means, group, centred, budget, account, method)


def check_noise(group: Group, budget: GroupBudget | None, method: CrossMoment) -> None:
    """Raise if the noise of a group cannot be drawn, for any clusters."""
    if budget is None:
        return
    if budget.parts is None:
        check_sum_scales(
            [lattice.steps for lattice in group.lattices], _largest_cluster(group, method), budget
        )
        return
    family = NOISES[method.noise]
    for lattice, share in zip(group.lattices, budget.means, strict=True):
        family.check((lattice.steps,), share)
    counts = (budget.summary.covariances, budget.summary.coskewnesses)
    for part, count in zip(budget.parts[1:], counts, strict=False):
        family.check((fineness(part / count) + 1,), part / count)


def _largest_cluster(group: Group, method: CrossMoment) -> int:
    return group.n if method.stage.unbounded else min(2 * method.size - 1, group.n)


def _masked_sums(
    group: Group,
    fixed: Fixed,
    centred: Centred,
    budget: GroupBudget | None,
    account: Accountant,
    together: tuple[Fraction, Source] | None,
    method: CrossMoment,
) -> Integers:
    """Noisy sums, from which means follow: noise of scale W/ε on a sum is noise of scale W/(|C|·ε) on the mean."""
    exact = np.stack(centred.totals, axis=1)
    if budget is None:
        return exact
    steps = [lattice.steps for lattice in group.lattices]
    if together is not None:
        assert fixed.spectra is not None
        epsilon, source = together
        return exact + discrete_laplace(
            fixed.spectra.sum_scales(steps, fixed.partition.sizes, epsilon), source=source
        )
    means = kind_of("means", group.columns)
    spends = [
        account.spend(means, share, f"means of {column}", over="clusters")
        for column, share in zip(group.columns, budget.means, strict=True)
    ]
    return exact + _sum_noise(steps, spends, len(fixed.partition), method)


def _sum_noise(steps: Sequence[int], spends: Sequence[Spend], clusters: int, method: CrossMoment) -> Integers:
    """Noise by each column's own ε, in one draw."""
    taken = [spend.take() for spend in spends]
    shares = tuple(share for share, _ in taken)
    _, source = taken[0]
    family = NOISES[method.noise]
    return family.columns(tuple(steps), shares, clusters, method.optimise or "variance", source)


def _mask_coefficients(
    means: Floats,
    group: Group,
    centred: Centred,
    budget: GroupBudget,
    account: Accountant,
    method: CrossMoment,
) -> ClusterStatistics:
    assert budget.parts is not None
    summary, sizes = budget.summary, centred.sizes
    widths = [lattice.steps for lattice in group.lattices]
    spend = _entries(account, kind_of("covariances", group.columns), budget.parts[1], summary.covariances)
    fine = fineness(spend.amount)
    ratios = statistics.covariance_ratios(centred, widths, summary.covariance_entries)
    noisy = _noisy(statistics.covariance_steps(ratios, sizes, fine), fine, spend, method)
    entries = noisy * statistics.covariance_step(sizes, fine)[:, np.newaxis]
    covariances = symmetric(entries, summary.covariance_entries, summary.attributes)
    if summary.order < 2:
        return ClusterStatistics(means, covariances)
    spend = _entries(account, kind_of("coskewnesses", group.columns), budget.parts[2], summary.coskewnesses)
    fine = fineness(spend.amount)
    ratios = statistics.coskewness_ratios(centred, widths, summary.coskewness_entries)
    noisy = _noisy(statistics.coskewness_steps(ratios, sizes, fine), fine, spend, method)
    return ClusterStatistics(
        means, covariances, noisy * statistics.coskewness_step(sizes, fine)[:, np.newaxis]
    )


def _entries(account: Accountant, purpose: str, part: Fraction, entries: int) -> Spend:
    """Each entry of a cluster has the same part of the ε of its kind; one record can change all of them."""
    return account.spend(purpose, part / entries, over="entries of clusters", touched=entries)


def _noisy(steps: Integers, fine: int, spend: Spend, method: CrossMoment) -> Integers:
    """Integers that change by at most `fine` + 1 each with one record, plus noise that each is charged for."""
    family, best = NOISES[method.noise], method.optimise or "variance"
    share, source = spend.take()
    return steps + family.numbers(fine + 1, share, steps.shape, best, source)


def statistics_columns(
    group: Group, partition: Partition, found: ClusterStatistics, summary: MomentSummary
) -> dict[str, NDArray[Any]]:
    """Columns by name, one entry per cluster: the attributes, the size, means, covariances and coskewnesses.

    Rows are sorted by their statistics: the order in which clusters were made would reveal something about the records.
    """
    lattices = group.lattices
    widths = [float(lattice.step) * lattice.steps for lattice in lattices]
    columns: dict[str, NDArray[Any]] = {
        "columns": np.full(len(partition), ", ".join(group.columns), dtype=object),
        "size": partition.sizes,
    }
    for place, (name, lattice) in enumerate(zip(group.columns, lattices, strict=True)):
        columns[f"mean of {name}"] = float(lattice.lo) + found.means[:, place] * widths[place]
    if found.covariances is not None:
        for i, j in summary.covariance_entries:
            what = f"variance of {group.columns[i]}"
            if i != j:
                what = f"covariance of {group.columns[i]} and {group.columns[j]}"
            columns[what] = found.covariances[:, i, j] * (widths[i] * widths[j])
    if found.coskewnesses is not None:
        for place, (a, b, c) in enumerate(summary.coskewness_entries):
            names = [group.columns[number] for number in (a, b, c)]
            columns[f"coskewness of {names[0]}, {names[1]} and {names[2]}"] = found.coskewnesses[:, place] * (
                widths[a] * widths[b] * widths[c]
            )
    order = np.lexsort(found.means.T[::-1])
    return {name: values[order] for name, values in columns.items()}


def joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """The groups' rows one after the other; a statistic that a group does not have is NaN."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.full(part["size"].size, np.nan)) for part in parts])
        for name in names
    }


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Protected:
    """A protected attribute group.

    Attributes:
        rows: the released rows, in input order but matched to no record; in the attributes' own units.
        measured: the same values, matched to the records by the method's rule.
    """

    partition: Partition
    rows: Floats
    measured: Floats
    possible: Possible


def plan(method: CrossMoment, described: Described) -> MomentPlan:
    """Split ε among attribute groups and their statistics."""
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
        `method.case` states which claim holds and why.

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
    """The clusters of every attribute group, and in the eigen form the bounds computed from the actual records."""
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
    """Like `run`, with existing clusters and bounds, perhaps on a neighbouring table."""
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
    """Noisy statistics of every cluster of a group, repaired to be possible for a cluster in the domain.

    Guarantee: see `shoal.mechanisms.moments.mechanism.mask`.
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
    group: Group, partition: Partition, means: Floats, shape: ClusterShape, source: Source
) -> tuple[Floats, int]:
    if len(group.columns) > 1:
        return draw_rows(means, shape, partition.labels, source)
    # cluster by cluster, like an engine that never holds the whole column
    order = cluster_order(partition.labels)
    skewness = None if shape.skewness is None else shape.skewness[:, 0]
    own = rows_source(source, group.columns[0])
    drawn = np.empty((partition.n, 1))
    drawn[order, 0] = draw_ranks(means[:, 0], shape.deviations[:, 0], skewness, partition.sizes, 0, own)
    return drawn, 0


def rows_source(source: Source, column: str) -> Source:
    """The random source of the rows of a column that is drawn separately."""
    return source.child("rows of a column", column.encode())


def own_units(scaled: Floats, lattices: Sequence[Lattice], *, clip: bool) -> Floats:
    """Values from multiples of the width, inside the domain unless `clip` is off."""
    columns = []
    for place, lattice in enumerate(lattices):
        column = lattice.values(scaled[:, place] * lattice.steps)
        columns.append(np.clip(column, float(lattice.lo), float(lattice.hi)) if clip else column)
    return np.stack(columns, axis=1)


def _summary(method: CrossMoment, group: Group) -> MomentSummary:
    return summary_of(method, len(group.columns))


def budget_of(plan: Plan, group: Group) -> GroupBudget | None:
    """The budget of a group; None if nothing is masked."""
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
    """One attribute group after the other, with the ε of its means for partitions that account for the noise."""
    assert isinstance(plan, MomentPlan)
    check_k(method.size, described.n)
    groups = method.resolve_groups(described.columns)
    means: dict[str, Fraction] = {}
    for group in groups:
        budget = None if plan.budgets is None else plan.budgets[group]
        # without a budget there is no noise to take into account
        shares = (Fraction(1),) * len(group) if budget is None else budget.means
        means.update(zip(group, shares, strict=True))
    weighed = Plan(plan.spending, means)
    given, strata = labels_in_use(labels, described), rows_by_stratum(method, described)
    return attribute_groups(groups, described, weighed, given, progress, clipped, strata)
