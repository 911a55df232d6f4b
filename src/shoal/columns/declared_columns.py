"""Public facts about columns: declared types and ranges, and facts from the records that taint a statement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import narwhals as nw
import numpy as np

from shoal.columns.attribute import FACTS, RECORDS, Attribute
from shoal.columns.column import parsed_label, public_facts, texts
from shoal.columns.kinds import Lattice
from shoal.columns.provenance import TAKEN_FROM_DATA, Declared
from shoal.columns.schema import Schema
from shoal.errors import InputError
from shoal.io import Table, arrow_type, is_plain, type_words, with_types, without_codes
from shoal.text import Message


def as_declared(table: Table, chosen: Sequence[Attribute], na: Sequence[str]) -> Table:
    """The table with its columns in their declared types; others stay as stored.

    The type with which a frame or a file stores a column is not a declaration: one record can change it.

    Raises:
        InputError: a value does not fit its column's declared type.
    """
    codes = {attribute.name: attribute.na for attribute in chosen if attribute.na}
    table = without_codes(table, codes)
    for attribute in (one.with_declared_type() for one in chosen):
        if attribute.type is None or attribute.name not in table.names:
            continue
        if not attribute.type_declared and attribute.name in table.inferred:
            continue
        if attribute.name in table.inferred and attribute.places is not None:
            table = _as_bounded(table, attribute, na)
        elif attribute.name in table.inferred and not attribute.kind_facts.ranged and table.path is None:
            table = _as_named(table, attribute)
        else:
            table = with_types(table, {attribute.name: attribute.type}, na)
    return without_codes(table, codes)


def _as_bounded(table: Table, attribute: Attribute, na: Sequence[str]) -> Table:
    """The table with a column in the type that its bounds imply."""
    name = attribute.name
    assert attribute.type is not None
    if isinstance(table.dtype(name), nw.String):
        # texts in a numeric column are reported when they are read, with their row
        return table
    try:
        return with_types(table, {name: attribute.type}, na)
    except InputError as error:
        if error.row is None:
            raise
        found = table.series(name)[error.row - 1]
        raise beyond_bounds(attribute, found, error.row) from None


def beyond_bounds(attribute: Attribute, value: object, row: int) -> InputError:
    """The error for a value that is infinite, or has more decimals than the bounds of its column."""
    name = attribute.name
    if isinstance(value, float) and math.isinf(value):
        return InputError("infinite", column=name, row=row)
    said = (
        Message.of("decimals-declared", decimals=attribute.places)
        if attribute.places
        else Message.of("whole-numbers-declared")
    )
    return InputError(
        "not-of-the-declared-type", column=name, row=row, option="types", found=str(value)[:40], declared=said
    )


def _as_named(table: Table, attribute: Attribute) -> Table:
    """The table with a nominal column in the type of its declared values.

    A name not of that type is not a declared value: the lookup reports it.
    """
    name = attribute.name
    assert attribute.type is not None
    if table.lists_categories(name) or is_plain(table, name, attribute.type):
        return replace(table, inferred=table.inferred - {name})
    found, which = texts(table, name)
    values = [None if text == "" else parsed_label(text, attribute.type) for text in found]
    if any(value is None and text != "" for value, text in zip(values, found, strict=True)):
        return table
    import pyarrow as pa

    stored = pa.array([*values, None], arrow_type(attribute.type)).take(
        pa.array(np.where(which < 0, len(values), which))
    )
    return table.retyped(name, pa.chunked_array([stored]))


def without_guessed_type(table: Table, attribute: Attribute) -> Attribute:
    """The attribute without an undeclared type, and without a step that rests on it."""
    return replace(attribute, type=None, decimals=None) if attribute.name in table.inferred else attribute


def public_attribute(attribute: Attribute, *, private_domain: bool) -> Attribute:
    """The attribute as a recipe may hold it: without facts known only from these records."""
    private = set(attribute.from_records)
    attribute = replace(attribute, places=None)
    if private_domain or "domain" in private:
        attribute = replace(attribute, lo=None, hi=None, values=())
    if "step" in private:
        attribute = replace(attribute, step=None, decimals=None)
    return replace(attribute, type=None, decimals=None) if "type" in private else attribute


def facts_from_records(table: Table, schema: Schema, chosen: Sequence[Attribute]) -> list[Message]:
    """Facts about the released columns, and about the unit, that are known only from these records."""
    units = [] if schema.unit is None else [schema.unit]
    found: dict[str, list[str]] = {}
    for attribute in (*chosen, *units):
        facts = set(attribute.from_records)
        if attribute.name in table.inferred | table.guessed and attribute not in units:
            # without a declared type, the kind was guessed from the inferred one
            facts = (facts | {"type"}) - {"kind"}
        for fact in facts:
            found.setdefault(fact, []).append(attribute.name)
    return [
        Message.of(_READ_OFF[fact], columns=tuple(found[fact]), records=RECORDS)
        for fact in FACTS
        if fact in found
    ]


def steps_from_records(schema: Schema) -> list[Message]:
    """Steps before protection whose parameters are known only from these records."""
    found = tuple(
        Message.of("step-of-column", do=step.do, column=step.column)
        for step in schema.declared.steps
        if step.from_records
    )
    return [Message.of("steps-chosen-on-records", steps=found)] if found else []


_READ_OFF = {
    "kind": "kinds-read-off",
    "type": "types-read-off",
    "domain": "domains-read-off",
    "step": "steps-read-off",
    "max_rows": "max-rows-read-off",
}


def stated_facts(table: Table, attribute: Attribute, lattice: Lattice) -> dict[str, str]:
    """The public facts about a column in words, without a step that follows from an undeclared type."""
    facts = public_facts(attribute, lattice)
    unknown = attribute.name in table.inferred or "type" in attribute.from_records
    undeclared = unknown and attribute.kind_facts.measured and attribute.declared_step is None
    if undeclared or "step" in attribute.from_records:
        facts["step"] = TAKEN_FROM_DATA
    facts["type"] = TAKEN_FROM_DATA if unknown else type_words(attribute.type, attribute.decimals)
    facts["source"] = attribute.source_words
    if attribute.flagged:
        facts["missing"] = "a value of its own"
    return facts


def declared_facts(
    schema: Schema,
    attributes: Sequence[Attribute],
    stated: Mapping[str, Mapping[str, str]],
    private_domains: Sequence[str],
) -> tuple[Declared, ...]:
    """The declared facts about the released columns, each with its source; facts from the records are excluded."""
    found: list[Declared] = []
    for attribute in attributes:
        private = attribute.name in private_domains
        found += _about_column(attribute, stated[attribute.name], private_domain=private)
    unit = schema.unit
    if unit is not None and unit.max_rows is not None and "max_rows" not in unit.from_records:
        known = {"rows": unit.max_rows, "source": unit.source.get("max_rows", "")}
        found.append(Declared("rows-per-person", {"column": unit.name, **known}))
    for step in schema.declared.steps:
        if not step.from_records:
            found.append(Declared("step", {"column": step.column, "do": step.do, "source": step.source}))
    if schema.weight is not None and schema.weight.release == "raked":
        for margin in schema.margins:
            found.append(Declared("margin", {"column": margin.column, "source": margin.source}))
    return tuple(found)


def _about_column(
    attribute: Attribute, stated: Mapping[str, str], *, private_domain: bool
) -> Iterator[Declared]:
    name, source = attribute.name, attribute.source
    if not private_domain and stated.get("lo") != TAKEN_FROM_DATA:
        known = {"column": name, "source": source.get("domain", "")}
        if "domain" in stated:
            yield Declared("values", {**known, "values": stated["domain"]})
        else:
            code = "order" if attribute.kind_facts.listed else "range"
            yield Declared(code, {**known, "lo": stated["lo"], "hi": stated["hi"]})
    if stated["type"] not in ("", TAKEN_FROM_DATA):
        yield Declared("type", {"column": name, "source": source.get("type", ""), "type": stated["type"]})
    if attribute.declared_step is not None and stated["step"] != TAKEN_FROM_DATA:
        yield Declared(
            "resolution", {"column": name, "source": source.get("step", ""), "step": stated["step"]}
        )
