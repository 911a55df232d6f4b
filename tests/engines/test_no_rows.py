"""A table without rows is released like one with a row wherever the number of rows is private."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run

from .spark_session import session

ASKED: dict[str, Any] = {
    "epsilon": 1,
    "seed": 1,
    "neighbours": "add-remove",
    "schema": shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "a", "lo": 0, "hi": 1000},
                {"name": "b c", "lo": "0.00", "hi": "5.00"},
                {"name": "job", "kind": "nominal", "values": ["cook", "smith"], "missing": "category"},
            ]
        }
    ),
}
METHODS = ("pairs-dp", "tree-dp")
TABLE = pa.table(
    {"a": pa.array([7], pa.int64()), "b c": pa.array([1.25]), "job": pa.array(["cook"], pa.string())}
)
FORMS = ("file", "file without row groups", "folder", "partitions")


def written(form: str, rows: int, folder: Path) -> Path:
    """A table of one row or none, in the ways in which files have none."""
    table, place = TABLE.slice(0, rows), folder / f"{form} {rows}"
    if form == "file":
        place = place.with_suffix(".parquet")
        parquet.write_table(table, place)
    elif form == "file without row groups":
        place = place.with_suffix(".parquet")
        with parquet.ParquetWriter(place, table.schema) as writer:
            if rows:
                writer.write_table(table)
    else:
        below = place / "year=2020" if form == "partitions" else place
        below.mkdir(parents=True)
        parquet.write_table(table.slice(0, 0), below / "0.parquet")
        parquet.write_table(table, below / "1.parquet")
    return place


def outcome(data: Any, out: Path, **asked: Any) -> Any:
    """What others see of a release, but for its rows; or the refusal."""
    try:
        made = shoal.publish(data, out=out, **asked)
    except shoal.ShoalError as error:
        return type(error).__name__, str(error)
    data = made.release.data
    if isinstance(made.folder, Path) and (made.folder / "data").is_dir():
        data = made.folder / "data"
    table = parquet.read_table(data) if isinstance(data, Path) else pa.table(data)
    assert table.num_rows == made.release.internal["rows_released"]
    names = sorted(path.name for path in Path(made.folder).iterdir())
    return made.release.statement, table.schema.remove_metadata(), names, made.warnings


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", ["memory", "local", None])
def test_parquet_on_this_machine(form: str, engine: Any, tmp_path: Path) -> None:
    for method in METHODS:
        none, one = (
            outcome(
                written(form, rows, tmp_path / method / str(rows)),
                tmp_path / method / f"out {rows}",
                engine=engine,
                method=method,
                **ASKED,
            )
            for rows in (0, 1)
            if (tmp_path / method / str(rows)).mkdir(parents=True) is None
        )
        assert none[0].model == "dp"
        assert none == one


def test_a_method_without_an_engine_is_refused_alike(tmp_path: Path) -> None:
    asked = {**ASKED, "neighbours": None, "engine": "local", "method": "mdav-dp"}
    none, one = (outcome(written("file", rows, tmp_path), tmp_path / "out", **asked) for rows in (0, 1))
    assert none == one
    assert none[0] == "OptionError"


# bounds without types: what a column holds must not follow from the one cell that there is
LISTED = {
    "whole numbers": ("7", (0, 10)),
    "whole numbers in texts": ("7", ("0", "10")),
    "codes of two values": ("1", ["0", "1"]),
    "decimal numbers": ("1.25", ("0.00", "5.00")),
    "any numbers": ("1.25", (0.0, 5.0)),
    "powers": ("1500", ("1e3", "2e3")),
    "negative numbers": ("-.5", ("-.75", "+1.5")),
    "words": ("no", ["no", "yes"]),
    "truth values": ("true", ["true", "false"]),
    "days": ("2020-02-03", ("2020-01-01", "2020-12-31")),
    "numbers that are listed": ("2", ["1", "2", "3"]),
}


@pytest.mark.parametrize("listed", LISTED)
def test_csv_without_types(listed: str, tmp_path: Path) -> None:
    cell, domain = LISTED[listed]
    for method in METHODS:
        found = []
        for rows in (0, 1):
            data = tmp_path / "in.csv"
            data.write_text("a,b\n" + f"{cell},3\n" * rows)
            asked: dict[str, Any] = {"epsilon": 1, "seed": 1, "neighbours": "add-remove", "method": method}
            out = tmp_path / f"{method} {rows}"
            found.append(outcome(data, out, domains={"a": domain, "b": (0, 5)}, columns=["a", "b"], **asked))
        assert found[0] == found[1]
        assert (found[0][0] == "OptionError") == (listed == "numbers that are listed")


def test_csv_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for rows in (0, 1):
        Path("in.csv").write_text("a,b\n" + "7,1.25\n" * rows)
        words = ["--epsilon", "1", "--domain", "a=0:10", "--domain", "b=0.00:5.00", "--out", f"out{rows}"]
        assert run(["protect", "in.csv", "--method", "pairs-dp", *words]) == 0
        statement = json.loads(Path(f"out{rows}", "statement.json").read_text())
        # the sentences about noise have drawn numbers in them
        kept = {name: statement[name] for name in ("attributes", "model", "epsilon", "data_dependent")}
        found.append((kept, sorted(statement)))
        assert Path(f"out{rows}", "data.csv").read_text().splitlines()[0] == '"a","b"'
    assert found[0] == found[1]


@pytest.mark.system
@pytest.mark.filterwarnings("ignore::shoal.errors.ExposedWarning")
def test_parquet_and_frames_on_spark(tmp_path: Path) -> None:
    with session("local[2]") as spark:
        for method, form in zip(METHODS, ("folder", "file without row groups"), strict=True):
            found = []
            for rows in (0, 1):
                data = written(form, rows, tmp_path)
                asked = {**ASKED, "method": method}
                found.append(outcome(data, tmp_path / f"{method} {rows}", engine="spark", **asked))
                here = shoal.publish(data, out=tmp_path / f"local {method} {rows}", engine="local", **asked)
                ours = parquet.read_table(tmp_path / f"{method} {rows}" / "data")
                assert ours.equals(parquet.read_table(here.folder / "data.parquet"))
            assert found[0] == found[1]
            assert found[0][0].model == "dp"
        refused = [
            outcome(
                written("file", rows, tmp_path),
                tmp_path / "no",
                engine="spark",
                **{**ASKED, "neighbours": None, "method": "mdav-dp"},
            )
            for rows in (0, 1)
        ]
        assert refused[0] == refused[1]
        assert refused[0][0] == "OptionError"
        frame = spark.read.parquet(str(written("partitions", 1, tmp_path))).drop("year")
        empty = spark.createDataFrame([], frame.schema)
        made = [
            outcome(one, tmp_path / f"frame {number}", method="pairs-dp", **ASKED)
            for number, one in enumerate((frame, frame.where("a > 7"), frame.limit(0), empty))
        ]
        assert all(one == made[0] for one in made)
        assert made[0][0].model == "dp"
    assert not list(tmp_path.glob(".*"))
