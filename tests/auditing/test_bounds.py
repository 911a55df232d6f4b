"""The bound is exact: Clopper-Pearson against the binomial distribution itself, and its coverage by enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from shoal.auditing.statistics import clopper_pearson_lower, clopper_pearson_upper, epsilon_bounds


@pytest.mark.parametrize("runs", [1, 7, 50, 1000])
@pytest.mark.parametrize("alpha", [0.2, 0.01, 1e-8])
def test_limits_solve_the_binomial_equation(runs: int, alpha: float) -> None:
    for successes in sorted({0, 1, runs // 3, runs - 1, runs}):
        low = float(clopper_pearson_lower(successes, runs, alpha))
        high = float(clopper_pearson_upper(successes, runs, alpha))
        assert 0 <= low <= successes / runs <= high <= 1
        if successes:
            assert binom.sf(successes - 1, runs, low) == pytest.approx(alpha, rel=1e-6)
        if successes < runs:
            assert binom.cdf(successes, runs, high) == pytest.approx(alpha, rel=1e-6)


def test_nothing_seen_bounds_nothing() -> None:
    assert float(clopper_pearson_lower(0, 100, 0.05)) == 0.0
    assert float(clopper_pearson_upper(100, 100, 0.05)) == 1.0
    assert float(epsilon_bounds(0, 100, 0, 100, 0.01)) == 0.0
    assert float(epsilon_bounds(10, 100, 60, 100, 0.01)) == 0.0


@pytest.mark.parametrize(("here", "there"), [(0.5, 0.5 / math.e), (0.02, 0.01), (0.9, 0.3)])
def test_the_bound_exceeds_the_truth_no_more_often_than_allowed(here: float, there: float) -> None:
    runs, alpha = 60, 0.1
    counts = np.arange(runs + 1)
    bounds = np.array([epsilon_bounds(counts, runs, int(other), runs, alpha) for other in counts])
    probability = np.outer(binom.pmf(counts, runs, there), binom.pmf(counts, runs, here))
    assert probability[bounds > math.log(here / there)].sum() <= alpha


def test_a_bound_without_confidence_limits_would_exceed_it_often() -> None:
    runs, here, there = 60, 0.5, 0.5 / math.e
    counts = np.arange(1, runs + 1)
    plain = np.log(counts[None, :] / counts[:, None])
    probability = np.outer(binom.pmf(counts, runs, there), binom.pmf(counts, runs, here))
    assert probability[plain > 1].sum() > 0.3


def test_more_attacks_at_the_same_confidence_give_a_lower_bound() -> None:
    one, three = (float(epsilon_bounds(500, 1000, 100, 1000, 0.01 / attacks)) for attacks in (1, 3))
    assert 0 < three < one < math.log(5)
