"""Rounded scales: never down, barely up, and always inside what the sampler takes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.noise import discrete_laplace, round_up_scale
from shoal.noise import exact as scale_module

scales = st.builds(Fraction, st.integers(1, 10**18), st.integers(1, 10**15)).filter(lambda x: x <= 2**52)


@given(exact=scales)
def test_a_scale_is_never_rounded_down_and_barely_up(exact: Fraction) -> None:
    rounded = round_up_scale(exact)
    assert rounded >= exact
    assert rounded.numerator <= 2**52
    assert rounded.denominator <= 2**20
    assert rounded - exact <= max(exact / 2**19, Fraction(1, 2**20))
    assert round_up_scale(rounded) == rounded


@given(first=scales, second=scales)
def test_rounding_keeps_the_order_of_scales(first: Fraction, second: Fraction) -> None:
    low, high = sorted([first, second])
    assert round_up_scale(low) <= round_up_scale(high)


@given(exact=st.builds(Fraction, st.integers(0, 500), st.integers(1, 400)))
def test_the_result_is_the_smallest_admissible_fraction(exact: Fraction) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale_module, "SCALE_DENOMINATOR", 17)
        rounded = round_up_scale(exact)
    admissible = range(1, 18) if exact < 17 else range(1, 2)
    assert rounded == min(Fraction(-(-exact.numerator * d // exact.denominator), d) for d in admissible)


@pytest.mark.parametrize(
    "exact", [Fraction(0), Fraction(7), Fraction(3, 10), Fraction(10, 3), Fraction(2**52)]
)
def test_small_fractions_and_whole_numbers_stay(exact: Fraction) -> None:
    assert round_up_scale(exact) == exact


def test_the_largest_scales_are_sampled() -> None:
    for scale in (Fraction(2**52), round_up_scale(Fraction(2**20) - Fraction(1, 10**9)), Fraction(1, 2**20)):
        assert discrete_laplace(scale, 10).shape == (10,)


@pytest.mark.parametrize(
    ("exact", "hint"),
    [
        (Fraction(-1, 3), "at least 0"),
        (Fraction(2**52) + Fraction(1, 2), "coarser"),
        (0.1, "Fraction"),
        ("1", "Fraction"),
    ],
)
def test_a_scale_out_of_range_is_refused(exact: Any, hint: str) -> None:
    with pytest.raises(OptionError, match=hint):
        round_up_scale(exact)
