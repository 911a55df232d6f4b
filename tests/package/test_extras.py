"""The core runs demo, protect and reports; a missing extra is named in one line."""

from __future__ import annotations

import pickle
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from shoal.errors import Extra, MissingExtraError, install_words, needs_extra
from shoal.io import write
from shoal.survey import survey
from tests.support.core_only import Done, distributions, modules_beyond, run_with

ROOT = Path(__file__).parents[2]
# beside every extra, what people and tests bring along
HEAVY = {"sklearn", "rdflib", "pyreadstat", "pandas", "fastapi", "uvicorn", "sqlalchemy", "httpx", "polars"}
OWL = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
  <rdf:Description rdf:about="#North"><rdfs:subClassOf rdf:resource="#land"/></rdf:Description>
</rdf:RDF>
"""
TREE = '{"land": {"coast": ["North", "West"], "inland": ["South", "East", "Islands"]}}'
RECIPE = [
    *("--columns", "age,income", "--method", "ranking-dp", "--epsilon", "1", "--k", "50"),
    *("--schema", "made/survey.toml"),
]
CORE_COMMANDS = [
    ["demo", "--people", "500", "--out", "made"],
    ["schema", "made/survey.csv", "--out", "draft.toml"],
    ["protect", "made/survey.csv", *RECIPE, "--out", "csv", "--evaluate", "--internal", "internal.html"],
    ["protect", "made/survey.csv", *RECIPE, "--out", "parquet", "--format", "parquet"],
    ["protect", "parquet/data.parquet", "--config", "parquet/method.toml", "--out", "again"],
    [
        *("protect", "made/survey.csv", "--taxonomy", "region=tree.json", "--columns", "region"),
        *("--method", "mdav-dp", "--epsilon", "1", "--k", "50", "--out", "tree"),
    ],
    ["report", "csv", "--out", "public.html"],
    ["report", "csv", "--original", "made/survey.csv", "--out", "full.html"],
    ["evaluate", "made/survey.csv", "csv/data.csv"],
    ["attack", "made/survey.csv", "csv/data.csv"],
    ["check", "csv/data.csv", "--quasi", "age,income"],
    ["tune", "made/survey.csv", "--domain", "age=0:120", "--epsilon", "1", "--columns", "age", "--fast"],
    ["audit", "made/survey.csv", "--domain", "age=0:120", *RECIPE[2:-2], "--columns", "age", "--runs", "200"],
    ["methods"],
]
# what is asked for, and the extra that brings it
ASKED: list[tuple[Extra, list[str]]] = [
    ("files", ["protect", "in.dta", *RECIPE, "--out", "new"]),
    ("files", ["protect", "in.sav", *RECIPE, "--out", "new"]),
    ("files", ["protect", "made/survey.csv", *RECIPE, "--format", "stata", "--out", "new"]),
    ("files", ["protect", "made/survey.csv", *RECIPE, "--format", "spss", "--out", "new"]),
    ("excel", ["schema", "in.xlsx", "--out", "new"]),
    ("excel", ["protect", "made/survey.csv", *RECIPE, "--format", "excel", "--out", "new"]),
    ("learn", ["protect", "made/survey.csv", *RECIPE, "--evaluate", "--target", "income>3000", "--out", "new"]),
    ("studio", ["studio", "--no-browser", "--port", "0"]),
    ("learn", ["evaluate", "made/survey.csv", "csv/data.csv", "--target", "income>3000"]),
    ("learn", ["report", "csv", "--original", "made/survey.csv", "--target", "age>40", "--out", "new"]),
    ("learn", ["tune", "made/survey.csv", *RECIPE[-2:], "--epsilon", "1", "--target", "age>40", "--out", "new"]),
    ("rdf", ["protect", "made/survey.csv", *RECIPE[:-2], "--taxonomy", "region=tree.owl", "--out", "new"]),
    ("learn", ["reproduce", "idp", "--quick", "--out", "new"]),
    ("server", ["serve", "--data", "new", "--demo"]),
    ("server", ["ledger", "show", "new"]),
    ("server", ["ask", "survey", "--token-file", "token"]),
    ("server", ["protect", "made/survey.csv", *RECIPE, "--ledger", "new", "--dataset", "a", "--out", "new"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Done]]:
    """All commands in one interpreter that holds the core only."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "tree.json").write_text(TREE)
    (folder / "tree.owl").write_text(OWL)
    (folder / "token").write_text("secret")
    for name in ("in.dta", "in.sav", "in.xlsx"):
        (folder / name).write_bytes(b"?")
    return folder, run_with("shoal", [*CORE_COMMANDS, *(words for _, words in ASKED)], folder)


