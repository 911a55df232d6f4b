"""Profile a table that is read in parts: the counts, ranges and totals of its columns that a release needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import (
    Absent,
    Attribute,
    Described,
    KeptElsewhere,
    Lattice,
    as_declared,
    content_columns,
    first_rows,
    gaps_of,
    labels_of,
    numbers,
    row_digests,
    steps_run,
    units_of,
)
from shoal.display import internal
from shoal.engines.runner import (
    Blob,
    Over,
    Runner,
    TaskStage,
    batch_of,
    blobs_in,
    by_bucket,
    packed,
    scattered,
    unpacked,
)
from shoal.errors import InputError, OptionError, ShoalError, plain_facts
from shoal.io import ROW, Table, without_texts
from shoal.mechanisms import Histogram
from shoal.numbers import Integers
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.columns import Schema


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class TablePart:
    """Some records of a table.

    Attributes:
        table: all of its records, in their declared types.
        kept: which records take part; None for all.
        rows: row numbers in the whole table, of the records that take part.
    """

    table: Table
    kept: NDArray[np.int64] | None
    rows: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How a batch becomes a part of the table: the same for every batch, and public except `left_out`.

    Attributes:
        attributes: the released columns.
        na: texts that stand for a missing value.
        dropping: columns in which a missing value excludes the row.
        schema: with preprocessing steps; None where it has none.
        separating: columns whose missing values stay missing.
        beside: further columns to read.
        left_out: a bit for each row of the table, set where a bound on the rows of its unit excludes it; None without.
    """

    attributes: tuple[Attribute, ...]
    na: tuple[str, ...] = ()
    dropping: tuple[str, ...] = ()
    schema: Schema | None = None
    separating: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    left_out: NDArray[np.uint8] | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns to read: the released ones, and those that preprocessing steps use."""
        stepped = () if self.schema is None else (step.column for step in self.schema.declared.steps)
        return tuple(dict.fromkeys((*self.columns, *stepped, *self.beside)))

    def stepped(self, batch: pa.RecordBatch) -> tuple[Table, ShoalError | None]:
        """The records of a batch after the preprocessing steps, as far as they ran, and the error that stopped them."""
        import pyarrow as pa

        frame = pa.Table.from_batches([batch]).select(list(self.read))
        table = Table(nw.from_native(frame, eager_only=True), "parquet", inferred=frozenset(self.read))
        table = without_texts(table, self.na)
        return (table, None) if self.schema is None else steps_run(table, self.schema, self.na)

    def table(self, batch: pa.RecordBatch) -> Table:
        """The records of a batch after the preprocessing steps, in their declared types."""
        table, problem = self.stepped(batch)
        if problem is not None:
            raise problem
        return as_declared(table, self.attributes, self.na)

    def part(self, batch: pa.RecordBatch) -> TablePart:
        """The records of a batch that take part."""
        table, rows = self.table(batch), batch.column(batch.schema.names.index(ROW)).to_numpy()
        dropped = self.excluded(rows)
        for attribute in self.attributes:
            if attribute.name in self.dropping:
                dropped |= np.isnan(numbers(table, attribute))
        if not dropped.any():
            return TablePart(table, None, rows)
        kept = np.flatnonzero(~dropped)
        return TablePart(table, kept, rows[kept])

    def excluded(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows a bound on the rows of their unit excludes."""
        if self.left_out is None:
            return np.zeros(rows.size, dtype=np.bool_)
        found: NDArray[np.bool_] = (self.left_out[rows >> 3] >> (rows & 7).astype(np.uint8)) & 1 == 1
        return found

    def parts(
        self, batches: Iterator[pa.RecordBatch], described: Described
    ) -> Iterator[tuple[TablePart, Described]]:
        """The non-empty parts of the batches, each described as the whole table is."""
        for batch in batches:
            part = self.part(batch)
            if part.size:
                here = replace(described, table=part.table, kept=part.kept)
                gaps = {name: here.absent(name) for name in self.separating}
                yield part, replace(here, gaps=gaps) if gaps else here


# the first row of a batch, and the code and facts of the error in it
Wrong = tuple[int, str, dict[str, Any]]


def wrong_in(error: ShoalError, first: int) -> Wrong:
    """An error about a batch that begins at row `first` of the table, as plain values with rows counted from there.

    >>> wrong_in(InputError("infinite", column="a", row=3), 100)
    (100, 'infinite', {'column': 'a', 'row': 103})
    """
    return first, error.code, _counted(error.facts, first)


