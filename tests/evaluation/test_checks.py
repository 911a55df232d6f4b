"""`shoal.check` says of any table what pycanon says, and what the definitions say where pycanon is silent."""

from __future__ import annotations

import datetime
import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pycanon import anonymity

import shoal
from shoal import InputError, OptionError, Schema
from shoal.columns.attribute import Attribute
from shoal.columns.steps import Step
from tests.conftest import examples
from tests.support.samples import LIBRARIES, frame


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Two quasi-identifiers, a confidential number and a confidential word; at least two values of each."""
    n = draw(st.integers(4, 40))
    rows = st.tuples(
        st.integers(0, 2),
        st.sampled_from("xyz"),
        st.integers(-3, 6),
        st.sampled_from(["flu", "cold", "gout"]),
    )
    drawn = [*draw(st.lists(rows, min_size=n, max_size=n)), (0, "x", -4, "none"), (0, "x", 7, "flu")]
    return pd.DataFrame(drawn, columns=["age", "sex", "income", "illness"])


# pycanon takes its time
@settings(max_examples=examples(20))
@given(tables())
def test_agrees_with_pycanon(table: pd.DataFrame) -> None:
    quasi = ["age", "sex"]
    found = shoal.check(table, quasi, ["income", "illness"])
    assert found.k == anonymity.k_anonymity(table, quasi)
    for name in ("income", "illness"):
        own = found.sensitive[name]
        assert own.distinct_l == anonymity.l_diversity(table, quasi, [name])
        # pycanon rounds down, and does so with exp(log) of whole numbers
        assert math.floor(own.entropy_l + 1e-9) - anonymity.entropy_l_diversity(table, quasi, [name]) in (
            0,
            1,
        )
        assert own.entropy_l == pytest.approx(entropy_l(table, quasi, name))
        assert own.emd == pytest.approx(anonymity.t_closeness(table, quasi, [name]), abs=1e-12)
    assert found.distinct_l == anonymity.l_diversity(table, quasi, ["income", "illness"])
    assert found.emd == pytest.approx(anonymity.t_closeness(table, quasi, ["income", "illness"]), abs=1e-12)


def entropy_l(table: pd.DataFrame, quasi: list[str], name: str) -> float:
    shares = [group[name].value_counts(normalize=True) for _, group in table.groupby(quasi)]
    return min(math.exp(-float((p * np.log(p)).sum())) for p in shares)


@given(tables())
def test_risk_of_every_row_is_summed_up(table: pd.DataFrame) -> None:
    found = shoal.check(table, ["age", "sex"])
    risks = (1 / table.groupby(["age", "sex"])["age"].transform("size")).to_numpy()
    summary = found.reidentification
    assert summary["largest"] == risks.max() == 1 / found.k
    assert summary["mean"] == pytest.approx(risks.mean())
    assert np.quantile(risks, 0.5, method="lower") <= summary["median"] + 1e-12
    assert summary["median"] <= np.quantile(risks, 0.5, method="higher") + 1e-12
    for many in (2, 5, 10, 20):
        assert summary[f"above_one_in_{many}"] == pytest.approx((risks > 1 / many + 1e-12).mean())
    assert found.unique == int((risks == 1).sum())
    assert found.groups == table.groupby(["age", "sex"]).ngroups
    assert (found.distinct_l, found.entropy_l, found.emd, found.ratio) == (None, None, None, None)


def test_ratio_is_that_of_shares_in_group_and_table() -> None:
    table = pa.table({"q": [1] * 4 + [2] * 4, "c": list("aaab") + list("abbb")})
    assert shoal.check(table, ["q"], ["c"]).ratio == pytest.approx(2)
    lacking = pa.table({"q": [1, 1, 2, 2], "c": list("aaab")})
    found = shoal.check(lacking, ["q"], ["c"], t_ratio=100)
    assert math.isinf(found.ratio or 0)
    assert not found.met
    assert found.to_dict()["t_ratio"] is None


@pytest.mark.parametrize("library", LIBRARIES)
def test_any_type_in_any_library(library: str) -> None:
    days = [datetime.date(2020, 1, day) for day in (1, 1, 2, 3)]
    columns = {
        "flag": np.array([True, True, False, False]),
        "narrow": np.array([1, 1, 2, 2], dtype=np.int8),
        "huge": np.array([2**62, 2**62, 2**62 + 1, 2**62 + 1]),
        "real": np.array([0.5, 0.5, np.nan, np.nan]),
        "word": np.array(["a", "a", "b", "b"]),
        "day": days,
    }
    found = shoal.check(frame(columns, library), ["flag", "narrow", "huge", "real", "word"], ["day"])
    assert (found.k, found.groups, found.distinct_l) == (2, 2, 1)


def test_enumerations_are_ordered_and_nested_values_compared() -> None:
    sizes = pl.Series(["S", "S", "M", "L"], dtype=pl.Enum(["S", "M", "L"]))
    table = pl.DataFrame({"q": [[1], [1], [2, 3], [2, 3]], "size": sizes, "lists": [[1], [1], [1], [2]]})
    found = shoal.check(table, ["q"], ["size", "lists"])
    assert (found.k, found.groups) == (2, 2)
    assert (found.sensitive["size"].ground, found.sensitive["size"].distinct_l) == ("ordered", 1)
    assert found.sensitive["size"].emd == pytest.approx(0.375)
    assert found.sensitive["lists"].values == 2


def test_missing_keys_are_a_group_and_missing_confidential_values_add_no_diversity() -> None:
    table = pl.DataFrame({"q": [None, None, "a", "a"], "c": [1.0, None, 2.0, None]})
    found = shoal.check(table, ["q"], ["c"])
    assert (found.k, found.sensitive["c"].values) == (2, 3)
    # who misses could share the one value that is known
    assert (found.distinct_l, found.entropy_l) == (1, 1)


def test_dates_are_ordered_and_words_are_not_unless_the_schema_says_so() -> None:
    table = pa.table(
        {
            "q": [1, 1, 2, 2],
            "day": pa.array([datetime.date(2020, 1, d) for d in (1, 2, 3, 4)]),
            "size": ["S", "M", "L", "XL"],
        }
    )
    found = shoal.check(table, ["q"], ["day", "size"])
    assert (found.sensitive["day"].ground, found.sensitive["day"].emd) == (
        "ordered",
        pytest.approx(1 / 3),
    )
    assert (found.sensitive["size"].ground, found.sensitive["size"].emd) == (
        "equal",
        pytest.approx(1 / 2),
    )
    schema = Schema.from_dict(
        {
            "attribute": [
                {"name": "q", "role": "quasi-identifier"},
                {"name": "day", "kind": "nominal", "role": "other"},
                {"name": "size", "kind": "ordinal", "ordered": ["S", "M", "L", "XL"], "role": "confidential"},
            ]
        }
    )
    by_role = shoal.check(table, schema=schema)
    assert by_role.quasi_identifiers == ("q",)
    assert list(by_role.sensitive) == ["size"]
    assert (by_role.sensitive["size"].ground, by_role.emd) == ("ordered", pytest.approx(1 / 3))
    assert shoal.check(table, ["q"], ["day"], schema=schema).sensitive["day"].ground == "equal"


def test_levels_asked_for_are_judged_one_by_one() -> None:
    table = pa.table({"q": [1] * 4 + [2] * 4, "c": list("aaab") + list("abbb")})
    found = shoal.check(table, ["q"], ["c"], k=5, l=2, t_emd=0.25, t_ratio=2)
    assert [(r.name, r.met) for r in found.requirements] == [
        ("k", False),
        ("l", True),
        ("t-emd", True),
        ("t-ratio", True),
    ]
    assert not found.met
    assert found.requirements[0].words == "k 5: not met, found 4"
    assert shoal.check(table, ["q"], ["c"], t_emd=0.24).met is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"quasi_identifiers": []}, "no quasi-identifiers"),
        ({"quasi_identifiers": None}, "no quasi-identifiers"),
        ({"quasi_identifiers": ["q"], "sensitive": ["q"]}, "'q' is both"),
        ({"quasi_identifiers": ["q"], "l": 2}, "l applies to a confidential column"),
        ({"quasi_identifiers": ["q"], "k": 0}, "k must be at least 1, got 0"),
        ({"quasi_identifiers": ["q"], "sensitive": ["c"], "t_emd": -1}, "t_emd must be at least 0"),
        ({"quasi_identifiers": ["q"], "sensitive": ["c"], "t_ratio": 0.5}, "t_ratio must be at least 1"),
        ({"quasi_identifiers": ["q"], "sensitive": ["c"], "t_emd": float("nan")}, "t_emd must be"),
    ],
)
def test_unfitting_options_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        shoal.check(pa.table({"q": [1, 2], "c": [1, 2]}), **arguments)


def test_unknown_columns_and_empty_tables_are_named() -> None:
    with pytest.raises(InputError, match=r"no column 'qq'.*Did you mean 'q'"):
        shoal.check(pa.table({"q": [1, 2]}), ["qq"])
    with pytest.raises(InputError, match="no rows"):
        shoal.check(pd.DataFrame({"q": []}), ["q"])


def test_steps_are_run_before_levels_are_measured_in_memory_as_in_parts(tmp_path: Path) -> None:
    table = pa.table({"age": [21, 22, 23, 24, 41, 42, 43, 44], "ill": ["a", "b"] * 4})
    attributes = (
        Attribute("age", role="quasi-identifier", kind="numeric", type="integer", lo=0, hi=99),
        Attribute("ill", role="confidential", kind="nominal", values=("a", "b")),
    )
    schema = Schema(attributes).with_steps(Step.recode("age", breaks=[0, 40, 99]))
    parquet.write_table(table, tmp_path / "people.parquet")
    whole = shoal.check(table, schema=schema, k=4, l=2)
    parts = shoal.check(tmp_path / "people.parquet", schema=schema, k=4, l=2, engine="local")
    assert whole.k == parts.k == 4
    assert whole.sensitive["ill"].distinct_l == parts.sensitive["ill"].distinct_l == 2
    assert whole.met
    assert not shoal.check(table, ["age"], ["ill"], k=4).met
