"""One of the tables that are compared: who has its records, and how a batch of them becomes columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import numbers
from shoal.columns.declaration import read_declared
from shoal.columns.schema import Schema
from shoal.io import Conventions, Table
from shoal.io.binary_files import ROW
from shoal.release.engines.stages import Over, Runner, Stage

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.progress import Progress


@dataclass(frozen=True, slots=True)
class Counted:
    """Says how many rows there are, and answers nothing else."""

    n: int


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How a batch becomes a part of a table: public, and the same for all batches.

    Attributes:
        schema: what is declared about the table, with steps that are run on every batch.
        na, types, file: as `shoal.columns.declaration.read_declared` takes them.
        dropping: columns without whose value a row takes no part.
    """

    schema: Schema | None = None
    na: tuple[str, ...] = ()
    types: Mapping[str, str] | None = None
    file: Conventions | Mapping[str, Any] | None = None
    dropping: tuple[Attribute, ...] = ()

    def columns(self, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
        """What is read for some columns: steps may need others."""
        steps = () if self.schema is None else self.schema.declared.steps
        more = [step.column for step in steps] + [attribute.name for attribute in self.dropping]
        return tuple(name for name in dict.fromkeys((*names, *more)) if name in known)

    def table(self, frame: pa.Table) -> Table:
        """A frame in its declared types, after the steps."""
        return read_declared(frame, self.schema, na=self.na, types=self.types, file=self.file)

    def parts(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Table, NDArray[np.int64]]]:
        """The rows of every batch that take part, as a table, and their numbers."""
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
    """A table whose records a runner has."""

    runner: Runner
    reading: Reading = field(default_factory=Reading)

    def table(self) -> Table:
        """Its columns and types, and the number of rows; no record."""
        empty = self.reading.table(self.runner.schema.empty_table())
        return replace(empty, records=Counted(self.runner.rows))

    def collect(
        self, what: str, names: Sequence[str], tell: Progress, *stages: Stage
    ) -> Sequence[pa.RecordBatch]:
        """What stages make of some columns of all records."""
        self.runner.watched(tell)
        return self.runner.collect(what, Over(self.reading.columns(names, self.runner.schema.names)), *stages)
