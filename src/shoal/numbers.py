"""Exact decimal numbers, and type aliases for arrays of numbers."""

from __future__ import annotations

import re
import sys
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from shoal.errors import OptionError
from shoal.text import Message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_ARRAYS = {"Floats": "float64", "Integers": "int64", "Bools": "bool_"}


def __getattr__(name: str) -> Any:
    # so that the command line can read numbers without loading numpy
    if name not in _ARRAYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy as np
    from numpy.typing import NDArray

    element: Any = getattr(np, _ARRAYS[name])
    return NDArray[element]


# Bounds, widths and steps, and ratios of any two of them, must be ordinary float64 numbers.
_LARGEST_EXPONENT = 150

# numerator and denominator, each as short as a decimal may be
_FRACTION = re.compile(rf"([+-]?[0-9]{{1,{_LARGEST_EXPONENT}}})\s*/\s*([0-9]{{1,{_LARGEST_EXPONENT}}})")

# what a number belongs to: the name of an option, or a message
What = str | Message


def exact(value: object, what: What) -> Fraction:
    """The fraction that the text of a number means: 0.1 is one tenth, not the nearest binary float.

    >>> exact(0.1, "step"), exact("1/6", "epsilon")
    (Fraction(1, 10), Fraction(1, 6))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise OptionError("option-not-a-number", **named(what), found=value)
    value = _plain(value)
    if isinstance(value, str) and (found := written_fraction(value)) is not None:
        return found
    try:
        decimal = Decimal(str(value).strip())
    except InvalidOperation:
        raise OptionError("option-text-not-a-number", **named(what), found=value) from None
    if not decimal.is_finite():
        raise OptionError("option-not-finite", **named(what), found=value)
    # checked before the fraction is made: that of 1e999999999 would fill the memory
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise OptionError(
            "option-0-between-1e-1e-size", **named(what), largest_exponent=_LARGEST_EXPONENT, found=value
        )
    return Fraction(decimal)


def written_fraction(text: str) -> Fraction | None:
    """The value of a fraction written as two whole numbers; None for any other text.

    >>> written_fraction("1/6"), written_fraction(" -3 / 4 "), written_fraction("1/0"), written_fraction("0.5")
    (Fraction(1, 6), Fraction(-3, 4), None, None)
    """
    found = _FRACTION.fullmatch(text.strip())
    if found is None or not int(found[2]):
        return None
    return Fraction(int(found[1]), int(found[2]))


def _plain(value: Any) -> Any:
    """A numpy number as a Python number, without loading numpy where it is not in use."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, numpy.generic) else value


def named(what: What) -> dict[str, Any]:
    """Where an invalid number occurs, as facts of an error: the option, or the column and what else is known."""
    if isinstance(what, Message):
        return {**what.facts, "what": what}
    return {"what": what, "option": what if what.isidentifier() else None}


def decimals_of(value: Fraction) -> int | None:
    """Number of decimals; None if the expansion does not end.

    >>> decimals_of(Fraction(5, 2)), decimals_of(Fraction(300)), decimals_of(Fraction(1, 3))
    (1, 0, None)
    """
    # the smallest d for which 10^d is a multiple of the denominator is below its bit length
    for digits in range(value.denominator.bit_length()):
        if 10**digits % value.denominator == 0:
            return digits
    return None


def written_decimals(value: object) -> int | None:
    """Number of decimals as written; None for 1.0, which Python writes for any whole float.

    >>> written_decimals("0.00"), written_decimals(120), written_decimals(99.5), written_decimals(1.0)
    (2, 0, 1, None)
    """
    if isinstance(value, Fraction):
        return decimals_of(value)
    value = _plain(value)
    text = str(value).strip()
    if (fraction := written_fraction(text)) is not None:
        return decimals_of(fraction)
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int)
    return None if exponent == -1 and text.endswith(".0") else max(-exponent, 0)


def exact_text(value: Fraction) -> str:
    """The shortest exact text of a fraction: a decimal that ends, otherwise numerator and denominator.

    >>> exact_text(Fraction(3, 2)), exact_text(Fraction(1, 6))
    ('1.5', '1/6')
    """
    return str(value) if decimals_of(value) is None else decimal_text(value)


def decimal_text(value: Fraction) -> str:
    """The shortest exact decimal text of a fraction, otherwise 17 digits.

    >>> decimal_text(Fraction(3, 2)), decimal_text(Fraction(12000)), decimal_text(Fraction(1, 3))
    ('1.5', '12000', '0.33333333333333331')
    """
    if value.denominator == 1:
        return str(value.numerator)
    text = repr(float(value))
    if Fraction(Decimal(text)) == value:
        return text
    # a fraction that ends after d digits has a denominator that divides 10^d, and d is below its bit length
    digits = value.denominator.bit_length()
    if 10**digits % value.denominator == 0:
        with localcontext(prec=digits + len(str(value.numerator))):
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    return format(float(value), ".17g")
