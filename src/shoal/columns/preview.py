"""What steps do to a table: a schema and a table after its steps come in, one line for each step leaves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from shoal.columns.labels import texts

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table

_SHOWN = 12


def preview(schema: Schema, table: Table) -> list[str]:
    """Each step with the number of cells that it changed, and the values of a recoded column with their counts.

    Facts about the records: for the custodian, and not for publication. Nothing is spent.
    """
    lines = []
    steps = schema.declared.steps
    last = {step.column: place for place, step in enumerate(steps)}
    for place, (step, (_, changed)) in enumerate(zip(steps, table.steps, strict=True)):
        source = f"; source: {step.source}" if step.source else "; no source declared"
        line = f"{step.words}{source}; {changed} of {table.n} cells changed"
        if step.do in ("recode", "truncate") and last[step.column] == place:
            line += f"; now {_counted(table, step.column, schema)}"
        lines.append(line)
    return lines


def _counted(table: Table, name: str, schema: Schema) -> str:
    found, which = texts(table, name)
    counts = Counter(which.tolist())
    order = {text: place for place, text in enumerate(schema.stepped[name].ordered)}
    shown = sorted(enumerate(found), key=lambda item: order.get(item[1], -counts[item[0]]))
    words = [f"{text} {counts[place]}" for place, text in shown[:_SHOWN]]
    more = [f"{len(found) - _SHOWN} other values"] if len(found) > _SHOWN else []
    gone = [f"missing {counts[-1]}"] if counts[-1] else []
    return ", ".join([*words, *more, *gone])
