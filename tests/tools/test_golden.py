"""The comparison of two checkouts: what differs is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoal
from tools.golden import cases, checkout, differences, record, unreleased


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def test_a_byte_that_differs_is_found_and_so_is_a_file_that_is_gone(tmp_path: Path) -> None:
    same = {"a/out/data.csv": b"x\n1\n", "a/out/part.parquet": b"\xff\x00"}
    before = write(tmp_path / "before", {**same, "b/terminal.txt": b"exit 0\n"})
    after = write(tmp_path / "after", same)
    assert [(one.name, one.lines) for one in differences(before, after)] == [
        ("b/terminal.txt", ("only before",))
    ]
    write(after, {"b/terminal.txt": b"exit 2\n", "a/out/part.parquet": b"\xff\x01"})
    found = {one.name: one.lines for one in differences(before, after)}
    assert list(found) == ["a/out/part.parquet", "b/terminal.txt"]
    assert found["b/terminal.txt"][-2:] == ("-exit 0", "+exit 2")


def test_a_statement_may_gain_the_keys_that_are_named_and_no_others(tmp_path: Path) -> None:
    before = write(tmp_path / "before", {"a/out/statement.json": b'{"model": "dp"}'})
    after = write(tmp_path / "after", {"a/out/statement.json": b'{"model": "dp", "terms": {}}'})
    assert differences(before, after, ["terms"]) == []
    assert [one.name for one in differences(before, after, ["other"])] == ["a/out/statement.json"]


def test_a_method_of_which_nothing_is_released_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"preset_laplace/out/statement.json": b"{}", "preset_suppress/terminal.txt": b"exit 2"})
    assert unreleased(tmp_path, ["laplace", "suppress"]) == ["suppress"]


def test_every_method_has_a_case_and_more_than_sixty_are_variants() -> None:
    names = [method.name for method in shoal.methods()]
    found = cases(names)
    assert all(f"preset {name}" in found for name in names)
    assert sum(not name.startswith(("preset", "wrong", "shown")) for name in found) > 60


def test_two_recordings_of_one_state_are_the_same_and_another_seed_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ["mixed laplace", "wrong epsilon zero"]
    for name in ("one", "two"):
        record(tmp_path / name, only)
    assert differences(tmp_path / "one", tmp_path / "two") == []
    assert unreleased(tmp_path / "one", ["laplace"]) == []
    assert (tmp_path / "one" / "wrong_epsilon_zero" / "terminal.txt").read_text().startswith("exit 2")
    monkeypatch.setattr("tools.golden.SEED", ("--seed", "8"))
    record(tmp_path / "three", only)
    found = [one.name for one in differences(tmp_path / "one", tmp_path / "three")]
    assert "mixed_laplace/out/data.csv" in found


def test_a_commit_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(SystemExit, match="neither a folder nor a commit"), checkout("no-such-commit"):
        pass
