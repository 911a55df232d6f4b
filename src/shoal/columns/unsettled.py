"""What a schema leaves open: a schema and perhaps its table come in, a message for each thing to settle leaves."""

from __future__ import annotations

import narwhals as nw
import numpy as np

from shoal.columns.attribute import FACTS, RECORDS, Attribute
from shoal.columns.coding import labels_of, numbers
from shoal.columns.guess import is_prose
from shoal.columns.lattice import outside
from shoal.columns.schema import Schema
from shoal.errors import InputError
from shoal.io import Table
from shoal.io.spreadsheets import first_formula
from shoal.text import Message

_FEW_ROWS = 2


def unsettled(schema: Schema, table: Table | None = None) -> tuple[Message, ...]:
    """One line for everything that stands between this schema and a promise that holds as it stands.

    Facts about the records occur in it: it is for the custodian and not for publication.

    >>> print(*unsettled(Schema((Attribute("income", type="integer"),))))
    column 'income' has no public domain: give lo and hi, known without looking at these records.
    """
    found = [] if table is None else list(table.doubts.values())
    found += [
        Message.of("step-parameters-from-records", where=step.where, column=step.column)
        for step in schema.declared.steps
        if step.from_records
    ]
    schema = schema.stepped
    for attribute in schema.attributes:
        if table is not None and attribute.name not in table.names:
            found.append(Message.of("described-column-not-in-table", column=attribute.name))
            continue
        found += _about_unit(attribute) if attribute.dropped else _about(attribute, table)
    if table is not None:
        found += [
            Message.of("column-not-described", column=name) for name in table.names if name not in schema
        ]
        found += _about_persons(schema, table)
    return tuple(found)


def _about(attribute: Attribute, table: Table | None) -> list[Message]:
    kind = attribute.kind_facts
    lacks = {
        "column-lacks-domain": kind.ranged and attribute.lo is None,
        "column-lacks-order": kind.listed and not attribute.ordered,
        "column-lacks-values": not kind.ordered and attribute.tree is None and attribute.type != "boolean",
        "column-lacks-type": attribute.type is None
        and not attribute.has_domain
        and (table is None or table.reads_cells),
    }
    found = [Message.of(code, column=attribute.name) for code, lacking in lacks.items() if lacking]
    private = tuple(fact for fact in FACTS if fact in attribute.from_records)
    if private:
        code = "facts-from-records" if len(private) > 1 else "fact-from-records"
        found.append(Message.of(code, column=attribute.name, facts=private, records=RECORDS))
    return found if table is None else found + _about_cells(attribute, table)


def _about_cells(attribute: Attribute, table: Table) -> list[Message]:
    """What the records have that the schema does not provide for."""
    name = attribute.name
    listed = not attribute.kind_facts.ranged
    if listed and attribute.tree is None and not attribute.ordered:
        labels = labels_of(table, attribute)
        absent = np.array([label is None for label in labels])
    else:
        try:
            absent = np.isnan(numbers(table, attribute))
        except InputError as error:
            return [error.message]
    found = _about_range(attribute, table)
    if absent.any() and attribute.missing is None:
        found.append(Message.of("missing-undeclared", column=name, row=int(np.argmax(absent)) + 1))
    if isinstance(table.dtype(name), nw.String):
        formula = first_formula(labels_of(table, attribute))
        if formula is not None:
            found.append(Message.of("formula-in-column", column=name, found=formula[:40]))
        if is_prose(table, name):
            found.append(Message.of("sentences-in-column", column=name))
    return found


def _about_range(attribute: Attribute, table: Table) -> list[Message]:
    """Values that a release refuses unless it is told to clip them."""
    if attribute.lo is None or attribute.hi is None:
        return []
    values = numbers(table, attribute)
    lattice = attribute.lattice(integer=table.is_integer(attribute.name))
    beyond = (values < float(lattice.lo)) | (values > float(lattice.hi))
    return [outside(attribute.name, lattice)] if beyond.any() else []


def _about_unit(attribute: Attribute) -> list[Message]:
    if attribute.role == "weight" and attribute.release is None:
        return [Message.of("weight-undecided", column=attribute.name)]
    if attribute.role != "unit":
        return []
    if attribute.max_rows is None:
        return [Message.of("unit-lacks-max-rows", column=attribute.name)]
    if "max_rows" in attribute.from_records:
        return [Message.of("max-rows-from-records", column=attribute.name)]
    return []


def _about_persons(schema: Schema, table: Table) -> list[Message]:
    """An identifier that repeats: a promise would be about rows, and persons have several."""
    found = []
    for attribute in schema.attributes:
        if attribute.role == "identifier" and schema.unit is None and attribute.name in table.names:
            labels = [label for label in labels_of(table, attribute) if label is not None]
            if len(set(labels)) < len(labels) and not is_prose(table, attribute.name):
                found.append(Message.of("identifier-repeats", column=attribute.name))
    if table.n < _FEW_ROWS:
        found.append(Message.of("one-row"))
    return found
