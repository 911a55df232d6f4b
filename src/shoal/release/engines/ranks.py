"""Clusters of ranks from a histogram: counts of positions come in, exact sums and ends of every cluster leave.

Sorted, equal positions side by side, a column is its histogram. Whatever a cluster of consecutive ranks sums up to
follows from it, so that no record is needed to know it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs.measure_one import Histogram
from shoal.mechanisms.sensitivity import CALIBRATIONS
from shoal.partition import Partition
from shoal.release.engines.blobs import Blob
from shoal.release.engines.tasks import Route, given_values

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Records of a range, about, and of a position that is cut by its rows.
RANGE = 1 << 20
HEAVY = 4 * RANGE
# Of a sorted cluster, how far a record can move its sum shows at the first and the last three.
_ENDS = 3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A column in order of rank, cut into clusters. Private.

    Attributes:
        positions, counts: its histogram.
        sizes: of the clusters, in order of rank; records without a value are one more, behind all others.
    """

    positions: Integers
    counts: Integers
    sizes: Integers

    @classmethod
    def of(cls, histogram: Histogram, sizes: Integers, missing: int = 0) -> Ranked:
        """`missing` records without a value count as the first of the domain, in a cluster of their own."""
        assert histogram.counts is not None
        if not missing:
            return cls(histogram.positions, histogram.counts, sizes)
        return cls(
            np.append(histogram.positions, 0), np.append(histogram.counts, missing), np.append(sizes, missing)
        )

    @property
    def ends(self) -> Integers:
        return np.cumsum(self.sizes)

    def at(self, ranks: Integers) -> Integers:
        """Positions at ranks."""
        found: Integers = self.positions[np.searchsorted(np.cumsum(self.counts), ranks, side="right")]
        return found

    def sums(self) -> Integers:
        """Exact sum of the positions of every cluster.

        >>> Ranked(np.array([1, 5]), np.array([3, 2]), np.array([2, 3])).sums().tolist()
        [2, 11]
        """
        running = np.cumsum(self.counts)
        totals = np.concatenate(([0], np.cumsum(self.positions * self.counts)))
        place = np.searchsorted(running, self.ends, side="left")
        # the last position of a cluster may go on in the next one
        beyond = running[place] - self.ends
        upto = totals[place + 1] - beyond * self.positions[place]
        found: Integers = np.diff(upto, prepend=0)
        return found

    def runs(self) -> tuple[Integers, Integers, Integers]:
        """Cluster, position and number of records of every run of equal positions inside a cluster."""
        running = np.cumsum(self.counts)
        cuts = np.unique(np.concatenate((running, self.ends)))
        first = np.concatenate(([0], cuts[:-1]))
        return (
            np.searchsorted(self.ends, first, side="right"),
            self.positions[np.searchsorted(running, first, side="right")],
            cuts - first,
        )

    def outline(self) -> tuple[Integers, Partition]:
        """The records at both ends of every cluster, which stand for all of it where only its ends matter."""
        few = np.minimum(self.sizes, 2 * _ENDS)
        labels = np.repeat(np.arange(self.sizes.size), few)
        place = np.arange(labels.size) - np.repeat(np.cumsum(few) - few, few)
        starts = self.ends - self.sizes
        # the second half counts from the end
        from_end = place >= few[labels] - _ENDS
        ranks = np.where(
            from_end & (self.sizes[labels] > 2 * _ENDS),
            self.ends[labels] - (few[labels] - place),
            starts[labels] + place,
        )
        return self.at(ranks), Partition(labels, few)

    def calibrated_sums(self, sensitivity: str) -> Integers:
        """What a method of this sensitivity sums up in its clusters."""
        sums = self.sums()
        positions, partition = self.outline()
        inner = CALIBRATIONS[sensitivity].sums(positions, partition)
        # what the ends' own sum lacks is what the rest of the cluster adds
        return sums + inner - partition.sums(positions)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """How the records of all columns are spread over buckets.

    Attributes:
        starts: rank at which the range of each bucket begins; one more for the end of the last of each column.
    """

    routes: tuple[Route, ...]
    starts: Integers
    ends: Integers

    @property
    def buckets(self) -> int:
        return self.starts.size

    def given(self, number: int, sizes: Integers, values: Floats) -> list[Blob]:
        """The values of a column's clusters, cut into its ranges."""
        route = self.routes[number]
        running = np.cumsum(sizes)
        found = []
        for bucket in range(route.first, route.first + route.buckets):
            low, high = int(self.starts[bucket]), int(self.ends[bucket])
            if low == high:
                continue
            first, last = np.searchsorted(running, [low, high - 1], side="right")
            here = sizes[first : last + 1].copy()
            here[-1] -= int(running[last]) - high
            here[0] -= low - (int(running[first]) - int(sizes[first]))
            found.append(given_values(bucket, here, values[first : last + 1]))
        return found


def heavy_positions(histogram: Histogram, limit: int = HEAVY) -> list[int]:
    """Positions that more records have than one task should hold."""
    assert histogram.counts is not None
    found: list[int] = histogram.positions[histogram.counts > limit].tolist()
    return found


def lay_ranges(
    histograms: Sequence[Histogram],
    heavy: Mapping[tuple[int, int], tuple[Integers, Integers]],
    run: int,
    size: int = RANGE,
) -> Ranges:
    """Ranges of about `size` records of every column.

    Args:
        histograms: of the columns.
        heavy: for a column's number and a heavy position, runs of `run` rows with how many records of it each has.
    """
    routes, starts, ends = [], [], []
    first = 0
    for number, histogram in enumerate(histograms):
        assert histogram.counts is not None
        positions, counts = histogram.positions, histogram.counts
        mine = [position for column, position in heavy if column == number]
        alone = np.isin(positions, mine)
        # a new range begins where the one before is full, and on both sides of a heavy position
        part = (np.cumsum(counts) - counts) // size
        begins = np.concatenate(([True], (part[1:] != part[:-1]) | alone[1:] | alone[:-1]))
        at = np.flatnonzero(begins)
        before = np.concatenate(([0], np.cumsum(counts)))
        bounds = np.append(before[at], before[-1])
        cut_rows: dict[int, Integers] = {}
        for place, index in enumerate(at.tolist()):
            low, high = int(bounds[place]), int(bounds[place + 1])
            position = int(positions[index])
            if position not in mine:
                starts.append(low)
                ends.append(high)
                continue
            runs, many = heavy[number, position]
            rows, inside = _cut_runs(runs, many, run, size)
            cut_rows[position] = rows
            edges = [low, *(low + inside).tolist(), high]
            starts += edges[:-1]
            ends += edges[1:]
        routes.append(Route(first, positions[at[1:]], cut_rows))
        first += routes[-1].buckets
    return Ranges(tuple(routes), np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))


def _cut_runs(runs: Integers, many: Integers, run: int, size: int) -> tuple[Integers, Integers]:
    """Rows at which a heavy position is cut, and how many of its records come before each."""
    before = np.cumsum(many) - many
    begins = np.flatnonzero(np.diff(before // size, prepend=0))
    begins = begins[begins > 0]
    return runs[begins] * run, before[begins]
