"""Zero-concentrated DP, the second currency: ρ. In: budgets as exact fractions. Out: budgets in the other currency.

Every conversion is rounded so that the claim holds: ρ downwards, ε upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from shoal.errors import OptionError
from shoal.noise.epsilon import exact_number, shown

SMALLEST_DELTA = Fraction(1, 10**100)
# significant digits of a converted budget, and those it is computed with
_DIGITS, _WORKING = 12, 60
_MARGIN = Decimal("1e-30")


def parse_delta(value: object) -> Fraction:
    """The exact value of δ: 0, or a decimal number from 1e-100 to below 1.

    >>> parse_delta(0), parse_delta("1e-6")
    (Fraction(0, 1), Fraction(1, 1000000))
    """
    exact = exact_number(value)
    if exact is None or not (exact == 0 or SMALLEST_DELTA <= exact < 1):
        raise OptionError("delta-0-decimal-number-from-1e", option="delta", found=shown(value))
    return exact


@lru_cache(maxsize=256)
def rho_from(epsilon: Fraction, delta: Fraction, rows: int = 1) -> Fraction:
    """A ρ for each row such that a person with so many rows is protected by (ε, δ)-DP, as large as the digits allow.

    Guarantee:
        ρ·rows²-zCDP implies (ε, δ)-DP: for every α > 1, δ may be exp((α-1)(αρ - ε) + α·log(1 - 1/α) - log(α - 1)). α is
        chosen with floats, which cannot hurt; ρ follows from it with 60 digits and is rounded down to 12.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Proposition 12 and its proof;
        Bun and Steinke, "Concentrated Differential Privacy", Proposition 27 for several rows; docs/proofs/gaussian.md.

    >>> [f"{float(rho_from(Fraction(epsilon), Fraction('1e-6'))):.4g}" for epsilon in ("0.1", "1", "10")]
    ['0.000321', '0.02436', '1.539']
    """
    if not 0 < delta < 1 or epsilon <= 0 or rows < 1:
        raise OptionError("conversion-rho-needs-epsilon-above-0")
    log_delta = _log(delta)
    largest = float(epsilon) - log_delta + 10  # already the mean of the privacy loss is above ε by far
    rho = _bisect(lambda rho: _log_delta(rho, float(epsilon)) - log_delta, 0.0, largest)
    alpha = Decimal(_best_order(max(rho, 1e-300), float(epsilon)))
    with localcontext(Context(prec=_WORKING)):
        room = _decimal(epsilon) + (_decimal(delta).ln() - _constant(alpha)) / (alpha - 1)
        exact = room / alpha - abs(room / alpha) * _MARGIN
    found = Fraction(_shortened(exact, ROUND_FLOOR)) / rows**2
    if found <= 0:
        raise OptionError(
            "epsilon-delta-too-small-conversion-rho", epsilon=shown(epsilon), delta=shown(delta)
        )
    return found


@lru_cache(maxsize=256)
def epsilon_from(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε for which ρ-zCDP implies (ε, δ)-DP, rounded up to 12 digits.

    >>> round(float(epsilon_from(Fraction("0.02436"), Fraction("1e-6"))), 3)
    1.0
    """
    if not 0 < delta < 1 or rho < 0:
        raise OptionError("conversion-epsilon-needs-rho-least-0")
    if rho == 0:
        return Fraction(0)
    log_delta = _log(delta)
    largest = float(rho) + 2 * math.sqrt(-float(rho) * log_delta) + 1
    # δ falls with ε
    epsilon = _bisect(lambda epsilon: log_delta - _log_delta(float(rho), epsilon), 0.0, largest)
    alpha = Decimal(_best_order(float(rho), epsilon))
    with localcontext(Context(prec=_WORKING)):
        exact = alpha * _decimal(rho) + (_constant(alpha) - _decimal(delta).ln()) / (alpha - 1)
        exact += abs(exact) * _MARGIN
    return max(Fraction(_shortened(exact, ROUND_CEILING)), Fraction(0))


def pure_rho(epsilon: Fraction) -> Fraction:
    """What a release that is ε-DP costs in ρ.

    Reference:
        Bun and Steinke, "Concentrated Differential Privacy", Proposition 3.
    """
    return epsilon**2 / 2


def choice_rho(rate: Fraction, change: int = 1) -> Fraction:
    """What `exponential_choice` costs in ρ where one record changes every penalty by at most `change`.

    Log-probabilities then have a range of 2·rate·change, and a mechanism of range η costs η²/8; in ε it costs η.

    Reference:
        Cesar and Rogers, "Bounding, Concentrating, and Truncating", Lemma 3.3; docs/proofs/gaussian.md.

    >>> choice_rho(Fraction(1, 2))
    Fraction(1, 8)
    """
    return (rate * change) ** 2 / 2


def choice_rate(rho: Fraction, change: int = 1) -> Fraction:
    """The largest rate with a denominator of 2^40 at which `exponential_choice` costs at most ρ.

    >>> choice_rate(Fraction(1, 8))
    Fraction(1, 2)
    """
    unit = 1 << 40
    return Fraction(math.isqrt(2 * rho.numerator * unit**2 // rho.denominator), unit * change)


def _log_delta(rho: float, epsilon: float) -> float:
    """The logarithm of δ at the best order, in floats."""
    if rho <= 0:
        return -math.inf
    return _log_at(_best_order(rho, epsilon), rho, epsilon)


def _log_at(alpha: float, rho: float, epsilon: float) -> float:
    return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)


def _best_order(rho: float, epsilon: float) -> float:
    """Where the derivative of the logarithm of δ, which grows with α, is 0."""
    largest = (epsilon + 1) / (2 * rho) + 2
    return 1 + _bisect(
        lambda over: (2 * over + 1) * rho - epsilon + math.log(over / (1 + over)), 1e-9, largest
    )


def _bisect(rises: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function passes 0, to the last digits of a float."""
    while low < (middle := (low + high) / 2) < high:
        if rises(middle) > 0:
            high = middle
        else:
            low = middle
    return low if low > 0 else high


def _constant(alpha: Decimal) -> Decimal:
    return alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _shortened(value: Decimal, rounding: str) -> Decimal:
    return Context(prec=_DIGITS, rounding=rounding).plus(value)


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)
