"""Discrete Gaussian draws: exact by enumeration, right by chi-square, equal to OpenDP, wrong scales rejected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.errors import OptionError
from shoal.noise import Seeded, Source, discrete, discrete_gaussian
from shoal.noise import exact as enclosed
from shoal.noise.discrete import bernoulli_exp_near

from .decision_tree import Branching, enumerate_paths, exp_minus

FALSE_ALARM = 1e-9


def probability(x: int, variance: Fraction) -> Fraction:
    """P(X = x) of the discrete Gaussian distribution to 60 digits."""
    reach = 20 * (math.isqrt(int(variance)) + 2)
    total = sum(exp_minus(Fraction(y * y) / (2 * variance)) for y in range(-reach, reach + 1))
    return exp_minus(Fraction(x * x) / (2 * variance)) / total


class Digits(Branching):
    """Digits of one bit branch, as do the exact primitives."""

    def digits(self, bits: int, n: int) -> NDArray[Any]:
        assert bits == 1, "a decision was taken outside the exact primitives"
        return super().digits(bits, n)


@pytest.fixture
def one_bit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Real numbers are revealed one bit at a time, so that every path can be walked."""
    monkeypatch.setattr(discrete, "_DIGIT", 1)
    for name in ("_FIRST_BITS", "_NEXT_BITS"):
        monkeypatch.setattr(enclosed, name, 1)
    enclosed.exp_coin.cache_clear()
    yield
    enclosed.exp_coin.cache_clear()


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(7, 3), Fraction(0), Fraction(2), Fraction(5, 7)])
def test_the_decision_tree_of_the_coin_brackets_the_true_probability(x: Fraction, one_bit: None) -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: bool(
            bernoulli_exp_near(np.array([float(x)]), np.zeros((1, 1), np.int64), lambda i: x, source)[0]
        ),
        1e-6,
        kind=Digits,
    )
    heads = outcomes.get(True, Fraction(0))
    assert heads <= exp_minus(x) <= heads + undecided
    assert undecided < Fraction(1, 10**3)


class RefusedError(Exception):
    """The first proposal was not kept."""


@pytest.mark.parametrize("variance", ["1", "1/2", "7/3", "9", "2"])
def test_the_decision_tree_of_an_attempt_brackets_the_true_probabilities(
    variance: str, one_bit: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = Fraction(variance)
    ratio = exp_minus(Fraction(1, math.isqrt(int(exact)) + 1))
    # the Laplace proposal is enumerated by its own tests: here it is one decision, rounded to few digits
    masses = [((1 - ratio) / (1 + ratio) * ratio ** abs(y)).limit_denominator(10**9) for y in range(-3, 4)]
    calls = 0

    def proposed(scale: Any, n: int, source: Branching) -> NDArray[np.int64]:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise RefusedError
        return np.array([source.choose([*masses, 1 - sum(masses)]) - 3 for _ in range(n)])

    def attempt(source: Source) -> int | None:
        nonlocal calls
        calls = 0
        try:
            return int(discrete_gaussian(exact, 1, source)[0])
        except RefusedError:
            return None

    monkeypatch.setattr(discrete, "discrete_laplace", proposed)
    outcomes, undecided = enumerate_paths(attempt, 1e-4, kind=Digits)
    assert undecided < Fraction(1, 10)
    for x in range(-2, 3):
        ratio = probability(x, exact) / probability(0, exact)
        low, high = outcomes[x] / (outcomes[0] + undecided), (outcomes[x] + undecided) / outcomes[0]
        assert low <= ratio <= high


def below_or_equal(x: NDArray[Any], deviation: float) -> NDArray[np.float64]:
    """P(X <= x): by sums for small deviations, by the normal distribution where that is the same to 1e-12."""
    if deviation > 30:
        return np.asarray(stats.norm.cdf((np.asarray(x) + 0.5) / deviation))
    reach = int(40 * deviation) + 10
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-0.5 * (support / deviation) ** 2)
    return np.asarray(np.cumsum(mass / mass.sum())[np.asarray(x, dtype=np.int64) + reach])


