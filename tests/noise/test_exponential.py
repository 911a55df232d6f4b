"""The exponential mechanism over intervals: exact weights, exact choices, both ways to settle a draw."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from shoal.errors import OptionError
from shoal.noise import Seeded, Source, choice, exponential_choice
from tests.conftest import examples

THRESHOLD = 1e-9
LENGTHS = np.array([7, 0, 30, 2, 1, 11, 200])
PENALTIES = np.array([5, 3, 1, 0, 1, 3, 9])
RATE = Fraction(2, 7)


class Words(Source):
    """Hands out the given words, then fails."""

    reproducible = True

    def __init__(self, *given: int) -> None:
        self.left = list(given)

    def words(self, n: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n, "more digits were drawn than the choice needs"
        return np.array(taken, dtype=np.uint64)


def probabilities(rate: float) -> NDArray[np.float64]:
    weights = LENGTHS * np.exp(-rate * PENALTIES)
    return weights / weights.sum()


def p_value(drawn: list[int], expected: NDArray[np.float64]) -> float:
    counts = np.bincount(drawn, minlength=expected.size)
    assert not counts[expected == 0].any()
    keep = expected > 0
    wanted = len(drawn) * expected[keep]
    return float(chi2.sf(((counts[keep] - wanted) ** 2 / wanted).sum(), keep.sum() - 1))


def test_choices_follow_the_weights_and_a_rate_five_percent_off_is_noticed() -> None:
    source = Seeded(11)
    drawn = [exponential_choice(LENGTHS, PENALTIES, RATE, source) for _ in range(40_000)]
    assert p_value(drawn, probabilities(float(RATE))) > THRESHOLD
    assert p_value(drawn, probabilities(float(RATE) * 1.05)) < THRESHOLD


def test_choices_settled_by_integers_follow_the_weights_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_by_floats", lambda *arguments: None)
    source = Seeded(12)
    drawn = [exponential_choice(LENGTHS, PENALTIES, RATE, source) for _ in range(20_000)]
    assert p_value(drawn, probabilities(float(RATE))) > THRESHOLD
    assert p_value(drawn, probabilities(float(RATE) * 1.2)) < THRESHOLD


@given(
    st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 3000)), min_size=2, max_size=30),
    st.fractions(Fraction(1, 10**6), 20, max_denominator=10**9),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([1 << 10, 4, 1]),
)
@settings(max_examples=examples(300), deadline=None)
def test_both_ways_settle_a_draw_alike(
    intervals: list[tuple[int, int]], rate: Fraction, word: int, part: int
) -> None:
    lengths = np.array([length for length, _ in intervals]) + 1
    excess = np.array([penalty for _, penalty in intervals])
    excess -= excess.min()
    # in parts of so many weights
    with mock.patch.object(choice, "_PART", part):
        by_floats = choice._by_floats(lengths, excess, rate, word)
    by_integers = choice._by_integers(lengths, excess, rate, word, Seeded(1))
    assert by_floats in (None, by_integers)


def test_floats_leave_a_draw_at_the_border_of_two_intervals_to_integers() -> None:
    lengths, excess = np.array([1, 1]), np.array([0, 0])
    half = 1 << 63
    assert choice._by_floats(lengths, excess, Fraction(1), half) is None
    assert choice._by_floats(lengths, excess, Fraction(1), half - (1 << 20)) == 0
    assert choice._by_floats(lengths, excess, Fraction(1), half + (1 << 20)) == 1
    # the next digits tell on which side the real number is
    assert choice._by_integers(lengths, excess, Fraction(1), half, Words(1 << 63)) == 1
    assert choice._by_integers(lengths, excess, Fraction(1), half, Words(0, 0, 1)) == 1
    assert choice._by_integers(lengths, excess, Fraction(1), half - 1, Words(1 << 63)) == 0


def test_many_weights_are_settled_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten equal intervals in parts of three: no word is settled wrongly, and those at a border are left to integers."""
    lengths, excess = np.ones(10, dtype=np.int64), np.zeros(10, dtype=np.int64)
    monkeypatch.setattr(choice, "_PART", 3)
    for number in range(10):
        border, step = (number << 64) // 10, (1 << 64) // 10
        found = [
            choice._by_floats(lengths, excess, Fraction(1), border + more) for more in (1 << 20, step // 2)
        ]
        assert found == [number, number]
        assert choice._by_floats(lengths, excess, Fraction(1), border) in ((None,) if number else (0, None))
    assert choice._by_floats(lengths, excess, Fraction(1), (1 << 64) - 1) in (9, None)


def test_far_intervals_are_neither_forgotten_nor_preferred() -> None:
    """An interval of weight 2^-129 is chosen by the one word that points at it, and by digits behind that word."""
    lengths, excess = np.array([1, 1 << 40]), np.array([200, 0])
    assert choice._by_floats(lengths, excess, Fraction(1), 0) is None
    # exp(-200) / 2^40 is about 2^-328.5: it takes more than five words of zeros to fall below it
    assert choice._by_integers(lengths, excess, Fraction(1), 0, Words(0, 0, 0, 0, 0)) == 0
    assert choice._by_integers(lengths, excess, Fraction(1), 0, Words(1)) == 1


@given(st.fractions(0, 400, max_denominator=10**12), st.sampled_from([1, 20, 64, 128, 300]))
@settings(max_examples=examples(200), deadline=None)
def test_exp_is_never_above_and_at_most_two_units_below(x: Fraction, bits: int) -> None:
    with localcontext(prec=300):
        true = (-(Decimal(x.numerator) / Decimal(x.denominator))).exp() * Decimal(2) ** bits
        below = true - choice.exp_fixed(x, bits)
    assert -(Decimal(10) ** -100) <= below <= 2


@given(st.fractions(0, 3, max_denominator=10**6), st.integers(0, 5000), st.sampled_from([64, 128, 192]))
@settings(max_examples=examples(100), deadline=None)
def test_bounds_enclose_every_weight(rate: Fraction, penalty: int, bits: int) -> None:
    lower, upper = choice.cumulative_bounds(np.array([3]), np.array([penalty]), rate, bits)
    with localcontext(prec=400):
        x = rate * penalty
        true = 3 * (-(Decimal(x.numerator) / Decimal(x.denominator))).exp() * Decimal(2) ** bits
        assert lower[0] <= true + Decimal(10) ** -100
        assert true <= upper[0]
    assert upper[0] - lower[0] == 12


def test_a_single_candidate_needs_no_randomness() -> None:
    assert exponential_choice(np.array([0, 0, 4]), np.array([1, 0, 50]), Fraction(10**6), Words()) == 2


@pytest.mark.parametrize(
    ("lengths", "penalties", "rate"),
    [([0, 0], [1, 2], 1), ([1, -1], [1, 2], 1), ([1, 1], [-1, 2], 1), ([1, 1], [1, 2], -1), ([], [], 1)],
)
def test_nothing_to_choose_from_is_an_error(lengths: list[int], penalties: list[int], rate: int) -> None:
    with pytest.raises(OptionError, match="exponential mechanism"):
        exponential_choice(
            np.array(lengths, dtype=np.int64),
            np.array(penalties, dtype=np.int64),
            Fraction(rate),
            Seeded(1),
        )
