"""Chapter 5 of the thesis: printed probabilities to the digit, exact losses of privacy, and every statement."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from papers import Desk, Study
from papers.thesis import chapter5
from papers.thesis import chapter5_worlds as worlds
from shoal.query.refinement import Factors


@pytest.fixture(scope="module")
def study() -> Study:
    return chapter5.study(Desk(Path(), quick=True))


def test_every_number_is_equal_or_has_a_reason(study: Study) -> None:
    differing = {(number.where, number.what) for number in study.numbers if number.verdict == "differs"}
    assert len(study.numbers) == 60
    assert all(number.why for number in study.numbers if number.verdict == "differs")
    assert differing == {
        *(
            ("Table 5.5", f"ε = {epsilon}, Laplace, P(within [0, 1])")
            for epsilon in ("0.1", "ln 2", "1", "2")
        ),
        ("5.5.1", "refined, P(1 | 0)"),
        ("5.5.1", "refined, P(0 | 0)"),
        ("5.5.1", "refined, P(1 | 1)"),
        ("5.5.1", "refined, P(1)"),
    }
    exact = [
        number
        for number in study.numbers
        if number.where in ("a throw-away prototype", "Table 5.3", "Table 5.4")
    ]
    assert len(exact) == 12 + 4 + 12
    assert {number.verdict for number in exact} == {"equal"}


def test_the_corrected_laplace_column_is_that_of_the_noise(study: Study) -> None:
    column = [number.found for number in study.numbers if number.what.endswith("Laplace, P(within [0, 1])")]
    rng = np.random.default_rng(5)
    for epsilon, found in zip((0.1, math.log(2), 1.0, 2.0), column, strict=True):
        drawn = np.abs(rng.laplace(scale=1 / epsilon, size=200_000)) <= 0.5
        assert found == pytest.approx(drawn.mean(), abs=0.006)


def test_statements_are_all_there(study: Study) -> None:
    verdicts = {claim.where: claim.verdict for claim in study.claims}
    assert len(study.claims) == 28
    assert [claim.where for claim in study.claims if claim.verdict == "fails"] == [
        "5.2, Algorithm 5.1",
        "5.2, Figure 5.2",
        "5.2, Figure 5.3",
    ]
    assert verdicts["Proposition 2"] == "holds"
    assert verdicts["Proposition 3"] == "holds partly"
    assert verdicts["5.3, Proposition 4"] == "holds"
    assert len(study.errata) == 9


def test_the_printed_masses_are_swapped() -> None:
    assert float(chapter5.printed_total(Factors.individual(Fraction(1)))) == pytest.approx(2.0862, abs=1e-4)
    factors = Factors(Fraction(2), Fraction(1, 2))
    assert factors.up * factors.mass_up + factors.down * (1 - factors.mass_up) == 1


def test_losses_are_those_of_the_factors() -> None:
    for prior in worlds.priors().values():
        added, replaced = worlds.loss_individual(prior, Factors.individual(Fraction(1)))
        assert added <= 1
        assert 1 < replaced <= 2
        # factors of 1.1 would be noticed
        assert worlds.loss_individual(prior, Factors.individual(Fraction(11, 10)))[0] > 1


def test_the_printed_deltas_are_too_small_and_the_corrected_ones_are_not() -> None:
    assert worlds.printed_deltas(Fraction(1, 5)) == pytest.approx((0.4, 0.3), abs=1e-9)
    prior = worlds.priors()["uniform"]
    statistic = worlds.laws(prior, Factors(Fraction(4, 3), Fraction(2, 3)), Fraction(1, 5) / 3)
    assert worlds.delta_needed(permutations(statistic, 2), Fraction(2)) == pytest.approx(0.2)


def test_adaptive_questions_stay_within_their_sum() -> None:
    assert 0.3 < worlds.adaptive_loss(Fraction(1), 4) <= 1
    assert worlds.adaptive_loss(Fraction(1), 1) <= 1


def test_errors_in_closed_form_are_those_of_draws() -> None:
    rng = np.random.default_rng(6)
    for truth in (0.1, 0.5, 0.95):
        drawn = np.clip(truth + rng.laplace(scale=0.5, size=400_000), 0, 1)
        assert worlds.clipped_laplace_error(0.5, truth) == pytest.approx(
            ((drawn - truth) ** 2).mean(), rel=0.02
        )
        x = (np.arange(100_000) + 0.5) / 100_000
        size = 1 / (1 + math.e)
        start = min(max(truth - size / 2, 0), 1 - size)
        density = np.where((x >= start) & (x <= start + size), math.e, 1 / math.e)
        assert density.mean() == pytest.approx(1, abs=1e-4)
        assert worlds.squared_error(1.0, truth) == pytest.approx(
            (density * (x - truth) ** 2).mean(), rel=1e-3
        )
    assert worlds.mean_over_truths(lambda truth: worlds.squared_error(1e-9, truth)) == pytest.approx(
        1 / 6, rel=1e-3
    )


def test_the_table_is_the_closed_form() -> None:
    for _, epsilon, factors, _, _ in chapter5.TABLE_5_5:
        assert worlds.squared_error(epsilon, 0.5) == pytest.approx(float(chapter5.variance(factors)))
        assert chapter5.lattice_variance(factors) == pytest.approx(
            float(chapter5.variance(factors)), abs=2e-5
        )


def test_the_widest_factors_gain_most() -> None:
    assert worlds.least_variance_factors(2.0, 11) == pytest.approx((math.exp(2), math.exp(-2)))


def test_loss_of_equal_laws_is_nothing() -> None:
    law = worlds.laws(worlds.priors()["uniform"], Factors.individual(Fraction(1)))[3]
    assert worlds.loss([(law, law)]) == 0
