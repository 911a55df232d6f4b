"""One draw at a time is the same distribution as many at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from shoal.noise import discrete_laplace
from shoal.noise.discrete import single_laplace
from shoal.noise.entropy import Seeded, SystemEntropy

RUNS = 40_000


def p_value(draws: np.ndarray, t: int, s: int) -> float:
    """Chi-square of draws against the exact distribution of scale t/s."""
    q = np.exp(-s / t)
    edges = np.unique(np.round(np.quantile(draws, np.linspace(0.02, 0.98, 25))))
    below = np.where(edges <= 0, q ** -(edges - 1) / (1 + q), 1 - q**edges / (1 + q))
    expected = np.diff([0.0, *below, 1.0]) * draws.size
    seen, _ = np.histogram(draws, [-np.inf, *edges, np.inf])
    return float(stats.chisquare(seen, expected).pvalue)


@pytest.mark.parametrize(("t", "s"), [(1, 1), (5, 2), (3, 7), (1000, 1), (2**52, 1)])
def test_draws_follow_the_exact_distribution(t: int, s: int) -> None:
    source = SystemEntropy()
    assert p_value(np.array([single_laplace(t, s, source) for _ in range(RUNS)], dtype=float), t, s) > 1e-9


def test_the_check_sees_a_scale_that_is_five_percent_off() -> None:
    source = Seeded(1)
    draws = np.array([single_laplace(1050, 1, source) for _ in range(RUNS)], dtype=float)
    assert p_value(draws, 1000, 1) < 1e-9


def test_many_at_once_are_the_same_distribution() -> None:
    assert p_value(discrete_laplace(Fraction(5, 2), RUNS, SystemEntropy()).astype(float), 5, 2) > 1e-9
