"""The shape of a tree. In: parent codes in preorder. Out: depths, subtrees, common ancestors, semantic distances.

In preorder the subtree of a concept is the run of codes from it to `ends`, and the depth of the lowest common
ancestor of a < b is one less than the smallest depth among a+1 .. b. Nothing here is quadratic in the size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal

Codes = NDArray[np.int64]


@internal()
@dataclass(frozen=True, eq=False)
class Shape:
    """A tree without names.

    Attributes:
        parents: code of each concept's parent, smaller than its own; -1 for the root, which is concept 0.
    """

    parents: Codes

    @property
    def size(self) -> int:
        return int(self.parents.size)

    @cached_property
    def depths(self) -> Codes:
        """Number of steps up to the root."""
        found = [0] * self.size
        for code, parent in enumerate(self.parents[1:].tolist(), start=1):
            found[code] = found[parent] + 1
        return np.array(found, dtype=np.int64)

    @cached_property
    def levels(self) -> int:
        return int(self.depths.max()) + 1

    @cached_property
    def ends(self) -> Codes:
        """One past the last code of each concept's subtree."""
        ends = list(range(1, self.size + 1))
        parents = self.parents.tolist()
        for code in range(self.size - 1, 0, -1):
            ends[parents[code]] = max(ends[parents[code]], ends[code])
        return np.array(ends, dtype=np.int64)

    @cached_property
    def leaves(self) -> Codes:
        return np.flatnonzero(self.ends == np.arange(1, self.size + 1))

    @cached_property
    def by_depth(self) -> tuple[Codes, ...]:
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
        """Entry (p, i): the smallest depth among the 2^p codes from i on, where there are so many."""
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

    def common(self, a: Codes, b: Codes) -> Codes:
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
        """Entry (i, u): the distance of two concepts with i common ancestors and u ancestors together.

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
