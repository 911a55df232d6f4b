"""Survey weights: dropped, masked, or raked to public totals typed into the page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.cli import run as command
from shoal.io import read, write
from shoal.mechanisms.registry import load_recipe
from shoal.survey import survey

from .studio_client import Tab, finished
from .studio_walker import Walk, vouch

TOTALS = {"sex": "female = 5080\nmale = 4920", "region": "East = 3000\nNorth = 4000\nSouth = 3000"}
WAITS = "Column 'weight': a raked weight needs public margins, with one [[margin]] entry per column."
RAKED = (
    "The weight weight in the release was computed from the released rows and public totals only (raking to the "
    "margins of sex (law); region (an earlier release)); the original weights were not used."
)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "sample.csv"
    rows = survey(300).select(["age", "sex"])
    rows = rows.append_column("region", pa.array(["North", "South", "East"] * 100))
    write(rows.append_column("weight", pa.array(np.linspace(10, 60, 300).round(2))), path)
    return path


@pytest.fixture
def weighted(tab: Tab, sample: Path) -> Tab:
    """A sample of which everything but its weight is settled."""
    tab.upload(sample)
    tab.column("age", "suggestion")
    tab.column("sex", "values")
    tab.column("region", "values")
    tab.column("weight", "role", "weight")
    tab.vouch("questionnaire")
    tab.guarantee("card", "given-partition")
    tab.guarantee("typed", "20", "k")
    return tab


def totals(tab: Tab, column: str, text: str, source: str = "law") -> str:
    return tab.post("column/3", what="totals", column=column, totals=text, source=source)


def rake(tab: Tab) -> None:
    tab.column("weight", "release", "raked")
    totals(tab, "sex", TOTALS["sex"])
    totals(tab, "region", TOTALS["region"], "an earlier release")


def test_a_weight_is_dropped_masked_or_raked_and_the_statement_says_so(weighted: Tab) -> None:
    page = weighted.column("weight", "open")
    assert "The statement says: The survey weight weight was not released." in page
    assert "Public totals" not in page
    page = weighted.column("weight", "release", "masked")
    assert "needs a range" in page
    assert "The survey weight weight is released as one more attribute" in page
    # raked to nothing is not settled, and blocks the guarantee in the library's words
    page = weighted.column("weight", "release", "raked")
    assert WAITS in page
    assert "needs public totals" in page
    assert "female = \nmale = " in page
    assert "By age" not in page
    page = weighted.post("step/guarantee")
    assert WAITS in page
    assert "Go to weight" in page
    assert not weighted.session.look_ahead().ready
    rake(weighted)
    page = weighted.column("weight", "open")
    assert f"The statement says: {RAKED}" in page
    assert "By region: 3 totals" in page
    ahead = weighted.session.look_ahead()
    assert ahead.ready, ahead.problems
    assert ahead.statement["steps"] == [RAKED]
    assert RAKED in weighted.post("step/guarantee")
    assert "[[margin]]" in ahead.recipe


@pytest.mark.parametrize(
    ("column", "text", "source", "words"),
    [
        (
            "sex",
            TOTALS["sex"],
            "",
            "The margin of 'sex' needs a source, one of questionnaire, law, common knowledge, an earlier release: "
            "its totals must be public.",
        ),
        (
            "sex",
            TOTALS["sex"],
            "these records",
            "The margin of 'sex': totals of these records are not public; use totals from another source.",
        ),
        (
            "sex",
            "femal = 5\nmale = 4",
            "law",
            "The margin of 'sex': the column has no value 'femal'. Did you mean 'female'?",
        ),
        ("sex", "female = many", "law", "The margin of 'sex': 'female' must be a number, got 'many'."),
        (
            "sex",
            "female = 0",
            "law",
            "The margin of 'sex': the total of 'female' must be greater than 0: leave out a value that does not occur.",
        ),
        (
            "sex",
            "female 12",
            "law",
            "The margin of 'sex' has the line 'female 12', without '=': write 'value = people' on each line.",
        ),
        ("sex", "male = 1\nmale = 2", "law", "The margin of 'sex' lists 'male' twice."),
        (
            "sex",
            "female = \nmale = ",
            "law",
            "The margin of 'sex' needs totals, a table from values to numbers of people.",
        ),
        (
            "age",
            "30 = 5",
            "law",
            "The margin of 'age': a margin needs named values, but the column is numeric: recode the column into "
            "bands first.",
        ),
        (
            "region",
            "North = 7",
            "law",
            "The margins of 'sex' and 'region' describe populations of different size (10000 and 7): "
            "correct one of them.",
        ),
    ],
)
def test_totals_that_cannot_be_stay_as_typed_with_the_reason(
    weighted: Tab, column: str, text: str, source: str, words: str
) -> None:
    weighted.column("weight", "release", "raked")
    if column == "region":
        totals(weighted, "sex", TOTALS["sex"])
    before = weighted.session.recipe
    page = totals(weighted, column, text, source)
    assert words in page
    assert "check the totals" in page
    if column != "age":
        assert f">{text}</textarea>" in page
    assert weighted.session.recipe == before


def test_what_a_weight_is_raked_to_cannot_be_taken_from_under_it(weighted: Tab) -> None:
    rake(weighted)
    kept = weighted.session.recipe
    assert "The margin of 'sex': the column has no value 'female'" in weighted.column(
        "sex", "values", ["man", "woman"]
    )
    assert weighted.session.recipe == kept
    # a column that is not released has no rows to rake
    weighted.column("sex", "publish")
    page = weighted.post("step/guarantee")
    assert (
        "The weight 'weight' is raked to the margin of 'sex', which is not released: release it, or remove the margin."
        in page
    )
    assert "Go to weight" in page
    weighted.post("column/3", what="no totals", column="sex")
    assert weighted.session.look_ahead().ready
    page = weighted.post("column/3", what="no totals", column="region")
    assert WAITS in page
    assert weighted.session.recipe.schema.margins == ()
    # who declares it as something else has no totals to care for
    rake(weighted)
    weighted.column("weight", "role", "confidential")
    assert weighted.session.recipe.schema.margins == ()
    assert weighted.session.recipe.raking == ""


def test_one_weight_is_released_and_no_other(weighted: Tab) -> None:
    weighted.column("age", "role", "weight")
    weighted.column("weight", "release", "raked")
    weighted.column("age", "release", "masked")
    assert weighted.session.recipe.raking == "weight"
    words = "The schema releases two weights: release only one, because a record has one weight."
    assert words in totals(weighted, "sex", TOTALS["sex"])
    weighted.column("age", "release", "dropped")
    assert words not in totals(weighted, "sex", TOTALS["sex"])
    assert weighted.session.recipe.schema["weight"].release == "raked"
    assert words in weighted.column("age", "release", "masked")


def test_another_choice_about_the_weight_after_judge_is_recorded_as_a_change(weighted: Tab) -> None:
    finished(weighted.session)
    weighted.post("step/judge")

    def changed() -> list[Any]:
        recorded = weighted.session.look_ahead().statement["recorded"]
        return [one["facts"] for one in recorded if one["code"] == "settings-changed"]

    rake(weighted)
    assert changed() == [{"settings": ["steps"]}]
    weighted.column("weight", "release", "dropped")
    assert changed() == []


def test_raked_weights_are_rehearsed_released_and_the_same_without_the_window(
    weighted: Tab, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rake(weighted)
    assert RAKED in str(finished(weighted.session, "rehearse").facts["statement"])
    # another file may have no weights: those that are raked to are made
    bare = tmp_path / "bare.csv"
    write(read(sample).frame.to_arrow().drop_columns(["weight"]).slice(0, 200), bare)
    assert "In bare.csv" not in weighted.post("people", what="path", path=str(bare))
    assert RAKED in str(finished(weighted.session, "rehearse").facts["statement"])
    weighted.post("step/judge")
    run = finished(weighted.session)
    weighted.session.judge(run.letter)
    data = shoal.Bundle.load(run.bundle).data.to_pandas()
    assert data.groupby("sex").weight.sum().round(6).to_dict() == {"female": 5080, "male": 4920}
    page = weighted.post("step/publish")
    assert f"Identifiers and the index were dropped. {RAKED}" in page
    assert "Ready to publish" in page
    shutil.copy(sample, tmp_path)
    shutil.copy(run.bundle / "method.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    # under the same name, as the page offers it
    again = ["--config", "method.toml", "--dataset", "sample", "--out", "release"]
    assert command(["protect", "sample.csv", *again]) == 0
    assert load_recipe(tmp_path / "release" / "method.toml") == load_recipe(run.bundle / "method.toml")
    ahead = tmp_path / "ahead.toml"
    ahead.write_text(weighted.session.look_ahead().recipe, "utf-8")
    assert load_recipe(ahead)["schema"].margins == weighted.session.recipe.schema.margins


@pytest.mark.system
@pytest.mark.slow
def test_a_walk_with_a_raked_weight(walk: Walk, sample: Path, tmp_path: Path) -> None:
    page = walk.page
    walk.choose(sample)
    walk.go("columns")
    with page.expect_response("**/column/**"):
        page.locator("#suggest-0").click()
    for number in (1, 2):
        page.locator(f"#list-{number}").click()
        page.locator("#inspector-title", has_text=("sex", "region")[number - 1]).wait_for()
        with page.expect_response("**/column/**"):
            page.locator("#confirm").click()
    with page.expect_response("**/column/**"):
        page.locator("#role-3").select_option("weight")
    vouch(walk, range(3))
    page.locator("#name-3").click()
    page.locator("#weight-words", has_text="was not released").wait_for()
    page.locator("#release-3").select_option("raked")
    page.locator("#weight-waits").wait_for()
    assert page.locator("#weight-waits").inner_text() == WAITS
    page.locator("summary", has_text="By sex").click()
    page.locator("#totals-0").fill(TOTALS["sex"])
    page.locator("#totals-take-0").click()
    page.locator("#inspector-problem", has_text="needs a source").wait_for()
    # what was typed is still there
    assert page.locator("#totals-0").input_value() == TOTALS["sex"]
    page.locator("#totals-source-0").select_option("law")
    page.locator("#totals-take-0").click()
    page.locator("#status-3", has_text="raked").wait_for()
    page.locator("summary", has_text="By region").click()
    page.locator("#totals-1").fill(TOTALS["region"])
    page.locator("#totals-source-1").select_option("an earlier release")
    page.locator("#totals-take-1").click()
    page.locator("#weight-words", has_text="raking to the margins of sex (law); region").wait_for()
    walk.go("guarantee")
    walk.card("given-partition")
    walk.type("#value-k", "20")
    walk.run("protect")
    walk.judge()
    walk.go("publish")
    page.get_by_role("heading", name="Ready to publish").wait_for()
    release, (published, by_command, by_script) = walk.again(tmp_path, "sample.csv")
    assert published == by_command == by_script
    assert by_script["schema"].margins == walk.session.recipe.schema.margins
    assert "weight" in (release / "data.csv").read_text("utf-8").splitlines()[0]
    walk.clean()
