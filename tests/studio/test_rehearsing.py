"""Rehearsals on another file, such as last year's: what is refused, what is shown, and what the journal records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.io import read, write
from shoal.studio.runs import compare
from shoal.studio.session import StudioSessions
from shoal.survey import survey

from .studio_client import Tab, finished, job_of
from .studio_walker import Walk, people, settle

COLUMNS = ["age", "sex", "hours per week", "income"]


@pytest.fixture(scope="session")
def last_year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("last") / "last-year.csv"
    write(survey(250, seed=7).select(COLUMNS), path)
    return path


def taken(tab: Tab, path: Path) -> str:
    return tab.post("people", what="path", path=str(path))


def sent(tab: Tab, path: Path) -> str:
    answer = tab.client.put(
        f"/session/{tab.name}/people", content=path.read_bytes(), headers={"x-name": path.name}
    )
    assert answer.status_code == 200
    return tab.post("people") + answer.text


def copies(tab: Tab) -> list[str]:
    return [path.name for path in tab.session.folder.glob("people*")]


def test_a_rehearsal_on_another_file_spoils_nothing_and_names_it(settled: Tab, last_year: Path) -> None:
    page = sent(settled, last_year)
    assert "The 250 rows of <b>last-year.csv</b>." in page
    assert "Rehearse on the records of last-year.csv" in page
    run = finished(settled.session, "rehearse")
    page = settled.post("step/judge")
    assert "Rehearsal on 250 records of another table: no privacy budget was used." in page
    assert "Records of last-year.csv, not of this table: no facts about these records are shown" in page
    assert len(run.kept[0]) == 250
    settled.guarantee("typed", "25", "k")
    assert settled.session.look_ahead().statement["recorded"] == []
    # made-up people again: nothing of the file is left
    page = settled.post("people", what="made up")
    assert "synthetic records" in page
    assert copies(settled) == []


def test_a_file_that_is_named_is_read_where_it_lies(settled: Tab, last_year: Path) -> None:
    assert "last-year.csv" in taken(settled, last_year)
    assert copies(settled) == []
    settled.post("close")
    assert settled.session.another is None
    assert last_year.is_file()


def changed(path: Path, folder: Path, table: pa.Table) -> Path:
    made = folder / path.name
    write(table, made)
    return made


def test_what_is_wrong_with_the_file_is_said_beside_the_choice(
    settled: Tab, last_year: Path, tmp_path: Path
) -> None:
    table = read(last_year).frame.to_arrow()
    incomes = [str(value) for value in table.column("income").to_pylist()]
    incomes[6] = "much"
    page = taken(settled, changed(last_year, tmp_path, table.drop_columns(["income"])))
    assert "In last-year.csv: there is no column 'income' in the table." in page
    assert 'id="rehearse" data-run data-send="run/rehearse" aria-describedby="rehearse-note" disabled' in page
    assert "In last-year.csv: there is no column 'income'" in settled.post("run/rehearse")
    assert settled.session.runs == []
    # a column that is not released may be missing
    settled.column("income", "publish")
    assert "In last-year.csv" not in settled.post("step/guarantee")
    settled.column("income", "publish")
    page = taken(settled, changed(last_year, tmp_path, table.set_column(3, "income", pa.array(incomes))))
    assert "In last-year.csv: column 'income' is declared as decimal, but row 7 holds 'much'" in page
    older = table.set_column(0, "age", pa.array([121, *table.column("age").to_pylist()[1:]]))
    page = taken(settled, changed(last_year, tmp_path, older))
    assert "In last-year.csv: some values of column 'age' lie outside 0:120" in page
    assert "In last-year.csv" not in settled.guarantee("outside", "clip")
    # what is settled later can be wrong for it, too
    page = settled.guarantee("typed", "260", "k")
    assert "In last-year.csv: k = 260 is larger than the number of records, 250" in page


def test_what_is_no_table_leaves_the_choice_as_it_was(settled: Tab, last_year: Path, tmp_path: Path) -> None:
    taken(settled, last_year)
    assert "There is no file 'none.csv'." in taken(settled, tmp_path / "none.csv")
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n3\n", "utf-8")
    assert "'bad.csv': row 2 has 1 field, but the header has 2" in sent(settled, bad)
    assert "has an unknown file extension" in settled.post("announce", name="x.docx", size=9, to="people")
    assert "Studio copies at most" in settled.post("announce", name="x.csv", size=10**9, to="people")
    assert copies(settled) == []
    assert settled.session.another is not None
    assert settled.session.another.path == last_year


def test_the_table_itself_is_refused_however_it_is_written(settled: Tab, table: Path, tmp_path: Path) -> None:
    words = "contains the same records as the original table, so a rehearsal on it would be data-dependent."
    assert f"'people.csv' {words}" in sent(settled, table)
    turned = tmp_path / "last-year.parquet"
    write(read(table).frame.to_arrow().take(pa.array(range(299, -1, -1))), turned)
    assert f"'last-year.parquet' {words}" in sent(settled, turned)
    assert settled.session.another is None
    assert copies(settled) == []


def questions(tab: Tab) -> list[str]:
    return [one.sentence for one in tab.session.look_ahead().problems if one.code == "same-records-question"]


def test_a_file_that_was_rehearsed_on_is_asked_about_when_it_is_opened(
    sessions: StudioSessions, settled: Tab, last_year: Path
) -> None:
    other = Tab(sessions)
    other.upload(last_year)
    other.session.settle(settled.session.recipe)
    assert questions(other) == []
    taken(settled, last_year)
    finished(settled.session, "rehearse")
    assert questions(other) == [
        "The journal of use has a table with the same content without a data set name (rehearsed once). Are these "
        "the same records? Your answer is kept as your declaration."
    ]
    page = other.post("step/guarantee")
    answer = other.session.look_ahead().problems[-1].fixes[0][1]
    assert "Yes, the same records" in page
    other.post("guarantee", **answer)
    assert questions(other) == []
    recorded = other.session.look_ahead().statement["recorded"]
    assert {"code": "rehearsed-on-records", "facts": {"count": 1}} in recorded
    # nothing of it is about the table that it was a rehearsal for
    assert settled.session.look_ahead().statement["recorded"] == []


def test_settings_are_compared_on_the_same_people(
    sessions: StudioSessions, settled: Tab, last_year: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken(settled, last_year)
    jobs: list[dict[str, Any]] = []
    monkeypatch.setattr("shoal.studio.runs.start", lambda run, job, told: jobs.append(job))
    settled.post("run/compare")
    assert (jobs[0]["on"], jobs[0]["rows"]) == (str(last_year), 250)
    told: list[Any] = []
    compare({**job_of(settled.session), **jobs[0], "methods": ["ranking-dp"], "ks": [50]}, told.append)
    assert [len(message["dots"]) for message in told if message["event"] == "dots"] == [1]
    # its dots are shown as they arrive
    other = Tab(sessions)
    other.upload(last_year)
    assert "measured once" in questions(other)[0]
    assert questions(settled) == []


@pytest.mark.system
@pytest.mark.slow
def test_a_walk_with_last_year_s_file(walk: Walk, last_year: Path, tmp_path: Path) -> None:
    page = walk.page
    original = people(tmp_path)
    walk.choose(original)
    settle(walk)
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    page.get_by_role("link", name="on another file").click()
    page.locator("#people-path").wait_for()
    assert page.evaluate("() => document.activeElement.id") == "people"
    alert = page.locator("#people-problem [role=alert]")
    # the wrong ones first, each with its words
    page.locator("#people-file").set_input_files(original)
    alert.filter(has_text="people.csv").wait_for()
    assert alert.inner_text() == (
        "'people.csv' contains the same records as the original table, so a rehearsal on it would be "
        "data-dependent. Choose the file of another year, or use synthetic records."
    )
    bare = tmp_path / "bare.csv"
    write(survey(50, seed=7).select(COLUMNS[:3]), bare)
    page.locator("#people-path").fill(str(bare))
    page.locator("#people-take").click()
    alert.filter(has_text="In bare.csv").wait_for()
    assert alert.inner_text() == "In bare.csv: there is no column 'income' in the table."
    assert page.locator("#rehearse").is_disabled()
    assert page.locator("#protect").is_enabled()
    page.locator("#people-file").set_input_files(last_year)
    page.locator("#people-now", has_text="The 250 rows of last-year.csv.").wait_for()
    assert alert.count() == 0
    walk.run("rehearse")
    walk.judge()
    page.get_by_text("Records of last-year.csv, not of this table").wait_for()
    walk.go("guarantee")
    # the choice outlives a look elsewhere and a reload, and settings stay clean
    page.reload()
    page.locator("#people-now", has_text="last-year.csv").wait_for()
    walk.type("#value-k", "30")
    assert page.locator("#recorded").count() == 0
    page.locator("#made-up").click()
    page.locator("#rehearse-note", has_text="synthetic records").wait_for()
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    walk.clean()
