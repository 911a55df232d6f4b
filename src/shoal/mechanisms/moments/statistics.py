"""Exact moments of clusters on the integer lattice, and their sensitivities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from shoal._moved import renamed
from shoal.display import internal
from shoal.errors import OptionError
from shoal.numbers import Floats, Integers
from shoal.partition import Partition

# Eigenvalues and eigenvectors computed by numpy are exact for a matrix this close to the given one, in spectral norm.
# Entries are at most 1/2 in size here, so this is a thousand times what a stable algorithm needs for 100 attributes.
ROUNDING = 2.0**-30


def mean_change(size: int) -> Fraction:
    """The maximum change of one mean by one record.

    Reference:
        the cross-moment paper, Proposition 5.

    >>> mean_change(4)
    Fraction(1, 4)
    """
    return Fraction(1, size)


def covariance_change(size: int) -> Fraction:
    """The maximum change of one entry of the unbiased covariance matrix by one record, variances included.

    Guarantee:
        Exact for every size of at least 2: attained when all other records are in one corner of the domain.

    Reference:
        the cross-moment paper, Proposition 6; docs/proofs/trees.md#moments, section 2.

    >>> covariance_change(4)
    Fraction(1, 4)
    """
    return Fraction(1, size)


def coskewness_change(size: int) -> Fraction:
    """The maximum change of one entry of Fisher's coskewness by one record, also for coinciding attributes.

    Guarantee:
        Exact for every size of at least 3. The printed 1/|C| is half of the truth for clusters of 3.

    Reference:
        the cross-moment paper, Proposition 8, corrected; docs/proofs/trees.md#moments, section 3.

    >>> coskewness_change(3), coskewness_change(4)
    (Fraction(2, 3), Fraction(1, 4))
    """
    return Fraction(2 if size == 3 else 1, size)


def coskewness_factors(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """`coskewness_change` in units of 1/|C|, for many clusters: 2 for clusters of 3, else 1."""
    return np.where(sizes == 3, 2, 1)


def spectral_change(attributes: int, entry_change: Floats) -> Floats:
    """The maximum change of a symmetric matrix in spectral norm, when each of its entries changes by `entry_change`.

    Also bounds each single eigenvalue.

    Reference:
        the cross-moment paper, sections 4.2 and 5.2; docs/proofs/trees.md#moments, section 4.
    """
    return attributes * entry_change + 2 * ROUNDING


def eigenvalues_change(attributes: int, entry_change: Floats) -> Floats:
    """The maximum change of all eigenvalues together, in L1 norm.

    Reference:
        the cross-moment paper, Propositions 9 and 10; docs/proofs/trees.md#moments, section 4.
    """
    return np.asarray(np.sqrt(attributes) * spectral_change(attributes, entry_change))


def eigenvector_changes(eigenvalues: Floats, entry_change: Floats) -> Floats:
    """The maximum change of each eigenvector in L1 norm, up to its sign, from the matrix with these eigenvalues.

    Args:
        eigenvalues: of the actual matrices, in descending order, shape (clusters, attributes).
        entry_change: maximum change of an entry of each matrix, shape (clusters,).

    Guarantee:
        For any matrix whose entries differ from the actual ones by at most `entry_change`, and with the sign of
        its eigenvector chosen so that the two do not point apart. Multiply every eigenvector by an independent uniform
        sign before masking: the distribution is then independent of the computed sign, and the bound holds. It is
        local: it uses the gaps of the actual matrix, and may determine noise but not be published.

    Reference:
        Yu, Wang and Samworth, "A useful variant of the Davis-Kahan theorem", Corollary 1, instead of the bound
        printed in the cross-moment paper (Propositions 9 and 10), which is violated;
        docs/proofs/trees.md#moments, section 5.

    >>> eigenvector_changes(np.array([[0.25, 0.05]]), np.array([0.001])).round(6).tolist()
    [[0.04, 0.04]]
    """
    attributes = eigenvalues.shape[1]
    if attributes == 1:
        # a number is its own eigenvalue, and its eigenvector is a sign
        return np.zeros_like(eigenvalues)
    reach = 2**1.5 * spectral_change(attributes, entry_change)[:, np.newaxis]
    gaps = eigengaps(eigenvalues)
    # two unit vectors that do not point apart are at most √2 away from each other
    moved = np.sqrt(2.0) * np.ones_like(gaps)
    np.divide(reach, gaps, out=moved, where=gaps > reach / np.sqrt(2.0))
    return np.asarray(np.sqrt(attributes) * moved)


def eigengaps(eigenvalues: Floats) -> Floats:
    """Distance of each eigenvalue, in descending order, to the nearest other one."""
    between = eigenvalues[:, :-1] - eigenvalues[:, 1:]
    infinite = np.full((eigenvalues.shape[0], 1), np.inf)
    above, below = (np.concatenate(pair, axis=1) for pair in ([infinite, between], [between, infinite]))
    return np.asarray(np.minimum(above, below))


Objects = NDArray[np.object_]

_WORD = 63


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    """Records in cluster order, each attribute relative to an integer near its cluster's mean.

    Central moments do not depend on the origin, and products of small numbers fit into a machine word.

    Attributes:
        columns: deviations of each attribute, the records of a cluster contiguous.
        starts: start index of each cluster.
        sizes: number of records of each cluster.
        totals: sum of each attribute's original positions in each cluster.
        counts: number of records of each entry, if equal ones are one entry.
    """

    columns: tuple[Integers, ...]
    starts: Integers
    sizes: Integers
    totals: tuple[Integers, ...]
    counts: Integers | None = None

    @classmethod
    def of_runs(
        cls, labels: Integers, positions: Integers, counts: Integers, totals: Integers, sizes: Integers
    ) -> Centred:
        """One attribute, equal positions of a cluster as one entry with their number; labels ascend.

        >>> made = Centred.of_runs(*map(np.array, ([0, 0, 1], [4, 6, 9], [2, 1, 5], [14, 45], [3, 5])))
        >>> made.sums(0, 0).tolist()
        [4, 0]
        """
        starts = np.searchsorted(labels, np.arange(sizes.size))
        return cls((positions - (totals // sizes)[labels],), starts, sizes, (totals,), counts)

    @classmethod
    def of(cls, positions: Sequence[Integers], partition: Partition) -> Centred:
        order = cluster_order(partition.labels)
        starts = np.cumsum(partition.sizes) - partition.sizes
        columns, totals = [], []
        for column in positions:
            ordered = column[order]
            totals.append(np.add.reduceat(ordered, starts))
            columns.append(ordered - np.repeat(totals[-1] // partition.sizes, partition.sizes))
        return cls(tuple(columns), starts, partition.sizes, tuple(totals))

    def sums(self, *attributes: int) -> Objects:
        """Σ of the product of these attributes over the records of each cluster, exact for any size.

        >>> made = Centred.of([np.array([0, 2**52, 7])], Partition.from_labels([0, 0, 1]))
        >>> made.sums(0, 0).tolist() == [2 * (2**51) ** 2, 0]
        True
        """
        factors = [self.columns[number] for number in attributes]
        if self.counts is not None:
            factors.append(self.counts)
        return _product_sums(factors, self.starts, self.sizes)


def cluster_order(labels: Integers) -> NDArray[np.intp]:
    """Indices of the records cluster by cluster, in input order inside each.

    >>> cluster_order(np.array([1, 0, 1, 0])).tolist()
    [1, 3, 0, 2]
    """
    # short integers are radix-sorted, in a fraction of the time
    short = labels.astype(np.uint16) if labels.size and int(labels.max()) < 1 << 16 else labels
    return np.argsort(short, kind="stable")


def _product_sums(factors: Sequence[Integers], starts: Integers, sizes: Integers) -> Objects:
    """Every factor is split into digits so short that a cluster's sum of products of digits fits into a word."""
    room = _WORD - int(sizes.max()).bit_length()
    widths = [int(np.abs(factor).max()).bit_length() + 1 for factor in factors]
    if sum(widths) <= room:
        return np.add.reduceat(reduce(np.multiply, factors), starts).astype(object)
    bits = room // len(factors)
    total = np.zeros(sizes.size, dtype=object)
    digits = [_digits(factor, width, bits) for factor, width in zip(factors, widths, strict=True)]
    for chosen in product(*(range(len(parts)) for parts in digits)):
        piece = reduce(np.multiply, [parts[place] for parts, place in zip(digits, chosen, strict=True)])
        total = total + (np.add.reduceat(piece, starts).astype(object) << (bits * sum(chosen)))
    return total


