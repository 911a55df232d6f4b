"""Rehearsals: synthetic records of every kind are generated from public facts alone, and no record is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.errors import OptionError
from shoal.release.rehearsal import made_up_people

SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "who", "kind": "nominal", "role": "unit", "type": "text", "max_rows": 1},
            {"name": "age", "type": "integer", "lo": 0, "hi": 120, "source": "law"},
            {"name": "pay", "type": "decimal", "decimals": 2, "lo": 0, "hi": 9000, "source": "law"},
            {"name": "born", "kind": "date", "type": "date", "lo": "1920-01-01", "hi": "2020-12-31"},
            {"name": "level", "type": "text", "ordered": ["low", "middle", "high"]},
            {"name": "town", "type": "text", "values": ["A", "B", "C"], "missing": "category"},
            {"name": "member", "kind": "nominal", "type": "boolean", "values": ["False", "True"]},
        ]
    }
)


@pytest.mark.parametrize(
    ("method", "settings"),
    [("pairs-dp", {}), ("tree-dp", {}), ("laplace", {}), ("mdav-dp", {"k": 20}), ("k-anonymity", {"k": 5})],
)
def test_every_kind_of_column_is_rehearsed(method: str, settings: dict[str, Any]) -> None:
    budget = {} if method == "k-anonymity" else {"epsilon": "1"}
    found = shoal.rehearse(SCHEMA, method, **budget, people=300, **settings)
    assert set(found.evaluation.columns) == {"age", "pay", "born", "level", "town", "member"}
    assert found.evaluation.rows["original"] == 300
    assert found.verdict.rehearsed
    assert "no privacy budget was used" in found.sentence
    assert found.release.statement.method == method


@pytest.mark.parametrize("type", ["integer", "decimal", "text", None])
def test_units_of_every_type_are_rehearsed(type: str | None) -> None:
    unit = shoal.Attribute(
        "who", "numeric" if type in ("integer", "decimal") else "nominal", "unit", type=type, max_rows=3
    )
    schema = shoal.Schema((unit, SCHEMA["age"]))
    found = shoal.rehearse(schema, "tree-dp", 1, people=60)
    assert found.release.statement.unit == "value of 'who' (at most 3 rows)"


def test_made_up_people_keep_to_the_public_domains_and_are_the_same_each_time() -> None:
    people = made_up_people(SCHEMA, "laplace", 1, None, 500)
    assert people.equals(made_up_people(SCHEMA, "laplace", 1, None, 500))
    assert people["age"].type == pa.int64()
    ages, towns = people["age"].to_pylist(), people["town"].to_pylist()
    assert 0 <= min(ages) <= max(ages) <= 120
    # where a gap is one more value, there are some
    assert set(towns) == {"A", "B", "C", None}
    assert people["member"].type == pa.bool_()


@pytest.mark.parametrize(
    ("domain", "types", "stored"),
    [
        ((0, 100), None, pa.int64()),
        ((0.0, 100.0), None, pa.float64()),
        ((0, 100), {"age": "decimal:2"}, pa.float64()),
    ],
)
def test_made_up_people_have_the_types_that_bounds_declare(
    domain: tuple[Any, Any], types: dict[str, str] | None, stored: pa.DataType
) -> None:
    found = shoal.rehearse(method="laplace", epsilon=1, people=50, domains={"age": domain}, types=types)
    assert found.original.frame.to_native()["age"].type == stored
    assert not found.release.statement.data_dependent


def test_another_table_can_be_rehearsed_on() -> None:
    last_year = pa.table({"age": [20, 30, 40, 50] * 25})
    found = shoal.rehearse(method="laplace", epsilon=1, on=last_year, domains={"age": (0, 120)})
    assert not found.made_up
    assert found.sentence.startswith("Rehearsal on 100 records of another table")


def test_another_table_may_lack_what_is_not_released_but_not_what_a_method_needs() -> None:
    told = {"schema": SCHEMA, "method": "laplace", "epsilon": 1, "columns": ["age"]}
    ages = pa.table({"who": [f"P{n}" for n in range(100)], "age": [20, 30, 40, 50] * 25})
    recoded = SCHEMA.with_steps(shoal.Step.top("pay", 5000, source="law"))
    assert shoal.rehearse(on=ages, **{**told, "schema": recoded}).evaluation.rows["original"] == 100
    with pytest.raises(shoal.ShoalError, match="no column 'age'"):
        shoal.rehearse(on=ages.drop_columns(["age"]), **told)
    with pytest.raises(shoal.ShoalError, match="no column 'pay'"):
        shoal.rehearse(on=ages, **{**told, "schema": recoded, "columns": ["age", "pay"]})
    # without it nobody knows who has several rows
    with pytest.raises(shoal.ShoalError, match="no column 'who'"):
        shoal.rehearse(on=ages.drop_columns(["who"]), **told)


def test_what_a_release_would_refuse_is_refused() -> None:
    with pytest.raises(OptionError, match="k"):
        shoal.rehearse(SCHEMA, epsilon=1, k=5)
    with pytest.raises(OptionError, match="people must be"):
        shoal.rehearse(SCHEMA, epsilon=1, people=0)
    with pytest.raises(shoal.ShoalError, match="domain"):
        shoal.rehearse(shoal.Schema.from_dict({"attribute": [{"name": "x"}]}), "laplace", epsilon=1)
