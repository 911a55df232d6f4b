"""Conditions of queries: parse them, and find the records that meet them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Lattice, day_number
from shoal.errors import OptionError, closest
from shoal.noise import LARGEST_NUMERATOR, Source, parse_epsilon, shown
from shoal.numbers import What, exact
from shoal.privacy import Accountant, Adjacency
from shoal.query.facts import MISSING, NOBODY, DatasetFacts, QueryTable
from shoal.text import Message

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
OPERATIONS = (*COMPARISONS, "between", "in")
_LARGEST_TREE = 64
_DEEPEST = 8
_LONGEST_LIST = 1000
_LONGEST_TEXT = 200
_MOST_COMPARED = 200

# first and last position, both included
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Condition:
    """One column compared with constants; the constants are kept as written.

    Attributes:
        spans: for a column on a lattice, the positions that meet the condition, in ascending disjoint intervals.
            They are computed here once, from public facts, and not for every answer.
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
class Compound:
    """Several conditions: all of them ("and") or at least one ("or")."""

    how: str
    parts: tuple[Where, ...]

    def to_dict(self) -> dict[str, Any]:
        return {self.how: [part.to_dict() for part in self.parts]}


Where = Condition | Compound


def parse_where(raw: object, facts: DatasetFacts) -> Where:
    """Parse conditions from plain data, checked against the schema only.

    >>> from shoal.columns.schema import Schema
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1)),))
    >>> where = parse_where({"column": "age", "op": "between", "lo": 18, "hi": "64.5"}, DatasetFacts(schema, rows=10))
    >>> where.values, where.spans
    (('18', '64.5'), ((18, 64),))
    """
    budget = [_LARGEST_TREE]
    return _parse(raw, facts, budget, _DEEPEST)


def _parse(raw: object, facts: DatasetFacts, budget: list[int], depth: int) -> Where:
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
            return Compound(how, tuple(_parse(part, facts, budget, depth - 1) for part in parts))
    if "column" not in raw:
        if not raw:
            raise OptionError("condition-without-keys")
        found = tuple(shown(str(key)) for key in list(raw)[:3])
        code = "condition-not" if "not" in raw else "condition-needs-keys-column-op-value"
        raise OptionError(code, found=found)
    return _condition(raw, facts)


def _condition(raw: Mapping[Any, Any], facts: DatasetFacts) -> Condition:
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
    """The code of each label, for lookups without scanning all labels."""
    return {label: place for place, label in enumerate(labels)}


def no_such_label(attribute: Attribute, label: str, known: Mapping[str, int]) -> OptionError:
    """Why a label is not valid; a similar one is suggested from the first few only, which bounds the work."""
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
    """A constant of a query on the scale of the column: a number, a date, or a position in the order."""
    what = Message.of("part-value-for-column", column=attribute.name)
    if attribute.kind_facts.listed:
        known = label_numbers(attribute.ordered)
        if text not in known:
            raise no_such_label(attribute, text, known)
        return Fraction(known[text])
    return day_number(text, what) if attribute.kind_facts.days else exact(text, what)


def place(attribute: Attribute, lattice: Lattice, text: str) -> Fraction:
    """The place of a constant among the positions: at one, between two, or outside all of them.

    The last position stands for the upper end of the domain, even where that is not on the lattice.
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
    """Combine conditions, given which of them hold: truth values or masks."""
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
    """The records that meet the conditions; all records if there are none.

    The work on every record is the same, however many meet the conditions, and whether or not a label occurs.
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


_LARGEST = 50_000
_DEEPEST_QUERY = 12
# exact numbers are multiplied with each other: long ones would grow without limit
_MOST_DIGITS = 30

EDGE = Message.of("part-edge")
Run = Callable[[QueryTable, Accountant], Any]


def plain(raw: object) -> Any:
    """A copy in which every number is its decimal text; anything other than plain data is refused.

    >>> plain({"epsilon": 0.5, "edges": [0, 1.5]})
    {'epsilon': '0.5', 'edges': ['0', '1.5']}
    """
    return _plain(raw, [_LARGEST], _DEEPEST_QUERY)


