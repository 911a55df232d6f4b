"""Staircase noise: printed figures, exact by enumeration, private at every lattice point, wrong versions rejected."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from shoal.errors import OptionError
from shoal.noise import (
    LatticeStaircase,
    Seeded,
    Staircase,
    SystemEntropy,
    discrete,
    discrete_laplace,
    discrete_staircase,
)
from shoal.noise import exact as enclosed
from shoal.noise.discrete import best_centre, best_fraction
from shoal.partition import ranking

from .decision_tree import Branching, enumerate_paths, exp_minus

FALSE_ALARM = 1e-9


def exact_mass(x: int, steps: int, epsilon: Fraction, centre: int) -> Fraction:
    """P(X = x) to 60 digits, from the definition."""
    q = exp_minus(epsilon)
    level = max(-(-(abs(x) - centre) // steps), 0)
    return q**level / (2 * centre + 1 + 2 * steps * q / (1 - q))


# thesis, tables 4.1 and 4.2, and the digits recomputed for them: ε, d*, variance, length of the shortest 95% interval
PRINTED = [
    (0.1, 0.491667, 199.9167, 199.92, 59.9105, 59.91),
    (0.5, 0.458336, 7.9170, 7.92, 11.9784, 11.97),
    (1.0, 0.416737, 1.9181, 1.92, 5.9865, 5.98),
]


@pytest.mark.parametrize(("epsilon", "d", "variance", "table_1", "length", "table_2"), PRINTED)
def test_tables_4_1_and_4_2_of_the_thesis(
    epsilon: float, d: float, variance: float, table_1: float, length: float, table_2: float
) -> None:
    narrow, short = Staircase.best(1.0, epsilon), Staircase.best(1.0, epsilon, "interval")
    assert round(narrow.centre, 6) == d
    assert round(narrow.variance, 4) == variance
    assert round(narrow.variance, 2) == table_1
    assert round(2 * short.interval(0.95), 4) == length
    # the thesis cuts the lengths off after two digits
    assert np.floor(200 * short.interval(0.95)) / 100 == table_2
    assert narrow.variance < 2 / epsilon**2
    assert 2 * short.interval(0.95) < 2 * np.log(20) / epsilon


@given(epsilon=st.floats(1e-3, 20), width=st.floats(0.1, 1e6), confidence=st.floats(0.5, 0.999))
def test_no_other_centre_is_better(epsilon: float, width: float, confidence: float) -> None:
    def variance(d: float) -> float:
        return Staircase(width, epsilon, d * width).variance

    found = optimize.minimize_scalar(variance, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    assert variance(best_fraction(epsilon)) <= found.fun * (1 + 1e-9)
    best = Staircase(width, epsilon, width * best_fraction(epsilon, "interval", confidence))
    lengths = [
        Staircase(width, epsilon, d * width).interval(confidence) for d in np.linspace(1e-9, 1, 400).tolist()
    ]
    assert best.interval(confidence) <= min(lengths) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "centre"), [(0.4, 0.3), (1.0, 0.0), (2.5, 1.7)])
def test_the_closed_forms_are_integrals_of_the_density(epsilon: float, centre: float) -> None:
    shape = Staircase(1.7, epsilon, centre)
    edges = [centre + 1.7 * i for i in range(120)]
    pieces = [0.0, *edges] if centre else edges

    def integral(power: int, stop: float) -> float:
        ends = [edge for edge in pieces if edge < stop] + [stop]
        return sum(
            2 * integrate.quad(lambda x: x**power * float(shape.density(x)), a, b)[0]
            for a, b in itertools.pairwise(ends)
        )

    assert integral(0, edges[-1]) == pytest.approx(1)
    assert integral(2, edges[-1]) == pytest.approx(shape.variance)
    for confidence in (0.05, 0.5, 0.95):
        half = shape.interval(confidence)
        assert integral(0, half) == pytest.approx(confidence)
        assert float(shape.mass(half)) == pytest.approx((1 + confidence) / 2)
        assert shape.quantile((1 + confidence) / 2) == pytest.approx(half)
        assert shape.quantile((1 - confidence) / 2) == pytest.approx(-half)
    assert shape.quantile(0.5) == 0


@pytest.mark.parametrize(("steps", "epsilon", "centre"), [(7, 0.6, 3), (1, 1.0, 0), (5, 0.3, 4), (3, 2.0, 9)])
def test_the_lattice_forms_are_sums_of_the_masses(steps: int, epsilon: float, centre: int) -> None:
    shape = LatticeStaircase(steps, epsilon, centre)
    x = np.arange(-900, 901)
    masses = shape.mass(x)
    exact = [float(exact_mass(int(i), steps, Fraction(str(epsilon)), centre)) for i in x[895:906]]
    assert masses[895:906] == pytest.approx(exact)
    assert masses.sum() == pytest.approx(1)
    assert (masses * x * x).sum() == pytest.approx(shape.variance)
    assert np.abs(np.cumsum(masses) - shape.below(x)).max() < 1e-12
    for probability in (0.001, 0.2, 0.5, 0.77, 0.99):
        assert shape.quantile(probability) == x[np.searchsorted(np.cumsum(masses), probability - 1e-12)]
        inside = np.array([masses[900 - h : 901 + h].sum() for h in range(900)])
        assert shape.interval(probability) == np.argmax(inside >= probability - 1e-12)


@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "1", "3", "12"])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 57])
def test_the_centre_on_the_lattice_is_the_best_whole_number(steps: int, epsilon: str) -> None:
    shapes = [LatticeStaircase(steps, float(epsilon), centre) for centre in range(steps)]
    best = LatticeStaircase.best(steps, Fraction(epsilon))
    assert best.variance == pytest.approx(min(shape.variance for shape in shapes))
    short = LatticeStaircase.best(steps, Fraction(epsilon), "interval")
    assert short.interval(0.95) <= min(shape.interval(0.95) for shape in shapes) + 1


def loss(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """The largest difference of levels, which is the privacy loss in units of ε."""
    return int(np.abs(first - second).max())


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_at_every_lattice_point_the_ratio_between_neighbours_is_within_e_to_the_epsilon(steps: int) -> None:
    x = np.arange(-12 * steps - 40, 12 * steps + 41)
    for centre in range(0, 2 * steps + 2):
        shape = LatticeStaircase(steps, 0.7, centre)
        for shift in range(-steps, steps + 1):
            assert loss(shape.level(x), shape.level(x + shift)) <= 1
            ratio = shape.mass(x) / shape.mass(x + shift)
            assert ratio.max() <= np.exp(0.7) * (1 + 1e-12)
        # one step more than the noise was made for
        assert loss(shape.level(x), shape.level(x + steps + 1)) == 2


def test_exact_masses_of_neighbours_differ_by_the_factor_of_their_levels() -> None:
    epsilon, q = Fraction(2, 3), exp_minus(Fraction(2, 3))
    for x, shift in itertools.product(range(-20, 21), range(-4, 5)):
        ratio = exact_mass(x, 4, epsilon, 1) / exact_mass(x + shift, 4, epsilon, 1)
        assert q <= ratio <= 1 / q


def test_two_blocks_that_move_a_little_cost_twice_epsilon_under_a_staircase_and_once_under_laplace() -> None:
    """Why a staircase is refused for the rank groups of one attribute: one record moves both sums by one."""
    width, epsilon = 2, 1.0
    sums = [ranking(np.array(x), 2).sums(np.array(x)) for x in ([0, 1, 1, 2], [2, 1, 1, 2])]
    assert [found.tolist() for found in sums] == [[1, 3], [2, 4]]
    released = np.stack(np.meshgrid(np.arange(-20, 25), np.arange(-20, 25), indexing="ij"), axis=-1)
    shape = LatticeStaircase.best(width, Fraction(1))
    before, after = (shape.level(released - found).sum(axis=-1) for found in sums)
    assert loss(before, after) == 2
    before, after = (np.abs(released - found).sum(axis=-1) / width for found in sums)
    assert np.abs(before - after).max() * epsilon <= epsilon


@pytest.fixture
def one_bit(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(enclosed, "_FIRST_BITS", 1)
    monkeypatch.setattr(enclosed, "_NEXT_BITS", 1)
    for cached in (enclosed.exp_coin, enclosed.logistic_coin, discrete._outside):
        cached.cache_clear()
    yield
    for cached in (enclosed.exp_coin, enclosed.logistic_coin, discrete._outside):
        cached.cache_clear()


SMALL = [(1, "1", 0, 3e-4), (2, "1", 0, 3e-4), (3, "5/2", 1, 3e-4), (2, "7/3", 3, 3e-4)]


@pytest.mark.parametrize(("steps", "epsilon", "centre", "lightest"), SMALL)
def test_the_decision_tree_brackets_the_true_probabilities(
    steps: int, epsilon: str, centre: int, lightest: float, one_bit: None
) -> None:
    exact = Fraction(epsilon)

    def draw(source: Branching) -> int:
        return int(discrete_staircase(steps, exact, 1, source, centre=centre)[0])

    outcomes, undecided = enumerate_paths(draw, lightest)
    assert undecided < Fraction(1, 6)
    for x in range(-centre - 1, centre + 2):
        true = exact_mass(x, steps, exact, centre)
        assert outcomes[x] <= true <= outcomes[x] + undecided
        assert outcomes[x] == outcomes[-x]


@pytest.mark.parametrize("rate", ["1/2", "1", "9/4", "3"])
def test_the_decision_tree_of_a_geometric_count_brackets_the_true_probabilities(
    rate: str, one_bit: None
) -> None:
    exact = Fraction(rate)
    outcomes, undecided = enumerate_paths(
        lambda source: int(enclosed.geometric(exact, 1, source)[0]), 2.0**-14
    )
    assert undecided < Fraction(1, 60)
    q = exp_minus(exact)
    for g in range(4):
        assert outcomes.get(g, 0) <= (1 - q) * q**g <= outcomes.get(g, 0) + undecided


def test_the_bracket_rejects_an_epsilon_that_is_five_percent_off(one_bit: None) -> None:
    outcomes, undecided = enumerate_paths(
        lambda source: int(enclosed.geometric(Fraction(21, 20), 1, source)[0]), 2.0**-14
    )
    q = exp_minus(Fraction(1))
    assert not outcomes[0] <= 1 - q <= outcomes[0] + undecided


def test_digits_that_settle_nothing_are_followed_by_more() -> None:
    """With first digits of eight bits one choice in 256 is open, and settled by 64 bits more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enclosed, "_FIRST_BITS", 8)
        choice = enclosed.exp_coin.__wrapped__(Fraction(1))
        patch.undo()
        hits = int(choice.draw(200_000, SystemEntropy()).sum())
    assert stats.binomtest(hits, 200_000, float(np.exp(-1))).pvalue > FALSE_ALARM


