"""Compiled loops of record linkage, special uniques and attacks.

Imported late because numba is slow to import.
"""

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


@compiled
def minimal_uniques(codes: Integers, levels: Integers, person: Integers) -> tuple[Integers, Integers]:
    """The pattern and the set of keys, one bit each, of every minimal sample unique.

    Key sets are visited in the order of their bits as numbers, so every subset of a set comes before it. A set is
    visited with the patterns that its parent, the set without its lowest key, could not separate, in groups. A pattern
    alone in its group, or grouped only with patterns of the same person, is unique; what was unique before is not
    minimal and has been removed. Groups without a record that can become unique are removed too.

    Args:
        codes: (keys, patterns), below 0 for a missing value.
        levels: number of codes of each key.
        person: the person of each pattern, from 0; below 0 if several persons have the pattern, which is never unique.
    """
    keys, size = codes.shape
    most = 1
    for key in range(keys):
        most = max(most, levels[key])
    rows = np.empty((keys + 1, size), dtype=np.int64)
    starts = np.zeros((keys + 1, size + 1), dtype=np.int64)
    groups = np.zeros(keys + 1, dtype=np.int64)
    sets = np.zeros(keys + 1, dtype=np.int64)
    following = np.zeros(keys + 1, dtype=np.int64)
    lowest = np.full(keys + 1, keys, dtype=np.int64)
    count = np.zeros(most, dtype=np.int64)
    hopeful = np.zeros(most, dtype=np.bool_)
    one_person = np.zeros(most, dtype=np.int64)
    place = np.zeros(most, dtype=np.int64)
    seen = np.empty(most, dtype=np.int64)
    # the uniques of a pattern form one linked list
    head = np.full(size, -1, dtype=np.int64)
    owner = np.empty(1024, dtype=np.int64)
    found = np.empty(1024, dtype=np.int64)
    behind = np.empty(1024, dtype=np.int64)
    number = 0
    for row in range(size):
        rows[0, row] = row
    starts[0, 1] = size
    groups[0] = 1 if size > 0 else 0
    depth = 0
    while depth >= 0:
        key = following[depth]
        if key == lowest[depth] or groups[depth] == 0:
            depth -= 1
            continue
        following[depth] += 1
        below = depth + 1
        inside = sets[depth] | (np.int64(1) << key)
        filled = 0
        groups[below] = 0
        for group in range(groups[depth]):
            different = 0
            for at in range(starts[depth, group], starts[depth, group + 1]):
                row = rows[depth, at]
                code = codes[key, row]
                if code < 0:
                    continue
                if count[code] == 0:
                    seen[different] = code
                    different += 1
                    hopeful[code] = False
                    one_person[code] = person[row]
                count[code] += 1
                hopeful[code] |= person[row] >= 0
                if one_person[code] != person[row]:
                    one_person[code] = -1
            for one in range(different):
                code = seen[one]
                if not hopeful[code]:
                    place[code] = -1
                elif one_person[code] < 0:
                    place[code] = filled
                    filled += count[code]
                    groups[below] += 1
                    starts[below, groups[below]] = filled
                else:
                    place[code] = -2
            for at in range(starts[depth, group], starts[depth, group + 1]):
                row = rows[depth, at]
                code = codes[key, row]
                if code < 0:
                    continue
                if place[code] >= 0:
                    rows[below, place[code]] = row
                    place[code] += 1
                elif place[code] == -2:
                    minimal = True
                    link = head[row]
                    while link >= 0:
                        if found[link] & inside == found[link]:
                            minimal = False
                            break
                        link = behind[link]
                    if minimal:
                        if number == owner.size:
                            owner = np.concatenate((owner, np.empty_like(owner)))
                            found = np.concatenate((found, np.empty_like(found)))
                            behind = np.concatenate((behind, np.empty_like(behind)))
                        owner[number] = row
                        found[number] = inside
                        behind[number] = head[row]
                        head[row] = number
                        number += 1
            for one in range(different):
                count[seen[one]] = 0
        if groups[below] > 0 and key > 0:
            sets[below] = inside
            lowest[below] = key
            following[below] = 0
            depth = below
    return owner[:number], found[:number]


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
