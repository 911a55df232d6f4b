"""How ε is shared: exactly, by public widths, and never more than there is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.privacy.accountant import split_budget

widths = st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=10**6), min_size=1, max_size=6)
budgets = st.fractions(min_value=Fraction(1, 100), max_value=100)


def names(count: int) -> list[str]:
    return [f"column {i}" for i in range(count)]


@given(budgets, widths, st.sampled_from(["equal", "proportional", "optimal"]))
def test_shares_are_positive_and_add_up_to_at_most_epsilon(
    epsilon: Fraction, wide: list[Fraction], split: str
) -> None:
    shares = split_budget(epsilon, names(len(wide)), wide, split)
    assert all(share > 0 for share in shares)
    assert epsilon * Fraction(999_999, 1_000_000) < sum(shares) <= epsilon


@given(budgets, widths)
def test_equal_and_proportional_are_exact(epsilon: Fraction, wide: list[Fraction]) -> None:
    equal = split_budget(epsilon, names(len(wide)), wide, "equal")
    assert equal == (epsilon / len(wide),) * len(wide)
    shares = split_budget(epsilon, names(len(wide)), wide, "proportional")
    assert [share / width for share, width in zip(shares, wide, strict=True)] == [epsilon / sum(wide)] * len(
        wide
    )


def variance(shares: tuple[Fraction, ...], wide: list[Fraction]) -> float:
    return sum(float(width / share) ** 2 for share, width in zip(shares, wide, strict=True))


@given(widths)
def test_optimal_has_the_least_variance(wide: list[Fraction]) -> None:
    found = {
        split: split_budget(Fraction(1), names(len(wide)), wide, split)
        for split in ("equal", "proportional", "optimal")
    }
    best = variance(found["optimal"], wide)
    assert best <= variance(found["equal"], wide) * (1 + 1e-9)
    assert best <= variance(found["proportional"], wide) * (1 + 1e-9)


def test_optimal_is_the_two_thirds_power() -> None:
    one, eight = split_budget(Fraction(1), ["a", "b"], [Fraction(1), Fraction(8)], "optimal")
    assert math.isclose(eight / one, 4)


def test_explicit_weights() -> None:
    shares = split_budget(Fraction(1), ["a", "b"], [Fraction(1)] * 2, {"b": "0.1", "a": 0.3})
    assert shares == (Fraction(3, 4), Fraction(1, 4))


@pytest.mark.parametrize(
    ("split", "word"),
    [
        ("fair", "not one of equal, proportional, optimal"),
        ("optimum", "Did you mean 'optimal'"),
        ({"a": 1}, "no weight for column 'b'"),
        ({"a": 1, "b": 1, "c": 1}, "'c', which is not protected"),
        ({"a": 0, "b": 1}, "column 'a' must be above 0"),
        ({"a": -1, "b": 1}, "column 'a' must be above 0"),
        ({"a": "much", "b": 1}, "split weight of column 'a'"),
        ({"a": float("nan"), "b": 1}, "must be finite"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(split: Any, word: str) -> None:
    with pytest.raises(OptionError, match=word):
        split_budget(Fraction(1), ["a", "b"], [Fraction(1)] * 2, split)
