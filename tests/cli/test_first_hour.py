"""A custodian's first hour: on three messy tables all commands give the same verdict."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.cli import run
from shoal.io import write
from shoal.survey import survey, survey_schema

from .messy_tables import TABLES

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def people() -> None:
    write(survey(1200), Path("survey.csv"))
    survey_schema().save("survey.toml")


def said(captured: Captured, *arguments: str, status: int = 0) -> str:
    """What a command prints, standard error included."""
    captured.readouterr()
    assert run(list(arguments)) == status, captured.readouterr().err
    out, err = captured.readouterr()
    return out + err


def public_lines(text: str) -> list[str]:
    """The public part of the verdict, as it was printed."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Verdict: "))
    end = next(number for number, line in enumerate(lines) if number > start and line.startswith("Next: "))
    return lines[start : end + 1]


def on_page(path: Path) -> tuple[str, str]:
    """Decision and next step of a report."""
    text = html.unescape(path.read_text("utf-8"))
    heading = re.search(
        r'<h2><span class="level (green|amber|red)">(?i:\1):</span> '
        r"(publish|publish with these limits|do not publish)</h2>",
        text,
    )
    step = re.search(r"<p><strong>Next:</strong> (.*?)\.</p>", text)
    assert heading is not None
    assert step is not None
    return heading[2], step[1]


@pytest.mark.parametrize("name", TABLES)
def test_all_commands_give_one_verdict(name: str, capsys: Captured) -> None:
    make, schema, more = TABLES[name]
    make(Path("people.csv"))
    Path("people.toml").write_text(schema, "utf-8")
    said(capsys, "schema", "people.csv", "--out", "draft.toml")
    settings = ("--schema", "people.toml", "--epsilon", "1", *more)
    rehearsed = said(capsys, "rehearse", *settings, "--people", "1500")
    assert "no privacy budget was used" in rehearsed
    planned = said(capsys, "protect", "people.csv", *settings, "--dry-run")
    written = said(
        capsys,
        "protect",
        "people.csv",
        *settings,
        "--out",
        "release",
        "--internal",
        "inside/i.html",
        "--evaluate",
    )
    told = public_lines(written)
    assert public_lines(rehearsed) == told
    assert f"**{told[0]}**" in planned
    assert public_lines(said(capsys, "evaluate", "people.csv", "release", *more)) == told
    assert public_lines(said(capsys, "evaluate", "people.csv", "release/data.csv", *more)) == told
    assert public_lines(said(capsys, "report", "release")) == told
    original = ("--original", "people.csv", "--out", "again.html")
    assert public_lines(said(capsys, "report", "release", *original)) == told
    decision, step = (
        told[0].removeprefix("Verdict: ").rstrip("."),
        told[-1].removeprefix("Next: ").rstrip("."),
    )
    for page in ("release/report.html", "release-report.html", "inside/i.html", "again.html"):
        assert on_page(Path(page)) == (decision, step)
    statement = json.loads(Path("release/statement.json").read_text("utf-8"))
    assert statement["verdict"]["decision"] == decision
    assert statement["publishable"] is (decision != "do not publish")
    assert shoal.verdict(shoal.Bundle.load("release")).decision == decision
    # ε is what a person of the visits is guaranteed, with three rows each
    assert decision == "publish"


def test_the_demo_may_be_published_and_is_useful(capsys: Captured) -> None:
    text = said(capsys, "demo")
    told = public_lines(text)
    assert told[0] == "Verdict: publish."
    # noise differs from run to run: good nearly always, fair at times
    assert "Utility, good" in text or "Utility, fair" in text
    assert on_page(Path("shoal-demo/release/report.html"))[0] == "publish"
    assert on_page(Path("shoal-demo/internal.html"))[0] == "publish"
    assert json.loads(Path("shoal-demo/release/statement.json").read_text("utf-8"))["model"] == "dp"
    assert public_lines(said(capsys, "evaluate", "shoal-demo/survey.csv", "shoal-demo/release")) == told


SMALL = ("--schema", "survey.toml", "--columns", "age,income")


@pytest.mark.usefixtures("people")
def test_a_budget_that_protects_nobody_is_not_to_be_published(capsys: Captured) -> None:
    huge = ("protect", "survey.csv", *SMALL, "--method", "laplace", "--epsilon", "1000")
    text = said(capsys, *huge, "--out", "one")
    assert public_lines(text)[0] == "Verdict: do not publish."
    assert "more than 99.9%" in text
    assert on_page(Path("one/report.html"))[0] == "do not publish"
    assert shoal.Bundle.load("one").statement.publishable is False
    why = "The court has ordered these figures."
    text = said(capsys, *huge, "--override", why, "--out", "two")
    assert public_lines(text)[0] == "Verdict: publish with these limits."
    bundle = shoal.Bundle.load("two")
    assert bundle.statement.publishable
    assert bundle.statement.override == why
    assert why in html.unescape(Path("two/report.html").read_text("utf-8"))
    said(capsys, *huge, "--override", "because", "--out", "three", status=2)
    said(capsys, *huge[:-1], "1", "--override", why, "--out", "three", status=2)
    text = said(capsys, *huge, "--most-epsilon", "2000", "--out", "four")
    assert public_lines(text)[0] == "Verdict: publish with these limits."
    assert json.loads(Path("four/statement.json").read_text("utf-8"))["most_epsilon"] == 2000


