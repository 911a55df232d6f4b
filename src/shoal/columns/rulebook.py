"""Apply the rules of a schema: to records before they are measured, and to rows after they are drawn.

What is measured are coordinates: derived columns have none, and the later column of an order has its distance from
the earlier one. Every rule is a test of a row; values that fail it are exchanged between drawn rows, which leaves
the distribution of their column as it was measured, and moved to the nearest possible value where that fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shoal.columns.attribute import Attribute
from shoal.columns.column import Field, numbers
from shoal.columns.kinds import Lattice
from shoal.columns.rules import (
    Combinations,
    Derived,
    Implication,
    MissingIf,
    Order,
    Rule,
    Test,
    Values,
    derived_values,
    tests_of,
)
from shoal.display import internal
from shoal.errors import OptionError, ShoalError
from shoal.numbers import Bools, Floats, Integers
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns.schema import Schema
    from shoal.io import Table

# attempts at finding another row to exchange values with, and a value of another row
_ATTEMPTS = 12
# values of a column that are tried where no other row helps: evenly spaced ones, and those that rules name
_GRID = 65
# tests of values in the search for a possible row
_MOST_TRIED = 20_000
_LISTED_TRIED = 60
# a table of at most this many combinations is measured as one column
_MOST_JOINT = 64


# --- all rules of a release


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Columns measured as one, whose values are their allowed combinations.

    Attributes:
        attribute: the nominal column of combinations.
        field: the same as the rules see it.
        rows: the values of the columns in each combination, in the order of its places.
    """

    columns: tuple[str, ...]
    attribute: Attribute
    field: Field
    rows: Floats

    @classmethod
    def of(cls, meaning: Combinations, fields: Mapping[str, Field]) -> Joint:
        names = [f"{number}: {', '.join(row)}" for number, row in enumerate(meaning.allowed, 1)]
        attribute = Attribute(meaning.columns[-1], "nominal", values=tuple(names))
        own = Field.of(attribute, attribute.lattice(integer=False), integer=False)
        places = {
            name: [fields[column].place(value) for column, value in zip(meaning.columns, row, strict=True)]
            for name, row in zip(names, meaning.allowed, strict=True)
        }
        return cls(meaning.columns, attribute, own, np.array([places[name] for name in own.labels]))

    def encoded(self, values: Values) -> Floats:
        """The place of each row's combination."""
        known = {tuple(row): float(place) for place, row in enumerate(self.rows.tolist())}
        rows = np.column_stack([values[name] for name in self.columns])
        if not len(rows):
            return np.empty(0)
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
        return np.array([known[tuple(row)] for row in distinct.tolist()])[which.ravel()]

    def decoded(self, places: Floats) -> dict[str, Floats]:
        rows = self.rows[places.astype(np.int64)]
        return {name: rows[:, number].copy() for number, name in enumerate(self.columns)}


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Rulebook:
    """The rules that apply to the released columns, with the order in which columns are decided.

    Attributes:
        numbered: the rules with their numbers in the schema.
        steps: the measured columns of the rules, each with the columns that are derived once it is known and the
            tests that can then be made.
        coordinates: columns that are measured as a distance: the orders it follows from, and its lattice.
        joint: combinations that are measured as one column, by its name, that of their last column.
        witness: a row that satisfies all rules, for records and rows for which nothing else helps.
        fixed: the values of columns that are the same in all rows, those of a stratum.
    """

    numbered: tuple[tuple[int, Rule], ...]
    fields: Mapping[str, Field]
    steps: tuple[tuple[str, tuple[Derived, ...], tuple[Test, ...]], ...]
    coordinates: Mapping[str, tuple[tuple[Order, ...], Lattice]]
    tests: tuple[Test, ...]
    joint: Mapping[str, Joint]
    witness: Mapping[str, float]
    fixed: Mapping[str, float] = field(default_factory=dict)

    def within(self, values: Mapping[str, float]) -> Rulebook | None:
        """The rules where some columns have these values; None if no row satisfies them there."""
        fixed = {name: value for name, value in values.items() if name in self.fields}
        return _book(self.numbered, self.fields, fixed)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Columns without measurements of their own: derived ones, and those measured together with a later one."""
        return (*self.derived, *(name for one in self.joint.values() for name in one.columns[:-1]))

    @property
    def derived(self) -> tuple[str, ...]:
        return tuple(one.column for _, found, _ in self.steps for one in found)

    @property
    def measured(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.steps)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The columns of rules that share columns: a change in one of them can change what is measured of all."""
        return tuple(group.names for group in _groups(self))

    def __bool__(self) -> bool:
        return bool(self.numbered)

    def broken(self, values: Values) -> dict[int, int]:
        """The number of rows that break each rule (a private fact about records)."""
        found = dict.fromkeys((number for number, _ in self.numbered), 0)
        wrong: dict[int, Bools] = {}
        for test in self.tests:
            bad = ~test.holds(values)
            wrong[test.number] = bad | wrong[test.number] if test.number in wrong else bad
        return {**found, **{number: int(bad.sum()) for number, bad in wrong.items()}}

    # pairs of coordinates

    def sources(self, name: str) -> frozenset[str]:
        """The coordinates that decide a column."""
        if name in self.fixed:
            return frozenset()
        for joint, one in self.joint.items():
            if name in one.columns:
                return frozenset((joint,))
        for _, derived, _ in self.steps:
            for found in derived:
                if found.column == name:
                    return frozenset[str]().union(*map(self.sources, found.parts))
        orders = self.coordinates[name][0] if name in self.coordinates else ()
        return frozenset((name,)).union(*(self.sources(order.low) for order in orders))

    @property
    def bound_pairs(self) -> dict[tuple[str, str], tuple[Test, ...]]:
        """The pairs of coordinates that rules bind, each with the tests that follow from the two alone."""
        found: dict[tuple[str, str], tuple[Test, ...]] = {}
        for test in self.tests:
            own = frozenset[str]().union(*map(self.sources, test.columns))
            if len(own) == 2:
                first, second = (name for name in self.measured if name in own)
                found[first, second] = (*found.get((first, second), ()), test)
        return found

    def possible(self, given: Values, tests: Sequence[Test]) -> Bools:
        """Whether coordinates can be in one row, as far as tests of their columns say."""
        coordinates = dict(given)
        now = self._constants(next(iter(given.values())).size)
        for name in given:
            if name in self.joint:
                coordinates |= self.joint[name].decoded(given[name])
        fits = np.ones(next(iter(given.values())).shape, dtype=np.bool_)
        for name, derived, _ in self.steps:
            if name not in coordinates:
                continue
            own, value = self.fields[name], coordinates[name]
            if name in self.coordinates:
                value = self.base(name, {**now, name: value}) + value
                fits &= ~(value > own.ends[1] + own.slack)
                value = own.rounded(value)
            now[name] = value
            for one in derived:
                if set(one.parts) <= set(now):
                    now[one.column] = self.fields[one.column].rounded(derived_values(one.expression, now))
        for test in tests:
            fits &= test.holds(now)
        return fits

    # coordinates

    def base(self, name: str, values: Values) -> Floats:
        """The smallest value that the orders leave to a later column; public where the earlier ones are missing."""
        orders, _ = self.coordinates[name]
        own = self.fields[name]
        found = np.full(next(iter(values.values())).shape, np.nan)
        for order in orders:
            found = np.fmax(found, values[order.low] + float(_least(order, self.fields)))
        return np.where(np.isnan(found), own.ends[0], found)

    def encoded(self, values: Values) -> dict[str, Floats]:
        """Coordinates of records: a function of each record by itself, after moving it onto the rules.

        Guarantee:
            Records are mapped one by one, so neighbouring tables stay neighbouring: docs/proofs/trees.md#rules.
        """
        settled = self._settled(values, None)
        found = {
            name: settled[name] - self.base(name, settled) if name in self.coordinates else settled[name]
            for name in self.measured
            if name not in self.unmeasured
        }
        return found | {name: one.encoded(settled) for name, one in self.joint.items()}

    def decoded(self, drawn: Values, random: np.random.Generator) -> dict[str, Floats]:
        """Rows that satisfy every rule, from drawn coordinates."""
        given = dict(drawn)
        for name, one in self.joint.items():
            given |= one.decoded(drawn[name])
        return self._settled(given, random)

    def _constants(self, rows: int) -> dict[str, Floats]:
        return {name: np.full(rows, value) for name, value in self.fixed.items()}

    def _settled(self, given: Values, random: np.random.Generator | None) -> dict[str, Floats]:
        rows = next(iter(given.values())).size
        now = self._constants(rows)
        stuck = np.zeros(rows, dtype=np.bool_)
        for name, derived, tests in self.steps:
            own = self.fields[name]
            found = np.array(given[name], dtype=np.float64)
            if name in self.coordinates and random is not None:
                found = own.rounded(self.base(name, {**now, name: found}) + found)
            step = _Step(self, own, derived, tests)
            now[name] = found
            step.derive(now)
            wrong = np.flatnonzero(~step.holds(now) & ~stuck)
            if wrong.size and random is not None:
                wrong = step.exchanged(now, wrong, stuck, random)
                wrong = step.borrowed(now, wrong, random)
            if wrong.size:
                wrong = step.moved(now, wrong)
            stuck[wrong] = True
        self._replaced(now, stuck, random)
        return now

    def _replaced(self, now: dict[str, Floats], stuck: Bools, random: np.random.Generator | None) -> None:
        """Rows that cannot be completed are replaced: by other rows when drawn, by the public row otherwise."""
        for test in self.tests:
            stuck |= ~test.holds(now)
        wrong, right = np.flatnonzero(stuck), np.flatnonzero(~stuck)
        if not wrong.size:
            return
        if random is not None and right.size:
            others = right[random.integers(right.size, size=wrong.size)]
            for values in now.values():
                values[wrong] = values[others]
        else:
            for name, values in now.items():
                values[wrong] = self.witness[name]


