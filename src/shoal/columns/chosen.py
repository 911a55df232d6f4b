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
from shoal.text import Message


def chosen_columns(
    table: Table, declared: Declaration, kinds: Sequence[str], free: bool
) -> tuple[Schema, list[Attribute], list[Message]]:
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
                raise OptionError("columns-names-twice", option="columns", column=name)
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
    notes: list[Message] = []
    for name in table.names:
        wanted = name in declared.columns if declared.columns is not None else name in described
        if not wanted:
            if declared.columns is None:
                notes.append(_not_released(name, Message.of("not-in-schema")))
            continue
        attribute = schema[name]
        reason = None
        if attribute.dropped:
            undecided = attribute.role == "weight" and attribute.release is None
            reason = Message.of(
                "weight-not-decided" if undecided else "role-not-released", role=attribute.role
            )
        elif attribute.kind not in kinds:
            reason = Message.of("kind-not-taken", kind=attribute.kind, allowed=tuple(kinds))
        elif attribute.kind_facts.listed and not attribute.ordered:
            reason = Message.of("order-not-declared")
        elif (
            not attribute.kind_facts.ordered
            and attribute.tree is None
            and not free
            and declared.schema is None
            and name not in requested
        ):
            reason = Message.of("values-not-declared")
        elif attribute.kind_facts.days and attribute.lo is None and not free:
            reason = Message.of("days-without-domain")
        if reason is not None and name in requested:
            raise OptionError("column-cannot-released", column=name, reason=reason)
        if reason is not None:
            if attribute.release != "raked":
                notes.append(_not_released(name, reason))
            continue
        chosen.append(attribute)
    if not chosen:
        why = Message("because-not-released", notes[0].facts) if notes else ""
        raise InputError("no-column", option="columns", allowed=tuple(kinds), why=why)
    return schema, chosen, notes


def _not_released(name: str, reason: Message) -> Message:
    return Message.of("column-not-released", column=name, reason=reason)


def _as_read(name: str, domain: Any, table: Table) -> Any:
    """The domain of a column without cells, as it is taken where there are some of the kind that it lists.

    Without this a table with no rows would show by the type of a released column, or by a refusal that is not made.
    """
    if name not in table.inferred or not spells_numbers(domain):
        return domain
    lo, hi = range_of(name, domain)
    return Decimal(lo), Decimal(hi)
