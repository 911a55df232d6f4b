"""Utility measures against independent formulas, and their values where they are undefined."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.stats import pearsonr, wasserstein_distance

from shoal.evaluation import utility
from tests.conftest import examples

NUMBERS = st.integers(-50, 50).map(float)
COLUMN = st.lists(NUMBERS, min_size=1, max_size=30).map(np.array)
Column = NDArray[np.float64]


def of_moments(measure: Callable[..., float], before: Column, after: Column) -> float:
    return measure(utility.Moments.of(before), utility.Moments.of(after))


def mean_variation(before: Column, after: Column) -> float:
    return of_moments(utility.mean_variation, before, after)


def variance_variation(before: Column, after: Column) -> float:
    return of_moments(utility.variance_variation, before, after)


def test_row_errors_by_hand() -> None:
    found = utility.row_errors(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 3.0]))
    variance = ((1 - 3) ** 2 + (2 - 3) ** 2 + (6 - 3) ** 2) / 3
    assert (found.sse, found.sae, found.rows) == (10.0, 4.0, 3)
    assert found.normalised_sse == pytest.approx(10 / 3 / variance)


def test_replacing_all_by_the_mean_has_normalised_sse_one() -> None:
    x = np.array([3.0, 8.0, 1.0, 4.0])
    assert utility.row_errors(x, np.full(4, x.mean())).normalised_sse == pytest.approx(1.0)


def test_row_errors_use_rows_that_have_both_values() -> None:
    found = utility.row_errors(np.array([1.0, np.nan, 5.0, 7.0]), np.array([2.0, 3.0, np.nan, 9.0]))
    assert (found.sse, found.sae, found.rows) == (5.0, 3.0, 2)
    empty = utility.row_errors(np.array([np.nan]), np.array([1.0]))
    assert empty.rows == 0
    assert math.isnan(empty.sse)


def test_infinite_values_count_as_missing() -> None:
    assert utility.row_errors(np.array([1.0, np.inf]), np.array([2.0, 3.0])).rows == 1
    assert mean_variation(np.array([2.0, np.inf]), np.array([3.0])) == 0.5


def test_relative_changes_by_hand() -> None:
    x, y = np.array([1.0, 3.0]), np.array([0.0, 6.0])
    assert mean_variation(x, y) == 0.5
    assert variance_variation(x, y) == 8.0
    assert mean_variation(-x, -y) == 0.5


@pytest.mark.parametrize("constant", [0.0, 5.0, 0.1])
def test_a_constant_original_has_no_relative_variance_and_no_scale(constant: float) -> None:
    x, y = np.full(7, constant), np.arange(7.0)
    assert math.isnan(variance_variation(x, y))
    assert math.isnan(utility.wasserstein(x, y))
    assert math.isnan(utility.row_errors(x, y).normalised_sse)


def test_a_mean_of_zero_has_no_relative_change() -> None:
    assert math.isnan(mean_variation(np.array([-1.0, 1.0]), np.array([2.0])))


@pytest.mark.parametrize("measure", [mean_variation, variance_variation, utility.wasserstein])
def test_a_column_without_values_has_no_measure(measure: object) -> None:
    assert callable(measure)
    assert math.isnan(measure(np.array([np.nan]), np.array([1.0])))
    assert math.isnan(measure(np.array([1.0, 2.0]), np.array([np.nan])))


@given(COLUMN, COLUMN)
def test_wasserstein_equals_scipy(x: np.ndarray, y: np.ndarray) -> None:
    found = utility.wasserstein(x, y)
    if x.min() == x.max():
        assert math.isnan(found)
    else:
        assert found == pytest.approx(wasserstein_distance(x, y) / x.std(), abs=1e-9)


@given(COLUMN)
def test_order_free_measures_are_zero_on_a_shuffled_copy(x: np.ndarray) -> None:
    y = np.random.default_rng(1).permutation(x)
    for measure in (mean_variation, variance_variation, utility.wasserstein):
        found = measure(x, y)
        assert math.isnan(found) or found == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=examples(150))
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.one_of(st.integers(-5, 5).map(float), st.just(math.nan)),
    )
)
def test_correlations_equal_pearson_over_the_common_rows(values: np.ndarray) -> None:
    found = utility.correlations(values)
    for i in range(values.shape[1]):
        for j in range(values.shape[1]):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            a, b = values[both, i], values[both, j]
            if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
                assert math.isnan(found[i, j])
            else:
                assert found[i, j] == pytest.approx(pearsonr(a, b)[0], abs=1e-9)


@pytest.mark.parametrize(("scale", "offset"), [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e9)])
def test_correlations_survive_extreme_scales(scale: float, offset: float) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-100, 100, (500, 3)).astype(float)
    plain = np.corrcoef(x.T)
    assert utility.correlations(scale * x + offset) == pytest.approx(plain, abs=1e-9)


def test_correlation_difference_by_hand_and_over_all_pairs() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(60, 4)), rng.normal(size=(45, 4))
    gaps = [
        abs(pearsonr(x[:, i], x[:, j])[0] - pearsonr(y[:, i], y[:, j])[0])
        for i in range(4)
        for j in range(i + 1, 4)
    ]
    found = utility.correlation_difference(utility.correlations(x), utility.correlations(y))
    assert found.mean == pytest.approx(np.mean(gaps))
    assert found.largest == pytest.approx(max(gaps))
    assert (found.pairs, found.excluded) == (6, ())


def test_constant_columns_are_left_out_of_the_correlations_and_named() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(20, 4))
    y = x.copy()
    x[:, 1], y[:, 3] = 5.0, 0.1
    found = utility.correlation_difference(utility.correlations(x), utility.correlations(y))
    assert found.excluded == (1, 3)
    assert found.pairs == 1
    assert found.mean == pytest.approx(0.0, abs=1e-12)


def test_one_column_has_no_correlation_difference() -> None:
    alone = utility.correlations(np.arange(5.0)[:, None])
    found = utility.correlation_difference(alone, alone)
    assert math.isnan(found.mean)
    assert found.pairs == 0