def _least(order: Order, fields: Mapping[str, Field]) -> Fraction:
    """The smallest difference that an order allows."""
    low, high = fields[order.low].lattice, fields[order.high].lattice
    if order.least is None:
        return high.lo - low.hi
    return order.least + (high.step if order.strict else 0)


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """Deciding one column, given those before it."""

    book: Rulebook
    own: Field
    derived: tuple[Derived, ...]
    tests: tuple[Test, ...]

    def derive(self, now: dict[str, Floats]) -> None:
        for one in self.derived:
            wanted = derived_values(one.expression, now)
            now[one.column] = self.book.fields[one.column].rounded(wanted)

    def holds(self, now: Values) -> Bools:
        found = np.ones(now[self.own.name].shape, dtype=np.bool_)
        for test in self.tests:
            found &= test.holds(now)
        return found

    def trial(self, now: Values, rows: Integers, values: Floats) -> tuple[Bools, dict[str, Floats]]:
        """Whether rows satisfy all rules with other values of the column, and these rows."""
        some = {name: column[rows] for name, column in now.items()}
        some[self.own.name] = values
        self.derive(some)
        return self.holds(some), some

    def put(self, now: dict[str, Floats], rows: Integers, some: Values) -> None:
        for name in (self.own.name, *(one.column for one in self.derived)):
            now[name][rows] = some[name]

    def exchanged(
        self, now: dict[str, Floats], wrong: Integers, stuck: Bools, random: np.random.Generator
    ) -> Integers:
        """Exchange values with rows for which that is possible too: the column keeps its distribution."""
        good = self.holds(now) & ~stuck
        # where an implication fails, a row that it is not about can take any value, and gives a possible one
        for test in self.tests:
            if test.given is not None and test.then is not None and not test.holds(now)[wrong].all():
                alike = good & ~test.given(now) & test.then(now)
                if alike.any():
                    good = alike
        pool = np.flatnonzero(good)
        for _ in range(_ATTEMPTS):
            if not wrong.size or not pool.size:
                break
            size = min(wrong.size, pool.size)
            mine = random.permutation(wrong)[:size]
            theirs = random.choice(pool, size, replace=False)
            values = now[self.own.name]
            here, changed = self.trial(now, mine, values[theirs])
            there, other = self.trial(now, theirs, values[mine])
            both = here & there
            if both.any():
                self.put(now, mine[both], {name: column[both] for name, column in changed.items()})
                self.put(now, theirs[both], {name: column[both] for name, column in other.items()})
                wrong = np.setdiff1d(wrong, mine[both])
                pool = np.setdiff1d(pool, theirs[both])
        return wrong

    def borrowed(self, now: dict[str, Floats], wrong: Integers, random: np.random.Generator) -> Integers:
        """Take the value of another row."""
        values = now[self.own.name].copy()
        for _ in range(_ATTEMPTS):
            if not wrong.size:
                break
            here, changed = self.trial(now, wrong, values[random.integers(values.size, size=wrong.size)])
            self.put(now, wrong[here], {name: column[here] for name, column in changed.items()})
            wrong = wrong[~here]
        return wrong

    def moved(self, now: dict[str, Floats], wrong: Integers) -> Integers:
        """Take the nearest possible value, of those that rules name and evenly spaced ones; no chance is involved."""
        own = self.own
        current = now[own.name][wrong]
        best = np.full(wrong.size, np.inf)
        found = current.copy()
        for values in self.candidates(now, wrong):
            here, _ = self.trial(now, wrong, values)
            apart = np.abs(values - current)
            apart[np.isnan(apart)] = np.finfo(np.float64).max / 2
            better = here & (apart < best)
            best[better], found[better] = apart[better], values[better]
        done = np.isfinite(best)
        _, changed = self.trial(now, wrong[done], found[done])
        self.put(now, wrong[done], changed)
        left: Integers = wrong[~done]
        return left

    def candidates(self, now: Values, wrong: Integers) -> Iterator[Floats]:
        """Values to try, each as one number for every row."""
        own = self.own
        size = wrong.size
        if own.labels:
            for place in range(len(own.labels)):
                if place != own.gap:
                    yield np.full(size, float(place))
        else:
            for bound in self.named():
                yield np.full(size, bound)
            lo, hi = own.ends
            for place in np.unique(own.rounded(np.linspace(lo, hi, _GRID))):
                yield np.full(size, float(place))
            yield from self.between(now, wrong)
        if own.can_miss:
            yield np.full(size, np.nan)

    def named(self) -> Iterator[float]:
        """The values of the column that rules name, and their neighbours."""
        own = self.own
        lo, hi = own.ends
        found = {value for test in self.tests for value in test.constants.get(own.name, ())}
        for value in sorted(found):
            if lo <= value <= hi:
                yield float(own.rounded(np.array([value]))[0])

    def between(self, now: Values, wrong: Integers) -> Iterator[Floats]:
        """The ends of what orders allow."""
        own = self.own
        for test in self.tests:
            order = test.rule.meaning
            if not isinstance(order, Order) or own.name not in order.columns:
                continue
            least = float(_least(order, self.book.fields))
            for gap in (least, None if order.most is None else float(order.most)):
                if gap is None:
                    continue
                later = own.name == order.high
                ends = now[order.low][wrong] + gap if later else now[order.high][wrong] - gap
                for shift in (0.0, own.step, -own.step):
                    yield own.rounded(ends + shift)


