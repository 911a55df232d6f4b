"""The Wilson interval has the known values and covers what it should, also for fractional credits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.evaluation.learning import wilson


def test_known_value() -> None:
    assert wilson(0.1, 50) == pytest.approx((0.0434745, 0.2136023), abs=2e-6)


def test_no_and_all_successes_reach_the_ends() -> None:
    assert wilson(0.0, 20)[0] == 0.0
    assert wilson(1.0, 20)[1] == 1.0
    assert 0.0 < wilson(0.0, 20)[1] < 0.2
    assert 0.8 < wilson(1.0, 20)[0] < 1.0


@given(st.floats(0, 1), st.integers(1, 10**7))
def test_interval_contains_the_estimate_and_stays_in_range(proportion: float, n: int) -> None:
    low, high = wilson(proportion, n)
    assert 0.0 <= low <= proportion + 1e-12
    assert proportion - 1e-12 <= high <= 1.0


def test_more_confidence_is_wider_and_more_records_are_narrower() -> None:
    assert np.ptp(wilson(0.3, 100, 0.99)) > np.ptp(wilson(0.3, 100, 0.95)) > np.ptp(wilson(0.3, 400, 0.95))


def _covered(spread: float, draws: int = 4000, n: int = 200) -> int:
    """How often the interval, its width multiplied by `spread`, holds the mean of credits 0, 1/3, 1/2 or 1."""
    rng = np.random.default_rng(11)
    credit, chance = np.array([0.0, 1 / 3, 1 / 2, 1.0]), np.array([0.6, 0.2, 0.15, 0.05])
    truth = float(credit @ chance)
    means = rng.choice(credit, p=chance, size=(draws, n)).mean(axis=1)
    inside = 0
    for mean in means:
        low, high = wilson(float(mean), n)
        inside += mean - spread * (mean - low) <= truth <= mean + spread * (high - mean)
    return inside


def test_fractional_credits_are_covered_and_a_narrow_interval_is_caught() -> None:
    # 6 standard deviations below 95% of 4000: a false alarm about once in 1e9 runs
    floor = 4000 * 0.95 - 6 * math.sqrt(4000 * 0.95 * 0.05)
    assert _covered(1.0) >= floor
    assert _covered(0.5) < floor
