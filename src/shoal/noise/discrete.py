"""Discrete noise: exact samplers of discrete Laplace, staircase and Gaussian noise.

Conversions between ρ (zCDP) and (ε, δ) are rounded conservatively: ρ downwards, ε upwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError, closest
from shoal.noise.entropy import Shape, Source, pick, shape_with
from shoal.noise.entropy import source as source_for
from shoal.noise.exact import (
    LARGEST_NUMERATOR,
    Scale,
    WeightedChoice,
    bernoulli_exp_fraction,
    bernoulli_exp_one,
    enclose_exp,
    exact_number,
    exp_coin,
    geometric,
    geometric_exp,
    parse_epsilon,
    shown,
    split_scale,
)

OPTIMISE = ("variance", "interval")
CONFIDENCE = 0.95
# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
BLOCK = 1 << 16
Epsilon = Fraction | Decimal | str | int | float


def best_fraction(epsilon: float, optimise: str = "variance", confidence: float = CONFIDENCE) -> float:
    """The half-width d of the centre, as a share of the sensitivity W, that is best on the real line.

    With q = exp(-ε), the variance is least at d/W = ((q(1+q)/2)^(1/3) - q) / (1-q). The interval of a confidence
    1-α is shortest where its end falls on the edge of a step: d/W = (q^i/α - 1)·q/(1-q), i = floor(ln(1/α)/ε).

    Reference:
        Thesis, section 4.4.

    >>> round(best_fraction(1), 6), round(best_fraction(1, "interval"), 3)
    (0.416737, 0.993)
    """
    if optimise not in OPTIMISE:
        raise OptionError(
            "unknown-optimise-of-staircase",
            option="optimise",
            found=optimise,
            allowed=tuple(OPTIMISE),
            hint=closest(optimise, OPTIMISE),
        )
    q, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    if optimise == "variance":
        best = (math.cbrt(q * (1 + q) / 2) - q) / rest
    else:
        level = math.floor(-math.log1p(-confidence) / epsilon)
        best = (math.exp(-epsilon * level) / (1 - confidence) - 1) * q / rest
    return min(max(best, 0.0), 1.0)


@lru_cache(maxsize=1024)
def best_centre(steps: int, epsilon: Fraction, optimise: str = "variance") -> int:
    """The best integer half-width of the centre on the integers, among those next to the real optimum.

    A centre of 2d+1 integers is as wide as one of half-width d + 1/2 on the real line.

    >>> best_centre(1000, Fraction(1)), best_centre(1, Fraction(1))
    (416, 0)
    """
    near = round(best_fraction(float(epsilon), optimise) * steps - 0.5)
    candidates = sorted({min(max(near + move, 0), max(steps - 1, 0)) for move in (-1, 0, 1)})
    shapes = [LatticeStaircase(steps, float(epsilon), centre) for centre in candidates]
    if optimise == "variance":
        return min(shapes, key=lambda shape: shape.variance).centre
    return min(shapes, key=lambda shape: (shape.interval(CONFIDENCE), shape.variance)).centre


@dataclass(frozen=True, slots=True)
class Staircase:
    """The staircase density on the real line: constant up to `centre`, times exp(-ε) for each further `width`.

    >>> best = Staircase.best(1.0, 1.0)
    >>> round(best.variance, 4), round(2 * Staircase.best(1.0, 1.0, "interval").interval(0.95), 4)
    (1.9181, 5.9865)
    """

    width: float
    epsilon: float
    centre: float

    @classmethod
    def best(cls, width: float, epsilon: float, optimise: str = "variance") -> Staircase:
        """The shape of minimum variance, or of the shortest interval of 95%."""
        return cls(width, epsilon, width * best_fraction(epsilon, optimise))

    @property
    def _odds(self) -> float:
        """q / (1-q), the weight outside the centre in units of `width` on either side."""
        return 1 / math.expm1(self.epsilon) if self.epsilon < 700 else 0.0

    @property
    def height(self) -> float:
        """The density in the centre, M0."""
        return 1 / (2 * (self.centre + self.width * self._odds))

    def density(self, x: ArrayLike) -> NDArray[np.float64]:
        """The density at x."""
        beyond = (np.abs(np.asarray(x, dtype=np.float64)) - self.centre) / self.width
        level = np.where(beyond < 0, 0, np.floor(beyond) + 1)
        return np.asarray(self.height * np.exp(-self.epsilon * level))

    def outside(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(|X| > x) for x >= 0."""
        x = np.asarray(x, dtype=np.float64)
        beyond = np.maximum((x - self.centre) / self.width, 0)
        level = np.floor(beyond)
        # the rest of the current block counts once, every later block 1/(1-q) times
        left = 1 - (beyond - level) + self._odds
        far = 2 * self.height * self.width * np.exp(-self.epsilon * (level + 1)) * left
        return np.where(x <= self.centre, 1 - 2 * self.height * x, far)

    def mass(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X <= x)."""
        x = np.asarray(x, dtype=np.float64)
        half = self.outside(np.abs(x)) / 2
        return np.where(x < 0, half, 1 - half)

    @property
    def variance(self) -> float:
        d, odds = self.centre / self.width, self._odds
        first, second = odds**2, odds**2 * (1 + 2 * odds)
        moments = d**3 / 3 + odds * (d * d + d + 1 / 3) + first * (2 * d + 1) + second
        return moments / (d + odds) * self.width**2

    def interval(self, confidence: float) -> float:
        """Half the length of the interval around 0 that contains X with this probability."""
        _check_probability("confidence", confidence)
        alpha, odds = 1 - confidence, self._odds
        share = self.width * odds / (self.centre + self.width * odds)
        if alpha >= share:
            return confidence * (self.centre + self.width * odds)
        level = math.floor(math.log(share / alpha) / self.epsilon)
        left = (math.exp(-self.epsilon * level) - alpha / share) / -math.expm1(-self.epsilon)
        return self.centre + self.width * (level + left * math.exp(self.epsilon * level))

    def quantile(self, probability: float) -> float:
        """The x with P(X <= x) = probability."""
        _check_probability("probability", probability)
        half = self.interval(abs(2 * probability - 1)) if probability != 0.5 else 0.0
        return math.copysign(half, probability - 0.5)


@dataclass(frozen=True, slots=True)
class LatticeStaircase:
    """The staircase on the integers: constant on -centre .. centre, times exp(-ε) for each further block of `steps`.

    This is the distribution of `discrete_staircase`.

    >>> LatticeStaircase(1, 1.0, 0).mass([0, 1]).round(4).tolist()
    [0.4621, 0.17]
    """

    steps: int
    epsilon: float
    centre: int

    @classmethod
    def best(cls, steps: int, epsilon: Fraction, optimise: str = "variance") -> LatticeStaircase:
        """The shape that `discrete_staircase` draws from."""
        return cls(steps, float(epsilon), best_centre(steps, epsilon, optimise))

    @property
    def _line(self) -> Staircase:
        """The density whose integral from x - 1/2 to x + 1/2 is the mass at x."""
        return Staircase(float(max(self.steps, 1)), self.epsilon, self.centre + 0.5)

    def level(self, x: ArrayLike) -> NDArray[np.int64]:
        """Number of factors exp(-ε) between the mass at 0 and that at x."""
        beyond = np.maximum(np.abs(np.asarray(x, dtype=np.int64)) - self.centre, 0)
        return np.asarray(-(-beyond // max(self.steps, 1)))

    def mass(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X = x) for integer x."""
        return np.asarray(self._line.height * np.exp(-self.epsilon * self.level(x)))

    def below(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X <= x) for integer x."""
        return self._line.mass(np.asarray(x, dtype=np.float64) + 0.5)

    @property
    def variance(self) -> float:
        # X plus an independent uniform number in [-1/2, 1/2) has the density on the line
        return self._line.variance - 1 / 12

    def interval(self, confidence: float) -> int:
        """The smallest h for which -h .. h contains X with at least this probability."""
        return max(math.ceil(self._line.interval(confidence) - 0.5 - 1e-9), 0)

    def quantile(self, probability: float) -> int:
        """The smallest integer x with P(X <= x) >= probability."""
        return math.ceil(self._line.quantile(probability) - 0.5 - 1e-9)


def _check_probability(name: str, value: Any) -> None:
    if not 0 < value < 1:
        raise OptionError("option-lie-between-0-1", option=name, found=value)


def discrete_staircase(
    steps: int,
    epsilon: Epsilon,
    size: Shape = (),
    source: Source | None = None,
    *,
    optimise: str = "variance",
    centre: int | None = None,
) -> NDArray[np.int64]:
    """Integer noise of constant probability on -centre .. centre, times exp(-ε) for each further block of `steps`.

    Args:
        steps: sensitivity of the query to one record, D; 0 always draws 0. D/ε is at most 2^52.
        epsilon: the privacy budget of this one query; a Fraction of any size above 0 is exact.
        size: shape of the result.
        source: source of the bits; the operating system's entropy when absent.
        optimise: objective for the centre: "variance" or "interval" (the shortest one of 95%).
        centre: half-width of the centre, instead of the best one.

    Returns:
        Draws modulo 2^64 in two's complement, as for `discrete_laplace`.

    Raises:
        OptionError: steps or centre is negative or not an integer, ε is not above 0, or D/ε is too large.

    Guarantee:
        Added to ONE integer query that changes by at most D between neighbouring data sets, the result is ε-DP
        for that adjacency, with pure ε and no floating-point gap. A change of a single step already costs all of ε, so
        several queries that all change a little cost ε each: where a vector of queries changes by at most D in L1 norm,
        Laplace noise costs ε and this noise does not.

    Cost:
        Linear in the number of draws, about 15 bytes of entropy each, and logarithmic in 1/ε.

    Reference:
        Thesis, Theorems 1 and 2; Geng and Viswanath, "The Optimal Mechanism in Differential Privacy";
        docs/proofs/noise.md#staircase.

    >>> discrete_staircase(0, 1, 3).tolist()
    [0, 0, 0]
    >>> discrete_staircase(1000, "0.5", (2, 3)).shape
    (2, 3)
    """
    exact = check_staircase(steps, epsilon)
    half = best_centre(int(steps), exact, optimise) if centre is None else _whole("centre", centre)
    n = int(np.prod(size, dtype=np.int64))
    draws = np.zeros(n, dtype=np.int64)
    if steps > 0:
        bits = source_for(None) if source is None else source
        for start in range(0, n, BLOCK):
            block = draws[start : start + BLOCK]
            block[:] = _draw(int(steps), exact, half, block.size, bits)
    return draws.reshape(size)


def check_staircase(steps: Any, epsilon: Epsilon) -> Fraction:
    """The exact ε, after checking that noise for these steps can be drawn."""
    exact = epsilon if isinstance(epsilon, Fraction) else parse_epsilon(epsilon)
    if exact <= 0:
        raise OptionError("epsilon-above-0", option="epsilon", found=shown(epsilon))
    if _whole("steps", steps) > LARGEST_NUMERATOR * exact:
        raise OptionError("steps-over-epsilon-more-than-2", steps=shown(steps), epsilon=float(exact))
    return exact


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise OptionError("option-whole-number-least-0", option=name, found=shown(value))
    return int(value)


@lru_cache(maxsize=256)
def _outside(steps: int, epsilon: Fraction, centre: int) -> WeightedChoice:
    """1 for a draw outside the centre. The centre weighs 2d+1, the outside 2D·q/(1-q), with q = exp(-ε)."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(epsilon, bits)
        inside = (2 * centre + 1) * ((1 << bits) - above), (2 * centre + 1) * ((1 << bits) - below)
        return [inside[0], inside[0] + 2 * steps * below], [inside[1], inside[1] + 2 * steps * above]

    return WeightedChoice(bounds)


