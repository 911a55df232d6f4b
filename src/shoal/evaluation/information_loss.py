"""Measures that statistical offices take of masked numbers: values before and after come in, losses and a risk leave.

x is the original, y the masked table, both (rows, columns) with NaN for a missing value; standard deviations divide by
n - 1. A measure that does not exist, because a column is constant or two are collinear, is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import KIND_FACTS
from shoal.evaluation.columns import Column, Nominal, Ordered

Matrix = NDArray[np.float64]

# half the width of the interval of dRisk, in standard deviations
INTERVAL = 0.05
# eigenvalues of a correlation matrix below this are those of collinear columns
_COLLINEAR = 1e-10


def interval_disclosure(x: Matrix, y: Matrix, width: float = INTERVAL) -> float | None:
    """dRisk: share of the records that lie within `width` standard deviations of y around their masked values.

    A record counts if it does so in all columns; a comparison with a missing value counts as inside.

    Reference:
        Mateo-Sanz, Sebé and Domingo-Ferrer (2004).

    >>> interval_disclosure(np.array([[0.0], [10.0]]), np.array([[0.0], [5.0]]))
    0.5
    """
    if x.size == 0:
        return None
    spread = _deviations(y)
    # a column of nothing but gaps has no deviation, and no comparison outside
    outside = np.abs(x - y) > width * np.where(np.isnan(spread), np.inf, spread)
    return float(1.0 - outside.any(axis=1).mean())


def il1s(x: Matrix, y: Matrix) -> float | None:
    """Sum over all cells of |x - y| / (√2 sd(x)); cells with a missing value are left out.

    >>> round(il1s(np.array([[0.0], [2.0]]), np.array([[1.0], [2.0]])), 6)
    0.5
    """
    spread = _deviations(x)
    if x.size == 0 or not (spread > 0).all():
        return None
    return float(np.nansum(np.abs(x - y) / (math.sqrt(2.0) * spread)))


def il1(x: Matrix, y: Matrix) -> float | None:
    """Sum over all cells of 100 |x - y| / |x|; cells with a missing value, or where x is 0, are left out."""
    if x.size == 0:
        return None
    there = x != 0
    return float(100.0 * np.nansum(np.abs(x[there] - y[there]) / np.abs(x[there])))


def eigenvalue_change(x: Matrix, y: Matrix) -> float | None:
    """Σ |e - e'| / e over the eigenvalues of the correlation matrices, both in descending order.

    With gaps, columns are standardised by all their values, and their products averaged over the rows that both have.
    """
    return eigenvalues_moved(_correlations(x), _correlations(y))


def eigenvalues_moved(before: Matrix | None, after: Matrix | None) -> float | None:
    """The same from the correlation matrices; None where one does not exist."""
    if before is None or after is None:
        return None
    e, changed = (np.linalg.eigvalsh(matrix)[::-1] for matrix in (before, after))
    # a change of an eigenvalue of 0 has no size
    return float((np.abs(e - changed) / e).sum()) if e[-1] > _COLLINEAR else None


def correlation_loss(x: Matrix, y: Matrix) -> float | None:
    """IL_correl: distance of the diagonals of the inverse correlation matrices, 0 to 1, on rows without a gap.

    Both diagonals are scaled to length 1, and their distance is divided by √2.

    Reference:
        Młodak (2020), with 1/√2 where the paper has 1/2.
    """
    return inverses_moved(*(_correlations(values[~np.isnan(values).any(axis=1)]) for values in (x, y)))


def inverses_moved(before: Matrix | None, after: Matrix | None) -> float | None:
    """The same from the correlation matrices of rows without a gap; None where one does not exist."""
    directions = []
    for matrix in (before, after):
        if matrix is None or np.linalg.eigvalsh(matrix)[0] <= _COLLINEAR:
            return None
        diagonal = np.diag(np.linalg.inv(matrix))
        directions.append(diagonal / np.linalg.norm(diagonal))
    return float(np.linalg.norm(directions[0] - directions[1]) / math.sqrt(2.0))


def _deviations(values: Matrix) -> NDArray[np.float64]:
    return np.array([_deviation(column[~np.isnan(column)]) for column in values.T])


def _deviation(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan


def _correlations(values: Matrix) -> Matrix | None:
    """Correlations of the columns; None where one of them is constant or two share fewer than two rows."""
    spread = _deviations(values)
    if values.size == 0 or not (spread > 0).all():
        return None
    there = (~np.isnan(values)).astype(np.float64)
    mean = np.nanmean(values, axis=0)
    scaled = np.where(there > 0, (values - mean) / spread, 0.0)
    common = there.T @ there
    if (common < 2).any():
        return None
    sums = scaled.T @ there
    return np.asarray((scaled.T @ scaled - sums * sums.T / common) / (common - 1.0))


def cell_loss(column: Column) -> NDArray[np.float64]:
    """What IL_variables says about each cell of a column, 0 to 1.

    Names: 0 if equal, else 1. Places in an order: their distance as a share of the whole order. Numbers and days:
    (2/π) atan|x - y|, which depends on the unit. One missing value of two is as bad as it can be, two are no loss.
    """
    if isinstance(column, Nominal):
        return np.asarray(column.before != column.after, dtype=np.float64)
    x, y = column.before, column.after
    gone, missing = np.isnan(x), np.isnan(y)
    apart = np.abs(x - y)
    if KIND_FACTS[column.kind].listed:
        loss = apart / column.width if column.width else apart
        worst = 1.0
    else:
        loss = 2.0 / math.pi * np.arctan(apart)
        known = x[~gone]
        worst = 2.0 / math.pi * math.atan(float(known.max() - known.min())) if known.size else 0.0
    return np.where(gone & missing, 0.0, np.where(gone | missing, worst, loss))


def variable_loss(columns: Sequence[Column]) -> float | None:
    """IL_variables: mean of `cell_loss` over all cells.

    Reference:
        Młodak (2020).
    """
    if not columns:
        return None
    return float(np.mean([cell_loss(column).mean() for column in columns]))


def numbers(columns: Sequence[Column]) -> tuple[Matrix, Matrix]:
    """The columns of quantities, before and after."""
    found = [one for one in columns if isinstance(one, Ordered) and KIND_FACTS[one.kind].measured]
    if not found:
        return np.empty((0, 0)), np.empty((0, 0))
    return np.column_stack([one.before for one in found]), np.column_stack([one.after for one in found])
