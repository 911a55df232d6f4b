"""What an ε means to people: as a belief that may grow, and as a factor; both rounded to the safe side."""

from __future__ import annotations

import math

from shoal.text import Message

# from here on a factor is printed as "more than"
_LARGEST_FACTOR = 1_000_000


def belief(epsilon: float) -> Message | str:
    """What a belief of 50% can become at most, rounded up.

    >>> str(belief(1.0)), str(belief(12.0))
    ('73.2%', 'more than 99.9%')
    """
    percent = math.ceil(1000.0 / (1.0 + math.exp(-min(epsilon, 700.0))) - 1e-9) / 10.0
    return f"{percent:.1f}%" if percent <= 99.9 else Message.of("more-than", number="99.9%")


def factor(epsilon: float) -> Message | str:
    """e^ε, rounded up to three digits.

    >>> str(factor(1.0)), str(factor(0.1)), str(factor(40.0))
    ('2.72', '1.11', 'more than 1,000,000')
    """
    if epsilon >= math.log(_LARGEST_FACTOR):
        return Message.of("more-than", number=f"{_LARGEST_FACTOR:,}")
    found = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(found)) - 2)
    return f"{math.ceil(found / unit - 1e-9) * unit:,.10g}"


def belief_words(epsilon: float) -> str:
    """The belief in words."""
    return str(belief(epsilon))


def factor_words(epsilon: float) -> str:
    """The factor in words."""
    return str(factor(epsilon))


def budget_words(value: float) -> str:
    """A budget in human form: two digits after the leading zeros at least, never below what it is.

    >>> budget_words(0.1098612289), budget_words(1.0), budget_words(1000.0), budget_words(2.7200001)
    ('0.11', '1', '1,000', '2.73')
    """
    if value <= 0:
        return "0"
    unit = 10.0 ** min(math.floor(math.log10(value)) - 1, -2)
    return f"{math.ceil(value / unit - 1e-6) * unit:,.10g}"
