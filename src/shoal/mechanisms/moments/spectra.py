"""Noisy spectra: eigenvalues and eigenvectors of cluster moments, and the budget of each form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.sampling import ClusterStatistics
from shoal.mechanisms.moments.statistics import (
    Index,
    MomentSummary,
    coskewness_factors,
    eigenvalues_change,
    eigenvector_changes,
    spectral_change,
)
from shoal.noise import (
    LARGEST_NUMERATOR,
    NOISES,
    SCALE_DENOMINATOR,
    Source,
    discrete_laplace,
    round_up_scale,
)
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Plan, Spend, split_budget
from shoal.text import Message

# Below this ratio of eigenvalues the square of a matrix has lost half of the digits.
_FLAT = 1e-8


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenvalues in descending order and their eigenvectors, of one matrix per cluster.

    Attributes:
        values: shape (clusters, d).
        vectors: shape (clusters, d, d), an eigenvector in each column.
    """

    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, matrices: Floats) -> Spectrum:
        found = np.linalg.eigh(matrices)
        return cls(found.eigenvalues[:, ::-1], found.eigenvectors[:, :, ::-1])

    def randomly_signed(self, source: Source) -> Spectrum:
        """Every eigenvector times an independent uniform sign, required for its bound to hold."""
        shape = self.values.shape
        signs = 1.0 - 2.0 * source.digits(1, self.values.size).reshape(shape).astype(np.float64)
        return Spectrum(self.values, self.vectors * signs[:, np.newaxis, :])

    def matrices(self) -> Floats:
        """The symmetric matrices with the nearest orthogonal eigenvectors to these, and these eigenvalues."""
        orthogonal = _nearest_orthogonal(self.vectors)
        scaled = orthogonal * self.values[:, np.newaxis, :]
        return np.asarray(scaled @ orthogonal.transpose(0, 2, 1))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class SpectralBounds:
    """Maximum change of a spectrum by one record, relative to that of the actual matrices: private figures.

    Attributes:
        value: each single eigenvalue, shape (clusters,).
        values: all eigenvalues together, in L1 norm, shape (clusters,).
        vectors: each eigenvector in L1 norm, up to sign, shape (clusters, d).
    """

    value: Floats
    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, spectrum: Spectrum, entry_change: Floats) -> SpectralBounds:
        """Bounds at these matrices, whose entries change by at most `entry_change` with one record."""
        number = spectrum.values.shape[1]
        return cls(
            spectral_change(number, entry_change),
            eigenvalues_change(number, entry_change),
            eigenvector_changes(spectrum.values, entry_change),
        )

    @property
    def total(self) -> Floats:
        """The bound of everything together, in L1 norm."""
        return np.asarray(self.values + self.vectors.sum(axis=1))


def _nearest_orthogonal(vectors: Floats) -> Floats:
    """The polar factor V·(VᵀV)^(-1/2); by singular values where VᵀV is too close to singular for that."""
    found = np.linalg.eigh(vectors.transpose(0, 2, 1) @ vectors)
    values, axes = found.eigenvalues, found.eigenvectors
    flat = values[:, 0] <= _FLAT * values[:, -1]
    roots = np.sqrt(np.where(flat[:, np.newaxis], 1.0, values))
    nearest = vectors @ ((axes / roots[:, np.newaxis, :]) @ axes.transpose(0, 2, 1))
    if flat.any():
        left, _, right = np.linalg.svd(vectors[flat])
        nearest[flat] = left @ right
    return np.asarray(nearest)


def symmetric(entries: Floats, indices: tuple[Index, ...], attributes: int) -> Floats:
    """Symmetric matrices, shape (clusters, d, d), from their upper triangles."""
    result = np.zeros((entries.shape[0], attributes, attributes))
    for place, (i, j) in enumerate(indices):
        result[:, i, j] = result[:, j, i] = entries[:, place]
    return result


