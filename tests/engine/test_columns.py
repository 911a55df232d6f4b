"""Column by column through temporary files gives the same table as in memory, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.release import columnwise as columns

DOMAINS = {"a b": (0, 1000), "größe": (-5, 5), "x.y": (0, 50), "x": (0, 1)}


@pytest.fixture
def big(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    n = 5000
    table = pa.table(
        {
            "person_id": pa.array([f"p{i}" for i in range(n)]),
            "a b": pa.array(rng.integers(0, 1000, n), pa.int32()),
            "größe": pa.array(np.clip(rng.normal(size=n), -5, 5)),
            "x.y": pa.array(np.minimum(rng.exponential(9, n), 50).astype(np.float32)),
            "x": pa.array(rng.random(n)),
        }
    )
    path = tmp_path / "big.parquet"
    parquet.write_table(table, path, row_group_size=700)
    return path


@pytest.fixture(autouse=True)
def _several_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_ROWS", 999)


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "ranking-dp", "k": 20},
        {"method": "ranking-dp", "k": 20, "link": False, "remainder": "last", "split": "optimal"},
        {"method": "laplace"},
    ],
    ids=str,
)
def test_same_seed_same_table_as_in_memory(big: Path, tmp_path: Path, arguments: dict[str, Any]) -> None:
    release = shoal.publish(
        big,
        out=tmp_path / "out",
        internal=tmp_path / "in.html",
        engine="local",
        epsilon=1,
        domains=DOMAINS,
        seed=4,
        **arguments,
    ).release
    expected = shoal.protect(big, epsilon=1, domains=DOMAINS, seed=4, **arguments)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written.equals(expected.data)
    assert release.statement == expected.statement
    assert release.internal["values_clipped"] == expected.internal["values_clipped"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["big.parquet", "in.html", "out"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "data.parquet",
        "log.toml",
        "method.toml",
        "report.html",
        "statement.json",
    ]
    assert not parquet.read_schema(tmp_path / "out" / "data.parquet").metadata


def test_missing_rows_can_be_dropped(big: Path, tmp_path: Path) -> None:
    table = parquet.read_table(big)
    holes = pa.array([None if i % 7 == 0 else 0.5 for i in range(table.num_rows)])
    parquet.write_table(table.set_column(4, "x", holes), big)
    with pytest.raises(shoal.InputError, match="'x' has 715 missing"):
        shoal.publish(
            big, out=tmp_path / "out", engine="local", method="ranking-dp", epsilon=1, k=20, domains=DOMAINS
        )
    shoal.publish(
        big,
        out=tmp_path / "out",
        engine="local",
        method="ranking-dp",
        epsilon=1,
        k=20,
        domains=DOMAINS,
        missing="drop",
        seed=2,
    )
    expected = shoal.protect(
        big, method="ranking-dp", epsilon=1, k=20, domains=DOMAINS, missing="drop", seed=2
    )
    assert parquet.read_table(tmp_path / "out" / "data.parquet").equals(expected.data)


def test_methods_that_look_at_several_columns_are_refused(big: Path, tmp_path: Path) -> None:
    with pytest.raises(shoal.OptionError, match="mdav-dp"):
        shoal.publish(big, out=tmp_path / "out", engine="local", method="mdav-dp", epsilon=1, domains=DOMAINS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stage", ["_mask", "_shuffle", "_assemble", "write_documents"])
def test_an_interruption_leaves_nothing(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(columns, stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        shoal.publish(
            big,
            out=tmp_path / "out",
            internal=tmp_path / "in.html",
            engine="local",
            method="ranking-dp",
            epsilon=1,
            k=20,
            domains=DOMAINS,
        )
    assert [p.name for p in tmp_path.iterdir()] == ["big.parquet"]
