"""Whole groups of ranks on engines: counts of positions come in, ranges of ranks that are cut where groups begin leave.

Where the records of a group must be in one task, a range gets every record that may be in it: those of the position at
a cut go to both sides, and each side keeps its own ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.display import internal
from shoal.mechanisms.pairs.measure_one import Histogram
from shoal.partition.base import stable_order
from shoal.release.engines.blobs import Blob, batch_of, packed, scattered
from shoal.release.engines.ranks import RANGE
from shoal.release.engines.reading import Reading
from shoal.release.engines.work import RUN

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Among the parts of a bucket: what the driver gives, and columns that stay as they are. Others are numbers of columns.
GIVEN, STAYING = -2, -3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Ranges of ranks of a column, each a bucket, cut where groups begin.

    Attributes:
        number: of the column among those that are ranked.
        first: number of the first bucket.
        keys: where each position stands in the order of ranks; None where positions are in that order.
        heavy: positions whose records are told apart by their rows, too.
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
        """Records by their places, and the buckets that get them; those of a cell at a cut come several times."""
        cells = self.cells(positions, rows)
        low = np.searchsorted(self.lasts, cells, side="left")
        high = np.searchsorted(self.firsts, cells, side="right") - 1
        which = np.arange(cells.size)
        while which.size:
            yield which, self.first + low[which]
            low += 1
            which = which[low[which] <= high[which]]

    def given(self, sizes: Integers, *arrays: Floats) -> list[Blob]:
        """Sizes of the groups and what belongs to them, cut into the ranges."""
        cuts = np.searchsorted(np.cumsum(sizes), self.ends, side="left")[:-1] + 1
        parts = zip(*(np.split(one, cuts) for one in (sizes, *arrays)), strict=True)
        return [
            (self.first + place, GIVEN, packed(np.array([self.number]), *part))
            for place, part in enumerate(parts)
        ]


def lay_neighbours(
    number: int,
    first: int,
    rows: int,
    histogram: Histogram,
    sizes: Integers,
    keys: Integers | None,
    heavy: Mapping[int, tuple[Integers, Integers]],
) -> Neighbours:
    """Ranges of about `RANGE` ranks.

    Args:
        number, first, keys: as in `Neighbours`.
        rows: of the table.
        sizes: of the groups, in order of rank.
        heavy: for a heavy position, runs of rows with how many records of it each has.
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
    return Neighbours(number, first, keys, tuple(heavy), runs, cell[low], cell[high], before, starts, ends)


def to_neighbours(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    routes: Mapping[str, Neighbours],
    values: Callable[[Described, str], NDArray[Any]],
    staying: Sequence[str],
    apart: int,
) -> Iterator[pa.RecordBatch]:
    """Values of ranked columns on the way to their neighbours.

    Columns that stay as they are, and rows whose value stays missing, go to buckets from `apart` on.
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
    """The records of a range, in order of rank.

    Attributes:
        start: rank of the first.
        sizes: of their groups.
        given: what the driver gave, group by group.
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
    routes: Mapping[str, Neighbours],
    ranks: Callable[[str, NDArray[Any]], NDArray[Any]],
) -> Owned:
    """What is in the bucket of a range; `ranks` says by what values are ordered. Equal ones are ordered by row."""
    (((number,), sizes, *given),) = parts[GIVEN]
    name, route = next((name, route) for name, route in routes.items() if route.number == number)
    rows, values = (np.concatenate([blob[place] for blob in parts[route.number]]) for place in (0, 1))
    by_row = stable_order(rows)
    order = by_row[stable_order(ranks(name, values[by_row]))]
    # records of the cells at both ends that belong to other ranges are left to them
    place = bucket - route.first
    start, low = int(route.starts[place]), int(route.starts[place] - route.before[place])
    order = order[low : low + int(route.ends[place]) - start]
    return Owned(name, route.number, start, sizes, given, rows[order], values[order])
