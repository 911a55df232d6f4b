"""`shoal tune`: what it prints, what it writes, and how it resumes after Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import run
from shoal.io import write
from shoal.survey import survey, survey_schema

WORDS = ["tune", "people.csv", "--schema", "people.toml", "--epsilon", "1", "--columns", "age,income"]
SMALL = ["--methods", "laplace,ranking-dp", "--ks", "5,30", "--seeds", "2", "--workers", "1"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(survey(120), tmp_path / "people.csv")
    survey_schema().save(tmp_path / "people.toml")
    return tmp_path


def test_the_table_the_reason_and_the_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, *SMALL, "--out", "out"]) == 0
    printed = capsys.readouterr()
    assert "ranking-dp, k = 30 has the smallest loss of 3 settings" in printed.out
    assert "Written to out: method.toml, runs.jsonl, tuning.json, tuning.svg." in printed.out
    assert "These are facts about the original data: keep them internal." in printed.out
    assert "3 of 3 settings remain, 4 runs: about" in printed.err
    assert run(["protect", "people.csv", "--config", "out/method.toml", "--out", "release"]) == 0
    printed = capsys.readouterr()
    assert "data-dependent: method and k were chosen based on the records" in printed.err
    statement = json.loads((here / "release" / "statement.json").read_text("utf-8"))
    assert statement["publishable"] is False
    assert "method and k were chosen" in statement["data_dependent"][0]


def test_json_is_the_only_thing_on_standard_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, *SMALL, "--fast", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best"] == {"method": "ranking-dp", "k": 30}
    assert found["utility"] == "normalised_sse"
    assert [line["loss"]["exact"] for line in found["settings"]] == [True, True, True]
    assert found["seeds"] == 0


def test_all_settings_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, *SMALL, "--fast"]) == 0
    short = capsys.readouterr().out
    assert run([*WORDS, *SMALL, "--fast", "--all"]) == 0
    everything = capsys.readouterr().out
    assert "ranking-dp, k = 5 " not in short
    assert "ranking-dp, k = 5 " in everything


def test_a_private_choice_is_stated_by_the_release(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*WORDS, "--no-link", "--private", "0.5", "--out", "out"]) == 0
    printed = capsys.readouterr()
    assert "The choice cost ε = 0.5" in printed.out
    assert "facts about the original data" not in printed.out
    assert sorted(path.name for path in (here / "out").iterdir()) == ["method.toml", "tuning.json"]
    assert run(["protect", "people.csv", "--config", "out/method.toml", "--out", "release"]) == 0
    statement = json.loads((here / "release" / "statement.json").read_text("utf-8"))
    assert statement["publishable"] is True
    assert statement["epsilon"] == 1.5
    assert statement["spending"]["choice of k"] == 0.5


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--ks", "3,x"], "--ks must be integers"),
        (["--methods", "rankin-dp"], "unknown method 'rankin-dp'"),
        (["--private", "0.1"], "or give --no-link"),
        (["--private", "0.1", "--methods", "mdav-dp"], "ranking-dp only"),
        (["--utility", "sse"], "utility 'sse' is not one of"),
        (["--seeds", "0"], "seeds must be"),
        (["--out", "people.csv"], "'people.csv' must be a new or empty folder"),
        (["--domain", "age=30:40"], "lie outside"),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    before = sorted(here.iterdir())
    assert run([*WORDS, *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("shoal: ")
    assert printed.err.count("\n") == 1
    assert expected in printed.err
    assert sorted(here.iterdir()) == before


def test_interrupted_with_and_without_a_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("shoal.tuning.tuner.run_setting", interrupt)
        assert run([*WORDS, *SMALL]) == 130
        assert capsys.readouterr().err.endswith("shoal: interrupted, nothing was written.\n")
        assert run([*WORDS, *SMALL, "--out", "out"]) == 130
        assert "are kept in 'out', and the same command continues from there" in capsys.readouterr().err
    assert run([*WORDS, *SMALL, "--out", "out"]) == 0


_SLOW = """
import sys
from shoal.cli import run
from shoal.tuning import tuner as work

add = work.OutcomeStore.add

def slow_add(store, setting, outcome):
    add(store, setting, outcome)
    print("kept", flush=True)

work.OutcomeStore.add = slow_add
sys.exit(run(sys.argv[1:]))
"""


def test_a_real_signal_while_processes_work(here: Path) -> None:
    words = [*WORDS, "--methods", "ranking-dp", "--seeds", "2000", "--workers", "2", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "continues from there" in errors
    assert '"seed": 1' in (here / "out" / "runs.jsonl").read_text("utf-8")
