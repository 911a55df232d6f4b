"""ε is the decimal number its user wrote."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import OptionError
from shoal.noise import parse_epsilon


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (Decimal("0.10"), Fraction(1, 10)),
        (" 1.5 ", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("1e-3", Fraction(1, 1000)),
        (1e-05, Fraction(1, 10**5)),
        (1, Fraction(1)),
        (np.int64(3), Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("1/3", Fraction(1, 3)),
        ("1e6", Fraction(10**6)),
        (1e-9, Fraction(1, 10**9)),
    ],
)
def test_epsilon_is_read_as_written(value: Any, exact: Fraction) -> None:
    assert parse_epsilon(value) == exact


@given(value=st.floats(1e-9, 1e6))
def test_a_float_means_its_shortest_text(value: float) -> None:
    assert parse_epsilon(value) == parse_epsilon(repr(value)) == Fraction(repr(value))


@pytest.mark.parametrize(
    "bad",
    [
        0, -1, "-0.5", 0.0, float("nan"), float("inf"), -float("inf"), "nan", "inf", "", "one", "1/0", "1,5", "1 2",
        "0x1", "1_0", "١", True, None, [1], 1e7, "1000001", 1e-10, "1e-999999999", "1e999999999", Decimal("NaN"),
        Decimal("1e-400"), "9" * 10**6, Fraction(1, 10**10), 10**5000,
    ],
    ids=lambda bad: "long" if bad == 10**5000 else repr(bad)[:20],
)  # fmt: skip
def test_anything_else_is_refused_with_the_accepted_range(bad: Any) -> None:
    with pytest.raises(
        OptionError,
        match=r"epsilon must be a decimal number from 1e-9 to 1e6, or a fraction such as 1/6, got",
    ) as caught:
        parse_epsilon(bad)
    assert len(str(caught.value)) < 200
