"""Compiled nearest-record search for record linkage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels import compiled
from shoal.numbers import Floats, Integers

# records that stay in the cache while all rows are compared with them
BLOCK = 256
# nominal attributes after which most records are out of reach; testing after each attribute costs more than it saves
FEW = 2


@compiled
def scan(
    tables: Floats,
    lines: Integers,
    codes: NDArray[np.int32],
    row_values: Floats,
    values: Floats,
    weights: Integers,
    own: Integers,
    slack: Floats,
) -> Floats:
    """Credit of each row: 1/|G| if no record is nearer than its own, G being the records as near as that; else 0.

    Args:
        tables: squared distances of nominal values, one table after the other.
        lines: (rows, attributes) where the line of each row's value begins.
        codes: (records, attributes) place of each distinct record's value in a line of distances.
        row_values: (rows, attributes) scaled numbers of the rows.
        values: (records, attributes) scaled numbers of the distinct records.
        weights: how many records each distinct one stands for.
        own: which distinct record each row came from.
        slack: distance differences within rounding.
    """
    count, nominal = codes.shape
    numeric = values.shape[1]
    few = min(FEW, nominal)
    low, high = np.empty(own.size), np.empty(own.size)
    for r in range(own.size):
        mine = own[r]
        total = 0.0
        for j in range(nominal):
            total += tables[lines[r, j] + codes[mine, j]]
        for j in range(numeric):
            step = row_values[r, j] - values[mine, j]
            total += step * step
        distance = np.sqrt(total)
        nearer, farther = max(distance - slack[r], 0.0), distance + slack[r]
        low[r], high[r] = nearer * nearer, farther * farther
    tied = np.zeros(own.size, np.int64)
    alive = np.arange(own.size)
    living = own.size
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        kept = 0
        for a in range(living):
            r = alive[a]
            closer = False
            line, most = lines[r], high[r]
            for i in range(start, stop):
                total = 0.0
                for j in range(few):
                    total += tables[line[j] + codes[i, j]]
                if total > most:
                    continue
                for j in range(few, nominal):
                    total += tables[line[j] + codes[i, j]]
                if total > most:
                    continue
                for j in range(numeric):
                    step = row_values[r, j] - values[i, j]
                    total += step * step
                    if total > most:
                        break
                if total < low[r]:
                    closer = True
                    break
                if total <= most:
                    tied[r] += weights[i]
            if not closer:
                alive[kept] = r
                kept += 1
        living = kept
    credits = np.zeros(own.size)
    for a in range(living):
        credits[alive[a]] = 1.0 / tied[alive[a]]
    return credits
