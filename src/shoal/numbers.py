"""Exact decimal numbers, and the names of arrays of numbers."""

from __future__ import annotations

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
    # the command line reads numbers without loading numpy
    if name not in _ARRAYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import numpy as np
    from numpy.typing import NDArray

    element: Any = getattr(np, _ARRAYS[name])
    return NDArray[element]


# Bounds, widths and steps, and ratios of any two of them, must be ordinary float64 numbers.
_LARGEST_EXPONENT = 150

# what a number is of: the name of an option, or a message
What = str | Message


def exact(value: object, what: What) -> Fraction:
    """A number as the fraction its decimal text means: 0.1 is one tenth, not its binary neighbour.

    >>> exact(0.1, "step")
    Fraction(1, 10)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise OptionError("option-not-a-number", **named(what), found=value)
    value = _plain(value)
    try:
        decimal = Decimal(str(value).strip())
    except InvalidOperation:
        raise OptionError("option-text-not-a-number", **named(what), found=value) from None
    if not decimal.is_finite():
        raise OptionError("option-not-finite", **named(what), found=value)
    # asked before the fraction is made: the one of 1e999999999 would fill the memory
    if decimal and abs(decimal.adjusted()) > _LARGEST_EXPONENT:
        raise OptionError(
            "option-0-between-1e-1e-size", **named(what), largest_exponent=_LARGEST_EXPONENT, found=value
        )
    return Fraction(decimal)


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; whoever has none of numpy's need not load it."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, numpy.generic) else value


def named(what: What) -> dict[str, Any]:
    """What is no number, as facts of an error: the option that it is, or the column and whatever else is known."""
    if isinstance(what, Message):
        return {**what.facts, "what": what}
    return {"what": what, "option": what if what.isidentifier() else None}


def decimals_of(value: Fraction) -> int | None:
    """How many decimals a number has; None for one without an end.

    >>> decimals_of(Fraction(5, 2)), decimals_of(Fraction(300)), decimals_of(Fraction(1, 3))
    (1, 0, None)
    """
    # 10^d is a multiple of the denominator for the first time at a d below its bit length
    for digits in range(value.denominator.bit_length()):
        if 10**digits % value.denominator == 0:
            return digits
    return None


def written_decimals(value: object) -> int | None:
    """How many decimals a number is written with; None for 1.0, as Python writes any whole number that may have some.

    >>> written_decimals("0.00"), written_decimals(120), written_decimals(99.5), written_decimals(1.0)
    (2, 0, 1, None)
    """
    if isinstance(value, Fraction):
        return decimals_of(value)
    value = _plain(value)
    text = str(value).strip()
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int)
    return None if exponent == -1 and text.endswith(".0") else max(-exponent, 0)


def decimal_text(value: Fraction) -> str:
    """The shortest decimal text of a fraction that has one, otherwise 17 digits.

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
