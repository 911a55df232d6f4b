"""Ranks over all parts of a table: find clusters of records that are adjacent in rank order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.engines import Blob, Reading, batch_of, packed, scattered
from shoal.mechanisms import CALIBRATIONS, Histogram
from shoal.numbers import Floats, Integers
from shoal.partition import Partition, stable_order
from shoal.release.in_parts.tasks import Route, given_values
from shoal.release.in_parts.work import RUN

if TYPE_CHECKING:
    import pyarrow as pa


# Approximate number of records of a range, and of a position that is cut by its rows.
RANGE = 1 << 20
HEAVY = 4 * RANGE
# In a sorted cluster, the first and last three records determine how far a record can move its sum.
_ENDS = 3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A column in rank order, cut into clusters. Private.

    Attributes:
        positions, counts: its histogram.
        sizes: of the clusters, in rank order; records without a value form one more, after all others.
    """

    positions: Integers
    counts: Integers
    sizes: Integers

    @classmethod
    def of(cls, histogram: Histogram, sizes: Integers, missing: int = 0) -> Ranked:
        """`missing` records without a value count as the first position of the domain, in a separate cluster."""
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
        # the last position of a cluster may continue in the next one
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
        """The records at both ends of every cluster, which represent it where only its ends matter."""
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
        """The sums over clusters that a method of this sensitivity uses."""
        sums = self.sums()
        positions, partition = self.outline()
        inner = CALIBRATIONS[sensitivity].sums(positions, partition)
        # the rest of the cluster adds what the sum of the ends lacks
        return sums + inner - partition.sums(positions)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """How the records of all columns are distributed over buckets.

    Attributes:
        starts: rank at which the range of each bucket begins, plus one for the end of the last of each column.
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
    """Positions with more records than one task should hold."""
    assert histogram.counts is not None
    found: list[int] = histogram.positions[histogram.counts > limit].tolist()
    return found


def lay_ranges(
    histograms: Sequence[Histogram],
    heavy: Mapping[tuple[int, int], tuple[Integers, Integers]],
    run: int,
    size: int = RANGE,
) -> Ranges:
    """Ranges of about `size` records for every column.

    Args:
        histograms: of the columns.
        heavy: for a column's number and a heavy position, runs of `run` rows with the number of its records in each.
    """
    routes, starts, ends = [], [], []
    first = 0
    for number, histogram in enumerate(histograms):
        assert histogram.counts is not None
        positions, counts = histogram.positions, histogram.counts
        mine = [position for column, position in heavy if column == number]
        alone = np.isin(positions, mine)
        # a new range begins where the previous one is full, and on both sides of a heavy position
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
    """Rows at which a heavy position is cut, and the number of its records before each cut."""
    before = np.cumsum(many) - many
    begins = np.flatnonzero(np.diff(before // size, prepend=0))
    begins = begins[begins > 0]
    return runs[begins] * run, before[begins]


# Tags in a bucket: data from the driver, and columns that stay unchanged. Other tags are column numbers.
GIVEN, STAYING = -2, -3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RankBuckets:
    """Ranges of ranks of a column, one per bucket, cut where groups begin.

    Attributes:
        number: of the column among the ranked ones.
        first: number of the first bucket.
        keys: rank order of each position; None where positions are in that order.
        heavy: positions whose records are also separated by their rows.
        runs: of rows in the table; a cell is a key and, of a heavy position, a run of rows.
        firsts, lasts: the cells of every range.
        before: rank of the first record of the first cell of every range.
        starts, ends: ranks at which each range begins and ends.
    """

    number: int
    first: int
    keys: Integers | None
    heavy: tuple[int, ...]
    runs: int
    firsts: Integers
    lasts: Integers
    before: Integers
    starts: Integers
    ends: Integers

    @property
    def buckets(self) -> int:
        return self.starts.size

    def cells(self, positions: Integers, rows: Integers) -> Integers:
        keys = positions if self.keys is None else self.keys[positions]
        cells = keys * self.runs
        for position in self.heavy:
            here = positions == position
            cells[here] += rows[here] // RUN
        return cells

    def targets(self, positions: Integers, rows: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Positions of records in the table, with their buckets; those of a cell at a cut go to several."""
        cells = self.cells(positions, rows)
        low = np.searchsorted(self.lasts, cells, side="left")
        high = np.searchsorted(self.firsts, cells, side="right") - 1
        which = np.arange(cells.size)
        while which.size:
            yield which, self.first + low[which]
            low += 1
            which = which[low[which] <= high[which]]

    def given(self, sizes: Integers, *arrays: Floats) -> list[Blob]:
        """Sizes of the groups and their data, cut into the ranges."""
        cuts = np.searchsorted(np.cumsum(sizes), self.ends, side="left")[:-1] + 1
        parts = zip(*(np.split(one, cuts) for one in (sizes, *arrays)), strict=True)
        return [
            (self.first + place, GIVEN, packed(np.array([self.number]), *part))
            for place, part in enumerate(parts)
        ]


