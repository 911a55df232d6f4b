"""Tables to measure in parts, and a runner whose aggregates meet in several buckets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from shoal.engines.runner import LocalRunner
from shoal.io.binary_files import frozen

from .twice import Twice


class Sharded(Twice):
    """Aggregates of one task meet those of others in several buckets."""

    shards = 3


def table(seed: int, n: int) -> pa.Table:
    """Numbers with gaps, without an end and with both zeros, constants, days, moments, texts, truth values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).round(2)
    day = np.datetime64("2020-01-01") + rng.integers(0, 300, n)
    return pa.table(
        {
            "x": pa.array(x, mask=rng.random(n) < 0.1),
            "i": pa.array((rng.integers(0, 20, n) + 5 * x).astype(np.int32), mask=rng.random(n) < 0.05),
            "odd": rng.choice([1.5, np.nan, np.inf, -0.0, 0.0], n),
            "same": np.full(n, 3.0),
            "day": pa.array(day, mask=rng.random(n) < 0.1),
            "at": pa.array(day.astype("datetime64[ms]") + rng.integers(0, 80, n)),
            "town": pa.array([["a", "b", "", "c", None][place] for place in rng.integers(0, 5, n)]),
            "yes": rng.random(n) < 0.3,
            "big": rng.integers(0, 3, n).astype(np.uint64),
        }
    )


def runner_of(found: pa.Table, path: Path, kind: type[LocalRunner] = Twice, rows: int = 97) -> LocalRunner:
    parquet.write_table(found, path, row_group_size=rows)
    return kind(frozen(path))


def same(expected: Any, found: Any, where: str = "", tolerance: float = 1e-9) -> None:
    """Equal, numbers up to rounding."""
    if isinstance(expected, dict):
        assert expected.keys() == found.keys(), where
        for key in expected:
            same(expected[key], found[key], f"{where}/{key}", tolerance)
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(found), where
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            same(one, other, f"{where}/{number}", tolerance)
    elif isinstance(expected, float) and isinstance(found, float):
        assert math.isclose(expected, found, rel_tol=tolerance, abs_tol=1e-12), (where, expected, found)
    else:
        assert expected == found, (where, expected, found)
