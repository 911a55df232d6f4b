"""Queries as data: check, price and answer them.

A query is checked and priced from public facts alone, before any record is read; errors reveal nothing about records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from shoal.columns import Attribute, Lattice
from shoal.errors import OptionError, closest
from shoal.noise import LARGEST, Source, shown
from shoal.noise import source as source_for
from shoal.numbers import decimal_text
from shoal.privacy import Accountant, Adjacency, Reason, row_budget, unit_price
from shoal.query.answers import (
    add_up,
    cells_of,
    clipped_total,
    count,
    histogram,
    mean,
    numeric_lattice,
    present_values,
    total,
)
from shoal.query.facts import (
    MISSING,
    DatasetFacts,
    Offer,
    QueryTable,
    Where,
    as_delta,
    as_epsilon,
    as_list,
    as_mapping,
    as_number,
    as_scale,
    as_text,
    as_whole,
    check_keys,
    matching,
    parse_where,
    plain,
)
from shoal.query.rank import (
    PART_OPTIONS,
    ExpectedAnswers,
    of_column,
    of_lattice,
    quantile,
    ranking_means,
    together,
)
from shoal.query.refinement import Factors, Labels, Points, movable, refine, sample
from shoal.text import Message

# the number of the true answer, and whether there is one: if not, any other number stands in, so that the same
# work is done with it
Truth = Callable[[QueryTable], tuple[int, bool]]
# what an ε allows: the factors of the prior, and the probability that may be moved for a δ
Allowed = Callable[[Fraction], tuple[Factors, Fraction]]
_STATISTICS = ("count", "sum", "mean", "quantile")
_PURPOSE = "refined answer"


def individual(facts: DatasetFacts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more values of one person: a draw from the analyst's prior, refined towards the truth.

    Guarantee:
        A person without exactly one record is answered from the prior. So ε for one record added or
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

    return _protocol_offer(
        [part for _, part in found],
        options,
        allowed,
        truths,
        epsilon=epsilon,
        # replacing a record removes it and adds another one
        touched=Adjacency(facts.adjacency).factor,
        delta=delta,
        conditions=(Message.of("answered-from-prior"),),
        person=(who.name, label),
    )


def statistical(facts: DatasetFacts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more statistics of many records, refined in the same way.

    Guarantee:
        ε between any two data sets, so under both relations; (ε, δ) with `delta`.

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

    return _protocol_offer(
        [part for _, part in found],
        options,
        allowed,
        truths,
        epsilon=epsilon,
        delta=delta,
    )


def _one_or_more(what: str, options: dict[str, Any]) -> list[Any]:
    """The parts of a query; options at the top level of the query apply to its single part."""
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


def _protocol_offer(
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
        # compared with all possible labels: a lookup by name would take a different time for each label
        same = codes == code
        return int(np.multiply(same, np.arange(support.size)).sum()), bool(same.any())

    return by_label


def _nearest(expected: ExpectedAnswers, facts: DatasetFacts, attribute: Attribute) -> Callable[[int], int]:
    """The number of the possible answer that is nearest to a position of a column."""
    if not isinstance(expected.support, Points):
        # all labels of an order, in their order
        return lambda position: position
    lattice = facts.lattice(attribute.name)
    return partial(_rounded(expected.support, lattice.lo, lattice.step), 1)


def _rounded(points: Points, base: Fraction, unit: Fraction) -> Callable[[int, int], int]:
    """The number of the point nearest to base + unit·total/number, in integers with public coefficients."""
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
    """The exact sum or mean of the records that have a value; there is no mean of no values."""
    assert isinstance(expected.support, Points)
    base = lattice.lo / lattice.step
    # a record at position p adds step·p + lo, which is an integer multiple of these
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


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a query: an ε, or Laplace noise of a given scale, whose ε follows from the sensitivity."""

    epsilon: Fraction | None = None
    scale: Fraction | None = None

    @property
    def settled(self) -> Fraction:
        assert self.epsilon is not None
        return self.epsilon


@dataclass(frozen=True, slots=True)
class QueryKind:
    """A kind of query.

    Attributes:
        required: options besides kind and epsilon.
        build: makes the offer from public facts, options and the budget.
        protocol: the protocol of the thesis that can carry it, if any.
    """

    build: Callable[[DatasetFacts, dict[str, Any], Budget], Offer]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query: its options as plain data with numbers as text, and the resulting offer."""

    kind: str
    options: dict[str, Any]
    facts: DatasetFacts = field(repr=False)
    offer: Offer = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `parse` makes the same query."""
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True, slots=True)
class Answer:
    """A noisy answer with its price and its statement."""

    query: Query
    value: Any
    cost: Fraction
    delta: Fraction
    statement: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "query": self.query.to_dict(),
            "value": self.value,
            "cost": str(self.cost),
            "delta": str(self.delta),
            "error": dict(self.query.offer.error),
            "statement": dict(self.statement),
        }


