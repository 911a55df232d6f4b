"""What is known about columns, and from where: a table and declared facts come in, types and taints leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shoal.columns.attribute import FACTS, RECORDS, Attribute
from shoal.columns.circumstances import TAKEN_FROM_DATA, Declared
from shoal.columns.coding import public_facts
from shoal.columns.lattice import Lattice
from shoal.columns.schema import Schema
from shoal.io import ColumnType, Table, type_of, type_words, with_types, without_codes


def as_declared(table: Table, chosen: Sequence[Attribute], na: Sequence[str]) -> Table:
    """The table with its columns in the types that somebody declared; others stay as their cells look."""
    known = [
        a
        for a in chosen
        if a.type is not None and (a.name not in table.inferred or a.source.get("type") != RECORDS)
    ]
    # Python's own values can stay what they are: names and dates are told by their text
    objects = {a.name for a in known if not a.kind_facts.measured and table.holds_objects(a.name)}
    table = replace(table, inferred=table.inferred - objects)
    codes = {a.name: a.na for a in chosen if a.na}
    types = {a.name: a.type for a in known if a.type and a.name not in objects}
    return without_codes(with_types(table, types, na, codes), codes)


def with_listed_type(table: Table, attribute: Attribute) -> Attribute:
    """A frame's column of objects is what its declared values are."""
    declared = attribute.values or attribute.ordered or attribute.taxonomy or attribute.kind_facts.days
    if table.reads_cells or attribute.name not in table.inferred or not declared:
        return attribute
    if attribute.type is not None and attribute.source.get("type") != RECORDS:
        return attribute
    known = {fact: source for fact, source in attribute.source.items() if fact not in ("kind", "type")}
    return replace(attribute, type=_type_of_names(attribute.values), source=known)


def _type_of_names(names: Sequence[str]) -> ColumnType:
    """The type of names that are truth values or whole numbers by their spelling, text for any others."""
    if names and {name.lower() for name in names} <= {"true", "false"}:
        return "boolean"
    return "integer" if names and all(name.lstrip("-").isdigit() for name in names) else "text"


def with_stored_type(table: Table, attribute: Attribute) -> Attribute:
    """The attribute with the type of a frame's column, which is the caller's word for it.

    What the cells of a file look like is nobody's word: neither that nor a step that rests on it is kept.
    """
    if attribute.name in table.inferred:
        return replace(attribute, type=None, decimals=None)
    stored = type_of(table.dtype(attribute.name))
    # texts where numbers should be are complained about later, with their row
    if attribute.type is not None or not attribute.kind_facts.takes(stored):
        return attribute
    return replace(attribute, type=stored)


def public_attribute(attribute: Attribute, *, private_domain: bool) -> Attribute:
    """The attribute as a recipe may hold it: without what is known from these records only."""
    private = set(attribute.from_records)
    if private_domain or "domain" in private:
        attribute = replace(attribute, lo=None, hi=None, values=())
    if "step" in private:
        attribute = replace(attribute, step=None, decimals=None)
    return replace(attribute, type=None, decimals=None) if "type" in private else attribute


def facts_from_records(table: Table, schema: Schema, chosen: Sequence[Attribute]) -> list[str]:
    """What is known about the released columns, and about whose rows they are, from these records only."""
    units = [] if schema.unit is None else [schema.unit]
    found: dict[str, list[str]] = {}
    for attribute in (*chosen, *units):
        facts = set(attribute.from_records)
        if attribute.name in table.inferred | table.guessed and attribute not in units:
            # where nobody declared the type, the guess of the kind rests on it
            facts = (facts | {"type"}) - {"kind"}
        for fact in facts:
            found.setdefault(fact, []).append(attribute.name)
    return [
        f"{_FACT_WORDS[fact]} read off the records: {', '.join(found[fact])} (declare "
        f"{'lo and hi, or values,' if fact == 'domain' else fact} in the schema, with a source other than '{RECORDS}')."
        for fact in FACTS
        if fact in found
    ]


def steps_from_records(schema: Schema) -> list[str]:
    """The steps before protection whose parameters are known from these records only."""
    found = [step for step in schema.declared.steps if step.from_records]
    if not found:
        return []
    named = ", ".join(f"{step.do} of {step.column}" for step in found)
    return [f"steps before protection chosen on the records: {named} (declare another source in the schema)."]


_FACT_WORDS = {
    "kind": "kinds",
    "type": "types",
    "domain": "domains",
    "step": "steps",
    "max_rows": "largest number of rows of a person",
}


def stated_facts(table: Table, attribute: Attribute, lattice: Lattice) -> dict[str, str]:
    """The public facts about a column in words; a step that follows a type that nobody declared is none."""
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
    """What is declared about the released columns, each fact with its source; facts from the records are none of it."""
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
