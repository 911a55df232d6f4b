"""The benchmark of growth: a line for every column, size and ε, and a mark where an error grows."""

from __future__ import annotations

import pytest

from benchmarks import pairs_growth
from benchmarks.pairs_growth import Cell, line, main


def test_every_column_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pairs_growth,
        "medians",
        lambda task, epsilon, seeds: {"x": task.records.num_rows * float(epsilon) * len(seeds)},
    )
    main(["--tables", "Wine", "--rows", "20", "10", "--epsilons", "2", "1", "--seeds", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert "worse" not in lines[1]
    assert all("worse" in one for one in lines[2:5])
    assert lines[-1].startswith("3 of 4 medians")


def test_an_error_that_hardly_grows_is_not_marked() -> None:
    cell = Cell("Adult", "age", 2_000, "1", 0.02, 1.09, None)
    assert not cell.worse
    assert "1.09" in line(cell)


def test_medians_are_of_all_columns() -> None:
    task = pairs_growth.resampled(pairs_growth.TASKS["Wine"](), 60)
    assert task.records.num_rows == 60
    assert set(pairs_growth.medians(task, "5", range(1))) == set(task.domains)
