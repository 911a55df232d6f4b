"""The bundle: exactly the publishable files, all together or not at all, and nothing private in them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
import shoal.release.bundle
from tests.support.samples import LIBRARIES, frame

BUNDLE = {"statement.json", "method.toml", "log.toml", "report.html"}


def release(data: Any = None, **options: Any) -> shoal.Release:
    if data is None:
        data = pa.table({"a": np.arange(30), "b": np.linspace(0, 1, 30)})
    arguments = {
        "method": "mdav-dp",
        "epsilon": 1,
        "k": 5,
        "domains": {"a": (0, 40), "b": (0.0, 1.0)},
        **options,
    }
    return shoal.protect(data, **arguments)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_are_saved_as_parquet_with_exactly_four_files(library: str, tmp_path: Path) -> None:
    made = release(frame({"a": np.arange(30), "b": np.linspace(0, 1, 30)}, library))
    assert made.save(tmp_path / "out") == tmp_path / "out"
    assert names(tmp_path / "out") == {"data.parquet", *BUNDLE}
    assert names(tmp_path) == {"out"}
    saved = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert saved["a"].to_list() == [int(value) for value in made.data["a"].to_numpy()]


def test_csv_comes_back_as_csv_and_format_can_be_chosen(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    pd.DataFrame({"a": np.arange(30), "b": np.linspace(0, 1, 30)}).to_csv(source, index=False)
    made = release(source)
    made.save(tmp_path / "text")
    made.save(tmp_path / "binary", format="parquet")
    assert names(tmp_path / "text") == {"data.csv", *BUNDLE}
    assert names(tmp_path / "binary") == {"data.parquet", *BUNDLE}
    read = pd.read_csv(tmp_path / "text" / "data.csv")
    assert read["a"].dtype == np.int64
    assert np.allclose(read["b"], made.data["b"].to_numpy())
    with pytest.raises(shoal.OptionError, match="xlsx"):
        made.save(tmp_path / "other", format="xlsx")  # type: ignore[arg-type]


def test_the_index_of_pandas_never_leaves_the_house(tmp_path: Path) -> None:
    people = [f"secret-{i}" for i in range(30)]
    data = pd.DataFrame(
        {"a": np.arange(30), "b": np.linspace(0, 1, 30)}, index=pd.Index(people, name="passport")
    )
    data.attrs["origin"] = "secret-register"
    made = release(data)
    assert list(made.data.index) == list(range(30))
    made.save(tmp_path / "out")
    saved = tmp_path / "out" / "data.parquet"
    assert parquet.read_schema(saved).metadata is None
    assert parquet.read_schema(saved).names == ["a", "b"]
    for path in (tmp_path / "out").iterdir():
        assert b"secret" not in path.read_bytes()
        assert b"passport" not in path.read_bytes()


def test_metadata_of_arrow_fields_never_leaves_the_house(tmp_path: Path) -> None:
    field = pa.field("a", pa.int64(), metadata={"origin": "secret"})
    data = pa.table({"a": np.arange(30)}).cast(pa.schema([field], metadata={"origin": "secret"}))
    release(data, domains={"a": (0, 40)}).save(tmp_path / "out")
    assert b"secret" not in (tmp_path / "out" / "data.parquet").read_bytes()


def test_columns_left_out_are_not_even_named(tmp_path: Path) -> None:
    data = pa.table({"a": np.arange(30), "b": np.linspace(0, 1, 30), "diagnosis": ["x"] * 30})
    made = release(data, columns=["a"], domains={"a": (0, 40)})
    made.save(tmp_path / "out", tmp_path / "internal.html")
    for path in (tmp_path / "out").iterdir():
        assert b"diagnosis" not in path.read_bytes()


@pytest.mark.parametrize("broken", ["public_report", "internal_report"])
def test_failure_in_the_middle_leaves_nothing(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(f"shoal.report.{broken}", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        release().save(tmp_path / "deep" / "out", tmp_path / "inner" / "internal.html")
    assert names(tmp_path) == set()


def test_failure_of_the_last_step_takes_the_internal_report_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(shoal.OutputError, match="Permission denied"):
        release().save(tmp_path / "out", tmp_path / "inner" / "internal.html")
    assert names(tmp_path) == set()


def test_folders_that_were_there_stay_on_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(5, "no")))
    with pytest.raises(shoal.OutputError):
        release().save(tmp_path / "deep" / "new" / "out")
    assert names(tmp_path) == {"deep"}
    assert names(tmp_path / "deep") == set()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "out", tmp_path / "internal.html")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for folder, internal in (("out", None), ("new", "internal.html"), ("internal.html", None)):
        with pytest.raises(shoal.OutputError):
            made.save(tmp_path / folder, None if internal is None else tmp_path / internal)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["out", "out/internal.html", "out/a/b.html", "x/../out/i.html"])
def test_internal_report_inside_the_bundle_is_refused(place: str, tmp_path: Path) -> None:
    with pytest.raises(shoal.OutputError, match="inside the published folder"):
        release().save(tmp_path / "out", tmp_path / place)
    assert names(tmp_path) == set()


def test_internal_report_through_a_link_into_the_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(shoal.OutputError, match="inside the published folder"):
        release().save(tmp_path / "out", tmp_path / "link" / "internal.html")


def test_internal_report_holds_the_private_facts_and_the_bundle_none(tmp_path: Path) -> None:
    data = pa.table({"a": np.append(np.arange(23), [99] * 7), "b": np.linspace(0, 1, 30)})
    made = release(data, outside="clip")
    evaluation = shoal.evaluate(data, made)
    made.save(tmp_path / "out", tmp_path / "internal.html", evaluation=evaluation)
    internal = (tmp_path / "internal.html").read_text("utf-8")
    assert "Do not publish this page" in internal
    assert "Values of a clipped to the domain</th><td>7<" in internal
    assert "sse" in internal
    public = (tmp_path / "out" / "report.html").read_text("utf-8")
    for word in ("clipped", "sse", "Do not publish", "internal"):
        assert word not in public
    assert "clipped" not in (tmp_path / "out" / "statement.json").read_text("utf-8")


def test_statement_on_disk_is_the_statement(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "out")
    written = json.loads((tmp_path / "out" / "statement.json").read_text("utf-8"))
    assert written == made.statement.to_dict()


def test_relative_paths_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    release().save("out", "internal.html")
    assert names(tmp_path) == {"out", "internal.html"}


def test_folder_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = shoal.release.bundle.write

    def slow(*arguments: Any) -> None:
        write(*arguments)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("mine")

    monkeypatch.setattr(shoal.release.bundle, "write", slow)
    with pytest.raises(shoal.OutputError):
        release().save(tmp_path / "out")
    assert names(tmp_path / "out") == {"mine.txt"}
    assert names(tmp_path) == {"out"}
