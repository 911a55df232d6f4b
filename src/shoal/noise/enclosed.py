"""Exact choices with irrational probabilities. In: integers that enclose the weights. Out: numbers of components.

A uniform real number is compared with the cumulative weights digit by digit: the first digit settles nearly every
choice, and where it does not, more digits of the number and of the weights are taken until it does.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.noise.entropy import Source

# for a number of bits: whole numbers below and above 2^something times every cumulative weight
Bounds = Callable[[int], tuple[list[int], list[int]]]

_FIRST_BITS = 16
_NEXT_BITS = 64


class Choice:
    """Components 0, 1, ... drawn with probabilities proportional to real weights, of which only bounds are known.

    Args:
        bounds: lower and upper bounds of the cumulative weights, as narrow as one asks. No cumulative weight but the
            first may be 0, and none but the last the total.

    >>> from shoal.noise.entropy import Seeded
    >>> fair = Choice(lambda bits: ([1, 2], [1, 2]))
    >>> sorted(set(fair.draw(100, Seeded(1)).tolist()))
    [0, 1]
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds, self._bits = bounds, _FIRST_BITS
        self._surely_below, self._surely_above = _thresholds(bounds, _FIRST_BITS)

    def draw(self, n: int, source: Source) -> NDArray[np.int64]:
        """n independent choices."""
        digits = source.digits(self._bits, n)
        chosen = np.zeros(n, dtype=np.int64)
        open_ended = np.zeros(n, dtype=np.bool_)
        for below, above in zip(self._surely_below, self._surely_above, strict=True):
            reached = digits >= above
            chosen += reached
            open_ended |= (digits >= below) & ~reached
        for position in np.flatnonzero(open_ended):
            chosen[position] = settle(self._bounds, int(digits[position]), self._bits, source)
        return chosen


def settle(bounds: Bounds, drawn: int, length: int, source: Source) -> int:
    """The component of a uniform real that starts with the bits `drawn`; more are drawn until it is certain."""
    while True:
        below, above = _thresholds(bounds, length)
        number = sum(drawn >= threshold for threshold in above)
        if number == sum(drawn >= threshold for threshold in below):
            return number
        drawn = drawn << _NEXT_BITS | int(source.digits(_NEXT_BITS, 1)[0])
        length += _NEXT_BITS


def _thresholds(bounds: Bounds, length: int) -> tuple[list[int], list[int]]:
    """For every cumulative weight but the last: first digits under the one surely lie below its share of the total,
    first digits from the other on surely do not."""
    lower, upper = bounds(2 * length + 64)
    return (
        [(weight << length) // upper[-1] for weight in lower[:-1]],
        [-(-(weight << length) // lower[-1]) for weight in upper[:-1]],
    )


def exp_fixed(x: Fraction, bits: int) -> int:
    """exp(-x) in units of 2^-bits for x >= 0, at most two units below and never above.

    >>> exp_fixed(Fraction(1), 20) / 2**20
    0.36787891387939453
    """
    whole = x.numerator // x.denominator
    if whole > bits:
        return 0
    halvings = whole.bit_length() + 1
    # squaring doubles an error, so each halving of the argument asks for one more digit
    guard = bits + halvings + 32
    # rounding the argument up and every step down keeps the result below the truth
    argument = -(-(x.numerator << guard) // (x.denominator << halvings))
    # Taylor terms in pairs: each pair is positive since the argument is at most 1/2, and stopping early rounds down
    total, term, number = 0, 1 << guard, 0
    while term:
        following = -(-term * argument >> guard)
        following = -(-following // (number + 1))
        total += term - following
        term = (following * argument >> guard) // (number + 2)
        number += 2
    for _ in range(halvings):
        total = total * total >> guard
    return max(total, 0) >> guard - bits


def enclose_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """Whole numbers below and above 2^bits · exp(-x)."""
    below = exp_fixed(x, bits)
    return below, min(below + 2, 1 << bits)


@lru_cache(maxsize=1024)
def exp_coin(x: Fraction) -> Choice:
    """1 with probability exp(-x), otherwise 0."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(x, bits)
        one = 1 << bits
        return [one - above, one], [one - below, one]

    return Choice(bounds)


@lru_cache(maxsize=1024)
def logistic_coin(x: Fraction) -> Choice:
    """1 with probability exp(-x) / (1 + exp(-x)), otherwise 0."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(x, bits)
        one = 1 << bits
        return [one, one + below], [one, one + above]

    return Choice(bounds)


def geometric(rate: Fraction, n: int, source: Source) -> NDArray[np.int64]:
    """n counts with P(G = g) proportional to exp(-rate · g), exactly, for any rational rate above 0.

    exp(-rate · g) is a product over the binary digits of g, so the digits are independent: digit k is 1 with
    probability exp(-rate·2^k) / (1 + exp(-rate·2^k)). Once rate·2^k reaches 2, what is left is a geometric count
    that is rarely above 0, drawn by coins in a row. Counts are modulo 2^64.

    >>> from shoal.noise.entropy import Seeded
    >>> geometric(Fraction(50), 3, Seeded(1)).tolist()
    [0, 0, 0]
    """
    count = np.zeros(n, dtype=np.int64)
    digit = 0
    while rate < 2:
        count += logistic_coin(rate).draw(n, source) << digit
        rate, digit = 2 * rate, digit + 1
    alive = np.arange(n)
    while alive.size:
        alive = alive[exp_coin(rate).draw(alive.size, source) == 1]
        count[alive] += 1 << digit
    return count
