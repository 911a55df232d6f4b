"""Which columns of a table are released, and notes about those that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from shoal.columns.attribute import Attribute, range_of, spells_numbers
from shoal.columns.declaration import Declaration
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError, closest
from shoal.io import Table


def chosen_columns(
    table: Table, declared: Declaration, kinds: Sequence[str], free: bool
) -> tuple[Schema, list[Attribute], list[str]]:
    """The attributes to release, in column order, and notes about those left out."""
    schema = declared.schema or Schema.infer(table)
    for attribute in schema.stepped.attributes:
        # a raked weight is made anew: that of the table has no part in it
        if attribute.release != "raked":
            table.known(attribute.name)
    domains = declared.domains or {}
    if declared.schema is None and table.reads_cells and not table.n:
        domains = {name: _as_read(name, domain, table) for name, domain in domains.items()}
    for name in (*domains, *(declared.types or {})):
        table.known(name)
    if declared.columns is not None:
        for name in declared.columns:
            table.known(name)
            if declared.columns.count(name) > 1:
                raise OptionError("columns-names-twice", option="columns", name=name)
        for name in domains:
            if name not in declared.columns:
                raise OptionError("domain-given-column-not-among-columns", column=name)
    requested = set(declared.columns or ()) | set(domains)
    if declared.schema is None:
        # whoever names a column knows better than a guess from its name
        schema = Schema(
            tuple(replace(a, role="confidential") if a.name in requested else a for a in schema.attributes)
        )
    described = set(schema.stepped.names)
    for name in requested - described:
        raise OptionError("column-not-described-schema", column=name, hint=closest(name, described))
    schema = schema.with_domains(domains).with_types(declared.types or {}).stepped
    chosen: list[Attribute] = []
    notes: list[str] = []
    for name in table.names:
        wanted = name in declared.columns if declared.columns is not None else name in described
        if not wanted:
            if declared.columns is None:
                notes.append(f"column '{name}' is not released: the schema does not describe it.")
            continue
        attribute = schema[name]
        reason = ""
        if attribute.dropped:
            reason = f"its role is {attribute.role}"
            if attribute.role == "weight" and attribute.release is None:
                reason += "; say what becomes of it (release = dropped, masked or raked in the schema)"
        elif attribute.kind not in kinds:
            reason = f"it is {attribute.kind}, and this method takes {_or(kinds)} columns"
        elif attribute.kind_facts.listed and not attribute.ordered:
            reason = "its order is not declared (ordered in the schema)"
        elif (
            not attribute.kind_facts.ordered
            and attribute.tree is None
            and not free
            and declared.schema is None
            and name not in requested
        ):
            reason = "its values are not declared (values or taxonomy in a schema)"
        elif attribute.kind_facts.days and attribute.lo is None and not free:
            reason = "it has no public domain (lo and hi in the schema)"
        if reason and name in requested:
            raise OptionError("column-cannot-released", column=name, reason=reason)
        if reason:
            if attribute.release != "raked":
                notes.append(f"column '{name}' is not released: {reason}.")
            continue
        chosen.append(attribute)
    if not chosen:
        why = "" if not notes else f" ({str(notes[0]).rstrip('.')})"
        raise InputError("no-column", option="columns", allowed=kinds, why=why)
    return schema, chosen, notes


def _as_read(name: str, domain: Any, table: Table) -> Any:
    """The domain of a column without cells, as it is taken where there are some of the kind that it lists.

    Without this a table with no rows would show by the type of a released column, or by a refusal that is not made.
    """
    if name not in table.inferred or not spells_numbers(domain):
        return domain
    lo, hi = range_of(name, domain)
    return Decimal(lo), Decimal(hi)


def _or(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
