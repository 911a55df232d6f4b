"""`shoal intervals`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shoal
from shoal.cli import run
from tests.inference.test_measured import people, schema


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = shoal.protect(people(1500), schema(), epsilon="4", seed=1)
    return made.save(tmp_path_factory.mktemp("intervals") / "out", format="csv")


def test_it_prints_one_line_for_each_number(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--mean",
        "age by sex",
        "--share",
        "age > 64",
        "--quantile",
        "0.5,0.9:age",
        "--corr",
        "age,hours",
    ]
    assert run(["intervals", str(bundle), *words, "owner ~ age", "--table", "sex,owner"]) == 0
    printed = capsys.readouterr().out
    for name in (
        "mean(age | sex = f)",
        "share(age > 64)",
        "median(age)",
        "quantile(age, 0.9)",
        "corr(age, hours)",
    ):
        assert name in printed
    assert "owner ~ age: age" in printed
    assert "95 of 100 such intervals contain the value of the population." in printed


def test_json_holds_what_the_library_finds(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["intervals", str(bundle), "mean(age)", "--level", "90", "--about", "records", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    mine = shoal.intervals(bundle, "mean(age)", level=0.9, about="records")
    assert found["intervals"][0]["low"] == pytest.approx(mine.low)
    assert found["level"] == 0.9
    assert "original records" in found["intervals"][0]["sentence"]


def test_replicate_weights_are_written(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--replicates", "10", "--columns", "age,sex", "--out", str(tmp_path / "weights.csv")]
    assert run(["intervals", str(bundle), *words]) == 0
    assert (tmp_path / "weights.csv").read_text("utf-8").startswith(('"age","sex","w","w1"', "age,sex,w,w1"))
    assert run(["intervals", str(bundle), *words]) == 2
    assert "weights.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--quantile", "0.5"],
        ["--replicates", "10"],
        ["--mean", "ages"],
        ["--level", "195", "--mean", "age"],
        ["--about", "all", "--mean", "age"],
    ],
    ids=str,
)
def test_bad_input_ends_with_two_and_one_line(
    words: list[str], bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["intervals", str(bundle), *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_estimates_of_synthetic_rows_are_refused(bundle: Path) -> None:
    with pytest.raises(shoal.OptionError, match="synthetic"):
        shoal.estimates(bundle / "data.csv")
