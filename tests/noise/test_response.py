"""Randomised response: exact odds, and what happens at either end of ε."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from shoal.errors import OptionError
from shoal.noise import Seeded
from shoal.noise.choice import _untruth, check_response, randomised_response, reversal_probability


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_the_odds_of_the_truth_are_never_more_than_epsilon_allows(epsilon: Fraction) -> None:
    untruth, scale = _untruth(epsilon)
    assert scale >= 1
    assert untruth / scale <= epsilon
    # and lose no more than two parts in a million of it
    assert untruth / scale >= epsilon * (1 - Fraction(1, 2**18))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("truth", [True, False])
def test_answers_are_reversed_as_often_as_stated(epsilon: Fraction, truth: bool) -> None:
    n = 40_000
    found = randomised_response(np.full(n, truth), epsilon, Seeded(5))
    reversed_answers = int((found != truth).sum())
    assert binomtest(reversed_answers, n, reversal_probability(epsilon)).pvalue > 1e-4
    # the same test rejects an ε one tenth larger
    assert binomtest(reversed_answers, n, reversal_probability(epsilon + Fraction(1, 10))).pvalue < 1e-3


def test_nothing_is_reversed_at_an_enormous_epsilon_and_half_of_all_at_a_tiny_one() -> None:
    truth = np.arange(1000) % 3 == 0
    assert (randomised_response(truth, Fraction(10**9), Seeded(1)) == truth).all()
    answers = randomised_response(truth, Fraction(1, 10**9), Seeded(1))
    assert abs((answers == truth).mean() - 0.5) < 0.06
    assert reversal_probability(Fraction(10**6)) == pytest.approx(0)
    assert math.isclose(reversal_probability(Fraction(1, 10**9)), 0.5, rel_tol=1e-6)


def test_no_records_need_no_answers() -> None:
    assert randomised_response(np.zeros(0, dtype=np.bool_), Fraction(1), Seeded(1)).size == 0


def test_an_epsilon_that_no_coin_can_take_is_refused_with_the_column() -> None:
    with pytest.raises(OptionError, match="column 'age', indicator of missing values: scale"):
        check_response(Fraction(1, 10**16), "age")
