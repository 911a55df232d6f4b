"""Conditions as data: the same records as plain Python would choose, and nothing that could be run as code."""

from __future__ import annotations

import json
import operator
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.errors import ClaimError, InputError, OptionError
from shoal.query.facts import COMPARISONS, DatasetFacts, QueryTable, matching, parse_where, prepare
from shoal.taxonomy import Taxonomy
from tests.conftest import examples

SIZES = ("S", "M", "L")
SCHEMA = Schema(
    (
        Attribute("person", "nominal", "identifier"),
        Attribute("income", lo=Fraction(-2), hi=Fraction(5), step=Fraction(1, 2)),
        Attribute("size", "ordinal", ordered=SIZES),
        Attribute("born", "date", lo=Fraction(0), hi=Fraction(30)),
        Attribute("town", "nominal", "other", type="text"),
        Attribute("pet", "nominal", "other", values=("cat", "dog")),
    )
)
INCOMES = [-2.0, -0.5, 0.0, 0.25, 1.0, 4.5, 5.0, 9.0, None]
TOWNS = ["A", "B", "", "C", "A", None, "B", "C", "A"]
BORN = [
    "1970-01-01",
    "1970-01-15",
    None,
    "1970-01-31",
    "1970-01-02",
    "1999-01-01",
    "1970-01-20",
    "1970-01-08",
    "",
]
SIZED = ["S", "M", "L", None, "S", "M", "L", "L", "S"]
PETS = ["cat", "dog", None, "cat", "dog", "cat", "cat", "dog", "dog"]


def people() -> QueryTable:
    columns = {
        "person": [str(i) for i in range(9)],
        "income": INCOMES,
        "size": SIZED,
        "born": BORN,
        "town": TOWNS,
        "pet": PETS,
    }
    return prepare(pa.table(columns), SCHEMA)


TABLE = people()
FACTS = TABLE.facts


def rows(raw: Any) -> list[int]:
    return [i for i, chosen in enumerate(matching(parse_where(raw, FACTS), TABLE)) if chosen]


def on_lattice(value: float | None) -> Fraction | None:
    """A value as the data set has it: clipped, and the nearest half."""
    if value is None:
        return None
    clipped = min(max(value, -2.0), 5.0)
    return Fraction(round((clipped + 2) * 2), 2) - 2


