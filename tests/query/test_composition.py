"""Totals of many answers: the maximum over persons, joint sensitivity, both against brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.errors import OptionError
from shoal.query.answers import cells_of, counting, summing
from shoal.query.facts import DatasetFacts, Neighbours, parse_where
from shoal.query.price import AnswerCost, charge, extra, protocol_1_total, total
from shoal.query.refinement import Factors, Labels, nominal, refine, uniform
from shoal.query.spec import cost, parse

from .query_worlds import GROUPS, rows_of, schema, table

RELATIONS: tuple[Neighbours, ...] = ("replace-one", "add-remove")


@given(
    st.lists(
        st.tuples(
            st.fractions(0, 2, max_denominator=20),
            st.sampled_from([None, ("id", "1"), ("id", "2"), ("id", "3"), ("card", "1")]),
        ),
        max_size=20,
    )
)
@settings(max_examples=50)
def test_a_ledger_that_adds_what_is_extra_arrives_at_the_total(found: list[Any]) -> None:
    charges = [AnswerCost(epsilon, person=person) for epsilon, person in found]
    spent = Fraction(0)
    for number, one in enumerate(charges):
        same = [c for c in charges[:number] if c.person == one.person]
        persons = {
            c.person for c in charges[:number] if c.person and one.person and c.person[0] == one.person[0]
        }
        largest = max(
            (sum((c.epsilon for c in charges[:number] if c.person == p), Fraction(0)) for p in persons),
            default=Fraction(0),
        )
        added = extra(one, sum((c.epsilon for c in same), Fraction(0)), largest)
        assert added >= 0
        spent += added
    assert spent == total(charges)
    assert total(charges) <= sum((c.epsilon for c in charges), Fraction(0))


def test_charges_survive_json() -> None:
    for one in (AnswerCost(Fraction(1, 3), Fraction(1, 7), ("id", "x")), AnswerCost(Fraction(2))):
        assert AnswerCost.from_dict(one.to_dict()) == one


def test_answers_about_different_persons_cost_the_dearest_by_enumeration() -> None:
    """Tables 5.3 and 5.4 for every pair of values, and both relations: a record is about one person."""
    prior = uniform(Labels(("0", "1")))
    budgets = (Fraction(1), Fraction(1, 2))

    def law(person: int, value: int | None) -> list[Fraction]:
        distances = None if value is None else nominal(prior.support, value)
        return refine(prior, distances, Factors.individual(budgets[person])).probabilities()

    def joint(state: tuple[int | None, int | None]) -> list[Fraction]:
        return [a * b for a in law(0, state[0]) for b in law(1, state[1])]

    states = list(itertools.product((None, 0, 1), repeat=2))

    def worst(neighbours: Any) -> float:
        ratios = [
            float(a / b)
            for one, other in itertools.product(states, repeat=2)
            if neighbours(one, other)
            for a, b in zip(joint(one), joint(other), strict=True)
        ]
        return max(ratios)

    def add_remove(one: Any, other: Any) -> bool:
        changed = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        return len(changed) == 1 and None in changed[0]

    def replace_one(one: Any, other: Any) -> bool:
        """One record gets another value, or another person."""
        changed = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        if len(changed) == 1:
            return None not in changed[0]
        return (
            len(changed) == 2
            and sorted(a is None for a, _ in changed) == [False, True]
            and sorted(b is None for _, b in changed) == [False, True]
        )

    charges = [AnswerCost(budget, person=("id", str(i))) for i, budget in enumerate(budgets)]
    doubled = [AnswerCost(2 * budget, person=("id", str(i))) for i, budget in enumerate(budgets)]
    assert worst(add_remove) <= math.exp(total(charges)) * (1 + 1e-12)
    assert worst(replace_one) <= math.exp(total(doubled)) * (1 + 1e-12)
    # the maximum is not half of it, either
    assert worst(add_remove) > math.exp(total(charges) / 2)


def protocol_1(scale: str, **query: Any) -> dict[str, Any]:
    return {"kind": "protocol-1", "scale": scale, "query": query}


QUERIES = [
    protocol_1("2", kind="count"),
    protocol_1("3", kind="count", where={"column": "value", "op": ">", "value": 0}),
    protocol_1("1", kind="count", where={"column": "value", "op": "<=", "value": 0}),
    protocol_1("2", kind="count", where={"column": "group", "op": "==", "value": "a"}),
    protocol_1("5", kind="count", where={"column": "group", "op": "!=", "value": "a"}),
    protocol_1("4", kind="sum", column="value"),
    protocol_1("4", kind="sum", column="value", where={"column": "group", "op": "in", "values": ["a", "c"]}),
    protocol_1(
        "0.5", kind="sum", column="value", where={"column": "value", "op": "between", "lo": -1, "hi": 1}
    ),
    protocol_1("2", kind="histogram", column="value", edges=[-2, 0, 2]),
    protocol_1("3", kind="histogram", column="group", cells=["a", "b"]),
    protocol_1(
        "1",
        kind="count",
        where={
            "or": [
                {"column": "group", "op": "==", "value": "b"},
                {
                    "and": [
                        {"column": "value", "op": ">=", "value": 1},
                        {"column": "group", "op": "==", "value": "a"},
                    ]
                },
            ]
        },
    ),
]


def exact_numbers(raw: dict[str, Any], declared: Schema, row: Any, relation: Neighbours) -> list[Fraction]:
    """What the table of this one record would be answered without noise, over the scale; None is no record at all."""
    facts = DatasetFacts(declared, relation, 1 if relation == "replace-one" else None)
    scale, inner = Fraction(raw["scale"]), raw["query"]
    rows = table((row,), declared, relation)
    where = parse_where(inner["where"], facts) if "where" in inner else None
    if inner["kind"] == "histogram":
        options = {k: [str(v) for v in vs] if isinstance(vs, list) else vs for k, vs in inner.items()}
        return [Fraction(n) / scale for n in cells_of(facts, options).counts(rows, where)]
    linear = counting(facts, where) if inner["kind"] == "count" else summing(facts, "value", where)
    return [linear.total(rows) * linear.unit / scale]


@pytest.mark.parametrize("relation", RELATIONS)
@given(chosen=st.lists(st.integers(0, len(QUERIES) - 1), min_size=1, max_size=5))
@settings(max_examples=30)
def test_joint_costs_are_those_of_the_worst_record_by_brute_force(
    relation: Neighbours, chosen: list[int]
) -> None:
    declared = schema(-2, 2)
    facts = DatasetFacts(declared, relation, 1 if relation == "replace-one" else None)
    raws = [QUERIES[i] for i in chosen]
    queries = [parse(raw, facts) for raw in raws]
    values = [*range(-2, 3), None]
    records = [*rows_of(declared), *itertools.product(values, ("c", "other"))]
    vectors = [[n for raw in raws for n in exact_numbers(raw, declared, row, relation)] for row in records]
    if relation == "add-remove":
        expected = max(sum(map(abs, vector), Fraction(0)) for vector in vectors)
    else:
        expected = max(
            sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0))
            for one, other in itertools.combinations(vectors, 2)
        )
    apart = sum((cost(query, facts) for query in queries), Fraction(0))
    assert protocol_1_total(queries, facts) == expected
    assert expected <= apart


def test_counts_of_disjoint_groups_cost_one_count_together() -> None:
    facts = DatasetFacts(schema(-2, 2), "add-remove")
    queries = [
        parse(protocol_1("2", kind="count", where={"column": "group", "op": "==", "value": g}), facts)
        for g in GROUPS
    ]
    assert protocol_1_total(queries, facts) == Fraction(1, 2)
    both = DatasetFacts(schema(-2, 2), "replace-one", 5)
    again = [parse(query.to_dict(), both) for query in queries]
    assert protocol_1_total(again, both) == 1
    assert protocol_1_total([], facts) == 0


def test_too_many_combinations_are_paid_block_by_block() -> None:
    """Conditions on ever more columns cannot all be tried: the total is never above the sum, and never jumps."""
    columns = [Attribute(f"c{i}", lo=Fraction(0), hi=Fraction(100), step=Fraction(1)) for i in range(8)]
    facts = DatasetFacts(Schema(tuple(columns)), "add-remove")
    queries = [
        parse(protocol_1("1", kind="count", where={"column": f"c{i}", "op": "<", "value": 50}), facts)
        for i in range(8)
    ]
    totals = [protocol_1_total(queries[:i], facts) for i in range(9)]
    assert totals == [Fraction(i) for i in range(9)]


def test_a_unit_with_several_rows_pays_for_each_noise_scale_and_its_own_epsilon() -> None:
    declared = Schema(
        (
            Attribute("who", "nominal", "unit", max_rows=3),
            Attribute("value", lo=Fraction(0), hi=Fraction(1), step=Fraction(1)),
        )
    )
    facts = DatasetFacts(declared, "add-remove")
    query = parse({"kind": "count", "epsilon": "0.5"}, facts)
    assert charge(query, facts) == AnswerCost(Fraction(1, 2))
    # three rows at a sixth each: the noise of a count at scale 6
    assert "scale 6" in str(query.offer.noise)
    one = parse(protocol_1("2", kind="count"), facts)
    assert protocol_1_total([one, one], facts) == 3
    with pytest.raises(OptionError, match="protocol-1"):
        protocol_1_total([query], facts)