# --- making a rulebook


def applied_rules(
    rules: Sequence[Rule],
    attributes: Sequence[Attribute],
    lattices: Mapping[str, Lattice],
    integers: Collection[str] = (),
) -> Rulebook:
    """The rules that are about released columns only, ready to be applied.

    Args:
        integers: columns that are stored as whole numbers.

    Raises:
        OptionError: rules contradict each other, the domain of a column, or its missing values.
    """
    released = {attribute.name: attribute for attribute in attributes}
    numbered = tuple(
        (number, rule) for number, rule in enumerate(rules, 1) if set(rule.named) <= set(released)
    )
    names = [name for name in released if any(name in rule.named for _, rule in numbered)]
    fields = {name: Field.of(released[name], lattices[name], integer=name in integers) for name in names}
    _check_missing(numbered, fields)
    _check_circles([(number, rule.meaning) for number, rule in numbered if isinstance(rule.meaning, Order)])
    book = _book(numbered, fields, {})
    assert book is not None
    return book


def _book(
    numbered: Sequence[tuple[int, Rule]], fields: Mapping[str, Field], fixed: Mapping[str, float]
) -> Rulebook | None:
    """The rules ready to be applied; None if no row has the fixed values.

    Raises:
        OptionError: nothing is fixed, and the rules contradict each other.
    """
    tests = tuple(test for number, rule in numbered for test in tests_of(number, rule, fields))
    meanings = [rule.meaning for _, rule in numbered]
    # a derived column with a fixed value is a condition of its parts
    derived = {one.column: one for one in meanings if isinstance(one, Derived) and one.column not in fixed}
    orders = [(number, rule.meaning) for number, rule in numbered if isinstance(rule.meaning, Order)]
    for one in derived.values():
        if set(one.parts) <= set(fixed):
            raise OptionError("strata-fix-a-derived-column", option="strata", column=one.column)
    decided = _sorted([name for name in fields if name not in fixed], derived, numbered)
    steps = _steps(decided, derived, tests, fixed)
    coordinates = _coordinates(decided, fixed, orders, fields)
    joint = {name: one for name, one in _joint(numbered, fields).items() if not set(one.columns) & set(fixed)}
    book = Rulebook(tuple(numbered), fields, steps, coordinates, tests, joint, {}, fixed)
    if not fixed:
        return replace(book, witness=_witness(book))
    try:
        return replace(book, witness=_witness(book, conditions=False))
    except OptionError as error:
        if error.code == "rules-unsettled":
            raise
        return None


