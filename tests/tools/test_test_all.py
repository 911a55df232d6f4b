"""The groups of `make test-all` hold every test once, a failure shows in the exit status, and every end is recorded."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import test_all
from tools.test_all import Ended, Outcome, groups, main, noted, summary

ROOT = Path(__file__).parents[2]
MARKS = ("slow", "papers", "system", "alone", "thorough")


def holds(chosen: str, marks: set[str]) -> bool:
    """An expression of markers, read as pytest reads it."""
    return bool(eval(chosen, {}, {mark: mark in marks for mark in MARKS}))


def allowed() -> list[set[str]]:
    """What may be together: what is alone or thorough is slow; papers and system do not meet alone."""
    every = [
        {mark for mark, has in zip(MARKS, held, strict=True) if has}
        for held in itertools.product([True, False], repeat=5)
    ]
    return [
        marks
        for marks in every
        if ("slow" in marks or not marks & {"alone", "thorough"})
        and len(marks & {"papers", "system", "alone"}) <= 1
    ]


@pytest.mark.parametrize("thorough", [False, True])
def test_every_test_is_in_one_group(thorough: bool) -> None:
    for marks in allowed():
        found = [name for name, group in groups(0, thorough).items() if holds(group.chosen, marks)]
        assert len(found) == (0 if "thorough" in marks and not thorough else 1), marks


def test_what_measures_time_runs_last_and_by_itself() -> None:
    assert list(groups(0))[-1] == "alone"
    assert "-n" not in test_all.command(groups(0)["alone"], 2, "whole", Path("log"))
    assert "-n" in test_all.command(groups(0)["slow"], 2, "whole", Path("log"))
    assert "--collected-floor" in test_all.command(groups(5)["quick"], 2, "whole", Path("log"))


def outcome(status: int, *tests: Ended) -> Outcome:
    return Outcome(status, "last words", 61.0, 125.0, tests)


def test_the_summary_counts_and_names_what_failed_and_what_was_slow() -> None:
    slow = [Ended("passed", float(number), 1.0, f"t{number}") for number in range(30)]
    lines = summary({"quick": outcome(0, *slow), "slow": outcome(1, Ended("failed", 500.0, 9.0, "bad"))})
    said = "\n".join(lines)
    assert lines[1].split() == ["500.0", "9.0", "bad"]
    assert "t6" in said
    assert "t5" not in said.split("== groups")[0].split()
    assert "quick    30 passed in 1 min 01 s, 2 min 05 s of CPU" in lines
    assert "slow     1 failed in 1 min 01 s, 2 min 05 s of CPU (exit status 1: last words)" in lines
    assert "all      1 failed, 30 passed in 2 min 02 s, 4 min 10 s of CPU" in lines
    assert lines[-1] == "FAILED bad"


def test_groups_go_on_after_one_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[str] = []

    def run(name: str, *rest: object) -> Outcome:
        ran.append(name)
        return outcome(1 if name == "quick" else 0)

    monkeypatch.setattr(test_all, "run", run)
    assert main(["--log", str(tmp_path)]) == 1
    assert ran == list(groups(0))
    assert main(["--log", str(tmp_path), "--only", "slow", "papers"]) == 0
    with pytest.raises(SystemExit):
        main(["--log", str(tmp_path), "--only", "slwo"])


def test_a_line_is_written_for_every_test_as_it_ends(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_five.py").write_text(
        "import os, pytest\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "def test_error(broken): pass\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
        "def test_end_of_all(): os._exit(3)\n"
    )
    log = tmp_path / "log.tsv"
    words = ["-p", "no:cacheprovider", "-c", "pytest.ini", "--log-tests", str(log)]
    subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env={**test_all.os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        check=False,
    )
    assert [(test.name.split("::")[1], test.outcome) for test in noted(log)] == [
        ("test_good", "passed"),
        ("test_bad", "failed"),
        ("test_error", "error"),
        ("test_skipped", "skipped"),
    ]
    assert noted(tmp_path / "none") == []
