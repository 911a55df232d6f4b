"""Measures of names and mixed tables against their definitions, and how `evaluate` brings them together."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.columns.attribute import Attribute
from shoal.errors import InputError
from shoal.evaluation import evaluate, utility
from shoal.evaluation.pair import FLAT_DISTANCE, MISSING, Nominal, Ordered
from shoal.taxonomy import Taxonomy

from .mixed_oracle import semantic_distance
from .mixed_oracle import total_variation as slow_total_variation

PARENTS = {
    "work": None, "office": "work", "craft": "work", "clerk": "office", "lawyer": "office", "judge": "lawyer",
    "smith": "craft", "baker": "craft",
}  # fmt: skip
JOBS = Taxonomy.from_pairs([(child, parent) for child, parent in PARENTS.items() if parent])
LEAVES = ["clerk", "judge", "smith", "baker"]


def nominal(before: list[Any], after: list[Any], taxonomy: Taxonomy | None = JOBS) -> Nominal:
    if taxonomy is None:
        labels = sorted({value for value in (*before, *after) if value is not None})
        places = {None: MISSING} | {label: place for place, label in enumerate(labels)}
        codes = [np.array([places[value] for value in values], dtype=np.int64) for values in (before, after)]
        return Nominal("x", codes[0], codes[1], codes[1], len(labels))
    codes = [taxonomy.encode(values, concepts=True, missing=MISSING) for values in (before, after)]
    return Nominal("x", codes[0], codes[1], codes[1], taxonomy.size, taxonomy)


def ordered(
    before: list[float], after: list[float], domain: tuple[float, float], kind: Any = "numeric"
) -> Ordered:
    first, second = np.array(before, dtype=float), np.array(after, dtype=float)
    return Ordered("y", kind, first, second, second, domain)


rows_of_jobs = st.lists(
    st.tuples(st.sampled_from([*LEAVES, None]), st.sampled_from([*PARENTS, None])), min_size=1, max_size=30
)


@given(rows_of_jobs)
def test_semantic_sse_is_the_sum_over_rows(rows: list[tuple[Any, Any]]) -> None:
    before, after = (list(side) for side in zip(*rows, strict=True))
    squares = [semantic_distance(a, b, PARENTS, JOBS.width) ** 2 for a, b in rows]
    column = nominal(before, after)
    assert utility.semantic_sse(column) == pytest.approx(math.fsum(squares), abs=1e-12)
    assert utility.scaled_sse(column) == pytest.approx(math.fsum(squares) / JOBS.width**2, abs=1e-12)


@given(rows_of_jobs)
def test_without_a_taxonomy_all_values_are_equally_far_apart(rows: list[tuple[Any, Any]]) -> None:
    before, after = (list(side) for side in zip(*rows, strict=True))
    column = nominal(before, after, None)
    changed = sum(a != b for a, b in rows)
    assert utility.semantic_sse(column) == pytest.approx(changed * FLAT_DISTANCE**2)
    assert pytest.approx(semantic_distance("a", "b", None, 0)) == FLAT_DISTANCE
    if column.size > 1:
        assert utility.scaled_sse(column) == pytest.approx(changed)


def test_the_flat_distance_is_that_of_the_flat_taxonomy() -> None:
    flat = Taxonomy.flat(["a", "b", "c"])
    assert pytest.approx(FLAT_DISTANCE) == flat.distance(1, 2) == flat.width


def test_scaled_errors_leave_out_missing_numbers_and_need_a_width() -> None:
    column = ordered([0, 1, np.nan, 4], [2, np.nan, 1, 4], (0, 4))
    assert utility.scaled_sse(column) == pytest.approx(0.25)
    assert math.isnan(utility.scaled_sse(ordered([1, 1], [1, 1], (1, 1))))


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40), st.lists(st.integers(0, 9), min_size=1, max_size=40)
)
def test_total_variation_is_that_of_the_counts(before: list[int], after: list[int]) -> None:
    expected = slow_total_variation(before, after)
    codes = np.array(before), np.array(after)
    assert utility.total_variation(*codes, 10) == pytest.approx(expected)
    # far more cells than rows: only those that occur are counted
    assert utility.total_variation(*(c * 10**6 for c in codes), 10**7) == pytest.approx(expected)


def test_numbers_fall_into_equal_parts_of_the_domain() -> None:
    column = ordered([0, 4.99, 5, 100, np.nan], [-50, 99.9, 100, 500, 0], (0, 100))
    before, after, size = utility.categories(column)
    assert size == utility.BINS + 1 == 21
    assert before.tolist() == [0, 0, 1, 19, 20]
    assert after.tolist() == [0, 19, 19, 19, 0]


def test_each_place_of_a_short_order_is_a_category() -> None:
    column = ordered([0, 1, 2, 3], [0, 1, 1, 3], (0, 3), "ordinal")
    before, after, size = utility.categories(column)
    assert before.tolist() == [0, 1, 2, 3]
    assert after.tolist() == [0, 1, 1, 3]
    assert size == 5
    long = ordered(list(range(40)), list(range(40)), (0, 39), "ordinal")
    assert utility.categories(long)[2] == utility.BINS + 1


def test_a_constant_column_is_one_category() -> None:
    before, after, _ = utility.categories(ordered([7, 7], [7, 9], (7, 7)))
    assert before.tolist() == after.tolist() == [0, 0]


cell = st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3), st.booleans())


@given(st.lists(cell, min_size=1, max_size=30), st.lists(cell, min_size=1, max_size=30))
def test_contingency_is_that_of_the_two_way_counts(before: list[Any], after: list[Any]) -> None:
    """From tables of three kinds of columns to every pair, by counting cells one by one."""
    names = ("text", "number", "truth")
    tables = [
        pa.table({name: pa.array([row[j] for row in rows], kind) for j, (name, kind) in enumerate(zip(
            names, (pa.string(), pa.int64(), pa.bool_()), strict=True))})
        for rows in (before, after)
    ]  # fmt: skip
    found = evaluate(*tables).utility
    lo, hi = min(row[1] for row in before), max(row[1] for row in before)

    def parts(rows: list[Any]) -> list[Any]:
        # four numbers are four of twenty parts; what lies outside the original's range goes to its ends
        return [(text, min(max(number, lo), hi), truth) for text, number, truth in rows]

    first, second = parts(before), parts(after)
    pairs = {
        (names[i], names[j]): slow_total_variation(
            [(row[i], row[j]) for row in first], [(row[i], row[j]) for row in second]
        )
        for i, j in ((0, 1), (0, 2), (1, 2))
    }
    single = [slow_total_variation([row[j] for row in first], [row[j] for row in second]) for j in range(3)]
    assert found["total_variation"] == pytest.approx(np.mean(single))
    assert [found["attributes"][name]["total_variation"] for name in names] == pytest.approx(single)
    assert found["pair_total_variation"] == pytest.approx(np.mean(list(pairs.values())))
    assert found["pair_total_variation_max"] == pytest.approx(max(pairs.values()))
    assert pairs[tuple(found["pair_total_variation_worst"])] == pytest.approx(max(pairs.values()))


def mixed(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "job": rng.choice(LEAVES, n),
            "health": rng.choice(["bad", "fair", "good"], n),
            "married": rng.choice([True, False], n),
            "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 9000, n)],
        }
    )


SCHEMA = shoal.Schema(
    (
        Attribute("age", lo=Fraction(0), hi=Fraction(100)),
        Attribute("job", "nominal", taxonomy=JOBS),
        Attribute("health", "ordinal", ordered=("bad", "fair", "good")),
        Attribute("married", "nominal"),
        Attribute("born", "date", lo=Fraction(-7305), hi=Fraction(3652)),
    )
)
DOMAINS = {"age": (0, 100), "health": (0, 2), "born": (-7305, 3652)}


def release_of(aligned: pd.DataFrame | None, data: pd.DataFrame) -> SimpleNamespace:
    """What `evaluate` needs of a release of a mixed table."""
    return SimpleNamespace(
        data=data,
        aligned=aligned,
        columns=tuple(data.columns),
        domains=DOMAINS,
        kept=None,
        schema=SCHEMA,
    )


def masked(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, np.ndarray]]:
    """Aligned values in numbers of their kind, published ones as the columns store them, and the errors made."""
    rng = np.random.default_rng(12)
    n = len(frame)
    order = ["bad", "fair", "good"]
    places = frame["health"].map(order.index).to_numpy()
    moved = np.clip(places + rng.integers(-1, 2, n), 0, 2)
    days = (pd.to_datetime(frame["born"]) - pd.Timestamp("1970-01-01")).dt.days.to_numpy()
    shifted = days + rng.integers(0, 50, n)
    jobs = np.where(rng.random(n) < 0.5, frame["job"], rng.choice([*PARENTS], n)).astype(object)
    married = np.where(rng.random(n) < 0.8, frame["married"], ~frame["married"])
    age = frame["age"].to_numpy() + rng.normal(0, 3, n)
    aligned = pd.DataFrame(
        {
            "age": age,
            "job": jobs,
            "health": moved.astype(float),
            "married": married,
            "born": shifted.astype(float),
        }
    )
    published = pd.DataFrame(
        {
            "age": np.rint(age).astype(int),
            "job": jobs,
            "health": [order[place] for place in moved],
            "married": married,
            "born": [dt.date(1970, 1, 1) + dt.timedelta(days=int(d)) for d in shifted],
        }
    ).sample(frac=1, random_state=3)
    errors = {
        "age": age - frame["age"],
        "job": np.array(
            [semantic_distance(a, b, PARENTS, JOBS.width) for a, b in zip(frame["job"], jobs, strict=True)]
        ),
        "health": (moved - places).astype(float),
        "married": np.where(married == frame["married"], 0, FLAT_DISTANCE),
        "born": (shifted - days).astype(float),
    }
    return aligned, published, {name: np.asarray(error, dtype=float) for name, error in errors.items()}


def test_a_mixed_release_is_measured_by_the_kinds_of_its_columns() -> None:
    frame = mixed()
    aligned, published, errors = masked(frame)
    found = evaluate(frame, release_of(aligned, published))
    use = found.utility
    squares = {name: float((error**2).sum()) for name, error in errors.items()}
    widths = {"age": 100, "job": JOBS.width, "health": 2, "married": FLAT_DISTANCE, "born": 10957}
    assert found.columns == tuple(frame.columns)
    assert use["sse"] == pytest.approx(squares["age"])
    assert use["semantic_sse"] == pytest.approx(squares["job"] + squares["married"])
    assert use["scaled_sse"] == pytest.approx(sum(squares[name] / widths[name] ** 2 for name in squares))
    assert found.risk["record_linkage_widths"] == pytest.approx(widths)
    assert found.risk["record_linkage_rows"] == len(frame)
    for name in ("age", "health", "born"):
        assert use["attributes"][name]["sse"] == pytest.approx(squares[name])
        assert use["attributes"][name]["semantic_sse"] is None
    for name in ("job", "married"):
        assert use["attributes"][name]["semantic_sse"] == pytest.approx(squares[name])
        assert use["attributes"][name]["sse"] is None
    assert use["attributes"]["age"]["mean_variation"] is not None
    assert use["attributes"]["born"]["mean_variation"] is None
    assert use["attributes"]["health"]["wasserstein"] is not None
    assert [line["kind"] for line in use["attributes"].values()] == [
        *("numeric", "nominal", "ordinal", "nominal", "date")
    ]


def test_missing_as_a_category_has_the_distance_of_its_concept() -> None:
    frame = mixed().assign(job=[None, "clerk"] * 20)
    schema = shoal.Schema(
        tuple(dataclasses.replace(a, missing="category") if a.name == "job" else a for a in SCHEMA.attributes)
    )
    aligned, published, _ = masked(mixed())
    release = release_of(aligned.assign(job=["clerk"] * 40), published.assign(job=["clerk"] * 40))
    release.schema = schema
    found = evaluate(frame, release)
    gap = math.log2(1 + 3 / 4)  # the concept itself, against office and clerk, below one root
    assert found.utility["attributes"]["job"]["semantic_sse"] == pytest.approx(20 * gap**2)
    assert found.missing["job"] == {"original": 20, "released": 0}


def test_numbers_that_are_names() -> None:
    before = pd.DataFrame({"code": [1, 2, 3, 3]})
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": "code", "kind": "nominal", "values": ["1", "2", "3"]}]}
    )
    aligned = pd.DataFrame({"code": [1.0, 3.0, np.nan, 3.0]})
    release = SimpleNamespace(
        data=aligned.sample(frac=1, random_state=1), aligned=aligned, columns=("code",), domains={}, kept=None,
        schema=schema,
    )  # fmt: skip
    found = evaluate(before, release)
    assert found.utility["semantic_sse"] == pytest.approx(2 * FLAT_DISTANCE**2)
    assert found.missing["code"] == {"original": 0, "released": 1}


def test_a_release_without_rows_of_an_original_has_the_order_free_measures() -> None:
    frame = mixed()
    aligned, published, _ = masked(frame)
    with_rows, without = (evaluate(frame, release_of(rows, published)) for rows in (aligned, None))
    assert without.utility["semantic_sse"] is None
    assert without.utility["scaled_sse"] is None
    assert without.risk["record_linkage"] is None
    for key in ("total_variation", "pair_total_variation", "pair_total_variation_max"):
        assert without.utility[key] == with_rows.utility[key] > 0


def test_a_table_against_itself_has_lost_nothing() -> None:
    frame = mixed()
    order = ["bad", "fair", "good"]
    days = (pd.to_datetime(frame["born"]) - pd.Timestamp("1970-01-01")).dt.days
    aligned = frame.assign(health=frame["health"].map(order.index), born=days)
    found = evaluate(frame, release_of(aligned, frame.sample(frac=1, random_state=1)))
    for key in ("sse", "semantic_sse", "scaled_sse", "total_variation", "pair_total_variation"):
        assert found.utility[key] == 0.0
    assert found.risk["record_linkage"] == 100.0


def test_a_value_the_taxonomy_does_not_know_is_named() -> None:
    frame = mixed()
    aligned, published, _ = masked(frame)
    with pytest.raises(InputError, match=r"column 'job' of the original table.*juggler"):
        evaluate(frame.assign(job=["juggler", *frame["job"][1:]]), release_of(aligned, published))


def test_two_mixed_tables_without_a_schema() -> None:
    """Text and truth values are names, dates are ordered, and an empty text is missing."""
    before = mixed().assign(note=["", "x"] * 20)
    before["born"] = pd.to_datetime(before["born"])
    after = before.assign(job=before["job"].replace("judge", "lawyer"), note=None)
    found = evaluate(before, after)
    kinds = {name: line["kind"] for name, line in found.utility["attributes"].items()}
    assert kinds.pop("age") == "numeric"
    assert kinds.pop("born") == "date"
    assert kinds == dict.fromkeys(("job", "health", "married", "note"), "nominal")
    share = (before["job"] == "judge").mean()
    assert found.utility["attributes"]["job"]["total_variation"] == pytest.approx(share)
    assert found.missing["note"] == {"original": 20, "released": 40}
    assert found.utility["attributes"]["note"]["total_variation"] == 0.5
    assert found.utility["attributes"]["born"]["wasserstein"] == 0.0
    assert found.utility["pair_total_variation_worst"] is not None


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pa.Table.from_pandas, lambda f: f.astype({"job": "category"})]
)
def test_every_frame_library_gives_the_same(convert: Any) -> None:
    before = mixed()
    before["born"] = pd.to_datetime(before["born"]).astype("datetime64[ms]")
    after = before.assign(job=before["job"].iloc[::-1].to_numpy(), married=True)
    plain = evaluate(before, after).to_dict()
    assert evaluate(convert(before), convert(after)).to_dict() == plain


def test_only_names() -> None:
    frame = pd.DataFrame({"job": ["clerk", "judge", "clerk", None]})
    found = evaluate(frame, frame)
    assert found.columns == ("job",)
    assert found.utility["sse"] is None
    assert found.utility["correlation_pairs"] == 0
    assert found.utility["total_variation"] == 0.0
    assert found.utility["pair_total_variation"] is None


def test_columns_of_different_kinds_are_left_out_and_said() -> None:
    before = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": ["1", "2"]})
    after = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [1, 2]})
    assert evaluate(before, after).skipped == {"c": "different kinds of values"}


def test_the_terminal_shows_names_by_themselves() -> None:
    from io import StringIO

    from rich.console import Console

    frame = mixed()
    aligned, published, _ = masked(frame)
    console = Console(width=80, record=True, file=StringIO())
    console.print(evaluate(frame, release_of(aligned, published)))
    text = console.export_text()
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    for phrase in ("By nominal attribute", "semantic SSE", "total variation", "in domain widths"):
        assert phrase in text
