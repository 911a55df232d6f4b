"""`shoal risk`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import run


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text("age,sex,w,hid,ill\n30,f,10,1,a\n30,f,12,1,b\n40,m,5,2,a\n40,,4,2,\n50,m,2,3,b\n")
    return path


def test_figures_of_the_table_are_printed_and_single_records_only_written(
    survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--keys", "age,sex", "--weight", "w", "--household", "hid", "--sensitive", "ill"]
    assert run(["risk", str(survey), *words, "--internal", str(tmp_path / "records.csv")]) == 0
    printed = capsys.readouterr()
    for name in ("expected found", "household risk", "tau1", "special uniques", "l of ill", "threshold"):
        assert name in printed.out
    assert "a missing key value matches any value" in printed.out
    assert "keep them internal" in printed.out
    assert printed.err == ""
    lines = (tmp_path / "records.csv").read_text("utf-8").splitlines()
    assert len(lines) == 6
    assert all("internal" in line for line in lines)


def test_json_and_the_other_rule_for_missing_keys(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--keys", "age,sex", "--missing", "category", "--tolerated", "0.2", "--no-special", "--json"]
    assert run(["risk", str(survey), *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["rows"], document["uniques"], document["missing"]) == (5, 3, "category")
    assert document["expected"] == 4
    assert (document["suda"], document["tolerated"]) == (None, 0.2)


def test_check_shows_the_risk_too(survey: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--quasi", "age,sex", "--weight", "w", "--household", "hid"]
    assert run(["check", str(survey), *words]) == 0
    assert "Disclosure risk" in capsys.readouterr().out
    assert run(["check", str(survey), *words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["risk"]["weight"], document["risk"]["household"]) == ("w", "hid")
    assert document["risk"]["missing"] == "category"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "there are no keys: name the columns that an intruder may know (--keys)"),
        (["--keys", "agee"], "there is no column 'agee'"),
        (["--keys", "age", "--weight", "sex"], "column 'sex' should hold numbers"),
        (["--keys", "age", "--missing", "drop"], "--missing 'drop' is not one of wildcard, category"),
        (["--keys", "age", "--tolerated", "3"], "--tolerated must be greater than 0 and less than 1"),
        (["--keys", "age", "--interactions", "age,sex"], "'sex', which is not one of the keys"),
        (["--keys", "age", "--internal", "here/records.csv"], "cannot write 'here/records.csv'"),
    ],
)
def test_bad_input_is_one_line_and_two(
    survey: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["risk", str(survey), *words]) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
