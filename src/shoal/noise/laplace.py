"""Discrete Laplace noise: exact draws for arrays and, faster for one number, in integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
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
    enclose_exp,
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
