"""Swapping among neighbours in rank on engines: counts of positions come in, stages that change owners leave.

A group of ranks must be in one task as a whole. Ranges of ranks are cut where groups begin, and a range gets every
record that may be in it: those of the position at a cut go to both sides, where each side keeps its own ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.histogram import Histogram
from shoal.mechanisms.kanonymity.algorithms.embedding import place_in_tree
from shoal.mechanisms.kanonymity.algorithms.swap import BLOCK, swap_source, swapped_ranks
from shoal.mechanisms.kanonymity.columns import KINDS, confidential_columns
from shoal.noise import Source
from shoal.partition.order import stable_order
from shoal.partition.ranking import group_sizes
from shoal.release.engines.blobs import Blob, batch_of, by_bucket, packed, scattered
from shoal.release.engines.ranks import RANGE, heavy_positions
from shoal.release.engines.reading import Reading
from shoal.release.engines.stages import Stage
from shoal.release.engines.tasks import Outgoing
from shoal.release.engines.work import RUN, Made, Work, cluster_facts

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Sizes of groups, and columns that stay as they are, among the parts of a bucket.
_SIZES, _STAYING = -2, -3


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Ranges of ranks of a swapped column, each a bucket, cut where groups begin.

    Attributes:
        number: of the column among those that are swapped.
        first: number of the first bucket.
        keys: where each position stands in the order of ranks; None where positions are in that order.
        heavy: positions whose records are told apart by their rows, too.
        runs: of rows in the table; a cell is a key and, of a heavy position, a run of rows.
        firsts, lasts: the cells of every range.
        before: rank of the first record of the first cell of every range.
        starts: rank at which each range begins.
        ends: rank at which it ends.
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


def by_swap(work: Work) -> Made:
    """`swap-ranking`: confidential values change owners inside groups of ranks, the others stay."""
    method, described = work.prepared.method, work.prepared.described
    names = confidential_columns(method, described)
    histograms = dict(zip(described.columns, work.histograms(), strict=True))
    heavy = {
        name: found
        for name in names
        if _on_lattice(described, name) and (found := heavy_positions(histograms[name], RANGE))
    }
    cut = work.heavy_counts(heavy)
    least = dict(method.sizes or ())
    routes: dict[str, Neighbours] = {}
    given: list[Blob] = []
    clusters = []
    first = 0
    for number, name in enumerate(names):
        sizes = group_sizes(described.n, least.get(name, method.size), method.remainder)
        place = described.columns.index(name)
        own = {position: found for (column, position), found in cut.items() if column == place}
        route = _neighbours(described, name, histograms[name], sizes, own, (number, first, work.runner.rows))
        routes[name] = route
        given += _given(route, sizes)
        clusters.append(cluster_facts(name, sizes))
        first += route.buckets
    source = work.source()
    out = work.outgoing(work.runner.rows, source)
    staying = tuple(name for name in described.columns if name not in names)
    send = partial(
        to_neighbours,
        reading=work.records.reading,
        described=work.described,
        routes=routes,
        staying=staying,
        staying_first=first,
    )
    # what tasks draw is told apart as it is in memory, where a table without strata is one class
    own_source = source.child("class", 0)
    place_rows = partial(
        swapped_rows, described=work.described, routes=routes, staying=staying, source=own_source, out=out
    )
    buckets = first + (-(-work.runner.rows // RANGE) if staying else 0)
    stages = (Stage(send, buckets, tuple(given)), Stage(place_rows, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters), frozenset(described.columns))


def _on_lattice(described: Described, name: str) -> bool:
    """Whether records of one position have one value, so that their rows alone settle who is first."""
    attribute = described.attribute(name)
    if not attribute.kind_facts.measured:
        return True
    return described.table.is_integer(name) and described.lattices[name].step == 1


def _neighbours(
    described: Described,
    name: str,
    histogram: Histogram,
    sizes: Integers,
    heavy: Mapping[int, tuple[Integers, Integers]],
    place: tuple[int, int, int],
) -> Neighbours:
    assert histogram.counts is not None
    number, first, rows = place
    runs = rows // RUN + 1
    keys = _keys(described, name)
    own = histogram.positions if keys is None else keys[histogram.positions]
    cells, counts = [], []
    light = ~np.isin(histogram.positions, list(heavy))
    cells.append(own[light] * runs)
    counts.append(histogram.counts[light])
    for position, (those, many) in heavy.items():
        key = position if keys is None else int(keys[position])
        cells.append(key * runs + those)
        counts.append(many)
    cell, count = np.concatenate(cells), np.concatenate(counts)
    order = np.argsort(cell)
    cell, count = cell[order], count[order]
    after = np.cumsum(count)
    begins = np.cumsum(sizes) - sizes
    # a block of ranks that is drawn together is never cut
    assert RANGE % BLOCK == 0
    starts = begins[np.flatnonzero(np.diff(begins // RANGE, prepend=-1))]
    ends = np.append(starts[1:], after[-1])
    low = np.searchsorted(after, starts, side="right")
    high = np.searchsorted(after, ends - 1, side="right")
    return Neighbours(
        number,
        first,
        keys,
        tuple(heavy),
        runs,
        cell[low],
        cell[high],
        after[low] - count[low],
        starts,
        ends,
    )


def _keys(described: Described, name: str) -> Integers | None:
    tree = described.tree(name)
    if tree is None:
        return None
    return place_in_tree(tree)[np.asarray(tree.domain, dtype=np.int64)].astype(np.int64)


def _given(route: Neighbours, sizes: Integers) -> list[Blob]:
    ends = np.cumsum(sizes)
    cuts = np.searchsorted(ends, route.ends, side="left") + 1
    return [
        (route.first + place, _SIZES, packed(np.array([route.number]), part, shrink=True))
        for place, part in enumerate(np.split(sizes, cuts[:-1]))
    ]


def to_neighbours(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    routes: Mapping[str, Neighbours],
    staying: Sequence[str],
    staying_first: int,
) -> Iterator[pa.RecordBatch]:
    """Values of swapped columns on the way to their neighbours in rank; the other columns go on as they are."""
    for part, here in reading.parts(batches, described):
        found: list[Blob] = []
        values = {name: _own_values(here, name) for name in here.columns}
        for name, route in routes.items():
            positions, _ = here.positions(name)
            for which, buckets in route.targets(positions, part.rows):
                found += scattered(buckets, 0, part.rows[which], values[name][which])
        if staying:
            others = [values[name] for name in staying]
            found += scattered(staying_first + part.rows // RANGE, _STAYING, part.rows, *others)
        yield batch_of(found)


def _own_values(described: Described, name: str) -> Floats:
    return KINDS[described.attribute(name).kind_facts.middle].values(described, name)[0]


def swapped_rows(
    batches: Iterator[pa.RecordBatch],
    described: Described,
    routes: Mapping[str, Neighbours],
    staying: Sequence[str],
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Values change owners inside groups of ranks.

    Guarantee:
        As `shoal.mechanisms.kanonymity.algorithms.swap_ranking`: a uniform permutation in every group, the same one
        however often it is computed.
    """
    columns = {route.number: (name, route) for name, route in routes.items()}
    for bucket, parts in by_bucket(batches):
        for places, *others in parts.get(_STAYING, []):
            for name, own in zip(staying, others, strict=True):
                yield batch_of(list(out.column_blobs(described.columns.index(name), places, own)))
        if _SIZES not in parts:
            continue
        (((number,), sizes),) = parts[_SIZES]
        name, route = columns[int(number)]
        rows, values = (np.concatenate([blob[place] for blob in parts[0]]) for place in (0, 1))
        order = _in_rank_order(described, name, rows, values)
        # records of the cells at both ends that belong to other ranges are left to them
        place = bucket - route.first
        low = int(route.starts[place] - route.before[place])
        order = order[low : low + int(route.ends[place] - route.starts[place])]
        start = int(route.starts[place])
        owners = swapped_ranks(sizes.astype(np.int64), start, swap_source(source, route.number)) - start
        yield batch_of(
            list(out.column_blobs(described.columns.index(name), rows[order], values[order][owners]))
        )


def _in_rank_order(described: Described, name: str, rows: Integers, values: Floats) -> Integers:
    """By value, or place of a name in its taxonomy; equal ones by row."""
    tree = described.tree(name)
    ranks = values if tree is None else place_in_tree(tree)[values.astype(np.int64)]
    by_row = stable_order(rows)
    return by_row[stable_order(ranks[by_row])]
