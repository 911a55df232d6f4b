"""Methods that need a column as a whole are done one column at a time: the same table as in memory, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.release import publish as publishing
from shoal.release.engines import by_column

DOMAINS = {"a": (0, 1000), "b": (-5, 5), "c": (0, 1)}
N = 600


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "person_id": pa.array([f"p{i}" for i in range(N)]),
            "a": pa.array(rng.integers(0, 1000, N), pa.int32()),
            "b": pa.array(np.clip(rng.normal(size=N), -5, 5)),
            "c": pa.array(rng.random(N).astype(np.float32)),
        }
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.parquet"
    parquet.write_table(people(), path, row_group_size=170)
    return path


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_column, "_ROWS", 251)


ATTRIBUTES: list[dict[str, Any]] = [
    {"name": "a", "role": "quasi-identifier"},
    {"name": "b", "role": "confidential"},
    {"name": "c", "role": "confidential"},
]
SCHEMA = shoal.Schema.from_dict({"attribute": ATTRIBUTES})
MOMENTS: dict[str, Any] = {"epsilon": 1, "k": 20, "domains": DOMAINS, "columns": list(DOMAINS)}
SWAP: dict[str, Any] = {"method": "swap-ranking", "k": 5, "schema": SCHEMA}


@pytest.mark.parametrize(
    "asked",
    [
        *({"method": f"xm-{number}", **MOMENTS} for number in range(20, 27)),
        {"method": "xm-22", **MOMENTS, "match": "rank"},
        {"method": "xm-2", **MOMENTS, "partition": "optimal"},
        SWAP,
        {**SWAP, "l": 3},
    ],
    ids=lambda asked: " ".join(str(asked.get(name, "")) for name in ("method", "partition", "match", "l")),
)
def test_same_seed_same_table_as_in_memory(big: Path, tmp_path: Path, asked: dict[str, Any]) -> None:
    made = shoal.publish(big, out=tmp_path / "out", engine="local", seed=4, **asked)
    expected = shoal.protect(big, seed=4, **asked)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written.equals(expected.data)
    assert made.engine == "local"
    assert made.release.statement == expected.statement
    assert made.release.internal == expected.internal
    assert not parquet.read_schema(tmp_path / "out" / "data.parquet").metadata
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert ".work" not in [p.name for p in (tmp_path / "out").iterdir()]


def test_without_a_seed_columns_have_noise_of_their_own(tmp_path: Path) -> None:
    column = np.random.default_rng(0).random(N)
    parquet.write_table(pa.table({"a": column, "b": column}), tmp_path / "twins.parquet")
    asked: dict[str, Any] = {"method": "xm-21", "epsilon": 1, "k": 20, "domains": dict.fromkeys("ab", (0, 1))}
    shoal.publish(tmp_path / "twins.parquet", out=tmp_path / "out", engine="local", **asked)
    found = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert found["a"].to_pylist() != found["b"].to_pylist()


def test_a_folder_of_files_and_an_internal_report(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for part, start in enumerate((0, 250)):
        parquet.write_table(people()[start : (250, N)[part]], tmp_path / "in" / f"{part}.parquet")
    report = tmp_path / "in.html"
    shoal.publish(
        tmp_path / "in",
        out=tmp_path / "out",
        internal=report,
        engine="local",
        method="xm-21",
        seed=4,
        **MOMENTS,
    )
    whole = shoal.protect(people(), method="xm-21", seed=4, **MOMENTS)
    assert parquet.read_table(tmp_path / "out" / "data.parquet").equals(whole.data)
    assert "600 rows" in report.read_text("utf-8")


def test_a_cluster_cannot_do_it(tmp_path: Path) -> None:
    for method in ("xm-21", "swap-ranking"):
        with pytest.raises(
            shoal.OptionError, match=r"all values of a column on one machine.*engine=local\.$"
        ):
            shoal.publish(
                tmp_path / "there is none.parquet", out=tmp_path / "out", engine="spark", method=method
            )


def test_names_take_the_table_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "named.parquet"
    parquet.write_table(people().append_column("job", pa.array(["clerk", "cook"] * (N // 2))), path)
    job = {"name": "job", "kind": "nominal", "role": "confidential"}
    named = shoal.Schema.from_dict({"attribute": [*ATTRIBUTES, job]})
    asked: dict[str, Any] = {**SWAP, "schema": named, "seed": 1}
    with pytest.raises(
        shoal.OptionError, match=r"one column at a time: nominal columns .*use engine=memory\."
    ):
        shoal.publish(path, out=tmp_path / "out", engine="local", **asked)
    assert not (tmp_path / "out").exists()
    # a large file is read as a whole where nobody asked for the engine
    monkeypatch.setattr(publishing, "_LARGE", 10)
    made = shoal.publish(path, out=tmp_path / "out", **asked)
    assert made.engine == "memory"
    assert parquet.read_table(tmp_path / "out" / "data.parquet").equals(shoal.protect(path, **asked).data)


def test_a_file_that_changes_ends_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, big: Path
) -> None:
    path = tmp_path / "in.parquet"
    path.write_bytes(big.read_bytes())
    shuffled = by_column._shuffled

    def changing(*arguments: Any) -> None:
        parquet.write_table(people()[1:], path)
        shuffled(*arguments)

    monkeypatch.setattr(by_column, "_shuffled", changing)
    with pytest.raises(shoal.InputError, match="changed"):
        shoal.publish(path, out=tmp_path / "out", engine="local", method="xm-21", **MOMENTS)
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]
