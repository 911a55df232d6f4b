"""Equality with the engine in memory, same seed, method by method: Census, Adult and several row groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from .equality import METHODS, Subject, adult, census, check_equal, several_groups


@pytest.mark.parametrize("method", ["idp-cbls", "swap-ranking", "xm-22"])
def test_census(method: str, tmp_path: Path) -> None:
    check_equal(census(tmp_path), method, "local", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_census_and_adult(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_equal(census(tmp_path), method, "local", tmp_path)
    (tmp_path / "adult").mkdir()
    check_equal(adult(tmp_path / "adult", monkeypatch), method, "local", tmp_path / "adult")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return several_groups(tmp_path_factory.mktemp("groups"))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_several_row_groups(method: str, rows: Subject, tmp_path: Path) -> None:
    check_equal(rows, method, "local", tmp_path)
