"""Equality with the engine in memory, same seed, method by method: Census, Adult and several row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.engines import LocalRunner, profile, runner
from shoal.io import frozen, read
from shoal.release.in_parts.run import table_elsewhere
from shoal.release.protection import prepare

from .equality import BOUNDED, METHODS, Subject, adult, census, check_equal, several_groups, stays


@pytest.mark.parametrize("method", ["idp-cbls", "swap-ranking", "xm-22"])
def test_census(method: str, tmp_path: Path) -> None:
    check_equal(census(tmp_path), method, "local", tmp_path)


@pytest.mark.parametrize("method", BOUNDED)
def test_rows_of_units_that_are_bounded(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # several buckets of units, which are written to files
    monkeypatch.setattr(profile, "_ORDERED", 500)
    monkeypatch.setattr(runner, "_WAITING", 1 << 12)
    check_equal(stays(tmp_path), method, "local", tmp_path)


def kept_in_parts(subject: Subject, key: bytes) -> list[int]:
    """The rows that take part, found in parts."""
    files = frozen(subject.data)
    table = table_elsewhere(LocalRunner(files), counted=False)
    described = prepare(
        table, subject.asked["schema"], "pairs-dp", 1, bound_key=key, outside="clip"
    ).described
    reading = described.table.records.reading
    found = [reading.part(batch).rows for batch in files.batches(reading.read, 128)]
    return sorted(int(row) for rows in found for row in rows)


def test_the_rows_in_parts_are_those_in_memory_whatever_the_key(tmp_path: Path) -> None:
    subject = stays(tmp_path, 900, row_group_size=100)
    for key in (b"a" * 32, b"b" * 32):
        asked = {"bound_key": key, "outside": "clip"}
        here = prepare(read(subject.data), subject.asked["schema"], "pairs-dp", 1, **asked).described
        assert here.kept is not None
        assert here.kept.tolist() == kept_in_parts(subject, key)


def next_to_a_part(units: Any, digests: Any, most: int) -> Any:
    """A planted fault: every part of the table bounds the rows that it holds."""
    return np.flatnonzero(np.arange(units.size) % 4 < most)


def test_other_rows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "first_rows", next_to_a_part)
    with pytest.raises(AssertionError):
        check_equal(stays(tmp_path, 900), "tree-dp", "local", tmp_path)


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