@pytest.mark.usefixtures("people")
def test_following_tune_is_called_what_it_is_before_and_after(capsys: Captured) -> None:
    arguments = ("tune", "survey.csv", *SMALL, "--epsilon", "1", "--methods", "laplace,ranking-dp", "--fast")
    text = said(capsys, *arguments, "--ks", "20,50", "--out", "tuning")
    assert "data-dependent" in text
    assert "shoal rehearse" in text
    assert "--private" in text
    followed = said(capsys, "protect", "survey.csv", "--config", "tuning/method.toml", "--out", "release")
    assert public_lines(text) == public_lines(followed)
    assert public_lines(text)[0] == "Verdict: do not publish."


@pytest.mark.usefixtures("people")
def test_useless_output_does_not_come_without_a_word(capsys: Captured) -> None:
    ranking = ("protect", "survey.csv", *SMALL, "--method", "ranking-dp", "--epsilon", "1", "--k", "3")
    planned = said(capsys, *ranking, "--dry-run")
    assert "noise will dominate age, income" in planned
    assert re.search(r"--k \d+ reduces it to 10%", planned)
    written = said(capsys, *ranking, "--out", "release", "--evaluate")
    assert "noise will dominate age, income" in written
    assert "Utility, poor" in written
    said(capsys, "protect", "survey.csv", *SMALL, "--epsilon", "1", "--k", "3", "--out", "other", status=2)


@pytest.mark.usefixtures("people")
def test_errors_without_and_with_a_delta_are_said_before_a_release(capsys: Captured) -> None:
    common = (*SMALL, "--epsilon", "1")
    planned = said(capsys, "protect", "survey.csv", *common, "--dry-run")
    line = next(
        line for line in planned.splitlines() if line.startswith("Standard errors of shares of rows without")
    )
    assert "without --delta: single columns" in line
    assert "with --delta 1e-06: single columns" in line
    advice = planned.splitlines()[planned.splitlines().index(line) + 1]
    assert "--delta" in advice
    # the same for the same number of rows
    rows = json.loads(said(capsys, "protect", "survey.csv", *common, "--dry-run", "--json"))
    rehearsed = said(capsys, "rehearse", *common, "--people", str(rows["rows"]))
    assert line in rehearsed
    assert advice in rehearsed
    assert set(rows["without_and_with_delta"]) == {"without", "with_delta", "advice"}
    other = said(
        capsys, "protect", "survey.csv", *SMALL, "--method", "ranking-dp", "--epsilon", "1", "--dry-run"
    )
    assert "without --delta" not in other


@pytest.mark.usefixtures("people")
def test_defaults_that_matter_are_said(capsys: Captured) -> None:
    text = said(
        capsys, "protect", "survey.csv", *SMALL, "--method", "mdav-dp", "--epsilon", "1", "--out", "a"
    )
    assert "Default settings used: k = 50, split = equal, missing = error." in text
    text = said(capsys, "protect", "survey.csv", *SMALL, "--epsilon", "1", "--out", "b")
    assert "Default settings used: delta = 0, neighbours = add-remove, missing = error." in text


@pytest.mark.usefixtures("people")
def test_k_without_a_method_names_both_ways_out(capsys: Captured) -> None:
    text = said(capsys, "protect", "survey.csv", *SMALL, "--epsilon", "1", "--k", "5", "--out", "a", status=2)
    assert "leave --k out" in text or "leave k out" in text
    assert "ranking-dp" in text


@pytest.mark.usefixtures("people")
def test_a_rehearsal_leaves_nothing_behind_and_spoils_nothing(capsys: Captured) -> None:
    before = sorted(path.name for path in Path().iterdir())
    laplace = ("--method", "laplace", "--epsilon", "1")
    for _ in range(2):
        said(capsys, "protect", "survey.csv", *SMALL, *laplace, "--rehearse", "--internal", "rehearsal.html")
        Path("rehearsal.html").unlink()
    said(capsys, "rehearse", *SMALL, *laplace, "--on", "survey.csv", "--internal", "rehearsal.html")
    assert sorted(path.name for path in Path().iterdir()) == sorted([*before, "rehearsal.html"])
    text = said(capsys, "protect", "survey.csv", *SMALL, *laplace, "--out", "release")
    assert public_lines(text)[0] == "Verdict: publish with these limits."


