"""What pages compare: bins, labels, quantiles and two-way tables against slow and plain computations."""

from __future__ import annotations

import itertools
from collections import Counter
from datetime import date, timedelta
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.io import Table, read
from shoal.report.differences import (
    BINS,
    MOST_LABELS,
    MOST_PAIRS,
    OTHER,
    ColumnRange,
    bin_edges,
    compare,
    correlate,
    grouped,
    pair_tables,
    percent_words,
)
from shoal.report.figures import attribute_sections, relation_sections
from shoal.report.findings import Subject, of_release

LEVELS = ("none", "school", "degree")


def people(n: int = 300, seed: int = 3, towns: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pa.table(
        {
            "age": age,
            "pay": (age * 100 + rng.normal(0, 500, n)).clip(0, 10_000),
            "level": pa.array(rng.choice(LEVELS, n)),
            "birth": pa.array([date(2000, 1, 1) - timedelta(days=int(365 * years)) for years in age]),
            "town": pa.array([f"T{code:02d}" for code in rng.integers(0, towns, n)]),
        }
    )


def schema(towns: int = 4) -> shoal.Schema:
    return shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "age", "lo": 0, "hi": 120},
                {"name": "pay", "lo": 0.0, "hi": 10_000.0},
                {"name": "level", "kind": "ordinal", "ordered": list(LEVELS)},
                {"name": "birth", "kind": "date", "lo": "1900-01-01", "hi": "2010-01-01"},
                {"name": "town", "kind": "nominal", "values": [f"T{code:02d}" for code in range(towns)]},
            ]
        }
    )


def subject(table: pa.Table, towns: int = 4, **options: Any) -> Subject:
    arguments = {"method": "laplace", "epsilon": 5, "seed": 1} | options
    return of_release(shoal.protect(table, schema(towns), **arguments))


@pytest.fixture(scope="module")
def both() -> tuple[Subject, Table]:
    return subject(people()), read(people())


def test_every_distribution_holds_every_row(both: tuple[Subject, Table]) -> None:
    found = compare(*both)
    assert [part.name for part in found] == ["age", "pay", "level", "birth", "town"]
    for part in found:
        assert part.distribution.before is not None
        assert part.distribution.before.sum() == pytest.approx(1)
        assert part.distribution.after.sum() == pytest.approx(1)
        assert part.missing == (0, 0)
        assert (part.quantiles is not None) is (part.kind in ("numeric", "date"))


def test_a_table_compared_with_itself_has_not_changed() -> None:
    table = people()
    made = subject(table)
    same = Subject(made.statement, read(table), made.schema, made.columns, made.recipe)
    for part in compare(same, read(table)):
        assert part.distribution.moved == 0
        assert all(float(change.change.split()[0].rstrip("%")) == 0 for change in part.changes)
        if part.quantiles is not None:
            assert np.array_equal(*part.quantiles)
    pairs = pair_tables(same, read(table))
    assert pairs is not None
    assert pairs.moved is not None
    assert not pairs.moved.any()


def test_shares_of_labels_are_those_counted_by_hand(both: tuple[Subject, Table]) -> None:
    town = next(part for part in compare(*both) if part.name == "town")
    counts = Counter(both[1].series("town").to_list())
    assert town.distribution.before is not None
    for label, share in zip(town.distribution.labels, town.distribution.before, strict=True):
        assert share == pytest.approx(counts[label] / 300)


def test_rare_labels_are_put_together_and_nothing_is_lost() -> None:
    table = people(towns=60)
    town = next(part for part in compare(subject(table, 60), read(table)) if part.name == "town")
    assert len(town.distribution.labels) == MOST_LABELS
    assert town.distribution.labels[-1] == OTHER
    assert town.distribution.before is not None
    assert town.distribution.before.sum() == pytest.approx(1)
    assert town.distribution.before[-1] > 0.3


@given(
    st.lists(st.integers(-500, 500), min_size=1, max_size=50), st.lists(st.integers(-500, 500), min_size=1)
)
def test_bins_of_whole_numbers_hold_equally_many_of_them(first: list[int], second: list[int]) -> None:
    edges = bin_edges([ColumnRange.of(np.array(first, float)), ColumnRange.of(np.array(second, float))])
    widths = np.diff(edges)
    assert len(widths) <= BINS
    assert np.all(widths == widths[0])
    assert widths[0] == round(widths[0])
    assert edges[0] <= min(*first, *second)
    assert edges[-1] >= max(*first, *second)


def test_changes_are_those_of_the_tables(both: tuple[Subject, Table]) -> None:
    pay = next(part for part in compare(*both) if part.name == "pay")
    before, after = both[1].numeric("pay"), both[0].table.numeric("pay")
    lines = {change.statistic: change for change in pay.changes}
    assert list(lines) == [
        "mean",
        "variance",
        "5% quantile",
        "25% quantile",
        "median",
        "75% quantile",
        "95% quantile",
    ]
    assert lines["mean"].change == percent_words(after.mean() / before.mean() - 1, "+")
    assert lines["variance"].change == percent_words(after.var() / before.var() - 1, "+")
    assert lines["median"].change == f"{(np.median(after) - np.median(before)) / before.std():+.2f} sd"


