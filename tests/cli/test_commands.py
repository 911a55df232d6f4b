"""The commands that succeed: what they print, where, and what they leave on disk."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.cli.command import Flag, sorted_words
from shoal.mechanisms.registry import claim_words, method_class, parameters
from tests.support.samples import ODD_NAMES

BUNDLE = {"statement.json", "method.toml", "log.toml", "report.html"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"P{i},{20 + i},{1000 + 37 * i}.5\n" for i in range(30))
    (tmp_path / "data.csv").write_text("person_id,age,income\n" + rows)
    return tmp_path


def protect(*words: str, method: str = "ranking-dp", out: str = "out") -> int:
    domains = ["--domain", "age=0:120", "--domain", "income=0.0:5000.0"]
    return run(["protect", "data.csv", "--method", method, "--epsilon", "1", *domains, "--out", out, *words])


def statement(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "statement.json").read_text("utf-8"))


def test_protect_writes_a_bundle_and_says_the_promise(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protect("--k", "3") == 0
    printed = capsys.readouterr()
    assert statement(here / "out")["sentence"] in printed.out
    assert "Written to out: data.csv, log.toml, method.toml, report.html, statement.json." in printed.out
    assert "column 'person_id' is not released: its role is identifier" in printed.err
    assert sorted(path.name for path in here.iterdir()) == ["data.csv", "out"]


def test_json_is_the_only_thing_on_standard_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protect("--k", "3", "--json", "--evaluate") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["statement"] == statement(here / "out")
    assert document["evaluation"]["utility"]["sse"] > 0


def test_evaluate_option_prints_measures_but_publishes_none(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert protect("--k", "3", "--evaluate", "--internal", "deep/down/internal.html") == 0
    printed = capsys.readouterr().out
    assert "rows re-identified" in printed
    assert "Utility, " in printed
    assert "keep them internal" in printed
    assert "Facts about the original data" in (here / "deep/down/internal.html").read_text("utf-8")
    assert {path.name for path in (here / "out").iterdir()} == {"data.csv", *BUNDLE}
    for path in (here / "out").iterdir():
        for private in ("re-identified", "utility", "measured"):
            assert private not in path.read_text("utf-8").lower()


def test_seed_and_choices_that_looked_at_the_records_are_complained_about(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert protect("--seed", "1", "--missing", "drop", "--k", "3") == 0
    printed = capsys.readouterr()
    assert "Verdict: do not publish.\n- A seed was set" in printed.out
    assert "data-dependent: missing=drop" in printed.err


def test_decimal_text_of_epsilon_is_exact(here: Path) -> None:
    words = ["--epsilon", "0.1", "--domain", "age=0:120", "--columns", "age", "--out", "out", "--k", "3"]
    assert run(["protect", "data.csv", "--method", "ranking-dp", *words]) == 0
    assert statement(here / "out")["epsilon"] == 0.1
    assert "epsilon = 0.1\n" in (here / "out" / "method.toml").read_text()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("laplace", ["--split", "optimal"]),
        ("mdav-dp", ["--k", "4", "--normalise", "none", "--groups", "age;income"]),
        ("mdav-dp", ["--k", "4", "--normalise", "zscore", "--split", "age=2,income=1"]),
        ("ranking-dp", ["--k", "7", "--remainder", "last", "--no-link", "--split", "proportional"]),
        ("ranking-dp", ["--k", "7", "--no-clip", "--outside", "clip", "--missing", "drop"]),
    ],
)
def test_recipe_repeats_the_promise(here: Path, method: str, words: list[str]) -> None:
    assert protect(*words, "--columns", "age,income", method=method) == 0
    assert run(["protect", "data.csv", "--config", "out/method.toml", "--out", "again"]) == 0
    assert statement(here / "again") == statement(here / "out")
    assert (here / "again" / "method.toml").read_bytes() == (here / "out" / "method.toml").read_bytes()


def test_command_line_wins_over_the_recipe(here: Path) -> None:
    assert protect("--k", "3") == 0
    words = ["--config", "out/method.toml", "--out", "again", "--epsilon", "2", "--k", "5"]
    assert run(["protect", "data.csv", *words]) == 0
    assert statement(here / "again")["epsilon"] == 2
    assert statement(here / "again")["settings"]["k"] == 5


def test_recipe_with_domains_from_the_data_and_a_unit(here: Path) -> None:
    (here / "s.toml").write_text(
        '[[attribute]]\nname = "person_id"\nkind = "nominal"\nrole = "unit"\nmax_rows = 2\n'
        '[[attribute]]\nname = "age"\n'
    )
    words = ["--schema", "s.toml", "--domain-from-data", "1.5", "--method", "laplace", "--epsilon", "1"]
    assert run(["protect", "data.csv", *words, "--out", "out"]) == 0
    assert run(["protect", "data.csv", "--config", "out/method.toml", "--out", "again"]) == 0
    assert statement(here / "again") == statement(here / "out")
    assert statement(here / "out")["epsilon"] == 1


def test_odd_column_names_go_through_csv_and_the_command_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (here / "odd.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(ODD_NAMES)
        writer.writerows([[i + j for j in range(len(ODD_NAMES))] for i in range(20)])
    domains = [word for name in ODD_NAMES for word in ("--domain", f"{name}=0:30")]
    words = ["--method", "mdav-dp", "--epsilon", "1", "--k", "3", *domains, "--out", "out"]
    columns = [word for name in ODD_NAMES for word in ("--columns", name)]
    assert run(["protect", "odd.csv", *words, *columns]) == 0, capsys.readouterr().err
    with (here / "out" / "data.csv").open(newline="", encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == ODD_NAMES
    assert run(["protect", "odd.csv", "--config", "out/method.toml", "--out", "again"]) == 0
    assert statement(here / "again") == statement(here / "out")


def test_parquet_comes_back_as_parquet_with_declared_types(here: Path) -> None:
    table = pa.table(
        {"age": pa.array(np.arange(30), pa.int8()), "income": pa.array(np.arange(30), pa.float32())}
    )
    parquet.write_table(table, here / "data.parquet")
    words = ["--method", "laplace", "--epsilon", "1", "--domain", "age=0:99", "--domain", "income=0.0:99.0"]
    assert run(["protect", "data.parquet", *words, "--out", "out"]) == 0
    assert {path.name for path in (here / "out").iterdir()} == {"data.parquet", *BUNDLE}
    declared = pa.schema({"age": pa.int64(), "income": pa.float64()})
    assert parquet.read_schema(here / "out" / "data.parquet") == declared
    assert run(["protect", "data.parquet", *words, "--out", "text", "--format", "csv"]) == 0
    assert (here / "text" / "data.csv").exists()


def test_an_empty_folder_may_be_used(here: Path) -> None:
    (here / "out").mkdir()
    assert protect("--k", "3") == 0
    assert {path.name for path in (here / "out").iterdir()} == {"data.csv", *BUNDLE}


def test_fewer_than_two_k_rows_are_one_cluster(here: Path) -> None:
    assert protect("--k", "20", method="mdav-dp") == 0
    with (here / "out" / "data.csv").open() as file:
        assert len({tuple(row) for row in csv.reader(file)}) == 2


def test_schema_prints_a_draft_and_writes_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "data.csv"]) == 0
    printed = capsys.readouterr().out
    assert 'role = "identifier"' in printed
    assert "lo =" not in printed
    assert run(["schema", "data.csv", "--out", "s.toml"]) == 0
    assert (here / "s.toml").read_text() == printed
    assert shoal.Schema.load(here / "s.toml").names == ("person_id", "age", "income")


def test_methods_lists_every_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["methods"]) == 0
    text = capsys.readouterr().out
    assert run(["methods", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == [info.to_dict() for info in shoal.methods()]
    for entry in listed:
        assert entry["name"] in text
        assert run(["methods", entry["name"]]) == 0
        details = capsys.readouterr().out
        assert all(f"--{option.replace('_', '-')}" in details for option in entry["parameters"])


def test_evaluate_compares_two_tables(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "data.csv", "data.csv", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["utility"]["mean_variation"] == 0
    assert measured["utility"]["sse"] is None
    assert run(["evaluate", "data.csv", "data.csv", "--columns", "age"]) == 0
    assert "income" not in capsys.readouterr().out


def test_demo_goes_all_the_way(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--people", "500"]) == 0
    printed = capsys.readouterr().out
    assert "Verdict: publish." in printed
    folder = here / "shoal-demo"
    assert {path.name for path in folder.iterdir()} == {
        *("survey.csv", "survey.toml", "release", "internal.html")
    }
    assert {path.name for path in (folder / "release").iterdir()} == {
        "data.csv",
        "measurements.json",
        *BUNDLE,
    }
    assert statement(folder / "release")["publishable"]
    # a second demo does not touch the first
    assert run(["demo", "--people", "500"]) == 0
    assert (here / "shoal-demo-2").is_dir()


@pytest.mark.slow
def test_the_command_the_demo_prints_works(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--people", "500"]) == 0
    printed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in printed if line.strip().startswith("shoal protect")]
    command = f"{sys.executable} -m {line.strip()}"
    done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (here / "my-release" / "statement.json").exists()


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"shoal {shoal.__version__}\n"
    for command in ("demo", "protect", "evaluate", "methods", "schema"):
        assert run([command, "--help"]) == 0
        assert "Example" in capsys.readouterr().out
    assert run([]) == 2
    printed = capsys.readouterr()
    assert "protect" in printed.out
    assert printed.err == ""


def test_a_warning_about_exposed_files_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import warnings

    from shoal.errors import ExposedWarning

    def told(**_: object) -> int:
        warnings.warn(ExposedWarning("workers-expose", master="spark://there"), stacklevel=2)
        return 0

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr("shoal.cli.program._program", lambda: told)
        assert run(["protect"]) == 0
    assert capsys.readouterr().err == (
        "shoal: the workers at 'spark://there' store intermediate data, including private values, in their own "
        "folders: make sure that nobody else can read them, or set spark.io.encryption.enabled=true.\n"
    )


def test_commands_are_built_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["--version"]) == 0

    def built(app: object) -> None:
        raise AssertionError("built anew")

    monkeypatch.setattr("typer.main.get_command", built)
    assert run(["--version"]) == 0


@pytest.mark.parametrize("command", ["protect", "rehearse", "audit"])
@pytest.mark.parametrize("method", ["pairs-dp", "mdav-dp", "suppress", "xm-6"])
def test_help_about_a_method_shows_its_options_and_no_others(
    command: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--method", method, "--help"]) == 0
    shown = capsys.readouterr().out
    typed = set(re.findall(r"--[a-z][a-z-]*", shown))
    own = method_class(method).parameters()
    assert {f"--{name.replace('_', '-')}" for name in own} <= typed
    others = {f"--{name.replace('_', '-')}" for name in parameters() if name not in own}
    assert not others & set(re.findall(r"^  (--[a-z][a-z-]*)", shown, re.MULTILINE))
    assert f"Method {method}: " in shown
    assert " ".join(f"Claim: {claim_words(method_class(method))}.".split()) in " ".join(shown.split())
    assert {"--schema", "--method"} <= typed
    for known in own.values():
        if known.usual and known.form.typed is not bool:
            assert f"[default: {known.usual}]" in " ".join(shown.split())


def test_help_about_a_method_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["protect", "--method", "pairs-d", "--help"]) == 2
    assert "Did you mean 'pairs-dp'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["protect", "a.csv", "--epsilno", "1"], "unknown option '--epsilno'. Did you mean '--epsilon'?"),
        (["hold-out", "a.csv", "--shar", "1"], "unknown option '--shar'. Did you mean '--share'?"),
        (["protect", "a.csv", "-z"], "unknown option '-z'."),
        (["protect"], "missing argument 'DATA'."),
        (["serve"], "missing option '--data'."),
        (["protect", "a.csv", "b.csv"], "unexpected extra argument(s): b.csv"),
        (["protect", "a.csv", "--k"], "option '--k' requires a value."),
        (["protect", "a.csv", "--json=1"], "option '--json' does not take a value."),
        (
            ["protect", "a.csv", "--k", "2.5"],
            "invalid value for '--k' / '-k': must be an integer.",
        ),
        (
            ["risk", "a.csv", "--alpha", "x"],
            "invalid value for '--alpha': must be a number.",
        ),
        (
            ["serve", "--data", "x", "--port", "99999"],
            "invalid value for '--port': must be at most 65535.",
        ),
        (
            ["serve", "--data", "x", "--patience", "0"],
            "invalid value for '--patience': must be at least 0.1.",
        ),
    ],
)
def test_what_cannot_be_typed_is_answered(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert capsys.readouterr().err == f"shoal: {said}\n"


def test_words_are_read_as_they_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = (
        Flag("data", "", type=Path, argument=True),
        Flag("k", "", type=int, flags=("--k", "-k")),
        Flag("share", "", type=float, default=0.5, variable="SHOAL_SHARE"),
        Flag("clip", "", type=bool, flags=("--clip/--no-clip",)),
        Flag("na", "", many=True),
    )

    def read(*words: str) -> dict[str, object]:
        given, left, _ = sorted_words(flags, words)
        return {flag.name: flag.value(given[flag.name]) for flag in flags} | {"left": left}

    usual = {"data": Path("a"), "k": None, "share": 0.5, "clip": None, "na": None, "left": []}
    assert read("a") == usual
    assert read("-k5", "a") == usual | {"k": 5}
    assert read("--k", "5.0", "a", "--k=7") == usual | {"k": 7}
    assert read("--no-clip", "--clip", "a", "--no-clip") == usual | {"clip": False}
    # a value may look like a flag, and a table, too
    assert read("--na", "--", "--na=", "--", "a", "--k") == usual | {"na": ["--", ""], "left": ["--k"]}
    monkeypatch.setenv("SHOAL_SHARE", "0.25")
    assert read("a") == usual | {"share": 0.25}
    assert read("a", "--share", "1e-1") == usual | {"share": 0.1}
