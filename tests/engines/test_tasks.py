"""Tasks run twice make the same bytes, and none of them can reach the operating system's entropy."""

from __future__ import annotations

import ast
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
import shoal.mechanisms.pairs.model as drawing
from shoal.engines import staging
from shoal.engines.runner import Sealed
from shoal.io.binary_files import frozen
from shoal.noise import Seeded, discrete_laplace, source
from shoal.noise.entropy import Keyed, computed_again, fresh_key
from shoal.release.in_parts.run import table_elsewhere, write_release
from shoal.release.in_parts.tasks import Permutation
from shoal.release.protection import prepare

from .twice import Twice

SHOAL = Path(shoal.__file__).parent
# who makes keys and starts sessions works on the driver; everything else is sent to tasks
ON_THE_DRIVER = {"engines/spark.py", "engines/staging.py", "release/in_parts/work.py"}
KINDS = pa.table(
    {
        "age": pa.array([30, 41, None, 55, 67, 30] * 60, pa.int32()),
        "size": ["S", "M", "L", "L", "M", None] * 60,
        "day": pa.array(np.datetime64("2020-01-01") + np.arange(360) % 300),
        "job": ["clerk", "cook", "smith"] * 120,
        "person": [f"p{i // 2}" for i in range(360)],
    }
)
SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "age", "kind": "numeric", "lo": 0, "hi": 120, "type": "integer", "missing": "category"},
            {"name": "size", "kind": "ordinal", "ordered": ["S", "M", "L"], "missing": "category"},
            {"name": "day", "kind": "date", "lo": "2020-01-01", "hi": "2020-12-31"},
            {"name": "job", "kind": "nominal", "values": ["clerk", "cook", "smith", "artist"]},
            {"name": "person", "kind": "nominal", "role": "unit", "max_rows": 2},
        ]
    }
)


@pytest.mark.parametrize("method", ["laplace", "tree-dp", "pairs-dp"])
def test_all_kinds_of_columns_by_tasks_that_run_twice(method: str, tmp_path: Path) -> None:
    parquet.write_table(KINDS, tmp_path / "kinds.parquet", row_group_size=100)
    runner = Twice(frozen(tmp_path / "kinds.parquet"))
    # ε = 3 for each of the two rows of a person
    asked: dict[str, Any] = {"schema": SCHEMA, "method": method, "epsilon": 6, "seed": 2}
    prepared = prepare(table_elsewhere(runner, counted=method != "laplace"), **asked)
    before = Twice.compared
    with runner.working_in(tmp_path / "work"):
        written, made = write_release(prepared, runner, tmp_path, lambda *_: None)
    assert Twice.compared > before + 3
    expected = shoal.protect(tmp_path / "kinds.parquet", **asked)
    found = parquet.read_table(written)
    said = prepared.drawn(made.conditions, found.num_rows).statement
    assert said.to_dict() == expected.statement.to_dict()
    assert found.schema.equals(expected.data.schema)
    if method != "laplace":
        ours, theirs = (sorted(map(str, table.to_pylist())) for table in (found, expected.data))
        assert ours == theirs
    assert made.internal["values_clipped"] == expected.internal["values_clipped"]
    assert found["age"].null_count > 0


def test_joint_tails_are_those_of_memory(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    size = np.where(random.random(900) < 0.03, 40.0, 1.0)
    table = pa.table({name: np.minimum(size * random.lognormal(1, 0.4, 900), 1000) for name in "abc"})
    parquet.write_table(table, tmp_path / "heavy.parquet", row_group_size=300)
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": name, "lo": 0.0, "hi": 1000.0} for name in "abc"]}
    )
    asked: dict[str, Any] = {"schema": schema, "epsilon": 400, "rows": 900, "seed": 2}
    with mock.patch.object(drawing, "exchanged", wraps=drawing.exchanged) as exchanged:
        expected = shoal.protect(tmp_path / "heavy.parquet", **asked).data
    assert exchanged.called
    shoal.publish(tmp_path / "heavy.parquet", out=tmp_path / "out", engine="local", **asked)
    found = parquet.read_table(tmp_path / "out" / "data.parquet")
    ours, theirs = (sorted(map(str, one.to_pylist())) for one in (found, expected))
    assert ours == theirs


