"""The declarations of a caller about a table and the released columns, checked before any record is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from shoal.arguments import as_names
from shoal.columns.attribute import FACTS, POLICIES, RECORDS, Attribute, range_of, spells_numbers
from shoal.columns.column import labels_of, numbers, parsed_label, public_facts, texts
from shoal.columns.kinds import OUTSIDE, Lattice
from shoal.columns.provenance import TAKEN_FROM_DATA, Declared
from shoal.columns.schema import Schema
from shoal.columns.steps import Step, above, as_number
from shoal.display import internal
from shoal.errors import InputError, OptionError, ShoalError, closest
from shoal.io import (
    ColumnType,
    Conventions,
    Table,
    arrow_type,
    check_doubts,
    content_digest,
    first_row,
    is_plain,
    known_type,
    read,
    type_words,
    with_types,
    without_codes,
)
from shoal.noise import MOST_EPSILON
from shoal.numbers import exact
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.mechanisms import Tuned


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
    if "spikes" in private:
        attribute = replace(attribute, spikes=())
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
    "spikes": "spikes-read-off",
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
    released = {attribute.name for attribute in attributes}
    for rule in schema.rules:
        if not rule.from_records and set(rule.named) <= released:
            found.append(Declared("rule", {"rule": rule.words, "kind": rule.kind, "source": rule.source}))
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


# minimum length of a reason, in characters: "because" is not one
LEAST_REASON = 20


@internal()
@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything the caller declares about the table, before any record is read.

    Attributes:
        bound_key: the key by which the rows of a unit are ordered where they are bounded; None for a fresh one.
    """

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
    bound_key: bytes | None = field(default=None, repr=False)

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
        bound_key: bytes | None = None,
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
            bound_key=bound_key,
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