def _draw(steps: int, epsilon: Fraction, centre: int, n: int, source: Source) -> NDArray[np.int64]:
    """n draws: uniform in the centre, or a sign, a geometric number of blocks and a position in the next one."""
    outside = _outside(steps, epsilon, centre).draw(n, source) > 0
    far, near = np.flatnonzero(outside), np.flatnonzero(~outside)
    draws = np.empty(n, dtype=np.int64)
    draws[near] = source.below(2 * centre + 1, near.size) - centre
    # the product may overflow int64, but is correct modulo 2^64
    magnitude = geometric(epsilon, far.size, source) * np.int64(steps) + source.below(steps, far.size)
    magnitude += centre + 1
    negative = source.digits(1, far.size).view(np.bool_)
    draws[far] = np.where(negative, -magnitude, magnitude)
    return draws


# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
LAPLACE_BLOCK = 1 << 17
_WORDS = 16


def discrete_laplace(
    scale: Scale | NDArray[Any] | Sequence[Scale], size: Shape | None = None, source: Source | None = None
) -> NDArray[np.int64]:
    """Integer noise with P(x) proportional to exp(-|x| / scale), exactly.

    Args:
        scale: in lattice steps; an integer, a Fraction, or an array or list of them. At most 2^52, numerators at
            most 2^52 and denominators at most 2^20 (`round_up_scale` gives such a fraction). Scale 0 always draws 0.
        size: shape of the result, broadcast with `scale`; one draw per scale when absent.
        source: source of the bits; the operating system's entropy when absent.

    Returns:
        Draws modulo 2^64 in two's complement. A draw leaves int64 with probability below exp(-2000) at the largest
        scale; adding it to an int64 sum then still is a function of the exact sum plus the exact noise.

    Raises:
        OptionError: a scale is negative, not finite, not rational or too large.

    Guarantee:
        Added to an integer query of L1 sensitivity at most D between neighbouring data sets, with scale at
        least D / ε, the result is ε-DP for that adjacency, with pure ε and no floating-point gap.

    Cost:
        Linear in the number of draws, about 20 bytes of entropy each, for any scale.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Algorithm 2;
        docs/proofs/noise.md#laplace.

    >>> from fractions import Fraction
    >>> discrete_laplace(0, 3).tolist()
    [0, 0, 0]
    >>> discrete_laplace([1, Fraction(5, 2)]).shape
    (2,)
    """
    bits = source_for(None) if source is None else source
    numerator, denominator = split_scale(scale)
    shape = shape_with(numerator.shape, size)
    n = int(np.prod(shape, dtype=np.int64))
    flat_numerator, flat_denominator = (
        part if part.ndim == 0 else np.broadcast_to(part, shape).ravel() for part in (numerator, denominator)
    )
    draws = np.zeros(n, dtype=np.int64)
    pending = np.flatnonzero(np.broadcast_to(flat_numerator > 0, (n,)))
    # An attempt succeeds with probability between 0.31 and 0.64, independently of the others: a few passes suffice.
    while pending.size:
        refused = []
        for start in range(0, pending.size, LAPLACE_BLOCK):
            block = pending[start : start + LAPLACE_BLOCK]
            accepted, values = _attempt(
                pick(flat_numerator, block), pick(flat_denominator, block), block.size, bits
            )
            draws[block[accepted]] = values
            refused.append(np.delete(block, accepted))
        pending = np.concatenate(refused)
    return draws.reshape(shape)


