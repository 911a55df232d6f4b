"""Knowledge refinement: the thesis' examples to the printed digit, exact laws, and privacy by enumeration."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.columns.kinds import Lattice
from shoal.errors import OptionError
from shoal.query.refinement import (
    Factors,
    Labels,
    Points,
    Prior,
    absolute,
    categorical,
    combined,
    joint,
    movable,
    nominal,
    refine,
    uniform,
)
from tests.conftest import examples

EPSILONS = [Fraction(1, 10), Fraction(7, 10), Fraction(1), Fraction(5, 2)]


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Fractions below and above exp(x), forty digits apart from it, by a way that has nothing to do with the code."""
    with localcontext(prec=80):
        near = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    slack = near / 10**60
    return near - slack, near + slack


def laws(
    prior: Prior, factors: Factors, distance=absolute, moved: Fraction = Fraction(0)
) -> list[list[Fraction]]:
    """The exact law of the answer for every possible truth."""
    return [
        refine(prior, distance(prior.support, truth), factors, moved).probabilities()
        for truth in range(prior.support.size)
    ]


def largest_ratio(first: list[Fraction], second: list[Fraction]) -> Fraction:
    return max(a / b for a, b in zip(first, second, strict=True) if a)


def excess(first: list[Fraction], second: list[Fraction], factor: Fraction) -> Fraction:
    """The least δ for which P1(S) <= factor · P2(S) + δ for all sets S of answers."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(first, second, strict=True)), Fraction(0))


def small_priors() -> list[Prior]:
    lattice = Lattice(Fraction(0), Fraction(6), Fraction(1))
    weights = [[1] * 7, [5, 1, 1, 0, 2, 30, 1], [0, 0, 0, 1, 1, 0, 0], [1000, 1, 1, 1, 1, 1, 1000]]
    return [Prior(Points(lattice), np.array(w, dtype=np.int64)) for w in weights]


def test_the_boolean_example_of_the_thesis() -> None:
    prior = categorical({"0": "0.99", "1": "0.01"})
    absent, present = laws(prior, Factors.individual(Fraction(1)), nominal)
    assert [round(float(p), 6) for p in absent] == [0.996321, 0.003679]
    assert [round(float(p), 6) for p in present] == [0.972817, 0.027183]
    # the thesis cuts off after six digits, except for one number
    assert math.floor(float(absent[1]) * 10**6) == 3678
    assert math.floor(float(present[1]) * 10**6) == 27182
    # its last line prints .003912
    answered = absent[1] * Fraction(99, 100) + present[1] * Fraction(1, 100)
    assert round(float(answered), 6) == 0.003914


def test_tables_5_3_and_5_4_of_the_thesis() -> None:
    prior = uniform(Labels(("0", "1")))
    law = laws(prior, Factors.individual(Fraction(1)), nominal)[0]
    assert [round(float(p), 4) for p in law] == [0.8161, 0.1839]
    missing = refine(prior, None, Factors.individual(Fraction(1))).probabilities()
    assert missing == [Fraction(1, 2)] * 2
    down = 2 * law[1]
    both = [[a * b for b in law] for a in law]
    assert both == [
        [(1 - down / 2) ** 2, (1 - down / 2) * down / 2],
        [(1 - down / 2) * down / 2, down**2 / 4],
    ]
    first_missing = [[a * b for b in law] for a in missing]
    second_missing = [[a * b for b in missing] for a in law]
    assert first_missing[0] == [(1 - down / 2) / 2, down / 4]
    assert second_missing[0] == [(1 - down / 2) / 2, (1 - down / 2) / 2]
    ratios = {
        both[i][j] / other[i][j]
        for other in (first_missing, second_missing)
        for i, j in itertools.product(range(2), repeat=2)
    }
    assert ratios == {down, 2 - down}
    assert exp_bounds(Fraction(-1))[0] <= down <= exp_bounds(Fraction(-1))[1] + Fraction(1, 1 << 79)
    # two persons, each answered at ε = 1: one added or removed changes one factor only (Proposition 4)
    assert max(max(ratios), 1 / min(ratios)) <= exp_bounds(Fraction(1))[1]


# ε (ln 2 as its factor), variance, size of U_u and probability of U_u as corrected; then as printed
TABLE_5_5 = [
    (Factors.individual(Fraction(1, 10)), 0.0772, 0.475, 0.525, 0.077),
    (Factors(Fraction(2), Fraction(1, 2)), 0.0463, 0.333, 0.667, 0.046),
    (Factors.individual(Fraction(1)), 0.0345, 0.269, 0.731, 0.034),
    (Factors.individual(Fraction(2)), 0.0123, 0.119, 0.881, 0.012),
]


@pytest.mark.parametrize(("factors", "variance", "size", "chance", "printed"), TABLE_5_5)
def test_table_5_5_of_the_thesis(
    factors: Factors, variance: float, size: float, chance: float, printed: float
) -> None:
    assert round(float(factors.mass_up), 3) == size
    assert round(float(factors.chance_up), 3) == chance
    s = factors.mass_up
    exact = (factors.up * s**3 + factors.down * (1 - s**3)) / 12
    assert round(float(exact), 4) == variance
    assert math.floor(float(exact) * 1000) / 1000 == printed
    # the same on a lattice, through the code
    steps = 2000
    prior = uniform(Points(Lattice(Fraction(0), Fraction(1), Fraction(1, steps))))
    law = refine(prior, absolute(prior.support, steps // 2), factors).probabilities()
    on_lattice = sum(p * (Fraction(i, steps) - Fraction(1, 2)) ** 2 for i, p in enumerate(law))
    assert abs(float(on_lattice - exact)) < 2e-4
    assert (
        abs(sum(p for i, p in enumerate(law) if abs(i - steps // 2) * 2 < s * steps) - factors.chance_up)
        < 0.01
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", small_priors())
@pytest.mark.parametrize("distance", [absolute, nominal])
def test_individual_answers_are_private_by_enumeration(epsilon: Fraction, prior: Prior, distance) -> None:
    factors = Factors.individual(epsilon)
    absent = refine(prior, None, factors).probabilities()
    known = laws(prior, factors, distance)
    assert all(sum(law) == 1 for law in known)
    bound, double = exp_bounds(epsilon)[1], exp_bounds(2 * epsilon)[1]
    for law in known:
        # one record added or removed: ε
        assert largest_ratio(law, absent) <= bound
        assert largest_ratio(absent, law) <= bound
    # one record replaced: 2ε
    replaced = max(largest_ratio(a, b) for a, b in itertools.permutations(known, 2))
    assert replaced <= double


def test_a_replaced_record_really_costs_more_than_epsilon() -> None:
    known = laws(small_priors()[0], Factors.individual(Fraction(1)))
    worst = max(largest_ratio(a, b) for a, b in itertools.permutations(known, 2))
    assert worst > exp_bounds(Fraction(19, 10))[1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("prior", small_priors())
@pytest.mark.parametrize("lift", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_statistical_answers_are_private_between_any_two_data_sets(
    epsilon: Fraction, prior: Prior, lift: Fraction
) -> None:
    known = laws(prior, Factors.statistical(epsilon, lift))
    known.append(refine(prior, None, Factors.statistical(epsilon, lift)).probabilities())
    worst = max(largest_ratio(a, b) for a, b in itertools.permutations(known, 2))
    assert worst <= exp_bounds(epsilon)[1]


def test_factors_as_large_for_statistics_as_for_individuals_would_cost_twice_the_budget() -> None:
    known = laws(small_priors()[0], Factors.individual(Fraction(1)))
    assert max(largest_ratio(a, b) for a, b in itertools.permutations(known, 2)) > exp_bounds(Fraction(1))[1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2)])
@pytest.mark.parametrize("prior", small_priors())
def test_answers_with_delta_are_private_by_enumeration(
    epsilon: Fraction, delta: Fraction, prior: Prior
) -> None:
    factors = Factors.individual(epsilon)
    absent = refine(prior, None, factors).probabilities()
    bound = exp_bounds(epsilon)[1]
    for replace_one in (False, True):
        moved = movable(epsilon, delta, individual=True, replace_one=replace_one)
        known = laws(prior, factors, absolute, moved)
        assert all(sum(law) == 1 and min(law) >= 0 for law in known)
        for law in known:
            assert excess(law, absent, bound) <= delta
            assert excess(absent, law, bound) <= delta
        if replace_one:
            double = exp_bounds(2 * epsilon)[1]
            assert max(excess(a, b, double) for a, b in itertools.permutations(known, 2)) <= delta
    statistics = laws(
        prior,
        Factors.statistical(epsilon),
        absolute,
        movable(epsilon, delta, individual=False, replace_one=True),
    )
    assert max(excess(a, b, bound) for a, b in itertools.permutations(statistics, 2)) <= delta


@pytest.mark.parametrize("individual", [True, False])
def test_the_shares_of_delta_printed_in_the_thesis_are_too_large(individual: bool) -> None:
    """δ for individual and δ/2 for statistical queries: the enumeration above rejects both."""
    epsilon, delta, prior = Fraction(1), Fraction(1, 100), small_priors()[0]
    bound = exp_bounds(epsilon)[1]
    if individual:
        known = laws(prior, Factors.individual(epsilon), absolute, delta)
        absent = refine(prior, None, Factors.individual(epsilon)).probabilities()
        worst = max(excess(absent, law, bound) for law in known)
    else:
        known = laws(prior, Factors.statistical(epsilon), absolute, delta / 2)
        worst = max(excess(a, b, bound) for a, b in itertools.permutations(known, 2))
    assert worst > delta * Fraction(11, 10)


def test_the_masses_printed_in_the_thesis_are_swapped() -> None:
    """With (α_u - 1)/(α_u - α_d) raised, the law would not add up to 1; Table 5.5 itself has the corrected ones."""
    factors = Factors.individual(Fraction(1))
    printed = (factors.up - 1) / (factors.up - factors.down)
    assert factors.up * printed + factors.down * (1 - printed) > Fraction(19, 10)
    assert factors.chance_up + factors.down * (1 - factors.mass_up) == 1
    assert round(float(1 - printed), 3) == 0.269


@st.composite
def drawn_priors(draw: st.DrawFn) -> Prior:
    weights = draw(st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any))
    points = Points(Lattice(Fraction(0), Fraction(max(len(weights) - 1, 1)), Fraction(1)))
    return Prior(points, np.array(weights + [0] * (points.size - len(weights)), dtype=np.int64))


@given(
    drawn_priors(),
    st.data(),
    st.fractions(Fraction(1, 100), 5, max_denominator=100),
    st.fractions(0, Fraction(9, 10), max_denominator=100),
)
@settings(max_examples=80)
def test_a_law_follows_the_distance_and_moves_what_it_may(
    prior: Prior, data: st.DataObject, epsilon: Fraction, moved: Fraction
) -> None:
    truth = data.draw(st.integers(0, prior.support.size - 1))
    distances = absolute(prior.support, truth)
    factors = Factors.individual(epsilon)
    plain = refine(prior, distances, factors).probabilities()
    with_delta = refine(prior, distances, factors, moved).probabilities()
    assert sum(plain) == sum(with_delta) == 1
    for law in (plain, with_delta):
        factor: dict[int, set[Fraction]] = {}
        for i, p in enumerate(law):
            if prior.weights[i]:
                factor.setdefault(int(distances[i]), set()).add(p / prior.mass(i))
            else:
                assert p == 0
        assert all(len(found) == 1 for found in factor.values()), "one distance, one factor"
        ordered = [factor[distance].copy().pop() for distance in sorted(factor)]
        assert ordered == sorted(ordered, reverse=True)
    if prior.weights[truth]:
        assert plain[truth] >= prior.mass(truth)
    total = sum((abs(a - b) for a, b in zip(plain, with_delta, strict=True)), Fraction(0)) / 2
    nearest = min(int(d) for d, w in zip(distances, prior.weights, strict=True) if w)
    elsewhere = sum((p for p, d in zip(plain, distances, strict=True) if d > nearest), Fraction(0))
    assert total == min(moved, elsewhere)


@given(drawn_priors(), st.data(), st.fractions(Fraction(1, 100), 5, max_denominator=100))
@settings(max_examples=60)
def test_a_law_is_algorithm_5_1_word_for_word(prior: Prior, data: st.DataObject, epsilon: Fraction) -> None:
    """The corrected algorithm over all balls around the truth, without any cleverness."""
    truth = data.draw(st.integers(0, prior.support.size - 1))
    distances = absolute(prior.support, truth).tolist()
    factors = Factors.individual(epsilon)
    p_up = (1 - factors.down) / (factors.up - factors.down)
    p_down = (factors.up - 1) / (factors.up - factors.down)
    everything = set(range(prior.support.size))
    balls = [{i for i in everything if distances[i] <= r} for r in range(-1, prior.support.size + 1)]

    def mass(points: set[int]) -> Fraction:
        return sum((prior.mass(i) for i in points), Fraction(0))

    near = max((ball for ball in balls if mass(ball) < p_up), key=len)
    far = max((everything - ball for ball in balls if mass(everything - ball) < p_down), key=len)
    rest = everything - near - far
    middle = (1 - factors.up * mass(near) - factors.down * mass(far)) / (1 - mass(near) - mass(far))
    expected = [
        prior.mass(i) * (factors.up if i in near else factors.down if i in far else middle)
        for i in everything
    ]
    assert factors.down <= middle <= factors.up
    assert rest
    assert refine(prior, np.array(distances), factors).probabilities() == expected


def test_a_set_of_exactly_the_right_mass_needs_no_boundary() -> None:
    prior = uniform(Points(Lattice(Fraction(0), Fraction(2), Fraction(1))))
    law = refine(prior, absolute(prior.support, 0), Factors(Fraction(2), Fraction(1, 2)))
    assert law.probabilities() == [Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)]
    assert law.chances[1] == 0


def test_vectors_with_a_joint_prior_never_get_an_impossible_answer() -> None:
    """Employed and on benefits: no such combination, so no such answer; privacy for each pair of truths."""
    parts = [Labels(("no", "yes"))] * 2
    prior = joint(parts, {("no", "no"): 1, ("no", "yes"): 2, ("yes", "no"): 7})
    distance = combined([nominal, nominal])
    known = laws(prior, Factors.statistical(Fraction(1)), distance)
    assert all(law[3] == 0 for law in known)
    worst = max(largest_ratio(a, b) for a, b in itertools.permutations(known, 2))
    assert worst <= exp_bounds(Fraction(1))[1]
    assert known[0][0] > prior.mass(0)


@given(st.fractions(Fraction(1, 10**9), 10**6))
@settings(max_examples=examples(200))
def test_factors_are_inside_what_exp_allows_and_close_to_it(epsilon: Fraction) -> None:
    factors = Factors.individual(epsilon)
    capped = min(epsilon, Fraction(40))
    low, high = exp_bounds(capped)
    assert factors.up <= high
    assert factors.up >= low - Fraction(1, 1 << 79)
    low, high = exp_bounds(-capped)
    assert low <= factors.down <= high + Fraction(1, 1 << 79)
    assert factors.up > 1 > factors.down


def test_factors_and_shares_that_make_no_sense_are_refused() -> None:
    with pytest.raises(OptionError, match="epsilon must be above 0"):
        Factors.individual(Fraction(0))
    with pytest.raises(OptionError, match="lift must be between"):
        Factors.statistical(Fraction(1), Fraction(1))
    with pytest.raises(OptionError, match="factors must satisfy"):
        Factors(Fraction(1, 2), Fraction(1, 2))
    with pytest.raises(OptionError, match="delta must be"):
        movable(Fraction(1), Fraction(1), individual=True, replace_one=False)