def test_names_in_rank_groups_and_names_taken_from_the_records(tmp_path: Path) -> None:
    parquet.write_table(KINDS.select(["job"]), tmp_path / "jobs.parquet", row_group_size=100)
    asked: dict[str, Any] = {"method": "ranking-dp", "k": 7, "epsilon": 20, "seed": 5, "columns": ["job"]}
    made = shoal.publish(tmp_path / "jobs.parquet", out=tmp_path / "out", engine="local", **asked)
    expected = shoal.protect(tmp_path / "jobs.parquet", **asked)
    assert made.release.statement == expected.statement
    assert "taken from the records" in str(made.release.statement.data_dependent)
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert sorted(written["job"].to_pylist()) == sorted(expected.data["job"].to_pylist())


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("age", pa.array([1.0] * 250 + [np.inf] + [2.0] * 109), "infinite value in row 251"),
        (
            "age",
            pa.array([5] * 120 + [400] * 3 + [7] * 237),
            "some values of column 'age' lie outside 0:120: widen",
        ),
        (
            "size",
            pa.array(["S"] * 300 + ["XL"] * 60),
            "has the value 'XL' in row 301, which its declared order does not include",
        ),
        ("job", pa.array(["cook"] * 222 + ["baker"] * 138), "'baker'"),
        (
            "person",
            pa.array(["p"] * 3 + [f"q{i}" for i in range(357)]),
            "a unit has more rows than the declared",
        ),
        (
            "person",
            pa.array([None] + [f"q{i}" for i in range(359)]),
            "has missing values: give the unit of every row",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_records_are_told_in_the_same_words(
    column: str, values: pa.Array, words: str, tmp_path: Path
) -> None:
    wrong = KINDS.set_column(KINDS.column_names.index(column), column, values)
    parquet.write_table(wrong, tmp_path / "wrong.parquet", row_group_size=100)
    asked: dict[str, Any] = {
        "method": "laplace",
        "epsilon": 1,
        "types": {"age": "decimal"} if column == "age" else None,
    }
    with pytest.raises(shoal.ShoalError) as memory:
        shoal.protect(tmp_path / "wrong.parquet", SCHEMA, **asked)
    with pytest.raises(shoal.ShoalError) as parts:
        shoal.publish(tmp_path / "wrong.parquet", SCHEMA, out=tmp_path / "out", engine="local", **asked)
    assert words in str(parts.value)
    assert str(parts.value) == str(memory.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_partitions_is_one_table(tmp_path: Path) -> None:
    for year in (2019, 2020):
        for part in range(2):
            place = tmp_path / "in" / f"year={year}" / "region=Nörd öst"
            place.mkdir(parents=True, exist_ok=True)
            parquet.write_table(pa.table({"age": [year % 100 + part] * 50}), place / f"{part}.parquet")
    (tmp_path / "in" / "_SUCCESS").touch()
    asked: dict[str, Any] = {
        "domains": {"age": (0, 120), "year": (2000, 2030)},
        "method": "ranking-dp",
        "k": 50,
    }
    made = shoal.publish(tmp_path / "in", out=tmp_path / "out", epsilon=10**6, **asked)
    assert made.engine == "local"
    rows = parquet.read_table(tmp_path / "out" / "data.parquet").to_pylist()
    assert {(row["year"], row["age"]) for row in rows} == {(2019, 19), (2019, 20), (2020, 20), (2020, 21)}
    with pytest.raises(shoal.OptionError, match=r"cannot be distributed exactly: .* or engine=memory\.$"):
        shoal.publish(tmp_path / "in", out=tmp_path / "no", method="mdav-dp", epsilon=1, engine="local")
    parquet.write_table(
        pa.table({"other": [1]}), tmp_path / "in" / "year=2020" / "region=Nörd öst" / "9.parquet"
    )
    with pytest.raises(shoal.InputError, match=r"9\.parquet' has a column 'other', but '.*' does not"):
        shoal.publish(tmp_path / "in", out=tmp_path / "no", epsilon=1, **asked)


def test_a_file_that_changes_ends_the_release(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"age": [1] * 100}), path)

    def changing(what: str, done: int, total: int) -> None:
        if what == "drawing noise":
            parquet.write_table(pa.table({"age": [1] * 101}), path)

    with pytest.raises(shoal.InputError, match="changed during the release"):
        shoal.publish(
            path, out=tmp_path / "out", engine="local", method="ranking-dp", k=10, epsilon=1,
            domains={"age": (0, 9)}, progress=changing,
        )  # fmt: skip
    assert [one.name for one in tmp_path.iterdir()] == ["in.parquet"]


def test_a_key_gives_the_same_words_again_and_other_content_gives_others() -> None:
    key = fresh_key()
    noise = [discrete_laplace(50, 400, key.child("records", content)) for content in (b"a", b"a", b"b")]
    assert (noise[0] == noise[1]).all()
    assert (noise[0] != noise[2]).mean() > 0.9
    parts = [key.child("ab", 1), key.child("a", b"b", 1), key.child("ab", b"1"), key.child("ab", 1, 1)]
    assert len({part.words(2).tobytes() for part in parts}) == 4
    assert not key.reproducible
    assert "ab" not in repr(key)
    with pytest.raises(TypeError, match="send a child"):
        pickle.dumps(parts[0])
    again = pickle.loads(pickle.dumps(Keyed(bytes(range(32)))))
    assert (again.words(9) == Keyed(bytes(range(32))).words(9)).all()
    mixed, whole = Keyed(bytes(32)), Keyed(bytes(32)).words(5000)
    assert (np.concatenate([mixed.words(n) for n in (1, 700, 3000, 1299)]) == whole).all()


