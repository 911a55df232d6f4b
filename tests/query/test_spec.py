"""Queries as data: checked and priced from public facts, answered whatever the records are, private by enumeration."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.errors import InputError, OptionError
from shoal.noise import Seeded
from shoal.privacy import Accountant
from shoal.query import spec as protocols
from shoal.query.facts import DatasetFacts, Neighbours, Offer, QueryTable, prepare
from shoal.query.refinement import Refined
from shoal.query.spec import KINDS, answer, canonical, cost, delta, parse, preview
from shoal.taxonomy import Taxonomy
from tests.conftest import examples

RELATIONS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
SCHEMA = Schema(
    (
        Attribute("id", "nominal", "identifier"),
        Attribute("income", lo=Fraction(0), hi=Fraction(1000), step=Fraction(1)),
        Attribute("height", lo=Fraction("0.5"), hi=Fraction("2.5")),
        Attribute("size", "ordinal", ordered=("S", "M", "L")),
        Attribute("born", "date", lo=Fraction(0), hi=Fraction(20000)),
        Attribute("ill", "nominal", type="text"),
        Attribute(
            "town", "nominal", taxonomy=Taxonomy.from_dict({"*": {"near": ["A", "B"], "far": ["C", "D"]}})
        ),
    )
)
FACTS = {
    "replace-one": DatasetFacts(SCHEMA, "replace-one", 100),
    "add-remove": DatasetFacts(SCHEMA, "add-remove"),
}
KEY = {"column": "id", "value": "7"}
RICH = {"column": "income", "op": ">", "value": 500}
# query, and what it costs under replace-one and add-remove
VALID: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "count", "epsilon": 1}, "0", "1"),
    ({"kind": "count", "epsilon": "0.1", "where": RICH}, "0.1", "0.1"),
    ({"kind": "count", "epsilon": 0.1, "where": RICH, "noise": "staircase"}, "0.1", "0.1"),
    ({"kind": "sum", "epsilon": 1, "column": "income"}, "1", "1"),
    ({"kind": "sum", "epsilon": 1, "column": "height", "where": RICH, "noise": "staircase"}, "1", "1"),
    ({"kind": "mean", "epsilon": 1, "column": "height"}, "1", "1"),
    (
        {"kind": "mean", "epsilon": "2.5", "column": "income", "where": RICH, "noise": "staircase"},
        "2.5",
        "2.5",
    ),
    ({"kind": "histogram", "epsilon": 1, "column": "income", "edges": [0, 10, "99.5", 1000]}, "1", "1"),
    ({"kind": "histogram", "epsilon": 1, "column": "size"}, "1", "1"),
    ({"kind": "histogram", "epsilon": 1, "column": "town", "where": RICH}, "1", "1"),
    ({"kind": "histogram", "epsilon": 1, "column": "ill", "cells": ["flu", "cold"]}, "1", "1"),
    ({"kind": "histogram", "epsilon": 1, "column": "born", "edges": ["1970-01-01", "2000-01-01"]}, "1", "1"),
    ({"kind": "quantile", "epsilon": 1, "column": "income", "q": 0.5}, "1", "1"),
    ({"kind": "quantile", "epsilon": 1, "column": "born", "q": "0.25", "where": RICH}, "1", "1"),
    ({"kind": "quantile", "epsilon": 1, "column": "size", "q": 1}, "1", "1"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "income"}, "2", "1"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "town", "delta": "1e-6"}, "2", "1"),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "column": "income",
            "range": {"lo": 0, "hi": 1000, "step": 50},
            "prior": {"kind": "normal", "mean": 300, "sd": "80.5"},
        },
        "2",
        "1",
    ),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "column": "ill",
            "prior": {"kind": "categorical", "masses": {"flu": "0.01", "none": 0.99}},
            "distance": {"table": [[0, 1], [1, 0]]},
        },
        "2",
        "1",
    ),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "columns": [
                "size",
                {"column": "ill", "values": ["flu", "none"]},
                {"column": "income", "range": {"lo": 0, "hi": 1000, "step": 100}, "distance": "nominal"},
            ],
            "distance": {"combine": "max"},
        },
        "2",
        "1",
    ),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "columns": ["size", "town"],
            "prior": {"kind": "joint", "masses": [[["S", "A"], 3], [["L", "D"], "0.5"]]},
        },
        "2",
        "1",
    ),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "born"}, "2", "1"),
    (
        {
            "kind": "statistical",
            "epsilon": "0.5",
            "statistic": {"kind": "mean", "column": "income", "where": RICH},
            "prior": {"kind": "histogram", "edges": [0, 500, 1000], "weights": [3, 1]},
            "lift": "0.25",
        },
        "0.5",
        "0.5",
    ),
    (
        {
            "kind": "statistical",
            "epsilon": 1,
            "statistics": [
                {"kind": "quantile", "column": "size", "q": "0.5"},
                {"kind": "count", "range": {"lo": 0, "hi": 100, "step": 5}},
            ],
        },
        "1",
        "1",
    ),
    (
        {
            "kind": "statistical",
            "epsilon": 1,
            "statistic": {"kind": "quantile", "column": "born", "q": "0.5"},
            "prior": {"kind": "normal", "mean": "1990-01-01", "sd": 3000},
            "delta": "0.001",
        },
        "1",
        "1",
    ),
    (
        {
            "kind": "statistical",
            "epsilon": 1,
            "statistic": {"kind": "sum", "column": "income"},
            "range": {"lo": 0, "hi": 100000, "step": 1000},
        },
        "1",
        "1",
    ),
    ({"kind": "protocol-1", "scale": 10, "query": {"kind": "count", "where": RICH}}, "0.1", "0.1"),
    ({"kind": "protocol-1", "scale": 500, "query": {"kind": "sum", "column": "income"}}, "2", "2"),
    ({"kind": "protocol-1", "scale": 4, "query": {"kind": "histogram", "column": "size"}}, "0.5", "0.25"),
    (
        {"kind": "protocol-2", "epsilon": 1, "query": {"kind": "individual", "key": KEY, "column": "size"}},
        "2",
        "1",
    ),
    (
        {
            "kind": "protocol-2",
            "epsilon": 1,
            "query": {"kind": "statistical", "statistic": {"kind": "mean", "column": "income"}},
        },
        "1",
        "1",
    ),
]
ONLY_REPLACE_ONE = [
    {"kind": "ranking-means", "epsilon": 1, "column": "income", "k": 20},
    {"kind": "statistical", "epsilon": 1, "statistic": {"kind": "count"}},
    {"kind": "statistical", "epsilon": 1, "statistic": {"kind": "sum", "column": "income"}},
]


def people(relation: Neighbours, rows: int = 100) -> QueryTable:
    cycle = itertools.cycle
    columns = {
        "id": [str(i) for i in range(rows)],
        "income": [(i * 37) % 1001 for i in range(rows)],
        "height": [None if i % 9 == 0 else 1 + (i % 7) / 10 for i in range(rows)],
        "size": list(itertools.islice(cycle(["S", "M", "L", "M", None]), rows)),
        "born": ["1970-01-01" if i % 2 else "2001-05-05" for i in range(rows)],
        "ill": list(itertools.islice(cycle(["flu", "none", "none", None]), rows)),
        "town": list(itertools.islice(cycle(["A", "B", "C", None, "D"]), rows)),
    }
    types = {"income": pa.int64(), "height": pa.float64()}
    return prepare(
        pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()}),
        SCHEMA,
        relation,
    )


@pytest.mark.parametrize(("raw", "replaced", "added"), VALID)
def test_queries_are_checked_priced_and_written_back(raw: dict[str, Any], replaced: str, added: str) -> None:
    for relation, expected in zip(RELATIONS, (replaced, added), strict=True):
        facts = FACTS[relation]
        query = parse(raw, facts)
        assert cost(query, facts) == Fraction(expected)
        assert isinstance(cost(query, facts), Fraction)
        assert delta(query, facts) == Fraction(raw.get("delta", "0"))
        again = parse(json.loads(canonical(query)), facts)
        assert again == query
        assert canonical(again) == canonical(query)
        shown = json.loads(json.dumps(preview(query, facts), allow_nan=False))
        assert shown["cost"] == str(cost(query, facts))
        assert shown["statement"]["model"] == "dp"
        assert shown["statement"]["neighbours"].startswith(
            "replace-one" if relation == "replace-one" else "adjacent data sets differ by one added"
        )


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_answer_spends_exactly_what_one_row_is_charged(
    relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts: list[Accountant] = []
    honest = Offer.account

    def kept(self: Offer, facts: DatasetFacts, source: Any) -> Accountant:
        accounts.append(honest(self, facts, source))
        return accounts[-1]

    monkeypatch.setattr(Offer, "account", kept)
    table = people(relation)
    for raw in [raw for raw, _, _ in VALID] + (ONLY_REPLACE_ONE if relation == "replace-one" else []):
        query = parse(raw, table.facts)
        found = answer(query, table, Seeded(3))
        account = accounts.pop()
        assert account.spent() * table.facts.rows_per_unit == found.cost
        assert account.unspent() == {}
        assert account.uses == []
        assert account.adjacency == relation


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_query_is_answered(relation: Neighbours) -> None:
    table = people(relation)
    raws = [raw for raw, _, _ in VALID] + (ONLY_REPLACE_ONE if relation == "replace-one" else [])
    for raw in raws:
        query = parse(raw, table.facts)
        found = answer(query, table, Seeded(3))
        written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert written["cost"] == str(found.cost) == str(cost(query, table.facts))
        assert not found.statement["publishable"]
        assert written["query"] == query.to_dict()
        assert written["value"] == found.value or isinstance(found.value, tuple)
    assert answer(parse(VALID[0][0], table.facts), table).statement["publishable"]


def test_answers_have_the_form_of_their_column() -> None:
    table = people("replace-one")
    values = {}
    for raw, _, _ in VALID:
        query = parse({**raw, "epsilon": "1000000"} if "epsilon" in raw else raw, table.facts)
        values[canonical(parse(raw, table.facts))] = answer(query, table, Seeded(1)).value

    def value(raw: dict[str, Any]) -> Any:
        return values[canonical(parse(raw, table.facts))]

    assert value(VALID[0][0]) == 100
    assert value(VALID[1][0]) == sum((i * 37) % 1001 > 500 for i in range(100))
    assert value(VALID[7][0])["[0, 10)"] == sum((i * 37) % 1001 < 10 for i in range(100))
    assert list(value(VALID[7][0])) == ["[0, 10)", "[10, 99.5)", "[99.5, 1000]"]
    assert value(VALID[8][0]) == {"S": 20, "M": 40, "L": 20}
    # preorder of the taxonomy: far comes before near
    assert list(value(VALID[9][0])) == ["C", "D", "A", "B"]
    incomes = sorted((i * 37) % 1001 for i in range(100))
    assert incomes[49] <= value(VALID[12][0]) <= incomes[50]
    assert value(VALID[14][0]) == "L"
    # the refined law of a uniform prior over one part in 4096 leaves the truth most of its mass
    assert value(VALID[15][0]) == (7 * 37) % 1001
    assert value(VALID[16][0]) == "C"
    assert value(VALID[21][0]) == "1970-01-01"
    # what this person is ill with is missing, so the prior answers
    assert value(VALID[19][0])[0] in ("S", "M", "L")


@pytest.mark.parametrize("raw", ONLY_REPLACE_ONE)
def test_what_needs_a_public_number_of_records_says_so(raw: dict[str, Any]) -> None:
    parse(raw, FACTS["replace-one"])
    with pytest.raises(OptionError, match=r"public number of records|needs the range"):
        parse(raw, FACTS["add-remove"])


INVALID: list[tuple[Any, str]] = [
    ([], "must be an object"),
    ({"kind": "cuont", "epsilon": 1}, "Did you mean 'count'"),
    ({"epsilon": 1}, "kind 'None' is not one of"),
    ({"kind": ["count"]}, "is not one of"),
    ({"kind": "count"}, "needs the option 'epsilon'"),
    ({"kind": "count", "epsilon": 0}, "epsilon must be"),
    ({"kind": "count", "epsilon": "1/0"}, "epsilon must be"),
    ({"kind": "count", "epsilon": [1]}, "must be a number or text"),
    ({"kind": "count", "epsilon": None}, "numbers, text, lists"),
    ({"kind": "count", "epsilon": 1, "wehre": RICH}, "Did you mean 'where'"),
    ({"kind": "count", "epsilon": 1, "noise": "gauss"}, "not one of laplace"),
    ({"kind": "histogram", "epsilon": 1, "column": "size", "noise": "staircase"}, "no option 'noise'"),
    ({"kind": "histogram", "epsilon": 1, "column": "income"}, "needs edges or cells"),
    ({"kind": "histogram", "epsilon": 1, "column": "income", "edges": [1]}, "at least two"),
    ({"kind": "histogram", "epsilon": 1, "column": "income", "edges": [1, 2], "cells": [1]}, "either edges"),
    ({"kind": "histogram", "epsilon": 1, "column": "income", "cells": ["0.5"]}, "values of the domain"),
    ({"kind": "histogram", "epsilon": 1, "column": "income", "cells": ["1", "1.0"]}, "twice"),
    ({"kind": "histogram", "epsilon": 1, "column": "id", "cells": ["1"]}, "identifies persons"),
    ({"kind": "histogram", "epsilon": 1, "column": "town", "edges": [1, 2]}, "without an order"),
    ({"kind": "sum", "epsilon": 1, "column": "size"}, "numeric column"),
    ({"kind": "sum", "epsilon": 1, "column": "ill"}, "numeric column"),
    ({"kind": "mean", "epsilon": 1, "column": "wealth"}, "no column 'wealth'"),
    ({"kind": "quantile", "epsilon": 1, "column": "ill", "q": 0.5}, "no public domain"),
    ({"kind": "quantile", "epsilon": 1, "column": "income", "q": 2}, "between 0 and 1"),
    ({"kind": "ranking-means", "epsilon": 1, "column": "income", "k": 1000}, "k must be"),
    ({"kind": "ranking-means", "epsilon": 1, "column": "income", "k": 2.5}, "must be an integer"),
    (
        {"kind": "individual", "epsilon": 1, "key": {"column": "income", "value": 1}, "column": "ill"},
        "identify",
    ),
    (
        {"kind": "individual", "epsilon": 1, "key": {"column": "id"}, "column": "ill"},
        "needs the option 'value'",
    ),
    ({"kind": "individual", "epsilon": 1, "key": KEY}, "either 'column' or 'columns'"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "id"}, "cannot be requested"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "ill"}, "possible labels"),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "column": "town", "values": ["A", "E"]},
        "no value 'E'",
    ),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "town", "range": {}}, "no range"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "income", "values": ["1"]}, "give a range"),
    ({"kind": "individual", "epsilon": 1, "key": KEY, "column": "income", "delta": 1}, "delta must be"),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "column": "income", "prior": {"kind": "cauchy"}},
        "not one of uniform, normal",
    ),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "column": "size", "distance": "taxonomy"},
        "no taxonomy|not one of",
    ),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "column": "size", "distance": {"table": [["0"]]}},
        "3 rows",
    ),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "columns": ["income", "height"]},
        "coarser ranges",
    ),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "columns": ["size", "size"],
            "prior": {"kind": "joint", "masses": [[["S", "XL"], 1]]},
        },
        "not a possible answer",
    ),
    (
        {"kind": "individual", "epsilon": 1, "key": KEY, "columns": ["size"] * 9},
        "6 values",
    ),
    (
        {
            "kind": "individual",
            "epsilon": 1,
            "key": KEY,
            "column": "income",
            "range": {"lo": 0, "hi": 1000, "step": "0.001"},
        },
        "larger step",
    ),
    (
        {"kind": "statistical", "epsilon": 1, "statistic": {"kind": "variance"}},
        "statistic 'variance' is not one of",
    ),
    (
        {"kind": "statistical", "epsilon": 1, "statistic": "mean"},
        "must be an object|statistic .* is not one of",
    ),
    ({"kind": "statistical", "epsilon": 1, "statistic": {"kind": "count"}, "lift": 1}, "lift must be"),
    ({"kind": "protocol-1", "scale": 0, "query": {"kind": "count"}}, "scale must be"),
    ({"kind": "protocol-1", "scale": 1, "query": {"kind": "mean", "column": "income"}}, "supports queries"),
    ({"kind": "protocol-1", "scale": 1, "query": {"kind": "count", "epsilon": 1}}, "no option 'epsilon'"),
    (
        {"kind": "protocol-1", "scale": 1, "query": {"kind": "count", "noise": "staircase"}},
        "no option 'noise'",
    ),
    ({"kind": "protocol-1", "scale": 1, "epsilon": 1, "query": {"kind": "count"}}, "no option 'epsilon'"),
    ({"kind": "protocol-2", "epsilon": 1, "query": {"kind": "count"}}, "supports queries"),
    ({"kind": "count", "epsilon": 1, "where": {"a": [[]] * 60_000}}, "50,000"),
    ({"kind": "count", "epsilon": 10**300}, "200 digits"),
    ({1: 2}, "keys of a query must be text"),
]


@pytest.mark.parametrize(("raw", "message"), INVALID)
def test_wrong_queries_are_refused_in_one_sentence(raw: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        parse(raw, FACTS["replace-one"])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


words = st.one_of(
    st.sampled_from(
        [
            *KINDS,
            "income",
            "size",
            "town",
            "id",
            "epsilon",
            "where",
            "and",
            "in",
            "==",
            "uniform",
            "joint",
            "lo",
        ]
    ),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
)
keys = st.sampled_from(
    [
        *(
            "kind",
            "epsilon",
            "column",
            "columns",
            "where",
            "key",
            "prior",
            "range",
            "edges",
            "cells",
            "q",
            "k",
        ),
        *(
            "op",
            "value",
            "values",
            "lo",
            "hi",
            "step",
            "masses",
            "distance",
            "table",
            "scale",
            "query",
            "delta",
        ),
        *("statistic", "statistics", "and", "or", "mean", "sd", "weights", "lift", "noise", "combine"),
    ]
)
anything = st.recursive(
    words,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=25,
)


@given(st.sampled_from([raw for raw, _, _ in VALID]), st.dictionaries(keys, anything, max_size=4))
@settings(max_examples=examples(150))
def test_no_data_whatever_breaks_the_parser(valid: dict[str, Any], changes: dict[str, Any]) -> None:
    for facts in FACTS.values():
        try:
            query = parse({**valid, **changes}, facts)
        except OptionError:
            continue
        assert cost(query, facts) >= 0
        json.dumps(preview(query, facts), allow_nan=False)


cells = {
    "income": st.one_of(st.none(), st.integers(-(10**6), 10**6)),
    "height": st.one_of(st.none(), st.floats()),
    "size": st.sampled_from(["S", "M", "L", None]),
    "born": st.sampled_from([None, "", "1900-01-01", "1999-12-31", "9999-01-01"]),
    "ill": st.one_of(st.none(), st.text(max_size=3)),
    "town": st.sampled_from(["A", "B", "C", "D", None]),
    "id": st.sampled_from(["7", "8", "", None]),
}


@given(st.lists(st.fixed_dictionaries(cells), max_size=6), st.sampled_from(RELATIONS))
@settings(max_examples=25)
def test_no_records_whatever_make_an_answer_fail(rows: list[dict[str, Any]], relation: Neighbours) -> None:
    types = {"income": pa.int64(), "height": pa.float64()}
    columns = {
        name: pa.array([row[name] for row in rows], types.get(name, pa.string())) for name in SCHEMA.names
    }
    if not rows and relation == "replace-one":
        with pytest.raises(InputError, match="no rows"):
            prepare(pa.table(columns), SCHEMA, relation)
        return
    table = prepare(pa.table(columns), SCHEMA, relation)
    for raw, _, _ in VALID:
        json.dumps(answer(parse(raw, table.facts), table, Seeded(1)).to_dict(), allow_nan=False)


def laws_of(raw: dict[str, Any], table: QueryTable, monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The exact law from which an answer by refinement is drawn."""
    caught: list[Refined] = []

    def catch(law: Refined, source: Any, *, known: bool) -> int:
        caught.append(law if known else Refined(law.prior, law.groups * 0, (1,), 1))
        return 0

    monkeypatch.setattr(protocols, "sample", catch)
    answer(parse(raw, table.facts), table, Seeded(1))
    return caught[0].probabilities()


