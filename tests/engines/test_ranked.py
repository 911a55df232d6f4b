"""Moments and swaps of ranks on the local engine: the same rows as in memory with the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.io.binary_files import frozen
from shoal.mechanisms.kanonymity import swap_algorithms
from shoal.mechanisms.moments import sampling
from shoal.release import publication as opening
from shoal.release.in_parts import methods, ranks, tasks, work
from shoal.release.in_parts import methods as moment_method
from shoal.release.in_parts import methods as swap_method
from shoal.release.in_parts import ranks as neighbours
from shoal.release.in_parts.run import table_elsewhere, write_release
from shoal.release.protection import prepare

from .twice import Twice

DOMAINS = {"a": (0, 1000), "b": (-5.0, 5.0), "c": (0.0, 1.0)}
N = 600


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "person_id": pa.array([f"p{i}" for i in range(N)]),
            "a": pa.array(rng.integers(0, 1000, N) // 300 * 300, pa.int32()),
            "b": pa.array(np.clip(rng.normal(size=N), -5, 5)),
            "c": pa.array(rng.random(N).astype(np.float32)),
            "job": pa.array(rng.choice(["clerk", "cook", "smith", None], N)),
        }
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "big.parquet"
    parquet.write_table(people(), path, row_group_size=170)
    return path


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges, blocks, runs and buckets so small that a few hundred rows have many of each."""
    monkeypatch.setattr(sampling, "BLOCK", 32)
    monkeypatch.setattr(tasks, "OUT", 128)
    for module, names in (
        (swap_algorithms, {"BLOCK": 16}),
        (swap_method, {"RANGE": 64}),
        (moment_method, {"RANGE": 64}),
        (neighbours, {"RANGE": 64, "RUN": 50}),
        (work, {"RUN": 50}),
        (methods, {"RUN": 50}),
    ):
        for name, value in names.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(methods, "lay_ranges", lambda h, heavy, size: ranks.lay_ranges(h, heavy, size, 64))
    monkeypatch.setattr(methods, "heavy_positions", lambda h, size=0: ranks.heavy_positions(h, 100))


ATTRIBUTES: list[dict[str, Any]] = [
    {"name": "a", "role": "confidential"},
    {"name": "b", "role": "confidential"},
    {"name": "c", "role": "quasi-identifier"},
    {"name": "job", "kind": "nominal", "role": "confidential", "missing": "category"},
]
SCHEMA = shoal.Schema.from_dict({"attribute": ATTRIBUTES})
MOMENTS: dict[str, Any] = {"epsilon": 1, "k": 20, "domains": DOMAINS, "columns": list(DOMAINS)}
SWAP: dict[str, Any] = {"method": "swap-ranking", "k": 5, "schema": SCHEMA}


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize(
    "asked",
    [
        *({"method": f"xm-{number}", **MOMENTS} for number in range(20, 27)),
        {"method": "xm-22", **MOMENTS, "match": "rank"},
        {"method": "xm-2", **MOMENTS, "partition": "optimal"},
        {"method": "xm-17", **MOMENTS, "partition": "ranking"},
        {"method": "xm-b8", **{**MOMENTS, "epsilon": None}},
        SWAP,
        {**SWAP, "sizes": {"a": 50}, "remainder": "first"},
        {**SWAP, "k": 600},
    ],
    ids=lambda asked: " ".join(str(asked.get(name, "")) for name in ("method", "partition", "match", "k")),
)
def test_same_seed_same_rows_as_in_memory(big: Path, tmp_path: Path, asked: dict[str, Any]) -> None:
    made = shoal.publish(big, out=tmp_path / "out", engine="local", seed=4, **asked)
    expected = shoal.protect(big, seed=4, **asked)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written.schema.equals(expected.data.schema)
    assert rows_of(written) == rows_of(expected.data)
    assert made.engine == "local"
    assert made.release.statement == expected.statement
    assert made.release.internal == expected.internal
    assert not parquet.read_schema(tmp_path / "out" / "data.parquet").metadata
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("asked", [{"method": "xm-25", **MOMENTS}, SWAP], ids=lambda asked: asked["method"])
def test_tasks_that_run_twice_make_the_same_without_a_seed(
    big: Path, tmp_path: Path, asked: dict[str, Any]
) -> None:
    runner = Twice(frozen(big))
    prepared = prepare(table_elsewhere(runner, counted=True), **asked)
    before = Twice.compared
    with runner.working_in(tmp_path / "work"):
        write_release(prepared, runner, tmp_path, lambda *_: None)
    assert Twice.compared > before + 20


def test_rows_that_are_dropped_have_no_rank(tmp_path: Path) -> None:
    table = people()
    gaps = pa.array([None if i % 7 == 0 else i % 90 for i in range(N)], pa.int32())
    parquet.write_table(table.set_column(1, "a", gaps), tmp_path / "in.parquet", row_group_size=100)
    for asked in ({"method": "xm-21", **MOMENTS}, {**SWAP, "schema": None, "columns": ["a", "b", "c"]}):
        out = tmp_path / asked["method"]
        more: dict[str, Any] = {**asked, "missing": "drop", "seed": 2}
        shoal.publish(tmp_path / "in.parquet", out=out, engine="local", **more)
        expected = shoal.protect(tmp_path / "in.parquet", **more)
        assert rows_of(parquet.read_table(out / "data.parquet")) == rows_of(expected.data)