def _digits(values: Integers, width: int, bits: int) -> list[Integers]:
    """values = Σ digit · 2^(bits · place), the last digit signed; every digit is below 2^bits in size."""
    parts = []
    while width > bits:
        parts.append(values & ((1 << bits) - 1))
        values = values >> bits
        width -= bits
    return [*parts, values]


COVARIANCES = ("all", "variances")
COSKEWNESSES = ("marginal", "full")
FORMS = ("coefficients", "eigen")

# an entry of a symmetric array of statistics: the attributes it belongs to, in order
Index = tuple[int, ...]


@dataclass(frozen=True)
class MomentSummary:
    """Mean and central cross moments of every cluster.

    Attributes:
        attributes: number of attributes summarised together.
        order: 0 the mean; 1 also the covariance; 2 also the coskewness.
        covariance: `all` entries of the matrix, or the `variances` only.
        coskewness: the `marginal` entries only, which rows are drawn from, or the `full` array.
        form: entries as `coefficients`, or the `eigen` form: eigenvalues and eigenvectors of the covariance matrix,
            and of each slice of a full coskewness.

    Reference:
        the cross-moment paper, sections 2.4 and 4.1.

    >>> MomentSummary(3, order=2).means, MomentSummary(3, order=2).covariances, MomentSummary(3, order=2).coskewnesses
    (3, 6, 3)
    >>> MomentSummary(3, order=2, coskewness="full").coskewnesses
    10
    """

    attributes: int
    order: int = 0
    covariance: str = "all"
    coskewness: str = "marginal"
    form: str = "coefficients"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("covariance", self.covariance, COVARIANCES),
            ("coskewness", self.coskewness, COSKEWNESSES),
            ("form", self.form, FORMS),
        ):
            if value not in known:
                raise OptionError("unknown-option", option=name, found=value, allowed=tuple(known), hint=None)
        if self.order not in (0, 1, 2):
            raise OptionError("order-0-1-2", option="order", found=self.order)
        if self.form == "eigen" and self.covariance != "all":
            raise OptionError("eigenvectors-need-all-entries-covariance-matrix")

    @property
    def smallest(self) -> int:
        """The minimum number of records for which all these statistics are defined."""
        return self.order + 1

    @cached_property
    def covariance_entries(self) -> tuple[Index, ...]:
        """The entries of the covariance matrix, row by row of its upper triangle."""
        if self.order < 1:
            return ()
        if self.covariance == "variances":
            return tuple((i, i) for i in range(self.attributes))
        return tuple(combinations_with_replacement(range(self.attributes), 2))

    @cached_property
    def coskewness_entries(self) -> tuple[Index, ...]:
        """The entries of the coskewness, every set of three attributes once."""
        if self.order < 2:
            return ()
        if self.coskewness == "marginal":
            return tuple((i, i, i) for i in range(self.attributes))
        return tuple(combinations_with_replacement(range(self.attributes), 3))

    @property
    def means(self) -> int:
        return self.attributes

    @property
    def covariances(self) -> int:
        return len(self.covariance_entries)

    @property
    def coskewnesses(self) -> int:
        return len(self.coskewness_entries)

    @property
    def correlated(self) -> bool:
        """Whether the summary describes relations between attributes."""
        return self.order > 0 and self.covariance == "all" and self.attributes > 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Exact fractions, one row per cluster and one column per entry.

    Attributes:
        above: numerators.
        under: denominators, above 0.
    """

    above: Objects
    under: Objects

    def rounded(self, times: Objects | int) -> Integers:
        """The nearest integers to `times` the fractions, halves upwards."""
        doubled = 2 * self.under
        return np.asarray((2 * self.above * times + self.under) // doubled, dtype=np.int64)

    def floats(self) -> Floats:
        """The nearest binary fractions."""
        return np.asarray(self.above / self.under, dtype=np.float64)


def covariance_ratios(centred: Centred, widths: Sequence[int], entries: Sequence[Index]) -> Ratios:
    """Unbiased covariances (|C|·Σxy - Σx·Σy) / (|C|·(|C|-1)) of attributes divided by their widths.

    >>> from shoal.partition import Partition
    >>> made = Centred.of([np.array([0, 10])], Partition.from_labels([0, 0]))
    >>> covariance_ratios(made, [10], [(0, 0)]).floats().tolist()
    [[0.5]]
    """
    size = centred.sizes.astype(object)
    first = [centred.sums(number) for number in range(len(centred.columns))]
    above, under = [], []
    for i, j in entries:
        above.append(size * centred.sums(i, j) - first[i] * first[j])
        under.append(size * (size - 1) * (widths[i] * widths[j]))
    return Ratios(np.stack(above, axis=1), np.stack(under, axis=1))


def coskewness_ratios(centred: Centred, widths: Sequence[int], entries: Sequence[Index]) -> Ratios:
    """Fisher's coskewness |C|·Σ(x-x̄)(y-ȳ)(z-z̄) / ((|C|-1)·(|C|-2)) of attributes divided by their widths."""
    size = centred.sizes.astype(object)
    first = [centred.sums(number) for number in range(len(centred.columns))]
    pairs = {pair: centred.sums(*pair) for a, b, c in entries for pair in ((a, b), (a, c), (b, c))}
    above, under = [], []
    for a, b, c in entries:
        mixed = pairs[a, b] * first[c] + pairs[a, c] * first[b] + pairs[b, c] * first[a]
        above.append(size * size * centred.sums(a, b, c) - size * mixed + 2 * first[a] * first[b] * first[c])
        under.append(size * (size - 1) * (size - 2) * (widths[a] * widths[b] * widths[c]))
    return Ratios(np.stack(above, axis=1), np.stack(under, axis=1))


