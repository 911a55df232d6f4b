"""Rules between columns: sentences in a schema, such as `admission <= discharge`, what each means, and tests of rows.

A rule is public, as a range is: it is known without these records, or it taints the statement. `rulebook` applies
the rules to records and to drawn rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from shoal import display
from shoal.columns.attribute import RECORDS, SOURCES, Attribute
from shoal.columns.column import Field, spelled
from shoal.columns.kinds import day_number
from shoal.display import displayed
from shoal.errors import OptionError, closest
from shoal.numbers import Bools, Floats
from shoal.text import Message

# a number or a day number, or the name of a value
Literal = Fraction | str
# nested: ("column", name), ("number", value), ("date", value), ("+", left, right), ("years", from, to), ...
Expression = tuple[Any, ...]

_TOKEN = re.compile(
    r"\s*(?:(?P<date>\d{4}-\d{2}-\d{2})|(?P<number>\d+(?:\.\d+)?)|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|`(?P<quoted>[^`]+)`|(?P<name>[^\W\d][\w.]*)|(?P<sign>->|<=|>=|!=|<|>|=|[-+*/(),\[\]]))"
)
_COMPARISONS = ("<=", ">=", "<", ">", "=", "!=")
_SPANS = ("years", "months")
_MOST_ALLOWED = 10_000
_END = Message("rule-the-end")


@dataclass(frozen=True, slots=True)
class Atom:
    """A condition about one column: a comparison with values, or whether it is missing (`sign` "missing")."""

    column: str
    sign: str
    values: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """`high` minus `low` is at least `least` (more than it if `strict`) and at most `most`."""

    low: str
    high: str
    least: Fraction | None = None
    strict: bool = False
    most: Fraction | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Implication:
    """Where all conditions of `given` hold, those of `then` hold too."""

    given: tuple[Atom, ...]
    then: tuple[Atom, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(atom.column for atom in (*self.given, *self.then)))


@dataclass(frozen=True, slots=True)
class MissingIf:
    """Where all conditions of `given` hold, the column is missing."""

    column: str
    given: tuple[Atom, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(atom.column for atom in self.given), self.column)))


@dataclass(frozen=True, slots=True)
class Derived:
    """The column is the value of an expression in other columns, rounded to its own step."""

    column: str
    expression: Expression

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_columns_in(self.expression)))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.parts, self.column)


@dataclass(frozen=True, slots=True)
class Combinations:
    """The values of the columns are together one of the listed combinations."""

    columns: tuple[str, ...]
    allowed: tuple[tuple[str, ...], ...]


Meaning = Order | Implication | MissingIf | Derived | Combinations


@displayed(display.of_rule)
@dataclass(frozen=True, slots=True)
class Rule:
    """A rule between columns that every released row satisfies.

    Attributes:
        keep: the rule as a sentence; empty for a table of combinations.
        source: where the rule is known from.
        columns: of a table of combinations.
        allowed: its rows, one value for each column.

    >>> Rule("admission <= discharge", "law").kind
    'order'
    >>> Rule('age < 16 -> marital = "never"', "law").kind, Rule("age = years(born, 2027-01-01)", "law").kind
    ('implication', 'derived')
    """

    keep: str = ""
    source: str = ""
    columns: tuple[str, ...] = ()
    allowed: tuple[tuple[str, ...], ...] = ()
    meaning: Meaning = field(init=False, repr=False, compare=False)

    @classmethod
    def from_dict(cls, raw: Any) -> Rule:
        """A rule from its form in a schema file.

        Raises:
            OptionError: what is wrong with it.
        """
        known = ("keep", "source", "columns", "allowed")
        if not isinstance(raw, Mapping):
            raise OptionError("rule-entry")
        for key in raw:
            if key not in known:
                raise OptionError("rule-unknown-key", key=key, hint=closest(key, known))
        rows = raw.get("allowed", ())
        if not isinstance(rows, (list, tuple)) or not all(isinstance(row, (list, tuple)) for row in rows):
            raise OptionError("rule-allowed-rows")
        columns = raw.get("columns", ())
        if not isinstance(columns, (list, tuple)):
            raise OptionError("rule-combinations")
        return cls(
            raw.get("keep", ""),
            raw.get("source", ""),
            tuple(map(str, columns)),
            tuple(tuple(_as_text(value) for value in row) for row in rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values without empty fields, as `from_dict` reads them."""
        found = {
            "keep": self.keep,
            "columns": list(self.columns),
            "allowed": [list(row) for row in self.allowed],
            "source": self.source,
        }
        return {key: value for key, value in found.items() if value}

    def __post_init__(self) -> None:
        if not isinstance(self.keep, str) or bool(self.keep.strip()) == bool(self.columns):
            raise OptionError("rule-entry")
        if self.source not in SOURCES:
            raise OptionError(
                "rule-needs-source", allowed=tuple(SOURCES), hint=closest(str(self.source), SOURCES)
            )
        object.__setattr__(self, "keep", " ".join(self.keep.split()))
        meaning = self._combinations() if self.columns else meaning_of(self.keep)
        object.__setattr__(self, "meaning", meaning)

    def _combinations(self) -> Combinations:
        if len(self.columns) < 2 or len(set(self.columns)) < len(self.columns) or not self.allowed:
            raise OptionError("rule-combinations")
        if len(self.allowed) > _MOST_ALLOWED:
            raise OptionError("rule-too-many-combinations", most=_MOST_ALLOWED, found=len(self.allowed))
        for row in self.allowed:
            if len(row) != len(self.columns):
                raise OptionError("rule-combination-size", found=row, columns=self.columns)
        return Combinations(self.columns, tuple(dict.fromkeys(self.allowed)))

    @property
    def from_records(self) -> bool:
        return self.source == RECORDS

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that the rule is about."""
        return self.meaning.columns

    @property
    def kind(self) -> str:
        """Order, implication, missing-if, derived or combinations."""
        return _KINDS[type(self.meaning)]

    @property
    def words(self) -> str:
        """The rule as a sentence."""
        if self.keep:
            return self.keep
        return str(Message.of("rule-combinations-words", columns=self.columns, count=len(self.allowed)))


_KINDS: Mapping[type, str] = {
    Order: "order",
    Implication: "implication",
    MissingIf: "missing-if",
    Derived: "derived",
    Combinations: "combinations",
}


def _as_text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _columns_in(expression: Expression) -> Iterator[str]:
    if expression[0] == "column":
        yield expression[1]
    elif expression[0] not in ("number", "date"):
        for part in expression[1:]:
            yield from _columns_in(part)


# --- sentences


class _Sentence:
    """The tokens of a rule, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.place = text, [], 0
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise OptionError("rule-not-read", found=text[at:].strip()[:20])
            at = found.end()
            kind = str(found.lastgroup)
            self.tokens.append(("name" if kind == "quoted" else kind, found[kind]))

    def next(self, *wanted: str) -> str | None:
        """The next token if it is one of these signs or words."""
        if self.place < len(self.tokens):
            kind, text = self.tokens[self.place]
            if text in wanted and kind in ("sign", "name"):
                self.place += 1
                return text
        return None

    def of_kind(self, *kinds: str) -> tuple[str, str] | None:
        if self.place < len(self.tokens) and self.tokens[self.place][0] in kinds:
            self.place += 1
            return self.tokens[self.place - 1]
        return None

    def expect(self, *wanted: str) -> str:
        found = self.next(*wanted)
        if found is None:
            raise self.unexpected(*wanted)
        return found

    def unexpected(self, *wanted: str | Message) -> OptionError:
        at_end = self.place >= len(self.tokens)
        return OptionError(
            "rule-expected", allowed=wanted, found=_END if at_end else self.tokens[self.place][1]
        )

    def column(self) -> str:
        found = self.of_kind("name")
        if found is None:
            raise self.unexpected(Message("rule-a-column"))
        return found[1]

    def end(self) -> None:
        if self.place < len(self.tokens):
            raise self.unexpected(_END)

    # conditions

    def conditions(self) -> tuple[Atom, ...]:
        found = [self.condition()]
        while self.next("and"):
            found.append(self.condition())
        return tuple(found)

    def condition(self) -> Atom:
        column = self.column()
        if self.next("is"):
            sign = "present" if self.next("not") else "missing"
            self.expect("missing")
            return Atom(column, sign)
        if self.next("in"):
            return Atom(column, "in", self.values())
        if self.next("not"):
            self.expect("in")
            return Atom(column, "not in", self.values())
        sign = self.expect(*_COMPARISONS)
        if sign in ("=", "!="):
            return Atom(column, "in" if sign == "=" else "not in", (self.value(),))
        return Atom(column, sign, (self.value(),))

    def values(self) -> tuple[Literal, ...]:
        self.expect("[")
        found = [self.value()]
        while self.next(","):
            found.append(self.value())
        self.expect("]")
        return tuple(found)

    def value(self) -> Literal:
        negative = self.next("-") is not None
        found = self.of_kind("number") if negative else self.of_kind("number", "date", "text")
        if found is None:
            raise self.unexpected(Message("rule-a-value"))
        kind, text = found
        if kind == "text":
            return text[1:-1]
        return -Fraction(text) if negative else _constant(kind, text)

    # expressions

    def expression(self) -> Expression:
        found = self.product()
        while sign := self.next("+", "-"):
            found = (sign, found, self.product())
        return found

    def product(self) -> Expression:
        found = self.factor()
        while sign := self.next("*", "/"):
            found = (sign, found, self.factor())
        return found

    def factor(self) -> Expression:
        if self.next("-"):
            return ("-", ("number", Fraction(0)), self.factor())
        if self.next("("):
            inner = self.expression()
            self.expect(")")
            return inner
        constant = self.of_kind("number", "date")
        if constant is not None:
            return (constant[0], _constant(*constant))
        name = self.column()
        if name in _SPANS and self.next("("):
            first = self.expression()
            self.expect(",")
            second = self.expression()
            self.expect(")")
            return (name, first, second)
        return ("column", name)


