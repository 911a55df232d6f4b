"""The floor on collected tests really fails a run that lost some, with and without parallel workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "pytest.ini", *options]
    # the conftest takes the place of the public data sets from the checkout's tools; loading plugins takes long
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Three tests under a copy of the real conftest."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_three.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(3)))
    return tmp_path


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_fewer_tests_than_the_floor_fail_with_a_clear_line(suite: Path, workers: tuple[str, ...]) -> None:
    done = run_pytest(suite, *workers, "--collected-floor", "4")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "only 3 tests were collected, expected at least 4" in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "xdist"])
def test_the_floor_itself_is_enough(suite: Path, workers: tuple[str, ...]) -> None:
    done = run_pytest(suite, *workers, "--collected-floor", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_without_the_option_any_number_is_fine(suite: Path) -> None:
    assert run_pytest(suite, "test_three.py::test_1").returncode == 0


def test_collecting_alone_is_not_held_to_the_floor(suite: Path) -> None:
    assert run_pytest(suite, "--collect-only", "--collected-floor", "4").returncode == 0
