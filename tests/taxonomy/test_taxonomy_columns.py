"""Columns of labels round-trip through codes: every unambiguous spelling is accepted, and no unknown value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.errors import InputError, OptionError
from shoal.taxonomy import Taxonomy

TREE = Taxonomy.from_dict({"*": {"gov": ["Federal-gov", "State-gov"], "Private": []}})
COLUMN = ["State-gov", "Private", "State-gov", "Federal-gov"]


@pytest.mark.parametrize(
    "column",
    [
        COLUMN,
        tuple(COLUMN),
        np.array(COLUMN),
        np.array(COLUMN, dtype=object),
        pd.Series(COLUMN),
        pd.Series(COLUMN, dtype="category"),
        pl.Series(COLUMN),
        pl.Series(COLUMN, dtype=pl.Categorical),
        pa.array(COLUMN),
        pa.chunked_array([COLUMN[:1], COLUMN[1:]]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__}",
)
def test_columns_of_every_library_become_codes_and_labels_again(column: Any) -> None:
    codes = TREE.encode(column)
    assert codes.dtype == np.int64
    assert codes.tolist() == [TREE.code(name) for name in COLUMN]
    assert TREE.decode(codes).tolist() == COLUMN


def test_case_hyphens_underscores_and_blanks_do_not_matter_where_it_is_clear() -> None:
    assert TREE.encode(["state_gov", "STATE GOV", " State-gov "]).tolist() == [TREE.code("State-gov")] * 3
    unclear = Taxonomy.flat(["a-b", "a_b"])
    assert unclear.encode(["a_b"]).tolist() == [unclear.labels.index("a_b")]
    with pytest.raises(InputError, match="'A B' matches 'a-b' and 'a_b'"):
        unclear.encode(["A B"])


def test_numbers_and_truth_values_are_named_by_their_text() -> None:
    tree = Taxonomy.flat([1, 2, True])
    assert tree.decode(tree.encode([2, 1])).tolist() == ["2", "1"]
    assert tree.decode(tree.encode(pd.Series([2.0, None]), missing=-1)).tolist() == ["2", None]
    assert tree.decode(tree.encode(np.array([True]))).tolist() == ["True"]
    assert tree.decode(tree.encode([1, "2", None], missing=-1)).tolist() == ["1", "2", None]


def test_a_value_that_is_not_there_is_an_error_with_its_row_and_a_hint() -> None:
    with pytest.raises(
        InputError, match=r"column 'work', row 2: 'Privat' is not in the taxonomy\. Did you mean 'Private'\?"
    ):
        TREE.encode(["Private", "Privat", "Privat"], "column 'work'")
    with pytest.raises(InputError, match="row 1: 'gov' is a group"):
        TREE.check(["gov"])
    assert TREE.encode(["gov", "*"], concepts=True).tolist() == [TREE.code("gov"), 0]


def test_a_category_that_no_row_holds_does_no_harm() -> None:
    column = pd.Series(["Private"], dtype=pd.CategoricalDtype(["Private", "Nobody"]))
    assert TREE.encode(column).tolist() == [TREE.code("Private")]


def test_missing_values_are_an_error_unless_they_have_a_code() -> None:
    for column in (["Private", None], pd.Series(["Private", np.nan]), pl.Series(["Private", None])):
        with pytest.raises(InputError, match="row 2: the value is missing"):
            TREE.encode(column)
        assert TREE.encode(column, missing=-1).tolist() == [TREE.code("Private"), -1]
        TREE.check(column)
    assert TREE.encode([]).size == 0


def test_codes_outside_the_tree_have_no_label() -> None:
    for wrong in (-2, TREE.size):
        with pytest.raises(OptionError, match="codes must be from 0"):
            TREE.decode([wrong])
