"""ε as its user wrote it. In: decimal text or a number. Out: the exact fraction, inside the accepted range."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from shoal.errors import OptionError

SMALLEST = Fraction(1, 10**9)
LARGEST = Fraction(10**6)
# Bounded digits and exponent: the exact fraction of "1e-999999999" would fill the memory.
_DECIMAL = re.compile(r"\+?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def parse_epsilon(value: str | int | float | Decimal | Fraction) -> Fraction:
    """The exact value of ε: 0.1 means one tenth, not the nearest binary number.

    A float is read through its shortest decimal text, which is what its user typed.

    Raises:
        OptionError: not a number, or outside 1e-9 .. 1e6.

    >>> parse_epsilon(0.1), parse_epsilon("2.50"), parse_epsilon(1)
    (Fraction(1, 10), Fraction(5, 2), Fraction(1, 1))
    """
    exact = exact_number(value)
    if exact is None or not SMALLEST <= exact <= LARGEST:
        raise OptionError("epsilon-out-of-range", option="epsilon", found=shown(value))
    return exact


def exact_number(value: object) -> Fraction | None:
    """The fraction that a number or its decimal text stands for; None where it stands for none."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    # str() of a numpy float is its shortest text in its own precision.
    text = value.strip() if isinstance(value, str) else None
    if isinstance(value, float | Decimal | np.floating):
        text = str(value)
    if text is None or not (matched := _DECIMAL.fullmatch(text.removeprefix("-"))):
        return None
    sign = -1 if text.startswith("-") else 1
    return sign * Fraction(matched.group())


def shown(value: object) -> str:
    """The value as an error message prints it: never longer than a line."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # the interpreter does not print integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:40] + "..."