def test_the_interpreter_of_these_tests_holds_the_core_only() -> None:
    beyond = modules_beyond("shoal")
    assert beyond >= HEAVY
    assert beyond.isdisjoint({"shoal", "numpy", "scipy", "numba", "pyarrow", "jinja2", "typer", "rich"})


@pytest.mark.system
@pytest.mark.parametrize(
    "place", range(len(CORE_COMMANDS)), ids=[" ".join(words[:2]) for words in CORE_COMMANDS]
)
def test_the_core_runs_by_itself(place: int, done: tuple[Path, list[Done]]) -> None:
    folder, results = done
    result = results[place]
    assert result.status == 0, result.err
    words = CORE_COMMANDS[place]
    for option in ("--out", "--internal"):
        if option in words:
            assert (folder / words[words.index(option) + 1]).exists()


@pytest.mark.system
def test_reports_of_the_core_lack_nothing(done: tuple[Path, list[Done]]) -> None:
    folder, _ = done
    for name in ("internal.html", "full.html", "made/internal.html"):
        page = (folder / name).read_text()
        assert "<svg" in page
        assert "singling out" in page
        for complaint in ("No measures were computed", "Attacks were not run", "the extra"):
            assert complaint not in page
    assert (folder / "csv" / "report.html").stat().st_size > 1000


@pytest.mark.system
@pytest.mark.parametrize("place", range(len(ASKED)), ids=[f"{e} {w[0]} {w[1]}" for e, w in ASKED])
def test_a_missing_extra_is_one_line_and_status_2(place: int, done: tuple[Path, list[Done]]) -> None:
    folder, results = done
    extra, words = ASKED[place]
    result = results[len(CORE_COMMANDS) + place]
    assert result.status == 2
    # the same table was measured before, which is said first
    lines = [line for line in result.err.splitlines() if "the journal of use has a table" not in line]
    assert len(lines) == 1
    assert f"the extra '{extra}': " in lines[0]
    assert lines[0].endswith(f"{install_words(extra)}.")
    assert result.out == ""
    if "new" in words:
        assert not (folder / "new").exists()


@pytest.mark.system
def test_a_taxonomy_without_its_reader_is_named(done: tuple[Path, list[Done]]) -> None:
    place = next(place for place, (extra, _) in enumerate(ASKED) if extra == "rdf")
    assert "the taxonomy 'tree.owl': " in done[1][len(CORE_COMMANDS) + place].err


