"""The digest of a table's content: what it does not depend on, and what it does."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.columns.steps import Step
from shoal.io import read, write
from shoal.io.binary_files import frozen
from shoal.io.table import content_digest
from shoal.survey import survey, survey_schema

TOWNS = ["Ede", "Ede", None, "Oss", "Wijk aan Zee, Noord-Holland"]
PEOPLE: dict[str, list[Any]] = {
    "age": [31, 45, 28, 60, 45],
    "pay": [1200.5, None, 0.1, 3e7, -0.0],
    "town": TOWNS,
    "moved": [date(1990, 1, 31), date(2001, 2, 28), None, date(1985, 12, 31), date(2020, 6, 1)],
    "member": [True, False, True, None, False],
}


def digest(source: Any) -> str:
    return content_digest(read(source, strict=False))


def test_rows_and_columns_can_be_in_any_order() -> None:
    table = pa.table(PEOPLE)
    backwards = table.take(list(range(4, -1, -1))).select(list(PEOPLE)[::-1])
    assert digest(backwards) == digest(table)
    assert digest(table.rename_columns(["a", "b", "c", "d", "e"])) == digest(table)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "jsonl", "dta", "sav"])
def test_a_file_has_the_digest_of_the_table_it_holds(ending: str, tmp_path: Path) -> None:
    table = pa.table({name: values for name, values in PEOPLE.items() if name != "member"})
    write(table, tmp_path / f"people.{ending}")
    assert digest(tmp_path / f"people.{ending}") == digest(table)


def test_blank_lines_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "usual.csv").write_text("age,town\n31,Ede\n45,Oss\n", "utf-8")
    (tmp_path / "blank.csv").write_text("age,town\n45,Oss\n\n31,Ede\n,\n", "utf-8")
    assert digest(tmp_path / "usual.csv") == digest(tmp_path / "blank.csv")


def test_it_does_not_depend_on_library_and_type() -> None:
    table = pa.table(PEOPLE)
    whole = digest(table)
    assert digest(pd.DataFrame(PEOPLE)) == whole
    assert digest(pl.DataFrame(PEOPLE)) == whole
    assert digest(table.set_column(2, "town", table["town"].dictionary_encode())) == whole
    assert digest(table.set_column(0, "age", pa.array(["31", "45.0", "28", "+60", " 45 "]))) == whole
    narrow = pa.array([1200.5, None, 0.1, 3e7, 0], pa.float32())
    assert digest(table.set_column(1, "pay", narrow)) == whole
    exact = pa.array([None if v is None else Decimal(str(v)) for v in PEOPLE["pay"]], pa.decimal128(12, 1))
    assert digest(table.set_column(1, "pay", exact)) == whole
    days = [None if day is None else datetime(day.year, day.month, day.day) for day in PEOPLE["moved"]]
    assert digest(table.set_column(3, "moved", pa.array(days, pa.timestamp("ns")))) == whole
    written = pa.array([None if day is None else day.isoformat() for day in PEOPLE["moved"]])
    assert digest(table.set_column(3, "moved", written)) == whole


def test_files_in_parts_have_the_digest_of_the_whole(tmp_path: Path) -> None:
    table = pa.table(PEOPLE)
    parquet.write_table(table, tmp_path / "people.parquet", row_group_size=2)
    assert content_digest(frozen(tmp_path / "people.parquet")) == digest(table)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("age", [31, 45, 28, 60, 46]),
        ("pay", [1200.6, None, 0.1, 3e7, 0.0]),
        ("town", [*TOWNS[:4], "Wijk aan Zee, Noord-Brabant"]),
        ("town", ["Oss", *TOWNS[1:3], "Ede", TOWNS[4]]),
        ("moved", [None, *PEOPLE["moved"][1:]]),
    ],
)
def test_another_value_is_another_content(column: str, values: list[Any]) -> None:
    assert digest(pa.table({**PEOPLE, column: values})) != digest(pa.table(PEOPLE))


def test_a_row_more_is_another_content() -> None:
    table = pa.table(PEOPLE)
    assert digest(pa.concat_tables([table, table.slice(0, 1)])) != digest(table)
    assert digest(table.slice(1)) != digest(table)


def test_steps_before_protection_leave_the_digest_of_what_was_read() -> None:
    from shoal.columns.declaration import read_declared

    schema = Schema((Attribute("age"),)).with_steps(Step.recode("age", breaks=[0, 40, 99]))
    table = pa.table(PEOPLE)
    assert content_digest(read_declared(table, schema)) == digest(table)


def test_declared_types_leave_it_as_it_is(tmp_path: Path) -> None:
    from shoal.columns.declaration import read_declared

    write(survey(200), tmp_path / "survey.csv")
    declared = read_declared(tmp_path / "survey.csv", survey_schema())
    assert content_digest(declared) == digest(tmp_path / "survey.csv")


texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=20)


@given(texts, st.randoms(use_true_random=False))
def test_any_texts_can_be_in_any_order(values: list[str], random: Any) -> None:
    mixed = random.sample(values, len(values))
    assert digest(pa.table({"a": values})) == digest(pa.table({"a": mixed}))
    other = [*values[:-1], values[-1] + "x"]
    assert digest(pa.table({"a": other})) != digest(pa.table({"a": values}))


def test_many_and_long_texts_are_told_apart() -> None:
    names = np.array([f"P{number:07d}" for number in range(300_000)])
    whole = digest(pa.table({"name": names}))
    names[299_999] = "P0299998"
    assert digest(pa.table({"name": names})) != whole
    long = "x" * 10_000
    assert digest(pa.table({"a": [long + "y" + "x" * 4095]})) != digest(
        pa.table({"a": [long + "x" * 4095 + "y"]})
    )
