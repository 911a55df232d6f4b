"""`shoal audit`: its text, its JSON, its plot, its exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shoal
import shoal.auditing
from shoal.auditing import CAVEAT, Audit
from shoal.cli import run

DOMAINS = ["--domain", "x=0:100", "--epsilon", "1", "--runs", "400", "--seed", "2", "--workers", "1"]


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed does not depend on how many neighbours were looked at; the search takes most of the time."""
    monkeypatch.setattr("shoal.auditing.auditor._FEWEST_PAIRS", 2)
    monkeypatch.setattr("shoal.auditing.auditor._FINALISTS", 1)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("small.csv").write_text("x\n" + "0\n" * 5 + "50\n" * 4 + "100\n" * 5)
    return "small.csv"


def test_not_refuted(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", table, "--method", "ranking-dp", "--k", "5", *DOMAINS]) == 0
    printed = capsys.readouterr().out
    assert "original view: not refuted with 400 runs: ε is at least 0." in printed
    assert CAVEAT in printed
    assert "verified" not in printed


def test_what_is_not_claimed_is_refuted_without_an_alarm(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", table, "--method", "mdav-dp", "--k", "5", "--json", *DOMAINS]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["refuted"]
    assert not found["claimed"]
    assert found["bound"] > 1
    assert found["attacks"][0]["hits"] > found["attacks"][0]["false_hits"]


def test_a_refuted_claim_ends_with_1(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shoal.auditing.audit

    def pretend(*arguments: object, **options: object) -> Audit:
        return replace(real(*arguments, **options), claimed=True)  # type: ignore[arg-type]

    monkeypatch.setattr(shoal.auditing, "audit", pretend)
    assert run(["audit", table, "--method", "mdav-dp", "--k", "5", *DOMAINS]) == 1
    assert "with 99% confidence, but ε = 1 is claimed" in capsys.readouterr().out


def test_the_picture(table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real, budgets, done = shoal.auditing.audit, [], []

    def once(*arguments: object, **options: Any) -> Audit:
        budgets.append(options["epsilon"])
        # one audit has all that five points need
        if not done:
            done.append(real(*arguments, **options))  # type: ignore[arg-type]
        return replace(done[0], epsilon=float(options["epsilon"]))

    monkeypatch.setattr(shoal.auditing, "audit", once)
    words = [
        "audit",
        table,
        "--method",
        "laplace",
        "--view",
        "individual",
        "--plot",
        "bounds.svg",
        *DOMAINS,
        "--runs",
        "100",
    ]
    assert run(words) == 0
    assert "ε = 4: " in capsys.readouterr().out
    assert sorted(float(budget) for budget in budgets) == [0.25, 0.5, 1, 2, 4]
    assert Path("bounds.svg").read_text("utf-8").count("<circle") == 5
    assert run(words) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "laplace", "--view", "all"], "view 'all' is not one of"),
        (["--method", "laplas"], "Did you mean 'laplace'?"),
        (["--method", "laplace", "--plot", "bounds.png"], "must end in .svg"),
        (["--method", "laplace", "--plot", "no/bounds.svg"], "no folder"),
        (["--method", "laplace", "--confidence", "2"], "confidence must be"),
        (["--method", "laplace", "--columns", "y"], "'y'"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], says: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", table, *words, *DOMAINS]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_steps_of_the_schema_come_first(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The audit is about the release after its steps: bands have no number to move, and a cut number moves less."""
    schema = '[[attribute]]\nname = "x"\ntype = "integer"\nlo = 0\nhi = 100\nsource = "law"\n[[step]]\n'
    Path("bands.toml").write_text(f'{schema}recode = "x"\nbreaks = [-1, 10, 60, 100]\nsource = "law"\n')
    Path("top.toml").write_text(f'{schema}top = "x"\nat = 60\nsource = "law"\n')
    common = ["--epsilon", "1", "--runs", "100", "--seed", "2", "--workers", "1", "--json"]
    for name in ("bands", "top"):
        assert run(["audit", table, "--schema", f"{name}.toml", "--method", "laplace", *common]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["claimed"]
        assert not found["refuted"]
        assert 0 <= found["bound"] <= 1
    # a release with the declared range instead would not be of whole bands
    made = shoal.protect(table, shoal.Schema.load("bands.toml"), "laplace", epsilon=1, seed=1)
    assert set(made.data["x"].to_pylist()) <= {"(-1,10]", "(10,60]", "(60,100]"}