def error_of(code: str, facts: Mapping[str, Any]) -> InputError:
    """Rebuild the error that `wrong_in` describes.

    >>> _, *told = wrong_in(InputError("of-schema", path="a", reason=Message.of("infinite", column="b", row=3)), 100)
    >>> str(error_of(*told)).endswith("column 'b' has an infinite value in row 103: correct or remove it.")
    True
    """
    return InputError(code, **{name: _plain_value(value) for name, value in facts.items()})


def _counted(facts: Mapping[str, Any], first: int) -> dict[str, Any]:
    """Facts with rows counted from the start of the table; a nested message becomes its code and facts."""
    found = plain_facts(facts)
    for name, value in facts.items():
        if isinstance(value, (Message, ShoalError)):
            found[name] = {"code": value.code, "facts": _counted(value.facts, first)}
        elif name == "row" and value is not None:
            found[name] = value + first
    return found


def _plain_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return Message(value["code"], {name: _plain_value(one) for name, one in value["facts"].items()})


def first_of(wrongs: Iterable[Wrong | None]) -> Wrong | None:
    """The first of several errors."""
    return min((wrong for wrong in wrongs if wrong is not None), key=lambda wrong: wrong[0], default=None)


# Up to this many positions all of them are counted, seen or not.
_DENSE = 1 << 21
# Entries of a sparse histogram gathered before they are merged.
_GATHERED = 1 << 22


class Counts:
    """A histogram built up batch by batch. Private."""

    def __init__(self, points: int) -> None:
        self._dense = np.zeros(points, dtype=np.int64) if points <= _DENSE else None
        self._pieces: list[tuple[Integers, Integers]] = []
        self._waiting = 0

    def add(self, positions: Integers, counts: Integers | None = None) -> None:
        if self._dense is not None:
            if counts is None:
                found = np.bincount(positions)
                self._dense[: found.size] += found
            else:
                np.add.at(self._dense, positions, counts)
            return
        if counts is None:
            positions, counts = np.unique(positions, return_counts=True)
        self._pieces.append((positions.astype(np.int64), counts.astype(np.int64)))
        self._waiting += positions.size
        if self._waiting > _GATHERED:
            whole = together(self._pieces)
            # merged entries are no longer pending
            self._pieces, self._waiting = [whole], 0

    def result(self) -> tuple[Integers, Integers]:
        """Distinct positions in ascending order, and how often each occurs."""
        if self._dense is None:
            return together(self._pieces)
        seen = np.flatnonzero(self._dense)
        return seen, self._dense[seen]


