"""The actual k equals counting rows by hand, for numbers, text, dates, large integers and missing values."""

from __future__ import annotations

import datetime
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.io import read
from shoal.partition.groups import ActualK, actual_k, row_groups

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, None]),
        st.sampled_from(["x", "y", None]),
        st.sampled_from([0.5, -0.5, None]),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@given(rows=ROWS)
def test_equals_counting_rows(library: object, rows: list[tuple[object, ...]]) -> None:
    assert callable(library)
    columns = {name: [row[j] for row in rows] for j, name in enumerate("abc")}
    if library is pa.table:
        table = read(
            pa.table(columns, schema=pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.float64()}))
        )
    elif library is pl.DataFrame:
        table = read(pl.DataFrame(columns, schema={"a": pl.Int64, "b": pl.String, "c": pl.Float64}))
    else:
        types = {"a": "Int64", "b": "str", "c": "float64"}
        table = read(pd.DataFrame({name: pd.Series(columns[name], dtype=types[name]) for name in "abc"}))
    counts = Counter(rows)
    found = actual_k(table, ["a", "b", "c"])
    assert found.k == min(counts.values())
    assert found.groups == len(counts)
    assert found.unique_share == sum(size == 1 for size in counts.values()) / len(rows)
    assert found.per_attribute == {name: min(Counter(columns[name]).values()) for name in "abc"}


def test_large_integers_that_share_a_float_are_different() -> None:
    table = read(pa.table({"id": [2**53, 2**53, 2**53 + 1, 2**53 + 1]}))
    assert actual_k(table, ["id"]).groups == 2


def test_both_zeros_are_equal() -> None:
    assert actual_k(read(pa.table({"a": [0.0, -0.0]})), ["a"]).k == 2


def test_dates_truth_values_and_categories() -> None:
    day = datetime.date(2020, 1, 1)
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime([day, day, day]),
            "yes": [True, True, False],
            "kind": pd.Categorical(["u", "u", "u"]),
        }
    )
    found = actual_k(read(frame), ["day", "yes", "kind"])
    assert found.per_attribute == {"day": 3, "yes": 1, "kind": 3}
    assert found.k == 1


@pytest.mark.parametrize("categories", [pl.Categorical, pl.Enum(["u", "v"])])
def test_categories_of_polars(categories: object) -> None:
    frame = pl.DataFrame({"kind": ["u", "v", None, "u", "v", None]}, schema={"kind": categories})
    assert actual_k(read(frame), ["kind"]) == ActualK(
        k=2, groups=3, unique_share=0.0, per_attribute={"kind": 2}
    )


def test_mixed_types_in_one_pandas_column() -> None:
    frame = pd.DataFrame({"mixed": pd.Series([1, "x", 1, "x", None, None], dtype=object)})
    assert actual_k(read(frame), ["mixed"]).k == 2


def test_chunked_columns_are_read_as_one() -> None:
    chunked = pa.chunked_array([["x", "y"], ["y", "x"], ["x"]])
    assert actual_k(read(pa.table({"t": chunked})), ["t"]).k == 2


def test_row_groups_keep_apart_what_only_a_mixed_up_code_would_join() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1000, (3000, 6)).astype(float)
    values[1500:] = values[:1500]
    found = row_groups(values.T)
    assert found.sizes.tolist() == [2] * 1500
    assert (found.labels[:1500] == found.labels[1500:]).all()
    assert (values[found.first][found.labels] == values).all()


def test_row_groups_need_a_column() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        row_groups([])