def slices(entries: Floats, indices: tuple[Index, ...], attributes: int) -> Floats:
    """The d symmetric slices of a full coskewness, shape (clusters, d, d, d)."""
    result = np.zeros((entries.shape[0], *[attributes] * 3))
    for place, index in enumerate(indices):
        for a, b, c in permutations(index):
            result[:, a, b, c] = entries[:, place]
    return result


def entries_of_slices(arrays: Floats, indices: tuple[Index, ...]) -> Floats:
    """The entries of a coskewness from slices made inconsistent by noise: their mean over all orders."""
    found = [np.mean([arrays[:, a, b, c] for a, b, c in permutations(index)], axis=0) for index in indices]
    return np.stack(found, axis=1)


KINDS = ("means", "covariances", "coskewnesses")


def kind_of(kind: str, group: Sequence[str]) -> str:
    """The purpose for which ε is reserved: one of `KINDS`, of an attribute group."""
    return f"{kind} of the clusters of {', '.join(group)}"


def all_of(group: Sequence[str]) -> str:
    """The purpose of all statistics together, if they share ε in proportions determined by the records."""
    return f"all statistics of the clusters of {', '.join(group)}, together"


@dataclass(frozen=True, slots=True)
class GroupBudget:
    """The budget of one attribute group.

    Attributes:
        parts: ε of the means, of the covariance part and of the coskewness part; None if all statistics of a
            cluster share `epsilon` in proportions determined by its own records (the eigen form masked jointly).
        means: ε of each attribute's means; an estimate for the eigen form masked jointly, where it is undefined.
    """

    summary: MomentSummary
    epsilon: Fraction
    parts: tuple[Fraction, ...] | None
    means: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class MomentPlan(Plan):
    """A plan with the shares of every statistic.

    Attributes:
        budgets: by attribute group; empty if nothing is masked.
    """

    budgets: Mapping[tuple[str, ...], GroupBudget] | None = None


def summary_of(method: CrossMoment, attributes: int) -> MomentSummary:
    """The statistics that a method keeps for this many attributes."""
    return MomentSummary(attributes, method.moments, method.covariance, method.coskewness, method.form)


def plan(method: CrossMoment, described: Described) -> MomentPlan:
    """Split ε among attribute groups, and in each group among its statistics.

    Masked jointly (Algorithm 1), every statistic of a group has the same share, because all of them have the same
    sensitivity once attributes are divided by their widths. Masked separately (Algorithm 2), the kinds of statistics
    have the shares given by `weights`. Attribute groups compose (Algorithm 3).

    Reference:
        the cross-moment paper, section 4.3.
    """
    names = described.columns
    groups = method.resolve_groups(names)
    for group in groups:
        summary_of(method, len(group))
    if method.sensitivity == "none":
        return MomentPlan({}, {})
    if NOISES[method.noise].joint:
        raise OptionError(
            "noise-cluster-sums-method-keeps-more",
            option="noise",
            noise=method.noise,
            method=method.name,
            others=tuple(name for name, family in NOISES.items() if not family.joint),
        )
    widths = [described.lattices[name].width for name in names]
    split = method.split if isinstance(method.split, str) else dict(method.split)
    shares = dict(zip(names, split_budget(method.budget, names, widths, split), strict=True))
    budgets = {group: _group_budget(method, group, shares) for group in groups}
    spending: dict[str, Fraction] = {}
    for group, budget in budgets.items():
        if budget.parts is None:
            spending[all_of(group)] = budget.epsilon
            continue
        for kind, part in zip(KINDS, budget.parts, strict=False):
            spending[kind_of(kind, group)] = part
    if method.moments == 0:
        return MomentPlan(spending, shares, budgets=budgets)
    # the statistics of a group are combined in its rows, so no attribute has less than the ε of its group
    stated = {name: budget.epsilon for group, budget in budgets.items() for name in group}
    together = (Message("grouped-share-epsilon"),) if max(len(group) for group in groups) > 1 else ()
    return MomentPlan(spending, stated, together, budgets=budgets)


