"""The benchmark of growth: what is on file is not made again, and the page marks where an error grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import pairs_growth
from benchmarks.pairs_growth import Known, main, page, ratios, read
from benchmarks.pairs_tables import TASKS, Task


def grid(*errors: float) -> Known:
    """One column at two sizes and one ε, with the same error for every seed."""
    return {
        ("T", rows, "1"): {seed: {"x": error} for seed in range(5)}
        for rows, error in zip((10, 20), errors, strict=True)
    }


def test_what_is_on_file_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, str, int]] = []

    def errors(task: Task, epsilon: str, seed: int) -> dict[str, float]:
        made.append((task.records.num_rows, epsilon, seed))
        return {"x": task.records.num_rows * float(epsilon)}

    monkeypatch.setattr(pairs_growth, "errors", errors)
    keep, out = tmp_path / "kept.jsonl", tmp_path / "page.md"
    asked = ["--tables", "Wine", "--rows", "20", "10", "--epsilons", "2", "1", "--keep", str(keep)]
    main([*asked, "--out", str(out), "--seeds", "2"])
    assert made == [(rows, epsilon, seed) for seed in (0, 1) for rows in (10, 20) for epsilon in ("1", "2")]
    assert "| all | 4 | 4 | 4 | 2.00 |" in out.read_text("utf-8")
    # an interruption in the middle of a line loses that line only
    keep.write_text(keep.read_text("utf-8")[:-5], "utf-8")
    made.clear()
    main([*asked, "--out", str(out), "--seeds", "3"])
    assert made == [(20, "2", 1), *((rows, epsilon, 2) for rows in (10, 20) for epsilon in ("1", "2"))]
    main([*asked, "--out", str(out), "--seeds", "1", "--anew"])
    assert sum(map(len, read(keep).values())) == 4


def test_an_error_that_hardly_grows_is_not_marked() -> None:
    (found,) = ratios(grid(0.02, 0.0218))
    assert not found.worse
    assert page(grid(0.02, 0.0218)).endswith("None.\n")
    assert "| T | x | 20 | 1 | 10 rows | 0.0240 | 1.20 | 1.20 |" in page(grid(0.02, 0.024))


def test_a_violation_within_the_noise_of_few_seeds_is_not_clear() -> None:
    known = grid(0.02, 0.02)
    known["T", 20, "1"] = {seed: {"x": error} for seed, error in enumerate((0.01, 0.015, 0.024, 0.03, 0.03))}
    (found,) = ratios(known)
    assert found.worse
    assert not found.clear


def test_errors_are_of_all_columns() -> None:
    task = pairs_growth.resampled(TASKS["Wine"](), 60)
    assert task.records.num_rows == 60
    assert set(pairs_growth.errors(task, "5", 0)) == set(task.domains)
