"""Facts that answers need about a prepared table, computed before any query.

Every error that depends on the records is raised here, to the custodian. Once a table is prepared, a query is
refused for public reasons only.

Every array has one entry per row, whatever the rows hold: repeated and missing values make nothing shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shoal._moved import renamed
from shoal.arguments import renamed_arguments, renamed_attributes
from shoal.columns import (
    ROW,
    Attribute,
    Lattice,
    Schema,
    as_declared,
    bounded_rows,
    day_number,
    fresh_key,
    labels_of,
    numbers,
    public_facts,
    read_declared,
    unit_words,
    without_guessed_type,
)
from shoal.display import internal
from shoal.errors import ClaimError, InputError, OptionError, closest
from shoal.io import Table, check_doubts
from shoal.noise import LARGEST_NUMERATOR, Source, parse_epsilon, shown
from shoal.numbers import Integers, What, decimal_text, exact
from shoal.privacy import Accountant, Adjacency
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
Run = Callable[["QueryTable", Accountant], Any]


def plain(raw: object) -> Any:
    """A copy in which every number is its decimal text; anything other than plain data is refused.

    >>> plain({"epsilon": 0.5, "edges": [0, 1.5]})
    {'epsilon': '0.5', 'edges': ['0', '1.5']}
    """
    return _checked_values(raw, [_LARGEST], _DEEPEST_QUERY)


def _checked_values(raw: object, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth == 0:
        raise OptionError("query-may-have-values-most-levels", largest=_LARGEST, deepest=_DEEPEST_QUERY)
    if isinstance(raw, Mapping):
        if not all(isinstance(key, str) for key in raw):
            raise OptionError("keys-query-text")
        return {_words_of(key): _checked_values(value, left, depth - 1) for key, value in raw.items()}
    if isinstance(raw, list | tuple):
        return [_checked_values(value, left, depth - 1) for value in raw]
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
        of_unit: `epsilon` is the cost for a unit, whatever its number of rows.
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
    of_unit: bool = False

    def account(self, facts: DatasetFacts, source: Source) -> Accountant:
        """The account of one answer, with nothing spent.

        Raises:
            OverspendError: more is reserved than the answer costs.
        """
        return Accountant.of(self.reserved, self.epsilon, source, adjacency=Adjacency(facts.adjacency))


Neighbours = Literal["replace-one", "add-remove"]
# the code of a missing value among positions and labels
MISSING = -1
# the code of a label that no record has
NOBODY = -2
# maximum number of points kept for each column where the number of rows is private
_FEW_POINTS = 1 << 16


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowOrder:
    """The rows in order of their positions, smallest first; rows without a value, at -1, come before all others.

    Attributes:
        rows: row numbers.
        values: their positions.
        ranks: number of rows below each position, and in total; only where there are few positions.

    >>> order = RowOrder.of(np.array([5, -1, 2, 5]), 7)
    >>> order.rows.tolist(), order.values.tolist(), order.ranks.tolist()
    ([1, 2, 0, 3], [-1, 2, 5, 5], [1, 1, 1, 2, 2, 2, 4, 4])
    """

    rows: NDArray[np.intp]
    values: Integers
    ranks: Integers | None = None

    @classmethod
    def of(cls, positions: Integers, points: int = 0, mixed: NDArray[np.intp] | None = None) -> RowOrder:
        """The order of the given positions.

        Args:
            positions: of all rows.
            points: the number of possible positions, to keep the rank of each; 0 not to.
            mixed: the order of rows with equal positions.
        """
        mixed = np.arange(positions.size) if mixed is None else mixed
        rows = mixed[np.argsort(positions[mixed], kind="stable")]
        values = positions[rows]
        ranks = np.searchsorted(values, np.arange(points + 1)).astype(np.int64) if points else None
        return cls(rows, values, ranks)

    def upto(self, chosen: NDArray[np.bool_]) -> Integers:
        """The number of chosen rows with a value among the first rows, for every number of rows: private."""
        counted = np.cumsum(chosen[self.rows] & (self.values >= 0), dtype=np.int64)
        return np.concatenate((np.zeros(1, dtype=np.int64), counted))

    def rank(self, points: Integers) -> Integers:
        """The number of rows with a position below each of these public points: private.

        Looked up, or a binary search with as many steps as the number of rows has bits, the same for every point.
        """
        if self.ranks is not None:
            # an empty interval may begin after the last point
            found: Integers = self.ranks[np.minimum(points, self.ranks.size - 1)]
            return found
        found = np.zeros(points.size, dtype=np.int64)
        for step in reversed([1 << bit for bit in range(self.values.size.bit_length())]):
            further = np.minimum(found + step, self.values.size)
            below = (found + step <= self.values.size) & (self.values[further - 1] < points)
            found += step * below
        return found

    def between(self, chosen: NDArray[np.bool_], lows: Integers, highs: Integers) -> Integers:
        """The number of chosen rows in each interval, both ends included: private."""
        upto = self.upto(chosen)
        found: Integers = upto[self.rank(highs + 1)] - upto[self.rank(lows)]
        return found

    def inside(self, lows: Integers, highs: Integers) -> NDArray[np.bool_]:
        """The rows in any of several disjoint intervals: private.

        However many intervals there are, one pass over all rows.
        """
        changes = np.zeros(self.values.size + 1, dtype=np.int32)
        np.add.at(changes, self.rank(lows), 1)
        np.add.at(changes, self.rank(highs + 1), -1)
        found = np.empty(self.values.size, dtype=np.bool_)
        found[self.rows] = np.cumsum(changes[:-1]) > 0
        return found


@renamed_attributes(neighbours="adjacency")
@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """The public facts about a data set: a query is checked and priced from these alone.

    Attributes:
        schema: the described columns.
        adjacency: the relation for all claims about this data set.
        rows: the number of records, public under replace-one; None under add-remove.
        integer_columns: columns stored as integers, for which a step of 1 is the default.
        refused: columns with facts known only from the records, such as the type of a file's cells: nothing
            may be disclosed about them.
    """

    schema: Schema
    adjacency: Neighbours = "replace-one"
    rows: int | None = None
    integer_columns: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.adjacency not in get_args(Neighbours):
            raise OptionError(
                "unknown-neighbours",
                option="adjacency",
                neighbours=self.adjacency,
                allowed=tuple(get_args(Neighbours)),
            )
        if (self.rows is None) == (self.adjacency == "replace-one"):
            raise OptionError("number-rows-public-under-replace-only")
        if self.bounded and self.replace_one:
            raise OptionError("bound-needs-private-rows", option="adjacency")
        if self.rows is not None and self.rows < 1:
            raise InputError("facts-table-no-rows")

    @property
    def replace_one(self) -> bool:
        return self.adjacency == "replace-one"

    @property
    def relation(self) -> str:
        """The adjacency as text."""
        return Adjacency(self.adjacency).words

    @property
    def rows_per_unit(self) -> int:
        """The most rows a unit can have: a query costs a unit this many times its cost for a row."""
        return 1 if self.schema.unit is None else self.schema.unit.unit_rows

    @property
    def bounded(self) -> bool:
        """Whether rows of a unit beyond that number are left out."""
        return self.schema.unit is not None and self.schema.unit.bound is not None

    @property
    def unit(self) -> str:
        unit = self.schema.unit
        if unit is None:
            return ROW
        return unit_words(unit.name, None if self.bounded else self.rows_per_unit, unit.called)

    def attribute(self, name: object) -> Attribute:
        if not isinstance(name, str) or name not in self.schema:
            if isinstance(name, str) and name in self.refused:
                raise OptionError("column-cannot-asked-about", column=name)
            hint = closest(name, self.schema.names)
            raise OptionError("data-set-no-column", column=str(name)[:60], hint=hint)
        return self.schema[name]

    def has_lattice(self, attribute: Attribute) -> bool:
        """Whether the values of a column are positions on a public lattice; otherwise they are only labels."""
        if attribute.role in ("identifier", "unit") or not attribute.kind_facts.ordered:
            return False
        return len(attribute.ordered) > 1 if attribute.kind_facts.listed else attribute.lo is not None

    def labels(self, attribute: Attribute) -> tuple[str, ...]:
        """The public labels of a column, in their order if they have one; empty if the schema does not list them."""
        if attribute.kind_facts.listed:
            return attribute.ordered
        return () if attribute.tree is None else attribute.tree.values

    def lattice(self, name: object) -> Lattice:
        """The public lattice of a column; raises an error if it has none."""
        attribute = self.attribute(name)
        if not self.has_lattice(attribute):
            raise OptionError("column-no-public-domain", column=attribute.name)
        return attribute.lattice(integer=attribute.name in self.integer_columns)

    def ranked(self, name: str) -> int:
        """The number of lattice points of a column if they are few compared with the rows, as far as public, or 0.

        Computations by rank then go through these points, otherwise through the rows.
        """
        points = self.lattice(name).steps + 1
        return points if points <= (_FEW_POINTS if self.rows is None else 2 * self.rows) else 0

    def describe(self) -> dict[str, Any]:
        """The public facts for analysts: columns with their kinds and domains, and the adjacency."""
        columns = []
        for attribute in self.schema.attributes:
            found: dict[str, Any] = {
                "name": attribute.name,
                "kind": attribute.kind,
                "role": attribute.role,
            }
            if self.has_lattice(attribute):
                found |= public_facts(attribute, self.lattice(attribute.name))
            if labels := self.labels(attribute):
                found["values"] = list(labels)
            columns.append(found)
        return {
            "neighbours": self.adjacency,
            "relation": self.relation,
            "rows": self.rows,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "columns": columns,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, from which `from_dict` restores the facts."""
        return {
            "neighbours": self.adjacency,
            "rows": self.rows,
            "integer_columns": sorted(self.integer_columns),
            "refused": sorted(self.refused),
            "schema": _plain(self.schema.to_dict()),
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> DatasetFacts:
        return cls(
            Schema.from_dict(raw["schema"]),
            raw["neighbours"],
            raw["rows"],
            frozenset(raw["integer_columns"]),
            frozenset(raw.get("refused", ())),
        )


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class QueryTable:
    """The records, ready for queries. They leave this object only through a mechanism.

    Attributes:
        positions: lattice positions of each column that has them, clipped to the domain; -1 for a missing value.
        codes: codes of the labels of the other columns; -1 for a missing value.
        labels: the code of each label, by column.
        names: the labels in the order of their codes, by column.
        orders: the row order of each column except those that identify persons, smallest position or code first.
    """

    facts: DatasetFacts
    n: int
    positions: Mapping[str, NDArray[np.int64]]
    codes: Mapping[str, NDArray[np.int64]]
    labels: Mapping[str, Mapping[str, int]]
    names: Mapping[str, Sequence[str]]
    orders: Mapping[str, RowOrder]

    def code(self, column: str, label: str) -> int:
        """The code of a label; one that no row has if there is no such label."""
        return self.labels[column].get(label, NOBODY)

    def only_row(self, column: str, label: str) -> tuple[int, bool]:
        """The one row with this label, and whether it is unique: the work is the same if there is none."""
        same = self.codes[column] == self.code(column, label)
        place = int(np.multiply(same, np.arange(self.n)).sum())
        return min(place, max(self.n - 1, 0)), int(np.count_nonzero(same)) == 1

    def shuffled(self) -> QueryTable:
        """The same records in an order that reveals nothing about them.

        The order of the rows determines which parts of the memory a question reads in sequence, and so
        how long it takes. Here the rows are in random order, and so are rows of equal value in the order of a column.
        """
        entropy = np.random.default_rng()
        places, mixed = entropy.permutation(self.n), entropy.permutation(self.n)
        positions = {name: found[places] for name, found in self.positions.items()}
        codes = {name: found[places] for name, found in self.codes.items()}
        orders = _orders(self.facts, positions, codes, mixed)
        return replace(self, positions=positions, codes=codes, orders=orders)


@renamed_arguments(neighbours="adjacency")
def prepare(
    data: Any, schema: Schema, adjacency: Neighbours = "replace-one", key: bytes | None = None
) -> QueryTable:
    """Read every described column once, map it to its lattice, and fix the public facts.

    Values outside a domain count as its nearer end, missing values are marked. Where the schema bounds the rows of each
    unit, the rows that take part are chosen here, once for all answers.

    Args:
        data: a path or a table.
        schema: the described columns.
        adjacency: the relation of all claims.
        key: for the order of a unit's rows, as kept with the ledger; by default a fresh one.

    Raises:
        InputError: a column does not hold what the schema says; meant for the custodian.
        ClaimError: a person has several rows and no maximum is declared.

    >>> import pyarrow as pa
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120)),))
    >>> table = prepare(pa.table({"age": [30, 41, None, 999]}), schema)
    >>> table.facts.rows, table.positions["age"].tolist()
    (4, [30, 41, -1, 120])
    """
    table = read_declared(data, schema)
    chosen_on_records = {step.column for step in schema.declared.steps if step.from_records}
    schema = schema.stepped
    for attribute in schema.attributes:
        table.known(attribute.name)
    check_doubts(table, [a.name for a in schema.attributes if a.has_domain and not a.type_declared])
    table = as_declared(table, schema.attributes, ())
    settled = [without_guessed_type(table, attribute.with_declared_type()) for attribute in schema.attributes]
    schema = Schema(tuple(replace(attribute, places=None) for attribute in settled))
    _check_unit(table, schema)
    refused = frozenset(
        a.name for a in schema.attributes if a.name in chosen_on_records or _is_refused(table, a)
    )
    schema = Schema(tuple(a for a in schema.attributes if a.name not in refused))
    if refused and not schema.attributes:
        raise InputError("no-column-can-asked-about-because")
    integers = frozenset(name for name in schema.names if table.is_integer(name))
    facts = DatasetFacts(
        schema, adjacency, table.n if adjacency == "replace-one" else None, integers, refused
    )
    positions: dict[str, NDArray[np.int64]] = {}
    codes: dict[str, NDArray[np.int64]] = {}
    labels: dict[str, Mapping[str, int]] = {}
    for attribute in schema.attributes:
        name = attribute.name
        if facts.has_lattice(attribute):
            values, lattice = numbers(table, attribute), facts.lattice(name)
            absent = np.isnan(values)
            inside = np.clip(np.where(absent, 0.0, values), float(lattice.lo), float(lattice.hi))
            positions[name] = np.where(absent, MISSING, lattice.positions(inside))
        elif not attribute.kind_facts.ordered and facts.labels(attribute):
            values = numbers(table, attribute)
            codes[name] = np.where(np.isnan(values), MISSING, np.nan_to_num(values)).astype(np.int64)
            labels[name] = {label: code for code, label in enumerate(facts.labels(attribute))}
        else:
            codes[name], labels[name] = _coded(table, attribute)
    names = {column: tuple(found) for column, found in labels.items()}
    n, kept = table.n, None
    if facts.bounded:
        kept = bounded_rows(table, schema, None, facts.rows_per_unit, key or fresh_key())
    if kept is not None:
        n = kept.size
        positions = {name: found[kept] for name, found in positions.items()}
        codes = {name: found[kept] for name, found in codes.items()}
    return QueryTable(facts, n, positions, codes, labels, names, _orders(facts, positions, codes))


def _orders(
    facts: DatasetFacts,
    positions: Mapping[str, NDArray[np.int64]],
    codes: Mapping[str, NDArray[np.int64]],
    mixed: NDArray[np.intp] | None = None,
) -> dict[str, RowOrder]:
    """The row orders of all columns except those that identify persons, which cannot be counted by."""
    asked = [name for name in codes if facts.attribute(name).role not in ("identifier", "unit")]
    return {name: RowOrder.of(found, facts.ranked(name), mixed) for name, found in positions.items()} | {
        name: RowOrder.of(codes[name], 0, mixed) for name in asked
    }


def _is_refused(table: Table, attribute: Attribute) -> bool:
    """Whether an answer about a column, or its description, would depend on a fact known only from the records."""
    if attribute.role in ("identifier", "unit"):
        return False
    if attribute.kind_facts.measured and attribute.lo is not None and not table.is_numeric(attribute.name):
        # texts where numbers are declared are reported with their row
        return False
    return attribute.name in table.inferred | table.guessed or bool(attribute.from_records)


def _coded(table: Table, attribute: Attribute) -> tuple[NDArray[np.int64], dict[str, int]]:
    found: dict[str, int] = {}
    texts = labels_of(table, attribute)
    codes = [MISSING if text is None else found.setdefault(text, len(found)) for text in texts]
    return np.array(codes, dtype=np.int64), found


def _check_unit(table: Table, schema: Schema) -> None:
    unit = schema.unit
    if unit is None:
        return
    codes, _ = _coded(table, unit)
    if (codes == MISSING).any():
        raise InputError("unit-column-missing-values", column=unit.name)
    if "max_rows" in unit.from_records:
        raise ClaimError("max-rows-unit-column-source-these", column=unit.name)
    most = int(np.bincount(codes).max(initial=0))
    if unit.max_rows is None and unit.bound is None and most > 1:
        raise ClaimError("facts-value-unit-column-occurs-several-rows", column=unit.name)
    if unit.max_rows is not None and most > unit.max_rows:
        raise InputError("unit-column-somebody-more-rows-than", column=unit.name, max_rows=unit.max_rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


__getattr__ = renamed(__name__, Facts="DatasetFacts")
