"""Protocols that refine answers with prior knowledge of the analyst."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from shoal.columns import Attribute, Lattice
from shoal.errors import OptionError
from shoal.numbers import decimal_text
from shoal.privacy import Accountant, Adjacency
from shoal.query.answers import add_up, numeric_lattice, present_values
from shoal.query.facts import MISSING, DatasetFacts, QueryTable
from shoal.query.rank import PART_OPTIONS, ExpectedAnswers, of_column, of_lattice, together
from shoal.query.refinement import Factors, Labels, Points, movable, refine, sample
from shoal.query.where import (
    Offer,
    Where,
    as_delta,
    as_list,
    as_mapping,
    as_number,
    as_text,
    check_keys,
    matching,
    parse_where,
)
from shoal.text import Message

# the number of the true answer, and whether there is one: where there is not, the number of any other, so that the same
# is done with it
Truth = Callable[[QueryTable], tuple[int, bool]]
# what an ε allows: the factors of the prior, and the probability that may be moved for a δ
Allowed = Callable[[Fraction], tuple[Factors, Fraction]]
_STATISTICS = ("count", "sum", "mean", "quantile")
_PURPOSE = "refined answer"


def individual(facts: DatasetFacts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more values of one person: a sample of what is expected of them, refined towards the truth.

    Guarantee:
        A person of whom there is not exactly one record is answered from the prior. So ε for one record added or
        removed, 2ε for one replaced. With `delta`, (ε, δ) or (2ε, δ).

    Reference:
        Thesis, Proposition 3; docs/proofs/queries.md#refinement.
    """
    key = as_mapping("key", options["key"])
    check_keys("key", key, ("column", "value"))
    who = facts.attribute(key["column"])
    if who.role not in ("identifier", "unit"):
        raise OptionError("column-does-not-identify-persons", column=who.name, found=who.role)
    label = as_text(Message.of("part-key-value"), key["value"])
    columns = _one_or_more("column", options)
    found: list[tuple[Callable[[QueryTable, int], tuple[int, bool]], ExpectedAnswers]] = []
    for given in columns:
        part = given if isinstance(given, dict) else {"column": given}
        check_keys(Message.of("part-column"), part, ("column",), PART_OPTIONS)
        attribute = facts.attribute(part["column"])
        if attribute.role in ("identifier", "unit"):
            raise OptionError("refined-column-identifies-persons", column=attribute.name)
        expected = of_column(facts, attribute, part)
        found.append((_value(facts, attribute, expected), expected))

    def truths(table: QueryTable) -> list[tuple[int, bool]]:
        row, alone = table.only_row(who.name, label)
        # a row is looked up either way, and does not count if it is not that of the person
        values = [value(table, row) for value, _ in found]
        return [(place, there & alone) for place, there in values]

    delta = as_delta(options["delta"]) if "delta" in options else Fraction(0)

    def allowed(spent: Fraction) -> tuple[Factors, Fraction]:
        moved = movable(spent, delta, individual=True, replace_one=facts.replace_one)
        return Factors.individual(spent), moved

    return _offer(
        [part for _, part in found],
        options,
        allowed,
        truths,
        epsilon=epsilon,
        # a record that is replaced is removed, and another one added
        touched=Adjacency(facts.adjacency).factor,
        delta=delta,
        conditions=(Message.of("answered-from-prior"),),
        person=(who.name, label),
    )


