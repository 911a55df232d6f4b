"""Exact random decisions with irrational probabilities: Bernoulli(exp(-x)), uniform reals, enclosed weights.

No probability is ever a floating-point number: every decision is a rational coin flip of the source.

A uniform real number is compared with the cumulative weights digit by digit: the first digit decides nearly every
choice; otherwise further digits of the number and of the weights are computed.

Comparing two uniform reals draws as many digits as needed, so the result is that of the ideal numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise.entropy import LARGEST_DENOMINATOR, IntegersLike, Source, pick
from shoal.numbers import written_fraction

# ε per person above which there is no protection in practice
MOST_EPSILON = Fraction(10)
# δ above which a release is never published: one person in a thousand may be disclosed outright
MOST_DELTA = Fraction(1, 1000)

SMALLEST = Fraction(1, 10**9)
LARGEST = Fraction(10**6)
# Bounded digits and exponent: the exact fraction of "1e-999999999" would fill the memory.
_DECIMAL = re.compile(r"\+?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,3})?", re.ASCII)
Scale = int | np.integer[Any] | Fraction

LARGEST_NUMERATOR = 1 << 52
SCALE_DENOMINATOR = 1 << 20


def parse_epsilon(value: str | int | float | Decimal | Fraction) -> Fraction:
    """The exact value of ε: 0.1 means one tenth, not the nearest binary number.

    A float is read through its shortest decimal text, which is what the user typed.

    Raises:
        OptionError: not a number, or outside 1e-9 .. 1e6.

    >>> parse_epsilon(0.1), parse_epsilon("2.50"), parse_epsilon("1/6")
    (Fraction(1, 10), Fraction(5, 2), Fraction(1, 6))
    """
    exact = exact_number(value)
    if exact is None or not SMALLEST <= exact <= LARGEST:
        raise OptionError("epsilon-out-of-range", option="epsilon", found=shown(value))
    return exact


def exact_number(value: object) -> Fraction | None:
    """The fraction that a number or its text, a decimal number or a fraction, denotes, or None."""
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
    if text is not None and (fraction := written_fraction(text)) is not None:
        return fraction
    if text is None or not (matched := _DECIMAL.fullmatch(text.removeprefix("-"))):
        return None
    sign = -1 if text.startswith("-") else 1
    return sign * Fraction(matched.group())


def shown(value: object) -> str:
    """A value as printed in error messages: never longer than a line."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # the interpreter refuses to print integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:40] + "..."


