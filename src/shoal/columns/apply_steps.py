"""Apply the steps of a schema to a table before protection.

Every cell is changed independently, with public parameters only. A table records which steps were applied to it, so
that none is applied twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.column import labels_of, numbers, texts
from shoal.columns.declared_columns import as_declared
from shoal.columns.steps import Step, above, as_number
from shoal.errors import InputError, OptionError, ShoalError
from shoal.io import Table, check_doubts, content_digest, first_row
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema


def with_steps(table: Table, schema: Schema | None, na: Sequence[str] = ()) -> Table:
    """The table after the steps of its schema; steps already applied are not repeated.

    Raises:
        InputError: a value is in no band, or is not a value of the column; names the row.
        OptionError: the parameters of a step are unknown, or the table stays on disk.

    >>> import pyarrow as pa
    >>> from shoal import Schema
    >>> from shoal.io import read
    >>> schema = Schema((Attribute("age"),)).with_steps(Step.recode("age", breaks=[0, 40, 99]))
    >>> with_steps(read(pa.table({"age": [25, 40, 41, None]})), schema).series("age").to_list()
    ['(0,40]', '(0,40]', '(40,99]', None]
    """
    steps = () if schema is None else schema.declared.steps
    if schema is None or not steps or _were_run(table, steps):
        return table
    if table.steps:
        raise InputError("other-steps-were-run-table-already")
    if table.path is not None:
        raise OptionError("steps-before-protection-need-table-memory", option="engine")
    for step in steps:
        table.known(step.column)
    if table.records is not None:
        # without rows, but with the types the rows will have
        table.records.run_steps(schema, na)
    # the digest identifies the records by their values before the steps
    content = content_digest(table) if table.records is None else ""
    table, problem = steps_run(table, schema, na)
    if problem is not None:
        raise problem
    return replace(table, content=content)


def steps_run(table: Table, schema: Schema, na: Sequence[str]) -> tuple[Table, ShoalError | None]:
    """The table after the steps that could be applied, and the error of the first that could not."""
    declared = schema.declared
    steps = declared.steps
    touched = {step.column for step in steps}
    described = [a for a in declared.attributes if a.name in touched]
    named = {a.name for a in described if a.type_declared}
    check_doubts(table, [step.column for step in steps if step.do != "drop" and step.column not in named])
    table = as_declared(table, described, na)
    for step, before, _ in declared.walk():
        try:
            table, changed = _after(table, step, before)
        except ShoalError as problem:
            return table, problem
        table = replace(table, steps=(*table.steps, (step.key, changed)))
    return table, None


def _after(table: Table, step: Step, before: Attribute | None) -> tuple[Table, int]:
    """The table after one more step, and how many cells it changed."""
    if step.withheld:
        raise step.refusal("parameters-were-taken-from-other-records")
    if before is None or step.do == "drop":
        frame = table.frame.drop(step.column)
        return replace(table, frame=frame, inferred=table.inferred - {step.column}), table.n
    # a cell's reading depends on the other cells of its column; a stored value's only on its type
    cells = table.reads_cells or table.holds_objects(step.column)
    read_off = {step.column} & table.inferred if cells else frozenset()
    table, changed = _RUN[step.kind](table, step, before)
    return replace(table, guessed=table.guessed | read_off), changed


def _were_run(table: Table, steps: Sequence[Step]) -> bool:
    """Whether these are the steps that were applied; the published form of a step lacks its parameters."""
    keys = [key for key, _ in table.steps]
    return len(keys) == len(steps) and all(
        key == step.key or (step.withheld and json.loads(key).get(step.do) == step.column)
        for key, step in zip(keys, steps, strict=True)
    )


def marked(table: Table, schema: Schema) -> Table:
    """A synthetic table that already has the form after the steps: none remains to be applied."""
    return replace(table, steps=tuple((step.key, 0) for step in schema.declared.steps))


def _bands(table: Table, step: Step, before: Attribute) -> tuple[Table, int]:
    values = numbers(table, before)
    places = step.places(values)
    outside = places == -2
    if outside.any() and step.outside == "error":
        raise InputError("column-row-lies-none-bands-recoding", column=step.column, row=first_row(outside))
    names = np.array([*step.bands, None, None], dtype=object)
    return _with_texts(table, step.column, names[places]), int(np.isfinite(values).sum())


def _renamed(table: Table, step: Step, before: Attribute, renamed: Mapping[str, str]) -> tuple[Table, int]:
    found, which = texts(table, step.column)
    names = np.array([*(renamed.get(text, text) or None for text in found), None], dtype=object)
    changes = np.array([*(renamed.get(text, text) != text for text in found), False])
    return _with_texts(table, step.column, names[which]), int(changes[which].sum())


def _level(table: Table, step: Step, before: Attribute) -> tuple[Table, int]:
    renamed = above(step, before)
    tree = replace(before, missing=None).tree
    assert tree is not None
    # an invalid text must not pass as a group of its own
    labels = labels_of(table, before)
    codes = tree.encode(labels, Message.of("column-named", column=step.column), missing=-1)
    names = [None if label is None else renamed[str(label)] for label in tree.decode(codes)]
    changed = sum(old is not None and old != new for old, new in zip(labels, names, strict=True))
    return _with_texts(table, step.column, names), changed


def _mapping(table: Table, step: Step, before: Attribute) -> tuple[Table, int]:
    return _renamed(table, step, before, dict(step.mapping))


def _truncate(table: Table, step: Step, before: Attribute) -> tuple[Table, int]:
    found, _ = texts(table, step.column)
    return _renamed(table, step, before, {text: text[: step.length].strip() for text in found})


def _coded(table: Table, step: Step, before: Attribute) -> tuple[Table, int]:
    values = numbers(table, before)
    assert step.at is not None
    limit = as_number(step.at)
    beyond: NDArray[np.bool_] = values > limit if step.do == "top" else values < limit
    rows = np.flatnonzero(beyond)
    if rows.size:
        series = table.series(step.column)
        value = _stored(table, step, series)
        series = series.scatter(rows.tolist(), [value] * rows.size)
        table = replace(table, frame=table.frame.with_columns(series.alias(step.column)))
    return table, int(rows.size)


def _stored(table: Table, step: Step, series: nw.Series[Any]) -> Any:
    """The replacement value of a step, as the column stores it."""
    put = step.at if step.put is None else step.put
    assert put is not None
    if isinstance(put, str):
        if isinstance(series.dtype, nw.Datetime):
            return datetime.fromisoformat(put)
        return date.fromisoformat(put) if isinstance(series.dtype, nw.Date) else put
    if not series.dtype.is_integer():
        return float(put)
    if int(put) != put:
        raise InputError(
            "run-steps-column-holds-whole-numbers-none",
            where=step.where,
            column=step.column,
            found=float(put),
        )
    return int(put)


def _with_texts(table: Table, name: str, values: Sequence[str | None] | NDArray[Any]) -> Table:
    import pyarrow as pa

    return table.retyped(name, pa.chunked_array([pa.array(list(values), pa.string())]))


_RUN: Mapping[str, Callable[[Table, Step, Attribute], tuple[Table, int]]] = {
    "bands": _bands,
    "level": _level,
    "mapping": _mapping,
    "top": _coded,
    "bottom": _coded,
    "truncate": _truncate,
}