def test_tasks_cannot_reach_the_systems_entropy() -> None:
    def naive(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pa.array(source(None).words(batch.num_rows))], names=["noise"])

    batch = pa.record_batch([pa.array([1, 2])], names=["a"])
    assert len(list(naive(iter([batch])))) == 1
    with pytest.raises(RuntimeError, match="may be run again asked for the operating system's entropy"):
        list(Sealed(naive)(iter([batch])))
    assert source(None).words(1).size == 1
    with computed_again(), computed_again(), pytest.raises(RuntimeError):
        source(None).words(1)


def forbidden_names(path: Path) -> set[str]:
    """Names in a module by which fresh randomness could come in."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            found |= {alias.name for alias in node.names} | {module}
            found |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
    return found & {
        "os", "secrets", "random", "uuid", "urandom", "default_rng", "SystemEntropy", "fresh_key", "uuid4",
        "shoal.noise.source", "shoal.noise.entropy.source", "token_bytes", "getrandom",
    }  # fmt: skip


def test_no_task_module_names_a_source_of_fresh_randomness(tmp_path: Path) -> None:
    modules = [
        path
        for folder in ("engines", "release/in_parts")
        for path in (SHOAL / folder).glob("*.py")
        if path.relative_to(SHOAL).as_posix() not in ON_THE_DRIVER
    ]
    known = {"tasks.py", "ranks.py", "profile.py", "runner.py"}
    assert known <= {path.name for path in modules}
    for path in modules:
        assert not forbidden_names(path), path.name
    broken = tmp_path / "tasks.py"
    for line in (
        "import os",
        "from shoal.noise import source",
        "import numpy as np; np.random.default_rng()",
    ):
        broken.write_text(line)
        assert forbidden_names(broken)


@pytest.mark.parametrize("rows", [1, 2, 3, 37, 1000])
@pytest.mark.parametrize("few", [0, 1 << 18])
def test_an_order_is_a_permutation_that_any_part_of_it_agrees_with(rows: int, few: int) -> None:
    order = Permutation.drawn(rows, Seeded(rows), few)
    whole = order.of(np.arange(rows))
    assert (np.sort(whole) == np.arange(rows)).all()
    some = np.arange(rows)[::3]
    assert (order.of(some) == whole[::3]).all()


def test_orders_are_spread_evenly() -> None:
    """Where a row goes, in 2,000 networks of 64 rows: chi-squared with a false alarm in 10^9."""
    from scipy.stats import chi2

    def unlikely(places: np.ndarray[Any, Any]) -> bool:
        cells = np.bincount(places, minlength=64)
        expected = places.size / 64
        return bool(chi2.sf(((cells - expected) ** 2 / expected).sum(), 63) < 1e-9)

    drawn = np.array([Permutation.drawn(64, Seeded(seed), 0).of(np.array([0, 63])) for seed in range(2000)])
    assert not unlikely(drawn[:, 0])
    assert not unlikely(drawn[:, 1])
    # a network of one round leaves half of the bits alone
    assert unlikely(drawn[:, 0] & 7)


def test_what_a_killed_driver_left_is_removed(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"age": [1] * 100}), tmp_path / "in.parquet")
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    left = {}
    for name, process in (("dead", int(gone.stdout)), ("alive", staging.os.getpid())):
        left[name] = tmp_path / f".out.partial-{name}"
        staging.claim(left[name] / staging.WORK)
        owner = json.loads((left[name] / staging.WORK / "owner.json").read_text())
        (left[name] / staging.WORK / "owner.json").write_text(json.dumps({**owner, "process": process}))
    shoal.publish(
        tmp_path / "in.parquet", out=tmp_path / "out", engine="local", method="laplace", epsilon=1,
        domains={"age": (0, 9)},
    )  # fmt: skip
    assert not left["dead"].exists()
    assert left["alive"].exists()


def test_what_spark_cannot_freeze_is_refused_with_a_reason(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    asked: dict[str, Any] = {"out": tmp_path / "out", "method": "laplace", "epsilon": 1}
    with pytest.raises(
        shoal.OptionError, match=r"through a DataFrame: pass spark.read.parquet\('s3a://a/b'\)"
    ):
        shoal.publish("s3a://a/b", engine="spark", **asked)
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(
        shoal.OptionError, match=r"does not support Spark Connect: .* use a session of the cluster"
    ):
        shoal.protect(remote, work=tmp_path / "out", method="laplace", epsilon=1)
    parquet.write_table(pa.table({"age": [1]}), tmp_path / "in.parquet")
    with pytest.raises(shoal.OptionError, match=r"conf must be a Spark setting, got .*: write it as"):
        shoal.publish(tmp_path / "in.parquet", engine="spark", conf=["memory=4g"], **asked)
    assert not (tmp_path / "out").exists()
