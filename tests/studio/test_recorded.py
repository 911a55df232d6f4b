"""Studio shows facts about the records on request only and records it, and statements mention uses that matter."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.cli import run as command
from shoal.io import read, write
from shoal.journal import Journal
from shoal.studio.guarantee import Recipe
from shoal.studio.session import StudioSessions

from .studio_client import Tab, finished


def recorded(tab: Tab) -> dict[str, Any]:
    """What a statement would say is recorded, by code; of columns by their names."""
    ahead = tab.session.look_ahead()
    assert ahead.statement is not None, ahead.problems
    found = ahead.statement["recorded"]
    return {one["facts"].get("column", one["code"]): one["facts"] for one in found}


def noted() -> list[tuple[str, str | None, tuple[str, ...], Any]]:
    entries = Journal.open().entries()
    return [(e.kind, e.dataset, e.columns, e.facts.get("views")) for e in entries if e.kind != "declared"]


@pytest.fixture
def other(tab: Tab, settled_recipe: Recipe) -> Iterator[Tab]:
    """Another Studio, after a restart."""
    place = tab.sessions.folder.parent / "again"
    place.mkdir()
    sessions = StudioSessions(place=place)
    yield Tab(sessions)
    sessions.close()


def test_opening_a_table_and_walking_through_all_pages_shows_and_records_nothing(settled: Tab) -> None:
    frame = read(settled.session.source.path).frame
    incomes = {str(value) for value in frame.get_column("income").to_list()}
    for step in ("data", "columns", "guarantee"):
        page = settled.post(f"step/{step}")
        assert not any(f">{value}<" in page for value in incomes)
        assert re.search(r"\d distinct", page) is None
        assert "issing values in" not in page
        assert " missing</small>" not in page
        assert "none missing" not in page
    assert noted() == []


def test_rows_are_shown_on_request_and_recorded_once(settled: Tab) -> None:
    names = settled.session.recipe.schema.names
    for _ in range(2):
        settled.post("rows")
    assert noted() == [("viewed", "people", tuple(names), ["rows"])]
    assert settled.client.get(f"/session/{settled.name}/rows").text.count("<tr>") == 40


def test_values_and_counts_of_a_column_are_shown_on_request_and_recorded(settled: Tab) -> None:
    assert "distinct" in settled.column("income", "look")
    settled.column("sex", "look")
    assert noted() == [
        ("viewed", "people", ("income",), ["histogram", "counts"]),
        ("viewed", "people", ("sex",), ["values", "counts"]),
    ]


def test_counts_of_values_outside_are_recorded_as_a_view(settled: Tab) -> None:
    settled.column("income", "range", ["0", "20000"])
    settled.post("step/guarantee")
    assert noted() == []
    settled.guarantee("look", "income")
    assert noted() == [("viewed", "people", ("income",), ["histogram", "counts"])]


def test_a_column_viewed_before_its_range_was_declared_says_so_in_the_statement(settled: Tab) -> None:
    settled.column("income", "look")
    # its range was declared before, and so were those of all others
    assert recorded(settled) == {}
    settled.column("income", "range", ["0", "350000"])
    settled.column("income", "source", "questionnaire")
    assert recorded(settled) == {"income": {"column": "income", "views": ["counts", "histogram"]}}
    assert settled.session.look_ahead().verdict.level == "amber"
    words = "of income were viewed on this machine before its range was declared."
    assert words in settled.post("step/guarantee")
    run = finished(settled.session)
    statement = json.loads((run.bundle / "statement.json").read_text("utf-8"))
    assert [one["code"] for one in statement["recorded"]] == ["column-viewed"]
    page = settled.post("step/publish")
    assert words in page
    assert "Ready to publish" in page


def test_a_list_taken_from_the_file_is_a_view_and_has_these_records_as_its_source(
    tab: Tab, table: Path
) -> None:
    tab.upload(table)
    tab.column("sex", "values")
    assert tab.session.recipe.schema["sex"].source["domain"] == "these records"
    assert ("viewed", "people", ("sex",), ["values", "counts"]) in noted()
    # somebody may vouch for it all the same: that it was viewed stays
    tab.column("age", "suggestion")
    tab.column("hours per week", "suggestion")
    tab.column("income", "range", ["0", "300000"])
    tab.vouch("questionnaire")
    assert recorded(tab) == {"sex": {"column": "sex", "views": ["counts", "values"]}}


def test_vouching_is_per_column(tab: Tab, table: Path) -> None:
    tab.upload(table)
    assert tab.client.post(f"/session/{tab.name}/vouch", json={"value": "questionnaire"}).status_code in (
        404,
        405,
    )
    page = tab.post("step/columns")
    assert 'id="vouch"' not in page
    assert page.count('data-what="source"') == 4
    tab.column("age", "source", "law")
    sources = {a.name: a.source.get("kind") for a in tab.session.recipe.schema.attributes}
    assert sources["age"] == "law"
    assert set(sources.values()) == {"law", "these records"}


def test_rows_per_person_are_never_filled_in_from_the_records(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    lines = [f"P{number // 3:04d},{20 + number % 50}" for number in range(300)]
    path.write_text("\n".join(["patient id,age", *lines]) + "\n", "utf-8")
    assert any(a.max_rows == 3 for a in shoal.Schema.draft(read(path)).attributes)
    tab.upload(path)
    patient = tab.session.recipe.schema["patient id"]
    assert (patient.role, patient.max_rows) == ("unit", None)
    assert "max_rows" not in patient.source
    assert 'id="max-rows-0" inputmode="numeric" value=""' in tab.column("patient id", "open")


def test_a_run_that_nobody_saw_is_not_recorded_and_one_that_was_judged_is(settled: Tab) -> None:
    finished(settled.session)
    assert noted() == []
    settled.post("step/judge")
    settled.post("step/judge")
    kinds = [(kind, views) for kind, _, _, views in noted()]
    assert kinds == [("released", None), ("measured", ["histogram", "rows"])]
    assert recorded(settled)["earlier-releases"] == {"count": 1, "measured": 1, "downloaded": 0}


def test_settings_changed_after_judge_are_recorded_and_can_be_taken_back(settled: Tab) -> None:
    finished(settled.session)
    settled.guarantee("typed", "25", "k")
    # nobody saw anything of it yet
    assert recorded(settled) == {}
    settled.guarantee("typed", "20", "k")
    settled.post("step/judge")
    page = settled.guarantee("typed", "25", "k")
    assert recorded(settled)["settings-changed"] == {"settings": ["k"]}
    assert "Return to the settings of run A" in page
    assert settled.session.look_ahead().verdict.level == "amber"
    settled.guarantee("first", "")
    assert settled.session.recipe.settings["k"] == "20"
    assert "settings-changed" not in recorded(settled)


def test_a_download_counts_like_a_look(settled: Tab) -> None:
    finished(settled.session)
    settled.post("step/publish")
    assert noted() == []
    settled.client.get(f"/session/{settled.name}/bundle.zip")
    assert [kind for kind, *_ in noted()] == ["released", "downloaded"]
    settled.guarantee("typed", "25", "k")
    assert recorded(settled) == {
        "earlier-releases": {"count": 1, "measured": 0, "downloaded": 1},
        "settings-changed": {"settings": ["k"]},
    }


def judged(tab: Tab) -> None:
    finished(tab.session)
    tab.post("step/judge")


def test_neither_a_second_tab_nor_a_restart_forgets(
    settled: Tab, other: Tab, table: Path, settled_recipe: Recipe
) -> None:
    judged(settled)
    settled.column("income", "look")
    second = Tab(settled.sessions)
    for tab in (second, other):
        tab.upload(table)
        tab.session.settle(settled_recipe)
        tab.guarantee("typed", "25", "k")
        assert recorded(tab) == {
            "earlier-releases": {"count": 1, "measured": 1, "downloaded": 0},
            "settings-changed": {"settings": ["k"]},
        }


def test_a_reversed_file_under_another_name_is_asked_about_and_the_answer_is_kept(
    settled: Tab, other: Tab, table: Path, tmp_path: Path, settled_recipe: Recipe
) -> None:
    judged(settled)
    turned = tmp_path / "fresh.parquet"
    write(read(table).frame.to_arrow().take(list(range(299, -1, -1))), turned)
    other.upload(turned)
    other.session.settle(settled_recipe)
    ahead = other.session.look_ahead()
    assert [problem.sentence for problem in ahead.problems] == [
        "The journal of use has a table with the same content under data set 'people' (released once, measured once). "
        "Are these the same records? Your answer is kept as your declaration."
    ]
    # no run goes past the question
    assert "Are these the same records?" in other.post("run/release")
    assert other.session.runs == []
    (yes, answer), (no, _) = ahead.problems[0].fixes
    assert (yes, no) == ("Yes, the same records", "No, different records")
    page = other.post("guarantee", **answer)
    assert "Are these the same records?" not in page
    assert recorded(other)["same-records"] == {"datasets": ["people"]}
    assert recorded(other)["earlier-releases"]["measured"] == 1


def test_another_name_for_the_table_is_asked_about_and_no_means_no(settled: Tab) -> None:
    judged(settled)
    settled.post("dataset", **{"data-set": "something else"})
    ahead = settled.session.look_ahead()
    assert [problem.code for problem in ahead.problems] == ["same-records-question"]
    settled.post("guarantee", **ahead.problems[0].fixes[1][1])
    assert recorded(settled) == {}
    answers = [e.facts for e in Journal.open().entries("something else") if e.kind == "same-records"]
    assert answers == [{"same": False, "datasets": ["people"]}]


def test_a_journal_that_cannot_be_written_is_said(settled: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_JOURNAL", "/dev/null/journal.jsonl")
    page = settled.post("rows")
    assert "This use is not recorded in the journal: '/dev/null/journal.jsonl' cannot be written" in page


def test_a_data_set_has_a_name(settled: Tab) -> None:
    assert 'id="data-set" value="people"' in settled.post("step/data")
    assert "Give the data set a name" in settled.post("dataset", **{"data-set": "  "})
    settled.post("dataset", **{"data-set": " rents  2027 "})
    assert settled.session.dataset == "rents 2027"
    assert "--dataset 'rents 2027' --out release" in settled.post("step/guarantee")


def test_the_recipe_of_a_judged_run_is_recognised_on_the_command_line(
    settled: Tab, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(settled)
    settled.guarantee("typed", "25", "k")
    monkeypatch.chdir(tmp_path)
    shutil.copy(table, "people.csv")
    Path("method.toml").write_bytes(settled.client.get(f"/session/{settled.name}/method.toml").content)
    page = settled.post("step/guarantee")
    assert "shoal protect people.csv --config method.toml --dataset people --out release" in page
    words = ["protect", "people.csv", "--config", "method.toml", "--dataset", "people", "--out", "release"]
    assert command(words) == 0
    statement = json.loads(Path("release/statement.json").read_text("utf-8"))
    found = {one["code"]: one["facts"] for one in statement["recorded"]}
    assert found["settings-changed"] == {"settings": ["k"]}
    assert found["earlier-releases"]["measured"] == 1
