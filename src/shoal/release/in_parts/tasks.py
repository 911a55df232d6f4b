"""Tasks of a release in parts: encode, order, draw and write rows; none of them draws fresh entropy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import CodedByRules, Described, coded, with_gaps
from shoal.display import internal
from shoal.engines import Blob, Reading, batch_of, by_bucket, packed, scattered
from shoal.mechanisms import Method
from shoal.noise import Source
from shoal.numbers import Floats, Integers
from shoal.privacy import Parallel, Plan
from shoal.progress import silent

if TYPE_CHECKING:
    import pyarrow as pa


# An order of at most this many rows is passed on as an array.
_FEW = 1 << 18
_ROUNDS = 12


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Permutation:
    """A permutation of 0 .. rows - 1.

    Attributes:
        places: the new position of each row, for few rows.
        tables: the rounds of the network: from one half of a number's bits to the change of the other half.
        low_bits: number of bits of the low half.
    """

    rows: int
    places: Integers | None = None
    tables: tuple[NDArray[np.uint32], ...] = ()
    low_bits: int = 0

    @classmethod
    def drawn(cls, rows: int, source: Source, few: int = _FEW) -> Permutation:
        """A fresh random order.

        >>> from shoal.noise import Seeded
        >>> order = Permutation.drawn(1000, Seeded(1), few=0)
        >>> bool((np.sort(order.of(np.arange(1000))) == np.arange(1000)).all())
        True
        """
        if rows <= few:
            return cls(rows, source.permutation(rows))
        bits = max((rows - 1).bit_length(), 2)
        low = bits // 2
        tables = []
        for number in range(_ROUNDS):
            # the halves change in turn, each by a random function of the other
            read, changed = (low, bits - low) if number % 2 == 0 else (bits - low, low)
            words = source.words(1 << read) >> np.uint64(64 - changed)
            tables.append(words.astype(np.uint32))
        return cls(rows, None, tuple(tables), low)

    def of(self, rows: Integers) -> Integers:
        """The positions of some rows, by their numbers."""
        if self.places is not None:
            return self.places[rows]
        places = self._turned(rows)
        # numbers beyond the last row are permuted again until they fall inside, which keeps the order a permutation
        while (outside := np.flatnonzero(places >= self.rows)).size:
            places[outside] = self._turned(places[outside])
        return places

    def _turned(self, rows: Integers) -> Integers:
        low = (rows & ((1 << self.low_bits) - 1)).astype(np.uint32)
        high = (rows >> self.low_bits).astype(np.uint32)
        for number, table in enumerate(self.tables):
            if number % 2 == 0:
                high ^= table[low]
            else:
                low ^= table[high]
        return (high.astype(np.int64) << self.low_bits) | low.astype(np.int64)


# Released rows per bucket: one file, or one row group.
OUT = 1 << 19

# All columns in one blob, and data that the driver adds to a bucket.
_ALL, _GIVEN = -1, -2


def buckets_of(rows: int) -> int:
    """Number of buckets that this many rows fill."""
    return max(-(-rows // OUT), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """Destinations of released rows.

    Attributes:
        orders: the position of every row, one order for all columns or one per column.
    """

    orders: tuple[Permutation, ...]

    @property
    def buckets(self) -> int:
        return buckets_of(self.orders[0].rows)

    def order(self, column: int) -> Permutation:
        return self.orders[column] if len(self.orders) > 1 else self.orders[0]

    def blobs(self, rows: Integers, columns: Sequence[Floats]) -> Iterator[Blob]:
        """Send rows with all their columns to their positions."""
        places = self.order(0).of(rows)
        yield from scattered(places // OUT, _ALL, (places % OUT).astype(np.uint32), *columns)

    def column_blobs(self, column: int, rows: Integers, values: Floats) -> Iterator[Blob]:
        """Send one column of some rows to their positions."""
        places = self.order(column).of(rows)
        yield from scattered(places // OUT, column, (places % OUT).astype(np.uint32), values)


def content_of(described: Described, rows: Integers) -> bytes:
    """A digest of the input of the noise: the values of all columns and their row numbers."""
    digest = hashlib.blake2b(digest_size=32)
    for part in (rows, *(described.original(name) for name in described.columns)):
        digest.update(part.size.to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.digest()


def noisy_records(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    method: Method,
    plan: Plan,
    shared: Parallel,
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Protect every record by itself: the method runs on a batch as it would on a table, with noise of its own.

    `shared` is what a batch may spend.

    Guarantee:
        Each record gets fresh noise once: other content or other rows use another stream, the same use the same.
    """
    for part, here in reading.parts(batches, described):
        own = source.child("records", content_of(here, part.rows))
        made = method.run(here, plan, shared.part(own), silent)
        yield batch_of(list(out.blobs(part.rows, [made.values[name] for name in described.columns])))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Ranges of ranks of one column, each a bucket, determined by the number of records at each position.

    Attributes:
        first: number of the first bucket.
        cuts: the positions at which ranges begin, except the first.
        heavy: positions with so many records that their rows are cut too, with the rows of the cuts.
    """

    first: int
    cuts: Integers
    heavy: Mapping[int, Integers]

    @property
    def buckets(self) -> int:
        return self.cuts.size + 1 + sum(cuts.size for cuts in self.heavy.values())

    def of(self, positions: Integers, rows: Integers) -> Integers:
        """The bucket of every record."""
        found = np.searchsorted(self.cuts, positions, side="right")
        extra = 0
        for position, at in self.heavy.items():
            # a heavy position is alone in its range; the positions after it are shifted by the ranges it was cut into
            here = positions == position
            found = np.where(positions > position, found + at.size, found)
            found[here] += np.searchsorted(at, rows[here], side="right")
            extra += at.size
        moved: Integers = found.astype(np.int64) + self.first
        return moved


def to_ranges(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    routes: Sequence[Route],
    apart: int,
) -> Iterator[pa.RecordBatch]:
    """Send the positions of all columns, with their rows, to the buckets where they are ranked.

    Rows whose value stays missing have no rank, and go to buckets from `apart` on.
    """
    for part, here in reading.parts(batches, described):
        found: list[Blob] = []
        for number, name in enumerate(here.columns):
            if name in here.gaps:
                missing = part.rows[here.gaps[name]]
                found += scattered(apart + missing // OUT, number, missing)
            positions, rows = _present(here, name, part.rows)
            targets = routes[number].of(positions, rows)
            found += scattered(targets, number, positions, rows, shrink=True)
        yield batch_of(found)


def _present(here: Described, name: str, rows: Integers) -> tuple[Integers, Integers]:
    """Positions of the records that have a value, or count as having one, and their rows."""
    positions, _ = here.positions(name)
    if name not in here.gaps:
        return positions, rows
    present = ~here.gaps[name]
    return positions[present], rows[present]


def heavy_rows(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    heavy: Mapping[str, Sequence[int]],
    size: int,
) -> Iterator[pa.RecordBatch]:
    """Number of records of every heavy position in each run of `size` rows."""
    found: dict[tuple[int, int], dict[int, int]] = {}
    for part, here in reading.parts(batches, described):
        for name, wanted in heavy.items():
            positions, rows = _present(here, name, part.rows)
            for position in wanted:
                counts = found.setdefault((here.columns.index(name), position), {})
                some, many = np.unique(rows[positions == position] // size, return_counts=True)
                for run, count in zip(some.tolist(), many.tolist(), strict=True):
                    counts[run] = counts.get(run, 0) + count
    for (number, position), counts in found.items():
        runs = np.array(sorted(counts), dtype=np.int64)
        many = np.array([counts[run] for run in runs.tolist()], dtype=np.int64)
        yield batch_of([(0, number, packed(np.array([position]), runs, many))])


def given_values(bucket: int, sizes: Integers, values: Floats) -> Blob:
    """What the records of a range receive, in rank order: values, and the number of records for each."""
    return bucket, _GIVEN, packed(sizes, values)


def _ranked(blobs: Sequence[Sequence[NDArray[Any]]]) -> Integers:
    """The rows of a range in rank order: by position, equal ones by row."""
    positions, rows = (
        np.concatenate([arrays[part] for arrays in blobs]).astype(np.int64) for part in range(2)
    )
    low, bits = int(positions.min()), int(rows.max()).bit_length()
    span = int(positions.max()) - low
    if span.bit_length() + bits < 63:
        # sorting one number that holds both is faster than sorting two
        return np.sort((positions - low) << bits | rows) & ((1 << bits) - 1)
    return rows[np.lexsort((rows, positions))]


def from_ranges(
    batches: Iterator[pa.RecordBatch],
    starts: Integers,
    out: Outgoing,
    by_rank: bool,
) -> Iterator[pa.RecordBatch]:
    """Give records the value of their rank. `starts` are the ranks at which ranges begin.

    With `by_rank` a value's position follows from its rank and not from its row: columns are not linked.
    """
    for bucket, parts in by_bucket(batches):
        if _GIVEN not in parts:
            for number, gaps in parts.items():
                for (rows,) in gaps:
                    yield batch_of(list(out.column_blobs(number, rows, np.full(rows.size, np.nan))))
            continue
        ((sizes, values),) = parts.pop(_GIVEN)
        ((number, blobs),) = parts.items()
        rows = _ranked(blobs)
        if by_rank:
            rows = starts[bucket] + np.arange(rows.size)
        yield batch_of(list(out.column_blobs(number, rows, np.repeat(values, sizes))))


def drawn_rows(
    batches: Iterator[pa.RecordBatch],
    draw: Callable[[int], Mapping[str, Floats]],
    starts: Integers,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Rows of blocks, drawn from noisy results already charged; no record is read."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            values = list(draw(number).values())
            rows = starts[number] + np.arange(values[0].size)
            yield batch_of(list(out.blobs(rows, values)))


def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up arrays of the same part."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            total = np.zeros(blobs[0][0].size, dtype=np.int64)
            for (array,) in blobs:
                total += array.astype(np.int64)
            found.append((bucket, part, packed(total, squeeze=True)))
        yield batch_of(found)


def counted(
    batches: Iterator[pa.RecordBatch],
    reading: Reading,
    described: Described,
    count: Callable[[Described], Sequence[Integers]],
) -> Iterator[pa.RecordBatch]:
    """Tables of counts, added up over the batches."""
    totals: list[Integers] = []
    for _, here in reading.parts(batches, described):
        found = count(here)
        totals = (
            [before + more for before, more in zip(totals, found, strict=True)] if totals else list(found)
        )
    yield batch_of([(0, number, packed(total.ravel(), squeeze=True)) for number, total in enumerate(totals)])


def coordinate_counts(
    batches: Iterator[pa.RecordBatch], reading: Reading, described: Described
) -> Iterator[pa.RecordBatch]:
    """Positions of the columns that are measured as rules require, with their counts and missing values; and how
    many records break each rule."""
    counts: dict[str, list[tuple[Integers, Integers]]] = {}
    more: dict[tuple[int, int], int] = {}
    for _, part in reading.parts(batches, described):
        here = coded(part)
        assert isinstance(here, CodedByRules)
        assert here.book is not None
        for rule, broken in here.book.broken(here.values()).items():
            more[1, rule] = more.get((1, rule), 0) + broken
        for number, name in enumerate(here.columns):
            if here.ruled(name):
                absent = here.absent(name) if name in here.flagged else np.zeros(here.n, dtype=np.bool_)
                found = np.unique(here.positions(name)[0][~absent], return_counts=True)
                counts[name] = [merged_counts([*counts.get(name, []), found])]
                more[2, number] = more.get((2, number), 0) + int(absent.sum())
    yield batch_of(
        [
            *((0, here.columns.index(name), packed(*found)) for name, (found,) in counts.items()),
            *((kind, number, packed(np.array([count]))) for (kind, number), count in more.items()),
        ]
    )


def merged_counts(parts: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Distinct positions with the sums of their counts."""
    positions, which = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    counts = np.zeros(positions.size, dtype=np.int64)
    np.add.at(counts, which, np.concatenate([part[1] for part in parts]))
    return positions.astype(np.int64), counts