def _plain(raw: object, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth == 0:
        raise OptionError("query-may-have-values-most-levels", largest=_LARGEST, deepest=_DEEPEST_QUERY)
    if isinstance(raw, Mapping):
        if not all(isinstance(key, str) for key in raw):
            raise OptionError("keys-query-text")
        return {_words_of(key): _plain(value, left, depth - 1) for key, value in raw.items()}
    if isinstance(raw, list | tuple):
        return [_plain(value, left, depth - 1) for value in raw]
    if isinstance(raw, bool) or not isinstance(raw, str | int | float | Fraction):
        raise OptionError("query-made-numbers-text-lists-objects", found=shown(repr(raw)))
    if isinstance(raw, int) and abs(raw) >= 10**_LONGEST_TEXT:
        raise OptionError("number-query-more-than-digits", longest_text=_LONGEST_TEXT)
    return _words_of(str(raw))


def _words_of(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        raise OptionError("text-query-more-than-characters", longest_text=_LONGEST_TEXT)
    return text


def check_keys(
    what: What, found: Mapping[str, Any], required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """Check that exactly the expected keys are present; the error names the first unexpected one."""
    known = [*required, *optional]
    for key in found:
        if key not in known:
            raise OptionError("has-no-option", what=what, key=key, hint=closest(key, known))
    for key in required:
        if key not in found:
            raise OptionError("option-needs-option", what=what, key=key)


def as_mapping(what: What, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OptionError("option-object-options", what=what)
    return value


def as_list(what: What, value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise OptionError("option-list-1-entries", what=what, most=most)
    return value


def as_text(what: What, value: Any) -> str:
    if not isinstance(value, str):
        raise OptionError("option-number-text", what=what)
    return value


def as_number(what: What, value: Any) -> Fraction:
    number = exact(as_text(what, value), what)
    if abs(number) >= 10**_MOST_DIGITS or number.denominator > 10**_MOST_DIGITS:
        raise OptionError(
            "may-have-digits-before-after-point", what=what, most_digits=_MOST_DIGITS, found=shown(value)
        )
    return number


def as_whole(what: What, value: Any) -> int:
    number = as_number(what, value)
    if number.denominator != 1:
        raise OptionError("parsing-option-whole-number", what=what, found=shown(value))
    return int(number)


def as_epsilon(value: Any) -> Fraction:
    return parse_epsilon(as_text("epsilon", value))


def as_scale(value: Any) -> Fraction:
    scale = as_number("scale", value)
    if not 0 < scale <= LARGEST_NUMERATOR:
        raise OptionError("scale-above-0-most-2-52", option="scale", found=shown(value))
    return scale


def as_delta(value: Any) -> Fraction:
    delta = as_number("delta", value)
    if not 0 <= delta < 1:
        raise OptionError("delta-least-0-below-1", option="delta", found=shown(value))
    return delta


@dataclass(frozen=True, slots=True)
class Offer:
    """A possible answer and its cost; everything except `run` is public.

    Attributes:
        epsilon: the cost of the answer for one row, under the relation of the data set.
        reserved: the part of it for each measurement; empty where the answer is public.
        delta: the probability that this fails, under the same relation.
        sensitivity: in the unit of the answer; None where the mechanism does not use one.
        error: the error known beforehand.
        run: draws the answer, and spends what is reserved.
        person: for a query about one person, the column and the value that identify the person.
    """

    epsilon: Fraction
    reserved: Mapping[str, Fraction]
    sensitivity: Fraction | None
    noise: Message
    error: Mapping[str, Any]
    run: Run
    conditions: tuple[Message, ...] = ()
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None

    def account(self, facts: DatasetFacts, source: Source) -> Accountant:
        """The account of one answer, with nothing spent.

        Raises:
            OverspendError: more is reserved than the answer costs.
        """
        return Accountant.of(self.reserved, self.epsilon, source, adjacency=Adjacency(facts.adjacency))
