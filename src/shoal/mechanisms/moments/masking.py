"""Calibrate and mask: records of a group and its clusters come in, noisy statistics of every cluster leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.moments.budget import GroupBudget, all_of, kind_of
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.spectra import Spectra, check_sum_scales, mask_spectra
from shoal.mechanisms.moments.statistics import Summary, coefficients
from shoal.mechanisms.moments.statistics.eigen import symmetric
from shoal.mechanisms.moments.statistics.power_sums import Centred
from shoal.mechanisms.moments.statistics.process import Statistics
from shoal.mechanisms.partition_stage import Group
from shoal.noise import Source, discrete_laplace
from shoal.noise.families import NOISES
from shoal.partition import Partition
from shoal.privacy import Accountant, Spend

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# The noise is about this many lattice steps wide, so that rounding to the lattice adds nothing that one could see.
_WIDE = 1 << 20
_COARSEST, _FINEST = 1 << 12, 1 << 36


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """What a claim "given the partition" takes as fixed about a group.

    Attributes:
        spectra: bounds taken from the actual records, for the eigen form.
        exact: the statistics of these very records, which the bounds needed; None where other records may be masked.
    """

    partition: Partition
    spectra: Spectra | None = None
    exact: Statistics | None = None


def fineness(share: Fraction) -> int:
    """Into how many lattice steps the most that one record can change a statistic is cut, for its ε: a public number.

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
    """Settle what the noise of a group is calibrated to: public widths, or also gaps of the actual covariances.

    `centred` stands for the records of the clusters, where they are known in another way than from the group.
    """
    if method.form != "eigen" or budget is None:
        return Fixed(partition)
    exact = exact_statistics(group, centred or Centred.of(group.positions, partition), budget.summary)
    return Fixed(partition, Spectra.of(exact, partition.sizes, budget.summary), exact)


def exact_statistics(group: Group, centred: Centred, summary: Summary) -> Statistics:
    """The statistics themselves, rounded once to binary fractions; private."""
    widths = [lattice.steps for lattice in group.lattices]
    # means are not asked of the centred records
    means = np.zeros((centred.sizes.size, len(widths)))
    covariances = coskewnesses = None
    if summary.order >= 1:
        found = coefficients.covariance_ratios(centred, widths, summary.covariance_entries).floats()
        covariances = symmetric(found, summary.covariance_entries, summary.attributes)
    if summary.order >= 2:
        coskewnesses = coefficients.coskewness_ratios(centred, widths, summary.coskewness_entries).floats()
    return Statistics(means, covariances, coskewnesses)


def mask(
    group: Group,
    fixed: Fixed,
    budget: GroupBudget | None,
    summary: Summary,
    account: Accountant,
    method: CrossMoment,
    centred: Centred | None = None,
) -> Statistics:
    """Noisy statistics of every cluster of a group; `centred` as for `calibrate`.

    Guarantee:
        With the clusters held fixed, replacing a record costs at most the group's ε: every statistic is exact, rounded
        to a lattice that does not depend on the records, and masked with discrete noise that pays for the rounding too.
        In the eigen form the lattice and the noise do depend on the actual records, and the claim is about those and
        their neighbours. Without a budget nothing is masked and nothing is claimed.

    Reference:
        the cross-moment paper, Algorithms 1 and 2, Theorem 11; docs/proofs/moments.md, sections 6 and 7.
    """
    partition = fixed.partition
    centred = centred or Centred.of(group.positions, partition)
    together = None
    if budget is not None and budget.parts is None:
        # what a cluster's statistics share, its own records settle: they are one measurement
        together = account.spend(all_of(group.columns), budget.epsilon, over="clusters").take()
    sums = _masked_sums(group, fixed, centred, budget, account, together, method)
    steps = np.array([lattice.steps for lattice in group.lattices], dtype=np.float64)
    means = sums / (partition.sizes[:, np.newaxis] * steps)
    if summary.order == 0:
        return Statistics(means)
    if budget is None or fixed.spectra is not None:
        exact = fixed.exact or exact_statistics(group, centred, summary)
        if budget is None or fixed.spectra is None:
            return Statistics(means, exact.covariances, exact.coskewnesses)
        covariances, coskewnesses = mask_spectra(
            group.columns, exact, fixed.spectra, partition.sizes, budget, account, together
        )
        return Statistics(means, covariances, coskewnesses)
    return _mask_coefficients(means, group, centred, budget, account, method)


def check_noise(group: Group, budget: GroupBudget | None, method: CrossMoment) -> None:
    """An error if the noise of a group cannot be drawn, whatever its clusters turn out to be."""
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
) -> Whole:
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


def _sum_noise(steps: Sequence[int], spends: Sequence[Spend], clusters: int, method: CrossMoment) -> Whole:
    """Noise of each column's own ε, in one draw."""
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
) -> Statistics:
    assert budget.parts is not None
    summary, sizes = budget.summary, centred.sizes
    widths = [lattice.steps for lattice in group.lattices]
    spend = _entries(account, kind_of("covariances", group.columns), budget.parts[1], summary.covariances)
    fine = fineness(spend.amount)
    ratios = coefficients.covariance_ratios(centred, widths, summary.covariance_entries)
    noisy = _noisy(coefficients.covariance_steps(ratios, sizes, fine), fine, spend, method)
    entries = noisy * coefficients.covariance_step(sizes, fine)[:, np.newaxis]
    covariances = symmetric(entries, summary.covariance_entries, summary.attributes)
    if summary.order < 2:
        return Statistics(means, covariances)
    spend = _entries(account, kind_of("coskewnesses", group.columns), budget.parts[2], summary.coskewnesses)
    fine = fineness(spend.amount)
    ratios = coefficients.coskewness_ratios(centred, widths, summary.coskewness_entries)
    noisy = _noisy(coefficients.coskewness_steps(ratios, sizes, fine), fine, spend, method)
    return Statistics(means, covariances, noisy * coefficients.coskewness_step(sizes, fine)[:, np.newaxis])


def _entries(account: Accountant, purpose: str, part: Fraction, entries: int) -> Spend:
    """Each entry of a cluster has the same part of the ε of its kind; one record can change all of them."""
    return account.spend(purpose, part / entries, over="entries of clusters", touched=entries)


def _noisy(steps: Whole, fine: int, spend: Spend, method: CrossMoment) -> Whole:
    """Whole numbers that one record moves by at most `fine` + 1 each, with noise that is paid for each."""
    family, best = NOISES[method.noise], method.optimise or "variance"
    share, source = spend.take()
    return steps + family.numbers(fine + 1, share, steps.shape, best, source)
