"""Shared test set-up: the real data sets, and a floor on the number of collected tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA_FOLDER = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def data_file(name: str) -> Path:
    """Path of a real data set; absent files skip the test, except in CI where they are a failure."""
    path = DATA_FOLDER / name
    if not path.exists():
        message = (
            f"{name} is not here: put the public data sets (CASC Census and EIA, UCI Adult and Wine, as CSV) "
            "into a folder and name it in SHOAL_DATA"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--collected-floor", type=int, default=0, help="fail if fewer tests are collected")


def pytest_collection_finish(session: pytest.Session) -> None:
    floor = session.config.getoption("--collected-floor")
    if not session.config.getoption("--collect-only") and len(session.items) < floor:
        raise pytest.UsageError(f"only {len(session.items)} tests were collected, expected at least {floor}")
