"""Rows that are drawn have the moments they were drawn from, and come from the distributions named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.mechanisms.moments.sampling import (
    LARGEST_SKEWNESS,
    ClusterShape,
    draw_rows,
    skewness_parameter,
    standard_normal,
)
from shoal.noise import Seeded

Floats = NDArray[np.float64]
ROWS = 100_000
# false alarms: once in a thousand million runs
ALARM = 1e-9


def one_cluster(shape: ClusterShape, means: Floats, seed: int = 1, rows: int = ROWS) -> Floats:
    drawn, _ = draw_rows(means[np.newaxis], shape, np.zeros(rows, dtype=np.int64), Seeded(seed))
    return drawn


def distance(found: Floats, expected: Floats, spread: Floats | float) -> float:
    """Largest deviation in standard errors."""
    return float(np.abs((found - expected) / spread).max() * np.sqrt(ROWS))


def test_normal_deviates() -> None:
    drawn = standard_normal(ROWS, Seeded(4))
    assert stats.kstest(drawn, "norm").pvalue > ALARM
    assert stats.kstest(drawn * 1.05, "norm").pvalue < ALARM


def test_normal_rows_have_the_given_moments() -> None:
    correlation = np.array([[1.0, 0.8, -0.3], [0.8, 1.0, 0.1], [-0.3, 0.1, 1.0]])
    deviations, means = np.array([2.0, 0.5, 1.0]), np.array([5.0, -1.0, 0.0])
    drawn = one_cluster(ClusterShape(deviations[np.newaxis], correlation[np.newaxis]), means)
    assert distance(drawn.mean(axis=0), means, deviations) < 6
    covariance = correlation * np.outer(deviations, deviations)
    assert distance(np.cov(drawn.T), covariance, 1.5 * np.outer(deviations, deviations)) < 6
    # and another correlation would be noticed
    assert distance(np.cov(drawn.T), 0.9 * covariance, 1.5 * np.outer(deviations, deviations)) > 6
    assert np.abs(stats.skew(drawn, axis=0)).max() < 6 * np.sqrt(6 / ROWS)


def test_without_correlations_attributes_are_independent() -> None:
    drawn = one_cluster(ClusterShape(np.array([[1.0, 3.0]])), np.zeros(2))
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 6 / np.sqrt(ROWS)


@pytest.mark.parametrize("together", [False, True])
def test_skewed_rows_have_the_given_moments(together: bool) -> None:
    skewness = np.array([0.5, 0.25])
    correlation = np.array([[[1.0, 0.4], [0.4, 1.0]]]) if together else None
    deviations, means = np.array([2.0, 0.5]), np.array([5.0, -1.0])
    shape = ClusterShape(deviations[np.newaxis], correlation, skewness[np.newaxis])
    drawn, adjusted = draw_rows(means[np.newaxis], shape, np.zeros(ROWS, dtype=np.int64), Seeded(2))
    assert adjusted == 0
    assert distance(drawn.mean(axis=0), means, deviations) < 6
    assert distance(drawn.var(axis=0), deviations**2, 2 * deviations**2) < 6
    assert distance(stats.skew(drawn, axis=0), skewness, 4.0) < 6
    assert abs(np.corrcoef(drawn.T)[0, 1] - (0.4 if together else 0.0)) < 8 / np.sqrt(ROWS)
    for column, asked in zip(((drawn - means) / deviations).T, skewness, strict=True):
        delta = float(skewness_parameter(np.array(asked)))
        alpha = delta / np.sqrt(1 - delta**2)
        own = stats.skewnorm(alpha)
        standardised = stats.skewnorm(alpha, loc=-own.mean() / own.std(), scale=1 / own.std())
        assert stats.kstest(column, standardised.cdf).pvalue > ALARM
        assert stats.kstest(column, "norm").pvalue < ALARM


@pytest.mark.parametrize("asked", [-LARGEST_SKEWNESS, -0.3, 0.0, 0.5, LARGEST_SKEWNESS])
def test_the_parameter_has_the_skewness(asked: float) -> None:
    delta = float(skewness_parameter(np.array(asked)))
    assert abs(delta) < 1
    found = stats.skewnorm.stats(delta / np.sqrt(1 - delta**2), moments="s")
    assert float(found) == pytest.approx(asked, abs=1e-9)


def test_skewness_that_does_not_fit_the_correlations_becomes_milder_and_variances_stay() -> None:
    """Opposite skewness of two nearly equal attributes: no skew-normal row has it."""
    shape = ClusterShape(np.ones((1, 2)), np.array([[[1.0, 0.95], [0.95, 1.0]]]), np.array([[0.9, -0.9]]))
    drawn, adjusted = draw_rows(np.zeros((1, 2)), shape, np.zeros(ROWS, dtype=np.int64), Seeded(3))
    assert adjusted == 1
    assert distance(drawn.mean(axis=0), np.zeros(2), 1.0) < 6
    assert distance(drawn.var(axis=0), np.ones(2), 2.0) < 6
    skewness = stats.skew(drawn, axis=0)
    assert 0 < skewness[0] < 0.9
    assert -0.9 < skewness[1] < 0


def test_every_cluster_has_its_own_distribution_whatever_the_sizes() -> None:
    sizes = [30_000, 20_000, 20_000, 30_000]
    labels = np.random.default_rng(5).permutation(np.repeat(np.arange(4), sizes))
    means = np.arange(8.0).reshape(4, 2)
    signs = np.array([0.9, -0.9, 0.0, 0.5])
    correlation = np.array([[[1.0, r], [r, 1.0]] for r in signs])
    drawn, _ = draw_rows(means, ClusterShape(np.ones((4, 2)), correlation), labels, Seeded(6))
    for cluster in range(4):
        own = drawn[labels == cluster]
        assert np.abs(own.mean(axis=0) - means[cluster]).max() < 6 / np.sqrt(20_000)
        assert abs(np.corrcoef(own.T)[0, 1] - signs[cluster]) < 6 / np.sqrt(20_000)
