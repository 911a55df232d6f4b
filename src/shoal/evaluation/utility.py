"""Information loss of columns and tables, numerical and nominal.

Missing values are NaN (infinite ones count as missing too); a measure that does not exist for the data is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns import KIND_FACTS, Kind
from shoal.display import internal
from shoal.evaluation.pair import Column, Nominal
from shoal.numbers import Floats, Integers

# For standardised columns: less spread than this within a pair's common rows is rounding, not information.
NO_SPREAD = 1e-12
# a correlation, or a change of one, that readers of a table would notice
NOTABLE = 0.1
# equal parts of a numeric attribute's public domain
BINS = 20
# a table of counts with more cells than this many per row is mostly empty: sorting is cheaper
_CELLS_PER_ROW = 4


@dataclass(frozen=True, slots=True)
class RowErrors:
    """Errors of one attribute over rows in the same order.

    Attributes:
        sse: sum of squared errors.
        sae: sum of absolute errors.
        normalised_sse: mean squared error divided by the variance of the original; NaN for a constant.
        rows: number of rows with both values.
    """

    sse: float
    sae: float
    normalised_sse: float
    rows: int


@dataclass(frozen=True, slots=True)
class CorrelationDifference:
    """Differences |r' - r| of the pairwise correlations.

    Attributes:
        mean: their mean; NaN without a pair.
        largest: the largest of them; NaN without a pair.
        pairs: number of pairs compared.
        excluded: positions of the columns without any correlation, constant in one of the tables.
    """

    mean: float
    largest: float
    pairs: int
    excluded: tuple[int, ...]


def row_errors(original: NDArray[np.float64], released: NDArray[np.float64]) -> RowErrors:
    """SSE, SAE and normalised SSE of one attribute.

    >>> row_errors(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    RowErrors(sse=2.0, sae=2.0, normalised_sse=1.0, rows=2)
    """
    both = np.isfinite(original) & np.isfinite(released)
    rows = int(both.sum())
    if rows == 0:
        return RowErrors(math.nan, math.nan, math.nan, 0)
    truth = original[both]
    error = released[both] - truth
    sse = float(np.sum(error * error))
    return RowErrors(sse, float(np.sum(np.abs(error))), _ratio(sse / rows, _variance(truth)), rows)


@internal()
@dataclass(frozen=True, slots=True)
class Moments:
    """How many values a column has, their mean and variance; NaN without a value."""

    n: int
    mean: float
    variance: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Moments:
        """The moments of the values present.

        >>> found = Moments.of(np.array([1.0, 3.0, np.nan]))
        >>> found.n, found.mean, found.variance
        (2, 2.0, 1.0)
        """
        present = _present(values)
        if not present.size:
            return cls(0, math.nan, math.nan)
        return cls(int(present.size), float(present.mean()), _variance(present))


def mean_variation(before: Moments, after: Moments) -> float:
    """|mean' - mean| / |mean|; NaN when the original mean is 0.

    >>> mean_variation(Moments(2, 2.0, 1.0), Moments(1, 3.0, 0.0))
    0.5
    """
    return _ratio(abs(after.mean - before.mean), abs(before.mean))


def mean_shift(before: Moments, after: Moments) -> float:
    """|mean' - mean| in standard deviations of the original; NaN for a constant.

    >>> mean_shift(Moments(2, 2.0, 1.0), Moments(1, 3.0, 0.0))
    1.0
    """
    return _ratio(abs(after.mean - before.mean), math.sqrt(before.variance))


def variance_variation(before: Moments, after: Moments) -> float:
    """|var' - var| / var; NaN when the original is constant.

    >>> variance_variation(Moments(2, 1.0, 1.0), Moments(2, 1.0, 0.0))
    1.0
    """
    return _ratio(abs(after.variance - before.variance), before.variance)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The distinct values of a column in ascending order, and how often each occurs."""

    values: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Distribution:
        found, counts = np.unique(_present(values), return_counts=True)
        return cls(found, counts.astype(np.int64))

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    def ranks(self) -> NDArray[np.float64]:
        """The rank of each value; equal values share their mean rank.

        >>> Distribution(np.array([5.0, 7.0]), np.array([1, 2])).ranks().tolist()
        [1.0, 2.5]
        """
        return np.asarray(np.cumsum(self.counts) - (self.counts - 1) / 2)


def wasserstein(original: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """Wasserstein-1 distance of the two distributions in standard deviations of the original; NaN for a constant.

    >>> wasserstein(np.array([0.0, 2.0]), np.array([3.0, 1.0]))
    1.0
    """
    before, after = np.sort(_present(original)), np.sort(_present(released))
    if before.size == 0 or after.size == 0:
        return math.nan
    if before.size == after.size:
        moved = float(np.mean(np.abs(after - before)))
        return _ratio(moved, math.sqrt(_variance(before)))
    return wasserstein_of(Distribution.of(before), Distribution.of(after), _variance(before))


def wasserstein_of(before: Distribution, after: Distribution, variance: float) -> float:
    """The same from the counts of each value.

    >>> before, after = Distribution.of(np.array([0.0, 2.0])), Distribution.of(np.array([1.0, 1.0, 3.0, 3.0]))
    >>> wasserstein_of(before, after, 1.0)
    1.0
    """
    if before.n == 0 or after.n == 0:
        return math.nan
    grid = np.union1d(before.values, after.values)
    below, below_after = (_share_below(one, grid[:-1]) for one in (before, after))
    moved = float(np.sum(np.abs(below - below_after) * np.diff(grid)))
    return _ratio(moved, math.sqrt(variance))


def _share_below(found: Distribution, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the values up to each point of a grid."""
    running = np.concatenate(([0], np.cumsum(found.counts)))
    return np.asarray(running[np.searchsorted(found.values, grid, side="right")] / found.n)


def correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson correlations of the columns over each pair's common rows; NaN where one of them is constant there.

    >>> correlations(np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0]]))[0]
    array([ 1., -1., nan])
    """
    m = values.shape[1]
    standard = np.zeros(values.shape)
    present = np.isfinite(values)
    constant = np.zeros(m, dtype=bool)
    for j in range(m):
        column = values[present[:, j], j]
        constant[j] = column.size == 0 or column.min() == column.max()
        if not constant[j]:
            standard[present[:, j], j] = (column - column.mean()) / column.std()
    mask = present.astype(np.float64)
    return Products(
        mask.T @ mask, standard.T @ mask, (standard * standard).T @ mask, standard.T @ standard, constant
    ).correlations()


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sufficient statistics of correlations: sums of standardised values over the common rows of each pair of columns.

    Attributes:
        count: number of common rows.
        total: sum of the first column's values.
        squares: sum of their squares.
        common: sum of the products.
        constant: which columns have no spread at all.
    """

    count: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]
    common: NDArray[np.float64]
    constant: NDArray[np.bool_]

    def correlations(self) -> NDArray[np.float64]:
        count = np.maximum(self.count, 1.0)
        spread = np.maximum(self.squares - self.total * self.total / count, 0.0)
        spread[spread <= NO_SPREAD * count] = 0.0
        spread[self.constant] = 0.0
        common = self.common - self.total * self.total.T / count
        scale = np.sqrt(spread * spread.T)
        out = np.full(common.shape, np.nan)
        np.divide(common, scale, out=out, where=scale > 0)
        np.clip(out, -1.0, 1.0, out=out)
        return out


def correlation_difference(before: NDArray[np.float64], after: NDArray[np.float64]) -> CorrelationDifference:
    """Mean absolute difference of the correlations of all pairs of columns.

    >>> x = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> correlation_difference(correlations(x), correlations(x[:, ::-1] * [1, -1])).mean
    2.0
    """
    upper = np.triu_indices(len(before), k=1)
    gaps = np.abs(after - before)[upper]
    gaps = gaps[np.isfinite(gaps)]
    alone = ~(np.isfinite(np.diag(before)) & np.isfinite(np.diag(after)))
    excluded = tuple(int(j) for j in np.flatnonzero(alone))
    if gaps.size == 0:
        return CorrelationDifference(math.nan, math.nan, 0, excluded)
    return CorrelationDifference(float(gaps.mean()), float(gaps.max()), int(gaps.size), excluded)


def correlations_kept(before: NDArray[np.float64], after: NDArray[np.float64]) -> tuple[int, int]:
    """How many rank correlations keep sign and size, to within a tenth, and how many there are.

    A correlation below a tenth has no sign to keep. Ranks, because correlations of amounts depend on a few extreme
    records, which no release may reveal.

    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 2.0]])
    >>> kept = [correlations_kept(rank_correlations(x), rank_correlations(y)) for y in (x**3, -x, x * [1, -1])]
    >>> kept
    [(1, 1), (1, 1), (0, 1)]
    """
    upper = np.triu_indices(len(before), k=1)
    first, second = before[upper], after[upper]
    there = np.isfinite(first)
    near = np.abs(second - first) <= NOTABLE
    kept = there & near & ((first * second > 0) | (np.abs(first) < NOTABLE))
    return int(kept.sum()), int(there.sum())


def rank_correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlations of the ranks of each column; equal values share their mean rank, missing ones stay missing."""
    out = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        there = np.isfinite(values[:, j])
        found, which, counts = np.unique(values[there, j], return_inverse=True, return_counts=True)
        out[there, j] = Distribution(found, counts).ranks()[which]
    return correlations(out)


