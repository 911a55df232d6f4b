"""Measured CPU seconds: the same for tables and answers made to differ, never above the estimate for a question."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.query.facts import QueryTable, prepare
from shoal.query.price import computing_cost
from shoal.query.refinement import Factors, Labels, refine, uniform
from shoal.query.spec import answer, parse
from shoal.taxonomy import Taxonomy

ROWS = 20_000
TREE = Taxonomy.from_dict({"all": {f"g{i}": [f"c{i}-{j}" for j in range(20)] for i in range(20)}})
SCHEMA = Schema(
    (
        Attribute("id", "nominal", "identifier"),
        Attribute("age", lo=Fraction(0), hi=Fraction(120), step=Fraction(1), type="integer"),
        Attribute("income", lo=Fraction(0), hi=Fraction(300_000), step=Fraction(1), type="integer"),
        Attribute("town", "nominal", "other", type="text"),
    )
)


def table(incomes: Any, ages: Any, towns: Any) -> QueryTable:
    ids = [str(i) for i in range(ROWS)]
    return prepare(pa.table({"id": ids, "age": ages, "income": incomes, "town": towns}), SCHEMA).shuffled()


def tables() -> dict[str, QueryTable]:
    """Tables that a sort, a search or a cache would tell apart."""
    pick = np.random.default_rng(3)
    incomes, ages = pick.integers(0, 300_001, ROWS), pick.integers(0, 121, ROWS)
    towns = [f"t{i}" for i in pick.integers(0, 300, ROWS)]
    return {
        "any": table(incomes, ages, towns),
        "in order": table(np.sort(incomes), np.sort(ages), sorted(towns)),
        "all the same": table(np.full(ROWS, 7), np.full(ROWS, 7), ["t7"] * ROWS),
        "missing": table(pa.nulls(ROWS, pa.int64()), pa.nulls(ROWS, pa.int64()), pa.nulls(ROWS, pa.string())),
    }


TABLES = tables()
LISTED = {"column": "income", "op": "in", "values": list(range(0, 300_000, 300))}
TOWNS = {"column": "town", "op": "in", "values": [f"t{i}" for i in range(1000)]}
GRID = [
    {"column": "age", "range": {"lo": 0, "hi": 90, "step": 1}},
    {"column": "income", "range": {"lo": 0, "hi": 300_000, "step": 500}},
]
KEY = {"column": "id", "value": "7"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "lists": {"kind": "mean", "column": "income", "where": {"or": [LISTED] * 5}},
    "labels": {"kind": "count", "where": {"or": [TOWNS] * 5}},
    "histogram": {"kind": "histogram", "column": "income", "edges": list(range(0, 300_001, 100))},
    "cells": {"kind": "histogram", "column": "town", "cells": [f"t{i}" for i in range(400)]},
    "quantile of rows": {"kind": "quantile", "column": "income", "q": "0.5"},
    "quantile of points": {"kind": "quantile", "column": "age", "q": "0.25"},
    "ranking": {"kind": "ranking-means", "column": "income", "k": 50},
    "person": {"kind": "individual", "key": KEY, "columns": GRID},
    "person with delta": {"kind": "individual", "key": KEY, "columns": GRID, "delta": "0.001"},
    "statistic": {"kind": "statistical", "statistic": {"kind": "quantile", "column": "income", "q": "0.5"}},
}


def seconds(work: Callable[[], Any]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def told_apart(one: Callable[[], Any], other: Callable[[], Any], times: int = 40) -> float:
    """How often the one takes longer than the other, over all pairs of measurements taken in turns: the AUC."""
    one(), other()
    pairs = np.array([(seconds(one), seconds(other)) for _ in range(times)])
    return float((pairs[:, :1] > pairs[:, 1]).mean())


# with 40 measurements a side and no difference, the AUC is off from one half by more than this once in 10^4
MARGIN = 0.25


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("other", ["in order", "all the same", "missing"])
def test_tables_made_to_differ_take_the_same_seconds(name: str, other: str) -> None:
    def work(found: QueryTable) -> Callable[[], Any]:
        # with the facts of its own table, as a server has it: equal ones take longer to compare than the same
        query = parse(QUESTIONS[name] | {"epsilon": "0.5"}, found.facts)
        return lambda: answer(query, found)

    works = [work(TABLES[key]) for key in ("any", other)]
    assert abs(told_apart(*works) - 0.5) < MARGIN


def test_distances_in_order_and_in_none_take_the_same_seconds() -> None:
    """A sort took twice as long over those in no order."""
    prior = uniform(Labels(tuple(map(str, range(60_000)))))
    ordered = np.arange(60_000) / 7
    mixed = np.random.default_rng(5).permutation(ordered)
    factors = Factors.individual(Fraction(1))
    assert (
        abs(told_apart(lambda: refine(prior, ordered, factors), lambda: refine(prior, mixed, factors)) - 0.5)
        < MARGIN
    )
    sorts = [lambda found=found: np.argsort(found, kind="stable") for found in (mixed, ordered)]
    assert told_apart(*sorts) > 0.9, "the instrument sees nothing"


@pytest.mark.parametrize("name", QUESTIONS)
def test_effort_bounds_the_seconds_of_reading_and_answering(name: str) -> None:
    raw = QUESTIONS[name] | {"epsilon": "0.001"}
    bound = computing_cost(parse(raw, TABLES["any"].facts), ROWS)

    def work(found: QueryTable) -> None:
        json.dumps(answer(parse(raw, found.facts), found).to_dict())

    worst = max(min(seconds(lambda: work(found)) for _ in range(3)) for found in TABLES.values())  # noqa: B023
    assert worst < bound


def test_effort_counts_taxonomies_priors_and_tables_of_distances() -> None:
    schema = Schema(
        (Attribute("id", "nominal", "identifier"), Attribute("what", "nominal", taxonomy=TREE, type="text"))
    )
    labels = [TREE.labels[code] for code in TREE.domain]
    data = pa.table({"id": ["1", "2"], "what": labels[:2]})
    found = prepare(data, schema)
    asked = {"kind": "individual", "epsilon": 1, "key": {"column": "id", "value": "1"}, "column": "what"}
    masses = {"kind": "categorical", "masses": {label: n + 1 for n, label in enumerate(labels)}}
    distances = {"table": [[abs(i - j) for j in range(150)] for i in range(150)]}
    raws = [asked, asked | {"prior": masses}, asked | {"values": labels[:150], "distance": distances}]
    bounds = []
    for raw in raws:
        bounds.append(computing_cost(parse(raw, found.facts), 2))
        assert min(seconds(lambda: answer(parse(raw, found.facts), found)) for _ in range(3)) < bounds[-1]  # noqa: B023
    assert bounds[0] < bounds[1] < bounds[2]