@pytest.mark.usefixtures("people")
def test_a_run_beside_a_report_is_judged_by_its_own_statement(capsys: Captured) -> None:
    laplace = ("protect", "survey.csv", *SMALL, "--method", "laplace", "--epsilon", "1")
    said(capsys, *laplace, "--out", "one", "--internal", "i.html")
    text = said(capsys, *laplace, "--out", "two")
    assert "the same content without a data set name (released once, measured once)" in text
    assert public_lines(text)[0] != "Verdict: do not publish."
    assert not shoal.Bundle.load("two").statement.data_dependent


@pytest.mark.usefixtures("people")
def test_a_ledger_charges_every_run_whatever_was_measured(capsys: Captured) -> None:
    kept = ("--ledger", "ledger.sqlite", "--dataset", "people", "--columns", "age")
    laplace = ("protect", "survey.csv", "--schema", "survey.toml", "--method", "laplace", "--epsilon", "1")
    for number, measured in enumerate(([], ["--evaluate"], [])):
        text = said(capsys, *laplace, *kept, "--out", f"{number}", *measured)
        assert "do not publish" not in text
    spent = json.loads(said(capsys, "ledger", "show", "ledger.sqlite", "--json"))
    assert _total(spent) == 3.0
    assert run(["ledger", "verify", "ledger.sqlite"]) == 0


def _total(found: Any) -> float:
    text = json.dumps(found)
    spent = re.search(r'"spent": (?:\{"epsilon": )?"?([0-9.]+)', text)
    assert spent is not None, text
    return float(spent[1])


@pytest.mark.usefixtures("people")
def test_a_control_group_is_held_out_by_persons(capsys: Captured) -> None:
    text = said(
        capsys, "hold-out", "survey.csv", "--rest", "rest.csv", "--control", "control.csv", "--share", "0.25"
    )
    assert "900 records to protect in rest.csv, 300 held out in control.csv" in text
    both = [
        set(shoal.io.read(Path(name)).series("person_id").to_list()) for name in ("rest.csv", "control.csv")
    ]
    assert not both[0] & both[1]
    assert len(both[0] | both[1]) == 1200
    laplace = ("--method", "laplace", "--epsilon", "1", "--out", "release")
    said(capsys, "protect", "rest.csv", *SMALL, *laplace)
    found = said(
        capsys, "attack", "rest.csv", "release/data.csv", "--control", "control.csv", "--attacks", "50"
    )
    assert "control" in found
    said(capsys, "hold-out", "survey.csv", "--rest", "rest.csv", "--control", "new.csv", status=2)
    assert not Path("new.csv").exists()


def test_evaluate_of_any_table_says_that_nothing_is_promised(capsys: Captured) -> None:
    write(survey(300), Path("a.csv"))
    write(survey(300, seed=2), Path("b.csv"))
    text = said(capsys, "evaluate", "a.csv", "b.csv")
    assert "Verdict: none." in text
    assert "log2 SSE" not in text
    assert "(all columns)" in text
    everything = said(capsys, "evaluate", "a.csv", "b.csv", "--all")
    assert "total variation" in everything


LONG = {
    "audit": (
        "audit",
        "few.csv",
        *SMALL,
        "--method",
        "laplace",
        "--epsilon",
        "1",
        "--runs",
        "100",
        "--workers",
        "1",
    ),
    "tune": ("tune", "survey.csv", *SMALL, "--epsilon", "1", "--methods", "laplace", "--seeds", "2"),
    "evaluate": ("evaluate", "survey.csv", "survey.csv"),
    "attack": ("attack", "survey.csv", "survey.csv", "--attacks", "20", "--columns", "age,income"),
    "check": ("check", "survey.csv", "--quasi", "age,sex", "--confidential", "sector"),
    "rehearse": ("rehearse", *SMALL, "--method", "laplace", "--epsilon", "1", "--people", "300"),
    "protect": ("protect", "survey.csv", *SMALL, "--method", "laplace", "--epsilon", "1", "--out", "release"),
}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("command", LONG)
def test_long_commands_say_in_a_pipe_how_far_they_are(
    command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(survey(30), Path("few.csv"))
    monkeypatch.setattr("shoal.cli.command._PATIENCE", 0.0)
    monkeypatch.setattr("shoal.cli.command._PACE", 0.0)
    # of an audit, one pair of neighbours
    monkeypatch.setattr("shoal.auditing.auditor._FEWEST_PAIRS", 1)
    monkeypatch.setattr("shoal.auditing.auditor._FINALISTS", 1)
    assert run(list(LONG[command])) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if re.search(r"(: \d+%| \.\.\.)$", line)]
    assert told
    # plain text: no bars, no colours
    assert not any("\x1b" in line or "━" in line for line in told)