def lay_rank_buckets(
    number: int,
    first: int,
    rows: int,
    histogram: Histogram,
    sizes: Integers,
    keys: Integers | None,
    heavy: Mapping[int, tuple[Integers, Integers]],
) -> RankBuckets:
    """Ranges of about `RANGE` ranks.

    Args:
        number, first, keys: as in `Neighbours`.
        rows: of the table.
        sizes: of the groups, in order of rank.
        heavy: for a heavy position, runs of rows with the number of its records in each.
    """
    assert histogram.counts is not None
    runs = rows // RUN + 1
    own = histogram.positions if keys is None else keys[histogram.positions]
    light = ~np.isin(histogram.positions, list(heavy))
    cells, counts = [own[light] * runs], [histogram.counts[light]]
    for position, (those, many) in heavy.items():
        key = position if keys is None else int(keys[position])
        cells.append(key * runs + those)
        counts.append(many)
    cell, count = np.concatenate(cells), np.concatenate(counts)
    order = np.argsort(cell)
    cell, count = cell[order], count[order]
    after = np.cumsum(count)
    begins = np.cumsum(sizes) - sizes
    starts = begins[np.flatnonzero(np.diff(begins // RANGE, prepend=-1))]
    ends = np.append(starts[1:], after[-1])
    low = np.searchsorted(after, starts, side="right")
    high = np.searchsorted(after, ends - 1, side="right")
    before = after[low] - count[low]
    return RankBuckets(number, first, keys, tuple(heavy), runs, cell[low], cell[high], before, starts, ends)


def to_rank_buckets(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    routes: Mapping[str, RankBuckets],
    values: Callable[[Described, str], NDArray[Any]],
    staying: Sequence[str],
    apart: int,
) -> Iterator[pa.RecordBatch]:
    """Send the values of ranked columns to their buckets.

    Unchanged columns, and rows whose value stays missing, go to buckets from `apart` on.
    """
    for part, here in reading.parts(batches, described):
        found: list[Blob] = []
        for name, route in routes.items():
            positions, own, rows = here.positions(name)[0], values(here, name), part.rows
            if name in here.gaps:
                missing = rows[here.gaps[name]]
                found += scattered(apart + missing // RANGE, route.number, missing)
                present = ~here.gaps[name]
                positions, own, rows = positions[present], own[present], rows[present]
            for which, buckets in route.targets(positions, rows):
                found += scattered(buckets, route.number, rows[which], own[which])
        if staying:
            others = [values(here, name) for name in staying]
            found += scattered(apart + part.rows // RANGE, STAYING, part.rows, *others)
        yield batch_of(found)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Owned:
    """The records of a range, in rank order.

    Attributes:
        start: rank of the first.
        sizes: of their groups.
        given: what the driver supplied, group by group.
    """

    name: str
    number: int
    start: int
    sizes: Integers
    given: list[Floats]
    rows: Integers
    values: NDArray[Any]


def owned(
    bucket: int,
    parts: Mapping[int, list[list[NDArray[Any]]]],
    routes: Mapping[str, RankBuckets],
    ranks: Callable[[str, NDArray[Any]], NDArray[Any]],
) -> Owned:
    """Read the bucket of a range; `ranks` gives the values to order by. Equal ones are ordered by row."""
    (((number,), sizes, *given),) = parts[GIVEN]
    name, route = next((name, route) for name, route in routes.items() if route.number == number)
    rows, values = (np.concatenate([blob[place] for blob in parts[route.number]]) for place in (0, 1))
    by_row = stable_order(rows)
    order = by_row[stable_order(ranks(name, values[by_row]))]
    # records of the cells at both ends that belong to other ranges are left to those
    place = bucket - route.first
    start, low = int(route.starts[place]), int(route.starts[place] - route.before[place])
    order = order[low : low + int(route.ends[place]) - start]
    return Owned(name, route.number, start, sizes, given, rows[order], values[order])
