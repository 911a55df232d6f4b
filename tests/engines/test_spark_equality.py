"""Every method on Spark and in memory: Census, Adult, several row groups; the driver sees aggregates only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import shoal
from benchmarks.engines import DOMAINS, make_table
from tests.conftest import amount
from tests.mechanisms.test_rules import KINDS, hospital, schema, violations

from .equality import METHODS, adult, census, check_equal, several_groups
from .spark_session import session

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_census_and_adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adult").mkdir()
    subjects = (census(tmp_path), adult(tmp_path / "adult", monkeypatch))
    with session("local[2]"):
        for subject in subjects:
            for method in METHODS:
                check_equal(subject, method, "spark", subject.data.parent)


def test_several_row_groups(tmp_path: Path) -> None:
    subject = several_groups(tmp_path)
    with session("local[2]"):
        for method in METHODS:
            check_equal(subject, method, "spark", tmp_path)


def test_millions_of_rows_pass_a_driver_that_may_be_sent_20_mb(tmp_path: Path) -> None:
    """The table itself may not: 64 MB of numbers, in a thorough run 160."""
    data, rows = tmp_path / "in.parquet", amount(4_000_000, 10_000_000)
    make_table(data, rows)
    with session("local[2]", spark__driver__maxResultSize="20m") as spark:
        with pytest.raises(Exception, match="maxResultSize"):
            spark.read.parquet(str(data)).collect()
        for method in ("ranking-dp", "tree-dp", "xm-21"):
            made = shoal.publish(
                data, out=tmp_path / method, engine="spark", method=method, epsilon=1, domains=DOMAINS
            )
            assert made.release.data.count() == rows


def test_rules_hold_on_spark_and_make_the_same_rows(tmp_path: Path) -> None:
    """All five kinds, with records that break them."""
    data = hospital(600)
    data.loc[:30, "discharge"] = data.loc[:30, "admission"]
    data.to_parquet(tmp_path / "people.parquet", row_group_size=200)
    rules = schema(tuple(KINDS))
    with session("local[2]"):
        for method in ("pairs-dp", "tree-dp"):
            settings: dict[str, Any] = {"method": method, "epsilon": 2, "seed": 4, "schema": rules}
            rows, broken = [], []
            for engine in ("memory", "spark"):
                out = tmp_path / method / engine
                made = shoal.publish(tmp_path / "people.parquet", out=out, engine=engine, **settings)
                found = pd.read_parquet(out / ("data" if engine == "spark" else "data.parquet"))
                assert not any(violations(found).values())
                rows.append(sorted(map(str, found.to_numpy().tolist())))
                broken.append(made.release.internal["rules_broken"])
            assert rows[0] == rows[1]
            assert broken[0] == broken[1]
            assert broken[0][KINDS["order"].words] >= 31
