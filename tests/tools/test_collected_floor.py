"""The floor on collected tests really fails a run that lost some, with and without parallel workers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def environment() -> dict[str, str]:
    """The conftest takes the place of the public data sets from the checkout's tools; loading plugins takes long."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pytest.ini", *options]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Three tests under a copy of the real conftest."""
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_three.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(3)))
    return tmp_path


def test_fewer_tests_than_the_floor_fail_with_a_clear_line_of_the_controller(suite: Path) -> None:
    done = run_pytest(suite, "-p", "xdist", "-n", "2", "--collected-floor", "4")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "only 3 tests were collected, expected at least 4" in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr


# every run of `make test` shows this of more tests
@pytest.mark.slow
def test_the_floor_itself_is_enough_for_workers(suite: Path) -> None:
    done = run_pytest(suite, "-p", "xdist", "-n", "2", "--collected-floor", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


CASES: dict[str, tuple[list[str], pytest.ExitCode, str]] = {
    "fewer": (["--collected-floor", "4"], pytest.ExitCode.USAGE_ERROR, "only 3 tests were collected"),
    "the floor itself": (["--collected-floor", "3"], pytest.ExitCode.OK, "3 passed"),
    "no floor": (["test_three.py::test_1"], pytest.ExitCode.OK, "1 passed"),
    "only collected": (["--collect-only", "--collected-floor", "4"], pytest.ExitCode.OK, "3 tests collected"),
}
# one process for all of them: most of a run's time is its start
RUN_ALL = """
import contextlib, io, json, sys, pytest
found = {}
for name, options in json.loads(sys.argv[1]).items():
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main(["-p", "no:cacheprovider", "-c", "pytest.ini", *options])
    found[name] = int(status), said.getvalue()
print(json.dumps(found))
"""


def test_without_workers_the_floor_holds_for_runs_but_not_for_lists(suite: Path) -> None:
    asked = json.dumps({name: options for name, (options, _, _) in CASES.items()})
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, asked],
        cwd=suite,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    for name, (_, status, line) in CASES.items():
        assert found[name][0] == status, f"{name}: {found[name][1]}"
        assert line in found[name][1], name
        assert "INTERNALERROR" not in found[name][1], name