def fit(draws: NDArray[np.int64], shape: LatticeStaircase, cells: int = 40) -> float:
    """P-value of a chi-square over cells of about equal probability, at least one integer wide."""
    edges = np.unique([shape.quantile(i / cells) for i in range(1, cells)]).astype(np.float64)
    shares = np.diff(np.concatenate([[0.0], shape.below(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    used = shares * draws.size >= 5
    return float(stats.chisquare(counts[used], shares[used] / shares[used].sum() * counts[used].sum()).pvalue)


CASES = [
    (1, "1"),
    (2, "0.5"),
    (7, "0.1"),
    (1000, "1"),
    (1000, "3"),
    (10**6, "0.01"),
    (10**9, "1"),
    (10**9, "0.37"),
    (2**44, "1/256"),
]


@pytest.mark.parametrize("optimise", ["variance", "interval"])
@pytest.mark.parametrize(("steps", "epsilon"), CASES)
def test_draws_follow_the_staircase(steps: int, epsilon: str, optimise: str) -> None:
    exact = Fraction(epsilon)
    draws = discrete_staircase(steps, exact, 200_000, optimise=optimise)
    assert fit(draws, LatticeStaircase.best(steps, exact, optimise)) > FALSE_ALARM


@pytest.mark.parametrize(("steps", "epsilon"), CASES[:-1])
def test_a_sampler_that_is_five_percent_off_or_has_another_centre_is_rejected(
    steps: int, epsilon: str
) -> None:
    exact = Fraction(epsilon)
    draws = discrete_staircase(steps, exact, 400_000)
    centre = best_centre(steps, exact)
    assert fit(draws, LatticeStaircase(steps, float(epsilon) * 1.05, centre)) < FALSE_ALARM
    if steps > 1 and exact >= Fraction(1, 2):
        assert fit(draws, LatticeStaircase(steps, float(epsilon), centre + 1 + steps // 2)) < FALSE_ALARM


@pytest.mark.parametrize(("steps", "epsilon"), [(1000, "0.1"), (1000, "1"), (10**6, "0.5"), (10**9, "2")])
def test_the_variance_of_draws_is_within_one_percent_of_the_closed_form(steps: int, epsilon: str) -> None:
    # the standard error of the variance is below a sixth of a percent
    draws = discrete_staircase(steps, epsilon, 2_000_000).astype(np.float64)
    expected = LatticeStaircase.best(steps, Fraction(epsilon)).variance
    assert abs(np.mean(draws**2) / expected - 1) < 0.01
    assert (
        abs(np.mean(draws**2) / LatticeStaircase.best(steps, Fraction(epsilon) * 51 / 50).variance - 1) > 0.01
    )


def test_for_one_step_the_staircase_is_discrete_laplace() -> None:
    draws = [sampler(200_000) for sampler in (lambda n: discrete_laplace(1, n), _one_step)]
    table = [np.bincount(np.clip(found, -8, 8) + 8, minlength=17) for found in draws]
    assert stats.chi2_contingency(np.array(table)).pvalue > FALSE_ALARM
    x = np.arange(-9, 10)
    q = np.exp(-1)
    assert LatticeStaircase.best(1, Fraction(1)).mass(x) == pytest.approx((1 - q) / (1 + q) * q ** np.abs(x))


def _one_step(n: int) -> NDArray[np.int64]:
    return discrete_staircase(1, 1, n)


def test_no_steps_draw_zero_and_take_no_entropy() -> None:
    class Empty(Seeded):
        def words(self, n: int) -> NDArray[np.uint64]:
            raise AssertionError("no steps need no randomness")

    assert discrete_staircase(0, 1, 5, Empty(0)).tolist() == [0] * 5


def test_an_enormous_epsilon_draws_zero() -> None:
    assert not discrete_staircase(1000, Fraction(10**15), 100).any()


def test_shapes_and_seeds() -> None:
    assert discrete_staircase(3, 1).shape == ()
    assert discrete_staircase(3, 1, (2, 5)).shape == (2, 5)
    assert discrete_staircase(3, 1, 0).shape == (0,)
    again = [discrete_staircase(10**6, "0.3", 50, Seeded(5)).tolist() for _ in range(2)]
    assert again[0] == again[1] != discrete_staircase(10**6, "0.3", 50, Seeded(6)).tolist()
    assert discrete_staircase(10**6, 1, 50).tolist() != discrete_staircase(10**6, 1, 50).tolist()


@given(
    steps=st.integers(1, 2**52),
    level=st.integers(0, 2**40),
    centre=st.integers(0, 2**52),
    share=st.fractions(0, 1),
    negative=st.booleans(),
)
def test_a_draw_equals_the_unbounded_integer_modulo_the_word(
    steps: int, level: int, centre: int, share: Fraction, negative: bool
) -> None:
    offset = min(int(share * steps), steps - 1)

    class Fixed(Seeded):
        def below(self, bound: Any, size: Any = None) -> NDArray[np.int64]:
            return np.full(size, offset)

        def digits(self, bits: int, n: int) -> NDArray[Any]:
            if bits == 1:
                return np.full(n, negative, dtype=np.uint8)
            return np.full(n, 2**bits - 1, dtype=np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrete, "geometric", lambda rate, n, source: np.full(n, level))
        # a tiny ε puts nearly everything outside the centre
        drawn = discrete._draw(steps, Fraction(1, 2**120), centre, 1, Fixed(0))
    unbounded = centre + 1 + level * steps + offset
    assert int(drawn[0]) % 2**64 == (-unbounded if negative else unbounded) % 2**64


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((-1, 1), "steps must be a non-negative integer"),
        ((1.5, 1), "steps must be a non-negative integer"),
        ((True, 1), "steps must be a non-negative integer"),
        ((10, 0), "epsilon"),
        ((10, Fraction(-1, 2)), "greater than 0"),
        ((10, "much"), "epsilon"),
        ((2**50, "0.1"), "coarser step"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(arguments: tuple[Any, Any], hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        discrete_staircase(*arguments, 2)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="Did you mean 'variance'"):
        discrete_staircase(10, 1, optimise="varance")
    with pytest.raises(OptionError, match="centre"):
        discrete_staircase(10, 1, centre=-1)
    with pytest.raises(OptionError, match="confidence"):
        Staircase.best(1.0, 1.0).interval(1.0)
