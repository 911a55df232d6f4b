"""Numbers as exact fractions, and the public lattice they live on."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shoal.columns.kinds import DEFAULT_REAL_STEPS, MAX_STEPS, Lattice
from shoal.errors import OptionError
from shoal.numbers import decimal_text, exact

decimals = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, allow_infinity=False, places=6)


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (Decimal("2.50"), Fraction(5, 2)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int8(-7), Fraction(-7)),
        (" 12 ", Fraction(12)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("0e999999999", Fraction(0)),
    ],
)
def test_a_number_means_its_decimal_text(value: object, meaning: Fraction) -> None:
    assert exact(value, "x") == meaning


@pytest.mark.parametrize(
    "value", ["", "one", "1,5", None, [], True, "nan", "inf", "-inf", "1e999999999", "1e-400"]
)
def test_what_is_no_usable_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(OptionError, match="the bound"):
        exact(value, "the bound")


@given(decimals)
def test_decimal_text_of_a_decimal_reads_back_exactly(value: Decimal) -> None:
    assert exact(decimal_text(Fraction(value)), "x") == Fraction(value)


def test_decimal_text_keeps_every_digit_there_is() -> None:
    assert decimal_text(exact("0.1234567890123456789012345", "x")) == "0.1234567890123456789012345"
    assert Fraction(decimal_text(Fraction(1, 2**60))) == Fraction(1, 2**60)
    assert decimal_text(Fraction(1, 3)) == "0.33333333333333331"


@given(decimals, decimals, st.integers(min_value=1, max_value=1000))
def test_width_in_steps_is_never_understated(lo: Decimal, hi: Decimal, parts: int) -> None:
    assume(lo < hi)
    lattice = Lattice(Fraction(lo), Fraction(hi), (Fraction(hi) - Fraction(lo)) / parts)
    assert lattice.steps * lattice.step >= lattice.width
    coarse = Lattice(Fraction(lo), Fraction(hi), lattice.step * Fraction(7, 5))
    assert coarse.steps * coarse.step >= coarse.width


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.integers(-1000, 1000),
    st.integers(1, 10**6),
)
def test_positions_stay_on_the_lattice_and_nearest(values: list[float], lo: int, width: int) -> None:
    lattice = Lattice(Fraction(lo), Fraction(lo + width), Fraction(width, DEFAULT_REAL_STEPS))
    given_values = np.array(values)
    positions = lattice.positions(given_values)
    assert positions.dtype == np.int64
    assert positions.min() >= 0
    assert positions.max() <= lattice.steps
    inside = np.clip(given_values, lo, lo + width)
    assert np.abs(lattice.values(positions) - inside).max() <= float(lattice.step) * 0.51


def test_integers_survive_the_way_there_and_back() -> None:
    lattice = Lattice(Fraction(-5), Fraction(1000), Fraction(1))
    values = np.arange(-5.0, 1001.0)
    assert np.array_equal(lattice.values(lattice.positions(values)), values)


def test_values_outside_land_on_the_ends() -> None:
    lattice = Lattice(Fraction(0), Fraction(10), Fraction(3))
    assert lattice.positions(np.array([-1e300, 0.0, 10.0, 1e300])).tolist() == [0, 0, 3, 4]


@pytest.mark.parametrize(
    ("lo", "hi", "step", "word"),
    [
        (1, 1, 1, "lo < hi"),
        (2, 1, 1, "lo < hi"),
        (0, 1, 0, "greater than 0"),
        (0, 1, -1, "greater than 0"),
        (0, 2, Fraction(1, MAX_STEPS), "too fine"),
        (10**9, 10**9 + 1, Fraction(1, 2**40), "too fine"),
    ],
)
def test_lattices_that_cannot_be_used_are_refused(lo: int, hi: int, step: Fraction, word: str) -> None:
    with pytest.raises(OptionError, match=word):
        Lattice(Fraction(lo), Fraction(hi), Fraction(step))


def test_steps_is_the_ceiling_of_the_exact_width() -> None:
    # 0.3 / 0.1 is 2.9999999999999996 in binary
    assert Lattice(Fraction(0), exact(0.3, "hi"), exact(0.1, "step")).steps == 3
    assert Lattice(Fraction(0), Fraction(10), Fraction(3)).steps == math.ceil(10 / 3)
