"""What steps do to a table: a schema and a table after its steps come in, one line for each step leaves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from shoal.columns.labels import texts
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table

_SHOWN = 12


def preview(schema: Schema, table: Table) -> list[Message]:
    """Each step with the number of cells that it changed, and the values of a recoded column with their counts.

    Facts about the records: for the custodian, and not for publication. Nothing is spent.
    """
    lines = []
    steps = schema.declared.steps
    last = {step.column: place for place, step in enumerate(steps)}
    for place, (step, (_, changed)) in enumerate(zip(steps, table.steps, strict=True)):
        source = Message.of("step-source" if step.source else "step-without-source", source=step.source)
        facts = {"step": step.message, "source": source, "changed": changed, "n": table.n}
        if step.do in ("recode", "truncate") and last[step.column] == place:
            lines.append(
                Message.of("step-done-with-counts", **facts, counts=_counts(table, step.column, schema))
            )
        else:
            lines.append(Message.of("step-done", **facts))
    return lines


def _counts(table: Table, name: str, schema: Schema) -> tuple[Message, ...]:
    found, which = texts(table, name)
    counts = Counter(which.tolist())
    order = {text: place for place, text in enumerate(schema.stepped[name].ordered)}
    shown = sorted(enumerate(found), key=lambda item: order.get(item[1], -counts[item[0]]))
    said = [Message.of("value-count", value=text, count=counts[place]) for place, text in shown[:_SHOWN]]
    if len(found) > _SHOWN:
        said.append(Message.of("other-value-count", count=len(found) - _SHOWN))
    if counts[-1]:
        said.append(Message.of("missing-count", count=counts[-1]))
    return tuple(said)