OPERATORS = dict(
    zip(
        COMPARISONS,
        (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        strict=True,
    )
)


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("constant", ["-7", "-2", "-0.5", "0.3", "1", "5", "5.1"])
def test_comparisons_choose_what_python_would_choose(op: str, constant: str) -> None:
    wanted = [
        i
        for i, value in enumerate(map(on_lattice, INCOMES))
        if value is not None and OPERATORS[op](value, Fraction(constant))
    ]
    assert rows({"column": "income", "op": op, "value": constant}) == wanted


def test_every_kind_of_column_can_be_compared() -> None:
    assert rows({"column": "size", "op": ">=", "value": "M"}) == [1, 2, 5, 6, 7]
    assert rows({"column": "born", "op": "<", "value": "1970-01-09"}) == [0, 4, 7]
    # outside the domain counts as its end, 1970-01-31
    assert rows({"column": "born", "op": "==", "value": "1970-01-31"}) == [3, 5]
    assert rows({"column": "town", "op": "==", "value": "A"}) == [0, 4, 8]
    assert rows({"column": "town", "op": "!=", "value": "A"}) == [1, 3, 6, 7]
    assert rows({"column": "town", "op": "in", "values": ["B", "nowhere"]}) == [1, 6]
    assert rows({"column": "pet", "op": "==", "value": "cat"}) == [0, 3, 5, 6]
    assert rows({"column": "income", "op": "between", "lo": 0, "hi": 1}) == [2, 3, 4]
    assert rows({"column": "income", "op": "in", "values": [5, "0", "0.25"]}) == [2, 3, 6, 7]


def test_conditions_are_put_together() -> None:
    low = {"column": "income", "op": "<=", "value": 0}
    small = {"column": "size", "op": "==", "value": "S"}
    assert rows({"and": [low, small]}) == [0]
    assert rows({"or": [low, small]}) == [0, 1, 2, 3, 4, 8]
    assert rows({"and": [{"or": [low, small]}, {"column": "town", "op": "==", "value": "A"}]}) == [0, 4, 8]


@given(
    st.sampled_from([*COMPARISONS, "between", "in"]),
    st.lists(st.fractions(-4, 7, max_denominator=6), min_size=2, max_size=2),
)
@settings(max_examples=examples(100))
def test_allowed_positions_are_exactly_those_that_meet_the_condition(
    op: str, constants: list[Fraction]
) -> None:
    step = Fraction(1, 2)
    texts = [str(float(c)) for c in constants]
    exact = [Fraction(text) for text in texts]
    raw: dict[str, Any] = {"column": "income", "op": op}
    if op == "between":
        raw |= {"lo": texts[0], "hi": texts[1]}
    elif op == "in":
        raw |= {"values": texts}
    else:
        raw |= {"value": texts[0]}
    intervals = parse_where(raw, FACTS).spans  # type: ignore[arg-type, union-attr]
    found = {p for low, high in intervals for p in range(low, high + 1)}
    wanted = set()
    for position in range(15):
        value = Fraction(-2) + position * step
        if op == "between":
            meets = exact[0] <= value <= exact[1]
        elif op == "in":
            meets = value in exact
        else:
            meets = OPERATORS[op](value, exact[0])
        if meets:
            wanted.add(position)
    assert found == wanted
    assert all(low <= high for low, high in intervals)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("income > 3", "must be a condition"),
        ({"column": "incom", "op": ">", "value": 1}, "Did you mean 'income'"),
        ({"column": ["income"], "op": ">", "value": 1}, "no column"),
        ({"column": "income", "op": "=>", "value": 1}, "not one of"),
        ({"column": "income", "op": {"a": 1}, "value": 1}, "not one of"),
        ({"column": "income", "op": ">"}, "must have exactly the keys"),
        ({"column": "income", "op": ">", "value": 1, "more": 2}, "must have exactly the keys"),
        ({"column": "income", "op": ">", "value": "__import__('os')"}, "must be a number"),
        ({"column": "income", "op": ">", "value": None}, "numbers or text"),
        ({"column": "income", "op": ">", "value": "nan"}, "finite"),
        ({"column": "income", "op": "in", "values": []}, "list of 1"),
        ({"column": "income", "op": "in", "values": "abc"}, "list of 1"),
        ({"column": "town", "op": "<", "value": "A"}, "without an order"),
        ({"column": "town", "op": "==", "value": "x" * 300}, "more than 200"),
        ({"column": "size", "op": "<", "value": "XL"}, "no value 'XL'"),
        ({"column": "pet", "op": "==", "value": "dgo"}, "Did you mean 'dog'"),
        ({"column": "born", "op": "<", "value": "1970-02-31"}, "calendar"),
        ({"column": "person", "op": "==", "value": "1"}, "kind 'individual'"),
        ({"and": []}, "at least one condition"),
        ({"and": [{"column": "income", "op": ">", "value": 1}], "or": []}, "must be the only key"),
        ({"or": [{"column": "income", "op": ">", "value": 1}] * 100}, "too large"),
        (
            {"and": [{"and": [{"and": [{"and": [{"and": [{"and": [{"and": [{"and": [{}]}]}]}]}]}]}]}]},
            "too large",
        ),
    ],
)
def test_wrong_conditions_are_refused_in_one_sentence(raw: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        parse_where(raw, FACTS)
    assert str(caught.value).count("\n") == 0


def test_facts_survive_json_and_describe_only_what_is_public() -> None:
    taxonomy = Taxonomy.from_dict({"*": {"near": ["A", "B"], "far": ["C"]}})
    declared = Schema((*SCHEMA.attributes, Attribute("region", "nominal", "other", taxonomy=taxonomy)))
    facts = DatasetFacts(declared, "replace-one", 9, frozenset({"income"}))
    again = DatasetFacts.from_dict(json.loads(json.dumps(facts.to_dict())))
    assert again == facts
    described = json.loads(json.dumps(facts.describe()))
    assert described["rows"] == 9
    assert [c["name"] for c in described["columns"]] == [a.name for a in declared.attributes]
    assert described["columns"][1]["lo"] == "-2"
    assert described["columns"][2]["values"] == list(SIZES)
    assert sorted(described["columns"][6]["values"]) == ["A", "B", "C"]
    assert "values" not in described["columns"][4]
    assert DatasetFacts(declared, "add-remove").describe()["rows"] is None


def test_facts_need_the_number_of_records_where_it_is_public() -> None:
    with pytest.raises(OptionError, match="rows"):
        DatasetFacts(SCHEMA, "replace-one")
    with pytest.raises(OptionError, match="rows"):
        DatasetFacts(SCHEMA, "add-remove", 3)
    with pytest.raises(OptionError, match="not one of"):
        DatasetFacts(SCHEMA, "both", 3)  # type: ignore[arg-type]


def test_what_is_wrong_with_the_records_is_told_to_the_holder_before_any_query() -> None:
    declared = Schema((Attribute("x", lo=Fraction(0), hi=Fraction(1)),))
    with pytest.raises(InputError, match="should hold numbers"):
        prepare(pa.table({"x": ["1", "many"]}), declared)
    with pytest.raises(InputError, match="no column 'x'"):
        prepare(pa.table({"y": [1]}), declared)
    unit = Schema((Attribute("who", "nominal", "unit"), Attribute("x", lo=Fraction(0), hi=Fraction(1))))
    twice = pa.table({"who": ["a", "a"], "x": [0, 1]})
    with pytest.raises(ClaimError, match="max_rows"):
        prepare(twice, unit)
    declared = Schema((Attribute("who", "nominal", "unit", max_rows=1), *unit.attributes[1:]))
    with pytest.raises(InputError, match="a unit has more rows than the declared max_rows = 1"):
        prepare(twice, declared)
    with pytest.raises(InputError, match="missing values"):
        prepare(pa.table({"who": ["a", None], "x": [0, 1]}), declared)
    with pytest.raises(InputError, match="pet"):
        prepare(pa.table({"pet": ["cat", "horse"]}), Schema(SCHEMA.attributes[5:]))
    infinite = pa.table({"x": [float("inf"), float("-inf")]})
    with pytest.raises(InputError, match="infinite value in row 1"):
        prepare(infinite, Schema(unit.attributes[1:]))


def test_infinite_values_between_decimal_bounds_count_as_the_ends() -> None:
    bounded = Schema((Attribute("x").with_domain((0.0, 1.0)),))
    infinite = prepare(pa.table({"x": [float("inf"), float("-inf")]}), bounded)
    assert infinite.positions["x"].tolist() == [2**20, 0]


def test_dates_and_labels_are_where_they_belong() -> None:
    assert TABLE.positions["born"].tolist() == [0, 14, -1, 30, 1, 30, 19, 7, -1]
    assert TABLE.positions["size"].tolist() == [0, 1, 2, -1, 0, 1, 2, 2, 0]
    assert TABLE.only_row("person", "3") == (3, True)
    assert TABLE.only_row("person", "nobody")[1] is False
    assert TABLE.only_row("town", "A")[1] is False
    assert date(1970, 1, 31).toordinal() - date(1970, 1, 1).toordinal() == 30
