"""Survey estimates equal the textbook formulas and manual calculations."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal import InputError, OptionError, Schema
from shoal.cli import run
from shoal.evaluation.survey import Design, compared, estimates, mean, quantile, share, total
from tests.conftest import data_file, offices_file

RNG = np.random.default_rng(5)


def simple(weights: Any, finite: bool = False) -> Design:
    found = np.asarray(weights, dtype=float)
    return Design(found, np.zeros(found.size, dtype=np.int64), finite)


@pytest.mark.parametrize("finite", [False, True])
def test_a_simple_random_sample_has_the_textbook_errors(finite: bool) -> None:
    """N² s²/n for a total and s²/n for a mean, times 1 - n/N where the population is finite."""
    values = RNG.normal(50, 10, 40)
    n, people = 40, 400
    design = simple(np.full(n, people / n), finite)
    factor = 1 - n / people if finite else 1
    variance = values.var(ddof=1)
    assert total(design, values).value == pytest.approx(people * values.mean())
    assert total(design, values).error == pytest.approx(math.sqrt(people**2 * variance / n * factor))
    assert mean(design, values).error == pytest.approx(math.sqrt(variance / n * factor))


@pytest.mark.parametrize("finite", [False, True])
def test_a_stratified_sample_has_the_textbook_errors(finite: bool) -> None:
    sizes, people = (5, 12, 9), (50, 600, 30)
    strata = np.repeat(np.arange(3), sizes)
    values = RNG.normal(10 * strata, 1 + strata)
    weights = np.repeat(np.array(people) / np.array(sizes), sizes)
    design = Design(weights, strata.astype(np.int64), finite)
    wanted = sum(
        big**2 * values[strata == h].var(ddof=1) / small * (1 - small / big if finite else 1)
        for h, (small, big) in enumerate(zip(sizes, people, strict=True))
    )
    found = total(design, values)
    assert found.value == pytest.approx(sum(values[strata == h].mean() * people[h] for h in range(3)))
    assert found.error == pytest.approx(math.sqrt(wanted))
    # the sizes of the strata are known, so that the mean is the total by a constant
    assert mean(design, values).error == pytest.approx(math.sqrt(wanted) / sum(people))


def test_errors_of_unequal_weights_are_right_on_average() -> None:
    """All samples of two draws with replacement: the variance estimate is unbiased, by enumeration."""
    values, chances = np.array([3.0, 8.0, 1.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    samples = list(itertools.product(range(4), repeat=2))
    chance = np.array([chances[a] * chances[b] for a, b in samples])
    totals, variances = [], []
    for drawn in samples:
        rows = list(drawn)
        found = total(simple(1 / (2 * chances[rows])), values[rows])
        totals.append(found.value)
        variances.append(found.error**2)
    average = float(chance @ np.array(totals))
    assert average == pytest.approx(values.sum())
    assert float(chance @ np.array(variances)) == pytest.approx(
        float(chance @ (np.array(totals) - average) ** 2)
    )


def test_a_ratio_is_linearised_by_hand() -> None:
    weights, values = np.array([1.0, 2, 3]), np.array([2.0, 4, 9])
    middle = (2 + 8 + 27) / 6
    scores = weights * (values - middle) / 6
    wanted = math.sqrt(3 / 2 * ((scores - scores.mean()) ** 2).sum())
    found = mean(simple(weights), values)
    assert (found.value, found.error) == (pytest.approx(middle), pytest.approx(wanted))


def test_missing_values_take_no_part() -> None:
    weights, values = np.array([1.0, 2, 3, 4]), np.array([2.0, np.nan, 4, 6])
    assert total(simple(weights), values).value == 38
    assert mean(simple(weights), values).value == pytest.approx(38 / 8)
    assert total(simple(weights), values).records == 3
    # a domain: those outside count 0 in the total, and their number varies from sample to sample
    assert total(simple(weights), values).error == total(simple(weights), np.nan_to_num(values)).error
    assert math.isnan(mean(simple(weights), np.full(4, np.nan)).value)


def test_a_weight_of_two_is_a_record_twice() -> None:
    values = RNG.integers(0, 30, 50).astype(float)
    weights = RNG.integers(1, 5, 50)
    copies = np.repeat(values, weights)
    for p in (0.1, 0.25, 0.5, 0.9):
        wanted = np.sort(copies)[math.ceil(p * copies.size - 1e-9) - 1]
        assert quantile(simple(weights), values, p).value == wanted
    assert mean(simple(weights), values).value == pytest.approx(copies.mean())


def test_the_error_of_a_quantile_is_woodruffs() -> None:
    values = np.sort(RNG.normal(0, 1, 2000))
    design = simple(np.ones(2000))
    found = quantile(design, values, 0.5)
    spread = 1.959963984540054 * share(design, values <= found.value, np.ones(2000, dtype=bool)).error
    low, high = (values[math.ceil((0.5 + sign * spread) * 2000) - 1] for sign in (-1, 1))
    assert found.error == pytest.approx((high - low) / (2 * 1.959963984540054))
    # sqrt(pi / 2) / sqrt(n), the error of the median of a normal sample, within a half
    assert 0.5 < found.error / (math.sqrt(math.pi / 2) / math.sqrt(2000)) < 1.5


def test_a_stratum_of_one_record_tells_no_error() -> None:
    design = Design(np.ones(3), np.array([0, 0, 1]))
    found = total(design, np.array([1.0, 2, 3]))
    assert found.value == 6
    assert math.isnan(found.error)
    assert math.isnan(quantile(design, np.array([1.0, 2, 3]), 0.5).error)


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_tables_and_crossed_tables(library: Any) -> None:
    survey = library(
        {
            "w": [10.0, 20.0, 30.0, 40.0],
            "sex": ["f", "m", "f", None],
            "own": ["yes", "yes", "no", "no"],
            "rent": [5, 6, 7, 8],
        }
    )
    found = estimates(survey, "w", by="own")
    assert {label: line["total"].value for label, line in found.tables["sex"].items()} == {"f": 40, "m": 20}
    assert found.tables["sex"]["f"]["share"].value == pytest.approx(40 / 60)
    assert found.tables["own × sex"]["no × f"]["total"].value == 30
    assert found.numbers["rent | yes"]["mean"].value == pytest.approx((50 + 120) / 30)
    assert set(found.numbers["rent"]) == {"total", "mean", "quantile 0.25", "quantile 0.5", "quantile 0.75"}
    assert json.dumps(found.to_dict())
    assert "40" not in repr(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"weight": "v"}, "no column 'v'"),
        ({"weight": "bad"}, "the weight in row 2 is missing or negative"),
        ({"weight": "w", "strata": "gap"}, "row 1 has no stratum"),
        ({"weight": [1.0]}, "weight has 1 values, but the table has 2 rows"),
        ({"weight": "zero"}, "all weights are 0"),
        ({"weight": "w", "quantiles": [0.5, 2]}, "between 0 and 1"),
        ({"weight": "w", "columns": ["y"]}, "no column 'y'"),
    ],
)
def test_what_cannot_be_estimated_gets_one_line(arguments: dict[str, Any], words: str) -> None:
    table = pa.table({"w": [1, 2], "bad": [1, -1], "gap": [None, "a"], "zero": [0, 0], "x": [1, 2]})
    with pytest.raises((InputError, OptionError), match=words):
        estimates(table, **arguments)


@pytest.fixture(scope="module")
def adult() -> pd.DataFrame:
    frame = pd.read_csv(data_file("adult.csv"), dtype=str, keep_default_na=False)
    frame = frame[(frame != "").all(axis=1)].head(5000).reset_index(drop=True)
    return frame.assign(w=frame.fnlwgt.astype(int) / 1000, age_band=(frame.age.astype(int) // 10).astype(str))


def test_weighted_totals_are_those_of_the_reference(adult: pd.DataFrame) -> None:
    wanted = json.loads(offices_file("results_extra.json").read_text())["weighted_totals_after_ls"]
    keys = ["age_band", "sex", "race", "marital_status"]
    found = estimates(adult[[*keys, "w"]], "w")
    for key in keys:
        totals = [line["total"].value for line in found.tables[key].values()]
        assert totals == pytest.approx(wanted[key]["before"], rel=1e-12)


def test_weighted_means_are_those_of_the_reference(adult: pd.DataFrame) -> None:
    wanted = json.loads(offices_file("results_numeric.json").read_text())["topbot"]
    hours = adult.hours_per_week.astype(int)
    for put, name in ((hours, "before"), (hours.where(hours <= 60, 62), "after_top")):
        found = estimates(pd.DataFrame({"hours": put, "w": adult.w}), "w")
        assert found.numbers["hours"]["mean"].value == pytest.approx(wanted[f"wmean_{name}"], rel=1e-12)


def survey(n: int = 200) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south"], n, p=[0.8, 0.2]),
            "w": rng.integers(1, 9, n).astype(float),
        }
    )


def declared(release: str | None, **more: Any) -> Schema:
    weight = {"name": "w", "role": "weight", "lo": 0, "hi": 10, "type": "decimal", "source": "law"}
    return Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "type": "integer", "lo": 0, "hi": 120, "source": "law"},
                {"name": "sex", "type": "text", "values": ["f", "m"], "source": "law"},
                {"name": "region", "type": "text", "values": ["north", "south"], "source": "law"},
                weight if release is None else {**weight, "release": release},
            ],
            **more,
        }
    )


MARGINS = {
    "margin": [
        {"column": "sex", "totals": {"f": 600, "m": 400}, "source": "an earlier release"},
        {"column": "region", "totals": {"north": 300, "south": 700}, "source": "law"},
    ]
}


def test_the_weight_is_dropped_unless_something_else_is_declared() -> None:
    for release in (None, "dropped"):
        found = shoal.protect(survey(), declared(release), "laplace", epsilon=1)
        assert "w" not in found.data.column_names
        assert found.statement.steps == ("The survey weight w was not released.",)
        assert found.statement.publishable


def test_a_masked_weight_is_one_more_column_under_the_claim() -> None:
    found = shoal.protect(survey(), declared("masked"), "laplace", epsilon=1)
    assert "w" in found.data.column_names
    assert found.data["w"].to_pylist() != survey()["w"].to_pylist()
    assert found.statement.attributes["w"]["hi"] == "10"
    assert float(sum(found.statement.epsilon_per_attribute.values())) == pytest.approx(1)
    assert "protected, and covered by the statement, like the others" in found.statement.steps[0]
    assert not any("weights" in line for line in found.statement.conditions)


def test_a_raked_weight_reaches_the_public_margins_and_follows_from_the_released_rows() -> None:
    found = shoal.protect(survey(), declared("raked", **MARGINS), "laplace", epsilon=10)
    frame = found.data.to_pandas()
    assert frame.groupby("sex").w.sum().to_dict() == pytest.approx({"f": 600, "m": 400})
    assert frame.groupby("region").w.sum().to_dict() == pytest.approx({"north": 300, "south": 700})
    # alike in the columns of the margins, alike in the weight
    assert frame.groupby(["sex", "region"]).w.nunique().max() == 1
    assert "raking to the margins of sex (an earlier release); region (law)" in found.statement.steps[0]
    assert found.statement.publishable
    # the original weights had no part in it: without them, the same release can be made
    assert (
        "w"
        in shoal.protect(
            survey().drop_columns(["w"]), declared("raked", **MARGINS), "laplace", epsilon=10
        ).data.column_names
    )


def test_a_raked_weight_leaves_the_k_of_a_release_alone(tmp_path: Any) -> None:
    entries = declared("raked", **MARGINS).to_dict()
    for entry in entries["attribute"][:3]:
        entry["role"] = "quasi-identifier"
    found = shoal.protect(survey(), Schema.from_dict(entries), "k-anonymity", k=3)
    folder = found.save(tmp_path / "out")
    assert shoal.Bundle.load(folder).data.column_names == ["age", "sex", "region", "w"]
    assert found.data.to_pandas().groupby(["age", "sex", "region", "w"]).size().min() >= 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "needs public margins"),
        ({"margin": [{"column": "sex", "totals": {"f": 1, "x": 1}, "source": "law"}]}, "no value 'x'"),
        ({"margin": [{"column": "age", "totals": {"1": 1}, "source": "law"}]}, "a margin needs named values"),
        ({"margin": [{"column": "six", "totals": {"f": 1}, "source": "law"}]}, "Did you mean 'sex'"),
        ({"margin": [{"column": "sex", "totals": {"f": 1}}]}, "needs a source"),
        ({"margin": [{"column": "sex", "totals": {"f": 1}, "source": "these records"}]}, "are not public"),
        ({"margin": [{"column": "sex", "totals": {"f": 0}, "source": "law"}]}, "greater than 0"),
        (
            {"margin": [MARGINS["margin"][0], {**MARGINS["margin"][1], "totals": {"north": 5}}]},
            "populations of different size",
        ),
    ],
)
def test_bad_margins_get_one_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        declared("raked", **change)


def test_a_margin_of_a_column_that_is_not_released_is_refused_before_anything_is_spent() -> None:
    with pytest.raises(OptionError, match="margin of 'region', which is not released"):
        shoal.protect(survey(), declared("raked", **MARGINS), "laplace", epsilon=1, columns=["age", "sex"])


def test_totals_that_nobody_can_reach_are_noted() -> None:
    margin = [{"column": "region", "totals": {"north": 300, "south": 700}, "source": "law"}]
    north = survey().filter(pa.compute.equal(survey()["region"], "north"))
    found = shoal.protect(north, declared("raked", margin=margin), "k-anonymity", k=2)
    assert "no released row has region = south, so its total is not reached." in found.notes
    assert sum(found.data["w"].to_pylist()) == pytest.approx(300)


def test_estimates_before_and_after_stand_in_the_evaluation() -> None:
    table = survey()
    release = shoal.protect(table, declared("dropped"), "k-anonymity", k=1)
    found = shoal.evaluate(table, release).estimates
    assert found is not None
    lines = {(line["column"], line["what"]): line for line in found["rows"]}
    weights, ages = (np.array(table[name].to_pylist(), dtype=float) for name in ("w", "age"))
    assert lines["age", "mean"]["before"] == pytest.approx(np.average(ages, weights=weights))
    # nothing but the weights is lost, and they count
    assert lines["age", "mean"]["after"] == pytest.approx(ages.mean())
    assert lines["sex", "total of f"]["after"] != pytest.approx(lines["sex", "total of f"]["before"])
    assert "have equal weight" in found["about"]
    assert (
        shoal.evaluate(table, release, columns=["age"]).to_dict()["estimates"]["rows"][0]["column"] == "age"
    )
    assert shoal.evaluate(table.drop_columns(["w"]), table.drop_columns(["w"])).estimates is None


def test_the_strata_of_a_method_are_those_of_the_design() -> None:
    """Several columns together are one stratum each combination."""

    class Stratified:
        data = survey()
        aligned, kept, schema, domains = None, None, declared("dropped"), {}
        columns = ("age", "sex", "region")

        class method:  # noqa: N801
            strata = ("sex", "region")
            moments = False

    found = shoal.evaluate(survey(), Stratified(), columns=["age"]).estimates
    frame = survey().to_pandas()
    wanted = estimates(frame, "w", strata=(frame.sex + frame.region).tolist(), columns=["age"])
    assert found is not None
    assert found["strata"] == ["sex", "region"]
    assert found["rows"][0]["error_before"] == pytest.approx(wanted.numbers["age"]["total"].error)


def test_a_weight_that_cannot_be_used_does_not_stop_a_release() -> None:
    table = survey()
    spoiled = table.set_column(3, "w", pa.array([None, *table["w"].to_pylist()[1:]]))
    # a method that leaves the weights alone; those that group by them refuse it, see kanonymity/test_strata.py
    found = shoal.evaluate(spoiled, shoal.protect(spoiled, declared("dropped"), "laplace", epsilon=1))
    assert found.estimates is not None
    assert "the weight in row 1 is missing or negative" in found.estimates["about"]
    with pytest.raises(InputError, match="the weight in row 1 is missing or negative"):
        shoal.evaluate(spoiled, spoiled, weight="w")


def test_the_command_line_compares_estimates(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pd_table = survey().to_pandas()
    pd_table.to_csv(tmp_path / "a.csv", index=False)
    command = [
        "evaluate",
        str(tmp_path / "a.csv"),
        str(tmp_path / "a.csv"),
        "--weight",
        "w",
        "--strata",
        "region",
    ]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert "Survey estimates" in shown
    assert "strata region" in shown
    assert run([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["estimates"]["rows"]
    assert all(line["before"] == line["after"] for line in rows)


def test_the_internal_report_shows_estimates_and_counts_and_the_public_one_neither(tmp_path: Any) -> None:
    schema = declared("dropped", step=[{"top": "age", "at": 80}])
    shoal.publish(
        survey(),
        schema,
        "k-anonymity",
        k=2,
        out=tmp_path / "out",
        internal=tmp_path / "in.html",
        evaluate=True,
    )
    inside, outside = ((tmp_path / name).read_text() for name in ("in.html", "out/report.html"))
    changed = sum(age > 80 for age in survey()["age"].to_pylist())
    assert changed
    assert f"values of column age above 80 become 80: {changed} cells" in inside
    assert "Survey estimates" in inside
    assert "Survey estimates" not in outside
    assert "cells" not in outside


def test_what_is_compared_knows_how_far_it_moved() -> None:
    before, after = (
        estimates(pa.table({"x": values, "w": [1, 1, 1]}), "w") for values in ([1, 2, 3], [2, 3, 4])
    )
    line = next(line for line in compared(before, after) if line.what == "mean")
    assert line.moved == pytest.approx(1 / before.numbers["x"]["mean"].error)
