"""Chapter 4 of the thesis: printed noise to the digit, its theorems by linear programmes, and every statement."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from papers import Desk, Study
from papers.thesis import chapter4
from papers.thesis.chapter4_claims import EXAMPLE, marginal, marginal_by_integration
from papers.thesis.chapter4_theorems import (
    GRID,
    Line,
    box_gain,
    constructed,
    dominating,
    laplace_on_lattice,
    mixtures,
)
from shoal.noise import LatticeStaircase, Staircase


@pytest.fixture(scope="module")
def study() -> Study:
    return chapter4.study(Desk(Path(), quick=True))


def test_every_number_is_equal_or_has_a_reason(study: Study) -> None:
    differing = {(number.where, number.what) for number in study.numbers if number.verdict == "differs"}
    assert len(study.numbers) == 47
    assert all(number.why for number in study.numbers if number.verdict == "differs")
    assert differing == {
        ("Table 4.2", "ε = 0.5, shortest 95%"),
        ("Table 4.2", "ε = 1, shortest 95%"),
        *(("Table 4.3", f"{confidence}, size") for confidence in ("0.99", "0.95", "0.90")),
        *(("Table 4.4", f"{confidence}, size") for confidence in ("0.99", "0.95", "0.90")),
        ("Table 4.4", "0.99, β (with the innermost box)"),
        ("Table 4.4", "0.90, β (with the innermost box)"),
    }
    prototype = [number for number in study.numbers if number.where == "a throw-away prototype"]
    assert len(prototype) == 14
    assert {number.verdict for number in prototype} == {"equal"}


def test_the_reasons_are_right() -> None:
    """What print must have computed, from its own rounded digits."""
    assert [math.floor(2 * alpha**2) for alpha in (73.02, 52.18)] == [10663, 5445]
    assert round(2 * 42.79**2) == 3662
    assert round(40 * 6.69**2, 1) == 1790.2
    assert round(40 * 6.99**2, 1) == 1954.4


def test_statements_are_all_there(study: Study) -> None:
    verdicts = {claim.where: claim.verdict for claim in study.claims}
    assert len(study.claims) == 23
    assert {claim.verdict for claim in study.claims} == {"holds", "holds partly"}
    assert verdicts["Theorem 2"] == verdicts["Theorem 3"] == "holds partly"
    assert len(study.errata) == 9
    assert len(study.figures) == 3


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_staircases_up_to_one_step_are_optimal_and_others_are_not(epsilon: float) -> None:
    line = Line(12, epsilon)
    gains = [line.gain(LatticeStaircase(12, epsilon, d).mass(line.places)) for d in range(16)]
    assert max(gains[:12]) < 1e-6
    assert min(gains[12:]) > 0.5
    assert line.gain(laplace_on_lattice(line)) > 0.1


@pytest.mark.parametrize("power", [1, 2, 4])
def test_no_private_noise_at_all_beats_the_best_staircase(power: int) -> None:
    line = Line(12, 1.0)
    values = np.arange(line.size + 400 * 12, dtype=np.float64) ** power

    def moment(d: int) -> float:
        masses = LatticeStaircase(12, 1.0, d).mass(np.arange(values.size))
        return float(2 * (masses * values).sum())

    found = [moment(d) for d in range(12)]
    assert line.least(values) == pytest.approx(min(found), rel=1e-8)
    assert line.least(values) < moment(11)
    # the sum over the polytope's masses is the moment itself
    masses = LatticeStaircase(12, 1.0, 4).mass(line.places)
    assert line.integral(values) @ masses == pytest.approx(moment(4), rel=1e-9)


def test_the_noise_of_section_4_3_is_better_than_laplace() -> None:
    for epsilon in (0.3, 1.0, 3.0):
        q = math.exp(-epsilon)
        built = constructed(epsilon)
        assert 0 < built.centre < 1
        assert built.height == pytest.approx(epsilon / 2)
        gain = np.exp(-epsilon * GRID) - built.outside(GRID)
        assert gain.min() > -1e-12
        assert gain.max() > 0.005
        # the mass of every step is that of Laplace noise
        assert built.outside(1.0) == pytest.approx(q)


def test_a_noise_that_is_no_noise_of_this_epsilon_is_not_dominated() -> None:
    """Laplace noise of half the scale is nearer to zero than ε allows: no staircase of ε is better."""
    assert dominating(1 - np.exp(-2 * GRID), 1.0) is None
    # number 12 has only a narrow range of better staircases
    assert all(dominating(inside, 1.0) is not None for inside in mixtures(1.0, 13))


def test_boxes_are_optimal_if_the_centre_is_within_a_step() -> None:
    assert box_gain((2, 2), (1, 1), 1.0) < 1e-9
    assert box_gain((2, 2), (2, 2), 1.0) > 0.1


def test_theorem_1_as_printed_is_another_noise() -> None:
    wrong, right = chapter4.printed_variance()
    best = Staircase.best(1.0, 1.0)
    height = 1 / (2 * sum((1.0 if i else 1 + best.centre) * math.exp(-i) for i in range(60)))

    def density(x: float) -> float:
        return height * math.exp(-max(math.floor(x - best.centre), 0))

    edges = [0.0, best.centre, *(best.centre + i for i in range(1, 40))]
    variance = 2 * sum(integrate.quad(lambda x: x * x * density(x), a, b)[0] for a, b in pairwise(edges))
    assert wrong == pytest.approx(variance, rel=1e-6)
    assert right == pytest.approx(1.9181, abs=5e-5)


def test_the_laplace_density_of_section_2_9_is_no_density() -> None:
    assert chapter4.laplace_total(0.5) == pytest.approx(0.5, abs=1e-6)
    assert chapter4.laplace_total(1.0) == pytest.approx(1.0, abs=1e-6)


def test_the_levels_of_theorem_3_as_printed_overlap() -> None:
    assert chapter4.theorem_3_total() > 1.3


def test_the_printed_densities_of_the_components() -> None:
    x = np.array([0.0, 0.5, 3.3, 12.0, 28.0])
    for component in (0, 1):
        assert marginal(x, component) == pytest.approx(marginal_by_integration(x, component), rel=2e-3)
    swapped = marginal(x, 0) / marginal(x, 1)
    assert swapped.max() > 2
    assert EXAMPLE.variances[1] == pytest.approx(100 * EXAMPLE.variances[0])
