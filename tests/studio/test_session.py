"""The state of a session: the file, the choices, the views, and their removal at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError
from shoal.io import Conventions, write
from shoal.release.publication import Planned
from shoal.studio.guarantee import Recipe
from shoal.studio.runs import buy, release
from shoal.studio.session import StudioSessions, sweep
from shoal.survey import survey

from .studio_client import Tab, finished, job_of


def test_a_file_is_read_and_no_range_is_taken_from_it(tab: Tab, table: Path) -> None:
    page = tab.upload(table)
    assert "300 rows, 4 columns" in page
    # what the values are is only on request
    assert "No value is missing" not in page
    assert 'id="show-rows"' in page
    assert 'id="grid"' not in page
    assert all(a.lo is None and not a.values for a in tab.session.recipe.schema.attributes)
    columns = tab.post("step/columns")
    assert "needs a range" in columns
    assert "List its values" in columns
    assert "missing</small>" not in columns
    assert "0 to 120, common knowledge" in columns
    assert "4 to complete" in columns


def test_a_file_that_cannot_be_read_says_why_and_the_drop_zone_stays(tab: Tab, tmp_path: Path) -> None:
    bad = tmp_path / "people.csv"
    bad.write_text("a,b\n1,2\n3\n", "utf-8")
    page = tab.upload(bad)
    assert "Drop a table here" in page
    assert "'people.csv'" in page
    assert "row" in page
    assert str(tab.session.folder) not in page
    assert not list(tab.session.folder.glob("table*"))


def test_too_large_a_file_is_refused_before_and_while_it_is_sent(tab: Tab, tmp_path: Path) -> None:
    words = "start with 'shoal studio FILE' to read the file in place."
    page = tab.post("announce", name="large.csv", size=10**9)
    assert f"'large.csv' has 1 GB, and Studio copies at most 0.2 MB: {words}" in page
    large = tmp_path / "large.csv"
    large.write_text("a,b\n" + "1,2\n" * 60_000, "utf-8")
    assert words in tab.upload(large)
    assert tab.session.table is None
    assert list(tab.session.folder.iterdir()) == []


def test_an_unknown_ending_is_refused_before_it_is_sent(tab: Tab) -> None:
    assert "has an unknown file extension" in tab.post("announce", name="people.docx", size=10)


def test_how_the_file_is_written_has_its_effect_at_once(tab: Tab, tmp_path: Path) -> None:
    odd = tmp_path / "odd.csv"
    odd.write_text("a;b\n1,5;x\n?;y\n", "utf-8")
    tab.upload(odd)
    tab.post("rows")
    page = tab.post("written", separator=";", decimal=",", na="?")
    assert "Missing values in a" in page
    assert tab.session.recipe.schema.file == Conventions(separator=";", decimal=",", na=("?",))
    assert tab.session.recipe.schema["a"].kind == "numeric"


def test_any_window_of_the_table_is_one_request(tab: Tab, table: Path) -> None:
    tab.upload(table)
    assert "only on request" in tab.client.get(f"/session/{tab.name}/rows?start=290&count=50").text
    assert "No value is missing" in tab.post("rows")
    rows = tab.client.get(f"/session/{tab.name}/rows?start=290&count=50").text
    assert rows.count("<tr>") == 10
    assert ">300<" in rows


def test_low_above_high_stands_in_the_cell_and_is_not_used(tab: Tab, table: Path) -> None:
    tab.upload(table)
    tab.column("age", "range", ["0", "120"])
    page = tab.column("age", "range", ["120", "0"])
    assert "low above high" in page
    assert "Column 'age': a domain needs lo < hi, got 120:0." in page
    assert tab.session.recipe.schema["age"].lo is None
    assert 'value="120"' in tab.post("step/columns")


def test_a_range_changed_after_its_column_was_shown_needs_a_source_again(settled: Tab) -> None:
    assert "ready" in settled.column("income", "range", ["0", "400000"])
    settled.column("income", "look")
    page = settled.column("income", "range", ["0", "350000"])
    assert "needs a source" in page
    assert "domain" not in settled.session.recipe.schema["income"].source
    assert "ready" in settled.column("income", "source", "law")


def test_values_outside_are_counted_only_for_who_asked_to_see_them(settled: Tab) -> None:
    assert "outside" not in settled.column("income", "range", ["0", "20000"])
    page = settled.column("income", "look")
    assert "values outside" in page


def test_taxonomies_show_what_they_lack_with_a_suggestion(settled: Tab) -> None:
    settled.column("sex", "look")
    page = settled.post("column/1", what="taxonomy", value="femal, person\nmale, person")
    assert "Did you mean femal?" in page
    page = settled.column("sex", "rename", ["femal", "female"])
    assert "Did you mean" not in page
    assert settled.session.recipe.schema["sex"].tree.values == ("female", "male")


def test_an_order_can_be_changed(settled: Tab) -> None:
    settled.column("sex", "kind", "ordinal")
    settled.column("sex", "ordered")
    assert settled.session.recipe.schema["sex"].ordered == ("female", "male")
    settled.column("sex", "ordered", ["male", "female"])
    assert settled.session.recipe.schema["sex"].ordered == ("male", "female")


def test_undo_goes_back_one_change(settled: Tab) -> None:
    before = settled.session.recipe
    settled.guarantee("typed", "77", "k")
    settled.guarantee("undo", "")
    assert settled.session.recipe == before


def test_two_tabs_do_not_mix(sessions: StudioSessions, settled: Tab, table: Path) -> None:
    other = Tab(sessions)
    other.upload(table)
    other.guarantee("card", "k-anonymity")
    assert settled.session.recipe.card == "given-partition"
    assert other.session.recipe.schema["income"].lo is None
    other.post("close")
    assert settled.session.table is not None


def test_a_reload_keeps_everything(settled: Tab) -> None:
    again = Tab(settled.sessions)
    again.name = settled.name
    assert "checked" in again.post("step/guarantee")
    assert again.session.recipe == settled.session.recipe


def test_nothing_is_left_at_the_end_nor_of_a_studio_that_was_killed(tmp_path: Path, table: Path) -> None:
    first = StudioSessions(place=tmp_path)
    session = first.new()
    session.open_survey()
    assert (session.folder / "survey.csv").is_file()
    assert sweep(tmp_path) == []
    # killed: the lock is free, the files are there
    import os

    os.close(first._held)
    second = StudioSessions(place=tmp_path)
    assert not first.folder.exists()
    second.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_named_at_the_start_is_read_where_it_lies(tmp_path: Path, table: Path) -> None:
    made = StudioSessions(table, place=tmp_path)
    session = made.new()
    assert session.source is not None
    assert session.source.path == table
    assert list(session.folder.iterdir()) == []
    made.close()
    assert table.is_file()


def in_place(path: Path, recipe: Recipe, place: Path) -> Iterator[Tab]:
    """A tab about a file that is read where it lies, of which everything is settled."""
    sessions = StudioSessions(path, place=place)
    tab = Tab(sessions)
    tab.session.settle(recipe)
    yield tab
    sessions.close()


@pytest.fixture
def lying(tmp_path: Path, table: Path, settled_recipe: Recipe) -> Iterator[Tab]:
    path = Path(shutil.copy(table, tmp_path / "people.csv"))
    yield from in_place(path, settled_recipe, tmp_path)


def changed_on_disk(tab: Tab) -> None:
    assert tab.session.source is not None
    path = tab.session.source.path
    header, first, *rest = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([header, *rest, first]) + "\n", "utf-8")


CHANGED = "'people.csv' has changed on disk since it was opened: read it again (page Data), and check the declarations."


def test_a_file_that_changed_after_it_was_shown_is_not_released(lying: Tab, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    job = {
        **job_of(lying.session),
        "folder": str(lying.session.folder),
        "ledger": str(ledger),
        "dataset": "people",
    }
    changed_on_disk(lying)
    for kind in (release, buy):
        with pytest.raises(InputError) as refused:
            kind({**job, "price": "0.1"}, lambda message: None)
        assert str(refused.value) == CHANGED
    # nothing is written or charged
    assert list(lying.session.folder.iterdir()) == []
    assert not ledger.exists()


def test_a_file_that_changes_during_the_run_leaves_nothing(
    lying: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = Planned.carry_out

    def late(self: Planned, *given: Any) -> Any:
        changed_on_disk(lying)
        return carry_out(self, *given)

    monkeypatch.setattr(Planned, "carry_out", late)
    with pytest.raises(InputError, match="has changed on disk"):
        finished(lying.session)
    assert lying.session.releases == []


def test_a_changed_file_is_read_again_with_what_is_declared_and_its_runs_are_gone(lying: Tab) -> None:
    run = finished(lying.session)
    before = lying.session.recipe
    changed_on_disk(lying)
    assert 'id="reread"' in lying.post("step/data")
    lying.post("reread")
    assert lying.session.recipe == before
    assert lying.session.runs == []
    assert not run.folder.exists()
    # what is shown now can be released
    assert finished(lying.session).state == "done"


@pytest.mark.parametrize("card", ["k-anonymity", "swapping"])
def test_settings_changed_after_a_measurement_are_a_limit_of_claims_about_the_table_too(
    settled: Tab, card: str
) -> None:
    settled.guarantee("card", card)
    finished(settled.session)
    settled.post("step/judge")
    settled.guarantee("typed", "9", "k")
    ahead = settled.session.look_ahead()
    assert ahead.verdict is not None
    assert ahead.verdict.level == "amber"
    assert {"code": "settings-changed", "facts": {"settings": ["k"]}} in ahead.statement["recorded"]


def test_codes_of_a_file_can_be_texts(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    write(survey(30).select(["region"]), path)
    path.write_text("code,n\n007,1\n010,2\n", "utf-8")
    tab.upload(path)
    tab.column("code", "type", "text")
    tab.post("rows")
    assert "007" in tab.client.get(f"/session/{tab.name}/rows").text


def test_a_column_is_recoded_before_it_is_protected(settled: Tab) -> None:
    settled.post("column/0", what="recode", breaks="0, 40, 120", top="")
    ahead = settled.session.look_ahead()
    assert ahead.ready, ahead.problems
    assert ahead.statement is not None
    assert ahead.statement["attributes"]["age"]["lo"] == "(0,40]"
    run = finished(settled.session)
    assert "(40,120]" in (run.bundle / "data.csv").read_text("utf-8")
    assert 'recode = "age"' in ahead.recipe
    page = settled.post("column/0", what="recode", breaks="40, 0")
    assert "Step recode of 'age'" in page
    settled.post("column/0", what="take back", value=0)
    assert settled.session.recipe.schema.steps == ()


def test_another_recoding_after_a_measurement_is_recorded_as_a_change(settled: Tab) -> None:
    settled.post("column/0", what="recode", breaks="0, 40, 120")
    finished(settled.session)
    settled.post("step/judge")

    def recorded() -> dict[str, Any]:
        ahead = settled.session.look_ahead()
        assert ahead.statement is not None, ahead.problems
        return {one["code"]: one["facts"] for one in ahead.statement["recorded"]}

    assert "settings-changed" not in recorded()
    settled.post("column/0", what="take back", value=0)
    settled.post("column/0", what="recode", breaks="0, 50, 120", source="questionnaire")
    assert recorded()["settings-changed"] == {"settings": ["steps", "domain:age"]}


def test_bounds_of_a_step_are_from_these_records_once_they_were_looked_at(settled: Tab) -> None:
    assert "source: questionnaire" in settled.post("column/0", what="recode", top="90")
    settled.column("age", "look")
    page = settled.post("column/0", what="recode", bottom="20")
    assert "cells changed" in page
    assert [step.source for step in settled.session.recipe.schema.steps] == ["questionnaire", "these records"]
    settled.post("column/0", what="recode", bottom="18", source="law")
    assert settled.session.recipe.schema.steps[-1].source == "law"


def test_names_are_recoded_to_a_level_of_their_taxonomy(settled: Tab) -> None:
    settled.post("column/1", what="taxonomy", value="female, people\nmale, people\npeople, *")
    assert 'name="level"' in settled.column("sex", "open")
    settled.post("column/1", what="recode", level="1")
    assert settled.session.recipe.schema.stepped["sex"].tree.values == ("people",)


def test_a_slider_moves_one_end_and_what_depends_on_it_but_not_itself(settled: Tab) -> None:
    settled.column("income", "open")
    page = settled.post("column/3", what="slide", name="hi", value=500)
    income = settled.session.recipe.schema["income"]
    assert (income.lo, income.hi) == (0, 225_000)
    assert 'data-into="#ends-3"' in page
    assert 'value="225000"' in page
    assert 'data-into="#inspector"' not in page
    assert "slide-hi" not in page
    # both ends cannot change places
    page = settled.post("column/3", what="slide", name="lo", value=900)
    assert "low above high" in page
    assert settled.session.recipe.schema["income"].lo is None


def test_a_scale_follows_the_records_only_after_a_look(tab: Tab, table: Path) -> None:
    tab.upload(table)
    assert "slide-hi" not in tab.column("income", "open")
    page = tab.column("income", "look")
    assert page.count('type="range"') == 2
    assert page.count(">not set<") == 2
    tab.post("column/3", what="slide", name="hi", value=1000)
    income = tab.session.recipe.schema["income"]
    assert income.lo is not None
    assert "domain" not in income.source


def test_what_becomes_of_a_weight_is_a_choice(settled: Tab) -> None:
    page = settled.column("income", "role", "weight")
    assert "Release of the weight" in page
    assert not settled.session.recipe.publishes(settled.session.recipe.schema["income"])
    settled.column("income", "release", "masked")
    assert settled.session.recipe.publishes(settled.session.recipe.schema["income"])
    settled.guarantee("card", "given-partition")
    ahead = settled.session.look_ahead()
    assert ahead.ready, ahead.problems
    assert "income" in ahead.statement["attributes"]
