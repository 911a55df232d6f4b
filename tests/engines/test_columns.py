"""A table in parts is released as in memory: same values, same statement, same messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.engines import runner
from shoal.release.in_parts import methods, ranks, run, tasks, work

DOMAINS = {"a b": (0, 1000), "größe": (-5.0, 5.0), "x.y": (0.0, 50.0), "x": (0.0, 1.0)}
N = 5000


def people() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "person_id": pa.array([f"p{i}" for i in range(N)]),
            "a b": pa.array(rng.integers(0, 1000, N), pa.int32()),
            "größe": pa.array(np.clip(rng.normal(size=N), -5, 5)),
            "x.y": pa.array(np.minimum(rng.exponential(9, N), 50).astype(np.float32)),
            "x": pa.array(np.where(rng.random(N) < 0.6, 0.25, rng.random(N))),
        }
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.parquet"
    parquet.write_table(people(), path, row_group_size=700)
    return path


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches, ranges, heavy positions, released blocks and bucket files, as a large table has them."""
    monkeypatch.setattr(runner, "BATCH", 333)
    monkeypatch.setattr(runner, "_WAITING", 5000)
    monkeypatch.setattr(tasks, "OUT", 999)
    for module in (methods, work):
        monkeypatch.setattr(module, "RUN", 256)
    monkeypatch.setattr(methods, "lay_ranges", lambda h, heavy, size: ranks.lay_ranges(h, heavy, size, 800))
    monkeypatch.setattr(methods, "heavy_positions", lambda h: ranks.heavy_positions(h, 1000))
    monkeypatch.setattr("shoal.mechanisms.tree.sample.BLOCK", 512)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(
        zip(*(column.to_pylist() for column in table.columns), strict=True),
        key=lambda row: [(value is None, value) for value in row],
    )


def released(data: Path, out: Path, **arguments: Any) -> shoal.Published:
    return shoal.publish(data, out=out, engine="local", **{"epsilon": 1, "seed": 4, **arguments})


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "ranking-dp", "k": 20},
        {"method": "ranking-dp", "k": 20, "noise": "staircase"},
        {"method": "idp-ls"},
        {"method": "idp-cbls", "k": 5, "floor": "0.001"},
        {"method": "optimal-dp", "k": 40},
        {"method": "tree-dp"},
        {"method": "tree-dp", "neighbours": "add-remove", "rebuild": "normal"},
    ],
    ids=str,
)
def test_same_seed_same_rows_as_in_memory(big: Path, tmp_path: Path, arguments: dict[str, Any]) -> None:
    made = released(big, tmp_path / "out", domains=DOMAINS, **arguments)
    names = list(DOMAINS)
    expected = shoal.protect(big, columns=names, epsilon=1, domains=DOMAINS, seed=4, **arguments)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written.schema.equals(expected.data.schema)
    assert rows(written) == rows(expected.data)
    # in random order, and not in the order of the records or of the draws
    assert written.num_rows < 100 or not written.equals(expected.data)
    ours, theirs = made.release, expected
    assert ours.statement == theirs.statement
    for facts in ("values_clipped", "clusters", "clusters_without_noise"):
        assert ours.internal.get(facts) == theirs.internal.get(facts)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    # the noisy numbers behind the rows are the same, and only some methods have them
    assert ours.measurements == theirs.measurements
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "data.parquet",
        "log.toml",
        *([] if theirs.measurements is None else ["measurements.json"]),
        "method.toml",
        "report.html",
        "statement.json",
    ]
    assert not parquet.read_schema(tmp_path / "out" / "data.parquet").metadata


def test_columns_that_are_not_linked_have_the_same_values_each(big: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "method": "ranking-dp",
        "k": 20,
        "link": False,
        "remainder": "last",
        "split": "optimal",
    }
    made = released(big, tmp_path / "out", domains=DOMAINS, missing="drop", **asked)
    expected = shoal.protect(
        big, columns=list(DOMAINS), epsilon=1, domains=DOMAINS, seed=4, missing="drop", **asked
    )
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    for name in DOMAINS:
        assert sorted(written[name].to_pylist()) == sorted(expected.data[name].to_pylist())
    assert rows(written) != rows(expected.data)
    assert made.release.statement.model == expected.statement.model == "dp"


def test_noise_of_single_records_is_that_of_the_method(big: Path, tmp_path: Path) -> None:
    """Drawn batch by batch: not the same draws as in memory, but the same rows of noise sizes."""
    made = released(big, tmp_path / "out", domains=DOMAINS, method="laplace", epsilon=10**6)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    expected = shoal.protect(
        big, columns=list(DOMAINS), domains=DOMAINS, method="laplace", epsilon=10**6, seed=4
    )
    assert made.release.statement == expected.statement
    # with an ε like this there is hardly any noise
    assert sorted(written["a b"].to_pylist()) == sorted(people()["a b"].to_pylist())
    again = released(big, tmp_path / "again", domains=DOMAINS, method="laplace", epsilon=10**6)
    assert parquet.read_table(again.folder / "data.parquet").equals(written)


def test_rows_with_gaps_can_be_dropped(tmp_path: Path) -> None:
    holes = pa.array([None if i % 7 == 0 else 0.5 for i in range(N)])
    parquet.write_table(people().set_column(4, "x", holes), tmp_path / "gaps.parquet", row_group_size=700)
    asked: dict[str, Any] = {"method": "ranking-dp", "k": 20, "domains": DOMAINS}
    with pytest.raises(shoal.InputError, match="'x' has missing values, the first in row 1:"):
        released(tmp_path / "gaps.parquet", tmp_path / "out", **asked)
    made = released(tmp_path / "gaps.parquet", tmp_path / "out", missing="drop", **asked)
    expected = shoal.protect(
        tmp_path / "gaps.parquet", columns=list(DOMAINS), missing="drop", seed=4, epsilon=1, **asked
    )
    assert rows(parquet.read_table(tmp_path / "out" / "data.parquet")) == rows(expected.data)
    assert made.release.internal["rows_released"] == expected.data.num_rows == N - 715


@pytest.mark.parametrize("method", ["mdav-dp", "insensitive-dp", "k-anonymity", "xm-4"])
def test_methods_that_compare_records_are_refused_before_anything_is_read(
    method: str, tmp_path: Path
) -> None:
    with pytest.raises(
        shoal.OptionError, match=r"cannot be distributed exactly: use .*, or engine=memory\.$"
    ):
        shoal.publish(tmp_path / "there is none.parquet", out=tmp_path / "out", engine="local", method=method)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stage", ["write_release", "read_columnwise", "write_documents"])
def test_an_interruption_leaves_nothing(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        released(big, tmp_path / "out", internal=tmp_path / "in.html", domains=DOMAINS, method="ranking-dp")
    assert not list(tmp_path.iterdir())