def _present(values: NDArray[np.float64]) -> NDArray[np.float64]:
    present: NDArray[np.float64] = values[np.isfinite(values)]
    return present


def _variance(values: NDArray[np.float64]) -> float:
    # the rounded mean of equal values may differ from them: a constant has variance 0, not 1e-33
    return 0.0 if values.min() == values.max() else float(values.var())


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan


def semantic_sse(column: Nominal) -> float:
    """Sum of squared semantic distances between the values of matching rows.

    Reference:
        The thesis, section 6.4.2, with the distance of Eq. 6.6.

    >>> flat = Nominal("x", np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 1, 1]), size=2)
    >>> round(semantic_sse(flat), 4)
    0.5431
    """
    # a table has few distinct pairs of values, and distances cost more than counting
    span = column.size + 1
    pairs, counts = np.unique((column.before + 1) * span + column.after + 1, return_counts=True)
    gaps = column.distances(pairs // span - 1, pairs % span - 1)
    return float(np.sum(counts * gaps * gaps))


def scaled_sse(column: Column) -> float:
    """Sum of squared errors of matching rows in units of the squared width of the domain; NaN without a width.

    Rows with a missing number are left out.
    """
    if column.width <= 0:
        return math.nan
    if isinstance(column, Nominal):
        return semantic_sse(column) / column.width**2
    gaps = (column.after - column.before) / column.width
    return float(np.nansum(gaps * gaps))


def categories(column: Column) -> tuple[Integers, Integers, int]:
    """Category of each original and of each published row, and their number; missing values have their own.

    Nominal values are categories themselves; numbers and dates are cut into equal parts of the public domain;
    positions in an order are cut only if there are more positions than parts.
    """
    if isinstance(column, Nominal):
        return column.before + 1, column.published + 1, column.size + 1
    cut = DomainParts.of(column.kind, column.domain)
    return cut(column.before), cut(column.published), cut.size


@dataclass(frozen=True, slots=True)
class DomainParts:
    """Equal parts of a domain, and one more for missing values."""

    lo: float
    hi: float
    parts: int

    @classmethod
    def of(cls, kind: Kind, domain: tuple[float, float]) -> DomainParts:
        lo, hi = domain
        if KIND_FACTS[kind].listed and hi - lo < BINS:
            # one part around each position
            return cls(lo - 0.5, hi + 0.5, round(hi - lo) + 1)
        return cls(lo, hi, BINS)

    @property
    def size(self) -> int:
        return self.parts + 1

    def __call__(self, values: Floats) -> Integers:
        """The part of each value; values outside the domain go to the first or the last part."""
        missing = np.isnan(values)
        width = (self.hi - self.lo) / self.parts
        place = np.zeros(values.shape)
        if width > 0:
            place = np.floor((np.where(missing, self.lo, values) - self.lo) / width)
        return np.where(missing, self.parts, np.clip(place, 0, self.parts - 1)).astype(np.int64)


def total_variation(before: Integers, after: Integers, size: int) -> float:
    """Half the sum of |p' - p| over the categories: the share of rows that would have to change category.

    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)
    0.25
    """
    rows = before.size + after.size
    if size > _CELLS_PER_ROW * rows:
        every = np.unique(np.concatenate((before, after)), return_inverse=True)[1]
        before, after, size = every[: before.size], every[before.size :], int(every.max()) + 1
    p = np.bincount(before, minlength=size) / before.size
    q = np.bincount(after, minlength=size) / after.size
    return 0.5 * float(np.abs(p - q).sum())


@dataclass(frozen=True, slots=True)
class Contingency:
    """Total variations of the two-way tables.

    Attributes:
        mean: over all pairs of columns; NaN without a pair.
        largest: the largest of them; NaN without a pair.
        worst: the two columns that have it.
        pairs: number of pairs.
    """

    mean: float
    largest: float
    worst: tuple[str, str] | None
    pairs: int


def contingency(columns: Sequence[Column]) -> Contingency:
    """Total variation between the original and the published two-way table of every pair of columns.

    Cost:
        One pass over the rows for each pair of columns.

    >>> a = Nominal("a", np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), size=2)
    >>> b = Nominal("b", np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1]), size=2)
    >>> contingency([a, b]).mean
    0.5
    """
    coded = [categories(column) for column in columns]
    found: dict[tuple[str, str], float] = {}
    for j, (first, first_after, _) in enumerate(coded):
        for other in range(j + 1, len(coded)):
            second, second_after, size = coded[other]
            cells = coded[j][2] * size
            found[columns[j].name, columns[other].name] = total_variation(
                first * size + second, first_after * size + second_after, cells
            )
    return contingency_of(found)


def contingency_of(found: Mapping[tuple[str, str], float]) -> Contingency:
    """The total variation distances of all pairs of columns."""
    if not found:
        return Contingency(math.nan, math.nan, None, 0)
    # the first of equal ones, in whatever order they were summed
    worst = max(found, key=lambda names: round(found[names], 12))
    return Contingency(math.fsum(found.values()) / len(found), found[worst], worst, len(found))


Counted = tuple[Integers, Integers]


def counted_variation(before: Counted, after: Counted) -> float:
    """Total variation from the distinct categories of each table and their counts.

    >>> counted_variation((np.array([0, 1]), np.array([2, 2])), (np.array([0, 1]), np.array([1, 3])))
    0.25
    """
    every = np.union1d(before[0], after[0])
    shares = []
    for codes, counts in (before, after):
        share = np.zeros(every.size)
        share[np.searchsorted(every, codes)] = counts / counts.sum()
        shares.append(share)
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())