def parse(raw: Mapping[str, Any], facts: DatasetFacts) -> Query:
    """Check a query against the public facts of a data set.

    Raises:
        OptionError: an option is missing, unknown or out of range.

    >>> from shoal.columns.attribute import Attribute
    >>> from shoal.columns.schema import Schema
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1)),))
    >>> facts = DatasetFacts(schema, rows=1000)
    >>> query = parse({"kind": "mean", "column": "age", "epsilon": 0.5}, facts)
    >>> cost(query, facts), round(query.offer.error["interval_95"], 2)
    (Fraction(1, 2), 0.72)
    """
    given = as_mapping(Message.of("part-query"), plain(raw))
    kind, options = given.get("kind"), {key: value for key, value in given.items() if key != "kind"}
    if not isinstance(kind, str) or kind not in KINDS:
        hint = closest(kind, KINDS)
        raise OptionError("unknown-question-kind", option="kind", kind=kind, allowed=tuple(KINDS), hint=hint)
    paid = () if kind == "protocol-1" else ("epsilon",)
    what = Message.of("part-query-of-kind", kind=kind)
    check_keys(what, options, (*paid, *KINDS[kind].required), KINDS[kind].optional)
    rows = facts.rows_per_unit
    budget = Budget(row_budget(as_epsilon(options["epsilon"]), rows) if paid else None)
    offer = KINDS[kind].build(facts, options, budget)
    if offer.delta and rows > 1:
        raise OptionError("delta-not-offered-where-person-can", option="delta")
    return Query(kind, options, facts, offer)


