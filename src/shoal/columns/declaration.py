"""The declarations of a caller about a table and the released columns, checked before any record is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.arguments import as_names
from shoal.columns.apply_steps import with_steps
from shoal.columns.attribute import POLICIES, Attribute, range_of, spells_numbers
from shoal.columns.kinds import OUTSIDE
from shoal.columns.provenance import MOST_EPSILON
from shoal.columns.schema import Schema
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.io import ColumnType, Conventions, Table, known_type, read
from shoal.numbers import exact
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.mechanisms import Tuned


# minimum length of a reason, in characters: "because" is not one
LEAST_REASON = 20


@internal()
@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything the caller declares about the table, before any record is read."""

    schema: Schema | None = None
    columns: tuple[str, ...] | None = None
    domains: Mapping[str, Any] | None = None
    domain_from_data: Fraction | None = None
    outside: str = "error"
    missing: str = "error"
    na: tuple[str, ...] = ()
    types: Mapping[str, str] | None = None
    tuned: Tuned | None = None
    file: Conventions = field(default_factory=Conventions)
    most_epsilon: Fraction = MOST_EPSILON
    override: str = ""

    @classmethod
    def of(
        cls,
        schema: Schema | None = None,
        columns: str | Sequence[str] | None = None,
        domains: Mapping[str, Any] | None = None,
        domain_from_data: object | None = None,
        outside: str = "error",
        missing: str = "error",
        na: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
        file: Conventions | Mapping[str, Any] | None = None,
        most_epsilon: object | None = None,
        override: str | None = None,
    ) -> Declaration:
        for name, value, choices in (("outside", outside, OUTSIDE), ("missing", missing, tuple(POLICIES))):
            if value not in choices:
                raise OptionError(
                    "unknown-option", option=name, found=value, allowed=tuple(choices), hint=None
                )
        if schema is not None and not isinstance(schema, Schema):
            raise OptionError("schema-shoal-schema", option="schema", found=type(schema).__name__)
        columns = as_names(columns) if isinstance(columns, str) else columns
        if columns is not None and not all(isinstance(name, str) for name in _listed("columns", columns)):
            raise OptionError("columns-list-column-names", option="columns", found=columns)
        if domains is not None and not isinstance(domains, Mapping):
            raise OptionError("domains-mapping-from-column-lo-hi", option="domains")
        if types is not None and not isinstance(types, Mapping):
            raise OptionError("types-mapping-from-column-integer-decimal", option="types")
        factor = None
        if domain_from_data is not None:
            factor = exact(domain_from_data, "domain_from_data")
            if factor < 1:
                raise OptionError("domain-from-data-least-1", option="domain_from_data", found=float(factor))
        return cls(
            None if schema is None else schema.declared,
            None if columns is None else tuple(columns),
            domains,
            factor,
            outside,
            missing,
            missing_texts(na),
            types,
            file=told_conventions(schema, file),
            most_epsilon=MOST_EPSILON if most_epsilon is None else exact(most_epsilon, "most_epsilon"),
            override=_reason(override),
        )


def _reason(override: object) -> str:
    """The reason for an override, if it is meaningful."""
    if override is None:
        return ""
    words = " ".join(str(override).split())
    if not isinstance(override, str) or len(words) < LEAST_REASON:
        raise OptionError(
            "override-say-why-least-characters", option="override", least=LEAST_REASON, found=override
        )
    return words


def declared_types(schema: Schema | None, types: Mapping[str, str] | None = None) -> dict[str, ColumnType]:
    """The types a file is read with: those of the schema, and those given by the caller."""
    found = {} if schema is None else dict(schema.types)
    for name, text in (types or {}).items():
        found[name] = known_type(text.partition(":")[0].strip(), name)
    return found


def told_conventions(schema: Schema | None, file: Conventions | Mapping[str, Any] | None) -> Conventions:
    """The conventions of the file: from the schema, overridden by the caller."""
    return (Conventions() if schema is None else schema.file).with_told(file)


def read_declared(
    data: Any,
    schema: Schema | None = None,
    *,
    na: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    file: Conventions | Mapping[str, Any] | None = None,
    empty: bool = False,
) -> Table:
    """The table, read by the declarations of schema and caller, after the steps of the schema.

    Ambiguous columns keep their doubts.
    """
    schema = None if schema is None else schema.declared
    dates = {} if schema is None else {a.name: a.format for a in schema.attributes if a.format is not None}
    for name, text in (types or {}).items():
        kind, colon, form = text.partition(":")
        if colon and kind.strip() in ("date", "timestamp"):
            dates[name] = form
    told = told_conventions(schema, file)
    if isinstance(data, Table) and data.steps:
        # already read; steps have since changed its columns' types
        return with_steps(data, schema)
    named = declared_types(schema, types)
    codes = {} if schema is None else {a.name: a.na for a in schema.attributes if a.na}
    table = read(data, missing_texts(na), named, told, dates, codes=codes, strict=False, empty=empty)
    return with_steps(table, schema, (*missing_texts(na), *told.na))


def read_as_asked(data: Any, request: Mapping[str, Any], *, empty: bool = False) -> Table:
    """The table, read by the keyword arguments of `shoal.protect`; without rows only if it may be `empty`."""
    told = {name: request[name] for name in ("na", "types", "file") if request.get(name) is not None}
    return read_declared(data, request.get("schema"), empty=empty, **told)


def missing_texts(na: Sequence[str] | None) -> tuple[str, ...]:
    """The texts that stand for a missing value, checked."""
    if isinstance(na, str) or not all(isinstance(text, str) for text in na or ()):
        raise OptionError("na-list-texts-stand-missing-value", option="na", found=na)
    return tuple(text.strip() for text in na or ())


def _listed(option: str, value: object) -> list[object]:
    if not isinstance(value, Iterable):
        raise OptionError("option-not-a-list", option=option, found=value)
    return list(value)


def chosen_columns(
    table: Table, declared: Declaration, kinds: Sequence[str], free: bool
) -> tuple[Schema, list[Attribute], list[Message]]:
    """The attributes to release, in column order, and notes about the columns left out."""
    schema = declared.schema or Schema.infer(table)
    for attribute in schema.stepped.attributes:
        # a raked weight is computed anew: the table's own plays no part
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
        # an explicitly named column overrides a guess from its name
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
    """The domain of an empty column, interpreted as it would be if there were values of the listed kind.

    Without this, the type of a released column, or a missing refusal, would reveal that a table has no rows.
    """
    if name not in table.inferred or not spells_numbers(domain):
        return domain
    lo, hi = range_of(name, domain)
    return Decimal(lo), Decimal(hi)
