"""Queries as data: check, price and answer them.

A query is checked and priced from public facts alone, before any record is looked at; an error says nothing about them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from shoal.errors import OptionError, closest
from shoal.noise import LARGEST, Source, shown
from shoal.noise import source as source_for
from shoal.numbers import decimal_text
from shoal.privacy import Reason
from shoal.query.answers import cells_of, count, histogram, mean, total
from shoal.query.facts import DatasetFacts, QueryTable
from shoal.query.protocols import individual, statistical
from shoal.query.rank import quantile, ranking_means
from shoal.query.where import (
    Offer,
    Where,
    as_epsilon,
    as_mapping,
    as_number,
    as_scale,
    as_text,
    as_whole,
    check_keys,
    parse_where,
    plain,
)
from shoal.text import Message


@dataclass(frozen=True, slots=True)
class Budget:
    """What a query may spend: an ε, or Laplace noise of a given scale, whose ε follows from the sensitivity."""

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
        protocol: which of the thesis' protocols can carry it, if any.
    """

    build: Callable[[DatasetFacts, dict[str, Any], Budget], Offer]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    protocol: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query: its options as plain data with numbers as text, and the offer that follows from them."""

    kind: str
    options: dict[str, Any]
    facts: DatasetFacts = field(repr=False)
    offer: Offer = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data from which `parse` makes the same query."""
        return {"kind": self.kind, **self.options}


@dataclass(frozen=True, slots=True)
class Answer:
    """One noisy answer with its price and what is promised about it."""

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
        OptionError: something is missing, unknown or out of range.

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
    budget = Budget(as_epsilon(options["epsilon"]) if paid else None)
    offer = KINDS[kind].build(facts, options, budget)
    if offer.delta and facts.rows_per_unit > 1:
        raise OptionError("delta-not-offered-where-person-can", option="delta")
    return Query(kind, options, facts, offer)


def canonical(query: Query) -> str:
    """The query as one line of JSON with sorted keys: the same text for the same query."""
    return json.dumps(query.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def cost(query: Query, facts: DatasetFacts) -> Fraction:
    """The exact ε to charge per person: that of a row times the most rows a person can have."""
    return _offer(query, facts).epsilon * facts.rows_per_unit


def delta(query: Query, facts: DatasetFacts) -> Fraction:
    """The exact δ to charge."""
    return _offer(query, facts).delta


def _offer(query: Query, facts: DatasetFacts) -> Offer:
    return query.offer if query.facts == facts else parse(query.to_dict(), facts).offer


def preview(query: Query, facts: DatasetFacts) -> dict[str, Any]:
    """What the answer would cost and how good it would be, without looking at a record."""
    return {
        "query": query.to_dict(),
        "cost": str(cost(query, facts)),
        "delta": str(delta(query, facts)),
        "error": dict(_offer(query, facts).error),
        "statement": statement(query, facts),
    }


def statement(query: Query, facts: DatasetFacts, *, publishable: bool = True) -> dict[str, Any]:
    """What is promised about the answer: only public facts."""
    offer, rows = _offer(query, facts), facts.rows_per_unit
    conditions = [
        Message.of("holder-declares"),
        Message.of("outside-and-missing"),
        *offer.conditions,
    ]
    if rows > 1:
        conditions.append(Message.of("person-has-rows", rows=rows))
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
    """Draw the answer. The caller has charged `cost` and `delta` before.

    What it costs one row is reserved, and every draw is paid from that.

    Guarantee:
        Together with nothing else it is (`cost`, `delta`)-DP of the original records under the relation of the data
        set, per person.

    Raises:
        OverspendError: the answer would cost more than its price, which is noticed before anything is drawn.

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
    forbidden = () if protocol == "protocol-2" else ("noise",)
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
    "sum": QueryKind(_sum, ("column",), ("where", "noise"), "protocol-1"),
    "mean": QueryKind(_mean, ("column",), ("where", "noise")),
    "histogram": QueryKind(_histogram, ("column",), ("edges", "cells", "where"), "protocol-1"),
    "quantile": QueryKind(_quantile, ("column", "q"), ("where",)),
    "ranking-means": QueryKind(_ranking_means, ("column", "k")),
    "individual": QueryKind(_individual, ("key",), ("column", "columns", *_EXPECTED), "protocol-2"),
    "statistical": QueryKind(_statistical, (), ("statistic", "statistics", "lift", *_EXPECTED), "protocol-2"),
    "protocol-1": QueryKind(_protocol_1, ("scale", "query")),
    "protocol-2": QueryKind(_protocol_2, ("query",)),
}
