"""One attribute of all records as measurements take it: positions as they are, or different ones with their counts.

What is measured of a single attribute depends on how many records have each position and on nothing else. So an engine
that never holds the records hands in counts, and gets the same numbers for the same draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

Integers = NDArray[np.int64]


@internal()
@dataclass(frozen=True, eq=False)
class Histogram:
    """Positions of the records of one attribute. Private.

    Attributes:
        positions: of all records, in any order; with `counts` different ones, in ascending order.
        counts: how many records have each position; None where every record is listed.
    """

    positions: Integers
    counts: Integers | None = None

    @cached_property
    def size(self) -> int:
        """Number of records."""
        return int(self.positions.size if self.counts is None else self.counts.sum())

    @cached_property
    def ordered(self) -> Integers:
        """The positions in ascending order."""
        return np.sort(self.positions) if self.counts is None else self.positions

    @cached_property
    def total(self) -> int:
        """Sum of the positions of all records."""
        return int((self.positions if self.counts is None else self.positions * self.counts).sum())

    def below(self, cut: int) -> int:
        """How many records have a position below a cut."""
        if self.counts is None:
            return int(np.count_nonzero(self.positions < cut))
        return int(self.counts[: np.searchsorted(self.positions, cut)].sum())

    def of_each(self, points: int) -> Integers:
        """How many records have each of the positions 0 .. points - 1.

        >>> Histogram(np.array([2, 0, 2])).of_each(3).tolist()
        [1, 0, 2]
        >>> Histogram(np.array([0, 2]), np.array([1, 2])).of_each(3).tolist()
        [1, 0, 2]
        """
        if self.counts is None:
            return np.bincount(self.positions, minlength=points).astype(np.int64)
        found = np.zeros(points, dtype=np.int64)
        found[self.positions] = self.counts
        return found

    def between(self, places: NDArray[np.intp]) -> Integers:
        """How many records there are between consecutive places of `ordered`."""
        if self.counts is None:
            return np.diff(places).astype(np.int64)
        running = np.concatenate(([0], np.cumsum(self.counts)))
        return np.diff(running[places])
