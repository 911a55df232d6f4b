"""Losses of outcomes of elliptope noise: exactly for two signs, by Monte Carlo with the halves it draws for more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.auditing.statistics import epsilon_bounds
from shoal.noise import Seeded, elliptope_noise
from shoal.noise.block import _Half

from .laws import Elliptope
from .test_pairs import account

Floats = NDArray[np.float64]
SIGMAS = 6.0


def cell_mass(epsilon: float, i: int, j: int) -> float:
    """P(diagonal = i, product = j) for two signs: the density ε²/8·exp(-ε·max(|t|, |c|)) over a unit square."""
    near, far = sorted((abs(i), abs(j)))
    if near < far:
        # the larger of both is the same side everywhere
        return epsilon / 8 * (math.exp(-epsilon * (far - 0.5)) - math.exp(-epsilon * (far + 0.5)))
    if far:
        # layers of the larger of both: ∫ 2r·e^(-εr) over 0 < r < 1, from the inner corner on
        square = 2 * (1 - math.exp(-epsilon) * (1 + epsilon)) / epsilon**2
        return epsilon**2 / 8 * math.exp(-epsilon * (far - 0.5)) * square
    # four squares of half the side around 0
    return 1 - math.exp(-epsilon / 2) * (1 + epsilon / 2)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_two_signs_lose_epsilon_at_most_and_nearly_all_of_it(epsilon: float) -> None:
    """All rounded outcomes that matter, a record of either product added: no bound, no sampling."""
    reach = math.ceil(25 / epsilon)
    cells = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1)]
    masses = {cell: cell_mass(epsilon, *cell) for cell in cells}
    assert math.fsum(masses.values()) == pytest.approx(1, abs=1e-8)
    losses = [
        math.log(mass / masses[i - 1, j - product])
        for (i, j), mass in masses.items()
        for product in (1, -1)
        if (i - 1, j - product) in masses
    ]
    assert max(map(abs, losses)) <= epsilon * (1 + 1e-9)
    assert min(max(losses), -min(losses)) >= 0.99 * epsilon
    # half the noise is a law of twice the ε
    assert max(map(abs, losses)) > epsilon / 2


def test_the_masses_are_those_of_draws() -> None:
    source = Seeded(4)
    draws = [elliptope_noise(2, 1, source) for _ in range(700)]
    for cell in ((0, 0), (1, 0), (0, 1), (1, 1)):
        seen = sum((abs(int(m[0, 0])), abs(int(m[0, 1]))) == cell for m in draws)
        share = cell_mass(1.0, *cell) * 2 ** sum(map(bool, cell))
        assert abs(seen - 700 * share) < SIGMAS * math.sqrt(700 * share * (1 - share))


def halves(signs: int, number: int, seed: int) -> Floats:
    """ε·t·R as the sampler draws them."""
    source = Seeded(seed)
    products = signs * (signs - 1) // 2
    found = []
    for _ in range(number):
        known = _Half.draw(signs, products + 1, source).matrix(1)
        assert known is not None
        found.append(known[0].astype(np.float64) / 2.0**64)
    return np.array(found)


def loss(here: Floats, there: Floats, epsilon: float, taken: Floats) -> tuple[float, float]:
    """log f(here) - log f(there) and its standard error: f(x) = E g(x + Y), Y the half that is taken away."""
    terms = []
    for x in (here, there):
        moved = epsilon * x + taken
        inside = np.linalg.eigvalsh(moved)[:, 0] >= -1e-9
        terms.append(np.where(inside, np.exp(-np.maximum(moved[:, 0, 0], 0.0)), 0.0))
    first, second = terms
    means = first.mean(), second.mean()
    if not all(means):
        return (0.0, 0.0) if not any(means) else (math.copysign(math.inf, means[0] - means[1]), 0.0)
    # both from the same halves: the error of a ratio of means
    error = (first / means[0] - second / means[1]).std() / math.sqrt(len(taken))
    return math.log(means[0] / means[1]), float(error)


def losses_of_draws(
    signs: int, epsilon: float, number: int, taken: Floats, draw: Callable[[int], Floats]
) -> list[tuple[float, float]]:
    """Of outcomes on a table, against the same table with one record more."""
    random = np.random.default_rng(signs)
    found = []
    for seed in range(number):
        s = random.choice([-1.0, 1.0], signs)
        outcome = draw(seed)
        found.append(loss(outcome, outcome - np.outer(s, s), epsilon, taken))
    return found


def honest(signs: int, epsilon: float) -> Callable[[int], Floats]:
    return lambda seed: elliptope_noise(signs, str(epsilon), Seeded(seed)).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(("signs", "epsilon", "drawn"), [(3, 0.5, 3000), (6, 0.5, 6000)])
def test_outcomes_lose_epsilon_at_most_by_their_densities(signs: int, epsilon: float, drawn: int) -> None:
    taken = halves(signs, drawn, seed=1)
    found = losses_of_draws(signs, epsilon, 60, taken, honest(signs, epsilon))
    certain = [(lost, error) for lost, error in found if error < 0.2 and math.isfinite(lost)]
    assert len(certain) > 20
    for lost, error in certain:
        assert abs(lost) <= epsilon + SIGMAS * error + 1e-9
    # and outcomes far out lose nearly all of it
    far = 40 / epsilon * np.ones((signs, signs))
    lost, error = loss(far, far - np.ones((signs, signs)), epsilon, taken)
    assert abs(lost) == pytest.approx(epsilon, abs=0.02 + SIGMAS * error)


def test_noise_of_one_half_only_is_found() -> None:
    """Its support moves with the records: some outcomes are possible on one side alone."""
    taken = np.zeros((1, 3, 3))
    one_sided = halves(3, 20, seed=2)
    found = losses_of_draws(3, 1.0, 20, taken, lambda seed: one_sided[seed])
    assert any(math.isinf(lost) for lost, _ in found)


def told_apart(noise: Callable[[Seeded], Any], signs: int, runs: int) -> float:
    """A lower bound on ε of what is drawn: is a product larger than the diagonal, once a record is taken away?"""
    v = np.ones((signs, signs), dtype=np.int64)
    hits = []
    for seed, base in ((1, v * 0), (2, v)):
        source = Seeded(seed)
        drawn = [base + noise(source) - v for _ in range(runs)]
        hits.append(sum(bool((np.abs(m) > m[0, 0]).any()) for m in drawn))
    return float(epsilon_bounds(hits[0], runs, hits[1], runs, 1e-6))


def test_an_audit_refutes_noise_of_one_half_only() -> None:
    def one_sided(source: Seeded) -> Any:
        known = _Half.draw(3, 4, source).matrix(1)
        assert known is not None
        return np.floor(known[0].astype(np.float64) / 2.0**64 + 0.5).astype(np.int64)

    assert told_apart(one_sided, 3, 300) > 1
    assert told_apart(lambda source: elliptope_noise(3, 1, source), 3, 300) < 1


@pytest.mark.slow
def test_a_release_of_seven_signs_loses_epsilon_at_most_by_its_densities() -> None:
    """The private matrices of two neighbouring tables, as the release measures them, under outcomes of the sampler."""
    for found in account("add-remove", 0, 7, 0, epsilon=5, rows=24):
        ((mine, other),) = [(a, b) for a, b in zip(*found.draws, strict=True) if isinstance(a.law, Elliptope)]
        epsilon = float(mine.law.epsilon)
        here, there = (np.array(side.private, dtype=np.float64).reshape(7, 7) for side in (mine, other))
        assert float(mine.law.bound(mine.private, other.private)) == pytest.approx(epsilon)
        taken = halves(7, 4000, seed=3)
        # f is even: the sign of an outcome may be chosen so that it is likelier to be seen
        for seed in range(10):
            noise = elliptope_noise(7, mine.law.epsilon, Seeded(seed)).astype(np.float64)
            lost, error = loss(noise, noise + here - there, epsilon, taken)
            if math.isfinite(lost) and error < 0.3:
                assert abs(lost) <= epsilon + SIGMAS * error + 1e-9
        far = noise + 60 / epsilon * np.eye(7)
        lost, error = loss(far, far + here - there, epsilon, taken)
        assert abs(lost) <= epsilon + SIGMAS * error + 1e-9