def _group_budget(method: CrossMoment, group: tuple[str, ...], shares: Mapping[str, Fraction]) -> GroupBudget:
    summary = summary_of(method, len(group))
    epsilon = sum((shares[name] for name in group), Fraction(0))
    weights = _weights(method, summary)
    if weights is None:
        return GroupBudget(summary, epsilon, None, (epsilon / len(group),) * len(group))
    total = sum(weights)
    parts = tuple(epsilon * weight / total for weight in weights)
    if summary.order == 0:
        return GroupBudget(summary, epsilon, parts, tuple(shares[name] for name in group))
    return GroupBudget(summary, epsilon, parts, (parts[0] / len(group),) * len(group))


def _weights(method: CrossMoment, summary: MomentSummary) -> tuple[Fraction, ...] | None:
    if method.weights is None or method.moments == 0:
        if method.form == "eigen":
            return None
        counts = (summary.means, summary.covariances, summary.coskewnesses)
        return tuple(Fraction(count) for count in counts[: summary.order + 1])
    if len(method.weights) != summary.order + 1:
        raise OptionError(
            "weights-have-entry-each",
            option="weights",
            kinds=KINDS[: summary.order + 1],
            found=len(method.weights),
        )
    return method.weights


# Noise may be this many lattice steps wide, half of what the sampler supports.
_WIDEST = LARGEST_NUMERATOR >> 1
# Spectra are floating-point numbers: a finer lattice would not increase their precision.
_FINEST = Fraction(1, 1 << 50)
# Bounds are sums of floating-point numbers; this margin is far above their rounding errors.
_SLACK = 1 + 2.0**-20


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Spectra:
    """Sensitivity of each cluster's spectra to one record of the actual table, and the resulting noise.

    Attributes:
        covariance: bounds of the covariance matrix.
        coskewness: bounds of each slice of a full coskewness; empty if the coskewness is kept as coefficients.
        total: the change by one record of everything, means included, in L1 norm.
        components: number of values of a cluster besides its means.
    """

    covariance: SpectralBounds
    coskewness: tuple[SpectralBounds, ...]
    total: Floats
    components: int

    @classmethod
    def of(cls, exact: ClusterStatistics, sizes: Integers, summary: MomentSummary) -> Spectra:
        assert exact.covariances is not None
        covariance = SpectralBounds.of(Spectrum.of(exact.covariances), 1.0 / sizes)
        total = summary.attributes / sizes + covariance.total
        sliced: tuple[SpectralBounds, ...] = ()
        if exact.coskewnesses is not None:
            change = coskewness_factors(sizes) / sizes
            if summary.coskewness == "full":
                sliced = tuple(
                    SpectralBounds.of(Spectrum.of(one), change)
                    for one in _slices(exact.coskewnesses, summary)
                )
                total = total + np.sum([one.total for one in sliced], axis=0)
            else:
                total = total + summary.coskewnesses * change
        return cls(covariance, sliced, total * _SLACK, components_of(summary))

    @property
    def most(self) -> int:
        """Public upper bound of `total`. A component changes by at most √2, and a mean by 1/2."""
        return _most(self.components)

    def sum_scales(self, widths: Sequence[int], sizes: Integers, epsilon: Fraction) -> NDArray[Any]:
        """Noise scales of the sums of attributes of so many lattice steps, masked jointly with the spectra.

        A mean changes by 1/|C| and has noise of scale total/ε, increased by the cost of rounding the spectra;
        `epsilon` is that of all statistics of the group.

        Returns:
            `round_up_scale` of every exact scale, one row per cluster; int64 integers if all are integers.
        """
        rounding = self.components * lattice_step(self.most, epsilon)
        exact = [
            (Fraction(total) + rounding) * size / epsilon
            for total, size in zip(self.total.tolist(), sizes.tolist(), strict=True)
        ]
        above, under = (
            np.array([getattr(one, part) for one in exact], dtype=object)[:, np.newaxis]
            for part in ("numerator", "denominator")
        )
        # fractions are slow, and beyond this size the next integer is used anyway
        scales: NDArray[Any] = -(-above * np.array(widths, dtype=object) // under)
        if scales.min() > SCALE_DENOMINATOR and scales.max() <= LARGEST_NUMERATOR:
            return scales.astype(np.int64)
        scales[...] = [[round_up_scale(one * width) for width in widths] for one in exact]
        return scales


def components_of(summary: MomentSummary) -> int:
    """Number of values of a cluster besides its means: a matrix has d eigenvalues and d eigenvectors of d numbers."""
    one_matrix = summary.attributes * (summary.attributes + 1)
    if summary.order < 2:
        return one_matrix
    full = summary.coskewness == "full"
    return one_matrix + (one_matrix * summary.attributes if full else summary.coskewnesses)


def _most(components: int) -> int:
    return 3 * components


def check_sum_scales(widths: Sequence[int], largest: int, budget: GroupBudget) -> None:
    """Raise if the sums of a cluster of up to `largest` records could need noise that cannot be drawn."""
    components = components_of(budget.summary)
    most = _most(components)
    rounding = components * lattice_step(most, budget.epsilon)
    for width in widths:
        round_up_scale((most + rounding) * largest * width / budget.epsilon)


def mask_spectra(
    columns: Sequence[str],
    exact: ClusterStatistics,
    spectra: Spectra,
    sizes: Integers,
    budget: GroupBudget,
    account: Accountant,
    together: tuple[Fraction, Source] | None,
) -> tuple[Floats, Floats | None]:
    """Covariance matrices, and coskewness entries if any, reassembled from noisy spectra.

    Args:
        together: the charge of all statistics of the group, if they are masked jointly.

    Guarantee:
        `shoal.mechanisms.moments.mechanism.mask`. Each eigenvector has a uniform sign, so that the computed
        sign does not matter.
    """
    assert exact.covariances is not None
    summary = budget.summary
    signs = account.free("signs of eigenvectors")
    spectrum = Spectrum.of(exact.covariances).randomly_signed(signs)
    sliced = (
        [Spectrum.of(one).randomly_signed(signs) for one in _slices(exact.coskewnesses, summary)]
        if spectra.coskewness and exact.coskewnesses is not None
        else []
    )
    plain = None if sliced else exact.coskewnesses
    if together is not None:
        noisy, noisy_slices, coskewnesses = _mask_together(spectrum, sliced, plain, spectra, *together)
    else:
        assert budget.parts is not None
        halves = _Halves(account, kind_of("covariances", columns), budget.parts[1])
        noisy = _mask_spectrum(spectrum, spectra.covariance, halves)
        coskewnesses, noisy_slices = None, []
        purpose = kind_of("coskewnesses", columns)
        if sliced:
            share = budget.parts[2] / len(sliced)
            noisy_slices = [
                _mask_spectrum(one, bounds, _Halves(account, purpose, share, f", slice of {column}"))
                for one, bounds, column in zip(sliced, spectra.coskewness, columns, strict=True)
            ]
        elif plain is not None:
            change = summary.coskewnesses * coskewness_factors(sizes) / sizes
            spend = account.spend(purpose, budget.parts[2], over="clusters")
            coskewnesses = mask_block(plain, change, summary.coskewnesses, *spend.take())
    if noisy_slices:
        arrays = np.stack([one.matrices() for one in noisy_slices], axis=1)
        coskewnesses = entries_of_slices(arrays, summary.coskewness_entries)
    covariances = Spectrum(np.maximum(noisy.values, 0.0), noisy.vectors).matrices()
    return covariances, coskewnesses


def lattice_step(most: int, share: Fraction) -> Fraction:
    """The lattice of numbers that change by at most `most` and have `share` of ε: a public power of 2.

    The bounds of a cluster are private, and a lattice that followed them would reveal them: multiples of a step
    reveal the step.

    >>> lattice_step(6, Fraction(1, 2)) == Fraction(1, 2**47), lattice_step(6, Fraction(100)) == Fraction(1, 2**50)
    (True, True)
    """
    coarse = math.ceil(most / (share * _WIDEST) / _FINEST)
    return _FINEST * (1 << max(coarse - 1, 0).bit_length())


def mask_block(values: Floats, change: Floats, most: int, share: Fraction, source: Source) -> Floats:
    """Noisy values on a public lattice.

    Args:
        values: one row per cluster.
        change: L1 sensitivity of a row to one record: private.
        most: public, and never less than `change`.
        share: ε of a row.

    Guarantee:
        `share`-DP between tables whose rows differ by at most `change`. With r components and a step g, rounding adds
        at most one step per component: the row changes by at most change/g + r steps.
    """
    components = values.shape[1]
    if not change.any():
        return values
    step = lattice_step(most, share)
    width = float(step)
    # dividing by a power of 2 is exact
    moved = np.ceil(change * _SLACK / width).astype(np.int64).astype(object) + components
    scales = np.asarray(-(-moved * share.denominator // share.numerator), dtype=np.int64)
    whole = np.rint(values / width).astype(np.int64)
    return np.asarray((whole + discrete_laplace(scales[:, np.newaxis], values.shape, source)) * width)


def _mask_together(
    spectrum: Spectrum,
    sliced: list[Spectrum],
    plain: Floats | None,
    spectra: Spectra,
    epsilon: Fraction,
    source: Source,
) -> tuple[Spectrum, list[Spectrum], Floats | None]:
    """All components of a cluster in one row, with noise of one scale (Algorithm 1)."""
    clusters = spectrum.values.shape[0]
    parts = [part for one in (spectrum, *sliced) for part in (one.values, one.vectors)]
    if plain is not None:
        parts.append(plain)
    ends = np.cumsum([part[0].size for part in parts])
    row = np.concatenate([part.reshape(clusters, -1) for part in parts], axis=1)
    noisy = mask_block(row, spectra.total, spectra.most, epsilon, source)
    pieces = [
        noisy[:, end - part[0].size : end].reshape(part.shape) for part, end in zip(parts, ends, strict=True)
    ]
    found = [Spectrum(pieces[2 * place], pieces[2 * place + 1]) for place in range(1 + len(sliced))]
    return found[0], found[1:], None if plain is None else pieces[-1]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Halves:
    """The ε of a matrix that is masked by its spectrum: half for the eigenvalues, half for the eigenvectors
    (Algorithm 2).

    Attributes:
        purpose: the purpose it was reserved for.
        share: ε of the whole matrix.
        which: the matrix, if there are several.
    """

    account: Accountant
    purpose: str
    share: Fraction
    which: str = ""

    def values(self) -> Spend:
        """The charge for all eigenvalues together."""
        return self._spend(self.share / 2, "eigenvalues")

    def vector(self, place: int, number: int) -> Spend:
        """The charge for one eigenvector of so many."""
        return self._spend(self.share / (2 * number), f"eigenvector {place + 1}")

    def _spend(self, amount: Fraction, what: str) -> Spend:
        return self.account.spend(
            self.purpose, amount, f"{what} of the {self.purpose}{self.which}", over="clusters"
        )


def _mask_spectrum(spectrum: Spectrum, bounds: SpectralBounds, halves: _Halves) -> Spectrum:
    number = spectrum.values.shape[1]
    # entries change by at most 2/3, and eigenvalues by so much for each attribute
    values = mask_block(spectrum.values, number * bounds.value, number * number, *halves.values().take())
    vectors = np.stack(
        [
            mask_block(
                spectrum.vectors[:, :, place],
                bounds.vectors[:, place],
                2 * number,
                *halves.vector(place, number).take(),
            )
            for place in range(number)
        ],
        axis=2,
    )
    return Spectrum(values, vectors)


def _slices(entries: Floats, summary: MomentSummary) -> list[Floats]:
    whole = slices(entries, summary.coskewness_entries, summary.attributes)
    return [whole[:, place] for place in range(summary.attributes)]
