"""Counts for two tables read in parts: passes over one side, joint tallies and equivalence class sizes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Schema, numbers, read_declared
from shoal.display import internal
from shoal.engines import (
    Blob,
    Over,
    Runner,
    TaskStage,
    batch_of,
    blobs_in,
    by_bucket,
    packed,
    scattered,
    together,
    unpacked,
)
from shoal.io import ROW, Conventions, Table, scratch
from shoal.numbers import Integers
from shoal.partition import ActualK, as_arrow
from shoal.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RowCount:
    """A stand-in for a table that knows only its number of rows."""

    n: int


@dataclass(frozen=True, slots=True, eq=False)
class BatchReading:
    """How a batch becomes a part of a table: public, and the same for every batch.

    Attributes:
        schema: the declared schema, with preprocessing steps that are run on every batch.
        na, types, file: as `shoal.columns.declaration.read_declared` takes them.
        dropping: columns in which a missing value excludes the row.
    """

    schema: Schema | None = None
    na: tuple[str, ...] = ()
    types: Mapping[str, str] | None = None
    file: Conventions | Mapping[str, Any] | None = None
    dropping: tuple[Attribute, ...] = ()

    def columns(self, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
        """The columns to read for the given columns: preprocessing steps may need others."""
        steps = () if self.schema is None else self.schema.declared.steps
        more = [step.column for step in steps] + [attribute.name for attribute in self.dropping]
        return tuple(name for name in dict.fromkeys((*names, *more)) if name in known)

    def table(self, frame: pa.Table) -> Table:
        """A frame in its declared types, after the preprocessing steps."""
        return read_declared(frame, self.schema, na=self.na, types=self.types, file=self.file)

    def parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Table, NDArray[np.int64]]]:
        """The participating rows of every batch as a table, with their row numbers."""
        import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            rows = batch.column(batch.schema.names.index(ROW)).to_numpy()
            table = self.table(pa.Table.from_batches([batch]).drop_columns([ROW]))
            if self.dropping:
                gone = np.zeros(rows.size, dtype=np.bool_)
                for attribute in self.dropping:
                    gone |= np.isnan(numbers(table, attribute))
                table, rows = table.rows(np.flatnonzero(~gone)), rows[~gone]
            if rows.size:
                yield table, rows


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two tables, whose records only a runner can read."""

    runner: Runner
    reading: BatchReading = field(default_factory=BatchReading)

    def table(self) -> Table:
        """Its columns, types and number of rows, without records."""
        empty = self.reading.table(self.runner.schema.empty_table())
        return replace(empty, records=RowCount(self.runner.rows))

    def collect(
        self, what: str, names: Sequence[str], tell: Progress, *stages: TaskStage
    ) -> Sequence[pa.RecordBatch]:
        """The results of stages over some columns of all records."""
        self.runner.watched(tell)
        return self.runner.collect(what, Over(self.reading.columns(names, self.runner.schema.names)), *stages)


Counted = tuple[Integers, Integers]

# blob tags: counts use their own number, from 0; labels count up from LABELS, overflows down from OVER
FACTS, SUMS, OVER = -1, -2, -10
LABELS = 1 << 24
# distinct texts of a column
MOST_LABELS = 100_000
# up to this many keys all of them are counted, seen or not
_DENSE = 1 << 16
_WAITING = 1 << 19


