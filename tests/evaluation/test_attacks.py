"""Attacks on a released table: they find leaks, find none where there is none, and name mistakes."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import shoal
from shoal.cli import run
from shoal.errors import InputError, OptionError
from shoal.evaluation.attacks.run import NO_CONTROL
from shoal.evaluation.attacks.singling import attack_risk, excess, sampled
from shoal.evaluation.learning import wilson
from shoal.io import write
from shoal.survey import survey, survey_schema

MIXED = ["age", "sex", "region", "income", "rent"]
NUMBERS = ["age", "income", "rent"]


@pytest.fixture(scope="module")
def halves() -> tuple[pa.Table, pa.Table]:
    people = survey(1600, seed=3)
    return people.slice(0, 800), people.slice(800)


def test_a_raw_copy_leaks_everything_and_the_control_group_shows_it(
    halves: tuple[pa.Table, pa.Table],
) -> None:
    people, control = halves
    report = shoal.attack(people, people, control, columns=MIXED, attempts=300, seed=1)
    for name in ("singling out, one column", "singling out, several columns", "inference of income"):
        assert report[name].success.value == 1.0
        assert report[name].excess_interval is not None
        assert report[name].excess_interval[0] > 0.9
    linked = report["linkability"]
    assert linked.control is not None
    assert linked.success.interval[0] > 0.3 > linked.control.interval[1]
    assert {f"inference of {name}" for name in MIXED} <= {line.attack for line in report.risks}


def test_rows_that_know_nobody_have_no_excess(halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = halves
    strangers = survey(800, seed=99)
    report = shoal.attack(people, strangers, control, columns=MIXED, attempts=400, seed=2)
    for line in report.risks:
        assert line.control is not None
        # six standard errors of a difference of two rates of 400 attempts
        assert abs(line.success.value - line.control.value) < 6 * math.sqrt(0.5 / 400), line
    # people resemble each other: success without a control group would look like a leak
    income = report["inference of income"]
    assert income.success.interval[0] > income.baseline.value


def test_the_risk_falls_with_k_and_a_release_has_record_linkage(halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = halves
    found = []
    for k in (2, 40):
        release = shoal.protect(
            people, survey_schema(), "mdav-dp", epsilon="1000000", k=k, columns=NUMBERS, seed=1
        )
        report = shoal.attack(people, release, control, attempts=400, seed=4)
        assert report.columns == tuple(NUMBERS)
        linked = report["record linkage"]
        assert linked.control is None
        assert linked.excess is None
        assert linked.baseline.value == pytest.approx(1 / 800)
        measured = shoal.evaluate(people, release).risk["record_linkage"]
        assert linked.success.value == pytest.approx(measured / 100)
        found.append(report)
    assert found[0]["record linkage"].success.interval[0] > found[1]["record linkage"].success.interval[1]
    assert found[0]["linkability"].success.value > found[1]["linkability"].success.value
    first, second = (report["singling out, several columns"].success for report in found)
    assert first.interval[0] > second.interval[1]


def test_without_a_control_group_the_excess_is_unknown(halves: tuple[pa.Table, pa.Table]) -> None:
    people, _ = halves
    report = shoal.attack(people, people, columns=NUMBERS, attempts=20, seed=1)
    assert all(line.control is None and line.excess is None for line in report.risks)
    printed = rendered(report)
    assert report.to_dict()["control"] == str(NO_CONTROL)
    assert "No control group: excess risk unknown." in printed
    assert "excess (95%)" not in printed


def rendered(report: Any) -> str:
    printed = io.StringIO()
    Console(width=80, file=printed).print(report)
    return printed.getvalue()


def test_a_seed_repeats_the_attack_and_json_holds_the_report(halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = halves
    first, again, other = (
        shoal.attack(people, control, control, columns=MIXED, attempts=50, seed=seed).to_dict()
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert json.loads(json.dumps(first)) == first
    assert {"attack", "known", "success", "baseline", "control", "excess", "excess_interval"} == set(
        first["attacks"][0]
    )


def test_every_line_of_the_table_fits_a_terminal(halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = halves
    printed = rendered(shoal.attack(people, people, control, columns=MIXED, attempts=50, seed=1))
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert "100.0" in printed
    assert "…" not in printed


def test_any_frame_library_gives_the_same_report(tmp_path: Path, halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = (half.select(MIXED) for half in halves)
    write(people, tmp_path / "people.csv")
    reports = [
        shoal.attack(original, released, control, attempts=40, seed=5).to_dict()
        for original, released in (
            (people, people),
            (people.to_pandas(), pl.from_arrow(people)),
            (tmp_path / "people.csv", people),
        )
    ]
    assert reports[0] == reports[1] == reports[2]


def test_truth_values_and_dates_are_understood_in_every_library() -> None:
    dates = np.array(["2001-01-01", "1950-06-01", "1980-03-09", "1999-12-31"], dtype="datetime64[ms]")
    columns = {
        "born": pa.array(dates),
        "owner": pa.array([True, False, True, False]),
        "pay": [1.0, 2.0, 3.0, 4.0],
    }
    table = pa.table(columns)
    report = shoal.attack(table.to_pandas(), pl.from_arrow(table), table, seed=1)
    assert report["inference of owner"].success.value == 1.0
    assert report["inference of born"].success.value == 1.0
    assert report["inference of pay"].control is not None
    assert report["inference of pay"].excess is None  # the control succeeds always: nothing is left to gain


def test_identical_released_rows_hide_each_other_in_linkability() -> None:
    rng = np.random.default_rng(3)
    values = {"a": rng.permutation(40).astype(float), "b": rng.permutation(40).astype(float)}
    original = pa.table(values)
    doubled = pa.table({name: np.repeat(column, 4) for name, column in values.items()})
    assert shoal.attack(original, original, seed=1)["linkability"].success.value == 1.0
    assert shoal.attack(original, doubled, seed=1)["linkability"].success.value == pytest.approx(0.25)


def test_a_table_of_identical_rows_is_attacked_through_its_distinct_rows() -> None:
    original = pa.table({"a": list(range(30)), "b": list(range(30))})
    doubled = pa.table({"a": sorted([*range(30)] * 2), "b": sorted([*range(30)] * 2)})
    assert shoal.attack(original, doubled, seed=1)["singling out, one column"].success.value == 1.0


def test_constant_columns_carry_no_information() -> None:
    n = 50
    rng = np.random.default_rng(1)
    table = pa.table({"same": [7] * n, "word": ["x"] * n, "pay": rng.permutation(n)})
    report = shoal.attack(table, table, attempts=n, tolerance=0.0, seed=1)
    assert report["inference of same"].success.value == 1.0
    assert report["inference of same"].baseline.value == 1.0
    assert report["inference of pay"].success.value == pytest.approx(1 / n)
    assert report["linkability"].success.value == pytest.approx(1 / n)


def test_all_columns_constant() -> None:
    table = pa.table({"a": [1, 1, 1], "b": ["x", "x", "x"]})
    report = shoal.attack(table, table, table, seed=1)
    assert report["singling out, one column"].success.value == 0.0
    assert report["linkability"].success.value == pytest.approx(1 / 3)


def test_one_column_is_attacked_as_far_as_possible() -> None:
    table = pa.table({"pay": [1, 5, 9, 9]})
    report = shoal.attack(table, table, table, seed=1)
    assert [line.attack for line in report.risks] == ["singling out, one column"]
    assert set(report.skipped) == {"linkability", "singling out, several columns", "inference"}
    assert "needs two columns" in rendered(report)
    with pytest.raises(OptionError, match="sensitive 'pay' is the only attacked column"):
        shoal.attack(table, table, sensitive="pay")


def test_a_released_column_without_rare_values_is_said_to_offer_no_predicate() -> None:
    original = pa.table({"a": ["x", "y", "x", "y"], "b": ["u", "v", "v", "u"]})
    report = shoal.attack(original, original, seed=1)
    assert report.skipped["singling out, one column"].code == "no-isolating-predicate"
    assert report.to_dict()["skipped"]["singling out, one column"].startswith("no predicate isolates")
    assert report["singling out, several columns"].success.value == 1.0


def test_one_row_each() -> None:
    table = pa.table({"a": [1.5], "b": ["x"]})
    report = shoal.attack(table, table, table, seed=1)
    assert all(math.isfinite(line.success.value) for line in report.risks)


def test_attempts_are_limited_by_the_rows_and_the_secret_by_the_option() -> None:
    table = pa.table({"a": [1, 2, 3], "b": [3, 1, 2], "c": [1, 1, 2]})
    report = shoal.attack(table, table, sensitive="b", seed=1)
    assert report["inference of b"].success.attempts == 3
    assert [line.attack for line in report.risks if "inference" in line.attack] == ["inference of b"]


def test_a_wider_tolerance_calls_more_guesses_right(halves: tuple[pa.Table, pa.Table]) -> None:
    people, control = halves
    rates = [
        shoal.attack(people, control, columns=NUMBERS, sensitive="rent", tolerance=tolerance, seed=1)[
            "inference of rent"
        ]
        for tolerance in (0.0, 0.05, 1.0)
    ]
    assert rates[0].success.value < rates[1].success.value < rates[2].success.value == 1.0
    assert rates[0].baseline.value < rates[1].baseline.value < rates[2].baseline.value <= 1.0


GOOD = {"a": [1.0, 2.0], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("original", "released", "control", "message"),
    [
        ({"a": [1.0, None], "b": ["x", "y"]}, GOOD, None, "'a' of the original table has a missing .* row 2"),
        (GOOD, {"a": [1.0, 2.0], "b": [None, "y"]}, None, "'b' of the released table has a missing .* row 1"),
        (GOOD, GOOD, {"a": [math.inf, 1.0], "b": ["x", "y"]}, "'a' of the control table has a missing"),
        (GOOD, {"c": [1]}, None, "no common column: the original has 'a', 'b', the released table 'c'"),
        (GOOD, {"a": ["u", "v"]}, None, "column 'a' holds numbers in the original but texts in the released"),
        (GOOD, GOOD, {"a": [1.0]}, "no column 'b' in the control table"),
        ({"a": pa.array([], pa.float64())}, GOOD, None, "the original table has no rows"),
        (GOOD, {"a": pa.array([], pa.float64())}, None, "the released table has no rows"),
    ],
)
def test_bad_tables_are_named(original: Any, released: Any, control: Any, message: str) -> None:
    tables = [None if columns is None else pa.table(columns) for columns in (original, released, control)]
    with pytest.raises(InputError, match=message):
        shoal.attack(*tables)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "attempts must be at least 1, got 0"),
        ({"tolerance": 1.5}, "tolerance must be from 0 to 1, got 1.5"),
        ({"seed": -1}, "seed must be a non-negative integer, got -1"),
        ({"sensitive": "bb"}, "sensitive 'bb' is not among the attacked columns. Did you mean 'b'?"),
        ({"columns": []}, "columns is empty"),
        ({"columns": ["aa"]}, "no column 'aa' in the original table. Did you mean 'a'?"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    table = pa.table(GOOD)
    with pytest.raises((InputError, OptionError)) as caught:
        shoal.attack(table, table, **options)
    assert message in str(caught.value)


def test_the_command_prints_a_table_or_json(
    tmp_path: Path, halves: tuple[pa.Table, pa.Table], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / f"{name}.csv") for name in ("people", "control")]
    for half, path in zip(halves, paths, strict=True):
        write(half.select(MIXED), Path(path))
    words = [
        "attack",
        paths[0],
        paths[0],
        "--control",
        paths[1],
        "--columns",
        "age,income",
        "--secret",
        "income",
    ]
    words += ["--attacks", "30", "--seed", "1"]
    assert run(words) == 0
    assert "excess (95%)" in capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["columns"] == ["age", "income"]
    assert report["attacks"][-1]["attack"] == "inference of income"
    assert report["attacks"][-1]["success"]["attempts"] == 30
    assert run(["attack", paths[0], str(tmp_path / "nothing.csv")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_importing_shoal_loads_no_scipy() -> None:
    code = "import sys, shoal; shoal.attack; sys.exit(any(name.startswith('scipy') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def coverage(narrowed: bool) -> float:
    """How often the interval of the excess holds the true excess, over 6000 simulated attacks."""
    rng = np.random.default_rng(12)
    inside = []
    for true_rate, true_control in ((0.5, 0.3), (0.1, 0.1), (0.9, 0.2)):
        truth = (true_rate - true_control) / (1 - true_control)
        for hits, control_hits in zip(
            rng.binomial(500, true_rate, 2000), rng.binomial(500, true_control, 2000), strict=True
        ):
            rates = [sampled(np.repeat([1.0, 0.0], [h, 500 - h])) for h in (hits, control_hits)]
            _, (low, high) = excess(*rates)
            if narrowed:
                middle = (low + high) / 2
                low, high = middle + 0.8 * (low - middle), middle + 0.8 * (high - middle)
            inside.append(low <= truth <= high)
    return float(np.mean(inside))


def test_the_interval_of_the_excess_holds_what_it_promises() -> None:
    # 95% of 6000 has a standard error of 0.28%: 93.2% is more than six of them away
    assert coverage(narrowed=False) > 0.932
    assert coverage(narrowed=True) < 0.932


def test_an_attack_that_always_succeeds_on_the_control_has_no_excess() -> None:
    always, never = sampled(np.ones(20)), sampled(np.zeros(20))
    assert attack_risk("a", "b", always, never, always).excess is None
    line = attack_risk("a", "b", never, never, never)
    assert line.excess == 0.0
    assert line.excess_interval is not None
    assert line.excess_interval[1] == pytest.approx(wilson(0.0, 20)[1])
