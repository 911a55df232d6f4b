"""Records in, a tree of boxes over them out; and the shell, the records farthest from a centre in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.display import internal
from shoal.partition._kernels_cache import cached
from shoal.partition._kernels_tree import Tree, close_boxes
from shoal.partition._kernels_vector import LEAF, distances_within

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Rows looked at to choose the attribute a large node is split on.
SAMPLE = 256
# The shell is sorted down to runs of this many records.
SHELL_RUN = 8


@internal()
class Shell(NamedTuple):
    """The outermost records at some moment, roughly farthest first; records that left since are still listed."""

    values: Floats  # (capacity, d)
    radius: Floats  # (capacity,): at least the distances of this and all later entries to the centre then
    record: Integers  # (capacity,)
    centre: Floats  # (d,)
    state: (
        Integers  # (4,): first possibly live entry, number of entries, records in all then, complete or not
    )


@njit(nogil=True, forceinline=True)
def swap_rows(rows: Floats, index: Integers, a: int, b: int) -> None:
    for j in range(rows.shape[1]):
        t = rows[a, j]
        rows[a, j] = rows[b, j]
        rows[b, j] = t
    t_index = index[a]
    index[a] = index[b]
    index[b] = t_index


@njit(nogil=True, forceinline=True)
def median_of_three(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@njit(nogil=True)
def select(rows: Floats, index: Integers, start: int, stop: int, nth: int, column: int) -> None:
    """Order rows so that those before `nth` are not larger in a column, and those from it on not smaller."""
    low, high = start, stop - 1
    chance = np.uint64(0x9E3779B97F4A7C15)
    while low < high:
        if high - low < 64:
            pivot = median_of_three(rows[low, column], rows[(low + high) // 2, column], rows[high, column])
        else:
            # Three medians at scattered places: no order of the input makes this quadratic in practice.
            span = np.uint64(high - low + 1)
            medians = (0.0, 0.0, 0.0)
            for _ in range(3):
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                at = np.int64((chance >> np.uint64(33)) % span)
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                also = np.int64((chance >> np.uint64(33)) % span)
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                third = np.int64((chance >> np.uint64(33)) % span)
                found = median_of_three(
                    rows[low + at, column], rows[low + also, column], rows[low + third, column]
                )
                medians = (medians[1], medians[2], found)
            pivot = median_of_three(medians[0], medians[1], medians[2])
        a, b = low, high
        while a <= b:
            while rows[a, column] < pivot:
                a += 1
            while rows[b, column] > pivot:
                b -= 1
            if a <= b:
                swap_rows(rows, index, a, b)
                a += 1
                b -= 1
        if nth <= b:
            high = b
        elif nth >= a:
            low = a
        else:
            return


@njit(nogil=True)
def widest(rows: Floats, start: int, stop: int) -> int:
    """The attribute that spreads most, judged on a sample of rows."""
    if rows.shape[1] == 1:
        return 0
    step = max(1, (stop - start) // SAMPLE)
    best, column = -1.0, 0
    for j in range(rows.shape[1]):
        total = 0.0
        count = 0
        for i in range(start, stop, step):
            total += rows[i, j]
            count += 1
        mean = total / count
        spread = 0.0
        for i in range(start, stop, step):
            spread += (rows[i, j] - mean) * (rows[i, j] - mean)
        if spread > best:
            best, column = spread, j
    return column


@cached
def order_rows(rows: Floats, index: Integers, run: int) -> None:
    """Order rows so that aligned runs of `run` rows, and of 2, 4, 8 ... such runs, are compact in space.

    With one column: ascending, except for the order inside a run.
    """
    starts = np.empty(128, dtype=np.int64)
    stops = np.empty(128, dtype=np.int64)
    starts[0], stops[0] = 0, rows.shape[0]
    top = 1
    while top > 0:
        top -= 1
        start, stop = starts[top], stops[top]
        runs = (stop - start + run - 1) // run
        if runs <= 1:
            continue
        half = 1
        while 2 * half < runs:
            half *= 2
        middle = start + half * run
        select(rows, index, start, stop, middle, widest(rows, start, stop))
        starts[top], stops[top] = start, middle
        starts[top + 1], stops[top + 1] = middle, stop
        top += 2


@cached
def live_rows(tree: Tree, rows: Floats, index: Integers) -> int:
    """Copy the live records out in the order of the leaves; returns their number."""
    values, record, live, _, _, _, _, _, _, _, _, _ = tree
    at = 0
    for leaf in range(live.size):
        for i in range(live[leaf]):
            for j in range(rows.shape[1]):
                rows[at, j] = values[leaf, j, i]
            index[at] = record[leaf, i]
            at += 1
    return at


@cached
def fill(tree: Tree, rows: Floats, index: Integers) -> None:
    """Put ordered rows into the leaves and fit all boxes."""
    values, record, live, _, _, _, _, _, place, reference, _, _ = tree
    n, d = rows.shape
    distances = np.empty(LEAF)
    for leaf in range(live.size):
        start = leaf * LEAF
        m = max(0, min(LEAF, n - start))
        live[leaf] = m
        for i in range(m):
            for j in range(d):
                values[leaf, j, i] = rows[start + i, j]
            record[leaf, i] = index[start + i]
            place[index[start + i]] = start + i
        distances_within(values, leaf, reference, 0.0, distances)
        for i in range(LEAF):
            values[leaf, d, i] = np.sqrt(distances[i])
    close_boxes(tree, np.arange(live.size), np.empty(live.size, dtype=np.int64), -1)


@njit(nogil=True)
def build_shell(tree: Tree, shell: Shell, centre: Floats, alive: int, key: Floats, index: Integers) -> None:
    """List the outermost sixteenth of the live records, farthest from a centre first.

    Args:
        tree: the live records.
        shell: where to write.
        centre: where distances are measured from.
        alive: number of live records.
        key: working memory, shape (n, 1).
        index: working memory, shape (n,).
    """
    values, record, live, _, _, _, _, _, place, _, _, _ = tree
    distances = np.empty(LEAF)
    at = 0
    for leaf in range(live.size):
        m = live[leaf]
        if m > 0:
            distances_within(values, leaf, centre, 0.0, distances)
            for i in range(m):
                key[at, 0] = distances[i]
                index[at] = record[leaf, i]
                at += 1
    size = min(alive, max(alive // 16, 64))
    if size < alive:
        select(key, index, 0, alive, alive - size, 0)
    shell_values, shell_radius, shell_record, shell_centre, state = shell
    outer = key[alive - size : alive]
    outer_index = index[alive - size : alive]
    order_rows(outer, outer_index, SHELL_RUN)
    largest = 0.0
    for source in range(size):
        t = size - 1 - source
        largest = max(largest, outer[source, 0])
        leaf, slot = place[outer_index[source]] // LEAF, place[outer_index[source]] % LEAF
        for j in range(centre.size):
            shell_values[t, j] = values[leaf, j, slot]
        shell_radius[t] = np.sqrt(largest)
        shell_record[t] = outer_index[source]
    for j in range(centre.size):
        shell_centre[j] = centre[j]
    state[0], state[1], state[2], state[3] = 0, size, alive, size == alive