class Tally:
    """How often keys occur, unless there are too many distinct ones. Private."""

    def __init__(self, most: int, points: int | None = None) -> None:
        self._most = most
        self._dense = (
            np.zeros(points, dtype=np.int64) if points is not None and points <= min(_DENSE, most) else None
        )
        self._pieces: list[Counted] | None = []
        self._waiting = 0

    def add(self, keys: Integers) -> None:
        if self._dense is not None:
            found = np.bincount(keys)
            self._dense[: found.size] += found
        elif self._pieces is not None:
            some, counts = np.unique(keys, return_counts=True)
            self._pieces.append((some, counts.astype(np.int64)))
            self._waiting += some.size
            if self._waiting > _WAITING:
                self._put_together()

    def _put_together(self) -> None:
        assert self._pieces is not None
        whole = together(self._pieces)
        self._pieces, self._waiting = ([whole] if whole[0].size <= self._most else None), 0

    def result(self) -> Counted | None:
        """The distinct keys in ascending order and their counts; None where there are too many."""
        if self._dense is not None:
            seen = np.flatnonzero(self._dense)
            return seen, self._dense[seen]
        if self._pieces is not None:
            self._put_together()
        return None if self._pieces is None else self._pieces[0]

    def blobs(self, number: int, shards: int) -> Iterator[Blob]:
        """Blobs for the merge of all tasks' counts; equal keys go to the same bucket."""
        found = self.result()
        if found is None:
            yield 0, OVER - number, packed(np.zeros(1, dtype=np.int64))
            return
        keys, counts = found
        places = (mixed(keys.view(np.uint64)) % np.uint64(shards)).astype(np.int64)
        for shard in range(shards):
            mine = places == shard
            if mine.any():
                yield shard, number, packed(keys[mine], counts[mine], shrink=True)


def mixed(values: NDArray[np.uint64], key: int = 0) -> NDArray[np.uint64]:
    """Map numbers to pseudo-random ones, one to one: the finaliser of splitmix64."""
    found = values + np.uint64((key * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15) % (1 << 64))
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(found ^ (found >> np.uint64(31)))


def text_blob(bucket: int, part: int, value: Any) -> Blob:
    """Plain values as a blob."""
    return bucket, part, packed(np.frombuffer(json.dumps(value).encode(), dtype=np.uint8), squeeze=True)


def label_blobs(number: int, counts: Mapping[str, int] | None, shards: int) -> Blob:
    """Labels and their counts, for the merge of all tasks' counts."""
    return text_blob(number % shards, LABELS + number, counts)


