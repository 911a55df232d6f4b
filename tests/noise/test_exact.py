"""Bernoulli(exp(-x)) by walking its decision tree with exact rational weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from shoal.errors import OptionError
from shoal.noise import Source, SystemEntropy, bernoulli_exp, geometric_exp

from .decision_tree import enumerate_paths, exp_minus


@pytest.mark.parametrize(
    "x",
    [
        Fraction(0),
        Fraction(1, 3),
        Fraction(1, 2**50),
        Fraction(2**50 - 1, 2**50),
        Fraction(1),
        Fraction(7, 3),
        Fraction(4),
    ],
)
def test_the_decision_tree_of_exp_brackets_the_true_probability(x: Fraction) -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: bool(bernoulli_exp([x.numerator], [x.denominator], source)[0]), 1e-9
    )
    heads = outcomes.get(True, Fraction(0))
    assert heads <= exp_minus(x) <= heads + undecided
    assert undecided < Fraction(1, 10**6)


def test_the_bracket_rejects_a_ratio_that_is_off_by_one_in_a_thousand() -> None:
    outcomes, undecided = enumerate_paths(lambda source: bool(bernoulli_exp([1001], [2000], source)[0]), 1e-9)
    assert not outcomes[True] <= exp_minus(Fraction(1, 2)) <= outcomes[True] + undecided


def test_two_coins_flipped_together_are_independent() -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: tuple(bernoulli_exp([1, 4], [2, 3], source).tolist()), 1e-7
    )
    both = exp_minus(Fraction(1, 2)) * exp_minus(Fraction(4, 3))
    assert outcomes[True, True] <= both <= outcomes[True, True] + undecided
    assert undecided < Fraction(1, 10**3)


def test_the_decision_tree_of_the_geometric_count_brackets_the_true_probabilities() -> None:
    outcomes, undecided = enumerate_paths(lambda source: int(geometric_exp(1, source)[0]), 1e-7)
    for count in range(6):
        exact = exp_minus(Fraction(count)) - exp_minus(Fraction(count + 1))
        assert outcomes[count] <= exact <= outcomes[count] + undecided
    assert undecided < Fraction(1, 10**3)


def _flips(above: int, under: int, n: int, source: Source) -> int:
    return int(bernoulli_exp(np.full(n, above), under, source).sum())


@pytest.mark.parametrize(("above", "under"), [(1, 10), (3, 4), (1, 1), (5, 2), (2**55 - 1, 2**56 - 1)])
def test_large_arrays_of_flips_have_the_right_share(above: int, under: int) -> None:
    n = 200_000
    heads = _flips(above, under, n, SystemEntropy())
    assert stats.binomtest(heads, n, float(exp_minus(Fraction(above, under)))).pvalue > 1e-9
    assert (
        stats.binomtest(heads, n, float(exp_minus(Fraction(above, under) * Fraction(11, 10)))).pvalue < 1e-9
    )


def test_shapes_broadcast_and_bad_ratios_are_refused() -> None:
    assert bernoulli_exp([[0], [0]], [1, 2, 3], SystemEntropy()).all()
    assert bernoulli_exp(0, 1, SystemEntropy()).shape == ()
    for above, under in [(-1, 2), (1, 0), (0.5, 1), (1, 2**56)]:
        with pytest.raises(OptionError, match="numerator"):
            bernoulli_exp(above, under, SystemEntropy())