def _constant(token: str, text: str) -> Fraction:
    return day_number(text, Message("a-date")) if token == "date" else Fraction(text)


def meaning_of(text: str) -> Meaning:
    """What a sentence means.

    Raises:
        OptionError: the sentence is not a rule; says where.

    >>> meaning_of("discharge - admission <= 30")
    Order(low='admission', high='discharge', least=None, strict=False, most=Fraction(30, 1))
    """
    sentence = _Sentence(text)
    signs = [token for kind, token in sentence.tokens if kind == "sign"]
    if "->" in signs:
        given = sentence.conditions()
        sentence.expect("->")
        found: Meaning = Implication(given, sentence.conditions())
    elif len(sentence.tokens) > 2 and sentence.tokens[1:3] == [("name", "missing"), ("name", "if")]:
        column = sentence.column()
        sentence.place += 2
        found = MissingIf(column, sentence.conditions())
        if column in {atom.column for atom in found.given}:
            raise OptionError("rule-about-itself", column=column)
    else:
        found = _comparison(sentence)
    sentence.end()
    return found


def _comparison(sentence: _Sentence) -> Meaning:
    sides = [sentence.expression()]
    signs = []
    while sign := sentence.next(*_COMPARISONS, "->"):
        signs.append(sign)
        sides.append(sentence.expression())
    if not signs:
        raise sentence.unexpected("<=", "=", "->", "missing if")
    if signs == ["="]:
        if sides[0][0] != "column":
            raise OptionError("rule-derived-form")
        column = sides[0][1]
        found = Derived(column, sides[1])
        if column in found.parts:
            raise OptionError("rule-about-itself", column=column)
        if not found.parts:
            raise OptionError("rule-of-one-column", columns=found.columns)
        return found
    bounds = []
    for sign, left, right in zip(signs, sides, sides[1:], strict=False):
        if sign in ("=", "!=", "->"):
            raise OptionError("rule-order-form")
        larger, smaller = (right, left) if sign[0] == "<" else (left, right)
        bounds.append((*_difference(("-", larger, smaller)), len(sign) == 1))
    return _order(bounds)