def not_applied(rules: Sequence[Rule], released: Iterable[str]) -> tuple[Message, ...]:
    """Notes about rules of columns that are not released."""
    names = set(released)
    return tuple(
        Message.of(
            "rule-not-applied", number=number, rule=rule.words, columns=tuple(sorted(set(rule.named) - names))
        )
        for number, rule in enumerate(rules, 1)
        if not set(rule.named) <= names
    )


def _check_missing(numbered: Sequence[tuple[int, Rule]], fields: Mapping[str, Field]) -> None:
    for number, rule in numbered:
        meaning = rule.meaning
        if isinstance(meaning, MissingIf) and not fields[meaning.column].can_miss:
            raise OptionError("rule-cannot-miss", number=number, column=meaning.column)
        if isinstance(meaning, Derived) and not fields[meaning.column].can_miss:
            for part in meaning.parts:
                if fields[part].can_miss:
                    raise OptionError("rule-part-missing", number=number, column=meaning.column, part=part)


def _check_circles(orders: Sequence[tuple[int, Order]]) -> None:
    """Refuse orders in a circle: two columns that are each at least the other are equal, or impossible."""
    for first, order in orders:
        if order.least is None or order.least < 0:
            continue
        above, ahead = {order.high: first}, [order.high]
        while ahead:
            name = ahead.pop()
            for number, other in orders:
                if other.low == name and other.least is not None and other.least >= 0:
                    if other.high == order.low:
                        raise OptionError(
                            "rules-contradict", number=min(first, number), other=max(first, number)
                        )
                    if other.high not in above:
                        above[other.high] = number
                        ahead.append(other.high)


