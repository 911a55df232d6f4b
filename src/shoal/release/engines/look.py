"""A look at records that are elsewhere: one pass over all batches comes back as aggregates, and nothing else.

What describing a table asks is answered from them, so that the same sentences follow as from a table in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import labels_of, numbers
from shoal.columns.describe import Absent, KeptElsewhere
from shoal.columns.kinds import Lattice
from shoal.display import internal
from shoal.errors import InputError, OptionError, ShoalError
from shoal.io import Table
from shoal.mechanisms.pairs.measure_one import Histogram
from shoal.release.engines.blobs import Blob, batch_of, blobs_in, by_bucket, packed, unpacked
from shoal.release.engines.counting import gathered, together
from shoal.release.engines.reading import Reading, error_of
from shoal.release.engines.stages import Over, Runner, Stage
from shoal.release.engines.survey import FACTS, Facts, heard, merged, survey

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.columns.schema import Schema

_MOST_LABELS = 100_000
# A histogram on the driver has at most so many entries.
MOST_POSITIONS = 1 << 26


def found_labels(
    batches: Iterator[pa.RecordBatch], reading: Reading, attribute: Attribute
) -> Iterator[pa.RecordBatch]:
    """The different texts of a nominal column."""
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
    """How many values are outside of a domain."""
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
    """Rows by unit, units known by a hash; a missing one in a row is told as such."""
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
    """The largest number of rows of a unit in each bucket."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = [(bucket, FACTS, packed(*arrays)) for arrays in parts.get(FACTS, [])]
        if 0 in parts:
            keys = np.concatenate([arrays[0].reshape(-1, 2) for arrays in parts[0]])
            counts = np.concatenate([arrays[1] for arrays in parts[0]])
            _, which = np.unique(keys, axis=0, return_inverse=True)
            most = int(np.bincount(which.ravel(), counts).max())
            found.append((bucket, 0, packed(np.array([most], dtype=np.int64))))
        yield batch_of(found)


@internal()
@dataclass(eq=False)
class Elsewhere:
    """The answers about records that a runner has.

    Attributes:
        counted: histograms are wanted as well, which the same pass brings where lattices are known.
    """

    runner: Runner
    counted: bool = True
    reading: Reading = field(default_factory=lambda: Reading(()))
    _facts: dict[str, Facts] = field(default_factory=dict)
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
        self._facts = {name: Facts() for name in self.reading.columns}
        self._kept = seen = 0
        self._changed = [0] * (0 if self._schema is None else len(self._schema.declared.steps))
        wrongs = []
        pieces: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}
        stages = (
            Stage(partial(survey, reading=self.reading, lattices=self._lattices, shards=shards), shards),
            Stage(merged),
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
            self.runner.collect("looking at the records", Over(reading.read), Stage(task))
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
            Stage(partial(unit_rows, reading=self.reading, name=name, shards=shards), shards),
            Stage(most_rows),
        )
        missing, most = False, 0
        for _, part, blob in blobs_in(self.runner.collect("counting rows of a unit", over, *stages)):
            (value,) = unpacked(blob)[0].tolist()
            if part == FACTS:
                missing |= value > 0
            else:
                most = max(most, value)
        return missing, most

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Any) -> int:
        found = self._facts[attribute.name]
        if found.low >= lo and found.high <= hi:
            return 0
        task = partial(outside_of, reading=self.reading, attribute=attribute, lo=lo, hi=hi)
        answers = blobs_in(self.runner.collect("looking at the records", self._all, Stage(task)))
        return sum(int(unpacked(blob)[0].sum()) for _, _, blob in answers)

    def missing_of(self, name: str) -> int:
        """How many of the rows that take part have no value."""
        return self._facts[name].gaps

    def histogram(self, name: str, lattices: Mapping[str, Lattice]) -> Histogram:
        """Positions of the values that are there, with their counts."""
        if any(self._lattices.get(column) != lattice for column, lattice in lattices.items()):
            # domains that were taken from the records are known only now
            self._lattices = dict(lattices)
            self._survey()
        return self._histograms[name]


def _known_lattices(table: Table, chosen: Sequence[Attribute]) -> dict[str, Lattice]:
    """The lattices of columns whose domain is declared; others follow from the records, or are complained about."""
    found = {}
    for attribute in chosen:
        try:
            found[attribute.name] = attribute.lattice(integer=table.is_integer(attribute.name))
        except ShoalError:
            continue
    return found


def check_positions(lattices: Mapping[str, Lattice], rows: int) -> None:
    """Refuse columns whose histogram would be as large as the table, or larger than the driver can hold."""
    for name, lattice in lattices.items():
        if min(lattice.steps, rows) > MOST_POSITIONS:
            raise OptionError(
                "column-lattice-positions-engine-counts-most",
                column=name,
                steps=lattice.steps + 1,
                most_positions=MOST_POSITIONS,
                rows=rows,
            )
