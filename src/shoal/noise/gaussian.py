"""Discrete Gaussian noise, and the conversion between ρ (zCDP) and (ε, δ).

Every conversion is rounded conservatively: ρ downwards, ε upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.entropy import Shape, Source, shape_with
from shoal.noise.entropy import source as source_for
from shoal.noise.exact import bernoulli_exp_one, exact_number, exp_coin, shown
from shoal.noise.laplace import discrete_laplace

# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
BLOCK = 1 << 17
LARGEST_VARIANCE, SMALLEST_VARIANCE = Fraction(1 << 80), Fraction(1, 1 << 80)
# bits of a uniform real compared with a float before the exact value is computed
_DIGIT = 32
# maximum error of a float exponent x, in units of 1 + x; docs/proofs/noise.md#gaussian has an eighth of it
_SLACK = 2.0**-46

# exponents above this are decided with the exact value: a coin that succeeds with probability exp(-1000)
_FAR = 1000.0

Variance = int | Fraction
SMALLEST_DELTA = Fraction(1, 10**100)
# significant digits of a converted budget, and those used to compute it
_DIGITS, _WORKING = 12, 60
_MARGIN = Decimal("1e-30")


def discrete_gaussian(
    variance: Variance | Sequence[Variance], size: Shape | None = None, source: Source | None = None
) -> NDArray[np.int64]:
    """Integer noise with P(x) proportional to exp(-x² / (2 · variance)), exactly.

    Args:
        variance: σ² in squared lattice steps; an integer, a Fraction, or a list of them, each 0 or from 2^-80 to
            2^80.
            σ² is the parameter of the law, which its variance approaches from below. Variance 0 always draws 0.
        size: shape of the result, broadcast with `variance`; one draw per variance when absent.
        source: where the bits come from; the operating system's entropy when absent.

    Raises:
        OptionError: a variance is negative, not rational or too large.

    Guarantee:
        Added to integer queries of which query j changes by Δ_j between neighbouring data sets, with Σ_j
        Δ_j²/σ_j² at most 2ρ for every neighbouring pair, the result is ρ-zCDP for that adjacency, with no
        floating-point gap.

    Cost:
        Linear in the number of draws, about 40 bytes of entropy each, for any variance.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Algorithm 3 and Theorem 14;
        docs/proofs/noise.md#gaussian.

    >>> discrete_gaussian(0, 3).tolist()
    [0, 0, 0]
    >>> discrete_gaussian([4, Fraction(5, 2)]).shape
    (2,)
    """
    bits = source_for(None) if source is None else source
    given = np.asarray(variance, dtype=object)
    shape = shape_with(given.shape, size)
    kinds = {value: number for number, value in enumerate(dict.fromkeys(given.ravel().tolist()))}
    exact = [_exact(value) for value in kinds]
    number = np.array([kinds[value] for value in given.ravel().tolist()], dtype=np.int64)
    number = np.broadcast_to(number.reshape(given.shape), shape).ravel()
    proposals = [_proposal(value) for value in exact]
    # the correctly rounded values of σ²/t and 1/(2σ²)
    centres = np.array([float(v / t) if v else 0.0 for v, t in zip(exact, proposals, strict=True)])
    rates = np.array([float(1 / (2 * v)) if v else 0.0 for v in exact])
    scales = np.array(proposals, dtype=np.int64)

    def attempt(kind: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Laplace draws of scale t, and which are accepted: each with probability exp(-(|y| - σ²/t)²/(2σ²))."""
        one = kind.size > 0 and len(exact) == 1
        drawn = discrete_laplace(int(scales[0]) if one else scales[kind], kind.size, bits)
        magnitude = np.abs(drawn)
        centre, rate = (centres[0], rates[0]) if one else (centres[kind], rates[kind])
        distance = magnitude - centre

        def exponent(i: int) -> Fraction:
            value = exact[int(kind[i])]
            away = int(magnitude[i]) - value / proposals[int(kind[i])]
            return away * away / (2 * value)

        alike = np.stack([magnitude, kind])
        return drawn, bernoulli_exp_near(distance * distance * rate, alike, exponent, bits)

    draws = np.zeros(number.size, dtype=np.int64)
    pending = np.flatnonzero(scales[number] > 0) if number.size else np.zeros(0, dtype=np.intp)
    while pending.size:
        refused = []
        for start in range(0, pending.size, BLOCK):
            block = pending[start : start + BLOCK]
            drawn, kept = attempt(number[block])
            draws[block[kept]] = drawn[kept]
            refused.append(block[~kept])
        pending = np.concatenate(refused)
    return draws.reshape(shape)


def _exact(value: object) -> Fraction:
    if isinstance(value, Fraction | int | np.integer) and not isinstance(value, bool):
        exact = Fraction(value) if isinstance(value, Fraction) else Fraction(int(value))
        if exact == 0 or SMALLEST_VARIANCE <= exact <= LARGEST_VARIANCE:
            return exact
        raise OptionError("variance-too-large" if exact > 1 else "variance-too-small", found=shown(value))
    raise OptionError("variance-whole-number-fraction", option="variance", found=shown(value))


def _proposal(variance: Fraction) -> int:
    """The scale of the Laplace proposal, ⌊σ⌋ + 1; 0 if the variance is 0."""
    return math.isqrt(variance.numerator // variance.denominator) + 1 if variance else 0


def bernoulli_exp_near(
    near: NDArray[np.float64], alike: NDArray[np.int64], exact: Callable[[int], Fraction], source: Source
) -> NDArray[np.bool_]:
    """True with probability exactly exp(-x), using a float near x and, where that is inconclusive, the exact x.

    Args:
        near: floats within 2^-46 · (1 + x) of every x >= 0.
        alike: one column per position; positions with equal columns have equal x.
        exact: the true x of one position; called where a float is next to an integer, once for all positions
            that are alike, and otherwise about once in 10^9 draws.
    """
    whole = np.floor(near)
    rest = near - whole
    slack = _SLACK * (1 + near)
    # a float next to an integer does not determine the integer part
    unclear = (rest <= slack) | (rest >= 1 - slack) | (near > _FAR)
    result = np.zeros(near.size, dtype=np.bool_)
    clear = np.flatnonzero(~unclear)
    coins = _Coins(rest[clear], slack[clear], clear, exact, source)
    result[clear] = coins.exp_fraction()
    alive = clear[result[clear] & (whole[clear] > 0)]
    left = whole[alive]
    while alive.size:
        success = bernoulli_exp_one(alive.size, source)
        result[alive[~success]] = False
        alive, left = alive[success], left[success] - 1
        alive, left = alive[left > 0], left[left > 0]
    left_over = np.flatnonzero(unclear)
    _, first, number = np.unique(alike[:, left_over], axis=1, return_index=True, return_inverse=True)
    for one, position in enumerate(first.tolist()):
        same = left_over[number.ravel() == one]
        result[same] = exp_coin(exact(int(left_over[position]))).draw(same.size, source) == 1
    return result


class _Coins:
    """Coins of probability x - ⌊x⌋, for positions with a known float and an exact value on request."""

    def __init__(
        self,
        rest: NDArray[np.float64],
        slack: NDArray[np.float64],
        position: NDArray[np.intp],
        exact: Callable[[int], Fraction],
        source: Source,
    ) -> None:
        # one unit for the digit's width and half a unit for rounding in this comparison
        self._low = (rest - slack) * 2.0**_DIGIT - 1
        self._high = (rest + slack) * 2.0**_DIGIT
        self._position, self._exact, self._source = position, exact, source

    def flip(self, index: NDArray[np.intp]) -> NDArray[np.bool_]:
        digit = self._source.digits(_DIGIT, index.size)
        result = digit <= self._low[index]
        for i in np.flatnonzero(~result & (digit < self._high[index])).tolist():
            x = self._exact(int(self._position[index[i]]))
            result[i] = _coin((x - x.numerator // x.denominator) * 2**_DIGIT - int(digit[i]), self._source)
        return result

    def exp_fraction(self) -> NDArray[np.bool_]:
        """exp(-x) by coins x/1, x/2, x/3 ... until the first failure, as in `bernoulli_exp_fraction`."""
        alive = np.arange(self._low.size)
        result = np.zeros(alive.size, dtype=np.bool_)
        step = 1
        while alive.size:
            chosen = np.arange(alive.size)
            if step > 1:
                first = self._source.flip(
                    np.asarray(1, dtype=np.uint64), np.asarray(step, dtype=np.uint64), alive.size
                )
                chosen = np.flatnonzero(first)
            going = chosen[self.flip(alive[chosen])]
            if step % 2:
                result[alive] = True
                result[alive[going]] = False
            alive = alive[going]
            step += 1
        return result


def _coin(x: Fraction, source: Source) -> bool:
    """True with probability x, clamped to [0, 1]."""
    while 0 < x < 1:
        x = x * 2**_DIGIT - int(source.digits(_DIGIT, 1)[0])
    return x >= 1


def parse_delta(value: object) -> Fraction:
    """The exact value of δ: 0, or a number from 1e-100 to below 1.

    >>> parse_delta(0), parse_delta("1e-6")
    (Fraction(0, 1), Fraction(1, 1000000))
    """
    exact = exact_number(value)
    if exact is None or not (exact == 0 or SMALLEST_DELTA <= exact < 1):
        raise OptionError("delta-0-decimal-number-from-1e", option="delta", found=shown(value))
    return exact


@lru_cache(maxsize=256)
def rho_from(epsilon: Fraction, delta: Fraction, rows: int = 1) -> Fraction:
    """The largest ρ per row, within the digits, that gives a person with so many rows (ε, δ)-DP.

    Guarantee:
        ρ·rows²-zCDP implies (ε, δ)-DP: for every α > 1, δ may be exp((α-1)(αρ - ε) + α·log(1 - 1/α) - log(α - 1)). α is
        chosen with floats, which cannot hurt; ρ follows from it with 60 digits and is rounded down to 12.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Proposition 12 and its proof;
        Bun and Steinke, "Concentrated Differential Privacy", Proposition 27 for several rows;
        docs/proofs/noise.md#gaussian.

    >>> [f"{float(rho_from(Fraction(epsilon), Fraction('1e-6'))):.4g}" for epsilon in ("0.1", "1", "10")]
    ['0.000321', '0.02436', '1.539']
    """
    if not 0 < delta < 1 or epsilon <= 0 or rows < 1:
        raise OptionError("conversion-rho-needs-epsilon-above-0")
    log_delta = _log(delta)
    largest = float(epsilon) - log_delta + 10  # the mean of the privacy loss alone is then far above ε
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
    """The cost in ρ of a release that is ε-DP.

    Reference:
        Bun and Steinke, "Concentrated Differential Privacy", Proposition 3.
    """
    return epsilon**2 / 2


def choice_rho(rate: Fraction, change: int = 1) -> Fraction:
    """The cost in ρ of `exponential_choice` if one record changes every penalty by at most `change`.

    Log-probabilities then have a range of 2·rate·change, and a mechanism of range η costs η²/8; in ε it costs η.

    Reference:
        Cesar and Rogers, "Bounding, Concentrating, and Truncating", Lemma 3.3; docs/proofs/noise.md#gaussian.

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
    """The root of the derivative of log δ, which increases with α."""
    largest = (epsilon + 1) / (2 * rho) + 2
    return 1 + _bisect(
        lambda over: (2 * over + 1) * rho - epsilon + math.log(over / (1 + over)), 1e-9, largest
    )


def _bisect(rises: Callable[[float], float], low: float, high: float) -> float:
    """The root of an increasing function, to float precision."""
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
