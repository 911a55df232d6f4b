"""Tables in and out: every library, every number type, every odd header, and the way back unchanged."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.errors import InputError
from shoal.io import read, write
from tests.support.samples import LIBRARIES, ODD_NAMES, frame

PANDAS_TYPES = [
    *(
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ),
    *("Int8", "Int64", "UInt8", "UInt64", "Float32", "Float64"),
    *("int8[pyarrow]", "int64[pyarrow]", "uint16[pyarrow]", "float[pyarrow]", "double[pyarrow]"),
]
POLARS_TYPES = [
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.Decimal(10, 2)),
]
ARROW_TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2)),
]
NUMBERS = np.arange(40.0)


def protect(data: Any, **options: Any) -> Any:
    arguments = {"method": "ranking-dp", "epsilon": "0.5", "k": 5, "domains": {"x": (0, 50)}, **options}
    return shoal.protect(data, **arguments).data


def undeclared(lo: Any, hi: Any) -> shoal.Schema:
    """A domain that was read off the records declares no type: the column is released as it is stored."""
    known = {"domain": "these records"}
    return shoal.Schema.from_dict({"attribute": [{"name": "x", "lo": lo, "hi": hi, "source": known}]})


@pytest.mark.parametrize("dtype", PANDAS_TYPES)
def test_pandas_types_follow_the_declaration(dtype: str) -> None:
    data = pd.DataFrame({"x": pd.Series(NUMBERS).astype(dtype)})
    for domain, released_as in (((0, 50), "int64"), ((0.0, 50.0), "float64")):
        released = protect(data, domains={"x": domain})
        assert str(released["x"].dtype) == released_as
        assert released["x"].notna().all()
        assert released["x"].between(0, 50).all()
    stored = protect(data, schema=undeclared(0, 50), domains=None)
    assert str(stored["x"].dtype) == dtype


@pytest.mark.parametrize("dtype", POLARS_TYPES, ids=str)
def test_polars_types_follow_the_declaration(dtype: Any) -> None:
    data = pl.DataFrame({"x": pl.Series(NUMBERS).cast(dtype)})
    for domain, released_as in (((0, 50), pl.Int64), ((0.0, 50.0), pl.Float64)):
        released = protect(data, domains={"x": domain})
        assert released.schema == {"x": released_as}
        assert released["x"].null_count() == 0
    assert protect(data, schema=undeclared(0, 50), domains=None).schema == {"x": dtype}


@pytest.mark.parametrize("dtype", ARROW_TYPES, ids=str)
def test_arrow_types_follow_the_declaration(dtype: Any) -> None:
    data = pa.table({"x": pa.array(NUMBERS).cast(dtype)})
    for domain, released_as in (((0, 50), pa.int64()), ((0.0, 50.0), pa.float64())):
        released = protect(data, domains={"x": domain})
        assert released.schema == pa.schema({"x": released_as})
        assert released["x"].null_count == 0
    assert protect(data, schema=undeclared(0, 50), domains=None).schema == pa.schema({"x": dtype})


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "Float64", "double[pyarrow]"])
def test_types_survive_dropped_rows(dtype: str) -> None:
    data = pd.DataFrame({"x": pd.Series([1, None, 3, 4] * 10, dtype=dtype)})
    released = protect(data, missing="drop")
    assert str(released["x"].dtype) == "int64"
    assert len(released) == 30


def test_types_that_hold_less_than_the_domain_are_filled_to_their_limit() -> None:
    """A wide domain and much noise: values stop at what the type can hold instead of wrapping around."""
    known: Any = {"domains": None, "epsilon": "0.01"}
    small = pd.DataFrame({"x": NUMBERS.astype("int8")})
    whole = protect(small, schema=undeclared(-1000, 1000), **known)
    assert whole["x"].min() == -128
    assert whole["x"].max() == 127
    half = pd.DataFrame({"x": NUMBERS.astype("float16")})
    real = protect(half, schema=undeclared(0, 10**6), **known)
    assert np.isfinite(real["x"].to_numpy()).all()
    declared = protect(small, domains={"x": (-1000, 1000)}, epsilon="0.01")
    assert declared["x"].min() < -128


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_to_a_narrow_type_does_not_leave_the_domain(dtype: str) -> None:
    """The nearest float32 to 0.1 is larger than 0.1."""
    data = pd.DataFrame({"x": np.full(200, 0.05, dtype=dtype)})
    known: Any = {"domains": None, "schema": undeclared("-0.1", "0.1"), "epsilon": "0.001"}
    values = protect(data, method="laplace", k=None, **known)["x"]
    assert values.astype("float64").max() <= 0.1
    assert values.astype("float64").min() >= -0.1
    assert values.nunique() > 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_odd_names_and_the_order_of_columns_are_kept(library: str) -> None:
    columns = {name: NUMBERS + j for j, name in enumerate(ODD_NAMES)}
    made = shoal.protect(
        frame(columns, library), method="mdav-dp", epsilon=1, k=4, domains=dict.fromkeys(ODD_NAMES, (0, 99))
    )
    assert read(made.data).names == ODD_NAMES
    assert tuple(made.statement.attributes) == ODD_NAMES


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_input_is_not_changed(library: str) -> None:
    data, same = (frame({"x": NUMBERS, "y": NUMBERS[::-1].copy()}, library) for _ in range(2))
    protect(data, domains={"x": (0, 50), "y": (0, 50)})
    assert data.equals(same)


def test_lazy_polars_is_collected() -> None:
    assert isinstance(protect(pl.LazyFrame({"x": NUMBERS})), pl.DataFrame)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_written_tables_read_back(library: str, suffix: str, tmp_path: Path) -> None:
    columns = {name: NUMBERS * 1.1 + j for j, name in enumerate(ODD_NAMES)}
    columns["whole"] = np.arange(40)
    path = tmp_path / f"t.{suffix}"
    write(frame(columns, library), path)
    table = read(path)
    assert table.names == (*ODD_NAMES, "whole")
    assert table.is_integer("whole")
    for name, values in columns.items():
        assert np.array_equal(table.numeric(name), values)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_even_with_others_in_the_names(delimiter: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = ["a,b;c,d;e|f|g", "h\ti\tj,k", "x"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows([header, [1, 2, 3], [4, 5, 6]])
    assert read(path).names == tuple(header)
    assert read(path).numeric("x").tolist() == [3, 6]


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4\r\n")
    assert read(path).names == ("a", "b")
    assert read(path).numeric("b").tolist() == [2, 4]


def test_a_type_that_shows_late_in_a_long_file_is_still_found(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1234567890,1\n" * 200_000 + "0.5,1\n")
    table = read(path)
    assert not table.is_integer("x")
    assert table.numeric("x")[-1] == 0.5


def test_blank_line_of_a_single_column_is_a_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n\n3\n")
    assert np.isnan(read(path).numeric("x")).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (["1", "2", "x7"], "row 3 holds 'x7'"),
        ([None, "none", "2"], "row 2 holds 'none'"),
        (["1", "2", "3"], "stored as String"),
        ([True, False, True], "stored as Boolean"),
    ],
)
def test_what_is_not_numeric_is_named_by_row(values: list[Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        read(pa.table({"x": values})).numeric("x")


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
)
def test_two_columns_of_one_name_are_refused(data: Any) -> None:
    with pytest.raises(InputError, match="'a'"):
        read(data)


@pytest.mark.parametrize("data", [[1, 2], {"a": [1]}, None, 7, np.arange(3)])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(InputError, match="expected a path or a pandas, polars or pyarrow table"):
        read(data)


def test_nameless_and_numbered_columns_are_refused() -> None:
    with pytest.raises(InputError, match="column names must be text"):
        read(pd.DataFrame({0: [1]}))
    with pytest.raises(InputError, match="no columns"):
        read(pd.DataFrame())


def test_near_names_are_suggested(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match=r"Did you mean 'people.csv'\?"):
        read(tmp_path / "poeple.csv")
    with pytest.raises(InputError, match="Did you mean 'income'"):
        read(pa.table({"income": [1]})).known("incmoe")


def test_missing_values_of_every_library_are_nan() -> None:
    for data in (
        pd.DataFrame({"x": [1.0, None]}),
        pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}),
        pd.DataFrame({"x": pd.array([1, None], dtype="int64[pyarrow]")}),
        pl.DataFrame({"x": [1, None]}),
        pl.DataFrame({"x": [1.0, float("nan")]}),
        pa.table({"x": pa.array([1, None])}),
        pa.table({"x": pa.array([Decimal("1.00"), None])}),
    ):
        values = read(data).numeric("x")
        assert values.dtype == np.float64
        assert values[0] == 1
        assert np.isnan(values[1])


def test_parquet_keeps_no_metadata_of_its_writer(tmp_path: Path) -> None:
    write(pd.DataFrame({"x": [1, 2]}, index=["secret", "names"]), tmp_path / "t.parquet")
    assert parquet.read_schema(tmp_path / "t.parquet").metadata is None


def test_a_decimal_type_without_room_for_the_domain_is_an_error_that_names_it() -> None:
    narrow = pa.table({"fee": pa.array([Decimal("1.50"), Decimal("9.99")], pa.decimal128(3, 2))})
    with pytest.raises(shoal.InputError, match="'fee' has a decimal type"):
        read(narrow).like({"fee": np.array([1.0, 400.0])}, keep_dtypes=True)
