"""Exact sums over records. In: the bins of the records, attribute by attribute. Out: whole numbers, ready for the gate.

Every contrast of a pair of attributes is a signed sum of cells of its table of bins, so the records are passed once per
pair, whatever is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.pairs.plan import Group

Integers = NDArray[np.int64]


def half_functions(levels: int, level: int) -> Integers:
    """The functions of one level, one column for each node: +1 on its left half, -1 on its right, 0 elsewhere.

    >>> half_functions(2, 1).T.tolist()
    [[1, -1, 0, 0], [0, 0, 1, -1]]
    """
    bins = np.arange(1 << levels)
    found = np.zeros((bins.size, 1 << level), dtype=np.int64)
    found[bins, bins >> (levels - level)] = 1 - 2 * (bins >> (levels - level - 1) & 1)
    return found


@lru_cache(maxsize=256)
def functions(levels: int, level: int, bins: int) -> Integers:
    """Functions of a level, or for names (level -1) the indicators of their groups; not to be changed."""
    found = half_functions(levels, level) if level >= 0 else np.eye(bins, dtype=np.int64)
    found.setflags(write=False)
    return found


class PairCounts:
    """Counts of the records by the bins of two attributes, made when first asked for. Private.

    A record without a value of an attribute has the code behind its last bin, and is in no cell. `tables` are counts
    that were made before, by the numbers of the two attributes, the smaller one first.
    """

    def __init__(
        self,
        codes: Sequence[NDArray[np.uint8]],
        bins: Sequence[int],
        tables: Mapping[tuple[int, int], Integers] | None = None,
    ) -> None:
        self._codes, self._bins = codes, bins
        self._tables: dict[tuple[int, int], Integers] = dict(tables or {})

    def table(self, a: int, b: int) -> Integers:
        """Rows are the bins of attribute a, columns those of b."""
        if a > b:
            return self.table(b, a).T
        if (a, b) not in self._tables:
            first, second = self._bins[a], self._bins[b]
            both = self._codes[a].astype(np.uint16) * np.uint16(second + 1) + self._codes[b]
            counts = np.bincount(both, minlength=(first + 1) * (second + 1)).astype(np.int64)
            self._tables[a, b] = counts.reshape(first + 1, second + 1)[:first, :second]
        return self._tables[a, b]


def sign_products(counts: PairCounts, signs: Sequence[int], levels: Sequence[int], n: int) -> Integers:
    """The matrix of sums over records of products of signs, n on its diagonal.

    Guarantee:
        A record adds the outer product of a vector of signs with itself; where it has no value the products are 0,
        which is the mean of both signs.
    """
    found = np.full((len(signs), len(signs)), n, dtype=np.int64)
    for i, a in enumerate(signs):
        for j in range(i):
            b = signs[j]
            left, right = half_functions(levels[a], 0), half_functions(levels[b], 0)
            found[i, j] = found[j, i] = (left.T @ counts.table(a, b) @ right)[0, 0]
    return found


def group_sums(counts: PairCounts, group: Group, levels: Sequence[int], bins: Sequence[int]) -> Integers:
    """The sums of a group: cells of the pivot, partners, functions of the partner.

    Guarantee:
        A record is in one cell of the pivot, and there it changes one sum of each partner by one.
    """
    own = functions(levels[group.pivot], group.level, bins[group.pivot])
    parts = [
        own.T @ counts.table(group.pivot, b) @ functions(levels[b], group.depth, bins[b])
        for b in group.partners
    ]
    return np.stack(parts, axis=1)