def assembled(
    batches: Iterator[pa.RecordBatch],
    described: Described,
    method: Method,
    schema: pa.Schema,
    unchanged: frozenset[str] = frozenset(),
    gapped: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Put released rows in order, as the columns store them: the final step.

    `gapped` are columns whose missing values stay missing.
    """
    import pyarrow as pa

    names = described.columns
    for _, parts in by_bucket(batches):
        columns = np.full((len(names), OUT), np.nan)
        filled = np.zeros(OUT, dtype=np.bool_)
        for part, blobs in parts.items():
            for places, *values in blobs:
                for number, found in zip(range(len(names)) if part == _ALL else [part], values, strict=True):
                    columns[number, places] = found
                filled[places] = True
        whole = bool(filled.all())
        empty = {*described.flagged, *gapped}
        stored = {
            name: _stored(
                described,
                method,
                name,
                row if whole else row[filled],
                computed=name not in unchanged,
                gaps=name in empty,
            )
            for name, row in zip(names, columns, strict=True)
        }
        made = described.released_frame(stored, generalise=method.output.generalise)
        yield from pa.Table.from_arrays(made.columns, schema=schema).combine_chunks().to_batches()


def _stored(
    described: Described, method: Method, name: str, values: Floats, *, computed: bool, gaps: bool
) -> NDArray[Any]:
    if not gaps or not (missing := np.isnan(values)).any():
        return described.stored(name, values, clip=method.output.clip, computed=computed)
    tree = described.tree(name)
    any_value = float(described.lattices[name].lo) if tree is None else float(tree.domain[0])
    filled = np.where(missing, any_value, values)
    return with_gaps(described.stored(name, filled, clip=method.output.clip, computed=computed), missing)
