"""`shoal report`: its output, its refusals, and that a page with private facts is never written to a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import run
from shoal.evaluation import learning
from shoal.io import write
from shoal.survey import survey, survey_schema

COLUMNS = "age,sex,education,income"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(survey(400), tmp_path / "survey.csv")
    survey_schema().save(tmp_path / "survey.toml")
    words = ["--method", "mdav-dp", "--epsilon", "1", "--k", "20", "--columns", COLUMNS, "--out", "bundle"]
    assert run(["protect", "survey.csv", "--schema", "survey.toml", *words]) == 0
    return tmp_path


def test_a_page_about_a_bundle_holds_what_the_bundle_says(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in (here / "bundle").iterdir())
    capsys.readouterr()
    assert run(["report", "bundle"]) == 0
    printed = capsys.readouterr()
    page = (here / "bundle-report.html").read_text("utf-8")
    assert "bundle-report.html: one HTML page, " in printed.out
    assert "do not publish" not in printed.err
    statement = json.loads((here / "bundle" / "statement.json").read_text("utf-8"))
    for text in (statement["sentence"], *statement["not_promised"], *statement["conditions"]):
        assert text.replace("'", "&#39;") in page
    assert "Do not publish" not in page
    assert "Facts about the original data" not in page
    assert sorted(path.name for path in (here / "bundle").iterdir()) == before


def test_with_the_original_the_page_compares_and_warns(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # forests of a few trees are enough to be shown
    forest = learning._forest
    monkeypatch.setattr(learning, "_forest", lambda trees: forest(3))
    assert (
        run(["report", "bundle", "--original", "survey.csv", "--target", "sex", "--out", "inner.html"]) == 0
    )
    assert "do not publish it" in capsys.readouterr().err
    page = (here / "inner.html").read_text("utf-8")
    for words in (
        "Do not publish this page",
        "Predicting sex",
        "inference of income",
        "unprotected",
        "total_variation",
        "Record linkage was not measured",
    ):
        assert words in page
    assert sorted(path.name for path in here.iterdir()) == [
        "bundle",
        "inner.html",
        "survey.csv",
        "survey.toml",
    ]


def test_an_original_of_another_size_is_remarked_on(here: Path) -> None:
    write(survey(300), here / "other.csv")
    for original, words in (("survey.csv", 0), ("other.csv", 1)):
        assert run(["report", "bundle", "--original", original, "--out", f"{original}.html"]) == 0
        page = (here / f"{original}.html").read_text("utf-8")
        assert page.count("or this is not the table that was protected") == words


def test_the_same_bundle_gives_the_same_page(here: Path) -> None:
    for name in ("first.html", "again.html"):
        assert run(["report", "bundle", "--original", "survey.csv", "--out", name]) == 0
    assert (here / "first.html").read_bytes() == (here / "again.html").read_bytes()


REFUSED = {
    "no folder": (["nowhere"], "there is no folder 'nowhere'"),
    "not a bundle": (["."], "contains no statement.json"),
    "target alone": (["bundle", "--target", "sex"], "also give --original"),
    "unknown target": (["bundle", "--original", "survey.csv", "--target", "sexx"], "Did you mean 'sex'?"),
    "no original": (["bundle", "--original", "nowhere.csv"], "there is no file 'nowhere.csv'"),
    "inside the bundle": (
        ["bundle", "--original", "survey.csv", "--out", "bundle/inner.html"],
        "inside the published folder",
    ),
    "deep inside the bundle": (
        ["bundle", "--original", "survey.csv", "--out", "x/../bundle/inner.html"],
        "inside the published folder",
    ),
    "another table": (["bundle", "--original", "other.csv"], "the original has no column 'education'"),
    "a folder": (["bundle", "--out", "."], "is a folder"),
    "exists": (["bundle", "--out", "survey.csv"], "already exists"),
    "no parent": (["bundle", "--out", "deep/down/page.html"], "there is no folder"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = REFUSED[name]
    (here / "x").mkdir()
    (here / "other.csv").write_text("age,sex,income\n30,f,1000\n31,m,2000\n")
    before = {path: path.stat().st_size for path in here.rglob("*")}
    capsys.readouterr()
    assert run(["report", *words]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert complaint.count("\n") == 1
    assert {path: path.stat().st_size for path in here.rglob("*")} == before


DAMAGE = {
    "not json": ("statement.json", "{", "is not JSON"),
    "no model": ("statement.json", "{}", "it has no 'model'"),
    "no recipe": ("method.toml", None, "contains no method.toml"),
    "no columns": ("method.toml", 'method = "laplace"\n', "describes no column"),
    "no data": ("data.csv", None, "contains no data file"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_bundle_is_named(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, text, message = DAMAGE[name]
    damaged = here / "bundle" / file
    damaged.unlink()
    if text is not None:
        damaged.write_text(text)
    assert run(["report", "bundle"]) == 2
    assert message in capsys.readouterr().err
    assert not (here / "bundle-report.html").exists()


def test_a_model_from_the_future_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "bundle" / "statement.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"model": "perfect"}))
    assert run(["report", "bundle"]) == 2
    assert "'perfect', which this version of Shoal does not support" in capsys.readouterr().err