def statistical(facts: DatasetFacts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more statistics of many records, refined likewise.

    Guarantee:
        ε between any two data sets whatever, so under both relations; (ε, δ) with `delta`.

    Reference:
        Thesis, Proposition 2; docs/proofs/queries.md#refinement.
    """
    found = [
        _statistic(facts, as_mapping("statistic", given)) for given in _one_or_more("statistic", options)
    ]

    def truths(table: QueryTable) -> list[tuple[int, bool]]:
        return [one(table) for one, _ in found]

    delta = as_delta(options["delta"]) if "delta" in options else Fraction(0)
    lift = as_number("lift", options["lift"]) if "lift" in options else Fraction(1, 2)
    if not Fraction(1, 100) <= lift <= Fraction(99, 100):
        raise OptionError("lift-between-0-01-0-99", option="lift", found=decimal_text(lift))

    def allowed(spent: Fraction) -> tuple[Factors, Fraction]:
        moved = movable(spent, delta, individual=False, replace_one=facts.replace_one)
        return Factors.statistical(spent, lift), moved

    return _offer(
        [part for _, part in found],
        options,
        allowed,
        truths,
        epsilon=epsilon,
        delta=delta,
    )


def _one_or_more(what: str, options: dict[str, Any]) -> list[Any]:
    """The parts of a query; what is said about one part at the top of the query belongs to that part."""
    several = what + "s"
    if (what in options) == (several in options):
        raise OptionError("query-needs-either", what=what, several=several)
    if several in options:
        for key in ("range", "values"):
            if key in options:
                raise OptionError("belongs-into-parts-query-several", key=key)
        return as_list(several, options[several], 100)
    own = {key: options[key] for key in PART_OPTIONS if key in options}
    one = options[what]
    part = one if isinstance(one, dict) else {what: one}
    for key in own:
        if key in part:
            raise OptionError("is-given-twice", key=key)
    return [part | own]


def _offer(
    parts: list[ExpectedAnswers],
    options: dict[str, Any],
    allowed: Allowed,
    truths: Callable[[QueryTable], list[tuple[int, bool]]],
    *,
    epsilon: Fraction,
    delta: Fraction,
    touched: int = 1,
    conditions: tuple[Message, ...] = (),
    person: tuple[str, str] | None = None,
) -> Offer:
    several = "columns" in options or "statistics" in options
    expected = together(parts, options) if several else parts[0]
    support, (factors, _) = expected.support, allowed(epsilon)
    over = "changes of one record" if touched > 1 else ""

    def run(table: QueryTable, account: Accountant) -> Any:
        number, known = 0, True
        for part, (place, there) in zip(parts, truths(table), strict=True):
            number, known = number * part.support.size + place, known & there
        spent, source = account.spend(_PURPOSE, epsilon, over=over, touched=touched).take()
        law = refine(expected.prior, expected.distance(support, number), *allowed(spent))
        drawn = sample(law, source, known=known)
        answer = support.answer(drawn)
        if not several:
            return parts[0].written(answer)
        return [part.written(value) for part, value in zip(parts, answer, strict=True)]

    error = {
        "possible_answers": support.size,
        "prior_mass_raised": float(factors.mass_up),
        "its_probability": float(factors.chance_up),
    }
    price = touched * epsilon
    return Offer(
        price,
        {_PURPOSE: price},
        None,
        Message.of("noise-refined-prior"),
        error,
        run,
        conditions=(*conditions, Message.of("whatever-the-prior")),
        delta=delta,
        person=person,
    )


def _value(
    facts: DatasetFacts, attribute: Attribute, expected: ExpectedAnswers
) -> Callable[[QueryTable, int], tuple[int, bool]]:
    """How the true answer of one record is looked up, and whether it has one."""
    support, name = expected.support, attribute.name
    if facts.has_lattice(attribute):
        nearest = _nearest(expected, facts, attribute)

        def by_position(table: QueryTable, row: int) -> tuple[int, bool]:
            position = int(table.positions[name][row]) if table.n else MISSING
            return nearest(max(position, 0)), position != MISSING

        return by_position
    assert isinstance(support, Labels)

    def by_label(table: QueryTable, row: int) -> tuple[int, bool]:
        code = int(table.codes[name][row]) if table.n else MISSING
        codes = np.array([table.code(name, label) for label in support.labels], dtype=np.int64)
        # compared with all possible labels: looked up by its name, one would be found sooner than another
        same = codes == code
        return int(np.multiply(same, np.arange(support.size)).sum()), bool(same.any())

    return by_label


def _nearest(expected: ExpectedAnswers, facts: DatasetFacts, attribute: Attribute) -> Callable[[int], int]:
    """The number of the possible answer that is nearest to a position of a column."""
    if not isinstance(expected.support, Points):
        # the labels of an order, all of them and in their order
        return lambda position: position
    lattice = facts.lattice(attribute.name)
    return partial(_rounded(expected.support, lattice.lo, lattice.step), 1)


def _rounded(points: Points, base: Fraction, unit: Fraction) -> Callable[[int, int], int]:
    """The number of the point nearest to base + unit·total/number, in whole numbers with public coefficients."""
    ratios = ((base - points.lattice.lo) / points.lattice.step, unit / points.lattice.step)
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    first, second = (2 * int(ratio * common) for ratio in ratios)

    def rounded(number: int, total: int) -> int:
        half = common * number
        return min(max((first * number + second * total + half) // (2 * half), 0), points.lattice.steps)

    return rounded


def _statistic(facts: DatasetFacts, part: dict[str, Any]) -> tuple[Truth, ExpectedAnswers]:
    kind = part.get("kind")
    if kind not in _STATISTICS:
        raise OptionError("unknown-statistic", allowed=tuple(_STATISTICS), found=kind)
    needed = {"count": (), "quantile": ("column", "q")}.get(kind, ("column",))
    check_keys(Message.of("part-statistic", kind=kind), part, ("kind", *needed), ("where", *PART_OPTIONS))
    where = parse_where(part["where"], facts) if "where" in part else None
    if kind == "count":
        usual = None if facts.rows is None else Lattice(Fraction(0), Fraction(facts.rows), Fraction(1))
        expected = of_lattice(usual, part, None)
        return _counted(expected, where), expected
    attribute = facts.attribute(part["column"])
    if kind == "quantile":
        q = as_number("q", part["q"])
        if not 0 <= q <= 1:
            raise OptionError("q-between-0-1", option="q", found=decimal_text(q))
        lattice = facts.lattice(attribute.name)
        listed = attribute.kind_facts.listed
        expected = of_column(facts, attribute, part) if listed else of_lattice(lattice, part, attribute)
        return _ranked(attribute.name, _nearest(expected, facts, attribute), q, where), expected
    lattice = numeric_lattice(facts, attribute.name)
    usual = lattice
    if kind == "sum":
        usual = None
        if facts.rows is not None:
            ends = (facts.rows * min(lattice.lo, Fraction(0)), facts.rows * max(lattice.hi, Fraction(0)))
            usual = Lattice(*ends, (ends[1] - ends[0]) / (1 << 12))
    expected = of_lattice(usual, part, None)
    return _added(expected, attribute.name, lattice, where, mean=kind == "mean"), expected


def _counted(expected: ExpectedAnswers, where: Where | None) -> Truth:
    assert isinstance(expected.support, Points)
    rounded = _rounded(expected.support, Fraction(0), Fraction(1))
    return lambda table: (rounded(1, int(np.count_nonzero(matching(where, table)))), True)


def _added(
    expected: ExpectedAnswers, column: str, lattice: Lattice, where: Where | None, *, mean: bool
) -> Truth:
    """The exact sum or mean of the records that have a value; there is no mean of nothing."""
    assert isinstance(expected.support, Points)
    base = lattice.lo / lattice.step
    # a record at position p adds step·p + lo, which is a whole number of these
    unit = lattice.step / base.denominator
    rounded = _rounded(expected.support, Fraction(0), unit)

    def truth(table: QueryTable) -> tuple[int, bool]:
        positions, chosen = table.positions[column], present_values(table, column, where)
        number = int(np.count_nonzero(chosen))
        total = base.numerator * number + base.denominator * add_up(np.multiply(positions, chosen))
        return (rounded(max(number, 1), total), number > 0) if mean else (rounded(1, total), True)

    return truth


def _ranked(column: str, nearest: Callable[[int], int], q: Fraction, where: Where | None) -> Truth:
    def truth(table: QueryTable) -> tuple[int, bool]:
        order = table.orders[column]
        upto = order.upto(matching(where, table))
        number = int(upto[-1])
        rank = max(-(-q.numerator * number // q.denominator), 1)
        place = int(np.count_nonzero(upto[1:] < rank))
        position = int(order.values[min(place, table.n - 1)]) if table.n else 0
        return nearest(max(position, 0)), number > 0

    return truth