def added(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Add up counts of equal keys; pass facts and sums through."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            if part < 0:
                found += [(bucket, part, packed(*arrays)) for arrays in blobs]
            elif part >= LABELS:
                found.append(text_blob(bucket, part, _joined([_text(arrays[0]) for arrays in blobs])))
            else:
                keys, counts = together([_whole(arrays) for arrays in blobs])
                if keys.size > most:
                    found.append((bucket, OVER - part, packed(np.zeros(1, dtype=np.int64))))
                else:
                    found.append((bucket, part, packed(keys, counts, shrink=True)))
        yield batch_of(found)


def _whole(arrays: Sequence[NDArray[Any]]) -> Counted:
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


def _text(array: NDArray[Any]) -> Any:
    return json.loads(array.astype(np.uint8).tobytes())


def _joined(found: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    """Merge counts of labels; None where there are too many."""
    total: dict[str, int] = {}
    for counts in found:
        if counts is None:
            return None
        for label, count in counts.items():
            total[label] = total.get(label, 0) + count
        if len(total) > MOST_LABELS:
            return None
    return total


@internal()
@dataclass(slots=True, eq=False)
class Aggregates:
    """The merged results of one pass.

    Attributes:
        facts: plain values of every task.
        sums: arrays of every task.
        counts: keys and counts by number; None where there are too many.
        labels: the same for texts.
    """

    facts: list[Any] = field(default_factory=list)
    sums: list[list[NDArray[Any]]] = field(default_factory=list)
    counts: dict[int, Counted | None] = field(default_factory=dict)
    labels: dict[int, dict[str, int] | None] = field(default_factory=dict)


def gathered(batches: Iterable[pa.RecordBatch], most: int) -> Aggregates:
    """Collect the results of a pass on the driver."""
    found = Aggregates()
    pieces: dict[int, list[Counted]] = {}
    texts: dict[int, list[dict[str, int] | None]] = {}
    over: set[int] = set()
    for _, part, blob in blobs_in(batches):
        arrays = unpacked(blob)
        if part == FACTS:
            found.facts.append(_text(arrays[0]))
        elif part == SUMS:
            found.sums.append(arrays)
        elif part <= OVER:
            over.add(OVER - part)
        elif part >= LABELS:
            texts.setdefault(part - LABELS, []).append(_text(arrays[0]))
        else:
            pieces.setdefault(part, []).append(_whole(arrays))
    for number, some in pieces.items():
        whole = together(some)
        found.counts[number] = None if whole[0].size > most else whole
    found.counts |= dict.fromkeys(over)
    found.labels = {number: _joined(some) for number, some in texts.items()}
    return found


Hash = NDArray[np.uint64]
# approximate rows per bucket, and the largest number of buckets
_BUCKET = 1 << 20
_MOST_BUCKETS = 4096


def buckets_for(runner: Runner) -> int:
    """Number of buckets for the rows of a table."""
    return max(runner.shards, min(-(-runner.rows // _BUCKET), _MOST_BUCKETS))


def column_hashes(table: Table, name: str, *, blank_missing: bool = False) -> Hash:
    """Two hashes of every value, (2, rows): equal exactly where values are equal, with all missing values alike.

    Args:
        blank_missing: an empty text is a missing value.
    """
    if table.is_numeric(name) and not table.is_integer(name):
        values = table.numeric(name) + 0.0
        bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
        return np.array([mixed(bits, 1), mixed(bits, 2)])
    if (whole := _whole_numbers(table, name)) is not None:
        return whole
    texts, which = _distinct(table, name, blank_missing)
    digests = [hashlib.blake2b(text, digest_size=16).digest() for text in texts]
    found = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(found[which].T)


def _whole_numbers(table: Table, name: str) -> Hash | None:
    """The hashes of integers and timestamps; None for other columns."""
    import pyarrow as pa

    kind = table.dtype(name)
    if not (kind.is_integer() or kind.is_temporal()):
        return None
    values = as_arrow(table.series(name))
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    width = getattr(values.type, "bit_width", 0)
    if width not in (8, 16, 32, 64) or pa.types.is_unsigned_integer(values.type):
        return None
    gaps = values.is_null().to_numpy(zero_copy_only=False)
    whole = values.cast(f"int{width}") if pa.types.is_temporal(values.type) else values
    bits = whole.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    nothing = np.zeros(1, dtype=np.uint64)
    return np.array([np.where(gaps, mixed(nothing, 5 + lane), mixed(bits, 1 + lane)) for lane in range(2)])


def _distinct(table: Table, name: str, blank_missing: bool) -> tuple[list[bytes], Integers]:
    """The distinct values of a column as bytes, and the index of each row's value among them."""
    import pyarrow as pa

    values = as_arrow(table.series(name))
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        encoded = values.dictionary_encode(null_encoding="encode")
    except pa.ArrowException:
        # lists and other nested values cannot be dictionary-encoded
        values = pa.array([None if value is None else str(value) for value in values.to_pylist()])
        encoded = values.dictionary_encode(null_encoding="encode")
    # a text may be anything, so a leading byte marks missing values
    texts = [
        b"0" if value is None or (blank_missing and value == "") else b"1" + str(value).encode()
        for value in encoded.dictionary.to_pylist()
    ]
    return texts, np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def row_hashes(columns: Sequence[Hash]) -> Hash:
    """Two hashes of whole rows."""
    found = np.zeros_like(columns[0])
    for place, column in enumerate(columns):
        found = np.array([mixed(found[lane] ^ column[lane], 3 + 2 * place + lane) for lane in range(2)])
    return found


def runs(*keys: NDArray[np.uint64]) -> tuple[Integers, Integers]:
    """An order that puts equal entries together, and where each run begins; by the first key alone if that suffices."""
    order = np.lexsort(keys[::-1]) if len(keys) > 1 else np.argsort(keys[0], kind="stable")
    if not order.size:
        return order, order
    new = np.zeros(order.size, dtype=np.bool_)
    new[0] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(new)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Columns whose values define groups of rows; `blank_missing` treats an empty text as a missing value."""

    names: tuple[str, ...]
    blank_missing: bool = False

    def hashes(self, table: Table, known: dict[tuple[str, bool], Hash]) -> Hash:
        """Two hashes of every row; hashes of columns are cached in `known`."""
        for name in self.names:
            if (name, self.blank_missing) not in known:
                known[name, self.blank_missing] = column_hashes(table, name, blank_missing=self.blank_missing)
        return row_hashes([known[name, self.blank_missing] for name in self.names])


def grouped_rows(
    batches: Iterator[pa.RecordBatch], reading: BatchReading, groupings: Sequence[Grouping], buckets: int
) -> Iterator[pa.RecordBatch]:
    """Hashes of rows for their buckets, with equal ones of a batch counted."""
    for table, _ in reading.parts(batches):
        known: dict[tuple[str, bool], Hash] = {}
        found: list[Blob] = []
        for part, grouping in enumerate(groupings):
            first, second = grouping.hashes(table, known)
            # equal first hashes with different second ones make more runs than groups; the bucket merges these
            order = np.argsort(first, kind="stable")
            one, other = first[order], second[order]
            new = np.concatenate(([True], (one[1:] != one[:-1]) | (other[1:] != other[:-1])))
            starts = np.flatnonzero(new)
            counts = np.diff(np.append(starts, order.size)).astype(np.uint32)
            targets = (one[starts] % np.uint64(buckets)).astype(np.int64)
            found += scattered(targets, part, one[starts], other[starts], counts)
        yield batch_of(found)


def group_sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number of groups of each size in a bucket."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            first, second, counts = (
                np.concatenate([arrays[place] for arrays in blobs]) for place in range(3)
            )
            order, starts = runs(first, second)
            sizes = np.add.reduceat(counts[order].astype(np.int64), starts)
            found.append((bucket, part, packed(*np.unique(sizes, return_counts=True))))
        yield batch_of(found)


def count_groups(side: Side, groupings: Sequence[Grouping], tell: Progress) -> list[Counted]:
    """For each grouping the sizes of its equivalence classes, ascending, and how many there are of each."""
    buckets = buckets_for(side.runner)
    task = partial(grouped_rows, reading=side.reading, groupings=tuple(groupings), buckets=buckets)
    found: dict[int, list[Counted]] = {}
    with working(side.runner):
        columns = list(dict.fromkeys(name for grouping in groupings for name in grouping.names))
        stages = TaskStage(task, buckets), TaskStage(group_sizes)
        for _, part, blob in blobs_in(side.collect("counting equal rows", columns, tell, *stages)):
            sizes, counts = unpacked(blob)
            found.setdefault(part, []).append((sizes.astype(np.int64), counts.astype(np.int64)))
    return [together(found[part]) for part in range(len(groupings))]


@contextmanager
def working(runner: Runner) -> Iterator[None]:
    """A temporary folder for intermediate results; it holds hashes and codes of private values."""
    with scratch() as folder, runner.working_in(folder / "work"):
        yield


def actual_k(side: Side, names: Sequence[str], rows: int, tell: Progress) -> ActualK:
    """The k of a table, as `shoal.partition.groups.actual_k` computes it in memory."""
    whole, *alone = count_groups(side, [Grouping(tuple(names)), *(Grouping((name,)) for name in names)], tell)
    sizes, counts = whole
    return ActualK(
        k=int(sizes[0]),
        groups=int(counts.sum()),
        unique_share=int(counts[sizes == 1].sum()) / rows,
        per_attribute={name: int(own[0][0]) for name, own in zip(names, alone, strict=True)},
    )
