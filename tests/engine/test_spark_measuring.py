"""Measures on Spark are those of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import measured
import pytest
from measured import runner_of, same
from pyarrow import parquet
from spark_session import session

import shoal
from shoal.release.engines.local import LocalRunner
from shoal.release.measuring.calls import checked, evaluated
from shoal.release.measuring.opened import Where

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
        asked: dict[str, Any] = {"quasi": ["town", "yes"], "confidential": ["x", "day"], "levels": LEVELS}
        same(checked(local[1], **asked).to_dict(), checked(there[1], **asked).to_dict())
        told = {"method": "tree-dp", "epsilon": 1, "columns": ["i", "same"], "seed": 2}
        domains = {"i": (-40, 60), "same": (0, 10)}
        made = shoal.publish(
            tmp_path / "before.parquet",
            out=tmp_path / "out",
            internal=tmp_path / "in.html",
            evaluate=True,
            engine="spark",
            domains=domains,
            missing="drop",
            **told,
        )
        assert made.evaluation is not None
        here = shoal.publish(
            tmp_path / "before.parquet",
            out=tmp_path / "here",
            internal=tmp_path / "here.html",
            evaluate=True,
            engine="local",
            domains=domains,
            missing="drop",
            **told,
        )
        assert here.evaluation is not None
        same(here.evaluation.to_dict(), made.evaluation.to_dict())
        pages = [(tmp_path / name).read_text("utf-8") for name in ("in.html", "here.html")]
        assert pages[0] == pages[1]
