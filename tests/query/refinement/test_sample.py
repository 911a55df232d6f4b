"""Samples follow the exact law; a law that is a little off is noticed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from shoal.columns.kinds import Lattice
from shoal.noise import Seeded
from shoal.query.refinement import (
    Factors,
    Points,
    Refined,
    absolute,
    categorical,
    movable,
    nominal,
    normal,
    refine,
    sample,
    uniform,
)
from shoal.query.refinement.refine import whole_below

THRESHOLD = 1e-9
DRAWS = 10_000


def p_value(drawn: NDArray[np.int64], law: list[Fraction]) -> float:
    """Chi-square of the draws against a law; answers of little mass are put together."""
    expected = np.array([float(p) for p in law]) * drawn.size
    counts = np.bincount(drawn, minlength=expected.size)
    assert not counts[expected == 0].any()
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    keep = expected > 0
    statistic = ((counts[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    return float(chi2.sf(statistic, keep.sum() - 1))


def boolean() -> Refined:
    prior = categorical({"0": "0.99", "1": "0.01"})
    return refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(1)))


def table_5_5() -> Refined:
    prior = uniform(Points(Lattice(Fraction(0), Fraction(1), Fraction(1, 40))))
    return refine(prior, absolute(prior.support, 20), Factors.individual(Fraction(1)))


def with_boundary() -> Refined:
    prior = normal(Lattice(Fraction(0), Fraction(30), Fraction(1)), Fraction(20), Fraction(6))
    return refine(prior, absolute(prior.support, 4), Factors.statistical(Fraction(2)))


def with_delta() -> Refined:
    prior = uniform(Points(Lattice(Fraction(0), Fraction(12), Fraction(1))))
    moved = movable(Fraction(1), Fraction(1, 5), individual=True, replace_one=False)
    return refine(prior, absolute(prior.support, 3), Factors.individual(Fraction(1)), moved)


@pytest.mark.parametrize("law", [boolean(), table_5_5(), with_boundary(), with_delta()])
def test_samples_follow_the_law_and_a_law_of_half_the_knowledge_is_noticed(law: Refined) -> None:
    source = Seeded(5)
    drawn = np.array([sample(law, source) for _ in range(DRAWS)])
    exact = law.probabilities()
    assert p_value(drawn, exact) > THRESHOLD
    half = [(p + law.prior.mass(i)) / 2 for i, p in enumerate(exact)]
    assert p_value(drawn, [max(p, Fraction(1, 10**9)) for p in half]) < THRESHOLD


def test_a_sampler_that_forgets_the_boundary_set_is_noticed() -> None:
    law = with_boundary()
    source = Seeded(6)
    drawn = np.array([sample(law, source) for _ in range(DRAWS)])
    broken = [law.prior.mass(i) if law.groups[i] == 1 else p for i, p in enumerate(law.probabilities())]
    assert p_value(drawn, [p / sum(broken) for p in broken]) < THRESHOLD


def test_whole_numbers_below_a_large_bound_are_uniform() -> None:
    bound = 3 << 80
    drawn = np.array([whole_below(bound, Seeded(seed)) * 12 // bound for seed in range(6000)])
    assert p_value(drawn, [Fraction(1, 12)] * 12) > THRESHOLD
    # a remainder instead of a second draw would prefer the lower third
    biased = np.array([(whole_below(1 << 82, Seeded(seed)) % bound) * 12 // bound for seed in range(6000)])
    assert p_value(biased, [Fraction(1, 12)] * 12) < THRESHOLD


def test_a_bound_of_one_needs_no_bits() -> None:
    assert whole_below(1, Seeded(1)) == 0
