"""Measures on Spark are those of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import shoal
from shoal.engines.runner import LocalRunner
from shoal.release.measure import Where, checked, evaluated

from . import measured
from .measured import runner_of, same
from .spark_session import session

pytestmark = pytest.mark.system
LEVELS: dict[str, Any] = {"k": 2, "l": 2, "t_emd": None, "t_ratio": None}


def test_measures_of_a_session_on_this_machine(tmp_path: Path) -> None:
    # Spark has no place for numbers of 64 bits without a sign
    before, after = (measured.table(seed, 3000).drop_columns(["big"]) for seed in (1, 2))
    local = [
        runner_of(found, tmp_path / f"{name}.parquet", LocalRunner, 500)
        for name, found in (("before", before), ("after", after))
    ]
    (tmp_path / "folder").mkdir()
    for part in range(3):
        parquet.write_table(after.slice(1000 * part, 1000), tmp_path / "folder" / f"{part}.parquet")
    with session("local[2]"):
        where = Where("spark")
        there = where.runners([tmp_path / "before.parquet", tmp_path / "folder"])
        assert there is not None
        assert there[0].shards == 2
        same(evaluated(local).to_dict(), evaluated(there).to_dict())
        asked: dict[str, Any] = {
            "quasi_identifiers": ["town", "yes"],
            "sensitive": ["x", "day"],
            "levels": LEVELS,
        }
        same(checked(local[1], **asked).to_dict(), checked(there[1], **asked).to_dict())
        told: dict[str, Any] = {
            "method": "tree-dp",
            "epsilon": 1,
            "columns": ["i", "same"],
            "domains": {"i": (-40, 60), "same": (0, 10)},
            "missing": "drop",
            "seed": 2,
        }
        found = {}
        for engine in ("spark", "local"):
            # a report beside another one would say that the table was looked at
            folder = tmp_path / engine
            folder.mkdir()
            places = {"out": folder / "out", "internal": folder / "in.html"}
            made = shoal.publish(tmp_path / "before.parquet", engine=engine, evaluate=True, **places, **told)
            assert made.evaluation is not None
            found[engine] = made.evaluation.to_dict()
        same(found["local"], found["spark"])
        pages = [(tmp_path / engine / "in.html").read_text("utf-8") for engine in found]
        assert pages[0] == pages[1]
