"""Disclosure risk: kernels against slow references, missing values, households, bad input, and what is shown of it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet
from scipy.integrate import quad

import shoal
from shoal import InputError, OptionError, OutputError, Schema
from shoal.evaluation._kernels import minimal_uniques
from shoal.evaluation.disclosure.record_risk import (
    diversity,
    household_risks,
    main_effects,
    only_person,
    risk_threshold,
    with_margins,
)
from shoal.partition.groups import MISSING, approximate, as_wildcard, exact, patterns
from tests.support.frequencies_oracle import frequencies_one_by_one
from tests.support.suda_oracle import minimal_uniques_one_by_one


@st.composite
def keys(draw: st.DrawFn) -> list[np.ndarray[Any, Any]]:
    """One to five keys of a few rows, with gaps; two of them may be equal, or all but."""
    n, m = draw(st.integers(1, 14)), draw(st.integers(1, 5))
    values = st.lists(st.integers(MISSING, draw(st.integers(0, 3))), min_size=n, max_size=n)
    found = [np.array(draw(values)) for _ in range(m)]
    if m > 1 and draw(st.booleans()):
        found[1] = found[0].copy()
    return found


@settings(max_examples=60)
@given(keys(), st.sampled_from([0.0, 0.3, 1.0]), st.randoms(use_true_random=False))
def test_wildcards_are_counted_as_one_by_one(
    columns: list[np.ndarray[Any, Any]], alpha: float, rng: Any
) -> None:
    weights = np.array([1 + rng.random() * 9 for _ in range(columns[0].size)])
    found = patterns(columns, weights)
    for mine, slow in zip(as_wildcard(found, alpha), frequencies_one_by_one(found, alpha), strict=True):
        assert mine == pytest.approx(slow)


@settings(max_examples=60)
@given(keys())
def test_minimal_uniques_are_those_of_all_sets_of_keys(columns: list[np.ndarray[Any, Any]]) -> None:
    found = patterns(columns)
    levels = np.array([max(int(column.max()) + 1, 0) for column in columns])
    quick = minimal_uniques(found.codes, levels, only_person(found))
    slow = minimal_uniques_one_by_one(found)
    assert sorted(zip(*(part.tolist() for part in quick), strict=True)) == sorted(
        zip(*(part.tolist() for part in slow), strict=True)
    )


def test_many_minimal_uniques_fit() -> None:
    """More than the room that the kernel begins with."""
    found = patterns(list(np.random.default_rng(0).integers(0, 3, (10, 200))))
    owner, sets = minimal_uniques(found.codes, np.full(10, 3), only_person(found))
    assert owner.size > 2048
    assert len(set(zip(owner.tolist(), sets.tolist(), strict=True))) == owner.size


@pytest.mark.parametrize("fk", [1.0, 1.5, 2.0, 3.0, 19.0, 20.0, 300.0])
@pytest.mark.parametrize("p", [1e-4, 0.05, 0.7, 1.0])
def test_exact_form_is_the_mean_of_one_over_F(fk: float, p: float) -> None:  # noqa: N802
    # 1/F = ∫ z^(F-1) dz, and the mean of z^F is that of a negative binomial
    mean = p * quad(lambda t: (1 - t) ** (fk - 1) / (1 - (1 - p) * t), 0, 1, limit=400, epsabs=0)[0]
    found = exact(np.array([fk]), np.array([fk / p]))[0]
    assert found == pytest.approx(mean, rel=1e-8)
    assert approximate(np.array([fk]), np.array([fk / p]))[0] == pytest.approx(mean, rel=0.35)


def test_closed_forms_keep_their_digits_where_nearly_everybody_is_in_the_sample() -> None:
    near = np.array([1.0 + 1e-9, 2.0 + 1e-9])
    assert approximate(np.array([1.0, 2.0]), near) == pytest.approx([1.0, 0.5], rel=1e-8)
    # weights below 1 say that there are fewer people than records: then everybody is in the table
    assert approximate(np.array([1.0, 4.0]), np.array([0.5, 2.0])).tolist() == [1.0, 0.25]


def test_households_of_any_type_in_any_order() -> None:
    risks = np.array([0.5, 0.2, 0.5, 1.0, 0.1])
    table = pa.table(
        {"k": [1, 2, 3, 4, 4], "h": ["b", "a", "b", None, None], "w": 1 / np.array([0.9, 0.5, 0.3, 0.2, 0.1])}
    )
    found = shoal.risk(table, ["k"], weight="w", household="h")
    assert found.household is not None
    r = found.individual
    expected = [1 - (1 - r[0]) * (1 - r[2]), r[1], 1 - (1 - r[0]) * (1 - r[2]), r[3], r[4]]
    assert found.household == pytest.approx(expected)
    assert found.household_expected == pytest.approx(sum(expected))
    assert household_risks(risks, np.array([0, 0, 1, 1, 2])).tolist() == pytest.approx([0.6, 0.6, 1, 1, 0.1])


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=20), st.floats(0.01, 0.9))
def test_lowering_all_risks_to_the_threshold_is_enough_and_the_next_higher_one_is_not(
    values: list[float], tolerated: float
) -> None:
    risks = np.array(values)
    threshold = risk_threshold(risks, tolerated)
    if threshold is None:
        assert risks.sum() < tolerated * risks.size
        return
    limit = tolerated * risks.size
    if threshold:
        assert np.minimum(risks, threshold).sum() < limit * (1 + 1e-12)
    higher = risks[risks > threshold]
    if higher.size:
        assert np.minimum(risks, higher.min()).sum() >= limit * (1 - 1e-12)


def test_missing_is_a_wildcard_or_a_value_of_its_own_and_the_result_says_which() -> None:
    table = pa.table({"a": [1, 1, 1, None], "b": ["x", "x", None, "y"]})
    wild, own = shoal.risk(table, ["a", "b"]), shoal.risk(table, ["a", "b"], missing="category")
    assert wild.fk.tolist() == [3, 3, 4, 2]
    assert own.fk.tolist() == [2, 2, 1, 1]
    assert "matches any value" in wild.figures.conditions
    assert "separate value" in own.figures.conditions
    assert wild.to_dict()["missing"] == "wildcard"
    # in special uniques a gap is no value either way
    assert wild.suda is not None
    assert own.suda is not None
    assert wild.suda.tolist() == own.suda.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_every_library_and_type(make: Any) -> None:
    table = make({"a": [0.5, 0.5, math.nan], "b": ["x", "x", None], "c": [True, True, False]})
    found = shoal.risk(table, ["a", "b", "c"], missing="category")
    assert found.fk.tolist() == [2, 2, 1]
    assert found.levels[0].levels == (0.5,)


def test_columns_by_their_role_in_the_schema() -> None:
    table = pa.table({"age": [30, 30, 40], "w": [10.0, 20.0, 5.0], "home": [1, 2, 2], "pay": [1, 2, 3]})
    roles = {"age": "quasi-identifier", "w": "weight", "home": "unit", "pay": "confidential"}
    schema = Schema.from_dict({"attribute": [{"name": name, "role": role} for name, role in roles.items()]})
    found = shoal.risk(table, schema=schema)
    assert (found.quasi_identifiers, found.weight, found.unit) == (("age",), "w", "home")
    assert (found.fk.tolist(), found.Fk.tolist()) == ([2, 2, 1], [15, 15, 5])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"quasi_identifiers": []}, "no keys"),
        ({"quasi_identifiers": ["ag"]}, "no column 'ag'.*Did you mean 'age'"),
        ({"weight": "zero"}, "row 2 is 0, but a weight must be a number greater than 0"),
        ({"weight": "gap"}, "row 1 is missing"),
        ({"weight": "word"}, "'word' should hold numbers"),
        ({"missing": "drop"}, "missing 'drop' is not one of wildcard, category"),
        ({"form": "rough"}, "form 'rough' is not one of approximate, exact"),
        ({"points": "none"}, "points 'none'"),
        ({"alpha": 2}, "alpha must be from 0 to 1"),
        ({"tolerated": 0}, "tolerated must be greater than 0"),
        ({"fraction": 1}, "fraction must be greater than 0 and less than 1"),
        ({"c": 0}, "c must be greater than 0"),
        ({"interactions": [["zero"]]}, "'zero', which is not one of the keys"),
    ],
)
def test_bad_input_is_said_in_one_line(options: dict[str, Any], complaint: str) -> None:
    table = pa.table({"age": [1, 2], "zero": [1, 0], "gap": [None, 1.0], "word": ["a", "b"]})
    with pytest.raises((InputError, OptionError), match=complaint) as told:
        shoal.risk(table, **{"quasi_identifiers": ["age"], **options})
    assert "\n" not in str(told.value)


def test_too_many_keys_for_special_uniques_is_said_and_by_default_they_are_left_out() -> None:
    table = pa.table({f"k{place}": [1, 2] for place in range(31)})
    left_out = shoal.risk(table, table.column_names)
    assert left_out.suda is None
    assert "not searched" in left_out.figures.conditions
    twelve = table.column_names[:12]
    assert shoal.risk(table, twelve).suda is not None
    many = pa.table(dict.fromkeys(twelve[:9], range(40_000)))
    assert shoal.risk(many, twelve[:9]).suda is None
    assert shoal.risk(many, twelve[:8]).suda is not None
    with pytest.raises(OptionError, match="at most 30 keys, got 31"):
        shoal.risk(table, table.column_names, special=True)
    with pytest.raises(InputError, match="no rows"):
        shoal.risk(pa.table({"a": pa.array([], pa.int64())}), ["a"])


def test_diversity_is_the_least_over_all_values_that_missing_ones_could_have() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        n = int(rng.integers(1, 6))
        values = rng.integers(-1, 3, n)
        labels = np.zeros(n, dtype=np.int64)
        gaps = np.flatnonzero(values < 0)
        found = diversity(labels, values)
        completed = []
        for filled in itertools.product(range(3), repeat=gaps.size):
            whole = values.copy()
            whole[gaps] = filled
            completed.append(diversity(labels, whole))
        for name in ("distinct", "entropy", "recursive"):
            least = min(getattr(one, name)[0] for one in completed)
            assert getattr(found, name)[0] == pytest.approx(least), (values, name)


def test_log_linear_models_agree_and_interactions_keep_their_tables() -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(-1, 3, 200), rng.integers(0, 2, 200), rng.integers(0, 4, 200)]
    columns[1] = (columns[0] > 0).astype(np.int64) ^ (rng.random(200) < 0.1)
    found = patterns(columns)
    levels = [3, 2, 4]
    assert with_margins(found, levels, [[0], [1]]) == pytest.approx(main_effects(found))
    joint = with_margins(found, levels, [[0, 1]])
    pair = np.bincount((found.codes[0] + 1) * 2 + found.codes[1], found.counts)
    third = np.bincount(found.codes[2], found.counts)
    by_hand = pair[(found.codes[0] + 1) * 2 + found.codes[1]] * third[found.codes[2]] / 200
    assert joint == pytest.approx(by_hand, rel=1e-6)
    table = pa.table({"a": range(5000), "b": range(5000)})
    with pytest.raises(OptionError, match="25,000,000 cells"):
        shoal.risk(table, ["a", "b"], interactions=[["a", "b"]])


def test_without_weights_every_sample_unique_is_one_of_the_population() -> None:
    found = shoal.risk(pa.table({"a": [1, 1, 2, 3]}), ["a"])
    assert (found.population.sample_uniques, found.population.tau1, found.population.tau2) == (2, 2.0, 2.0)
    assert found.expected == 3
    assert "the whole population" in found.figures.conditions


def test_rows_in_another_order_give_the_same_risks_in_that_order() -> None:
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 4, 60) for name in "abc"} | {"w": rng.integers(1, 9, 60)}
    order = rng.permutation(60)
    straight = shoal.risk(pa.table(columns), list("abc"), weight="w", sensitive=["w"])
    moved = shoal.risk(
        pa.table({name: values[order] for name, values in columns.items()}),
        list("abc"),
        weight="w",
        sensitive=["w"],
    )
    for name in ("fk", "Fk", "individual", "suda", "dis", "contributions"):
        assert getattr(moved, name) == pytest.approx(getattr(straight, name)[order])
    assert moved.diversity["w"].entropy == pytest.approx(straight.diversity["w"].entropy[order])


def test_records_go_to_a_marked_file_and_nowhere_else(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 1, 2], "h": [1, 2, 2], "s": ["x", "y", "y"]})
    found = shoal.risk(table, ["a"], household="h", sensitive=["s"])
    found.save(tmp_path / "records.csv")
    written = csv.read_csv(tmp_path / "records.csv")
    assert set(written["internal"].to_pylist()) == {"internal, not for publication"}
    assert written["fk"].to_pylist() == [2, 2, 1]
    assert {"individual", "household", "suda", "dis", "contribution a", "distinct s"} < set(
        written.column_names
    )
    found.save(tmp_path / "records.parquet")
    assert parquet.read_table(tmp_path / "records.parquet").num_rows == 3
    with pytest.raises(OutputError, match="exists already"):
        found.save(tmp_path / "records.csv")
    release = tmp_path / "release"
    release.mkdir()
    (release / "statement.json").write_text("{}")
    with pytest.raises(OutputError, match="folder of a release"):
        found.save(release / "records.csv")
    with pytest.raises(OutputError, match="cannot write"):
        found.save(tmp_path / "nowhere" / "records.csv")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        *("records.csv", "records.parquet", "release", "statement.json"),
    ]
    # neither the figures nor what is shown have a line per record
    assert all(not isinstance(value, list) or len(value) < 3 for value in found.to_dict().values())
    assert repr(found).startswith("<Risk: internal")


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_an_empty_cell_of_a_text_file_is_missing_as_a_null_is(missing: str, tmp_path: Path) -> None:
    towns = ["north", "south", None] * 4
    ages = [20, 20, 30, 40] * 3
    path = tmp_path / "people.csv"
    path.write_text(
        "age,town\n" + "".join(f"{age},{town or ''}\n" for age, town in zip(ages, towns, strict=True))
    )
    frame = pa.table({"age": ages, "town": towns})
    coded_frame = frame.set_column(1, "town", frame["town"].dictionary_encode())
    keys = ["age", "town"]
    of_file = shoal.risk(path, quasi_identifiers=keys, missing=missing).to_dict()
    for table in (frame, coded_frame):
        found = shoal.risk(table, quasi_identifiers=keys, missing=missing).to_dict()
        assert of_file["global_risk"] == found["global_risk"]