def _attempt(
    t: NDArray[np.int64], s: NDArray[np.int64], n: int, source: Source
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """One try at n draws of scale t/s: which of them succeeded, and their values.

    U uniform below t survives with probability exp(-U/t); with V geometric, U + tV is geometric of scale t, and its
    quotient by s geometric of scale t/s. A random sign makes it two-sided; zero keeps one of its two signs.
    """
    offset = source.below(t, n)
    survives = bernoulli_exp_fraction(offset.view(np.uint64), t.astype(np.uint64), source)
    accepted = np.flatnonzero(survives)
    offset, t, s = offset[accepted], pick(t, accepted), pick(s, accepted)
    turns = geometric_exp(accepted.size, source)
    # (U + tV) // s without the product tV, which may leave int64 where the remainder of t by s cannot.
    magnitude = t // s * turns + (offset + t % s * turns) // s
    negative = source.digits(1, accepted.size).view(np.bool_)
    minus_zero = np.flatnonzero(negative & (magnitude == 0))
    # A magnitude of 0 caused by wrap-around is not a zero.
    minus_zero = minus_zero[(turns[minus_zero] == 0) | (pick(t, minus_zero) < pick(s, minus_zero))]
    keep = np.ones(accepted.size, dtype=np.bool_)
    keep[minus_zero] = False
    return accepted[keep], np.where(negative, -magnitude, magnitude)[keep]


def single_laplace(t: int, s: int, source: Source) -> int:
    """A draw with P(x) proportional to exp(-|x| s / t), exactly.

    Guarantee:
        That of `discrete_laplace`, which is the same algorithm, one draw at a time.

    Reference:
        Canonne, Kamath and Steinke, Algorithm 2; docs/proofs/noise.md#laplace.

    >>> from shoal.noise.entropy import Seeded
    >>> isinstance(single_laplace(5, 2, Seeded(1)), int)
    True
    """
    words = _stream(source)
    while True:
        offset = _below(t, words)
        if not _coin_exp(offset, t, words):
            continue
        turns = 0
        while _coin_exp(1, 1, words):
            turns += 1
        magnitude = (offset + t * turns) // s
        negative = next(words) >> 63
        if negative and not magnitude:
            continue  # zero keeps one of its two signs
        return -magnitude if negative else magnitude


def _stream(source: Source) -> Iterator[int]:
    while True:
        yield from source.words(_WORDS).tolist()


def _below(bound: int, words: Iterator[int]) -> int:
    """A uniform integer below a bound of at most 2^64, by rejection."""
    shift = 64 - (bound - 1).bit_length() if bound > 1 else 64
    while True:
        drawn = next(words) >> shift
        if drawn < bound:
            return drawn


def _coin_exp(numerator: int, denominator: int, words: Iterator[int]) -> bool:
    """True with probability exp(-numerator / denominator), for a ratio of at most 1."""
    steps = 1
    while _below(denominator * steps, words) < numerator:
        steps += 1
    return steps % 2 == 1


# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
GAUSSIAN_BLOCK = 1 << 17
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
        for start in range(0, pending.size, GAUSSIAN_BLOCK):
            block = pending[start : start + GAUSSIAN_BLOCK]
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
def rho_from(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, within the digits, that gives (ε, δ)-DP.

    Guarantee:
        ρ-zCDP implies (ε, δ)-DP: for every α > 1, δ may be exp((α-1)(αρ - ε) + α·log(1 - 1/α) - log(α - 1)). α is
        chosen with floats, which cannot hurt; ρ follows from it with 60 digits and is rounded down to 12.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Proposition 12 and its proof;
        docs/proofs/noise.md#gaussian.

    >>> [f"{float(rho_from(Fraction(epsilon), Fraction('1e-6'))):.4g}" for epsilon in ("0.1", "1", "10")]
    ['0.000321', '0.02436', '1.539']
    """
    if not 0 < delta < 1 or epsilon <= 0:
        raise OptionError("conversion-rho-needs-epsilon-above-0")
    log_delta = _log(delta)
    largest = float(epsilon) - log_delta + 10  # the mean of the privacy loss alone is then far above ε
    rho = _bisect(lambda rho: _log_delta(rho, float(epsilon)) - log_delta, 0.0, largest)
    alpha = Decimal(_best_order(max(rho, 1e-300), float(epsilon)))
    with localcontext(Context(prec=_WORKING)):
        room = _decimal(epsilon) + (_decimal(delta).ln() - _constant(alpha)) / (alpha - 1)
        exact = room / alpha - abs(room / alpha) * _MARGIN
    found = Fraction(_shortened(exact, ROUND_FLOOR))
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