def together(pieces: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Merge several histograms into one.

    >>> [part.tolist() for part in together([(np.array([1, 4]), np.array([2, 1])), (np.array([4]), np.array([5]))])]
    [[1, 4], [2, 6]]
    """
    if not pieces:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    positions = np.concatenate([positions for positions, _ in pieces])
    counts = np.concatenate([counts for _, counts in pieces])
    order = np.argsort(positions, kind="stable")
    positions, counts = positions[order], counts[order]
    if not positions.size:
        return positions, counts
    starts = np.flatnonzero(np.concatenate(([True], positions[1:] != positions[:-1])))
    return positions[starts], np.add.reduceat(counts, starts)


def spread(part: int, positions: Integers, counts: Integers, shards: int) -> Iterator[Blob]:
    """A histogram as blobs, one per shard that holds any of it; positions are stored as small differences."""
    for shard in range(shards):
        mine = slice(None) if shards == 1 else positions % shards == shard
        found = positions[mine]
        if found.size:
            yield shard, part, packed(np.diff(found, prepend=0), counts[mine], squeeze=True)


def gathered(arrays: Sequence[NDArray[np.int64]]) -> tuple[Integers, Integers]:
    """The histogram that `spread` stored."""
    steps, counts = arrays
    return np.cumsum(steps.astype(np.int64)), counts.astype(np.int64)


FACTS = -1


@internal()
@dataclass(slots=True)
class ColumnProfile:
    """Facts about a column after one pass.

    Attributes:
        missing, first_missing: how many values are missing, and the first row without one.
        low, high: smallest and largest value of the rows that take part.
        wrong: the first row that cannot be read, and why.
        gaps: missing values in rows that take part.
    """

    missing: int = 0
    first_missing: int = -1
    low: float = float("inf")
    high: float = float("-inf")
    wrong: Wrong | None = None
    gaps: int = 0

    def joined(self, other: ColumnProfile) -> ColumnProfile:
        firsts = [first for first in (self.first_missing, other.first_missing) if first >= 0]
        return ColumnProfile(
            self.missing + other.missing,
            min(firsts, default=-1),
            min(self.low, other.low),
            max(self.high, other.high),
            first_of((self.wrong, other.wrong)),
            self.gaps + other.gaps,
        )


def survey(
    batches: Iterator[pa.RecordBatch], reading: Reading, lattices: Mapping[str, Lattice], shards: int
) -> Iterator[pa.RecordBatch]:
    """Facts about all columns, and histograms of the columns whose lattice is known."""
    facts = {name: ColumnProfile() for name in reading.columns}
    counts = {name: Counts(lattice.steps + 1) for name, lattice in lattices.items()}
    kept = seen = 0
    steps = _Steps([0] * (0 if reading.schema is None else len(reading.schema.declared.steps)))
    for batch in batches:
        seen += batch.num_rows
        rows = batch.column(batch.schema.names.index(ROW)).to_numpy()
        if rows.size:
            table = steps.run(batch, rows, reading)
            kept += 0 if table is None else _survey(table, rows, reading, lattices, facts, counts)
    told = {
        "kept": kept,
        "seen": seen,
        "facts": {name: _told(found) for name, found in facts.items()},
        "changed": steps.changed,
        "wrong": steps.wrong,
    }
    text = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    yield batch_of([(0, FACTS, packed(text))])
    for number, name in enumerate(reading.columns):
        if name in counts:
            yield batch_of(list(spread(number, *counts[name].result(), shards)))


@dataclass(slots=True)
class _Steps:
    """What the preprocessing steps did.

    Attributes:
        changed: how many cells each changed.
        wrong: the first step that failed, the first row on which it failed, and why.
    """

    changed: list[int]
    wrong: tuple[int, int, str, dict[str, Any]] | None = None

    def run(self, batch: pa.RecordBatch, rows: NDArray[np.int64], reading: Reading) -> Table | None:
        table, problem = reading.stepped(batch)
        first = int(rows[0])
        if problem is not None:
            wrong = (len(table.steps), *wrong_in(problem, first))
            self.wrong = wrong if self.wrong is None else min(self.wrong, wrong, key=lambda one: one[:2])
            return None
        self.changed = [before + more for before, (_, more) in zip(self.changed, table.steps, strict=True)]
        return table


def _survey(
    table: Table,
    rows: NDArray[np.int64],
    reading: Reading,
    lattices: Mapping[str, Lattice],
    facts: dict[str, ColumnProfile],
    counts: Mapping[str, Counts],
) -> int:
    """Add the facts about one batch; return how many of its rows take part."""
    first = int(rows[0])
    values: dict[str, NDArray[np.float64]] = {}
    absent: dict[str, NDArray[np.bool_]] = {}
    for attribute in reading.attributes:
        name = attribute.name
        try:
            values[name] = numbers(as_declared(table, (attribute,), reading.na), attribute)
            absent[name] = gaps_of(values[name], attribute)
        except ShoalError as error:
            # the first error is reported; the rest of this column is skipped
            if facts[name].wrong is None:
                facts[name].wrong = wrong_in(error, first)
            continue
        if absent[name].any():
            facts[name].missing += int(absent[name].sum())
            if facts[name].first_missing < 0:
                facts[name].first_missing = int(rows[np.argmax(absent[name])])
    kept = ~reading.excluded(rows)
    for name in reading.dropping:
        if name in absent:
            kept &= ~absent[name]
    for name, found in values.items():
        if name not in absent:
            continue
        present = kept & ~absent[name]
        facts[name].gaps += int((kept & absent[name]).sum())
        here = found if present.all() else found[present]
        if here.size:
            facts[name].low = min(facts[name].low, float(here.min()))
            facts[name].high = max(facts[name].high, float(here.max()))
            if name in counts:
                counts[name].add(lattices[name].positions(here))
    return int(kept.sum())


def _told(found: ColumnProfile) -> list[Any]:
    # JSON has no infinite numbers
    ends = [None if np.isinf(end) else end for end in (found.low, found.high)]
    return [found.missing, found.first_missing, *ends, found.wrong, found.gaps]


def heard(told: Sequence[Any]) -> ColumnProfile:
    """Rebuild the facts that a survey reports."""
    missing, first, low, high, wrong, gaps = told
    return ColumnProfile(
        missing,
        first,
        float("inf") if low is None else low,
        float("-inf") if high is None else high,
        None if wrong is None else (wrong[0], wrong[1], wrong[2]),
        gaps,
    )


def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge the histograms of each column; keep everything else as it is."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            if part < 0:
                found += [(bucket, part, packed(*arrays)) for arrays in blobs]
                continue
            positions, counts = together([gathered(arrays) for arrays in blobs])
            found.append((bucket, part, packed(np.diff(positions, prepend=0), counts, squeeze=True)))
        yield batch_of(found)


_MOST_LABELS = 100_000
# Largest number of entries of a histogram on the driver.
MOST_POSITIONS = 1 << 26


def found_labels(
    batches: Iterator[pa.RecordBatch], reading: Reading, attribute: Attribute
) -> Iterator[pa.RecordBatch]:
    """The distinct texts of a nominal column."""
    seen: set[str] = set()
    for batch in batches:
        seen |= {label for label in labels_of(reading.table(batch), attribute) if label is not None}
        if len(seen) > _MOST_LABELS:
            break
    text = np.frombuffer(json.dumps(sorted(seen)).encode(), dtype=np.uint8)
    yield batch_of([(0, FACTS, packed(text))])


def outside_of(
    batches: Iterator[pa.RecordBatch], reading: Reading, attribute: Attribute, lo: float, hi: float
) -> Iterator[pa.RecordBatch]:
    """Number of values outside a domain."""
    count = 0
    for batch in batches:
        part = reading.part(batch)
        values = numbers(part.table, attribute)
        values = values if part.kept is None else values[part.kept]
        count += int(((values < lo) | (values > hi)).sum())
    yield batch_of([(0, FACTS, packed(np.array([count], dtype=np.int64)))])


def unit_rows(
    batches: Iterator[pa.RecordBatch], reading: Reading, name: str, shards: int
) -> Iterator[pa.RecordBatch]:
    """Rows by unit, with each unit identified by a hash; a missing unit is reported as such."""
    missing = 0
    counted: dict[bytes, int] = {}
    for batch in batches:
        part = reading.part(batch)
        column = batch.column(batch.schema.names.index(name))
        missing += column.null_count
        column = column if part.kept is None else column.take(part.kept)
        for value, count in zip(*_counted_values(column), strict=True):
            digest = hashlib.blake2b(str(value).encode(), digest_size=16).digest()
            counted[digest] = counted.get(digest, 0) + count
    yield batch_of([(0, FACTS, packed(np.array([missing], dtype=np.int64)))])
    keys = np.frombuffer(b"".join(counted), dtype=np.uint64).reshape(-1, 2)
    counts = np.fromiter(counted.values(), dtype=np.int64, count=len(counted))
    shard = (keys[:, 0] % np.uint64(shards)).astype(np.int64)
    for bucket in range(shards):
        mine = shard == bucket
        if mine.any():
            yield batch_of([(bucket, 0, packed(keys[mine].ravel(), counts[mine]))])


def _counted_values(column: pa.Array) -> tuple[list[Any], list[int]]:
    found = column.value_counts()
    return found.field("values").to_pylist(), found.field("counts").to_pylist()


def most_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The largest number of rows per unit in each bucket."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = [(bucket, FACTS, packed(*arrays)) for arrays in parts.get(FACTS, [])]
        if 0 in parts:
            keys = np.concatenate([arrays[0].reshape(-1, 2) for arrays in parts[0]])
            counts = np.concatenate([arrays[1] for arrays in parts[0]])
            _, which = np.unique(keys, axis=0, return_inverse=True)
            most = int(np.bincount(which.ravel(), counts).max())
            found.append((bucket, 0, packed(np.array([most], dtype=np.int64))))
        yield batch_of(found)


# Approximate number of rows whose digests a task holds.
_ORDERED = 1 << 20


def keyed_rows(
    batches: Iterator[pa.RecordBatch], reading: Reading, schema: Schema, key: bytes, buckets: int
) -> Iterator[pa.RecordBatch]:
    """The keyed hashes of all rows that take part, with a hash of their unit that decides the bucket."""
    for batch in batches:
        part = reading.part(batch)
        if not part.size:
            continue
        here = np.arange(part.table.n) if part.kept is None else part.kept
        names, codes = units_of(part.table, schema, reading.na)
        known = b"".join(hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names)
        units = np.frombuffer(known, dtype=np.uint64).reshape(-1, 2)[codes[here]]
        digests = row_digests(part.table, schema, here, key, reading.na)
        targets = (units[:, 0] % np.uint64(buckets)).astype(np.int64)
        yield batch_of(list(scattered(targets, 0, *units.T, *digests.T, part.rows)))


def rows_beyond(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Row numbers of the rows that are not among the first `most` of their unit."""
    for bucket, parts in by_bucket(batches):
        first, second, *digests, rows = (
            np.concatenate([blob[place] for blob in parts[0]]) for place in range(5)
        )
        by_row = np.argsort(rows)
        _, units = np.unique(np.stack((first, second), axis=1)[by_row], axis=0, return_inverse=True)
        beyond = np.ones(rows.size, dtype=np.bool_)
        beyond[first_rows(units.ravel(), np.stack(digests, axis=1)[by_row], most)] = False
        left = rows[by_row][beyond]
        yield batch_of([(bucket, 0, packed(np.diff(left, prepend=0), squeeze=True))])


@internal()
@dataclass(eq=False)
class Elsewhere:
    """Facts about the records, computed by a runner.

    Attributes:
        counted: also compute histograms, which the same pass yields where lattices are known.
    """

    runner: Runner
    counted: bool = True
    reading: Reading = field(default_factory=lambda: Reading(()))
    _facts: dict[str, ColumnProfile] = field(default_factory=dict)
    _kept: int = 0
    _lattices: dict[str, Lattice] = field(default_factory=dict)
    _histograms: dict[str, Histogram] = field(default_factory=dict)
    na: tuple[str, ...] = ()
    _schema: Schema | None = None
    _changed: list[int] = field(default_factory=list)

    @property
    def n(self) -> int:
        return self.runner.rows

    @property
    def _all(self) -> Over:
        return Over(self.reading.read)

    def run_steps(self, schema: Schema, na: Sequence[str]) -> None:
        self._schema = schema
        self.na = tuple(na)

    def steps(self) -> tuple[tuple[str, int], ...]:
        steps = () if self._schema is None else self._schema.declared.steps
        return tuple((step.key, count) for step, count in zip(steps, self._changed, strict=True))

    def look(
        self,
        table: Table,
        chosen: Sequence[Attribute],
        policies: Mapping[str, str],
        na: Sequence[str],
    ) -> None:
        dropping, apart = (
            tuple(name for name, policy in policies.items() if policy == wanted)
            for wanted in ("drop", "separate")
        )
        self.reading = Reading(tuple(chosen), tuple(na), dropping, self._schema, apart)
        self._lattices = _known_lattices(table, chosen) if self.counted else {}
        self._survey()

    def _survey(self) -> None:
        shards = self.runner.shards
        self._facts = {name: ColumnProfile() for name in self.reading.columns}
        self._kept = seen = 0
        self._changed = [0] * (0 if self._schema is None else len(self._schema.declared.steps))
        wrongs = []
        pieces: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
        stages = (
            TaskStage(partial(survey, reading=self.reading, lattices=self._lattices, shards=shards), shards),
            TaskStage(merged),
        )
        for _, part, blob in blobs_in(self.runner.collect("looking at the records", self._all, *stages)):
            if part >= 0:
                pieces.setdefault(self.reading.columns[part], []).append(gathered(unpacked(blob)))
                continue
            told = json.loads(unpacked(blob)[0].tobytes())
            self._kept += told["kept"]
            seen += told["seen"]
            self._changed = [a + b for a, b in zip(self._changed, told["changed"], strict=True)]
            wrongs += [] if told["wrong"] is None else [told["wrong"]]
            for name, found in told["facts"].items():
                self._facts[name] = self._facts[name].joined(heard(found))
        if seen != self.n:
            raise InputError("rows-were-read-table", seen=seen, n=self.n)
        if wrongs:
            *_, code, facts = min(wrongs, key=lambda wrong: wrong[:2])
            raise error_of(code, facts)
        empty = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        for name in self._lattices:
            positions, counts = together(pieces.get(name, [empty]))
            self._histograms[name] = Histogram(positions, counts)

    def labels(self, attribute: Attribute) -> list[str]:
        reading = Reading((attribute,), self.na, schema=self._schema)
        task = partial(found_labels, reading=reading, attribute=attribute)
        seen: set[str] = set()
        for _, _, blob in blobs_in(
            self.runner.collect("looking at the records", Over(reading.read), TaskStage(task))
        ):
            seen |= set(json.loads(unpacked(blob)[0].tobytes()))
        if len(seen) > _MOST_LABELS:
            raise InputError(
                "column-more-than-different-values", column=attribute.name, most_labels=_MOST_LABELS
            )
        return sorted(seen)

    def absent(self, attribute: Attribute) -> Absent:
        found = self._facts[attribute.name]
        if found.wrong is not None:
            raise error_of(*found.wrong[1:])
        return Absent(found.missing, max(found.first_missing, 0))

    def kept(self, dropping: Iterable[str]) -> KeptElsewhere | None:
        return None if self._kept == self.n else KeptElsewhere(self._kept)

    def ends(self, attribute: Attribute, kept: Any) -> tuple[float, float]:
        found = self._facts[attribute.name]
        return found.low, found.high

    def unit(self, name: str, kept: Any) -> tuple[bool, int]:
        shards = self.runner.shards
        over = Over(tuple(dict.fromkeys((*self.reading.read, name))))
        stages = (
            TaskStage(partial(unit_rows, reading=self.reading, name=name, shards=shards), shards),
            TaskStage(most_rows),
        )
        missing, most = False, 0
        for _, part, blob in blobs_in(self.runner.collect("counting rows of a unit", over, *stages)):
            (value,) = unpacked(blob)[0].tolist()
            if part == FACTS:
                missing |= value > 0
            else:
                most = max(most, value)
        return missing, most

    def bounded(
        self,
        table: Table,
        schema: Schema,
        kept: KeptElsewhere | None,
        most: int,
        key: bytes,
        na: Sequence[str],
    ) -> KeptElsewhere | None:
        unit = schema.unit
        assert unit is not None
        content = [attribute.name for attribute in content_columns(table, schema)]
        reading = replace(self.reading, beside=(unit.name, *content))
        buckets = max(self.runner.shards, -(-self.n // _ORDERED))
        stages = (
            TaskStage(partial(keyed_rows, reading=reading, schema=schema, key=key, buckets=buckets), buckets),
            TaskStage(partial(rows_beyond, most=most)),
        )
        left_out = np.zeros(-(-self.n // 8), dtype=np.uint8)
        over = Over(reading.read)
        for _, _, blob in blobs_in(self.runner.collect("choosing rows of a unit", over, *stages)):
            rows = np.cumsum(unpacked(blob)[0].astype(np.int64))
            np.bitwise_or.at(left_out, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        if not left_out.any():
            return kept
        self.reading = replace(self.reading, left_out=left_out)
        self._survey()
        return KeptElsewhere(self._kept)

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Any) -> int:
        found = self._facts[attribute.name]
        if found.low >= lo and found.high <= hi:
            return 0
        task = partial(outside_of, reading=self.reading, attribute=attribute, lo=lo, hi=hi)
        answers = blobs_in(self.runner.collect("looking at the records", self._all, TaskStage(task)))
        return sum(int(unpacked(blob)[0].sum()) for _, _, blob in answers)

    def missing_of(self, name: str) -> int:
        """Number of participating rows without a value."""
        return self._facts[name].gaps

    def histogram(self, name: str, lattices: Mapping[str, Lattice]) -> Histogram:
        """Positions of the values present, with their counts."""
        if any(self._lattices.get(column) != lattice for column, lattice in lattices.items()):
            # domains that were taken from the records are known only now
            self._lattices = dict(lattices)
            self._survey()
        return self._histograms[name]


def _known_lattices(table: Table, chosen: Sequence[Attribute]) -> dict[str, Lattice]:
    """The lattices of columns with a declared domain; others get their domain from the records, or an error is kept."""
    found = {}
    for attribute in chosen:
        try:
            found[attribute.name] = attribute.lattice(integer=table.is_integer(attribute.name))
        except ShoalError:
            continue
    return found


def check_positions(lattices: Mapping[str, Lattice], rows: int) -> None:
    """Refuse columns whose histogram would be as large as the table, or too large for the driver."""
    for name, lattice in lattices.items():
        if min(lattice.steps, rows) > MOST_POSITIONS:
            raise OptionError(
                "column-lattice-positions-engine-counts-most",
                column=name,
                steps=lattice.steps + 1,
                most_positions=MOST_POSITIONS,
                rows=rows,
            )
