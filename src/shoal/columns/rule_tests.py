"""Rules as tests of rows: which rows of a table satisfy each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.column import numbers, on_step, with_few_decimals
from shoal.columns.kinds import Lattice
from shoal.columns.rules import (
    Atom,
    Combinations,
    Derived,
    Expression,
    Implication,
    MissingIf,
    Order,
    Rule,
    spelled,
)
from shoal.errors import ShoalError
from shoal.numbers import Bools, Floats, Integers

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table

# values by column, missing ones as NaN: numbers, day numbers, places in the list of values
Values = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Field:
    """A column as the rules see it: the lattice of its records and that of released values, the names of listed
    values, and whether it can be missing."""

    name: str
    fine: Lattice
    lattice: Lattice
    labels: tuple[str, ...]
    days: bool
    can_miss: bool
    # the concept of each place of a nominal column, and the place that stands for a missing value
    codes: tuple[int, ...] | None = None
    gap: int | None = None

    @classmethod
    def of(cls, attribute: Attribute, lattice: Lattice, *, integer: bool) -> Field:
        """The column of an attribute; `integer`: it is stored as whole numbers."""
        stepped = integer or not attribute.kind_facts.measured or attribute.declared_step is not None
        shown = lattice if stepped else with_few_decimals(lattice)
        tree, facts = attribute.tree, attribute.kind_facts
        if tree is not None:
            labels = tuple(tree.labels[code] for code in tree.domain)
            gap = labels.index(MISSING_VALUE) if MISSING_VALUE in labels else None
            return cls(
                attribute.name,
                lattice,
                shown,
                labels,
                False,
                gap is not None,
                tuple(map(int, tree.domain)),
                gap,
            )
        labels = tuple(attribute.ordered) if facts.listed else ()
        return cls(attribute.name, lattice, shown, labels, facts.days, attribute.flagged)

    @property
    def step(self) -> float:
        return float(self.lattice.step)

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.lattice.lo), float(self.lattice.hi)

    @property
    def slack(self) -> float:
        """Differences below this are rounding errors of floating-point numbers."""
        return self.step * 1e-6

    def place(self, label: object) -> float:
        """The place of a named value, or the number itself; NaN if the column has no such value."""
        if not self.labels:
            return float(label)  # type: ignore[arg-type]
        name = spelled(str(label), self.labels)
        return np.nan if name is None else float(self.labels.index(name))

    def rounded(self, values: Floats) -> Floats:
        """The nearest values of the lattice, inside the domain."""
        with np.errstate(invalid="ignore"):
            return on_step(values, self.lattice, clip=True)

    def of_positions(self, positions: Integers, absent: Bools | None) -> Floats:
        """Values at lattice positions."""
        found = positions.astype(np.float64) if self.labels else self.rounded(self.fine.values(positions))
        if self.gap is not None:
            found = np.where(positions == self.gap, np.nan, found)
        return found if absent is None else np.where(absent, np.nan, found)

    def to_positions(self, values: Floats) -> Integers:
        """Lattice positions of values; those of missing values are arbitrary unless they are listed."""
        filled = np.where(np.isnan(values), self.ends[0], values)
        places = np.rint(filled).astype(np.int64) if self.labels else self.fine.positions(filled)
        return places if self.gap is None else np.where(np.isnan(values), self.gap, places)

    def of_drawn(self, values: Floats) -> Floats:
        """Drawn values, where nominal ones are concepts."""
        if self.codes is None:
            return values if self.labels else self.rounded(values)
        found = np.searchsorted(self.codes, values).astype(np.float64)
        return found if self.gap is None else np.where(found == self.gap, np.nan, found)

    def to_drawn(self, values: Floats) -> Floats:
        if self.codes is None:
            return values
        return np.asarray(self.codes, dtype=np.float64)[self.to_positions(values)]


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """A rule as a test of rows.

    Attributes:
        number: of the rule, from 1.
        columns: the columns that the test reads.
        holds: which rows pass.
        constants: by column, values at which the result can change.
        given: which rows an implication is about; None for other rules.
        then: which rows have a value that such rows may have.
    """

    number: int
    rule: Rule
    columns: tuple[str, ...]
    holds: Callable[[Values], Bools]
    constants: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    given: Callable[[Values], Bools] | None = None
    then: Callable[[Values], Bools] | None = None


# --- what each rule tests


def _atom(atom: Atom, fields: Mapping[str, Field], values: Values) -> Bools:
    """Whether a condition holds; comparisons with a missing value do not."""
    found, own = values[atom.column], fields[atom.column]
    if atom.sign in ("missing", "present"):
        return np.isnan(found) if atom.sign == "missing" else ~np.isnan(found)
    bounds = [own.place(value) for value in atom.values]
    slack = own.slack
    with np.errstate(invalid="ignore"):
        if atom.sign in ("in", "not in"):
            inside = np.zeros(found.shape, dtype=np.bool_)
            for bound in bounds:
                inside |= np.abs(found - bound) <= slack
            return inside if atom.sign == "in" else ~inside & ~np.isnan(found)
        (bound,) = bounds
        if atom.sign == "<":
            return found < bound - slack
        if atom.sign == "<=":
            return found <= bound + slack
        return found > bound + slack if atom.sign == ">" else found >= bound - slack


def _all(atoms: Sequence[Atom], fields: Mapping[str, Field], values: Values) -> Bools:
    found = _atom(atoms[0], fields, values)
    for atom in atoms[1:]:
        found = found & _atom(atom, fields, values)
    return found


def _follows(then: Atom, fields: Mapping[str, Field], values: Values) -> Bools:
    return _atom(then, fields, values) | np.isnan(values[then.column])


def _empty(column: str, values: Values) -> Bools:
    return np.isnan(values[column])


def _implied(given: Callable[[Values], Bools], then: Callable[[Values], Bools], values: Values) -> Bools:
    return ~given(values) | then(values)


def _ordered(order: Order, slack: float, values: Values) -> Bools:
    apart = values[order.high] - values[order.low]
    broken: Bools = np.zeros(apart.shape, dtype=np.bool_)
    # a comparison with a missing value is false: the rule is not broken
    with np.errstate(invalid="ignore"):
        if order.least is not None:
            least = float(order.least)
            np.logical_or(
                broken, apart <= least + slack if order.strict else apart < least - slack, out=broken
            )
        if order.most is not None:
            np.logical_or(broken, apart > float(order.most) + slack, out=broken)
    return ~broken


def _combined(keys: frozenset[tuple[float, ...]], columns: Sequence[str], values: Values) -> Bools:
    rows = np.column_stack([values[name] for name in columns])
    gaps: Bools = np.asarray(np.isnan(rows).any(axis=1))
    if not len(rows):
        return gaps
    distinct, which = np.unique(np.where(np.isnan(rows), -1.0, rows), axis=0, return_inverse=True)
    known = np.array([tuple(row) in keys for row in distinct.tolist()], dtype=np.bool_)
    return gaps | known[which.ravel()]


def _computed(derived: Derived, own: Field, values: Values) -> Bools:
    """Whether a derived column has the value of its expression."""
    wanted = derived_values(derived.expression, values)
    found = values[derived.column]
    with np.errstate(invalid="ignore"):
        near = np.abs(own.rounded(wanted) - found) <= own.slack
        lo, hi = own.ends
        inside = (wanted >= lo - own.step / 2) & (wanted <= hi + own.step / 2)
    return np.where(np.isnan(wanted), np.isnan(found), near & inside)


def derived_values(expression: Expression, values: Values) -> Floats:
    """The value of an expression in every row; missing where a part is, or where it divides by 0.

    >>> from fractions import Fraction
    >>> born = {"born": np.array([0.0, 31.0])}
    >>> derived_values(("years", ("column", "born"), ("date", Fraction(365 * 30 + 7))), born).tolist()
    [30.0, 29.0]
    """
    sign = expression[0]
    if sign == "column":
        return values[expression[1]]
    if sign in ("number", "date"):
        rows = next(iter(values.values())).shape
        return np.full(rows, float(expression[1]))
    left, right = (derived_values(part, values) for part in expression[1:])
    if sign in ("years", "months"):
        return _elapsed(left, right, sign)
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    with np.errstate(divide="ignore", invalid="ignore"):
        found = left / right
    return np.where(np.isfinite(found), found, np.nan)


def _elapsed(first: Floats, last: Floats, unit: str) -> Floats:
    """Completed years or months between two days."""
    gaps = np.isnan(first) | np.isnan(last)
    days = [np.where(gaps, 0, np.rint(one)).astype("datetime64[D]") for one in (first, last)]
    months = [day.astype("datetime64[M]") for day in days]
    place = [
        (day - month.astype("datetime64[D]")).astype(np.int64)
        for day, month in zip(days, months, strict=True)
    ]
    between = (months[1] - months[0]).astype(np.int64) - (place[1] < place[0])
    found = between // 12 if unit == "years" else between
    return np.where(gaps, np.nan, found.astype(np.float64))


def _thresholds(atoms: Iterable[Atom], fields: Mapping[str, Field]) -> dict[str, tuple[float, ...]]:
    found: dict[str, list[float]] = {}
    for atom in atoms:
        own = fields[atom.column]
        for value in atom.values:
            place = own.place(value)
            found.setdefault(atom.column, []).extend((place, place - own.step, place + own.step))
    return {name: tuple(values) for name, values in found.items()}


def tests_of(number: int, rule: Rule, fields: Mapping[str, Field]) -> Iterator[Test]:
    """The tests of a rule; an implication has one for each of its conclusions."""
    meaning = rule.meaning
    if isinstance(meaning, Order):
        slack = min(fields[name].slack for name in meaning.columns)
        yield Test(number, rule, meaning.columns, partial(_ordered, meaning, slack))
    elif isinstance(meaning, Implication):
        for then in meaning.then:
            atoms = (*meaning.given, then)
            names = tuple(dict.fromkeys(atom.column for atom in atoms))
            given, follows = partial(_all, meaning.given, fields), partial(_follows, then, fields)
            holds = partial(_implied, given, follows)
            yield Test(number, rule, names, holds, _thresholds(atoms, fields), given, follows)
    elif isinstance(meaning, MissingIf):
        given, follows = partial(_all, meaning.given, fields), partial(_empty, meaning.column)
        constants = _thresholds(meaning.given, fields)
        yield Test(
            number, rule, meaning.columns, partial(_implied, given, follows), constants, given, follows
        )
    elif isinstance(meaning, Derived):
        holds = partial(_computed, meaning, fields[meaning.column])
        yield Test(number, rule, meaning.columns, holds)
    else:
        assert isinstance(meaning, Combinations)
        rows = [
            tuple(fields[name].place(value) for name, value in zip(meaning.columns, row, strict=True))
            for row in meaning.allowed
        ]
        constants = {
            name: tuple(dict.fromkeys(row[i] for row in rows)) for i, name in enumerate(meaning.columns)
        }
        yield Test(
            number, rule, meaning.columns, partial(_combined, frozenset(rows), meaning.columns), constants
        )


def rows_breaking(table: Table, schema: Schema) -> dict[str, int | None]:
    """How many rows of a table break each rule of its schema; None for rules about columns that it lacks, or whose
    values the schema does not describe. Private where the table holds records."""
    found: dict[str, int | None] = {}
    for number, rule in enumerate(schema.rules, 1):
        found[rule.words] = None
        if not set(rule.named) <= set(table.names):
            continue
        try:
            fields, values = {}, {}
            for name in rule.named:
                attribute, integer = schema[name].with_declared_type(), table.is_integer(name)
                fields[name] = own = Field.of(attribute, attribute.lattice(integer=integer), integer=integer)
                given = numbers(table, attribute)
                values[name] = given if own.gap is None else np.where(given == own.gap, np.nan, given)
            wrong = np.zeros(table.n, dtype=np.bool_)
            for test in tests_of(number, rule, fields):
                wrong |= ~test.holds(values)
            found[rule.words] = int(wrong.sum())
        except ShoalError:
            continue
    return found
