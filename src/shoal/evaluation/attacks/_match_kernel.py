"""Rows and conditions on their columns come in, how many rows fulfil them leaves."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def count(
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
        enough: where to stop counting.
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
