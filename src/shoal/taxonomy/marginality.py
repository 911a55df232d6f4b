"""Sums of distances over a tree. In: counts per concept, a table of distances. Out: marginalities, nearest, farthest.

The distance of a concept c and a value x depends on three depths only: theirs and that of their lowest common
ancestor. So values are counted by the ancestor under which they part from c and by their depth, and no table of pairs
is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.taxonomy.shape import Codes, Shape

Table = TypeVar("Table", NDArray[np.float64], NDArray[np.int64])

# Counts held at a time, clusters · concepts · levels.
BLOCK = 1 << 22


def whole_table(shape: Shape, bits: int) -> NDArray[np.int64]:
    """Distances by counts of ancestors, in whole units of 2^-bits."""
    return np.rint(np.ldexp(shape.distance_of_counts, bits)).astype(np.int64)


def counts_below(shape: Shape, histograms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Entry (cluster, concept, d): how many records hold a value of depth d inside the concept's subtree."""
    clusters = histograms.shape[0]
    below = np.zeros((clusters, shape.size, shape.levels), dtype=np.int64)
    running = np.zeros((clusters, shape.size + 1), dtype=np.int64)
    for depth, codes in enumerate(shape.by_depth):
        at_depth = np.zeros_like(histograms)
        at_depth[:, codes] = histograms[:, codes]
        np.cumsum(at_depth, axis=1, out=running[:, 1:])
        below[:, :, depth] = running[:, shape.ends] - running[:, :-1]
    return below


def parting(shape: Shape, table: Table, ancestor: int) -> Table:
    """Entry (d, D): the distance of a value of depth d and a concept of depth D that part at depth `ancestor`."""
    depths = np.arange(shape.levels)
    union = depths[:, np.newaxis] + depths + 1 - ancestor
    # depths above the ancestor's own do not occur: any entry will do
    found: Table = table[ancestor + 1, np.clip(union, 0, table.shape[1] - 1)]
    return found


def marginality_sums(
    shape: Shape, histograms: NDArray[np.int64], table: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Entry (cluster, c): the sum of the distances of c to the cluster's values, in the table's units, exactly.

    A concept with the ancestors a_0 (the root), a_1, ... a_D (itself) parts at a_j from what lies below a_j but not
    below a_{j+1}. Summed by parts, a_j contributes its counts times the difference of the tables of j and j - 1.

    Cost:
        Time clusters · concepts · levels², memory in blocks.
    """
    sums = np.zeros(histograms.shape, dtype=np.int64)
    rows = max(BLOCK // (shape.size * shape.levels), 1)
    for start in range(0, histograms.shape[0], rows):
        block = histograms[start : start + rows]
        _add_marginalities(shape, counts_below(shape, block), table, sums[start : start + rows])
    return sums


def _add_marginalities(
    shape: Shape, below: NDArray[np.int64], table: NDArray[np.int64], sums: NDArray[np.int64]
) -> None:
    clusters = below.shape[0]
    place = np.zeros(shape.size, dtype=np.int64)
    before = np.zeros((shape.levels, shape.levels), dtype=np.int64)
    for ancestor, codes in enumerate(shape.by_depth):
        here = parting(shape, table, ancestor)
        # values and concepts below the ancestor are at least as deep as it is
        gain = (here - before)[ancestor:, ancestor:]
        before = here
        parts = (below[:, codes, ancestor:].reshape(-1, gain.shape[0]) @ gain).reshape(
            clusters, codes.size, gain.shape[1]
        )
        place[codes] = np.arange(codes.size)
        for depth in range(ancestor, shape.levels):
            concepts = shape.by_depth[depth]
            above = place[shape.lines[concepts, ancestor]]
            sums[:, concepts] += parts[:, above, depth - ancestor]


def nearest_and_farthest(shape: Shape, domain: Codes, table: Table) -> tuple[Table, Table]:
    """For every concept the smallest and the largest entry of the table that a value of the domain gives it.

    Cost:
        Time concepts · levels².
    """
    indicator = np.zeros((1, shape.size), dtype=np.int64)
    indicator[0, domain] = 1
    below = counts_below(shape, indicator)[0]
    nearest = np.full(shape.size, table.max(), dtype=table.dtype)
    farthest = np.zeros(shape.size, dtype=table.dtype)
    for ancestor in range(shape.levels):
        entries = parting(shape, table, ancestor)
        for depth in range(ancestor, shape.levels):
            concepts = shape.by_depth[depth]
            apart = below[shape.lines[concepts, ancestor]]
            if depth > ancestor:
                apart = apart - below[shape.lines[concepts, ancestor + 1]]
            there = apart > 0
            column = entries[:, depth]
            low = np.where(there, column, nearest[concepts, np.newaxis]).min(axis=1)
            high = np.where(there, column, farthest[concepts, np.newaxis]).max(axis=1)
            nearest[concepts] = np.minimum(nearest[concepts], low)
            farthest[concepts] = np.maximum(farthest[concepts], high)
    return nearest, farthest


def histogram_blocks(
    shape: Shape, labels: Codes, codes: Codes, clusters: int, counts: Codes | None = None
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Counts per concept of one run of clusters after the other: which clusters, and entry (cluster, concept).

    With `counts` every label and code stands for so many records.

    Cost:
        One sort of the records; memory for a bounded number of counts at a time.
    """
    rows = max(BLOCK // (shape.size * shape.levels), 1)
    order = np.argsort(labels, kind="stable")
    sorted_labels, sorted_codes = labels[order], codes[order]
    weights = None if counts is None else counts[order]
    starts = np.arange(0, clusters, rows)
    borders = np.searchsorted(sorted_labels, np.append(starts, clusters))
    for start, first, last in zip(starts.tolist(), borders[:-1], borders[1:], strict=True):
        stop = min(start + rows, clusters)
        cells = (sorted_labels[first:last] - start) * shape.size + sorted_codes[first:last]
        here = None if weights is None else weights[first:last]
        found = np.bincount(cells, here, minlength=(stop - start) * shape.size)
        yield slice(start, stop), found.reshape(stop - start, shape.size).astype(np.int64, copy=False)
