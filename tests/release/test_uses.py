"""Releases and the journal of use: every use of records is recorded under their name, or raises a question."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import shoal
from shoal.cli import run
from shoal.errors import InputError, JournalWarning, OptionError
from shoal.io import write
from shoal.journal import PLACE, Journal
from shoal.release.publication import Delivery, plan
from shoal.survey import survey, survey_schema

Captured = pytest.CaptureFixture[str]
SETTINGS: dict[str, Any] = {"method": "laplace", "epsilon": 1, "columns": ["age", "income"]}
TYPED = ("--schema", "survey.toml", "--columns", "age,income", "--method", "laplace", "--epsilon", "1")
NAMED = ("--dataset", "people")


@pytest.fixture(autouse=True)
def _people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(survey(300), Path("survey.csv"))
    survey_schema().save("survey.toml")


def said(captured: Captured, *arguments: str, status: int = 0) -> str:
    captured.readouterr()
    assert run(list(arguments)) == status, captured.readouterr().err
    out, err = captured.readouterr()
    return out + err


def recorded(data: Any = "survey.csv", dataset: str | None = "people", **options: Any) -> dict[str, Any]:
    """What a statement of a release would take from the journal."""
    delivery = Delivery(
        **{name: options.pop(name) for name in list(options) if name in ("ledger", "same_records")},
        dataset=dataset,
    )
    planned = plan(Path(data), delivery, schema=survey_schema(), **{**SETTINGS, **options})
    found = planned.prepared.described.provenance.recorded
    assert json.loads(json.dumps([fact.facts for fact in found])) == [fact.facts for fact in found]
    return {fact.code: fact.facts for fact in found}


def asked(data: Any = "survey.csv", dataset: str | None = "citizens") -> tuple[str, ...]:
    planned = plan(Path(data), Delivery(dataset=dataset), schema=survey_schema(), **SETTINGS)
    return tuple(map(str, planned.uses.questions(unnamed=True)))


def kinds() -> list[str]:
    return [entry.kind for entry in Journal.open().entries()]


def reversed_file(name: str = "reversed.csv") -> str:
    table = csv.read_csv("survey.csv")
    csv.write_csv(table.take(list(range(table.num_rows - 1, -1, -1))), name)
    return name


def test_a_first_release_has_nothing_recorded() -> None:
    assert recorded() == {}


def test_releases_of_the_command_line_and_the_library_are_counted_together(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
    shoal.protect("survey.csv", survey_schema(), dataset="people", **SETTINGS)
    shoal.publish("survey.csv", survey_schema(), out="two", dataset="people", **SETTINGS)
    assert recorded() == {"earlier-releases": {"count": 3, "measured": 0, "downloaded": 0}}
    assert recorded(dataset="others") == {}
    assert recorded(dataset=None) == {}


def test_what_is_recorded_stands_in_the_statement_and_limits_the_verdict(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one", "--evaluate")
    assert "Recorded" not in said(
        capsys, "protect", "survey.csv", *TYPED, *NAMED[:1], "other", "--out", "two"
    )
    text = said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "three")
    assert "Recorded: 1 earlier release under the same data set name; 1 was measured." in text
    statement = shoal.Bundle.load("three").statement
    assert [fact.code for fact in statement.recorded] == ["earlier-releases"]
    assert "earlier-releases" in [reason.code for reason in statement.verdict.reasons]
    assert statement.publishable
    assert not statement.data_dependent


def test_the_name_of_a_publication_is_a_data_set_name() -> None:
    schema = shoal.Schema.from_dict({**survey_schema().to_dict(), "publication": {"name": "people"}})
    shoal.protect("survey.csv", survey_schema(), dataset="people", **SETTINGS)
    made = shoal.protect("survey.csv", schema, **SETTINGS)
    assert [fact.code for fact in made.statement.recorded] == ["earlier-releases"]
    made = shoal.protect("survey.csv", schema, dataset="others", not_same_records="people", **SETTINGS)
    assert made.statement.recorded == ()


def test_a_release_of_a_process_that_ended_is_known() -> None:
    command = [
        sys.executable,
        "-m",
        "shoal",
        "protect",
        "survey.csv",
        *TYPED,
        *NAMED,
        "--out",
        "one",
        "--evaluate",
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert recorded() == {"earlier-releases": {"count": 1, "measured": 1, "downloaded": 0}}
    assert recorded(reversed_file())["earlier-releases"]["count"] == 1


@pytest.mark.parametrize("way", ["evaluate", "attack", "report", "shoal.evaluate", "shoal.attack", "save"])
def test_measuring_a_release_is_recorded_under_its_name(capsys: Captured, way: str) -> None:
    release = shoal.protect("survey.csv", survey_schema(), dataset="people", **SETTINGS)
    if way == "save":
        release.save("one", "internal.html", original="survey.csv")
    elif way == "shoal.evaluate":
        shoal.evaluate("survey.csv", release)
    elif way == "shoal.attack":
        shoal.attack("survey.csv", release, attempts=20, seed=1)
    else:
        said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
        look = {
            "evaluate": ("survey.csv", "one"),
            "attack": ("survey.csv", "one/data.csv", "--columns", "age,income", "--attacks", "20"),
            "report": ("one", "--original", "survey.csv", "--out", "page.html"),
        }[way]
        for _ in range(2):
            Path("page.html").unlink(missing_ok=True)
            said(capsys, way, *look, *NAMED)
    found = recorded()["earlier-releases"]
    assert (found["measured"], kinds().count("measured")) == (
        1,
        2 if way in ("evaluate", "attack", "report") else 1,
    )
    # one changed setting more is a fact with its name, not an accusation
    assert recorded(epsilon=2)["settings-changed"] == {"settings": ["epsilon"]}
    assert "settings-changed" not in recorded()


def test_a_comparison_of_settings_is_recorded(capsys: Captured) -> None:
    table = ("--schema", "survey.toml", "--columns", "age,income", "--epsilon", "1")
    said(capsys, "tune", "survey.csv", *table, "--methods", "ranking-dp", "--ks", "5,10", "--fast", *NAMED)
    assert recorded() == {"records-measured": {"count": 1}}


def test_the_method_file_of_a_measured_release_brings_what_is_recorded_along(capsys: Captured) -> None:
    """The settings of the second release were chosen after the first one was measured, wherever they come from."""
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one", "--internal", "i.html")
    better = (*TYPED[:-1], "3")
    said(capsys, "protect", "survey.csv", *better, *NAMED, "--out", "two", "--internal", "j.html")
    said(capsys, "protect", reversed_file(), "--config", "two/method.toml", *NAMED, "--out", "three")
    made = Journal.open().entries("people")[-1]
    assert made.facts["settings"]["epsilon"] == 3.0
    assert recorded(epsilon=3) == {
        "earlier-releases": {"count": 3, "measured": 2, "downloaded": 0},
        "settings-changed": {"settings": ["epsilon"]},
    }


def test_redo_is_recorded_and_takes_answers(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one", "--evaluate")
    text = said(capsys, "redo", "one", reversed_file(), "--out", "two", "--dataset", "citizens")
    assert "with the same content under data set 'people' (released once, measured once)" in text
    assert "--same-records people" in text
    answer = ("--dataset", "inhabitants", "--same-records", "people")
    text = said(capsys, "redo", "one", "reversed.csv", "--out", "three", *answer)
    # one question was answered; the other name is still open
    assert "the same content under data set 'people'" not in text
    assert "the same content under data set 'citizens'" in text
    assert recorded(dataset="inhabitants") == {
        "earlier-releases": {"count": 2, "measured": 1, "downloaded": 0},
        "same-records": {"datasets": ["people"]},
    }
    shoal.redo("one", "survey.csv", out="four", dataset="people")
    assert recorded()["earlier-releases"]["count"] == 3


def test_a_rehearsal_on_the_table_itself_is_recorded(capsys: Captured) -> None:
    said(capsys, "rehearse", *TYPED, "--on", "survey.csv", *NAMED)
    assert recorded() == {"rehearsed-on-records": {"count": 1}}
    said(capsys, "rehearse", *TYPED)
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--rehearse")
    assert recorded() == {"rehearsed-on-records": {"count": 1}}


def test_a_rehearsal_without_a_name_is_asked_about_and_claimed(capsys: Captured) -> None:
    said(capsys, "rehearse", *TYPED, "--on", "survey.csv")
    text = said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
    assert "without a data set name (rehearsed once)" in text
    (use,) = [entry.id for entry in Journal.open().entries() if entry.kind == "rehearsed"]
    assert f"--same-records {use}" in text
    assert recorded() == {"earlier-releases": {"count": 1, "measured": 0, "downloaded": 0}}
    assert recorded(same_records=(use,))["rehearsed-on-records"] == {"count": 1}
    assert "same-records" not in recorded(same_records=(use,))


@pytest.mark.parametrize("other", ["reversed", "parquet", "excel", "frame"])
def test_the_same_records_in_another_form_are_asked_about(capsys: Captured, other: str) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
    table = csv.read_csv("survey.csv")
    if other == "frame":
        with pytest.warns(JournalWarning, match="same content under data set 'people'"):
            shoal.protect(table, survey_schema(), dataset="citizens", **SETTINGS)
        return
    path = {"reversed": "reversed.csv", "parquet": "people.parquet", "excel": "people.xlsx"}[other]
    write(table.take(list(range(299, -1, -1))), Path(path))
    (question,) = asked(path)
    assert "data set 'people' (released once)" in question
    assert asked(path, "people") == ()
    # without a name nothing is published, and the custodian is told all the same
    assert "dataset=" in asked(path, None)[0]
    assert recorded(path, None) == {}


def test_another_table_is_not_asked_about(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
    write(survey(300, seed=5), Path("other.csv"))
    assert asked("other.csv") == ()


def test_what_was_measured_without_any_name_is_told_once_it_is_released(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, "--out", "one")
    assert asked(dataset=None) == ()
    text = said(capsys, "protect", "survey.csv", *TYPED, "--out", "two", "--evaluate")
    assert "journal of use" not in text
    text = said(capsys, "protect", reversed_file(), *TYPED, "--out", "three")
    assert "without a data set name (released twice, measured once)" in text
    assert "--dataset" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error", JournalWarning)
        shoal.protect("survey.csv", survey_schema(), **SETTINGS)


def test_a_first_release_of_another_method_is_not_called_a_repetition(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, "--out", "one", "--internal", "internal.html")
    text = said(
        capsys, "protect", "survey.csv", *TYPED[:4], "--method", "k-anonymity", "--k", "5", "--out", "two"
    )
    assert "repeats" not in text
    assert "Selected after looking" not in text
    assert not shoal.Bundle.load("two").statement.data_dependent


def test_columns_seen_before_their_range_was_declared_are_recorded(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--dry-run")
    assert kinds() == ["declared"]
    said(capsys, "protect", "survey.csv", *TYPED, "--out", "one")
    said(capsys, "report", "one", "--original", "survey.csv", "--out", "page.html", *NAMED)
    assert "column-viewed" not in recorded()
    narrow = recorded(domains={"age": (16, 99)})
    assert narrow["column-viewed"] == {"column": "age", "views": ["histogram"]}


@pytest.mark.parametrize("command", ["check", "risk"])
def test_other_facts_about_records_are_in_the_journal_and_in_no_statement(
    capsys: Captured, command: str
) -> None:
    keys = "--quasi" if command == "check" else "--keys"
    said(capsys, command, "survey.csv", keys, "age,region", *NAMED)
    assert kinds() == ["viewed"]
    assert recorded() == {}


@pytest.mark.parametrize("call", ["check", "risk", "attack"])
def test_what_the_library_shows_is_noted_like_what_a_command_shows(capsys: Captured, call: str) -> None:
    """One line each, with the same facts; only who showed it differs."""
    if call == "attack":
        csv.write_csv(csv.read_csv("survey.csv").select(["age", "income"]), "released.csv")
        typed = ("survey.csv", "released.csv", "--attacks", "20", "--seed", "1")
        shoal.attack("survey.csv", "released.csv", attempts=20, seed=1, dataset="people")
    else:
        typed = ("survey.csv", "--quasi" if call == "check" else "--keys", "age,region")
        getattr(shoal, call)("survey.csv", ["age", "region"], dataset="people")
    said(capsys, call, *typed, *NAMED)
    by_library, by_command = (entry.to_dict() for entry in Journal.open().entries())
    assert (by_library["by"], by_command["by"]) == (f"shoal.{call}", call)
    assert by_library["dataset"] == "people"
    differing = ("id", "at", "by")
    assert [{**entry, **dict.fromkeys(differing)} for entry in (by_library, by_command)] == [
        {**by_library, **dict.fromkeys(differing)}
    ] * 2
    first, second = Journal.open().entries()
    assert first.marks == second.marks


def test_a_check_of_files_in_parts_is_noted_and_a_refused_one_is_not() -> None:
    parquet.write_table(csv.read_csv("survey.csv"), "people.parquet", row_group_size=100)
    shoal.check("people.parquet", ["age"], engine="local", dataset="people")
    assert kinds() == ["viewed"]
    with pytest.raises(InputError):
        shoal.check("survey.csv", ["agee"], dataset="people")
    with pytest.raises(InputError):
        shoal.risk("survey.csv", ["agee"], dataset="people")
    with pytest.raises(OptionError):
        shoal.attack("survey.csv", "survey.csv", attempts=0, dataset="people")
    assert kinds() == ["viewed"]


@pytest.mark.parametrize("call", ["check", "risk", "attack"])
def test_a_measure_of_records_known_under_another_name_says_so(call: str) -> None:
    shoal.protect("survey.csv", survey_schema(), dataset="people", **SETTINGS)
    arguments: dict[str, Any] = {"quasi_identifiers": ["age"]}
    if call == "attack":
        arguments = {"released": "survey.csv", "columns": ["age", "income"], "attempts": 20, "seed": 1}
    with pytest.warns(JournalWarning, match="under data set 'people'") as found:
        getattr(shoal, call)("survey.csv", **arguments, dataset="citizens")
    assert found[0].filename == __file__


def test_what_steps_did_to_columns_is_recorded_as_a_view(capsys: Captured) -> None:
    said(capsys, "schema", "survey.csv", "--schema", "survey.toml", "--preview", *NAMED)
    assert recorded()["column-viewed"]["views"] == ["values"]


def test_tables_worked_through_in_parts_are_recognised(capsys: Captured) -> None:
    table = csv.read_csv("survey.csv")
    write(table, Path("people.csv"))
    parquet.write_table(table, "people.parquet", row_group_size=100)
    ranking = (
        "--schema",
        "survey.toml",
        "--columns",
        "age",
        "--method",
        "ranking-dp",
        "--epsilon",
        "1",
        "--k",
        "5",
    )
    said(capsys, "protect", "people.parquet", *ranking, "--engine", "local", *NAMED, "--out", "one")
    assert "data set 'people' (released once)" in asked("people.csv")[0]


def test_a_ledger_brings_a_journal_and_its_own_releases(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ("--ledger", "ledger.sqlite", *NAMED)
    said(capsys, "protect", "survey.csv", *TYPED, *kept, "--out", "one", "--evaluate")
    known = {"earlier-releases": {"count": 1, "measured": 1, "downloaded": 0}}
    assert recorded(ledger="ledger.sqlite") == known
    # somebody else, who shares the ledger
    monkeypatch.setenv(PLACE, str(Path("elsewhere.jsonl").absolute()))
    assert recorded(ledger="ledger.sqlite") == known
    assert recorded() == {}
    # a ledger from before there was a journal
    Path("ledger.sqlite.journal").unlink()
    assert recorded(ledger="ledger.sqlite") == known


def test_a_name_without_a_ledger_is_welcome_and_a_ledger_without_a_name_is_not() -> None:
    shoal.publish("survey.csv", survey_schema(), out="one", dataset="people", **SETTINGS)
    with pytest.raises(OptionError, match="needs dataset="):
        shoal.publish("survey.csv", survey_schema(), out="two", ledger="ledger.sqlite", **SETTINGS)
    with pytest.raises(OptionError, match="dataset must be"):
        shoal.protect("survey.csv", survey_schema(), dataset=" ", **SETTINGS)


def test_answers_are_checked_before_anything_is_charged(capsys: Captured) -> None:
    kept = ("--ledger", "ledger.sqlite", *NAMED)
    text = said(
        capsys,
        "protect",
        "survey.csv",
        *TYPED,
        *kept,
        "--same-records",
        "use-00000000",
        "--out",
        "a",
        status=2,
    )
    assert "no use 'use-00000000'" in text
    text = said(capsys, "protect", "survey.csv", *TYPED, "--same-records", "others", "--out", "a", status=2)
    assert "--dataset" in text
    assert not Path("ledger.sqlite").exists()
    assert not Path("a").exists()


def test_a_journal_that_cannot_be_written_costs_one_line(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").write_text("")
    monkeypatch.setenv(PLACE, str(Path("file/journal.jsonl").absolute()))
    text = said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one")
    assert text.count("not recorded in the journal") == 1
    assert Path("one/statement.json").exists()
    with pytest.warns(JournalWarning, match="cannot be") as caught:
        shoal.protect("survey.csv", survey_schema(), **SETTINGS)
    assert len(caught) == 1


def test_a_release_that_fails_is_not_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("shoal.release.publication.save_bundle", failing)
    with pytest.raises(OSError, match="no space"):
        shoal.publish("survey.csv", survey_schema(), out="one", dataset="people", **SETTINGS)
    assert kinds() == []


def test_the_journal_is_shown_and_cleared(capsys: Captured) -> None:
    assert "no entries" in said(capsys, "journal")
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one", "--evaluate")
    said(capsys, "protect", "survey.csv", *TYPED, "--dataset", "others", "--out", "two")
    text = said(capsys, "journal", "--data-set", "people")
    assert len(text.splitlines()) == 1
    assert "released; data set 'people'; by protect; with laplace; measured; columns age, income" in text
    found = json.loads(said(capsys, "journal", "--json"))
    assert [(entry["kind"], entry["dataset"]) for entry in found] == [
        ("released", "people"),
        ("released", "others"),
    ]
    assert found[0]["folder"] == str(Path("one").absolute())
    assert "1 entry cleared" in said(capsys, "journal", "clear", "--dataset", "people")
    assert recorded() == {}
    assert "cleared" in said(capsys, "journal")
    assert "not one of show, clear" in said(capsys, "journal", "forget", status=2)


def test_nothing_about_time_and_content_is_recorded_in_a_statement(capsys: Captured) -> None:
    said(capsys, "protect", "survey.csv", *TYPED, *NAMED, "--out", "one", "--evaluate")
    said(capsys, "rehearse", *TYPED, "--on", "survey.csv", *NAMED)
    text = json.dumps(recorded(epsilon=2))
    (entry, _) = Journal.open().entries()
    for private in (entry.id, entry.at[:4], *entry.marks, entry.facts["folder"]):
        assert private not in text


def test_small_tables_are_recognised_too() -> None:
    table = pa.table({"age": [31, 45]})
    given: dict[str, Any] = {"method": "laplace", "epsilon": 1, "domains": {"age": (0, 120)}}
    shoal.protect(table, dataset="people", **given)
    with pytest.warns(JournalWarning, match="'people'"):
        shoal.protect(table.take([1, 0]), dataset="citizens", **given)
