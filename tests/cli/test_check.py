"""`shoal check`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "released.csv"
    rows = "30,f,a,1\n30,f,b,2\n40,m,a,3\n40,m,a,4\n40,m,b,5\n"
    path.write_text('age,"sex, stated",ill,income\n' + rows)
    return path


def check(table: Path, *words: str) -> int:
    return run(["check", str(table), "--quasi", "age", "--quasi", "sex, stated", *words])


def test_levels_are_printed_and_without_a_request_nothing_is_missed(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(table, "--confidential", "ill,income") == 0
    printed = capsys.readouterr()
    assert "5 rows, grouped by age, sex, stated" in printed.out
    assert "distinct l" in printed.out
    assert "income" in printed.out
    assert printed.err == ""


def test_ends_with_one_when_a_level_is_not_reached(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        check(table, "--confidential", "ill", "--k", "2", "--l", "2", "--t-emd", "0.2", "--t-ratio", "2") == 0
    )
    assert check(table, "--confidential", "ill", "--k", "3", "--l", "2") == 1
    printed = capsys.readouterr()
    assert "k 3: not met, found 2" in printed.out
    assert "l 2: met, found 2" in printed.out
    assert printed.err == "shoal: a required level is not reached: k 3: not met, found 2.\n"


def test_json_holds_every_level(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(table, "--confidential", "ill,income", "--k", "3", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["k"] == 2
    assert document["met"] is False
    assert document["requirements"] == [{"name": "k", "wanted": 3, "found": 2, "met": False}]
    assert document["confidential"]["ill"]["t_ratio"] == pytest.approx(1.25)
    # a group lacks most incomes
    assert document["confidential"]["income"]["t_ratio"] is None
    assert document["reidentification"]["largest"] == 0.5


def test_roles_come_from_a_schema(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text(
        '[[attribute]]\nname = "age"\nrole = "quasi-identifier"\n\n'
        '[[attribute]]\nname = "ill"\nkind = "nominal"\nrole = "confidential"\n'
    )
    assert run(["check", str(table), "--schema", str(schema), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["quasi"] == ["age"]
    assert list(document["confidential"]) == ["ill"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--quasi", "town"], "there is no column 'town'"),
        ([], "there are no quasi-identifiers"),
        (["--quasi", "age", "--l", "2"], "l applies to a confidential column"),
        (["--quasi", "age", "--k", "-1"], "k must be at least 1"),
        (["--quasi", "age", "--k", "many"], "'--k'"),
        (["--quasi", "age", "--schema", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_bad_input_is_one_line_and_two(
    table: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(table), *words]) == 2
    printed = capsys.readouterr()
    assert complaint in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_file_that_is_not_there_ends_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "nowhere.csv", "--quasi", "a"]) == 2
    assert "there is no file 'nowhere.csv'" in capsys.readouterr().err