def _difference(expression: Expression) -> tuple[str, str, Fraction]:
    """An expression as one column minus another and a constant: it is to be 0 or more."""
    weights, constant = _linear(expression)
    weights = {name: weight for name, weight in weights.items() if weight}
    plus = [name for name, weight in weights.items() if weight == 1]
    minus = [name for name, weight in weights.items() if weight == -1]
    if len(weights) == 1:
        raise OptionError("rule-of-one-column", columns=tuple(weights))
    if len(weights) != 2 or len(plus) != 1 or len(minus) != 1:
        raise OptionError("rule-order-form")
    return plus[0], minus[0], constant


def _linear(expression: Expression) -> tuple[dict[str, Fraction], Fraction]:
    sign = expression[0]
    if sign == "column":
        return {expression[1]: Fraction(1)}, Fraction(0)
    if sign in ("number", "date"):
        return {}, expression[1]
    if sign not in ("+", "-"):
        raise OptionError("rule-order-form")
    (left, one), (right, other) = _linear(expression[1]), _linear(expression[2])
    factor = 1 if sign == "+" else -1
    weights = {
        name: left.get(name, Fraction(0)) + factor * right.get(name, Fraction(0))
        for name in {**left, **right}
    }
    return weights, one + factor * other


def _order(bounds: Sequence[tuple[str, str, Fraction, bool]]) -> Order:
    """Bounds `x - y + c >= 0` of one pair of columns as an order."""
    pair = {frozenset(bound[:2]) for bound in bounds}
    if len(pair) > 1:
        raise OptionError("rule-one-pair")
    # a bound that makes x larger decides which column is the later one
    forward = next((bound for bound in bounds if bound[2] <= 0), None)
    high, low = forward[:2] if forward else (bounds[0][1], bounds[0][0])
    least: Fraction | None = None
    most: Fraction | None = None
    strict = False
    for plus, _, constant, narrow in bounds:
        if plus == high:
            if least is not None:
                raise OptionError("rule-order-form")
            least, strict = -constant, narrow
        else:
            if narrow or most is not None:
                raise OptionError("rule-order-form")
            most = constant
    return Order(low, high, least, strict, most)


