"""`evaluate` as a whole: releases and plain tables, chosen columns, missing values, edges and errors."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

from shoal.errors import InputError, OptionError
from shoal.evaluation import Evaluation, evaluate
from shoal.release.publication import protect


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {"age": age, "income": age * 10 + rng.integers(0, 300, n), "town": ["Aa", "Bb"] * (n // 2)}
    )


def release_of(aligned: pd.DataFrame | None, data: pd.DataFrame, **more: Any) -> SimpleNamespace:
    """What `evaluate` needs of a release."""
    domains = more.pop("domains", {name: (0.0, 100.0) for name in data.columns})
    return SimpleNamespace(
        data=data, aligned=aligned, columns=tuple(data.columns), domains=domains, kept=None, **more
    )


def text_of(evaluation: Evaluation) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(evaluation)
    return console.export_text()


def test_a_real_release_has_every_measure() -> None:
    frame = people()
    release = protect(frame, method="mdav-dp", epsilon=1, k=5, seed=1, columns=["age", "income"],
                      domains={"age": (0, 120), "income": (0, 2000)})  # fmt: skip
    found = evaluate(frame, release)
    error = release.aligned[["age", "income"]].to_numpy() - frame[["age", "income"]].to_numpy()
    assert found.rows_matched
    assert found.columns == ("age", "income")
    assert found.utility["sse"] == pytest.approx((error**2).sum())
    assert found.utility["sae"] == pytest.approx(np.abs(error).sum())
    assert found.utility["log10_sse"] == pytest.approx(math.log10((error**2).sum()))
    assert found.utility["log2_sse"] == pytest.approx(math.log2((error**2).sum()))
    shares = (error**2).mean(axis=0) / frame[["age", "income"]].to_numpy().var(axis=0)
    assert found.utility["normalised_sse"] == pytest.approx(shares.mean())
    assert found.utility["attributes"]["income"]["normalised_sse"] == pytest.approx(shares[1])
    assert found.risk["actual_k"] >= 5
    assert found.risk["record_linkage_widths"] == {"age": 120.0, "income": 2000.0}
    low, high = found.risk["record_linkage_interval"]
    assert low <= found.risk["record_linkage"] <= high
    assert found.skipped == {"town": "not released"}


def test_two_tables_have_order_free_measures_only() -> None:
    frame = people()
    found = evaluate(frame, frame.sample(frac=1.0, random_state=1))
    assert not found.rows_matched
    for key in ("sse", "sae", "log10_sse", "log2_sse", "normalised_sse"):
        assert found.utility[key] is None
    assert found.risk["record_linkage"] is None
    assert found.risk["record_linkage_interval"] is None
    for key in ("mean_variation", "variance_variation", "correlation_difference", "wasserstein"):
        assert found.utility[key] == pytest.approx(0.0, abs=1e-12)
    assert found.skipped == {}
    assert found.utility["total_variation"] == found.utility["pair_total_variation"] == 0.0


def test_a_release_is_measured_on_unrounded_rows_and_its_k_on_the_published_table() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    aligned = pd.DataFrame({"a": [1.4, 2.4, 3.4, 4.4]})
    published = pd.DataFrame({"a": [3, 1, 3, 1]})
    found = evaluate(frame, release_of(aligned, published))
    assert found.utility["sse"] == pytest.approx(4 * 0.16)
    assert found.utility["mean_variation"] == pytest.approx(0.4 / 2.5)
    assert found.risk["actual_k"] == 2
    assert found.risk["record_linkage"] == 100.0


def test_a_release_whose_rows_have_no_original_is_measured_order_free_on_its_data() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    found = evaluate(frame, release_of(None, pd.DataFrame({"a": [2.0, 3.0, 4.0, 5.0, 6.0]})))
    assert not found.rows_matched
    assert found.utility["sse"] is None
    assert found.utility["mean_variation"] == pytest.approx(1.5 / 2.5)
    assert found.rows == {"original": 4, "released": 5}


def test_rows_that_were_dropped_take_no_part() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 900.0]})
    release = release_of(pd.DataFrame({"a": [1.0, 3.0]}), pd.DataFrame({"a": [3.0, 1.0]}))
    release.kept = np.array([0, 2])
    found = evaluate(frame, release)
    assert found.utility["sse"] == 0.0
    assert found.utility["log10_sse"] is None
    assert found.utility["mean_variation"] == 0.0
    assert found.risk["record_linkage_records"] == 2


def test_linkage_divides_by_the_domain_not_by_the_data() -> None:
    frame = pd.DataFrame({"a": [0.0, 10.0], "b": [0.0, 10.0]})
    aligned = pd.DataFrame({"a": [9.0, 1.0], "b": [4.0, 6.0]})
    wide_a = release_of(aligned, aligned, domains={"a": (0, 1000), "b": (0, 10)})
    wide_b = release_of(aligned, aligned, domains={"a": (0, 10), "b": (0, 1000)})
    assert evaluate(frame, wide_a).risk["record_linkage"] == 100.0
    assert evaluate(frame, wide_b).risk["record_linkage"] == 0.0


def test_without_a_domain_the_range_of_the_original_is_the_width() -> None:
    frame = pd.DataFrame({"a": [0.0, 10.0, 4.0]})
    assert evaluate(frame, release_of(frame, frame, domains={})).risk["record_linkage_widths"] == {"a": 10.0}


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f)])
def test_every_frame_library_gives_the_same(convert: Any) -> None:
    frame = people()
    other = frame.assign(age=frame["age"] + 1)
    assert evaluate(convert(frame), convert(other)).to_dict() == evaluate(frame, other).to_dict()


def test_paths_are_read(tmp_path: Path) -> None:
    frame = people()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.head(10).to_parquet(tmp_path / "b.parquet")
    found = evaluate(str(tmp_path / "a.csv"), tmp_path / "b.parquet")
    assert found.to_dict() == evaluate(frame, frame.head(10)).to_dict()
    assert found.rows == {"original": 60, "released": 10}


def test_a_table_with_columns_named_like_a_release_is_a_table() -> None:
    frame = pd.DataFrame({"aligned": [1.0, 2.0], "domains": [1.0, 3.0], "kept": [0.0, 1.0]})
    assert evaluate(frame, frame).columns == ("aligned", "domains", "kept")


def test_missing_values_are_counted_and_left_out() -> None:
    before = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, 4.0]})
    after = pd.DataFrame({"a": [2.0, 2.0, np.nan], "b": [1.0, 2.0, 4.0]})
    found = evaluate(before, release_of(after, after))
    assert found.missing == {"a": {"original": 1, "released": 1}, "b": {"original": 0, "released": 0}}
    assert found.utility["attributes"]["a"]["sse"] == 1.0
    assert found.utility["sse"] == 1.0
    assert found.risk["record_linkage_records"] == 1


def test_a_column_of_missing_values_has_no_measures() -> None:
    before = pd.DataFrame({"a": [np.nan, np.nan], "b": [1.0, 2.0]})
    found = evaluate(before, release_of(before, before))
    assert found.utility["attributes"]["a"]["sse"] is None
    assert found.utility["sse"] == 0.0
    assert found.risk["record_linkage"] is None
    assert found.utility["correlation_excluded"] == ["a"]


def test_one_row_and_one_column() -> None:
    frame = pd.DataFrame({"a": [5.0]})
    found = evaluate(frame, release_of(frame + 1, frame + 1))
    assert found.utility["sse"] == 1.0
    assert found.utility["mean_variation"] == pytest.approx(0.2)
    assert found.utility["variance_variation"] is None
    assert found.utility["correlation_difference"] is None
    assert (found.risk["actual_k"], found.risk["record_linkage"]) == (1, 100.0)


def test_constant_columns_are_said() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 3.0, 3.0], "c": [1.0, 0.0, 5.0]})
    found = evaluate(frame, frame)
    assert found.utility["correlation_excluded"] == ["b"]
    assert found.utility["correlation_pairs"] == 1
    assert found.utility["attributes"]["b"]["variance_variation"] is None
    assert found.utility["variance_variation"] == 0.0


def test_actual_k_counts_text_columns_of_the_released_table() -> None:
    frame = people()
    both = pd.DataFrame({"age": [30, 30, 40, 40], "town": ["Aa", "Bb", "Aa", "Aa"]})
    found = evaluate(frame, both)
    assert found.risk["actual_k"] == 1
    assert found.risk["unique_share"] == 0.5
    assert found.risk["actual_k_per_attribute"] == {"age": 2, "town": 1}
    assert evaluate(frame, both, columns=["age"]).risk["actual_k"] == 2


def test_chosen_columns_only() -> None:
    frame = people()
    found = evaluate(frame, frame, columns=["income", "income"])
    assert found.columns == ("income",)
    assert found.skipped == {"age": "not requested", "town": "not requested"}
    assert evaluate(frame, frame, columns="income").columns == ("income",)


def test_columns_only_one_table_has_are_named() -> None:
    found = evaluate(pd.DataFrame({"a": [1.0], "x": [1]}), pd.DataFrame({"a": [1.0], "y": [1]}))
    assert found.skipped == {"x": "not released", "y": "not in the original"}


@pytest.mark.parametrize(
    ("before", "after", "options", "message"),
    [
        (
            {"a": [1]},
            {"b": [1]},
            {},
            r"no common column that can be compared: the original has 'a', the released table 'b'",
        ),
        ({"a": [1]}, {"a": ["x"]}, {}, "no common column"),
        (
            {"income": [1]},
            {"income": [1]},
            {"columns": ["incom"]},
            "no column 'incom' in the original.*'income'",
        ),
        ({"a": [1], "b": [2]}, {"a": [1]}, {"columns": ["b"]}, "no column 'b' in the released"),
        (
            {"a": [1], "t": ["x"]},
            {"a": [1], "t": [7]},
            {"columns": ["t"]},
            "column 't' is String in the original but Int64 in the released table",
        ),
        ({"a": []}, {"a": [1]}, {}, "the original table has no rows"),
        ({"a": [1]}, {"a": []}, {}, "the released table has no rows"),
    ],
)
def test_bad_input_is_named(before: Any, after: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(pd.DataFrame(before), pd.DataFrame(after), **options)


def test_no_columns_chosen_is_refused() -> None:
    with pytest.raises(OptionError, match="columns is empty"):
        evaluate(people(), people(), columns=[])


def test_the_wrong_original_is_refused() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    release = release_of(frame, frame)
    with pytest.raises(InputError, match="release has 3 rows, but the original table has 2"):
        evaluate(frame.head(2), release)
    release.kept = np.array([0, 1, 5])
    with pytest.raises(InputError, match="at least 6 rows, but this table has 3"):
        evaluate(frame, release)


def test_to_dict_is_json_without_nan() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [3, 3]})
    for other in (frame, release_of(frame, frame)):
        found = evaluate(frame, other).to_dict()
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_tables_fit_80_columns_and_explain_every_measure() -> None:
    rng = np.random.default_rng(1)
    wide = pd.DataFrame({f"attribute_with_a_long_name_{j}": 1e120 * rng.normal(size=40) for j in range(3)})
    wide["[bold]"] = rng.normal(size=40)
    other = wide * -1.0001e-20
    text = text_of(evaluate(wide, release_of(other, other, domains={})))
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    for phrase in ("sum of squared errors", "Wilson interval", "smallest group of identical rows", "[bold]"):
        assert phrase in text
    plain = text_of(evaluate(wide, other))
    assert "order of the rows is unknown" in " ".join(plain.split())
    assert "squared errors" not in plain


def test_importing_does_not_load_the_heavy_libraries() -> None:
    code = "import sys, shoal.evaluation; print([m for m in ('scipy', 'rich', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
