"""Record linkage of mixed tables against the definition, with ties, missing names and samples."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.evaluation import linkage
from shoal.evaluation._kernels import BLOCK
from shoal.evaluation.linkage import record_linkage
from shoal.evaluation.pair import MISSING, Column, Nominal, Ordered
from shoal.taxonomy import Taxonomy
from tests.conftest import examples

from .mixed_oracle import credits, semantic_distance

PARENTS = {"root": None, "a": "root", "b": "root", "a1": "a", "a2": "a", "a3": "a", "b1": "b"}
TREE = Taxonomy.from_pairs([(child, parent) for child, parent in PARENTS.items() if parent])
FLAT = ["x", "y", "z"]


def columns(before: list[Any], after: list[Any], width: float) -> list[Column]:
    """Rows of (concept, name, number) as three columns."""
    sides = [list(zip(*rows, strict=True)) for rows in (before, after)]
    concepts = [TREE.encode(list(side[0]), concepts=True, missing=MISSING) for side in sides]
    names = [np.array([MISSING if v is None else FLAT.index(v) for v in side[1]]) for side in sides]
    numbers = [np.array(side[2], dtype=float) for side in sides]
    return [
        Nominal("concept", concepts[0], concepts[1], concepts[1], TREE.size, TREE),
        Nominal("name", names[0], names[1], names[1], len(FLAT)),
        Ordered("number", "numeric", numbers[0], numbers[1], numbers[1], (0.0, width)),
    ]


@cache
def squared_gap(a: Any, b: Any, tree: bool) -> float:
    """One nominal term of Eq. 6.7."""
    width = TREE.width if tree else semantic_distance("p", "q", None, 0)
    return (semantic_distance(a, b, PARENTS if tree else None, width) / width) ** 2


def slow(before: list[Any], after: list[Any], width: float) -> list[float]:
    """Credits by Eq. 6.7 term by term."""

    def distance(row: int, record: int) -> float:
        (concept, name, number), (a, b, x) = after[row], before[record]
        return math.sqrt(
            squared_gap(concept, a, True) + squared_gap(name, b, False) + ((number - x) / width) ** 2
        )

    return credits(distance, len(before))


originals = st.tuples(
    st.sampled_from(["a1", "a2", "a3", "b1", None]), st.sampled_from([*FLAT, None]), st.integers(0, 3)
)
released = st.tuples(
    st.sampled_from([*PARENTS, None]), st.sampled_from([*FLAT, None]), st.sampled_from([0, 0.5, 1, 2.25, 3])
)


@given(st.lists(st.tuples(originals, released), min_size=1, max_size=25), st.sampled_from([1.0, 3.0, 40.0]))
@settings(max_examples=examples(150))
def test_linkage_is_that_of_the_definition(rows: list[Any], width: float) -> None:
    before, after = (list(side) for side in zip(*rows, strict=True))
    found = linkage.mixed_linkage(columns(before, after, width))
    expected = slow(before, after, width)
    assert found is not None
    assert found.percent == pytest.approx(100 * np.mean(expected))
    assert found.records == found.rows == len(rows)
    assert found.chance == pytest.approx(100 / len(rows))


def random_rows(n: int, seed: int, keep: float = 0.7) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    before = [
        (str(rng.choice(["a1", "a2", "a3", "b1"])), str(rng.choice(FLAT)), int(rng.integers(0, 30)))
        for _ in range(n)
    ]
    after = [
        (c if rng.random() < keep else str(rng.choice(list(PARENTS))), d, x + int(rng.integers(-1, 2)))
        for c, d, x in before
    ]
    return before, after


def test_more_records_than_fit_into_a_block() -> None:
    before, after = random_rows(2 * BLOCK + 7, seed=1)
    assert len(set(before)) > BLOCK
    found = linkage.mixed_linkage(columns(before, after, 30.0))
    assert found is not None
    assert found.percent == pytest.approx(100 * np.mean(slow(before, after, 30.0)))


def test_small_distance_tables_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = random_rows(200, seed=2)
    whole = linkage.mixed_linkage(columns(before, after, 30.0))
    monkeypatch.setattr(linkage, "_TABLE_ENTRIES", 20)
    assert linkage.mixed_linkage(columns(before, after, 30.0)) == whole


@pytest.mark.parametrize("seed", range(5))
def test_without_names_it_is_the_linkage_of_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 12, (300, 3)).astype(float)
    after = before + rng.choice([-0.5, 0.0, 0.25], before.shape)
    widths = np.array([12.0, 7.0, 3.0])
    made = [
        Ordered(f"x{j}", "numeric", before[:, j], after[:, j], after[:, j], (0.0, widths[j]))
        for j in range(3)
    ]
    assert linkage.mixed_linkage(made) == record_linkage(before, after, widths)


def test_a_sample_of_rows_is_linked_with_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = random_rows(400, seed=3, keep=0.9)
    made = columns(before, after, 30.0)
    distinct = len(set(before))
    monkeypatch.setattr(linkage, "LEAST_ROWS", 10)
    found = linkage.mixed_linkage(made, comparisons=150 * distinct)
    assert found is not None
    assert (found.records, found.rows) == (400, 150)
    rows = linkage._sample(400, distinct, 150 * distinct)
    assert len(set(rows.tolist())) == 150
    exact = np.array(slow(before, after, 30.0))
    assert found.percent == pytest.approx(100 * exact[rows].mean())
    low, high = found.interval
    assert low <= 100 * exact.mean() <= high
    assert found == linkage.mixed_linkage(made, comparisons=150 * distinct)
    fewest = linkage.mixed_linkage(made, comparisons=1)
    assert fewest is not None
    assert fewest.rows == 10


def test_rows_with_a_missing_number_do_not_take_part_and_missing_names_do() -> None:
    before = [("a1", "x", 1.0), ("a1", None, 2.0), ("b1", "y", math.nan), ("a2", "z", 3.0)]
    after = [("a1", "x", 1.0), ("a1", None, 2.0), ("b1", "y", 4.0), ("a2", "z", math.nan)]
    found = linkage.mixed_linkage(columns(before, after, 4.0))
    assert found is not None
    assert (found.records, found.percent) == (2, 100.0)
    nothing = [(a, b, math.nan) for a, b, _ in before]
    assert linkage.mixed_linkage(columns(nothing, nothing, 4.0)) is None


def test_attributes_without_a_width_carry_no_distance() -> None:
    one = np.zeros(4, dtype=np.int64)
    constant = Nominal("c", one, one, one, 1)
    found = linkage.mixed_linkage([constant])
    assert found is not None
    assert found.percent == pytest.approx(25.0)
    before, after = random_rows(50, seed=4)
    made = columns(before, after, 30.0)
    zeros = np.zeros(50, dtype=np.int64)
    assert linkage.mixed_linkage([*made, Nominal("c", zeros, zeros, zeros, 1)]) == linkage.mixed_linkage(made)


def test_a_large_offset_of_a_number_makes_no_false_ties() -> None:
    """Differences far below the offset still decide, rounding does not."""
    numbers = 1e9 + np.array([0.1, 0.2, 0.3])
    shifted = numbers + 0.04
    names = np.array([0, 0, 0])
    made: list[Column] = [
        Nominal("n", names, names, names, 2),
        Ordered("x", "numeric", numbers, shifted, shifted, (1e9, 1e9 + 1)),
    ]
    found = linkage.mixed_linkage(made)
    assert found is not None
    assert found.percent == 100.0