def _sorted(
    names: Sequence[str], derived: Mapping[str, Derived], numbered: Sequence[tuple[int, Rule]]
) -> tuple[str, ...]:
    """The measured columns: the earlier one of an order first, conditions before what follows from them."""
    before: dict[str, set[str]] = {name: set() for name in names}
    wished: dict[str, set[str]] = {name: set() for name in names}

    def after(name: str, others: Iterable[str], found: dict[str, set[str]]) -> None:
        # columns with fixed values are known from the beginning
        if name in found:
            found[name] |= set(others) & set(names)

    for _, rule in numbered:
        meaning = rule.meaning
        if isinstance(meaning, Order):
            after(meaning.high, (meaning.low,), before)
        elif isinstance(meaning, Derived):
            after(meaning.column, meaning.parts if meaning.column in derived else (), before)
        elif isinstance(meaning, Implication):
            for atom in meaning.then:
                after(atom.column, (one.column for one in meaning.given), wished)
        elif isinstance(meaning, MissingIf):
            after(meaning.column, (one.column for one in meaning.given), wished)
    found: list[str] = []
    while len(found) < len(names):
        left = [name for name in names if name not in found]
        ready = [name for name in left if before[name] <= set(found)]
        # an order against a column that is derived from the later one is left to the tests
        ready = ready or [name for name in left if name not in derived] or left
        found.append(next((name for name in ready if wished[name] <= set(found)), ready[0]))
    return tuple(name for name in found if name not in derived)