LEARN = """
from shoal.evaluation import LearningSettings, learn
learn("in.csv", "in.csv", "age>40", LearningSettings(folds=2, runs=1, trees=2), columns=["age", "tax"])
"""
LAPLACE = ["protect", "in.csv", "--method", "laplace", "--epsilon", "1", "--out", "new", "--columns"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("extra", "commands", "statuses"),
    [
        ("learn", [["python", LEARN]], [0]),
        ("rdf", [["python", "import shoal.taxonomy; shoal.taxonomy.Taxonomy.load('tree.owl')"]], [0]),
        ("files", [[*LAPLACE, "age", "--domain", "age=0:120", "--format", "spss"], ["schema", "new/data.sav"]], [0, 0]),
        (
            "server",
            [
                ["python", "import shoal.ledger; shoal.ledger.open_ledger('new').close()"],
                ["ledger", "show", "new"],
                ["serve", "--data", "none"],
                ["ask", "survey", "--token-file", "token", "--url", "http://127.0.0.1:port"],
            ],
            [0, 0, 2, 2],
        ),
    ],
)  # fmt: skip
def test_each_extra_brings_what_it_is_for(
    extra: str, commands: list[list[str]], statuses: list[int], tmp_path: Path
) -> None:
    """With this extra and no other one: what fails then fails for another reason."""
    write(survey(200), tmp_path / "in.csv")
    (tmp_path / "tree.owl").write_text(OWL)
    (tmp_path / "token").write_text("secret")
    results = run_with(f"shoal[{extra}]", commands, tmp_path)
    assert [result.status for result in results] == statuses, results
    for result in results:
        assert "extra" not in result.err


def test_the_extras_of_the_code_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional: dict[str, list[str]] = project["optional-dependencies"]
    development = {"test", "lint", "docs"}
    assert set(get_args(Extra)) == set(optional) - development - {"all"}
    assert optional["all"] == [f"shoal[{','.join(sorted(get_args(Extra)))}]"]
    for name in ("test", "lint"):
        assert "shoal[all]" in optional[name]


def test_all_brings_every_extra() -> None:
    everything = distributions("shoal[all]")
    for extra in get_args(Extra):
        assert distributions(f"shoal[{extra}]") <= everything
        assert distributions(f"shoal[{extra}]") > distributions("shoal")


def test_the_start_page_lists_the_extras() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "index.md").read_text(), re.M)
    assert sorted(listed) == sorted((*get_args(Extra), "all"))


@pytest.fixture
def activated(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(sys.executable).parent
    monkeypatch.setattr("shutil.which", lambda program: str(folder / program))


def checkout(folder: Path) -> Path:
    (folder / "src" / "shoal").mkdir(parents=True)
    (folder / "pyproject.toml").touch()
    return folder / "src" / "shoal"


def test_the_hint_of_an_installed_package(activated: None, tmp_path: Path) -> None:
    assert install_words("learn", tmp_path / "site-packages" / "shoal") == "pip install 'shoal[learn]'"
    # a folder called src alone is no checkout
    assert install_words("learn", tmp_path / "src" / "shoal") == "pip install 'shoal[learn]'"


def test_the_hint_in_a_checkout(activated: None, tmp_path: Path) -> None:
    hint = install_words("learn", checkout(tmp_path))
    assert hint == f"python -m pip install -e '.[learn]' in the folder '{tmp_path}'"


def test_the_hint_names_an_interpreter_that_is_not_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None)
    installed = install_words("rdf", tmp_path / "site-packages" / "shoal")
    assert installed == f"{sys.executable} -m pip install 'shoal[rdf]'"
    package = checkout(tmp_path)
    assert install_words("rdf", package).startswith(f"{sys.executable} -m pip install -e '.[rdf]' in ")
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert install_words("rdf", package).startswith(".venv/bin/python -m pip install -e '.[rdf]' in ")


def test_this_package_lies_in_a_checkout_here() -> None:
    assert f"'.[files]' in the folder '{ROOT}'" in install_words("files")


def test_only_missing_packages_of_others_are_extras() -> None:
    with (
        pytest.raises(MissingExtraError, match="it needs the extra 'rdf': "),
        needs_extra("rdf", "it needs"),
    ):
        import package_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ModuleNotFoundError), needs_extra("rdf", "it needs"):
        import shoal.module_that_was_removed  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ValueError, match="other"), needs_extra("rdf", "it needs"):
        raise ValueError("other")


def test_the_error_survives_the_way_from_a_worker() -> None:
    sent = MissingExtraError("missing-extra", who="it needs", extra="rdf", command="install it")
    error: Any = pickle.loads(pickle.dumps(sent))
    assert isinstance(error, MissingExtraError)
    assert str(error) == "it needs the extra 'rdf': install it."