# --- rules and the columns they name


def check_rules(rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> None:
    """Refuse rules of unknown columns, of values that their columns do not have, or of kinds that do not fit.

    Raises:
        OptionError: names the rule by its number, and the column.
    """
    derived: dict[str, int] = {}
    for number, rule in enumerate(rules, 1):
        try:
            for name in rule.named:
                if name not in attributes:
                    raise OptionError("rule-unknown-column", column=name, hint=closest(name, attributes))
            _CHECKS[type(rule.meaning)](rule.meaning, attributes)
        except OptionError as error:
            raise of_rule(number, error) from None
        if isinstance(rule.meaning, Derived):
            column = rule.meaning.column
            if column in derived:
                raise OptionError("rules-derive-twice", column=column, number=derived[column], other=number)
            derived[column] = number
    circle = _circle(
        {rule.meaning.column: rule.meaning.parts for rule in rules if isinstance(rule.meaning, Derived)}
    )
    if circle:
        raise OptionError(
            "rules-derive-circle", column=circle[0], number=derived[circle[0]], other=derived[circle[1]]
        )


def of_rule(number: int, error: OptionError) -> OptionError:
    """The error of one of several rules, with the number of the rule."""
    return OptionError("of-rule", number=number, reason=error)


def _circle(parts: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """Two columns that are derived from each other, perhaps through others."""
    for start in parts:
        seen, ahead = {start}, [(start, part) for part in parts[start]]
        while ahead:
            before, name = ahead.pop()
            if name == start:
                return start, before
            if name in parts and name not in seen:
                seen.add(name)
                ahead += [(name, part) for part in parts[name]]
    return None


def _check_order(order: Order, attributes: Mapping[str, Attribute]) -> None:
    low, high = attributes[order.low], attributes[order.high]
    if low.kind != high.kind or not (low.kind_facts.ranged or (low.ordered and low.ordered == high.ordered)):
        raise OptionError("rule-order-kinds", columns=order.columns, found=(low.kind, high.kind))
    if order.least is not None and order.most is not None and order.least > order.most:
        raise OptionError("rule-gaps-empty", least=float(order.least), most=float(order.most))


def _check_conditions(atoms: Sequence[Atom], attributes: Mapping[str, Attribute]) -> None:
    for atom in atoms:
        attribute = attributes[atom.column]
        facts = attribute.kind_facts
        if facts.ranged:
            if any(isinstance(value, str) for value in atom.values):
                raise OptionError("rule-compares-text", column=atom.column, found=attribute.kind)
            if len(atom.values) > 1:
                raise OptionError("rule-lists-numbers", column=atom.column)
            continue
        if atom.sign in ("<", "<=", ">", ">=") and not facts.listed:
            raise OptionError("rule-compares-names", column=atom.column)
        _check_values(attribute, [str(value) for value in atom.values])


def _check_values(attribute: Attribute, values: Sequence[str]) -> None:
    known = attribute.ordered or (attribute.tree.values if attribute.tree is not None else ())
    if attribute.type == "boolean" and not known:
        known = ("False", "True")
    for value in values:
        if known and spelled(value, known) is None:
            raise OptionError(
                "rule-unknown-value", column=attribute.name, found=value, hint=closest(value, list(known))
            )


def _check_implication(found: Implication, attributes: Mapping[str, Attribute]) -> None:
    _check_conditions((*found.given, *found.then), attributes)
    for atom in found.then:
        if atom.sign in ("missing", "present"):
            raise OptionError("rule-then-missing", column=atom.column)
        if atom.column in {given.column for given in found.given}:
            raise OptionError("rule-about-itself", column=atom.column)


def _check_missing_if(found: MissingIf, attributes: Mapping[str, Attribute]) -> None:
    _check_conditions(found.given, attributes)


def _check_derived(found: Derived, attributes: Mapping[str, Attribute]) -> None:
    own = attributes[found.column].kind_facts
    if not own.ranged or any(not attributes[name].kind_facts.ranged for name in found.parts):
        raise OptionError("rule-derived-kinds", column=found.column)
    unit = _unit(found.expression, attributes)
    if (unit == "date") != own.days:
        raise OptionError("rule-derived-unit", column=found.column, found=unit)


def _unit(expression: Expression, attributes: Mapping[str, Attribute]) -> str:
    """Whether an expression is a number or a date."""
    sign = expression[0]
    if sign == "column":
        return "date" if attributes[expression[1]].kind_facts.days else "number"
    if sign in ("number", "date"):
        return str(sign)
    left, right = (_unit(part, attributes) for part in expression[1:])
    units = {
        **{(span, "date", "date"): "number" for span in (*_SPANS, "-")},
        **{(sign, "number", "number"): "number" for sign in "+-*/"},
        ("+", "date", "number"): "date",
        ("+", "number", "date"): "date",
        ("-", "date", "number"): "date",
    }
    found = units.get((sign, left, right))
    if found is None:
        raise OptionError("rule-mixes-units", sign=sign, left=left, right=right)
    return found


def _check_combinations(found: Combinations, attributes: Mapping[str, Attribute]) -> None:
    for place, name in enumerate(found.columns):
        if attributes[name].kind_facts.ranged:
            raise OptionError("rule-combines-numbers", column=name)
        _check_values(attributes[name], [row[place] for row in found.allowed])


_CHECKS: Mapping[type, Any] = {
    Order: _check_order,
    Implication: _check_implication,
    MissingIf: _check_missing_if,
    Derived: _check_derived,
    Combinations: _check_combinations,
}


# --- rules as tests of rows

# values by column, missing ones as NaN: numbers, day numbers, places in the list of values
Values = Mapping[str, Floats]


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