def canonical(query: Query) -> str:
    """The query as one line of JSON with sorted keys: the same text for the same query."""
    return json.dumps(query.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def cost(query: Query, facts: DatasetFacts) -> Fraction:
    """The exact ε to charge per unit: for a query with an ε, that ε, or 0 where the answer is public."""
    offer = _offer(query, facts)
    return offer.epsilon if offer.of_unit else unit_price(offer.epsilon, facts.rows_per_unit)


def delta(query: Query, facts: DatasetFacts) -> Fraction:
    """The exact δ to charge."""
    return _offer(query, facts).delta


def _offer(query: Query, facts: DatasetFacts) -> Offer:
    return query.offer if query.facts == facts else parse(query.to_dict(), facts).offer


def preview(query: Query, facts: DatasetFacts) -> dict[str, Any]:
    """The cost and accuracy of the answer, without reading a record."""
    return {
        "query": query.to_dict(),
        "cost": str(cost(query, facts)),
        "delta": str(delta(query, facts)),
        "error": dict(_offer(query, facts).error),
        "statement": statement(query, facts),
    }


def statement(query: Query, facts: DatasetFacts, *, publishable: bool = True) -> dict[str, Any]:
    """The statement about the answer: public facts only."""
    offer, rows = _offer(query, facts), facts.rows_per_unit
    conditions = [
        Message.of("holder-declares"),
        Message.of("outside-and-missing"),
        *offer.conditions,
    ]
    if facts.bounded:
        conditions.append(Message.of("unit-rows-bounded", rows=rows))
    if rows > 1 and not offer.of_unit:
        conditions.append(Message.of("unit-has-rows", rows=rows))
    elif facts.schema.unit is None:
        conditions.append(Message.of("answer-about-one-row"))
    found: dict[str, Any] = {
        "model": "dp",
        "target": "the original records",
        "epsilon": str(cost(query, facts)),
        "delta": str(offer.delta),
        "neighbours": facts.relation,
        "adjacency": facts.adjacency,
        "unit": facts.unit,
        "sensitivity": None if offer.sensitivity is None else decimal_text(offer.sensitivity),
        "noise": str(offer.noise),
        "conditions": [str(condition) for condition in conditions],
        "not_promised": [
            str(Message.of("answer-population-not-hidden")),
            str(Message.of("other-answers-not-covered")),
        ],
        "publishable": publishable,
    }
    if not publishable:
        seeded = Reason.of("seeded")
        found["not_publishable_because"] = [seeded.text]
        found["obstacles"] = [{"code": seeded.code, "facts": dict(seeded.facts)}]
    return found


def answer(query: Query, table: QueryTable, source: Source | None = None) -> Answer:
    """Draw the answer. The caller must have charged `cost` and `delta` before.

    The cost for one row is reserved, and every draw is charged to that.

    Guarantee:
        On its own it is (`cost`, `delta`)-DP of the original records under the relation of the data
        set, per person.

    Raises:
        OverspendError: the answer would cost more than its price, which is detected before anything is drawn.

    >>> import pyarrow as pa
    >>> from shoal.query.facts import prepare
    >>> from shoal.columns.attribute import Attribute
    >>> from shoal.columns.schema import Schema
    >>> schema = Schema((Attribute("age", lo=Fraction(0), hi=Fraction(120)),))
    >>> table = prepare(pa.table({"age": [30, 41, 52]}), schema)
    >>> answer(parse({"kind": "count", "epsilon": 1}, table.facts), table).value
    3
    """
    bits = source_for(None) if source is None else source
    facts = table.facts
    offer = _offer(query, facts)
    value = offer.run(table, offer.account(facts, bits))
    return Answer(
        query,
        value,
        cost(query, facts),
        delta(query, facts),
        statement(query, facts, publishable=not bits.reproducible),
    )


def _where(facts: DatasetFacts, options: dict[str, Any]) -> Where | None:
    return parse_where(options["where"], facts) if "where" in options else None


def _column(facts: DatasetFacts, options: dict[str, Any]) -> str:
    return facts.attribute(options["column"]).name


def _noise(options: dict[str, Any]) -> str:
    return as_text("noise", options.get("noise", "laplace"))


def _count(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    where = _where(facts, options)
    return count(facts, epsilon=budget.epsilon, scale=budget.scale, where=where, noise=_noise(options))


def _sum(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    column, where = _column(facts, options), _where(facts, options)
    if "bound" in options:
        check_keys("bound", as_mapping("bound", options["bound"]), ("sum",))
        return clipped_total(
            facts,
            column=column,
            epsilon=unit_price(budget.settled, facts.rows_per_unit),
            most=as_number("sum", options["bound"]["sum"]),
            where=where,
            noise=_noise(options),
        )
    return total(
        facts,
        column=column,
        epsilon=budget.epsilon,
        scale=budget.scale,
        where=where,
        noise=_noise(options),
    )


def _mean(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    column, where = _column(facts, options), _where(facts, options)
    return mean(facts, column=column, epsilon=budget.settled, where=where, noise=_noise(options))


def _histogram(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    cells, where = cells_of(facts, options), _where(facts, options)
    return histogram(facts, cells=cells, epsilon=budget.epsilon, scale=budget.scale, where=where)


def _quantile(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    column, where = _column(facts, options), _where(facts, options)
    return quantile(facts, column=column, q=as_number("q", options["q"]), epsilon=budget.settled, where=where)


def _ranking_means(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    column, k = _column(facts, options), as_whole("k", options["k"])
    return ranking_means(facts, column=column, k=k, epsilon=budget.settled)


def _individual(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    return individual(facts, options, budget.settled)


def _statistical(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    return statistical(facts, options, budget.settled)


def _carried(facts: DatasetFacts, options: dict[str, Any], budget: Budget, protocol: str) -> Offer:
    """A query inside one of the thesis' protocols, which sets its budget."""
    inner = as_mapping("query", options["query"])
    kind, own = inner.get("kind"), {key: value for key, value in inner.items() if key != "kind"}
    known = [name for name, one in KINDS.items() if one.protocol == protocol]
    if kind not in known:
        raise OptionError(
            "carries-queries-kind",
            protocol=protocol,
            known=tuple(known),
            found=kind,
            hint=closest(kind, known),
        )
    # a bounded sum is priced per unit, not by the joint sensitivity of rows
    forbidden = () if protocol == "protocol-2" else ("noise", "bound")
    optional = [key for key in KINDS[kind].optional if key not in forbidden]
    what = Message.of("part-query-of-protocol", kind=kind, protocol=protocol)
    check_keys(what, own, KINDS[kind].required, optional)
    return KINDS[kind].build(facts, own, budget)


def _protocol_1(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    offer = _carried(facts, options, Budget(scale=as_scale(options["scale"])), "protocol-1")
    if offer.epsilon > LARGEST:
        raise OptionError("scale-so-small-would-above-1e6", scale=shown(options["scale"]))
    return offer


def _protocol_2(facts: DatasetFacts, options: dict[str, Any], budget: Budget) -> Offer:
    return _carried(facts, options, budget, "protocol-2")


_EXPECTED = ("range", "values", "prior", "distance", "delta")
KINDS: dict[str, QueryKind] = {
    "count": QueryKind(_count, (), ("where", "noise"), "protocol-1"),
    "sum": QueryKind(_sum, ("column",), ("where", "noise", "bound"), "protocol-1"),
    "mean": QueryKind(_mean, ("column",), ("where", "noise")),
    "histogram": QueryKind(_histogram, ("column",), ("edges", "cells", "where"), "protocol-1"),
    "quantile": QueryKind(_quantile, ("column", "q"), ("where",)),
    "ranking-means": QueryKind(_ranking_means, ("column", "k")),
    "individual": QueryKind(_individual, ("key",), ("column", "columns", *_EXPECTED), "protocol-2"),
    "statistical": QueryKind(_statistical, (), ("statistic", "statistics", "lift", *_EXPECTED), "protocol-2"),
    "protocol-1": QueryKind(_protocol_1, ("scale", "query")),
    "protocol-2": QueryKind(_protocol_2, ("query",)),
}