def _steps(
    decided: Sequence[str],
    derived: Mapping[str, Derived],
    tests: Sequence[Test],
    fixed: Collection[str],
) -> tuple[tuple[str, tuple[Derived, ...], tuple[Test, ...]], ...]:
    known: set[str] = set(fixed)
    left = list(tests)
    steps = []
    for name in decided:
        known.add(name)
        now: list[Derived] = []
        while ready := [
            one for one in derived.values() if one.column not in known and set(one.parts) <= known
        ]:
            now += ready
            known |= {one.column for one in ready}
        closing = [test for test in left if set(test.columns) <= known]
        left = [test for test in left if test not in closing]
        steps.append((name, tuple(now), tuple(closing)))
    return tuple(steps)


def _coordinates(
    decided: Sequence[str],
    fixed: Collection[str],
    orders: Sequence[tuple[int, Order]],
    fields: Mapping[str, Field],
) -> dict[str, tuple[tuple[Order, ...], Lattice]]:
    """The later columns of orders, with the lattice of their distance from what the earlier ones require."""
    found = {}
    for place, name in enumerate(decided):
        own = [
            order
            for _, order in orders
            if order.high == name and order.low in (*fixed, *decided[:place]) and not fields[name].labels
        ]
        if not own:
            continue
        lattice = fields[name].lattice
        lowest = max(fields[order.low].lattice.lo + _least(order, fields) for order in own)
        widest = lattice.hi - min(lowest, lattice.lo)
        if len(own) == 1 and own[0].most is not None:
            widest = min(widest, own[0].most - _least(own[0], fields))
        found[name] = (tuple(own), Lattice(Fraction(0), max(widest, lattice.step), lattice.step))
    return found


def _joint(numbered: Sequence[tuple[int, Rule]], fields: Mapping[str, Field]) -> dict[str, Joint]:
    """Tables of few combinations, of columns that are in no other one and have no missing values."""
    found: dict[str, Joint] = {}
    taken: set[str] = set()
    for _, rule in numbered:
        meaning = rule.meaning
        if not isinstance(meaning, Combinations) or not 2 <= len(meaning.allowed) <= _MOST_JOINT:
            continue
        if taken & set(meaning.columns) or any(fields[name].can_miss for name in meaning.columns):
            continue
        taken |= set(meaning.columns)
        found[meaning.columns[-1]] = Joint.of(meaning, fields)
    return found


def _witness(book: Rulebook, *, conditions: bool = True) -> dict[str, float]:
    """A row that satisfies all rules, and proof that every condition of an implication can hold in some row.

    Args:
        conditions: whether to look for that proof.

    Raises:
        OptionError: there is none, or some condition cannot hold; names two rules.
    """
    found: dict[str, float] = {}
    for group in _groups(book):
        try:
            row = _search(book, group.tests, group.names)
            if row is None:
                raise _contradiction(book, group)
        except _UnsettledError:
            numbers = tuple(sorted({test.number for test in group.tests}))
            raise OptionError("rules-unsettled", numbers=numbers) from None
        found |= row
        # a condition that cannot be settled in time is not refused
        for test in group.tests if conditions else ():
            with contextlib.suppress(_UnsettledError):
                _check_condition(book, group, test)
    return found


def _check_condition(book: Rulebook, group: _Group, test: Test) -> None:
    """Refuse an implication whose condition no row can meet, alone or under the other rules."""
    if test.given is None:
        return
    condition = replace(test, holds=test.given)
    if _search(book, (condition,), group.names) is None:
        raise OptionError("rule-never-applies", number=test.number, rule=test.rule.words)
    if _search(book, (*group.tests, condition), group.names) is None:
        raise _contradiction(book, group, condition)


