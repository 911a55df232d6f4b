"""Discrete Gaussian noise. In: variances in squared lattice steps and a source. Out: exact int64 draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.enclosed import exp_coin
from shoal.noise.entropy import Shape, Source, shape_with
from shoal.noise.entropy import source as source_for
from shoal.noise.epsilon import shown
from shoal.noise.exact import bernoulli_exp_one
from shoal.noise.laplace import discrete_laplace

# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
BLOCK = 1 << 17
LARGEST_VARIANCE, SMALLEST_VARIANCE = Fraction(1 << 80), Fraction(1, 1 << 80)
# bits of a uniform real that are compared with a float before its exact value is asked for
_DIGIT = 32
# how far a float exponent x may be from the truth, in units of 1 + x; docs/proofs/gaussian.md has an eighth of it
_SLACK = 2.0**-46

# exponents above this are settled with the exact value: a coin that shows heads with probability exp(-1000)
_FAR = 1000.0

Variance = int | Fraction


def discrete_gaussian(
    variance: Variance | Sequence[Variance], size: Shape | None = None, source: Source | None = None
) -> NDArray[np.int64]:
    """Integer noise with P(x) proportional to exp(-x² / (2 · variance)), exactly.

    Args:
        variance: σ² in squared lattice steps; a whole number, a Fraction, or a list of them, each 0 or from 2^-80 to
            2^80.
            σ² is the parameter of the law, which its variance approaches from below. Variance 0 always draws 0.
        size: shape of the result, broadcast with `variance`; one draw per variance when absent.
        source: where the bits come from; the operating system's entropy when absent.

    Raises:
        OptionError: a variance is negative, not rational or too large.

    Guarantee:
        Added to integer queries of which query j changes by Δ_j between neighbours, with Σ_j Δ_j²/σ_j² at most 2ρ for
        every pair of neighbours, the result is ρ-zCDP for that relation of neighbours, with no floating-point gap.

    Cost:
        Linear in the number of draws, about 40 bytes of entropy each, whatever the variance.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Algorithm 3 and Theorem 14;
        docs/proofs/gaussian.md.

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
        """Laplace draws of scale t, and which of them are kept: each with probability exp(-(|y| - σ²/t)²/(2σ²))."""
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
    """The scale of the Laplace proposal, ⌊σ⌋ + 1; 0 where there is nothing to draw."""
    return math.isqrt(variance.numerator // variance.denominator) + 1 if variance else 0


def bernoulli_exp_near(
    near: NDArray[np.float64], alike: NDArray[np.int64], exact: Callable[[int], Fraction], source: Source
) -> NDArray[np.bool_]:
    """True with probability exactly exp(-x), x known to a float and, where that decides nothing, exactly.

    Args:
        near: floats within 2^-46 · (1 + x) of every x >= 0.
        alike: one column per position; where two are the same, so are their x.
        exact: the true x of one position; asked for where a float is next to a whole number, once for all that are
            alike, and else about once in 10^9 draws.
    """
    whole = np.floor(near)
    rest = near - whole
    slack = _SLACK * (1 + near)
    # a float next to a whole number does not tell what the whole part is
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
    """Coins of probability x - ⌊x⌋, for positions of which a float is known and the exact value can be asked for."""

    def __init__(
        self,
        rest: NDArray[np.float64],
        slack: NDArray[np.float64],
        position: NDArray[np.intp],
        exact: Callable[[int], Fraction],
        source: Source,
    ) -> None:
        # one unit for the digit's own width and half a unit for rounding when this is compared
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
    """True with probability x, where x beyond 0 and 1 means surely."""
    while 0 < x < 1:
        x = x * 2**_DIGIT - int(source.digits(_DIGIT, 1)[0])
    return x >= 1
