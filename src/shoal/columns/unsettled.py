"""What a schema leaves open: a schema and perhaps its table come in, one line for each thing to settle leaves."""

from __future__ import annotations

import narwhals as nw
import numpy as np

from shoal.columns.attribute import FACTS, RECORDS, Attribute
from shoal.columns.coding import labels_of, numbers
from shoal.columns.guess import is_prose
from shoal.columns.lattice import outside_words
from shoal.columns.schema import Schema
from shoal.errors import InputError
from shoal.io import Table
from shoal.io.spreadsheets import first_formula

_FEW_ROWS = 2


def unsettled(schema: Schema, table: Table | None = None) -> tuple[str, ...]:
    """One line for everything that stands between this schema and a promise that holds as it stands.

    Facts about the records occur in it: it is for the custodian and not for publication.

    >>> unsettled(Schema((Attribute("income", type="integer"),)))
    ("column 'income' has no public domain: give lo and hi, known without looking at these records.",)
    """
    found: list[str] = [] if table is None else list(table.doubts.values())
    found += [
        f"{step.where}: its parameters are known from these records: declare them with another source."
        for step in schema.declared.steps
        if step.from_records
    ]
    schema = schema.stepped
    for attribute in schema.attributes:
        if table is not None and attribute.name not in table.names:
            found.append(
                f"column '{attribute.name}' is not in the table: correct its name, or remove the entry."
            )
            continue
        found += _about_unit(attribute) if attribute.dropped else _about(attribute, table)
    if table is not None:
        found += [
            f"column '{name}' is not described: add an entry, or leave it as it is, and it is not released."
            for name in table.names
            if name not in schema
        ]
        found += _about_persons(schema, table)
    return tuple(found)


def _about(attribute: Attribute, table: Table | None) -> list[str]:
    name = attribute.name
    found: list[str] = []
    if attribute.kind_facts.ranged and attribute.lo is None:
        found.append(
            f"column '{name}' has no public domain: give lo and hi, known without looking at these records."
        )
    if attribute.kind_facts.listed and not attribute.ordered:
        found.append(f"column '{name}' has no order: list its values, lowest first, as ordered.")
    if not attribute.kind_facts.ordered and attribute.tree is None and attribute.type != "boolean":
        found.append(f"column '{name}' has no list of values: give values, or a taxonomy.")
    if attribute.type is None and not attribute.has_domain and (table is None or table.reads_cells):
        found.append(f"column '{name}' has no type: say integer, decimal, date, timestamp, text or boolean.")
    private = [fact for fact in FACTS if fact in attribute.from_records]
    if private:
        found.append(
            f"column '{name}': {_listed(private)} {'are' if len(private) > 1 else 'is'} known from these records "
            "only: check, "
            f"and name a source other than '{RECORDS}'."
        )
    if table is not None:
        found += _about_cells(attribute, table)
    return found


def _about_cells(attribute: Attribute, table: Table) -> list[str]:
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
            return [str(error)]
    found = _about_range(attribute, table)
    if absent.any() and attribute.missing is None:
        found.append(
            f"column '{name}' has missing values, the first in row {int(np.argmax(absent)) + 1}: say what becomes of "
            "them "
            "with missing."
        )
    if isinstance(table.dtype(name), nw.String):
        formula = first_formula(labels_of(table, attribute))
        if formula is not None:
            found.append(
                f"column '{name}' holds '{formula[:40]}', which a spreadsheet would run: correct it, or write the "
                "release "
                "with spreadsheet_safe=True."
            )
        if is_prose(table, name):
            found.append(
                f"column '{name}' holds sentences, which can point at a person: give it the role identifier, so that "
                "it is "
                "not released."
            )
    return found


def _about_range(attribute: Attribute, table: Table) -> list[str]:
    """Values that a release refuses unless it is told to clip them."""
    if attribute.lo is None or attribute.hi is None:
        return []
    values = numbers(table, attribute)
    lattice = attribute.lattice(integer=table.is_integer(attribute.name))
    outside = (values < float(lattice.lo)) | (values > float(lattice.hi))
    return [outside_words(attribute.name, lattice)] if outside.any() else []


def _about_unit(attribute: Attribute) -> list[str]:
    if attribute.role == "weight" and attribute.release is None:
        return [
            f"column '{attribute.name}' is a survey weight: say what becomes of it, release = dropped, masked (one "
            "more column) or raked (computed anew from public totals)."
        ]
    if attribute.role != "unit":
        return []
    if attribute.max_rows is None:
        return [
            f"unit column '{attribute.name}' has no max_rows: say how many rows one person can have at most."
        ]
    if "max_rows" in attribute.from_records:
        return [
            f"unit column '{attribute.name}': max_rows is known from these records only: declare a number that is "
            "known "
            "from elsewhere, and its source."
        ]
    return []


def _about_persons(schema: Schema, table: Table) -> list[str]:
    """An identifier that repeats: a promise would be about rows, and persons have several."""
    found = []
    for attribute in schema.attributes:
        if attribute.role == "identifier" and schema.unit is None and attribute.name in table.names:
            labels = [label for label in labels_of(table, attribute) if label is not None]
            if len(set(labels)) < len(labels) and not is_prose(table, attribute.name):
                found.append(
                    f"column '{attribute.name}' repeats: give it the role unit and max_rows, or a promise is about "
                    "rows and "
                    "not about persons."
                )
    if table.n < _FEW_ROWS:
        found.append("the table has one row: a release of it is about one person.")
    return found


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