def test_missing_values_are_counted_and_left_out_of_the_shares() -> None:
    table = people()
    pay = table["pay"].to_pylist()
    pay[:30] = [None] * 30
    holes = table.set_column(1, "pay", pa.array(pay, pa.float64()))
    made = subject(holes, method="mdav-dp", k=10, missing="separate")
    found = next(part for part in compare(made, read(holes)) if part.name == "pay")
    assert found.missing == (30, 30)
    assert found.distribution.before is not None
    assert found.distribution.before.sum() == pytest.approx(1)


def test_correlations_are_those_of_numpy(both: tuple[Subject, Table]) -> None:
    found = correlate(*both)
    assert found is not None
    assert found.names == ("age", "pay", "level", "birth")
    assert found.before is not None
    for name, matrix in (("before", found.before), ("after", found.after)):
        table = both[1] if name == "before" else both[0].table
        expected = np.corrcoef(table.numeric("age"), table.numeric("pay"))[0, 1]
        assert matrix[0, 1] == pytest.approx(expected)


def test_two_way_tables_are_those_counted_by_hand(both: tuple[Subject, Table]) -> None:
    found = pair_tables(*both)
    assert found is not None
    assert len(found.shown) == MOST_PAIRS
    for pair in found.shown:
        for grid, place in ((pair.before, 0), (pair.after, 1)):
            assert grid is not None
            cells = Counter(
                zip(pair.first.codes[place].tolist(), pair.second.codes[place].tolist(), strict=True)
            )
            for i, j in itertools.product(range(pair.first.size), range(pair.second.size)):
                assert grid[i, j] == pytest.approx(cells[i, j] / 300)
        assert pair.before is not None
        assert pair.moved == pytest.approx(0.5 * np.abs(pair.before - pair.after).sum())
    worst = [float(pair.moved or 0) for pair in found.shown[: MOST_PAIRS // 2]]
    assert found.moved is not None
    assert worst == sorted(worst, reverse=True)
    assert worst[0] == pytest.approx(found.moved.max())


def test_without_an_original_only_the_released_table_is_shown(both: tuple[Subject, Table]) -> None:
    for part in compare(both[0], None):
        assert part.distribution.before is None
        assert part.changes == ()
    pairs = pair_tables(both[0], None)
    assert pairs is not None
    assert pairs.moved is None
    assert all(pair.before is None for pair in pairs.shown)


def test_drawings_hold_bins_and_never_all_rows() -> None:
    """A table a hundred times as large makes a page of about the same size."""
    sizes = []
    for rows in (300, 30_000):
        table = people(rows)
        made = subject(table)
        placed = [f for section in attribute_sections(made, read(table)) for f in section["figures"]]
        related = relation_sections(made, read(table))
        placed += [*related["correlations"], *related["groups"]]
        placed += [figure for pair in related["pairs"] for figure in pair["figures"]]
        sizes.append(sum(len(figure.svg) for figure in placed))
    assert sizes[1] < 1.5 * sizes[0]
    assert sizes[1] < 150_000


def test_every_drawing_has_a_caption_and_words_for_those_who_cannot_see(both: tuple[Subject, Table]) -> None:
    for section in attribute_sections(*both):
        assert section["figures"]
        for figure in section["figures"]:
            assert figure.caption
            assert section["name"] in figure.alt
            assert f'aria-label="{escape(figure.alt)}"' in figure.svg


def test_relations_that_were_kept_and_lost_are_told_apart() -> None:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, 3000)
    table = pa.table(
        {"age": age, "pay": age * 100 + rng.integers(0, 50, 3000), "other": rng.permutation(age)}
    )
    mixed = table.set_column(1, "pay", pa.array(rng.permutation(table["pay"].to_numpy())))
    for released, word in ((table, "kept"), (mixed, "lost")):
        made = shoal.protect(
            released,
            method="laplace",
            epsilon=10**6,
            domains=dict.fromkeys(released.column_names, (0.0, 10_000.0)),
        )
        found = pair_tables(of_release(made), read(table))
        assert found is not None
        words = {(pair.first, pair.second): pair.word for pair in found.kept}
        assert words["age", "pay"] == word
        assert words["age", "other"] == "none to keep"
        assert found.kept[0].first == "age"
        assert found.kept[0].second == "pay"


def test_means_of_groups_are_those_computed_by_hand(both: tuple[Subject, Table]) -> None:
    made, original = both
    found = grouped(made, original, pair_tables(made, original))
    assert found
    for one in found:
        assert made.attribute(one.measured).kind == "numeric"
        values = original.numeric(one.measured)
        labels = np.array(original.series(one.by).to_list())
        assert one.before is not None
        for label, mean in zip(one.labels, one.before, strict=True):
            if mean is not None and label in labels:
                assert mean == pytest.approx(values[labels == label].mean())
