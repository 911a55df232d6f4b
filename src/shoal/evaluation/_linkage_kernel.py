"""Rows and original records come in, each row's linkage credit leaves: a row is settled by the first closer record."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# records that stay in the cache while all rows are compared with them
BLOCK = 256


@njit(cache=True, nogil=True)
def scan(
    tables: Floats,
    starts: Integers,
    widths: Integers,
    row_codes: Integers,
    codes: Integers,
    row_values: Floats,
    values: Floats,
    weights: Integers,
    own: Integers,
    slack: Floats,
) -> Floats:
    """Credit of each row: 1/|G| if no record is nearer than its own, G being the records as near as that; else 0.

    Args:
        tables: squared distances of nominal values, one table after the other.
        starts: where the table of each nominal attribute begins.
        widths: length of a line of each table.
        row_codes: (rows, attributes) line of each row in the table.
        codes: (records, attributes) place of each distinct record in a line.
        row_values: (rows, attributes) scaled numbers of the rows.
        values: (records, attributes) scaled numbers of the distinct records.
        weights: how many records each distinct one stands for.
        own: which distinct record each row came from.
        slack: differences of distances that are rounding.
    """
    count, nominal = codes.shape
    numeric = values.shape[1]
    low, high = np.empty(own.size), np.empty(own.size)
    for r in range(own.size):
        mine = own[r]
        total = 0.0
        for j in range(nominal):
            total += tables[starts[j] + row_codes[r, j] * widths[j] + codes[mine, j]]
        for j in range(numeric):
            step = row_values[r, j] - values[mine, j]
            total += step * step
        distance = np.sqrt(total)
        low[r] = max(distance - slack[r], 0.0) ** 2
        high[r] = (distance + slack[r]) ** 2
    tied = np.zeros(own.size, np.int64)
    alive = np.arange(own.size)
    living = own.size
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        kept = 0
        for a in range(living):
            r = alive[a]
            closer = False
            for i in range(start, stop):
                total = 0.0
                for j in range(nominal):
                    total += tables[starts[j] + row_codes[r, j] * widths[j] + codes[i, j]]
                    if total > high[r]:
                        break
                if total > high[r]:
                    continue
                for j in range(numeric):
                    step = row_values[r, j] - values[i, j]
                    total += step * step
                    if total > high[r]:
                        break
                if total < low[r]:
                    closer = True
                    break
                if total <= high[r]:
                    tied[r] += weights[i]
            if not closer:
                alive[kept] = r
                kept += 1
        living = kept
    credits = np.zeros(own.size)
    for a in range(living):
        credits[alive[a]] = 1.0 / tied[alive[a]]
    return credits