def round_up_scale(exact: Fraction | int) -> Fraction:
    """The smallest fraction of at least `exact` that the sampler supports.

    Below 2^20 that is the smallest fraction with a denominator of at most 2^20, above it the next integer.
    Integers and fractions with a small denominator are unchanged, and rounding is monotone. The relative increase
    is at most 2^-19 for scales of at least 2^-20.

    Raises:
        OptionError: the scale is negative, or larger than 2^52.

    Guarantee:
        Never rounds down, so a mechanism that needs `exact` keeps its ε.

    >>> round_up_scale(Fraction(10, 3)), round_up_scale(Fraction(10**9 + 1, 10**9))
    (Fraction(10, 3), Fraction(1048577, 1048576))
    """
    scale = _as_fraction(exact)
    if scale < 0 or scale > LARGEST_NUMERATOR:
        raise _bad_scale(exact)
    if scale >= SCALE_DENOMINATOR:
        return Fraction(-(-scale.numerator // scale.denominator))
    near = scale.limit_denominator(SCALE_DENOMINATOR)
    # The nearest fraction is the answer when it lies above; otherwise the answer is its right Farey neighbour p'/q':
    # p'q - pq' = 1 with the largest admissible q'.
    if near >= scale:
        return near
    p, q = near.numerator, near.denominator
    residue = -pow(p, -1, q) % q if q > 1 else 0
    neighbour = SCALE_DENOMINATOR - (SCALE_DENOMINATOR - residue) % q
    return Fraction((1 + p * neighbour) // q, neighbour)


def split_scale(scale: Scale | NDArray[Any] | Sequence[Scale]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numerators and denominators of one scale (two zero-dimensional arrays) or of an array of scales.

    >>> [part.tolist() for part in split_scale([2, Fraction(3, 2)])]
    [[2, 3], [1, 2]]
    """
    values = np.asarray(scale)
    if values.dtype.kind in "iu":
        if values.size and (int(values.min()) < 0 or int(values.max()) > LARGEST_NUMERATOR):
            raise _bad_scale(values.min() if int(values.min()) < 0 else values.max())
        # One denominator for all: the sampler then divides by a constant.
        return values.astype(np.int64), np.asarray(1, dtype=np.int64)
    fractions = [_as_fraction(value) for value in values.ravel().tolist()]
    for fraction in fractions:
        if fraction < 0 or fraction.numerator > LARGEST_NUMERATOR or fraction.denominator > SCALE_DENOMINATOR:
            raise _bad_scale(fraction)
    numerators = np.array([f.numerator for f in fractions], dtype=np.int64).reshape(values.shape)
    denominators = np.array([f.denominator for f in fractions], dtype=np.int64).reshape(values.shape)
    return numerators, denominators


def _as_fraction(value: object) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    # An integer survives conversion to a binary float; other numbers may not.
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return Fraction(int(value))
    raise _bad_scale(value)


def _bad_scale(value: object) -> OptionError:
    if isinstance(value, Fraction | int | np.integer) and not isinstance(value, bool):
        if value < 0:
            return OptionError("scale-least-0", option="scale", found=shown(value))
        if value > LARGEST_NUMERATOR:
            return OptionError("scale-larger-than-2-52-lattice", found=shown(value))
        return OptionError("scale-numerator-above-2-52-denominator", found=shown(value))
    return OptionError("scale-whole-number-fraction", option="scale", found=shown(value))


_ONE = np.asarray(1, dtype=np.uint64)
# for a number of bits: integers below and above 2^something times every cumulative weight
Bounds = Callable[[int], tuple[list[int], list[int]]]

_FIRST_BITS = 16
_NEXT_BITS = 64
WORD = 64


def bernoulli_exp(numerator: IntegersLike, denominator: IntegersLike, source: Source) -> NDArray[np.bool_]:
    """True with probability exactly exp(-numerator / denominator), for any ratio of at least 0.

    Args:
        numerator: integers of at least 0.
        denominator: integers from 1 to 2^56 - 1; broadcast with the numerator.
        source: source of the bits.

    Cost:
        Time linear in the number of flips, for any ratio; about three 16-bit digits each.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Algorithm 1.

    >>> from shoal.noise.entropy import Seeded
    >>> bernoulli_exp([0, 10**6], 1, Seeded(1)).tolist()
    [True, False]
    """
    above, under = np.broadcast_arrays(np.asarray(numerator), np.asarray(denominator))
    if above.dtype.kind not in "iu" or under.dtype.kind not in "iu":
        raise OptionError("exp-x-needs-x-ratio-whole")
    if above.size and (above.min() < 0 or under.min() < 1 or under.max() >= LARGEST_DENOMINATOR):
        raise OptionError("exp-x-needs-numerator-0-denominator")
    shape = above.shape
    above, under = above.ravel().astype(np.uint64), under.ravel().astype(np.uint64)
    whole, rest = np.divmod(above, under)
    result = bernoulli_exp_fraction(rest, under, source)
    # exp(-whole) is `whole` successes in a row, and a failure ends the row.
    alive = np.flatnonzero(result & (whole > 0))
    left = whole[alive]
    while alive.size:
        success = bernoulli_exp_one(alive.size, source)
        result[alive[~success]] = False
        alive, left = alive[success], left[success] - np.uint64(1)
        alive, left = alive[left > 0], left[left > 0]
    return result.reshape(shape)


def bernoulli_exp_fraction(
    above: NDArray[np.uint64], under: NDArray[np.uint64], source: Source
) -> NDArray[np.bool_]:
    """Bernoulli(exp(-x)) for x = above / under in [0, 1]; `under` is one number or as long as `above`.

    Flip coins of probability x/1, x/2, x/3 ... until the first failure: its number is odd with probability
    exp(-x). The coin x/j is a coin 1/j followed, on success, by a coin x, so no product can overflow.
    """
    failed = ~source.flip(above, under, above.size)
    result, alive = failed, np.flatnonzero(~failed)
    step = 1
    while alive.size:
        step += 1
        first = source.flip(_ONE, np.asarray(step, dtype=np.uint64), alive.size)
        second = np.flatnonzero(first)
        candidates = alive[second]
        both = source.flip(above[candidates], pick(under, candidates), candidates.size)
        if step % 2:
            result[alive] = True
            result[candidates[both]] = False
        alive = candidates[both]
    return result


def bernoulli_exp_one(n: int, source: Source) -> NDArray[np.bool_]:
    """n coins of probability exactly exp(-1): the first coin of the row above, 1/1, always succeeds."""
    result = np.zeros(n, dtype=np.bool_)
    alive = np.arange(n)
    step = 1
    while alive.size:
        step += 1
        success = source.flip(_ONE, np.asarray(step, dtype=np.uint64), alive.size)
        if step % 2:
            result[alive[~success]] = True
        alive = alive[success]
    return result


def geometric_exp(n: int, source: Source) -> NDArray[np.int64]:
    """n counts V with P(V >= v) = exp(-v): successes of exp(-1) before the first failure.

    >>> from shoal.noise.entropy import Seeded
    >>> bool((geometric_exp(100, Seeded(2)) >= 0).all())
    True
    """
    count = np.zeros(n, dtype=np.int64)
    alive = np.arange(n)
    while alive.size:
        alive = alive[bernoulli_exp_one(alive.size, source)]
        count[alive] += 1
    return count


class WeightedChoice:
    """Components 0, 1, ... drawn with probabilities proportional to real weights, given by bounds.

    Args:
        bounds: lower and upper bounds of the cumulative weights, to any precision. No cumulative weight but the
            first may be 0, and none but the last the total.

    >>> from shoal.noise.entropy import Seeded
    >>> fair = WeightedChoice(lambda bits: ([1, 2], [1, 2]))
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
    """The component of a uniform real that starts with the bits `drawn`; more bits are drawn until it is certain."""
    while True:
        below, above = _thresholds(bounds, length)
        number = sum(drawn >= threshold for threshold in above)
        if number == sum(drawn >= threshold for threshold in below):
            return number
        drawn = drawn << _NEXT_BITS | int(source.digits(_NEXT_BITS, 1)[0])
        length += _NEXT_BITS


def _thresholds(bounds: Bounds, length: int) -> tuple[list[int], list[int]]:
    """For every cumulative weight but the last: first digits below the first threshold are certainly under its
    share of the total, those from the second threshold on certainly are not."""
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
    # squaring doubles an error, so each halving of the argument needs one more digit
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
    """Integers below and above 2^bits · exp(-x)."""
    below = exp_fixed(x, bits)
    return below, min(below + 2, 1 << bits)


@lru_cache(maxsize=1024)
def exp_coin(x: Fraction) -> WeightedChoice:
    """1 with probability exp(-x), otherwise 0."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(x, bits)
        one = 1 << bits
        return [one - above, one], [one - below, one]

    return WeightedChoice(bounds)


@lru_cache(maxsize=1024)
def logistic_coin(x: Fraction) -> WeightedChoice:
    """1 with probability exp(-x) / (1 + exp(-x)), otherwise 0."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(x, bits)
        one = 1 << bits
        return [one, one + below], [one, one + above]

    return WeightedChoice(bounds)


def geometric(rate: Fraction, n: int, source: Source) -> NDArray[np.int64]:
    """n counts with P(G = g) proportional to exp(-rate · g), exactly, for any rational rate above 0.

    exp(-rate · g) is a product over the binary digits of g, so the digits are independent: digit k is 1 with
    probability exp(-rate·2^k) / (1 + exp(-rate·2^k)). Once rate·2^k reaches 2, the remainder is a geometric count
    that is rarely above 0, drawn by successive coins. Counts are modulo 2^64.

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


@internal()
@dataclass(eq=False)
class Uniforms:
    """n independent uniform reals in [0, 1), whose leading words are drawn on demand.

    >>> from shoal.noise.entropy import Seeded
    >>> reals = Uniforms(2, Seeded(1))
    >>> first, more = reals.leading(1), reals.leading(2)
    >>> [long >> 64 for long in more] == first
    True
    """

    n: int
    source: Source
    words: list[NDArray[np.unsignedinteger[Any]]] = field(default_factory=list)

    def word(self, number: int) -> NDArray[np.unsignedinteger[Any]]:
        """The word with this index of every real."""
        while len(self.words) <= number:
            self.words.append(self.source.digits(WORD, self.n))
        return self.words[number]

    def leading(self, count: int) -> list[int]:
        """The first `count` words as one integer w each: the real is between w and w + 1 last units."""
        found = [0] * self.n
        for number in range(count):
            found = [
                known << WORD | word for known, word in zip(found, self.word(number).tolist(), strict=True)
            ]
        return found

    def picked(self, index: NDArray[np.intp]) -> Uniforms:
        """A selection of them; the others must not be used again."""
        return Uniforms(index.size, self.source, [word[index] for word in self.words])


def joined(parts: list[Uniforms]) -> Uniforms:
    """The concatenation of all parts."""
    known = max(len(part.words) for part in parts)
    words = [np.concatenate([part.word(number) for part in parts]) for number in range(known)]
    return Uniforms(sum(part.n for part in parts), parts[0].source, words)


def below(left: Uniforms, right: Uniforms) -> NDArray[np.bool_]:
    """Which of `left` are below their counterpart in `right`."""
    result = np.zeros(left.n, dtype=np.bool_)
    open_ended = np.arange(left.n)
    number = 0
    while open_ended.size:
        one, other = left.word(number)[open_ended], right.word(number)[open_ended]
        result[open_ended] = one < other
        open_ended = open_ended[one == other]
        number += 1
    return result


@internal()
@dataclass(frozen=True, eq=False)
class Exponentials:
    """Exponentially distributed reals, P(X > x) = exp(-x): an integer part and an accepted uniform real.

    Reference:
        von Neumann, "Various techniques used in connection with random digits"; docs/proofs/noise.md#record-noise.
    """

    whole: NDArray[np.int64]
    rest: Uniforms

    def total(self, count: int) -> tuple[int, int]:
        """Their sum in units of the last bit of `count` words: a lower bound, and its maximum error."""
        unit = count * WORD
        return (int(self.whole.sum()) << unit) + sum(self.rest.leading(count)), self.whole.size


def exponentials(n: int, source: Source) -> Exponentials:
    """n independent exponential reals, exactly.

    Integer and fractional part are independent. The fractional part has density proportional to exp(-x): a uniform
    real x is accepted with that probability, namely if a sequence x > x1 > x2 > ... of uniform reals first breaks at an
    odd index.
    """
    whole = geometric_exp(n, source)
    rest = [Uniforms(0, source)]
    missing = n
    while missing:
        proposed = Uniforms(missing, source)
        kept = np.flatnonzero(_breaks_odd(proposed))
        rest.append(proposed.picked(kept))
        missing -= kept.size
    return Exponentials(whole, joined(rest))


def _breaks_odd(first: Uniforms) -> NDArray[np.bool_]:
    odd = np.zeros(first.n, dtype=np.bool_)
    alive, last, step = np.arange(first.n), first, 1
    while alive.size:
        following = Uniforms(alive.size, first.source)
        falls = below(following, last)
        odd[alive[~falls]] = step % 2 == 1
        alive, last, step = alive[falls], following.picked(np.flatnonzero(falls)), step + 1
    return odd
