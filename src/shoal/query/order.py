"""The rows of a column in sorted order, made once when a table is prepared: a question then never sorts private values.

Everything has one entry for each row, whatever the rows hold: repeated and missing values make nothing shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

Whole = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Which rows have which position, smallest first; rows without a value, at -1, come before all others.

    Attributes:
        rows: numbers of all rows.
        values: their positions.
        ranks: how many rows lie below each position there is, and in all; only where these are few.

    >>> order = Order.of(np.array([5, -1, 2, 5]), 7)
    >>> order.rows.tolist(), order.values.tolist(), order.ranks.tolist()
    ([1, 2, 0, 3], [-1, 2, 5, 5], [1, 1, 1, 2, 2, 2, 4, 4])
    """

    rows: NDArray[np.intp]
    values: Whole
    ranks: Whole | None = None

    @classmethod
    def of(cls, positions: Whole, points: int = 0, mixed: NDArray[np.intp] | None = None) -> Order:
        """The order of these positions.

        Args:
            positions: of all rows.
            points: the number of positions there are, to keep the rank of each; 0 not to.
            mixed: the rows in the order in which those of one position come.
        """
        mixed = np.arange(positions.size) if mixed is None else mixed
        rows = mixed[np.argsort(positions[mixed], kind="stable")]
        values = positions[rows]
        ranks = np.searchsorted(values, np.arange(points + 1)).astype(np.int64) if points else None
        return cls(rows, values, ranks)

    def upto(self, chosen: NDArray[np.bool_]) -> Whole:
        """How many of the chosen rows with a value are among the first rows, for every number of rows: private."""
        counted = np.cumsum(chosen[self.rows] & (self.values >= 0), dtype=np.int64)
        return np.concatenate((np.zeros(1, dtype=np.int64), counted))

    def rank(self, points: Whole) -> Whole:
        """How many rows have a position below each of these public points: private.

        Looked up, or a search of as many steps as the number of rows has bits, the same for every point.
        """
        if self.ranks is not None:
            # an empty interval may begin behind the last point
            found: Whole = self.ranks[np.minimum(points, self.ranks.size - 1)]
            return found
        found = np.zeros(points.size, dtype=np.int64)
        for step in reversed([1 << bit for bit in range(self.values.size.bit_length())]):
            further = np.minimum(found + step, self.values.size)
            below = (found + step <= self.values.size) & (self.values[further - 1] < points)
            found += step * below
        return found

    def between(self, chosen: NDArray[np.bool_], lows: Whole, highs: Whole) -> Whole:
        """How many of the chosen rows lie in each interval, both ends included: private."""
        upto = self.upto(chosen)
        found: Whole = upto[self.rank(highs + 1)] - upto[self.rank(lows)]
        return found

    def inside(self, lows: Whole, highs: Whole) -> NDArray[np.bool_]:
        """Which rows lie in any of some intervals that have no position in common: private.

        However many intervals there are, every row is passed over once.
        """
        changes = np.zeros(self.values.size + 1, dtype=np.int32)
        np.add.at(changes, self.rank(lows), 1)
        np.add.at(changes, self.rank(highs + 1), -1)
        found = np.empty(self.values.size, dtype=np.bool_)
        found[self.rows] = np.cumsum(changes[:-1]) > 0
        return found
