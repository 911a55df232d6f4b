"""The internal page of a saved release: compared with its original, on a sample where tables are large."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.evaluation.assessment import verdict
from shoal.evaluation.pair import excerpt, released_rows, some_rows
from shoal.io import Table, read, write
from shoal.release import bundle as sources
from shoal.report import findings, internal_report
from tests.support.samples import LIBRARIES, frame

COMPARED = (
    "Quantiles, released against original",
    "Difference, released minus original",
    "unprotected",
    "Information loss",
)
LEVELS = ("none", "school", "degree")
DOMAINS = {"age": (0, 120), "pay": (0.0, 6000.0)}


def people(n: int = 200) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    return pa.table(
        {
            "age": pa.array(age, pa.int16()),
            "pay": (age * 40 + rng.normal(0, 300, n)).clip(0, 6000),
            "share": pa.array(rng.random(n), pa.float32()),
            "rate": rng.uniform(0, 9, n).round(1),
            "level": rng.choice(LEVELS, n),
            "birth": pa.array([date(2000, 1, 1) - timedelta(days=int(365 * years)) for years in age]),
            "town": pa.array([f"T{code}" for code in rng.integers(0, 4, n)]).dictionary_encode(),
        }
    )


def schema() -> shoal.Schema:
    return shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "lo": 0, "hi": 120, "role": "quasi-identifier"},
                {"name": "pay", "lo": 0.0, "hi": 6000.0, "role": "confidential"},
                {"name": "share", "lo": 0.0, "hi": 1.0},
                {"name": "rate", "lo": 0, "hi": 9, "step": "0.1"},
                {"name": "level", "kind": "ordinal", "ordered": list(LEVELS)},
                {"name": "birth", "kind": "date", "lo": "1900-01-01", "hi": "2010-01-01"},
                {"name": "town", "kind": "nominal", "values": ["T0", "T1", "T2", "T3"]},
            ]
        }
    )


def release(method: str = "mdav-dp", data: Any = None, **options: Any) -> shoal.Release:
    arguments = {"epsilon": 1, "k": 20, "seed": 1} | options
    return shoal.protect(people() if data is None else data, schema(), method, **arguments)


def text(path: Path) -> str:
    """What a reader sees of a page."""
    bare = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare)).replace("&#39;", "'")


def test_a_saved_release_is_compared_with_its_original(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "with", tmp_path / "with.html", original=people())
    made.save(tmp_path / "without", tmp_path / "without.html")
    with_it, without_it = text(tmp_path / "with.html"), text(tmp_path / "without.html")
    for words in (*COMPARED, "record linkage", "inference of pay", "total_variation"):
        assert words in with_it
    assert "The original table was not given" in without_it
    assert "The original table was not given" not in with_it
    for words in (*COMPARED[:2], "record linkage"):
        assert words not in without_it
    # what is published does not depend on it
    for name in ("report.html", "statement.json", "method.toml"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "without" / name).read_bytes()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_original_may_be_a_frame_of_any_library_or_a_path(library: str, tmp_path: Path) -> None:
    columns = {name: people()[name].to_numpy() for name in ("age", "pay")}
    data = frame(columns, library)
    made = shoal.protect(data, method="ranking-dp", epsilon=1, k=20, domains=DOMAINS, seed=3)
    write(pa.table(columns), tmp_path / "people.parquet")
    pages = []
    for place, original in enumerate((data, tmp_path / "people.parquet")):
        made.save(tmp_path / f"{place}", tmp_path / f"{place}.html", original=original)
        pages.append(text(tmp_path / f"{place}.html"))
    assert "Quantiles, released against original" in pages[0]
    assert pages[0] == pages[1]


def test_another_table_as_the_original_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(shoal.InputError, match=r"has 200 rows, but this original has 199"):
        release().save(tmp_path / "out", tmp_path / "in.html", original=people().slice(1))
    assert list(tmp_path.iterdir()) == []


def test_rows_that_were_dropped_are_not_compared(tmp_path: Path) -> None:
    rates = [None if row % 10 == 0 else value for row, value in enumerate(people()["rate"].to_pylist())]
    data = people().set_column(3, "rate", pa.array(rates, pa.float64()))
    made = release(data=data, missing="drop")
    made.save(tmp_path / "out", tmp_path / "in.html", original=data)
    assert "Rows read 200 Rows released 180" in text(tmp_path / "in.html")
    assert "missing: " not in text(tmp_path / "in.html")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(people(), tmp_path / "people.csv")
    write(people(), tmp_path / "people.parquet")
    schema().save(tmp_path / "people.toml")
    return tmp_path


PROTECT = ["--schema", "people.toml", "--method", "mdav-dp", "--epsilon", "1", "--k", "20", "--out", "out"]


@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
def test_protect_compares_in_its_internal_page(data: str, here: Path) -> None:
    assert run(["protect", data, *PROTECT, "--internal", "in.html"]) == 0
    page = text(here / "in.html")
    for words in (*COMPARED, "record linkage", "inference of town"):
        assert words in page
    assert "Predicting" not in page


def test_protect_shows_learning_where_a_target_is_given(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # forests of a few trees are enough to be shown
    monkeypatch.setattr("shoal.evaluation.evaluate", partial(shoal.evaluate, runs=2, trees=3))
    assert (
        run(["protect", "people.csv", *PROTECT, "--internal", "in.html", "--evaluate", "--target", "level"])
        == 0
    )
    page = text(here / "in.html")
    for words in (*COMPARED, "Predicting level", "trained on", "the majority class"):
        assert words in page


def test_the_demo_compares(tmp_path: Path) -> None:
    assert run(["demo", "--people", "500", "--out", str(tmp_path / "demo")]) == 0
    page = text(tmp_path / "demo" / "internal.html")
    for words in COMPARED:
        assert words in page


def on_disk(folder: Path, **options: Any) -> str:
    numeric = people().select(["age", "pay"])
    path = folder / "big.parquet"
    parquet.write_table(numeric, path, row_group_size=70)
    shoal.publish(
        path,
        out=folder / "out",
        internal=folder / "in.html",
        engine="local",
        method="ranking-dp",
        epsilon=1,
        k=20,
        domains=DOMAINS,
        **options,
    )
    return text(folder / "in.html")


def test_a_table_on_disk_is_compared_too(tmp_path: Path) -> None:
    page = on_disk(tmp_path)
    for words in (*COMPARED, "inference of pay"):
        assert words in page
    assert "200 rows, made with ranking-dp" in page
    assert "random sample" not in page


def test_a_large_table_on_disk_is_attacked_on_a_sample_and_counted_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (findings, sources):
        monkeypatch.setattr(module, "MOST_ROWS", 150)
        monkeypatch.setattr(module, "SAMPLE", 120)
    page = on_disk(tmp_path)
    assert "Attacks were run on samples of 120 of 200 original records and 120 of 200 released rows" in page
    assert "row-by-row measures were not computed" in page
    # the table has all its rows, whatever was attacked
    assert "200 rows, made with ranking-dp" in page
    for words in COMPARED:
        assert words in page


def test_rows_dropped_from_a_table_on_disk_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = people().select(["age", "pay"])
    pay = pa.array([None if row % 4 == 0 else value for row, value in enumerate(original["pay"].to_pylist())])
    parquet.write_table(original.set_column(1, "pay", pay), tmp_path / "big.parquet")
    shoal.publish(
        tmp_path / "big.parquet",
        out=tmp_path / "out",
        internal=tmp_path / "in.html",
        engine="local",
        method="ranking-dp",
        epsilon=1,
        k=20,
        domains=DOMAINS,
        missing="drop",
    )
    page = text(tmp_path / "in.html")
    assert "Rows read 200 Rows released 150" in page
    assert "missing: " not in page


NUMBERS = ("age", "pay", "share", "rate")
METHODS = {
    "mdav-dp": None,
    "laplace": None,
    "k-anonymity": None,
    "insensitive-dp": None,
    "ranking-dp": NUMBERS,
    "idp-cbls": NUMBERS,
    "xm-2": NUMBERS,
    "swap-ranking": NUMBERS,
}


@pytest.mark.parametrize("method", METHODS)
def test_released_rows_of_all_records_are_the_published_table(method: str) -> None:
    known = next(info for info in shoal.methods() if info.name == method)
    options = {name: value for name, value in {"epsilon": 1, "k": 20}.items() if name in known.parameters}
    made = shoal.protect(people(), schema(), method, seed=2, columns=METHODS[method], **options)
    rows = released_rows(made, np.arange(200)).frame.to_native()
    assert rows.schema.equals(made.data.schema)
    assert Counter(map(str, rows.to_pylist())) == Counter(map(str, made.data.to_pylist()))


def test_released_rows_keep_gaps() -> None:
    holes = people().set_column(
        0, "age", pa.array([None if i % 9 == 0 else 40 for i in range(200)], pa.int16())
    )
    made = release(data=holes, missing="separate")
    rows = released_rows(made, np.arange(200)).frame.to_native()
    assert rows["age"].null_count == made.data["age"].null_count == 23


def test_released_rows_belong_to_their_records() -> None:
    made = release(epsilon=100_000, k=2)
    rows = np.array([3, 50, 199])
    found = released_rows(made, rows).numeric("age")
    assert np.abs(found - people()["age"].to_numpy()[rows]).max() < 30
    assert np.array_equal(found, np.rint(read(made.aligned).numeric("age")[rows]))


def test_a_sample_is_sorted_drawn_once_and_the_same_again() -> None:
    first = some_rows(1000, 100)
    assert np.array_equal(first, some_rows(1000, 100))
    assert np.array_equal(first, np.unique(first))
    chosen = np.arange(0, 1000, 3)
    assert set(some_rows(chosen, 50)) <= set(chosen.tolist())
    # any row can be in it: the mean of 100 of 1000 row numbers has a standard error of 27
    assert abs(first.mean() - 499.5) < 6 * 27


def test_an_excerpt_of_a_file_is_that_of_the_table(tmp_path: Path) -> None:
    from shoal.io import read_columnwise

    parquet.write_table(people(), tmp_path / "p.parquet", row_group_size=33)
    rows = some_rows(200, 40)
    names = ["town", "age", "birth"]
    disk = excerpt(read_columnwise(tmp_path / "p.parquet"), rows, names)
    memory = excerpt(read(people()), rows, names)
    assert disk.names == memory.names == tuple(names)
    assert disk.frame.to_native().to_pylist() == memory.frame.to_native().to_pylist()


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (findings, findings):
        monkeypatch.setattr(module, "MOST_ROWS", 150)
    monkeypatch.setattr(findings, "SAMPLE", 100)


@pytest.mark.usefixtures("_small_limits")
def test_large_tables_are_measured_on_records_with_their_rows() -> None:
    made = release(epsilon=100_000, k=2)
    found = findings.find(findings_subject(made), made, None, people())
    assert any("Measures were computed on 150 of 200 records" in remark for remark in found.remarks)
    assert "Attacks were run on 100 of 200 records and their released rows." in found.risks.remarks
    assert found.measured is not None
    assert found.measured["rows"]["original"] == 150
    assert "actual_k" not in found.measured["risk"]
    # rows in groups of two, hardly any noise: only rows that belong to the records link so often
    linked = next(line for line in found.risks.lines if line.links_records)
    assert linked.success > 0.3
    assert not any(line.parted for line in found.risks.lines)


@pytest.mark.usefixtures("_small_limits")
def test_rows_without_an_original_are_sampled_apart_and_the_light_does_not_praise_that() -> None:
    made = release("tree-dp", k=None, epsilon=1)
    assert made.aligned is None
    found = findings.find(findings_subject(made), made, None, people())
    assert any("an attacker with all released rows can do better" in remark for remark in found.risks.remarks)
    assert found.risks.lines
    assert all(line.parted for line in found.risks.lines)
    reasons = [reason.text for reason in verdict(made, None, found.risks.lines).measured.risk]
    assert not any("Not clearly above chance" in reason for reason in reasons)


@pytest.mark.usefixtures("_small_limits")
def test_an_evaluation_of_all_rows_is_kept() -> None:
    made = release()
    page = internal_report(made, shoal.evaluate(people(), made), people())
    assert "Measures were computed on" not in page
    assert "Attacks were run on 100 of 200 records" in page


def test_what_cannot_be_measured_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise shoal.InputError("infinite", column="age", row=1)

    monkeypatch.setattr("shoal.evaluation.evaluate", fail)
    made = release()
    found = findings.find(findings_subject(made), made, None, people())
    assert found.remarks == (
        "No measures were computed: column 'age' has an infinite value in row 1: correct or remove it.",
    )
    assert found.measured is None
    assert found.risks.lines


def findings_subject(made: shoal.Release) -> Any:
    from shoal.report.findings import of_release

    subject = of_release(made)
    assert isinstance(subject.table, Table)
    return subject