def covariance_step(sizes: Integers, fineness: int) -> Floats:
    """The lattice step of a cluster's covariances: the sensitivity to one record, divided into `fineness` parts."""
    return np.asarray(1.0 / (sizes * float(fineness)), dtype=np.float64)


def coskewness_step(sizes: Integers, fineness: int) -> Floats:
    """The same for coskewnesses."""
    return np.asarray(coskewness_factors(sizes) / (sizes * float(fineness)), dtype=np.float64)


def covariance_steps(ratios: Ratios, sizes: Integers, fineness: int) -> Integers:
    """Covariances as numbers of steps.

    Guarantee:
        One record changes an entry by at most `fineness` + 1 steps.

    Reference:
        docs/proofs/trees.md#moments, section 6.
    """
    return ratios.rounded((sizes.astype(object) * fineness)[:, np.newaxis])


def coskewness_steps(ratios: Ratios, sizes: Integers, fineness: int) -> Integers:
    """Coskewnesses as numbers of steps.

    Guarantee:
        One record changes an entry by at most `fineness` + 1 steps.

    Reference:
        docs/proofs/trees.md#moments, section 6.
    """
    factors = coskewness_factors(sizes).astype(object)[:, np.newaxis]
    # multiplying the denominator keeps everything integral
    return Ratios(ratios.above, ratios.under * factors).rounded(
        (sizes.astype(object) * fineness)[:, np.newaxis]
    )


__all__ = ["MomentSummary"]


__getattr__ = renamed(__name__, Summary="MomentSummary")
