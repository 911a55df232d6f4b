"""Compiled loops of the attacks, imported on first use because numba is slow to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels import compiled
from shoal.numbers import Floats

# The rough distance sums products in another order: the error is about 1e-15 of the coordinates, far below this.
ROUNDING = 1e-9


@compiled(error_model="numpy")
def matching_rows(
    values: Floats,
    columns: NDArray[np.int64],
    low: Floats,
    high: Floats,
    enough: int,
    counts: NDArray[np.int64],
) -> None:
    """Fill `counts` with the number of rows that fulfil all conditions of a predicate, at most `enough`.

    Args:
        values: (rows, columns), best with each column contiguous.
        columns: (predicates, conditions) which column each condition is about; likewise `low` and `high`.
        enough: stop counting here.
    """
    for i in range(columns.shape[0]):
        found = 0
        for r in range(values.shape[0]):
            fits = True
            for c in range(columns.shape[1]):
                value = values[r, columns[i, c]]
                if not (low[i, c] <= value <= high[i, c]):
                    fits = False
                    break
            if fits:
                found += 1
                if found == enough:
                    break
        counts[i] = found


@compiled(error_model="numpy")
def nearest_candidates(
    point: Floats,
    rows: Floats,
    nominal: NDArray[np.bool_],
    widths: Floats,
    slack: float,
    rough_point: Floats,
    rough_rows: Floats,
    names: int,
    near: NDArray[np.int64],
    gaps: Floats,
) -> tuple[int, float]:
    """Number of rows as near as any before them, and the largest distance that counts as nearest.

    Args:
        point: values of all columns.
        rows: (rows, columns), each row contiguous.
        slack: distance differences within rounding.
        rough_point: the same point, nominal columns first, numbers divided by their widths.
        rough_rows: the same for the rows.
        names: number of nominal columns.
        near: filled with the row numbers.
        gaps: filled with the rows' distances, summed in column order.
    """
    columns = nominal.size
    size = 0.0
    for j in range(names, columns):
        size += abs(rough_point[j])
    best = reach = rough_reach = np.inf
    seen = 0
    for r in range(rows.shape[0]):
        rough = 0.0
        for j in range(names):
            if rough_point[j] != rough_rows[r, j]:
                rough += 1.0
        if rough > rough_reach:
            continue
        for j in range(names, columns):
            rough += abs(rough_point[j] - rough_rows[r, j])
        if rough > rough_reach:
            continue
        gap = 0.0
        for j in range(columns):
            if nominal[j]:
                if point[j] != rows[r, j]:
                    gap += 1.0
            else:
                gap += abs(point[j] - rows[r, j]) / widths[j]
        if gap <= reach:
            near[seen] = r
            gaps[seen] = gap
            seen += 1
            if gap < best:
                best = gap
                reach = best + slack
                rough_reach = reach + ROUNDING * (1.0 + reach + size)
    return seen, reach
