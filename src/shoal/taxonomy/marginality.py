"""Distances in a taxonomy: depths, common ancestors, marginality, and the most central concept.

The distance of a concept c and a value x depends on three depths only: theirs and that of their lowest common
ancestor. So values are counted by their depth and by the ancestor at which they diverge from c, without a table of
pairs.

In preorder the subtree of a concept is the run of codes from it to `ends`, and the depth of the lowest common
ancestor of a < b is one less than the smallest depth among a+1 .. b. Nothing here is quadratic in the size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.numbers import Integers

Table = TypeVar("Table", NDArray[np.float64], NDArray[np.int64])

# Maximum number of counts in memory, clusters · concepts · levels.
BLOCK = 1 << 22


@internal()
@dataclass(frozen=True, eq=False)
class TreeShape:
    """A tree without names.

    Attributes:
        parents: code of each concept's parent, smaller than its own; -1 for the root, which is concept 0.
    """

    parents: Integers

    @property
    def size(self) -> int:
        return int(self.parents.size)

    @cached_property
    def depths(self) -> Integers:
        """Number of steps up to the root."""
        found = [0] * self.size
        for code, parent in enumerate(self.parents[1:].tolist(), start=1):
            found[code] = found[parent] + 1
        return np.array(found, dtype=np.int64)

    @cached_property
    def levels(self) -> int:
        return int(self.depths.max()) + 1

    @cached_property
    def ends(self) -> Integers:
        """One past the last code of each concept's subtree."""
        ends = list(range(1, self.size + 1))
        parents = self.parents.tolist()
        for code in range(self.size - 1, 0, -1):
            ends[parents[code]] = max(ends[parents[code]], ends[code])
        return np.array(ends, dtype=np.int64)

    @cached_property
    def leaves(self) -> Integers:
        return np.flatnonzero(self.ends == np.arange(1, self.size + 1))

    @cached_property
    def by_depth(self) -> tuple[Integers, ...]:
        """The codes of each level, ascending."""
        return tuple(np.flatnonzero(self.depths == depth) for depth in range(self.levels))

    @cached_property
    def lines(self) -> NDArray[np.int32]:
        """Row c: the ancestor of c at depth 0, 1, ... down to c itself, then -1."""
        lines = np.full((self.size, self.levels), -1, dtype=np.int32)
        for depth, codes in enumerate(self.by_depth):
            if depth:
                lines[codes, :depth] = lines[self.parents[codes], :depth]
            lines[codes, depth] = codes
        return lines

    @cached_property
    def _minima(self) -> NDArray[np.int16]:
        """Entry (p, i): the smallest depth among the 2^p codes from i on, where that many exist."""
        minima = np.tile(self.depths.astype(np.int16), (self.size.bit_length(), 1))
        for p in range(1, minima.shape[0]):
            half = 1 << (p - 1)
            np.minimum(minima[p - 1, :-half], minima[p - 1, half:], out=minima[p, :-half])
        return minima

    @cached_property
    def _powers(self) -> NDArray[np.int8]:
        """Entry g: the largest p with 2^p <= g."""
        powers = np.zeros(self.size + 1, dtype=np.int8)
        for power in range(1, self.size.bit_length()):
            powers[1 << power :] = power
        return powers

    def common(self, a: Integers, b: Integers) -> Integers:
        """Number of common ancestors, a concept counting among its own, of pairs in two equally long arrays."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        power = self._powers[high - low]
        # two runs of 2^power codes cover low+1 .. high; where low = high the answer is replaced
        first = np.minimum(low + 1, high)
        last = high + 1 - np.left_shift(1, power, dtype=np.int64)
        smallest = np.minimum(self._minima[power, first], self._minima[power, last]).astype(np.int64)
        return np.where(low == high, self.depths[low] + 1, smallest)

    @cached_property
    def distance_of_counts(self) -> NDArray[np.float64]:
        """Entry (i, u): the distance of two concepts with i common ancestors and u ancestors in the union.

        One entry at a time: equal ratios i/u must give equal numbers, so that ties are ties.
        """
        table = np.zeros((self.levels + 1, 2 * self.levels))
        for common in range(1, self.levels + 1):
            for union in range(common, 2 * self.levels):
                table[common, union] = math.log2(2 - common / union)
        return table

    def distances(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """log2(1 + (|A ∪ B| - |A ∩ B|) / |A ∪ B|) of the ancestor sets A and B of each pair."""
        first, second = np.broadcast_arrays(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))
        flat_first, flat_second = first.ravel(), second.ravel()
        common = self.common(flat_first, flat_second)
        union = self.depths[flat_first] + self.depths[flat_second] + 2 - common
        found: NDArray[np.float64] = self.distance_of_counts[common, union].reshape(first.shape)
        return found


def whole_table(shape: TreeShape, bits: int) -> NDArray[np.int64]:
    """Distances by counts of ancestors, in whole units of 2^-bits."""
    return np.rint(np.ldexp(shape.distance_of_counts, bits)).astype(np.int64)


def counts_below(shape: TreeShape, histograms: NDArray[np.int64]) -> NDArray[np.int64]:
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


def parting(shape: TreeShape, table: Table, ancestor: int) -> Table:
    """Entry (d, D): the distance of a value of depth d and a concept of depth D that diverge at depth `ancestor`."""
    depths = np.arange(shape.levels)
    union = depths[:, np.newaxis] + depths + 1 - ancestor
    # depths above the ancestor's own do not occur: any entry will do
    found: Table = table[ancestor + 1, np.clip(union, 0, table.shape[1] - 1)]
    return found


def marginality_sums(
    shape: TreeShape, histograms: NDArray[np.int64], table: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Entry (cluster, c): the sum of the distances of c to the cluster's values, in the table's units, exactly.

    A concept with the ancestors a_0 (the root), a_1, ... a_D (itself) diverges at a_j from the values below a_j but
    not below a_{j+1}. Summed by parts, a_j contributes its counts times the difference of the tables of j and j - 1.

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
    shape: TreeShape, below: NDArray[np.int64], table: NDArray[np.int64], sums: NDArray[np.int64]
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


def nearest_and_farthest(shape: TreeShape, domain: Integers, table: Table) -> tuple[Table, Table]:
    """For every concept the smallest and the largest table entry over the values of the domain.

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
    shape: TreeShape, labels: Integers, codes: Integers, clusters: int, counts: Integers | None = None
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Counts per concept, for one run of clusters after the other: the clusters, and entry (cluster, concept).

    With `counts`, every label and code stands for that many records.

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
