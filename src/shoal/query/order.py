"""The rows of a column in sorted order, made once when a table is prepared: a question then never sorts its own rows.

A sort of the chosen rows would take as long as there are rows to sort, and so tell how many were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Which rows have which position, smallest first; rows without a value are left out.

    Attributes:
        rows: numbers of the rows.
        values: the positions that occur.
        ends: how many of the rows have at most each of these positions, after a leading 0.

    >>> order = Order.of(np.array([5, -1, 2, 5]))
    >>> order.rows.tolist(), order.values.tolist(), order.ends.tolist()
    ([2, 0, 3], [2, 5], [0, 1, 3])
    """

    rows: NDArray[np.intp]
    values: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, positions: NDArray[np.int64]) -> Order:
        present = np.flatnonzero(positions >= 0)
        rows = present[np.argsort(positions[present], kind="stable")]
        values, counts = np.unique(positions[rows], return_counts=True)
        return cls(rows, values, np.concatenate(([0], np.cumsum(counts))).astype(np.int64))

    def upto(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of the chosen rows have at most each of the positions, after a leading 0: private.

        The same work whichever rows are chosen.
        """
        picked = np.cumsum(chosen[self.rows], dtype=np.int64)
        upto: NDArray[np.int64] = np.concatenate(([0], picked))[self.ends]
        return upto

    def between(
        self, chosen: NDArray[np.bool_], lows: NDArray[np.int64], highs: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How many of the chosen rows lie in each interval, both ends included: private."""
        upto = self.upto(chosen)
        first = np.searchsorted(self.values, lows, side="left")
        last = np.searchsorted(self.values, highs, side="right")
        found: NDArray[np.int64] = upto[last] - upto[first]
        return found