def test_without_a_seed_columns_have_noise_of_their_own(tmp_path: Path) -> None:
    column = np.random.default_rng(0).random(N)
    parquet.write_table(pa.table({"a": column, "b": column}), tmp_path / "twins.parquet")
    asked: dict[str, Any] = {
        "method": "xm-21",
        "epsilon": 10**6,
        "k": 300,
        "domains": dict.fromkeys("ab", (0.0, 1.0)),
    }
    shoal.publish(tmp_path / "twins.parquet", out=tmp_path / "out", engine="local", **asked)
    found = parquet.read_table(tmp_path / "out" / "data.parquet")
    # the noise on means is nothing here: what differs are the rows
    assert (found["a"].to_numpy() == found["b"].to_numpy()).mean() < 0.1
    roles = [{"name": name, "role": "confidential"} for name in "ab"]
    schema = shoal.Schema.from_dict({"attribute": roles})
    asked = {"method": "swap-ranking", "k": 300, "schema": schema}
    shoal.publish(tmp_path / "twins.parquet", out=tmp_path / "swapped", engine="local", **asked)
    swapped = parquet.read_table(tmp_path / "swapped" / "data.parquet")
    assert (swapped["a"].to_numpy() == swapped["b"].to_numpy()).mean() < 0.1


def test_what_takes_memory_says_so_before_anything_is_read(tmp_path: Path) -> None:
    weighted = shoal.Schema.from_dict(
        {"attribute": [*ATTRIBUTES[:2], {"name": "w", "kind": "numeric", "role": "weight"}]}
    )
    for more, words in (
        ({"l": 2}, "l of method 'swap-ranking' merges groups that are far apart; leave it out"),
        ({"strata": ("job",)}, "with strata .* cannot be distributed exactly: use the method without strata"),
        ({"schema": weighted}, "the weights in column 'w' must be read together with every swapped column"),
        ({"method": "swap-mdav"}, "cannot be distributed exactly: use swap-ranking, or engine=memory"),
    ):
        for engine in ("local", "spark"):
            with pytest.raises(shoal.OptionError, match=words):
                shoal.publish(
                    tmp_path / "there is none.parquet",
                    out=tmp_path / "out",
                    engine=engine,  # type: ignore[arg-type]
                    **{**SWAP, **more},
                )
    with pytest.raises(shoal.OptionError, match=r"with strata .* cannot be distributed exactly"):
        shoal.publish(
            tmp_path / "no.parquet", out=tmp_path / "out", engine="local", method="ranking-dp", epsilon=1,
            strata=("job",), link=True,
        )  # fmt: skip


def test_a_large_file_that_its_engine_cannot_take_is_read_as_a_whole(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.engines import profile as look

    monkeypatch.setattr(opening, "_LARGE", 10)
    monkeypatch.setattr(look, "MOST_POSITIONS", 100)
    made = shoal.publish(big, out=tmp_path / "out", method="xm-21", **MOMENTS)
    assert made.engine == "memory"
    with pytest.raises(shoal.OptionError, match="lattice positions"):
        shoal.publish(big, out=tmp_path / "no", engine="local", method="xm-21", **MOMENTS)


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "ranking-dp", "epsilon": 5, "k": 20},
        {"method": "optimal-dp", "epsilon": 5, "k": 20, "columns": ["a", "b", "c"]},
        {"method": "idp-cbls", "epsilon": 5, "k": 5, "floor": "0.001", "columns": ["a", "b", "c"]},
        {"method": "xm-25", "epsilon": 5, "k": 20, "columns": ["a", "b", "c"]},
    ],
    ids=lambda asked: asked["method"],
)
def test_missing_values_stay_missing(asked: dict[str, Any], tmp_path: Path) -> None:
    table = people()
    for place, name in enumerate(("a", "b", "c"), start=1):
        # some rows have no value at all
        gaps = pa.array([i % (place + 2) == 0 for i in range(N)])
        values = pa.array(
            [None if gap.as_py() else v for gap, v in zip(gaps, table[name].to_pylist(), strict=True)]
        )
        table = table.set_column(place, name, values.cast(table.schema.field(name).type))
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=100)
    facts = [{**one, "missing": "separate"} for one in ATTRIBUTES]
    for one in facts[:3]:
        one |= dict(zip(("lo", "hi"), DOMAINS[one["name"]], strict=True))
    facts[3]["values"] = ["clerk", "cook", "smith", "artist"]
    schema = shoal.Schema.from_dict({"attribute": facts})
    made = shoal.publish(
        tmp_path / "in.parquet", schema, out=tmp_path / "out", engine="local", seed=6, **asked
    )
    expected = shoal.protect(tmp_path / "in.parquet", schema, seed=6, **asked)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert written["a"].null_count == N // 3
    assert rows_of(written) == rows_of(expected.data)
    assert made.release.statement == expected.statement
    assert made.release.internal == expected.internal
    few: dict[str, Any] = {**asked, "k": 500}
    with pytest.raises(shoal.OptionError) as memory:
        shoal.protect(tmp_path / "in.parquet", schema, **few)
    with pytest.raises(shoal.OptionError) as parts:
        shoal.publish(tmp_path / "in.parquet", schema, out=tmp_path / "no", engine="local", **few)
    assert "too few rows" in str(parts.value)
    assert str(parts.value) == str(memory.value)
