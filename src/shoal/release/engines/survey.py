"""The survey: one pass over all batches of records comes back as facts about every column and histograms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.column import numbers
from shoal.columns.describe import gaps_of
from shoal.columns.kinds import Lattice
from shoal.columns.provenance import as_declared
from shoal.display import internal
from shoal.errors import ShoalError
from shoal.io import Table
from shoal.io.binary_files import ROW
from shoal.release.engines.blobs import Blob, batch_of, by_bucket, packed
from shoal.release.engines.counting import Counts, gathered, spread, together
from shoal.release.engines.reading import Reading, Wrong, first_of, wrong_in

if TYPE_CHECKING:
    import pyarrow as pa

FACTS = -1


@internal()
@dataclass(slots=True)
class Facts:
    """What is known about a column after a look.

    Attributes:
        missing, first_missing: how many values are missing, and the first row without one.
        low, high: smallest and largest value of the rows that take part.
        wrong: the first row that cannot be read, and what is wrong with it.
        gaps: missing values in rows that take part.
    """

    missing: int = 0
    first_missing: int = -1
    low: float = float("inf")
    high: float = float("-inf")
    wrong: Wrong | None = None
    gaps: int = 0

    def joined(self, other: Facts) -> Facts:
        firsts = [first for first in (self.first_missing, other.first_missing) if first >= 0]
        return Facts(
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
    """Facts about all columns, and histograms of those whose lattice is known."""
    facts = {name: Facts() for name in reading.columns}
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
    """What became of the steps before protection.

    Attributes:
        changed: how many cells each changed.
        wrong: the first step that could not be run, the first row that it could not be run on, and why.
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
    facts: dict[str, Facts],
    counts: Mapping[str, Counts],
) -> int:
    """Facts about one batch are added; how many of its rows take part."""
    first = int(rows[0])
    values: dict[str, NDArray[np.float64]] = {}
    absent: dict[str, NDArray[np.bool_]] = {}
    for attribute in reading.attributes:
        name = attribute.name
        try:
            values[name] = numbers(as_declared(table, (attribute,), reading.na), attribute)
            absent[name] = gaps_of(values[name], attribute)
        except ShoalError as error:
            # the first is told; the others in this column are not looked at
            if facts[name].wrong is None:
                facts[name].wrong = wrong_in(error, first)
            continue
        if absent[name].any():
            facts[name].missing += int(absent[name].sum())
            if facts[name].first_missing < 0:
                facts[name].first_missing = int(rows[np.argmax(absent[name])])
    kept = np.ones(rows.size, dtype=np.bool_)
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


def _told(found: Facts) -> list[Any]:
    # JSON has no infinite numbers
    ends = [None if np.isinf(end) else end for end in (found.low, found.high)]
    return [found.missing, found.first_missing, *ends, found.wrong, found.gaps]


def heard(told: Sequence[Any]) -> Facts:
    """Facts as a survey tells them."""
    missing, first, low, high, wrong, gaps = told
    return Facts(
        missing,
        first,
        float("inf") if low is None else low,
        float("-inf") if high is None else high,
        None if wrong is None else (wrong[0], wrong[1], wrong[2]),
        gaps,
    )


def merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Histograms of the same column put together; everything else as it is."""
    for bucket, parts in by_bucket(batches):
        found: list[Blob] = []
        for part, blobs in parts.items():
            if part < 0:
                found += [(bucket, part, packed(*arrays)) for arrays in blobs]
                continue
            positions, counts = together([gathered(arrays) for arrays in blobs])
            found.append((bucket, part, packed(np.diff(positions, prepend=0), counts, squeeze=True)))
        yield batch_of(found)