class _UnsettledError(Exception):
    """Neither a row nor a contradiction was found in time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    names: tuple[str, ...]
    tests: tuple[Test, ...]


def _groups(book: Rulebook) -> Iterator[_Group]:
    """Rules that share no columns are searched separately."""
    left = list(book.tests)
    while left:
        names, taken = set(left[0].columns), [left.pop(0)]
        while more := [test for test in left if names & set(test.columns)]:
            taken += more
            left = [test for test in left if test not in more]
            names |= {name for test in more for name in test.columns}
        yield _Group(tuple(sorted(names)), tuple(taken))


def _contradiction(book: Rulebook, group: _Group, condition: Test | None = None) -> OptionError:
    """The error that names a rule that nothing satisfies, or two that contradict each other."""
    extra = () if condition is None else (condition,)
    by_rule: dict[int, list[Test]] = {}
    for test in group.tests:
        by_rule.setdefault(test.number, []).append(test)
    for number, tests in by_rule.items():
        if condition is not None and number != condition.number:
            continue
        if _search(book, (*tests, *extra), group.names) is None:
            return OptionError("rule-never-holds", number=number, rule=tests[0].rule.words)
    for number, tests in by_rule.items():
        if condition is not None and number != condition.number:
            continue
        for other, others in by_rule.items():
            if other != number and _search(book, (*tests, *others, *extra), group.names) is None:
                first, second = sorted((number, other))
                return OptionError("rules-contradict", number=first, other=second)
    return OptionError("rules-contradict-together", numbers=tuple(sorted(by_rule)))


def _search(book: Rulebook, tests: Sequence[Test], names: Sequence[str]) -> dict[str, float] | None:
    """A row that passes some tests, column by column; values are tried at the ends of what the rules allow."""
    # a column is derived only if its rule is among those tested
    asked = [test.rule.meaning for test in tests]
    ways = [(name, tuple(one for one in found if one in asked)) for name, found, _ in book.steps]
    ways += [(one.column, ()) for _, found, _ in book.steps for one in found if one not in asked]
    steps = []
    known: set[str] = set(book.fixed)
    constants_known = {name: np.array([value]) for name, value in book.fixed.items()}
    settled = [test for test in tests if set(test.columns) <= known]
    if not all(test.holds(constants_known).all() for test in settled):
        return None
    left = [test for test in tests if test not in settled]
    for name, derived in ways:
        if name not in names:
            continue
        known |= {name, *(one.column for one in derived)}
        closing = [test for test in left if set(test.columns) <= known]
        left = [test for test in left if test not in closing]
        steps.append(_Step(book, book.fields[name], derived, tuple(closing)))
    constants: dict[str, set[float]] = {}
    for test in book.tests:
        for name, values in test.constants.items():
            constants.setdefault(name, set()).update(values)
    tried = 0

    def complete(place: int, row: dict[str, Floats]) -> dict[str, Floats] | None:
        nonlocal tried
        if place == len(steps):
            return row
        step = steps[place]
        own = step.own
        values = np.unique(
            np.concatenate(
                [
                    np.asarray(value, dtype=np.float64)
                    for value in _tried(step, row, constants.get(own.name, set()))
                ]
            )
        )
        some = {name: np.repeat(value, values.size) for name, value in row.items()}
        some[own.name] = values
        step.derive(some)
        tried += values.size
        for number in np.flatnonzero(step.holds(some)).tolist():
            if tried > _MOST_TRIED:
                break
            found = complete(place + 1, {name: value[number : number + 1] for name, value in some.items()})
            if found is not None:
                return found
        return None

    found = complete(0, constants_known)
    if found is None:
        if tried > _MOST_TRIED:
            raise _UnsettledError
        return None
    return {name: float(value[0]) for name, value in found.items()}


def _tried(step: _Step, row: Values, constants: Iterable[float]) -> Iterator[Sequence[float] | Floats]:
    own = step.own
    lo, hi = own.ends
    named = [value for value in constants if lo <= value <= hi]
    if own.labels:
        everything = [place for place in range(len(own.labels)) if place != own.gap]
        yield everything if len(everything) <= _LISTED_TRIED else [*everything[:_LISTED_TRIED], *named]
    else:
        yield own.rounded(np.array([lo, hi, *np.linspace(lo, hi, _GRID // 4), *named]))
        for order in (test.rule.meaning for test in step.book.tests):
            if isinstance(order, Order) and own.name in order.columns:
                other = order.low if own.name == order.high else order.high
                if other in row:
                    sign = 1 if own.name == order.high else -1
                    gaps = [float(_least(order, step.book.fields))]
                    gaps += [] if order.most is None else [float(order.most)]
                    yield own.rounded(np.array([float(row[other][0]) + sign * gap for gap in gaps]))
    if own.can_miss:
        yield [np.nan]


# --- any table


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
