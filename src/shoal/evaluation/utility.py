"""How much a table lost: two columns or two tables of values come in, one number per measure leaves.

Missing values are NaN (infinite ones count as missing too); a measure that does not exist for the data is NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Of standardised columns: less spread than this within a pair's common rows is rounding, not information.
NO_SPREAD = 1e-12
# a correlation, or a change of one, that readers of a table would remark
NOTABLE = 0.1


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


def mean_variation(original: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """|mean' - mean| / |mean|; NaN when the original mean is 0.

    >>> mean_variation(np.array([1.0, 3.0]), np.array([3.0]))
    0.5
    """
    before, after = _present(original), _present(released)
    if before.size == 0 or after.size == 0:
        return math.nan
    mean = float(before.mean())
    return _ratio(abs(float(after.mean()) - mean), abs(mean))


def mean_shift(original: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """|mean' - mean| in standard deviations of the original; NaN for a constant.

    >>> mean_shift(np.array([1.0, 3.0]), np.array([3.0]))
    1.0
    """
    before, after = _present(original), _present(released)
    if before.size == 0 or after.size == 0:
        return math.nan
    return _ratio(abs(float(after.mean()) - float(before.mean())), math.sqrt(_variance(before)))


def variance_variation(original: NDArray[np.float64], released: NDArray[np.float64]) -> float:
    """|var' - var| / var; NaN when the original is constant.

    >>> variance_variation(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    1.0
    """
    before, after = _present(original), _present(released)
    if before.size == 0 or after.size == 0:
        return math.nan
    variance = _variance(before)
    return _ratio(abs(_variance(after) - variance), variance)


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
    else:
        grid = np.sort(np.concatenate((before, after)))
        below = np.searchsorted(before, grid[:-1], side="right") / before.size
        below_after = np.searchsorted(after, grid[:-1], side="right") / after.size
        moved = float(np.sum(np.abs(below - below_after) * np.diff(grid)))
    return _ratio(moved, math.sqrt(_variance(before)))


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
    count = np.maximum(mask.T @ mask, 1.0)
    total = standard.T @ mask
    spread = np.maximum((standard * standard).T @ mask - total * total / count, 0.0)
    spread[spread <= NO_SPREAD * count] = 0.0
    spread[constant] = 0.0
    common = standard.T @ standard - total * total.T / count
    scale = np.sqrt(spread * spread.T)
    out = np.full((m, m), np.nan)
    np.divide(common, scale, out=out, where=scale > 0)
    np.clip(out, -1.0, 1.0, out=out)
    return out


def correlation_difference(
    original: NDArray[np.float64], released: NDArray[np.float64]
) -> CorrelationDifference:
    """Mean absolute difference of the correlations of all pairs of columns.

    >>> x = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> correlation_difference(x, x[:, ::-1] * [1, -1]).mean
    2.0
    """
    m = original.shape[1]
    before, after = correlations(original), correlations(released)
    upper = np.triu_indices(m, k=1)
    gaps = np.abs(after - before)[upper]
    gaps = gaps[np.isfinite(gaps)]
    alone = ~(np.isfinite(np.diag(before)) & np.isfinite(np.diag(after)))
    excluded = tuple(int(j) for j in np.flatnonzero(alone))
    if gaps.size == 0:
        return CorrelationDifference(math.nan, math.nan, 0, excluded)
    return CorrelationDifference(float(gaps.mean()), float(gaps.max()), int(gaps.size), excluded)


def rank_correlations_kept(original: NDArray[np.float64], released: NDArray[np.float64]) -> tuple[int, int]:
    """How many rank correlations keep sign and size, to within a tenth, and how many there are.

    One that was below a tenth has no sign to keep. Ranks, because correlations of amounts hang on a few extreme
    records, which no release may tell of.

    >>> x = np.array([[0.0, 0.0], [1.0, 1.0], [9.0, 2.0]])
    >>> rank_correlations_kept(x, x**3), rank_correlations_kept(x, -x), rank_correlations_kept(x, x * [1, -1])
    ((1, 1), (1, 1), (0, 1))
    """
    before, after = correlations(_ranks(original)), correlations(_ranks(released))
    upper = np.triu_indices(original.shape[1], k=1)
    first, second = before[upper], after[upper]
    there = np.isfinite(first)
    near = np.abs(second - first) <= NOTABLE
    kept = there & near & ((first * second > 0) | (np.abs(first) < NOTABLE))
    return int(kept.sum()), int(there.sum())


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks of each column, equal values the mean of theirs; missing ones stay missing."""
    out = np.full(values.shape, np.nan)
    for j in range(values.shape[1]):
        there = np.isfinite(values[:, j])
        _, which, counts = np.unique(values[there, j], return_inverse=True, return_counts=True)
        out[there, j] = (np.cumsum(counts) - (counts - 1) / 2)[which]
    return out


def _present(values: NDArray[np.float64]) -> NDArray[np.float64]:
    present: NDArray[np.float64] = values[np.isfinite(values)]
    return present


def _variance(values: NDArray[np.float64]) -> float:
    # the rounded mean of equal values may differ from them: a constant has variance 0, not 1e-33
    return 0.0 if values.min() == values.max() else float(values.var())


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan
