"""Rényi divergences of any order above one between two sides of a draw, by enumeration.

No bound is used: the probabilities of all outcomes are added up, with 50 digits, as far out as they matter. Those of
wide Gaussians are millions; there the sum is known to more digits than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from .laws import Gaussian, Scores, Selection
from .transcript import Draw, Plain

_DIGITS = 50
# what is left out beyond so many standard deviations is below 10^-80 of the rest
_REACH = 20
# from this variance on Σ exp(-(x-c)²/2v) over whole numbers is the same for every c, by Poisson's formula, up to a part
# of about 4·exp(-2π²v), which is below 10^-58
_WIDE = 7


def divergence(mine: Draw, other: Draw, alpha: Fraction) -> Decimal:
    """Of one draw, given all draws before it."""
    if isinstance(mine.law, Plain) or mine.private == other.private:
        return Decimal(0)
    if isinstance(mine.law, Selection):
        return _of_choices(mine.private, other.private, alpha)
    assert isinstance(mine.law, Gaussian), f"{mine.law} has no place in a release with a delta"
    parts = zip(mine.private, other.private, mine.law.variances, strict=True)
    return sum((_of_gaussians(abs(a - b), variance, alpha) for a, b, variance in parts if a != b), Decimal(0))


def together(mine: Sequence[Draw], other: Sequence[Draw], alpha: Fraction) -> Decimal:
    """Of all draws along a transcript; where none of them depends on others, that of the whole release."""
    return sum((divergence(a, b, alpha) for a, b in zip(mine, other, strict=True)), Decimal(0))


def mixed(odds: Sequence[tuple[Decimal, Decimal]], rest: Sequence[Decimal], alpha: Fraction) -> Decimal:
    """Of a first draw and all that depends on it: its probabilities on both sides, and divergences of what follows."""
    with localcontext() as context:
        context.prec = _DIGITS
        order = _decimal(alpha)
        terms = (
            p**order * q ** (1 - order) * ((order - 1) * later).exp()
            for (p, q), later in zip(odds, rest, strict=True)
        )
        return sum(terms, Decimal(0)).ln() / (order - 1)


def gaussian_masses(variance: Fraction, places: Sequence[int]) -> list[Decimal]:
    """Probabilities of a discrete Gaussian at these places."""
    with localcontext() as context:
        context.prec = _DIGITS
        reach = math.ceil(_REACH * math.sqrt(variance)) + 1
        whole = sum((_weight(x, variance) for x in range(-reach, reach + 1)), Decimal(0))
        return [_weight(x, variance) / whole for x in places]


def _of_gaussians(shift: int, variance: Fraction, alpha: Fraction) -> Decimal:
    """log Σ p^α q^(1-α) / (α-1), p centred at 0 and q at the shift.

    The terms are those of a Gaussian centred at (1-α)·shift, times exp(α(α-1)·shift²/2v).
    """
    if variance < _WIDE:
        return enumerated(shift, variance, alpha)
    with localcontext() as context:
        context.prec = _DIGITS
        return _decimal(alpha * shift**2 / (2 * variance))


@lru_cache(maxsize=1000)
def enumerated(shift: int, variance: Fraction, alpha: Fraction) -> Decimal:
    """The same term by term; the largest are at (1-α)·shift."""
    with localcontext() as context:
        context.prec = _DIGITS
        order = _decimal(alpha)
        reach = math.ceil(_REACH * math.sqrt(variance)) + 1
        middle = round((1 - alpha) * shift)
        whole = sum((_weight(x, variance) for x in range(-reach, reach + 1)), Decimal(0))
        exponents = (
            -(alpha * x * x + (1 - alpha) * (x - shift) ** 2) / (2 * variance)
            for x in range(middle - reach, middle + reach + 1)
        )
        return (sum((_decimal(e).exp() for e in exponents), Decimal(0)) / whole).ln() / (order - 1)


def _of_choices(mine: Scores, other: Scores, alpha: Fraction) -> Decimal:
    """Candidates between two places where the scores of either side change are alike."""
    with localcontext() as context:
        context.prec = _DIGITS
        order = _decimal(alpha)
        places = [*sorted({*mine.starts(), *other.starts()}), mine.total]
        # a common factor of all weights does not matter, and keeps them from vanishing
        least = [min(side.exponent(place) for place in places[:-1]) for side in (mine, other)]
        runs = [
            (
                after - before,
                _decimal(mine.exponent(before) - least[0]),
                _decimal(other.exponent(before) - least[1]),
            )
            for before, after in pairwise(places)
        ]
        here = sum((length * (-a).exp() for length, a, _ in runs), Decimal(0))
        there = sum((length * (-b).exp() for length, _, b in runs), Decimal(0))
        both = sum(
            (
                length * ((-a).exp() / here) ** order * ((-b).exp() / there) ** (1 - order)
                for length, a, b in runs
            ),
            Decimal(0),
        )
        return both.ln() / (order - 1)


def _weight(x: int, variance: Fraction) -> Decimal:
    return _decimal(Fraction(-x * x) / (2 * variance)).exp()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
