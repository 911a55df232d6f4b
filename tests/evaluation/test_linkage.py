"""Record linkage equals its definition, ties and duplicates included, and reproduces the published figures."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.evaluation import linkage
from shoal.evaluation.linkage import linkage_credits, record_linkage
from shoal.partition import mdav
from tests.conftest import data_file, examples

from .linkage_oracle import brute_force_credits


def census() -> NDArray[np.float64]:
    with data_file("census.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([[float(row[name]) for name in ("FEDTAX", "POTHVAL", "INTVAL", "FICA")] for row in rows])


@pytest.mark.parametrize("margin", [1.0, 1.5])
@pytest.mark.parametrize(("k", "printed"), [(2, 45.3), (5, 18.4), (15, 6.48), (30, 3.33)])
def test_thesis_table_6_1_mdav_record_linkage(k: int, printed: float, margin: float) -> None:
    X = census()
    widths = margin * X.max(axis=0)
    clusters = mdav(X / widths, k)
    found = record_linkage(X, clusters.centroids(X)[clusters.labels], widths)
    assert float(f"{found.percent:.3g}") == printed
    assert found.interval[0] < found.percent < found.interval[1]
    assert found.chance == pytest.approx(100 / 1080)


@st.composite
def tables(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Small integer grids: full of duplicates and of different records at the same distance."""
    n = draw(st.integers(1, 25))
    d = draw(st.integers(1, 4))
    high = draw(st.integers(0, 4))
    offset = draw(st.sampled_from([0.0, 0.1, -7.3, 1e6]))
    step = draw(st.sampled_from([1.0, 0.1, 1 / 3]))
    cells = st.lists(st.integers(0, high), min_size=n * d, max_size=n * d)
    original = offset + step * np.array(draw(cells), dtype=float).reshape(n, d)
    kind = draw(st.sampled_from(["same", "halves", "shuffled", "mean", "free"]))
    if kind == "same":
        released = original.copy()
    elif kind == "halves":
        released = (original + original[::-1]) / 2
    elif kind == "shuffled":
        released = original[draw(st.permutations(range(n)))]
    elif kind == "mean":
        released = np.repeat(original.mean(axis=0, keepdims=True), n, axis=0)
    else:
        released = offset + step * np.array(draw(cells), dtype=float).reshape(n, d) / 2
    widths = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 3.0, 7.0]), min_size=d, max_size=d)))
    return original, released, widths


@settings(max_examples=examples(400), deadline=None)
@given(tables())
def test_credits_equal_the_definition_on_grids_full_of_ties(
    case: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> None:
    original, released, widths = case
    assert linkage_credits(original, released, widths).tolist() == brute_force_credits(
        original, released, widths
    )


@pytest.mark.parametrize(
    ("noise", "least", "most"), [(0.001, 300, 300), (0.05, 200, 299), (1.0, 5, 60), (30.0, 0, 5)]
)
def test_credits_equal_the_definition_on_noisy_tables(noise: float, least: int, most: int) -> None:
    rng = np.random.default_rng(5)
    original = np.round(rng.lognormal(0.0, 1.0, (300, 3)) * 50)
    released = original + noise * 50 * rng.laplace(size=original.shape)
    widths = original.max(axis=0)
    credits = linkage_credits(original, released, widths)
    assert credits.tolist() == brute_force_credits(original, released, widths)
    assert least <= credits.sum() <= most


def test_many_ties_are_searched_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkage, "TIES_AT_ONCE", 7)
    corners = np.array([[x, y] for x in range(8) for y in range(8)], dtype=float)
    released = corners + 0.5  # every point inside the grid is as far from four corners
    widths = np.array([8.0, 8.0])
    credits = linkage_credits(corners, released, widths)
    assert credits.tolist() == brute_force_credits(corners, released, widths)
    assert np.unique(credits).tolist() == [0.25, 0.5, 1.0]


def test_search_on_threads_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    original = rng.integers(0, 30, (400, 3)).astype(float)
    released = original + rng.integers(-2, 3, original.shape)
    widths = np.full(3, 30.0)
    alone = linkage_credits(original, released, widths)
    monkeypatch.setattr(linkage, "THREADS_FROM", 1)
    assert linkage_credits(original, released, widths).tolist() == alone.tolist()


def test_a_tie_broken_only_by_rounding_is_a_tie() -> None:
    original = np.array([[0.1], [0.3]])
    middle = np.full((2, 1), 0.2)
    assert abs(0.2 - 0.1) != abs(0.3 - 0.2)
    assert linkage_credits(original, middle, np.array([1.0])).tolist() == [0.5, 0.5]


def test_a_large_offset_does_not_hide_the_nearest_record() -> None:
    original = 1e9 + np.arange(50, dtype=float)[:, np.newaxis]
    released = original + 0.4
    assert linkage_credits(original, released, np.array([50.0])).tolist() == [1.0] * 50


def test_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    original = rng.integers(0, 6, (200, 2)).astype(float)
    released = original + rng.integers(-1, 2, original.shape)
    widths = np.array([6.0, 6.0])
    order = rng.permutation(200)
    straight = linkage_credits(original, released, widths)
    assert linkage_credits(original[order], released[order], widths).tolist() == straight[order].tolist()


def test_identical_records_share_the_credit() -> None:
    same = np.ones((8, 2))
    assert record_linkage(same, same, np.array([1.0, 1.0])).percent == 100 / 8


def test_rows_with_one_released_value_share_at_most_one_credit() -> None:
    rng = np.random.default_rng(2)
    original = rng.integers(0, 9, (120, 2)).astype(float)
    labels = np.repeat(np.arange(24), 5)
    centres = np.array([original[labels == g].mean(axis=0) for g in range(24)])
    credits = linkage_credits(original, centres[labels], np.array([9.0, 9.0]))
    assert np.bincount(labels, weights=credits).max() <= 1 + 1e-12


def test_one_record_is_always_found() -> None:
    found = record_linkage(np.array([[3.0]]), np.array([[99.0]]), np.array([1.0]))
    assert (found.percent, found.chance, found.records) == (100.0, 100.0, 1)
    assert found.interval[1] == 100.0


def test_attributes_without_width_leave_only_guessing() -> None:
    values = np.array([[1.0], [2.0], [3.0], [4.0]])
    assert record_linkage(values, values, np.array([0.0])).percent == 25.0


def test_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="same shape"):
        linkage_credits(np.ones((2, 1)), np.ones((3, 1)), np.array([1.0]))
    with pytest.raises(ValueError, match="at least one row"):
        linkage_credits(np.ones((0, 1)), np.ones((0, 1)), np.array([1.0]))
