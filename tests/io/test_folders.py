"""Folders of Parquet files: one table for every command, and no table whose log says that rows were deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.io import read
from shoal.io.binary_files import frozen

DOMAINS = {"age": (0, 120), "pay": (0, 1000)}
ASKED: dict[str, Any] = {"method": "ranking-dp", "epsilon": 1, "k": 10, "domains": DOMAINS}
LOGS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00001-b2a0.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}


def rows(start: int, count: int = 40) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table({"age": numbers % 90, "pay": numbers * 7 % 1000})


def folder(place: Path, *tables: pa.Table) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        parquet.write_table(table, place / f"part-{number}.parquet")
    return place


def refused(line: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(line) == 2
    told = capsys.readouterr().err
    assert len(told.strip().splitlines()) == 1
    return told


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("where", ["table", "table/data", "table/data/year=2020", "file", "above"])
@pytest.mark.parametrize("engine", [None, "local", "memory", "spark"])
def test_a_table_whose_log_deletes_rows_is_refused_and_nothing_is_written(
    name: str, where: str, engine: Any, tmp_path: Path
) -> None:
    parts = folder(tmp_path / "lake" / "table" / "data" / "year=2020", rows(0))
    log = tmp_path / "lake" / "table" / LOGS[name]
    log.parent.mkdir()
    log.write_text("{}")
    data = {"file": parts / "part-0.parquet", "above": tmp_path / "lake"}.get(
        where, tmp_path / "lake" / where
    )
    with pytest.raises(shoal.InputError) as error:
        shoal.publish(data, out=tmp_path / "out", engine=engine, **ASKED)
    assert f"/lake/table' is a {name} table, whose files still contain deleted rows" in str(error.value)
    assert "write the version to release as plain Parquet files" in str(error.value)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_every_command_refuses_such_a_table_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = folder(tmp_path / "table", rows(0))
    (data / "_delta_log").mkdir()
    plain = str(folder(tmp_path / "plain", rows(0)))
    for line in (
        ["protect", str(data), "--epsilon", "1", "--out", str(tmp_path / "out")],
        ["risk", str(data), "--keys", "age"],
        ["schema", str(data)],
        ["tune", str(data), "--epsilon", "1", "--domain", "age=0:120"],
        ["check", str(data), "--quasi", "age"],
        ["evaluate", str(data), plain],
        ["evaluate", plain, str(data)],
    ):
        assert "is a Delta table" in refused(line, capsys)


def test_columns_in_another_order_and_narrower_numbers_are_read(tmp_path: Path) -> None:
    wide = rows(0)
    narrow = pa.table({"pay": pa.array([5, None], pa.int32()), "age": pa.array([7, 8], pa.uint16())})
    empty = pa.table({"age": pa.array([33], pa.int8()), "pay": pa.nulls(1)})
    data = folder(tmp_path / "in", narrow, wide, empty)
    found = read(data)
    assert found.names == ("pay", "age")
    assert [str(found.dtype(name)) for name in found.names] == ["Int64", "Int64"]
    assert found.series("age").to_list() == [7, 8, *wide["age"].to_pylist(), 33]
    assert found.series("pay").to_list() == [5, None, *wide["pay"].to_pylist(), None]
    asked = {**ASKED, "missing": "drop", "seed": 1}
    here = shoal.publish(data, out=tmp_path / "local", engine="local", **asked)
    shoal.publish(data, out=tmp_path / "memory", engine="memory", **asked)
    parts, whole = (parquet.read_table(tmp_path / name / "data.parquet") for name in ("local", "memory"))
    assert sorted(map(str, parts.to_pylist())) == sorted(map(str, whole.to_pylist()))
    assert here.engine == "local"


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (
            pa.table({"age": [1], "pay": [2], "town": ["A"]}),
            ("part-1.parquet' has a column 'town'", "drop it"),
        ),
        (pa.table({"age": [1]}), ("part-0.parquet' has a column 'pay'", "part-1.parquet' does not")),
        (
            pa.table({"age": [1], "pay": ["2"]}),
            ("column 'pay' is string in '", "part-1.parquet' but int64", "convert it to one type"),
        ),
        (
            pa.table({"age": [1], "pay": [2.5]}),
            ("column 'pay' is double in '", "part-1.parquet' but int64", "convert it to one type"),
        ),
    ],
    ids=["one more", "one less", "text", "decimal"],
)
@pytest.mark.parametrize("engine", ["local", "memory"])
def test_other_columns_are_named_with_their_file(
    second: pa.Table, words: tuple[str, ...], engine: Any, tmp_path: Path
) -> None:
    data = folder(tmp_path / "in", rows(0), second)
    with pytest.raises(shoal.InputError) as error:
        shoal.publish(data, out=tmp_path / "out", engine=engine, **ASKED)
    for word in words:
        assert word in str(error.value)


def test_the_default_partition_is_a_missing_value(tmp_path: Path) -> None:
    for name in ("2019", "2020", "__HIVE_DEFAULT_PARTITION__"):
        folder(
            tmp_path / "in" / f"year={name}", pa.table({"age": [int(name[:2]) if name[0] == "2" else 3] * 20})
        )
    found = read(tmp_path / "in")
    assert found.is_integer("year")
    assert found.series("year").to_list() == [2019] * 20 + [2020] * 20 + [None] * 20
    asked: dict[str, Any] = {**ASKED, "domains": {"age": (0, 120), "year": (2000, 2030)}}
    with pytest.raises(shoal.InputError, match="'year' has missing values, the first in row 41:"):
        shoal.publish(tmp_path / "in", out=tmp_path / "out", engine="local", **asked)
    made = shoal.publish(tmp_path / "in", out=tmp_path / "out", engine="local", missing="drop", **asked)
    assert made.release.internal["rows_released"] == 40


def test_a_number_in_the_name_of_a_folder_may_be_a_long_one(tmp_path: Path) -> None:
    for number in (1, 3_000_000_000):
        folder(tmp_path / "in" / f"person={number}", pa.table({"age": [5]}))
    assert read(tmp_path / "in").series("person").to_list() == [1, 3_000_000_000]
    assert str(frozen(tmp_path / "in").schema.field("person").type) == "int64"


@pytest.mark.parametrize("engine", [None, "local", "memory"])
def test_a_corrupt_page_names_its_file_before_anything_is_charged(
    engine: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = folder(tmp_path / "in", rows(0, 400), rows(400, 400))
    broken = data / "part-1.parquet"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:60] + bytes(300) + whole[360:])
    ledger = tmp_path / "ledger.sqlite"
    assert run(["ledger", "open", str(ledger), "people", "--epsilon", "10"]) == 0
    with pytest.raises(
        shoal.InputError, match=r"part-1\.parquet' cannot be read as Parquet \(.*\): restore it"
    ):
        shoal.publish(
            data, out=tmp_path / "out", engine=engine, ledger=str(ledger), dataset="people", **ASKED
        )
    capsys.readouterr()
    assert run(["ledger", "export", str(ledger)]) == 0
    assert '"kind": "release"' not in capsys.readouterr().out


def test_risk_schema_tune_and_protect_take_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = folder(tmp_path / "in", rows(0), rows(40))
    whole = pa.concat_tables([rows(0), rows(40)])
    parquet.write_table(whole, tmp_path / "whole.parquet")
    ours, theirs = (shoal.risk(source, quasi_identifiers="age") for source in (data, whole))
    assert ours.fk.tolist() == theirs.fk.tolist()
    assert shoal.Schema.infer(data) == shoal.Schema.infer(whole)
    one, other = (shoal.protect(source, seed=3, **{**ASKED, "method": "mdav-dp"}) for source in (data, whole))
    assert one.data.equals(other.data)
    tuned = [
        shoal.tune(source, epsilon=1, methods=["ranking-dp"], ks=[5, 20], domains=DOMAINS, fast=True).best
        for source in (data, whole)
    ]
    assert tuned[0] == tuned[1]
    for line in (
        ["risk", "--keys", "age", "--json"],
        ["schema"],
        ["tune", "--domain", "age=0:120", "--domain", "pay=0:1000", "--epsilon", "1", "--fast", "--json"],
    ):
        said = []
        for source in (data, tmp_path / "whole.parquet"):
            assert run([line[0], str(source), *line[1:]]) == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]


def test_the_way_out_to_memory_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = pa.array(["?", *(["x", "y"] * 20)][:40])
    data = folder(tmp_path / "in", rows(1).append_column("town", texts))
    schema = tmp_path / "schema.toml"
    shoal.Schema.from_dict(
        {
            "attribute": [{"name": "age", "role": "quasi-identifier"}, {"name": "pay", "lo": 0, "hi": 1000}],
            "step": [{"recode": "age", "breaks": [-1, 40, 120]}],
        }
    ).save(schema)
    released = str(folder(tmp_path / "released", rows(1)))
    for line in (
        ["check", str(data), "--quasi", "age,town", "--weight", "pay", "--na", "?"],
        ["check", str(data), "--schema", str(schema), "--weight", "pay"],
        ["evaluate", str(data), released, "--same-order", "--na", "?"],
        ["protect", str(data), "--method", "mdav-dp", "--epsilon", "1", "--k", "5", "--domain", "age=0:120",
         "--columns", "age", "--out", str(tmp_path / "out")],
    ):  # fmt: skip
        assert "use --engine memory" in refused([*line, "--engine", "local"], capsys).replace(
            "or --", "use --"
        )
        assert run([*line, "--engine", "memory"]) in (0, 1), capsys.readouterr().err
    made = shoal.publish(
        data,
        out=tmp_path / "by itself",
        method="mdav-dp",
        epsilon=1,
        k=5,
        domains={"age": (0, 120)},
        columns=["age"],
    )
    assert made.engine == "memory"
    assert json.loads((tmp_path / "out" / "statement.json").read_text())["model"] == "dp-given-partition"
