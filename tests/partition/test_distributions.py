"""Distances of groups to the table equal their definitions, computed the slow way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from shoal.partition.groups import (
    count_groups,
    distinct_values,
    equal_distances,
    ordered_distances,
    ratio_distances,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Group and value numbers of up to 40 records."""
    records = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=40))
    groups, values = np.array(records, dtype=np.int64).T
    return tuple(np.unique(side, return_inverse=True)[1] for side in (groups, values))


def shares(groups: np.ndarray, values: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The distribution in each group, and in the table."""
    kinds = values.max() + 1
    own = [
        np.bincount(values[groups == g], minlength=kinds) / (groups == g).sum()
        for g in range(groups.max() + 1)
    ]
    return own, np.bincount(values, minlength=kinds) / values.size


@given(tables())
def test_every_measure_equals_its_definition(table: tuple[np.ndarray, np.ndarray]) -> None:
    groups, values = table
    counts = count_groups(groups, values)
    own, whole = shares(groups, values)
    assert distinct_values(counts).tolist() == [int((p > 0).sum()) for p in own]
    assert equal_distances(counts) == pytest.approx([0.5 * np.abs(p - whole).sum() for p in own])
    steps = max(whole.size - 1, 1)
    assert ordered_distances(counts) == pytest.approx(
        [np.abs(np.cumsum(p - whole)).sum() / steps for p in own], abs=1e-12
    )
    expected = [max(max(x / q, q / x if x else math.inf) for x, q in zip(p, whole, strict=True)) for p in own]
    assert ratio_distances(counts) == pytest.approx(expected)


@given(tables())
def test_ordered_distance_is_the_least_work_of_moving_earth(table: tuple[np.ndarray, np.ndarray]) -> None:
    groups, values = table
    own, whole = shares(groups, values)
    m = whole.size
    work = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / max(m - 1, 1)
    sums = np.vstack([np.repeat(np.eye(m), m, axis=1), np.tile(np.eye(m), m)])
    least = linprog(work.ravel(), A_eq=sums, b_eq=np.concatenate((own[0], whole)), method="highs").fun
    assert ordered_distances(count_groups(groups, values))[0] == pytest.approx(least, abs=1e-9)


def test_long_runs_of_absent_values_are_summed_exactly() -> None:
    values = np.arange(20_000)
    groups = np.random.default_rng(1).permutation(values) % 7
    own, whole = shares(groups, values)
    expected = [np.abs(np.cumsum(p - whole)).sum() / (values.size - 1) for p in own]
    assert ordered_distances(count_groups(groups, values)) == pytest.approx(expected, abs=1e-13)
