"""Processes that work for a caller hand over results one by one, as they are done."""

from __future__ import annotations

import os
from functools import partial
from operator import truediv
from pathlib import Path

import pytest

from shoal.workers import pool, stream


def test_results_come_as_they_are_done(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with stream(2) as each:
        found = each([partial(Path.read_text, gate), partial(int, "7")])
        assert next(found) == (1, 7)
        gate.write_text("open")
        assert list(found) == [(0, "open")]


@pytest.mark.parametrize("workers", [1, 2])
def test_results_in_the_order_of_the_tasks(workers: int) -> None:
    seen: list[int] = []
    with pool(workers) as run:
        assert run([partial(int, str(number)) for number in range(5)], seen.append) == [0, 1, 2, 3, 4]
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_arrives_here_and_ends_the_work(workers: int) -> None:
    with stream(workers) as each, pytest.raises(ZeroDivisionError):
        list(each([partial(truediv, 1, 0)]))