def fit(draws: NDArray[np.int64], deviation: float, cells: int = 40) -> float:
    """P-value of a chi-square over cells of about equal probability, at least one integer wide."""
    edges = np.unique(np.rint(deviation * stats.norm.ppf(np.arange(1, cells) / cells)))
    shares = np.diff(np.concatenate([[0.0], below_or_equal(edges, deviation), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    used = shares * draws.size >= 5
    return float(stats.chisquare(counts[used], shares[used] / shares[used].sum() * counts[used].sum()).pvalue)


VARIANCES = [
    Fraction(1),
    Fraction(2),
    Fraction(5, 2),
    Fraction(100),
    Fraction(10**6),
    Fraction(10**20 + 1, 3),
    Fraction(2**80),
]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_draws_follow_the_law_and_a_deviation_five_percent_off_is_rejected(variance: Fraction) -> None:
    draws = discrete_gaussian(variance, 200_000)
    deviation = math.sqrt(variance)
    assert fit(draws, deviation) > FALSE_ALARM
    for factor in (0.95, 1.05):
        assert fit(draws, factor * deviation) < FALSE_ALARM


def test_another_shape_of_the_same_variance_is_rejected() -> None:
    rng = np.random.default_rng(1)
    for other in (
        rng.laplace(0, 100 / math.sqrt(2), 200_000),
        rng.logistic(0, 100 * math.sqrt(3) / math.pi, 200_000),
    ):
        assert fit(np.rint(other).astype(np.int64), 100.0) < FALSE_ALARM


def test_every_variance_of_a_mixed_list_gets_its_own_distribution() -> None:
    variances = [Fraction(1), Fraction(49, 9), Fraction(0), 10**8, Fraction(10**18)]
    draws = discrete_gaussian(variances, (60_000, len(variances)))
    for column, variance in enumerate(variances):
        if variance:
            assert fit(draws[:, column], math.sqrt(variance)) > FALSE_ALARM
            assert fit(draws[:, column], 1.05 * math.sqrt(variance)) < FALSE_ALARM
        else:
            assert not draws[:, column].any()
    assert stats.spearmanr(draws[:, 0], draws[:, 4]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("deviation", [2, 300])
def test_draws_agree_with_opendp(deviation: int) -> None:
    dp.enable_features("contrib")
    n = 20_000
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    theirs = np.asarray(dp.m.make_gaussian(*space, scale=float(deviation))([0] * n))

    def two_samples(mine: NDArray[np.int64]) -> float:
        edges = np.unique(
            np.quantile(np.concatenate([mine, theirs]), np.arange(1, 20) / 20, method="inverted_cdf")
        )
        table = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (mine, theirs)]
        return float(stats.chi2_contingency(np.array(table)).pvalue)

    assert two_samples(discrete_gaussian(deviation**2, n)) > FALSE_ALARM
    assert two_samples(discrete_gaussian(Fraction(3 * deviation**2, 2), n)) < FALSE_ALARM


def test_floats_decide_as_the_exact_fractions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same digits lead to the same decisions whether many coins ask for the exact value or hardly any does."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 3, 20_000) + rng.uniform(0.1, 0.9, 20_000)
    asked = 0

    def exact(i: int) -> Fraction:
        nonlocal asked
        asked += 1
        return Fraction(float(x[i]))

    alike = np.arange(x.size)[None]
    quick = bernoulli_exp_near(x, alike, exact, Seeded(7))
    assert asked == 0
    monkeypatch.setattr(discrete, "_SLACK", 0.02)
    assert (bernoulli_exp_near(x, alike, exact, Seeded(7)) == quick).all()
    assert asked > 500
    assert quick.mean() == pytest.approx(np.exp(-x).mean(), abs=0.02)


def test_the_floats_are_within_the_slack_of_the_exact_exponents() -> None:
    rng = np.random.default_rng(3)
    for _ in range(400):
        variance = Fraction(int(10 ** rng.uniform(0, 24)), int(10 ** rng.uniform(0, 6)))
        scale = discrete._proposal(variance)
        magnitude = int(abs(rng.laplace(0, 3)) * scale)
        distance = np.int64(magnitude) - float(variance / scale)
        near = float(distance * distance * float(1 / (2 * variance)))
        exact = (magnitude - variance / scale) ** 2 / (2 * variance)
        assert abs(Fraction(near) - exact) <= Fraction(discrete._SLACK) / 8 * (1 + exact)


def test_a_variance_that_hardly_ever_draws_anything_else_than_zero() -> None:
    assert not discrete_gaussian(Fraction(1, 2**80), 50).any()
    assert not discrete_gaussian(Fraction(1, 10**12), 50).any()


def test_variance_zero_draws_zero_and_takes_no_entropy() -> None:
    class Empty(Source):
        reproducible = True

        def words(self, n: int) -> NDArray[np.uint64]:
            raise AssertionError("variance 0 needs no randomness")

    assert discrete_gaussian(0, 5, Empty()).tolist() == [0] * 5
    assert discrete_gaussian([0, 0], source=Empty()).tolist() == [0, 0]


def test_shapes_and_seeds() -> None:
    assert discrete_gaussian(3).shape == ()
    assert discrete_gaussian(3, 0).shape == (0,)
    assert discrete_gaussian([1, 2, 3]).shape == (3,)
    assert discrete_gaussian([]).shape == (0,)
    assert discrete_gaussian([1, 4], (5, 2)).dtype == np.int64
    again = [discrete_gaussian(10**12, 50, Seeded(5)).tolist() for _ in range(2)]
    assert again[0] == again[1] != discrete_gaussian(10**12, 50, Seeded(6)).tolist()
    with pytest.raises(OptionError, match="size"):
        discrete_gaussian([1, 2], 3)


@pytest.mark.parametrize(
    ("variance", "hint"),
    [
        (-1, "at least 2\\^-80"),
        (Fraction(-1, 2), "at least 2\\^-80"),
        (Fraction(1, 2**81), "at least 2\\^-80"),
        (2**81, "coarser"),
        (0.5, "Fraction"),
        ([1, "x"], "Fraction"),
        (True, "Fraction"),
        (None, "Fraction"),
    ],
)
def test_a_variance_that_cannot_be_drawn_is_refused(variance: Any, hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        discrete_gaussian(variance)
