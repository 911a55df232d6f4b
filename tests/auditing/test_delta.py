"""Audits of claims with a δ: e^ε · p + δ is what is tested, noise that is enough survives, too little is refuted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import shoal
from shoal.auditing.statistics import best_events, epsilon_bounds
from tests.support import gaussian_method

X = {"x": (0, 100)}
TABLE = pa.table({"x": [0, 40, 100]})


def test_an_event_that_is_as_likely_as_delta_proves_nothing() -> None:
    # 100 of 10,000 here and never there: a pure claim is far off, one with δ = 0.02 is not
    assert float(epsilon_bounds(100, 10_000, 0, 10_000, 0.01)) > 2
    assert float(epsilon_bounds(100, 10_000, 0, 10_000, 0.01, delta=0.02)) == 0
    with_a_little = float(epsilon_bounds(5000, 10_000, 1840, 10_000, 0.01, delta=1e-6))
    assert with_a_little == pytest.approx(float(epsilon_bounds(5000, 10_000, 1840, 10_000, 0.01)), abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_is_valid_where_the_delta_is_used_up(epsilon: float) -> None:
    """The worst mechanism that is (ε, δ)-DP: it tells with probability δ, and otherwise answers as pure ε does."""
    rng, delta, runs = np.random.default_rng(1), 0.05, 4000
    here = delta + (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    there = (1 - delta) / (1 + math.exp(epsilon))
    hits, false_hits = rng.binomial(runs, [here, there], (4000, 2)).T
    exceeded = epsilon_bounds(hits, runs, false_hits, runs, 0.05, delta) > epsilon
    assert stats.binomtest(int(exceeded.sum()), 4000, 0.05, "greater").pvalue > 1e-9
    # without the δ it would claim to have refuted a true claim
    assert (epsilon_bounds(hits, runs, false_hits, runs, 0.05) > epsilon).mean() > 0.1


def test_the_search_passes_over_events_that_delta_allows() -> None:
    """A statistic that tells with probability 0.04, and one that tells a little all the time."""
    rng = np.random.default_rng(2)
    rare = np.zeros((2, 5000)), np.arange(5000) < 200
    often = rng.random((2, 5000)) < np.array([[0.6], [0.35]])
    left = {"rare": rare[1].astype(float), "often": often[0].astype(float)}
    right = {"rare": rare[0][0], "often": often[1].astype(float)}
    assert best_events(left, right, 1)[0][1].statistic == "rare"
    assert best_events(left, right, 1, delta=0.05)[0][1].statistic == "often"


def audited(too_little: Fraction, epsilon: str, delta: str, runs: int = 2000) -> shoal.Audit:
    with gaussian_method.registered(too_little):
        return shoal.audit(
            TABLE, method="values", epsilon=epsilon, delta=delta, domains=X, runs=runs, seed=1, workers=1
        )


def test_noise_that_is_enough_survives() -> None:
    found = audited(Fraction(1), "2", "1e-6", runs=500)
    assert (found.model, found.claimed, found.refuted, found.delta) == ("approximate-dp", True, False, 1e-6)


@pytest.mark.slow
def test_too_little_noise_is_refuted() -> None:
    broken = audited(Fraction(1, 6), "2", "1e-6")
    assert broken.alarm
    assert broken.verdict.endswith("but ε = 2 is claimed with δ = 1e-06")
    assert broken.to_dict()["delta"] == 1e-6


def test_a_pure_claim_is_audited_without_delta() -> None:
    found = audited(Fraction(1), "1", "0", runs=500)
    assert (found.model, found.delta, found.refuted) == ("dp", 0.0, False)
