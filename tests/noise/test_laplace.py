"""Discrete Laplace draws: exact by enumeration, right by chi-square, equal to OpenDP, wrong scales rejected."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from shoal.errors import OptionError
from shoal.noise import Seeded, Source, SystemEntropy, discrete, discrete_laplace, round_up_scale

from .decision_tree import enumerate_paths, exp_minus

FALSE_ALARM = 1e-9


def probability(x: int, scale: Fraction) -> Fraction:
    """P(X = x) of the discrete Laplace distribution to 60 digits."""
    ratio = exp_minus(1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(x)


def attempt(scale: Fraction, source: Source) -> int | None:
    """The value of one attempt at one draw, None when it is refused."""
    accepted, values = discrete._attempt(
        np.asarray(scale.numerator), np.asarray(scale.denominator), 1, source
    )
    return int(values[0]) if accepted.size else None


# each walks some ten thousand paths
@pytest.mark.parametrize(
    "scale", ["1", "7/3", *(pytest.param(one, marks=pytest.mark.slow) for one in ("2", "3/2", "5", "1/2"))]
)
def test_the_decision_tree_of_an_attempt_brackets_the_true_probabilities(scale: str) -> None:
    exact = Fraction(scale)
    outcomes, undecided = enumerate_paths(lambda source: attempt(exact, source), 2e-6)
    accepted = 1 - outcomes.pop(None, Fraction(0)) - undecided
    assert undecided < Fraction(1, 300)
    for x in range(-3, 4):
        low, high = outcomes[x] / (accepted + undecided), (outcomes[x] + undecided) / accepted
        assert low <= probability(x, exact) <= high
        assert outcomes[x] == outcomes[-x]


def test_the_bracket_rejects_a_scale_that_is_five_percent_off() -> None:
    outcomes, undecided = enumerate_paths(lambda source: attempt(Fraction(21, 20), source), 2e-6)
    accepted = 1 - outcomes.pop(None, Fraction(0)) - undecided
    low, high = outcomes[0] / (accepted + undecided), (outcomes[0] + undecided) / accepted
    assert not low <= probability(0, Fraction(1)) <= high


@pytest.mark.parametrize(("scale", "lightest"), [("1", 5e-5), ("1/2", 1e-4), ("3", 1e-4)])
def test_the_decision_tree_of_the_public_function_brackets_the_true_probabilities(
    scale: str, lightest: float
) -> None:
    exact = Fraction(scale)
    outcomes, undecided = enumerate_paths(lambda source: int(discrete_laplace(exact, 1, source)[0]), lightest)
    assert undecided < Fraction(1, 4)
    for x in range(-2, 3):
        assert outcomes[x] <= probability(x, exact) <= outcomes[x] + undecided


def below_or_equal(x: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """P(X <= x), by the two geometric tails."""
    weight = np.exp(-1 / scale)
    left = np.exp(np.minimum(x, 0) / scale) / (1 + weight)
    right = 1 - np.exp(-(np.maximum(x, -1) + 1) / scale) / (1 + weight)
    return np.where(x < 0, left, right)


def fit(draws: NDArray[np.int64], scale: float, cells: int = 40) -> float:
    """P-value of a chi-square over cells of about equal probability, at least one integer wide."""
    quantiles = np.arange(1, cells) / cells
    edges = np.unique(np.rint(np.sign(quantiles - 0.5) * -scale * np.log(1 - np.abs(2 * quantiles - 1))))
    shares = np.diff(np.concatenate([[0.0], below_or_equal(edges, scale), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    used = shares * draws.size >= 5
    return float(stats.chisquare(counts[used], shares[used] / shares[used].sum() * counts[used].sum()).pvalue)


SCALES = [
    Fraction(1),
    Fraction(5, 2),
    Fraction(10),
    Fraction(1000),
    Fraction(10**6 + 1, 3),
    Fraction(10**9),
    Fraction(2**52),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_follow_the_discrete_laplace_distribution(scale: Fraction) -> None:
    assert fit(discrete_laplace(scale, 300_000), float(scale)) > FALSE_ALARM


@pytest.mark.parametrize("factor", [Fraction(19, 20), Fraction(21, 20)])
@pytest.mark.parametrize("scale", SCALES[:-1], ids=str)
def test_a_sampler_whose_scale_is_five_percent_off_is_rejected(scale: Fraction, factor: Fraction) -> None:
    draws = discrete_laplace(round_up_scale(scale * factor), 300_000)
    assert fit(draws, float(scale)) < FALSE_ALARM


def test_every_scale_of_a_mixed_array_gets_its_own_distribution() -> None:
    scales = [Fraction(1), Fraction(7, 3), Fraction(0), Fraction(10**4), Fraction(10**9)]
    # as many as put a scale 5% off six standard deviations beyond the false alarm
    draws = discrete_laplace(scales, (150_000, len(scales)), SystemEntropy())
    for column, scale in enumerate(scales):
        if scale:
            assert fit(draws[:, column], float(scale)) > FALSE_ALARM
            assert fit(draws[:, column], 1.05 * float(scale)) < FALSE_ALARM
        else:
            assert not draws[:, column].any()
    correlation = stats.spearmanr(draws[:, 0], draws[:, 4])
    assert correlation.pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [2, 500])
def test_draws_agree_with_opendp(scale: int) -> None:
    dp.enable_features("contrib")
    n = 30_000
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.asarray(dp.m.make_laplace(*space, scale=float(scale))([0] * n))

    def two_samples(mine: NDArray[np.int64]) -> float:
        edges = np.unique(
            np.quantile(np.concatenate([mine, theirs]), np.arange(1, 20) / 20, method="inverted_cdf")
        )
        table = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (mine, theirs)]
        return float(stats.chi2_contingency(np.array(table)).pvalue)

    assert two_samples(discrete_laplace(scale, n)) > FALSE_ALARM
    assert two_samples(discrete_laplace(Fraction(6 * scale, 5), n)) < FALSE_ALARM


@example(t=2**52, s=1, share=Fraction(0), turns=2**12, negative=True)
@example(t=1, s=2**20, share=Fraction(0), turns=2**20 - 1, negative=True)
@given(
    t=st.integers(1, 2**52),
    s=st.integers(1, 2**20),
    share=st.fractions(0, 1),
    turns=st.integers(0, 2**40),
    negative=st.booleans(),
)
def test_a_draw_equals_the_unbounded_integer_modulo_the_word(
    t: int, s: int, share: Fraction, turns: int, negative: bool
) -> None:
    offset = min(int(share * t), t - 1)

    class Fixed(Seeded):
        def below(self, bound: Any, size: Any = None) -> NDArray[np.int64]:
            return np.array([offset])

        def flip(self, above: Any, under: Any, n: int) -> NDArray[np.bool_]:
            return np.zeros(n, dtype=np.bool_)

        def digits(self, bits: int, n: int) -> NDArray[Any]:
            return np.full(n, negative, dtype=np.uint8)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrete, "geometric_exp", lambda n, source: np.array([turns]))
        accepted, values = discrete._attempt(np.asarray(t), np.asarray(s), 1, Fixed(0))
    unbounded = (offset + t * turns) // s
    if negative and unbounded == 0:
        assert accepted.size == 0
    else:
        signed = -unbounded if negative else unbounded
        assert int(values[0]) % 2**64 == signed % 2**64


def test_scale_zero_draws_zero_and_takes_no_entropy() -> None:
    class Empty(Seeded):
        def words(self, n: int) -> NDArray[np.uint64]:
            raise AssertionError("scale 0 needs no randomness")

    assert discrete_laplace(0, 5, Empty(0)).tolist() == [0] * 5
    assert discrete_laplace([0, 0], source=Empty(0)).tolist() == [0, 0]


def test_shapes_follow_numpy() -> None:
    assert discrete_laplace(3).shape == ()
    assert discrete_laplace(3, 0).shape == (0,)
    assert discrete_laplace([1, 2, 3]).shape == (3,)
    assert discrete_laplace(np.array([[1], [2]]), (2, 5)).shape == (2, 5)
    assert discrete_laplace([]).shape == (0,)
    assert discrete_laplace(2.0, 4).dtype == np.int64
    with pytest.raises(OptionError, match="size"):
        discrete_laplace([1, 2], 3)


def test_a_seed_repeats_and_system_entropy_does_not() -> None:
    assert discrete_laplace(10**6, 50, Seeded(5)).tolist() == discrete_laplace(10**6, 50, Seeded(5)).tolist()
    assert discrete_laplace(10**6, 50, Seeded(5)).tolist() != discrete_laplace(10**6, 50, Seeded(6)).tolist()
    assert discrete_laplace(10**6, 50).tolist() != discrete_laplace(10**6, 50).tolist()
    assert discrete_laplace(1000, 4, Seeded(2024)).tolist() == KNOWN_DRAWS


KNOWN_DRAWS = [-1715, -2270, -42, 181]


@pytest.mark.parametrize(
    ("scale", "hint"),
    [
        (-1, "at least 0"),
        (Fraction(-1, 2), "at least 0"),
        ([1, -2], "at least 0"),
        (0.1, "Fraction"),
        ([1, 0.5], "Fraction"),
        (float("nan"), "Fraction"),
        (float("inf"), "Fraction"),
        ("3", "Fraction"),
        (None, "Fraction"),
        (True, "Fraction"),
        (2**52 + 1, "coarser"),
        (2**80, "coarser"),
        pytest.param(2**80000, "thousands of digits", id="long"),
        (Fraction(1, 2**20 + 1), "round_up_scale"),
        (Fraction(2**53 - 1, 2), "round_up_scale"),
    ],
)
def test_a_scale_that_cannot_be_sampled_is_refused_with_the_way_out(scale: Any, hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        discrete_laplace(scale, 2 if np.ndim(scale) == 0 else None)
