"""Conditions of queries: compare columns with constants, never evaluate code.

A condition is never evaluated as code. It compares a column with constants; a missing value meets no condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.kinds import Lattice, day_number
from shoal.decimals import exact
from shoal.errors import OptionError, closest
from shoal.noise.scale import shown
from shoal.query.facts import MISSING, NOBODY, Facts, QueryTable
from shoal.text import Message

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
OPERATIONS = (*COMPARISONS, "between", "in")
_LARGEST_TREE = 64
_DEEPEST = 8
_LONGEST_LIST = 1000
_LONGEST_TEXT = 200
_MOST_COMPARED = 200

# positions from .. to, both included
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Condition:
    """One column compared with constants; the constants are kept as they were written.

    Attributes:
        spans: for a column on a lattice, the positions that meet the condition, lowest first, apart from each other.
            They are computed here, from public facts, and not again for every answer.
    """

    column: str
    op: str
    values: tuple[str, ...]
    spans: tuple[Interval, ...] = field(default=(), compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        if self.op == "in":
            return {"column": self.column, "op": "in", "values": list(self.values)}
        if self.op == "between":
            return {"column": self.column, "op": "between", "lo": self.values[0], "hi": self.values[1]}
        return {"column": self.column, "op": self.op, "value": self.values[0]}


@dataclass(frozen=True, slots=True)
class Together:
    """Several conditions: all of them ("and") or at least one ("or")."""

    how: str
    parts: tuple[Where, ...]

    def to_dict(self) -> dict[str, Any]:
        return {self.how: [part.to_dict() for part in self.parts]}


Where = Condition | Together


def parse_where(raw: object, facts: Facts) -> Where:
    """Conditions from plain data, checked against the schema only.

    >>> from shoal.columns.schema import Schema
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1)),))
    >>> where = parse_where({"column": "age", "op": "between", "lo": 18, "hi": "64.5"}, Facts(schema, rows=10))
    >>> where.values, where.spans
    (('18', '64.5'), ((18, 64),))
    """
    budget = [_LARGEST_TREE]
    return _parse(raw, facts, budget, _DEEPEST)


def _parse(raw: object, facts: Facts, budget: list[int], depth: int) -> Where:
    budget[0] -= 1
    if budget[0] < 0 or depth == 0:
        raise OptionError("where-too-large", option="where", largest_tree=_LARGEST_TREE, deepest=_DEEPEST)
    if not isinstance(raw, Mapping):
        raise OptionError("where-condition-such-column", option="where")
    for how in ("and", "or"):
        if how in raw:
            parts = raw[how]
            if len(raw) != 1 or not isinstance(parts, list | tuple) or not parts:
                raise OptionError("alone-list-condition-more", how=how)
            return Together(how, tuple(_parse(part, facts, budget, depth - 1) for part in parts))
    if "column" not in raw:
        if not raw:
            raise OptionError("condition-without-keys")
        found = tuple(shown(str(key)) for key in list(raw)[:3])
        code = "condition-not" if "not" in raw else "condition-needs-keys-column-op-value"
        raise OptionError(code, found=found)
    return _condition(raw, facts)


def _condition(raw: Mapping[Any, Any], facts: Facts) -> Condition:
    attribute, op = facts.attribute(raw.get("column")), raw.get("op")
    if attribute.role in ("identifier", "unit"):
        raise OptionError("where-column-identifies-persons", column=attribute.name)
    if op not in OPERATIONS:
        hint = closest(op, OPERATIONS)
        raise OptionError("unknown-op", op=shown(repr(op)), allowed=tuple(OPERATIONS), hint=hint)
    keys = {"in": ("values",), "between": ("lo", "hi")}.get(op, ("value",))
    if set(raw) != {"column", "op", *keys}:
        raise OptionError("condition-op-keys-column-op", op=op, keys=tuple(keys))
    found = raw["values"] if op == "in" else [raw[key] for key in keys]
    if not isinstance(found, list | tuple) or not 1 <= len(found) <= _LONGEST_LIST:
        raise OptionError("needs-list-1-values", longest_list=_LONGEST_LIST)
    if not facts.has_lattice(attribute) and op not in ("==", "!=", "in"):
        raise OptionError("where-column-labels-without-order", column=attribute.name)
    values = tuple(_text(value) for value in found)
    if facts.has_lattice(attribute):
        return Condition(
            attribute.name, op, values, _spans(attribute, facts.lattice(attribute.name), op, values)
        )
    known = label_numbers(facts.labels(attribute))
    for value in values:
        if known and value not in known:
            raise no_such_label(attribute, value, known)
    return Condition(attribute.name, op, values)


@lru_cache(maxsize=256)
def label_numbers(labels: tuple[str, ...]) -> Mapping[str, int]:
    """The place of each label, to be looked up without going through all of them."""
    return {label: place for place, label in enumerate(labels)}


def no_such_label(attribute: Attribute, label: str, known: Mapping[str, int]) -> OptionError:
    """Why a label cannot be asked about; a similar one is looked for among the first only, which bounds the work."""
    hint = closest(label, list(known)[:_MOST_COMPARED])
    return OptionError("where-column-no-value", column=attribute.name, label=shown(label), hint=hint)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise OptionError("where-compares-numbers-text", found=shown(repr(value)))
    text = str(value)
    if len(text) > _LONGEST_TEXT:
        raise OptionError("value-where-more-than-characters", longest_text=_LONGEST_TEXT)
    return text


def constant(attribute: Attribute, text: str) -> Fraction:
    """A constant of a query on the scale of the column: a number, a day, or a place in the order."""
    what = Message.of("part-value-for-column", column=attribute.name)
    if attribute.kind_facts.listed:
        known = label_numbers(attribute.ordered)
        if text not in known:
            raise no_such_label(attribute, text, known)
        return Fraction(known[text])
    return day_number(text, what) if attribute.kind_facts.days else exact(text, what)


def place(attribute: Attribute, lattice: Lattice, text: str) -> Fraction:
    """Where a constant lies among the positions: between two of them, or outside all, if it is none itself.

    The last position stands for the upper end of the domain, also where that is not on the lattice.
    """
    value = constant(attribute, text)
    if value >= lattice.hi:
        return Fraction(lattice.steps + (value > lattice.hi))
    return (value - lattice.lo) / lattice.step


def _spans(attribute: Attribute, lattice: Lattice, op: str, values: tuple[str, ...]) -> tuple[Interval, ...]:
    places = [place(attribute, lattice, text) for text in values]
    first, last = 0, lattice.steps
    found: list[Interval]
    match op:
        case "==" | "in":
            whole = sorted({point.numerator for point in places if point.denominator == 1})
            found = [(point, point) for point in whole]
        case "!=":
            found = [(first, math.ceil(places[0]) - 1), (math.floor(places[0]) + 1, last)]
            found = found if places[0].denominator == 1 else [(first, last)]
        case "<":
            found = [(first, math.ceil(places[0]) - 1)]
        case "<=":
            found = [(first, math.floor(places[0]))]
        case ">":
            found = [(math.floor(places[0]) + 1, last)]
        case ">=":
            found = [(math.ceil(places[0]), last)]
        case _:
            found = [(math.ceil(places[0]), math.floor(places[1]))]
    clipped = [(max(low, first), min(high, last)) for low, high in found]
    return tuple((low, high) for low, high in clipped if low <= high)


def meets(where: Where, holds: Callable[[Condition], Any]) -> Any:
    """Conditions put together, once it is known which of them hold: truth values or masks of them."""
    if isinstance(where, Condition):
        return holds(where)
    combined = meets(where.parts[0], holds)
    for part in where.parts[1:]:
        other = meets(part, holds)
        combined = combined & other if where.how == "and" else combined | other
    return combined


def conditions(where: Where | None) -> list[Condition]:
    """All single conditions of a tree."""
    if where is None:
        return []
    if isinstance(where, Condition):
        return [where]
    return [condition for part in where.parts for condition in conditions(part)]


def matching(where: Where | None, table: QueryTable) -> NDArray[np.bool_]:
    """Which records meet the conditions; all of them where there are none.

    The same work on every record, however many meet the conditions, and whether or not a label occurs.
    """

    def holds(condition: Condition) -> NDArray[np.bool_]:
        if condition.column in table.positions:
            if condition.op == "in":
                ends = np.array(condition.spans, dtype=np.int64).reshape(-1, 2)
                return table.orders[condition.column].inside(ends[:, 0], ends[:, 1])
            positions = table.positions[condition.column]
            found = np.zeros(table.n, dtype=np.bool_)
            for low, high in condition.spans:
                found |= (positions >= low) & (positions <= high)
            return found
        codes = table.codes[condition.column]
        named = np.zeros(len(table.labels[condition.column]) - NOBODY, dtype=np.bool_)
        named[[table.code(condition.column, value) - NOBODY for value in condition.values]] = True
        same: NDArray[np.bool_] = np.take(named, codes - NOBODY)
        return ~same & (codes != MISSING) if condition.op == "!=" else same

    return np.ones(table.n, dtype=np.bool_) if where is None else meets(where, holds)