WORLD = Schema(
    (
        Attribute("id", "nominal", "identifier"),
        Attribute("x", lo=Fraction(0), hi=Fraction(2), step=Fraction(1)),
    )
)
RECORDS = list(itertools.product(("7", "8"), (0, 1, 2, None)))
PRIOR = {"kind": "histogram", "edges": [0, 1, 2], "weights": [1, "8.5"]}
ASKED = [
    {"kind": "individual", "epsilon": "0.8", "key": KEY, "column": "x"},
    {
        "kind": "individual",
        "epsilon": "0.8",
        "key": KEY,
        "column": "x",
        "prior": PRIOR,
        "distance": "nominal",
    },
    {"kind": "individual", "epsilon": "0.8", "key": KEY, "column": "x", "prior": PRIOR, "delta": "0.05"},
    {
        "kind": "statistical",
        "epsilon": "0.8",
        "statistic": {"kind": "mean", "column": "x", "range": {"lo": 0, "hi": 2, "step": "0.5"}},
    },
    {
        "kind": "statistical",
        "epsilon": "0.8",
        "statistic": {"kind": "quantile", "column": "x", "q": "0.5"},
        "prior": PRIOR,
        "delta": "0.05",
        "lift": "0.7",
    },
    {
        "kind": "statistical",
        "epsilon": "0.8",
        "statistics": [
            {
                "kind": "count",
                "where": {"column": "x", "op": ">", "value": 0},
                "range": {"lo": 0, "hi": 2, "step": 1},
            },
            {"kind": "sum", "column": "x", "range": {"lo": 0, "hi": 4, "step": 2}},
        ],
    },
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("raw", ASKED)
def test_refined_answers_cost_what_they_are_charged_by_enumeration(
    raw: dict[str, Any], relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tables of two records over two persons, the person asked about missing, once or twice among them."""
    sizes = [2] if relation == "replace-one" else [0, 1, 2]
    known: dict[Any, list[Fraction]] = {}
    for size in sizes:
        for rows in itertools.product(RECORDS, repeat=size):
            columns = {
                "id": pa.array([i for i, _ in rows], pa.string()),
                "x": pa.array([x for _, x in rows], pa.float64()),
            }
            table = prepare(pa.table(columns), WORLD, relation)
            known[rows] = laws_of(raw, table, monkeypatch)
    facts = table.facts
    query = parse(raw, facts)
    epsilon, slack = cost(query, facts), delta(query, facts)
    factor = math.exp(epsilon) * (1 + 1e-12)
    worst = 0.0
    for rows, law in known.items():
        for place in range(len(rows)):
            others = [rows[:place] + rows[place + 1 :]]
            if relation == "replace-one":
                others = [(*rows[:place], record, *rows[place + 1 :]) for record in RECORDS]
            for other in others:
                for one, two in ((law, known[other]), (known[other], law)):
                    gap = sum(max(float(a) - factor * float(b), 0) for a, b in zip(one, two, strict=True))
                    assert gap <= float(slack) * (1 + 1e-9) + 1e-15
                    worst = max([worst, *(float(a / b) for a, b in zip(one, two, strict=True) if b)])
    # more than half of what is charged is really used, so nobody pays for nothing
    assert worst > math.exp(epsilon / 2)


def test_a_query_knows_its_person() -> None:
    facts = FACTS["add-remove"]
    assert parse(VALID[15][0], facts).offer.person == ("id", "7")
    carried = parse(VALID[-2][0], facts)
    assert carried.offer.person == ("id", "7")
    assert parse(VALID[1][0], facts).offer.person is None


def test_an_epsilon_is_that_of_a_unit_whose_rows_share_it_and_get_no_delta() -> None:
    declared = Schema((Attribute("id", "nominal", "unit", max_rows=4), *SCHEMA.attributes[1:]))
    facts = DatasetFacts(declared, "add-remove")
    query = parse(VALID[15][0], facts)
    assert (cost(query, facts), query.offer.epsilon) == (1, Fraction(1, 4))
    assert parse({"kind": "count", "epsilon": "1/6"}, facts).offer.epsilon == Fraction(1, 24)
    assert "at most 4 rows" in preview(query, facts)["statement"]["unit"]
    with pytest.raises(OptionError, match="several rows"):
        parse(VALID[16][0], facts)


def test_a_query_of_another_data_set_is_priced_again() -> None:
    query = parse(VALID[15][0], FACTS["replace-one"])
    assert cost(query, FACTS["replace-one"]) == 2
    assert cost(query, FACTS["add-remove"]) == 1
