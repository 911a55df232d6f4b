"""What an ε means to people: as a belief that may grow, and as a factor; both rounded to the safe side."""

from __future__ import annotations

import math

# from here on a factor is printed as "more than"
_LARGEST_EXPONENT = math.log(1_000_000)


def belief_words(epsilon: float) -> str:
    """What a belief of 50% can become at most, rounded up.

    >>> belief_words(1.0), belief_words(12.0)
    ('73.2%', 'more than 99.9%')
    """
    percent = math.ceil(1000.0 / (1.0 + math.exp(-min(epsilon, 700.0))) - 1e-9) / 10.0
    return f"{percent:.1f}%" if percent <= 99.9 else "more than 99.9%"


def factor_words(epsilon: float) -> str:
    """e^ε, rounded up to three digits.

    >>> factor_words(1.0), factor_words(0.1), factor_words(40.0)
    ('2.72', '1.11', 'more than 1,000,000')
    """
    if epsilon >= _LARGEST_EXPONENT:
        return "more than 1,000,000"
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    return f"{math.ceil(factor / unit - 1e-9) * unit:,.10g}"


def budget_words(value: float) -> str:
    """A budget in human form: two digits after the leading zeros at least, never below what it is.

    >>> budget_words(0.1098612289), budget_words(1.0), budget_words(1000.0), budget_words(2.7200001)
    ('0.11', '1', '1,000', '2.73')
    """
    if value <= 0:
        return "0"
    unit = 10.0 ** min(math.floor(math.log10(value)) - 1, -2)
    return f"{math.ceil(value / unit - 1e-6) * unit:,.10g}"
