"""Compiled linear scan for the nearest and the farthest records in contiguous columns."""

from __future__ import annotations

import numpy as np

from shoal.kernels import compiled
from shoal.numbers import Floats, Integers

# Distances of one block stay in the first-level cache between being computed and being compared.
BLOCK = 512
NO_INDEX = 2**62


@compiled(keep=False)
def add_squares(columns: Floats, start: int, count: int, point: Floats, out: Floats) -> None:
    """out[i] = (x0-p0)^2 + (x1-p1)^2 + ... in this order; four attributes per pass save loads and stores."""
    d = point.size
    j = 0
    total = out[:count]
    if d >= 4:
        a, b = columns[0, start : start + count], columns[1, start : start + count]
        c, e = columns[2, start : start + count], columns[3, start : start + count]
        p, q, r, s = point[0], point[1], point[2], point[3]
        for i in range(count):
            t = (a[i] - p) * (a[i] - p)
            t += (b[i] - q) * (b[i] - q)
            t += (c[i] - r) * (c[i] - r)
            total[i] = t + (e[i] - s) * (e[i] - s)
        j = 4
    else:
        a, p = columns[0, start : start + count], point[0]
        for i in range(count):
            total[i] = (a[i] - p) * (a[i] - p)
        j = 1
    while j + 4 <= d:
        a, b = columns[j, start : start + count], columns[j + 1, start : start + count]
        c, e = columns[j + 2, start : start + count], columns[j + 3, start : start + count]
        p, q, r, s = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(count):
            t = total[i] + (a[i] - p) * (a[i] - p)
            t += (b[i] - q) * (b[i] - q)
            t += (c[i] - r) * (c[i] - r)
            total[i] = t + (e[i] - s) * (e[i] - s)
        j += 4
    while j < d:
        a, p = columns[j, start : start + count], point[j]
        for i in range(count):
            total[i] += (a[i] - p) * (a[i] - p)
        j += 1


@compiled(inline=True, keep=False)
def offer(heap: Floats, heap_index: Integers, size: int, distance: float, index: int) -> None:
    """Insert a record into the heap of the nearest so far, largest (distance, index) first.

    A heap of `size` records below its capacity grows by one; a full one drops its largest.
    """
    if size < heap.size:
        at = size
        while at > 0:
            above = (at - 1) // 2
            if heap[above] > distance or (heap[above] == distance and heap_index[above] > index):
                break
            heap[at], heap_index[at] = heap[above], heap_index[above]
            at = above
    else:
        at = 0
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            right = below + 1
            if right < size and (
                heap[right] > heap[below]
                or (heap[right] == heap[below] and heap_index[right] > heap_index[below])
            ):
                below = right
            if heap[below] < distance or (heap[below] == distance and heap_index[below] < index):
                break
            heap[at], heap_index[at] = heap[below], heap_index[below]
            at = below
    heap[at], heap_index[at] = distance, index


@compiled
def scan(
    columns: Floats, index: Integers, count: int, point: Floats, heap: Floats, heap_index: Integers
) -> tuple[float, int, int]:
    """Fill the heap with the nearest records; returns the farthest (distance, index) and the heap's size.

    Ties go to the lowest index. With a heap of capacity 0 only the farthest is found.
    """
    want = heap.size
    filled = 0
    worst, worst_index = np.inf, NO_INDEX
    best, best_index = -1.0, NO_INDEX
    distances = np.empty(BLOCK)
    for start in range(0, count, BLOCK):
        m = min(BLOCK, count - start)
        add_squares(columns, start, m, point, distances)
        inside = 0
        outside = 0
        for i in range(m):
            inside += distances[i] <= worst
            outside += distances[i] >= best
        if outside > 0:
            for i in range(m):
                t = distances[i]
                if t > best or (t == best and index[start + i] < best_index):
                    best, best_index = t, index[start + i]
        if inside > 0 and want > 0:
            for i in range(m):
                t = distances[i]
                if t < worst or (t == worst and index[start + i] < worst_index):
                    offer(heap, heap_index, filled, t, index[start + i])
                    filled = min(filled + 1, want)
                    if filled == want:
                        worst, worst_index = heap[0], heap_index[0]
    return best, best_index, filled


@compiled
def remove(
    columns: Floats, index: Integers, count: int, place: Integers, gone: Integers, cut: Floats, sums: Floats
) -> int:
    """Remove records: the last ones fill the gaps, their pieces leave the sums; returns the remaining number."""
    d = columns.shape[0]
    for g in range(gone.size):
        at = place[gone[g]]
        count -= 1
        for j in range(d):
            rest = columns[j, at]
            for piece in range(cut.shape[1]):
                lead = (rest + cut[j, piece]) - cut[j, piece]
                sums[j, piece] -= lead
                rest -= lead
            columns[j, at] = columns[j, count]
        index[at] = index[count]
        place[index[at]] = at
    return count
