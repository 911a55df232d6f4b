"""Batches of records as described tables: the same code looks at a batch that looks at a whole table in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Described, as_declared, numbers, steps_run
from shoal.display import internal
from shoal.errors import InputError, ShoalError, plain_facts
from shoal.io import ROW, Table, without_texts
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.columns import Schema


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class TablePart:
    """Some records of a table.

    Attributes:
        table: all of them, in their declared types.
        kept: which take part; None for all.
        rows: their numbers in the whole table, of those that take part.
    """

    table: Table
    kept: NDArray[np.int64] | None
    rows: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How a batch becomes a part of the table: public, and the same for all batches.

    Attributes:
        attributes: the released columns.
        na: texts that stand for a missing value.
        dropping: columns without whose value a row takes no part.
        schema: with steps before protection; None where it has none.
        separating: columns whose missing values stay missing.
    """

    attributes: tuple[Attribute, ...]
    na: tuple[str, ...] = ()
    dropping: tuple[str, ...] = ()
    schema: Schema | None = None
    separating: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that are read: the released ones, and those that steps look at."""
        stepped = () if self.schema is None else (step.column for step in self.schema.declared.steps)
        return tuple(dict.fromkeys((*self.columns, *stepped)))

    def stepped(self, batch: pa.RecordBatch) -> tuple[Table, ShoalError | None]:
        """The records of a batch after the steps of the schema, as far as they went, and what is wrong then."""
        import pyarrow as pa

        frame = pa.Table.from_batches([batch]).select(list(self.read))
        table = Table(nw.from_native(frame, eager_only=True), "parquet", inferred=frozenset(self.read))
        table = without_texts(table, self.na)
        return (table, None) if self.schema is None else steps_run(table, self.schema, self.na)

    def table(self, batch: pa.RecordBatch) -> Table:
        """The records of a batch after the steps of the schema, in their declared types."""
        table, problem = self.stepped(batch)
        if problem is not None:
            raise problem
        return as_declared(table, self.attributes, self.na)

    def part(self, batch: pa.RecordBatch) -> TablePart:
        """The records of a batch that take part."""
        table, rows = self.table(batch), batch.column(batch.schema.names.index(ROW)).to_numpy()
        dropped = np.zeros(rows.size, dtype=np.bool_)
        for attribute in self.attributes:
            if attribute.name in self.dropping:
                dropped |= np.isnan(numbers(table, attribute))
        if not dropped.any():
            return TablePart(table, None, rows)
        kept = np.flatnonzero(~dropped)
        return TablePart(table, kept, rows[kept])

    def parts(
        self, batches: Iterator[pa.RecordBatch], described: Described
    ) -> Iterator[tuple[TablePart, Described]]:
        """The parts of batches with anything in them, each described as the whole table is."""
        for batch in batches:
            part = self.part(batch)
            if part.size:
                here = replace(described, table=part.table, kept=part.kept)
                gaps = {name: here.absent(name) for name in self.separating}
                yield part, replace(here, gaps=gaps) if gaps else here


# the first row of a batch, and the code and facts of what is wrong in it
Wrong = tuple[int, str, dict[str, Any]]


def wrong_in(error: ShoalError, first: int) -> Wrong:
    """An error about a batch that begins at a row of the table, counted as the table is; plain values for JSON.

    >>> wrong_in(InputError("infinite", column="a", row=3), 100)
    (100, 'infinite', {'column': 'a', 'row': 103})
    """
    return first, error.code, _counted(error.facts, first)


def error_of(code: str, facts: Mapping[str, Any]) -> InputError:
    """The error that `wrong_in` told of.

    >>> _, *told = wrong_in(InputError("of-schema", path="a", reason=Message.of("infinite", column="b", row=3)), 100)
    >>> str(error_of(*told)).endswith("column 'b' has an infinite value in row 103: correct or remove it.")
    True
    """
    return InputError(code, **{name: _told(value) for name, value in facts.items()})


def _counted(facts: Mapping[str, Any], first: int) -> dict[str, Any]:
    """Facts with rows counted as the table is; what says something by itself is its code and its facts."""
    found = plain_facts(facts)
    for name, value in facts.items():
        if isinstance(value, (Message, ShoalError)):
            found[name] = {"code": value.code, "facts": _counted(value.facts, first)}
        elif name == "row" and value is not None:
            found[name] = value + first
    return found


def _told(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return Message(value["code"], {name: _told(one) for name, one in value["facts"].items()})


def first_of(wrongs: Iterable[Wrong | None]) -> Wrong | None:
    """What is wrong first."""
    return min((wrong for wrong in wrongs if wrong is not None), key=lambda wrong: wrong[0], default=None)
