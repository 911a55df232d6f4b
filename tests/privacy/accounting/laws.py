"""Exact privacy losses of single draws, from the private numbers on both sides and a common outcome.

Every draw of a release is one of these frozen values. A law knows its own log-ratio for one outcome (`loss`), the most
that any outcome can lose (`bound`, a fraction), and the same in the currency of zero-concentrated DP (`rho`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise, product

import numpy as np
from scipy.optimize import linprog

Whole = tuple[int, ...]
# digits of the logarithms that choices need; every comparison leaves room for the last ten of them
DIGITS = 60
INFINITE = Fraction(10**9)


@dataclass(frozen=True)
class Laplace:
    """Independent numbers with P(x) proportional to exp(-|x| / scale), one scale each."""

    scales: tuple[Fraction, ...]

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        return sum(
            (
                _over(abs(o - b) - abs(o - a), scale)
                for a, b, o, scale in zip(mine, other, outcome, self.scales, strict=True)
            ),
            Fraction(0),
        )

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        moves = (abs(a - b) for a, b in zip(mine, other, strict=True))
        return sum((_over(move, scale) for move, scale in zip(moves, self.scales, strict=True)), Fraction(0))

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        return self.bound(mine, other) ** 2 / 2

    def far(self) -> list[int]:
        return [math.ceil(50 * scale) + 50 for scale in self.scales]


@dataclass(frozen=True)
class Staircase:
    """Independent numbers of constant probability on -centre .. centre, times exp(-ε) for each block of `steps`."""

    steps: int
    epsilon: Fraction
    centre: int

    def _level(self, x: int) -> int:
        if not self.steps:
            return 0 if not x else int(INFINITE)
        return max(-(-(abs(x) - self.centre) // self.steps), 0)

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        levels = (
            self._level(o - b) - self._level(o - a) for a, b, o in zip(mine, other, outcome, strict=True)
        )
        return self.epsilon * sum(levels)

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        blocks = (_blocks(abs(a - b), self.steps) for a, b in zip(mine, other, strict=True))
        return self.epsilon * sum(blocks)

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        return self.bound(mine, other) ** 2 / 2

    def far(self) -> int:
        # one block beyond the centre, at its inner end: a step further in is a factor of exp(ε)
        return self.centre + 3 * self.steps


@dataclass(frozen=True)
class Box:
    """Vectors, one after another, of constant probability on nested boxes, times exp(-ε) from each to the next."""

    steps: Whole
    epsilon: Fraction
    centre: Whole

    def _level(self, vector: Sequence[int]) -> int:
        sides = [
            Staircase(step, self.epsilon, half)._level(x)
            for x, step, half in zip(vector, self.steps, self.centre, strict=True)
        ]
        return max(sides, default=0)

    def _vectors(self, numbers: Whole) -> list[Whole]:
        width = len(self.steps)
        return [numbers[start : start + width] for start in range(0, len(numbers), width)]

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        levels = 0
        for a, b, o in zip(*map(self._vectors, (mine, other, outcome)), strict=True):
            levels += self._level([x - y for x, y in zip(o, b, strict=True)])
            levels -= self._level([x - y for x, y in zip(o, a, strict=True)])
        return self.epsilon * levels

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        blocks = 0
        for a, b in zip(self._vectors(mine), self._vectors(other), strict=True):
            moves = [abs(x - y) for x, y in zip(a, b, strict=True)]
            blocks += max((_blocks(move, step) for move, step in zip(moves, self.steps, strict=True)))
        return self.epsilon * blocks

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        return self.bound(mine, other) ** 2 / 2


@dataclass(frozen=True)
class Blocks:
    """Vectors, one after another, of blocks: probability falls by exp(-ε) with the largest L1 norm of a block."""

    sizes: Whole
    steps: Whole
    epsilon: Fraction

    def _split(self, numbers: Sequence[int]) -> list[list[Sequence[int]]]:
        """Blocks of every vector."""
        ends = [0, *accumulate(self.sizes)]
        return [
            [numbers[first + a : first + b] for a, b in pairwise(ends)]
            for first in range(0, len(numbers), ends[-1])
        ]

    def _levels(self, mine: Sequence[int], other: Sequence[int]) -> list[list[int]]:
        """How many steps apart the blocks are, vector by vector."""
        apart = [a - b for a, b in zip(mine, other, strict=True)]
        return [
            [_blocks(sum(map(abs, block)), step) for block, step in zip(vector, self.steps, strict=True)]
            for vector in self._split(apart)
        ]

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        there, here = (sum(map(max, self._levels(outcome, side))) for side in (other, mine))
        return self.epsilon * (there - here)

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        return self.epsilon * sum(map(max, self._levels(mine, other)))

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        return self.bound(mine, other) ** 2 / 2

    def worst(self, mine: Whole, other: Whole) -> list[int]:
        """Noise on this side that tells most: far out in the block that differs most, nothing in the others."""
        noise = []
        parts = zip(self._split(mine), self._split(other), self._levels(mine, other), strict=True)
        for here, there, levels in parts:
            telling = levels.index(max(levels))
            for number, (a, b, step) in enumerate(zip(here, there, self.steps, strict=True)):
                far = 60 * step * (number == telling)
                noise += [far if x >= y else -far for x, y in zip(a, b, strict=True)]
        return noise

    def far(self) -> list[int]:
        return [60 * step for size, step in zip(self.sizes, self.steps, strict=True) for _ in range(size)]


@dataclass(frozen=True)
class Elliptope:
    """A symmetric matrix of noise fitted to products of signs: t·R - t'·R', correlation matrices of exponential size.

    Its probabilities have no closed form. What a difference of private matrices costs at most is the least number of
    sign products, added or subtracted, that it consists of.
    """

    signs: int
    epsilon: Fraction

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        return Fraction(0)

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        difference = tuple(a - b for a, b in zip(mine, other, strict=True))
        return self.epsilon * _sign_products(difference, self.signs)

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        return self.bound(mine, other) ** 2 / 2

    def worst(self, mine: Whole, other: Whole) -> list[int]:
        return [0] * len(mine)

    def far(self) -> list[int]:
        return [0] * self.signs**2


@lru_cache(maxsize=1000)
def _sign_products(difference: Whole, signs: int) -> Fraction:
    """The least Σ|c| with Σ c·ssᵀ equal to the difference, over all vectors s of signs; a linear programme."""
    if not any(difference):
        return Fraction(0)
    vectors = [(1, *rest) for rest in product((1, -1), repeat=signs - 1)]
    columns = np.array([np.outer(s, s).ravel() for s in vectors], dtype=float).T
    found = linprog(
        np.ones(2 * len(vectors)), A_eq=np.hstack([columns, -columns]), b_eq=difference, method="highs"
    )
    assert found.success, "no sum of sign products"
    # a vertex: with whole numbers on the right these are ratios of small numbers
    return Fraction(found.fun).limit_denominator(10**6)


@dataclass(frozen=True)
class Gaussian:
    """Independent discrete Gaussian numbers, by their squared scales: no pure ε, only ρ."""

    variances: tuple[Fraction, ...]

    def loss(self, mine: Whole, other: Whole, outcome: Whole) -> Fraction:
        parts = zip(mine, other, outcome, self.variances, strict=True)
        return sum((Fraction((o - b) ** 2 - (o - a) ** 2) / (2 * v) for a, b, o, v in parts), Fraction(0))

    def bound(self, mine: Whole, other: Whole) -> Fraction:
        return Fraction(0) if mine == other else INFINITE

    def rho(self, mine: Whole, other: Whole) -> Fraction:
        parts = zip(mine, other, self.variances, strict=True)
        return sum((Fraction((a - b) ** 2) / (2 * v) for a, b, v in parts), Fraction(0))

    def far(self) -> list[int]:
        return [math.ceil(8 * math.sqrt(v)) for v in self.variances]


@dataclass(frozen=True)
class Scores:
    """Runs of equally good candidates: how many of each, and their penalties times the rate (the exponents)."""

    lengths: Whole
    exponents: tuple[Fraction, ...]

    @property
    def total(self) -> int:
        return sum(self.lengths)

    @property
    def weighed(self) -> list[tuple[Fraction, int]]:
        """How many candidates there are of each exponent."""
        found: Counter[Fraction] = Counter()
        for exponent, length in zip(self.exponents, self.lengths, strict=True):
            found[exponent] += length
        return sorted((exponent, length) for exponent, length in found.items() if length)

    def run_of(self, candidate: int) -> tuple[int, int]:
        """The run of a candidate, and its place inside."""
        before = 0
        for number, length in enumerate(self.lengths):
            if candidate < before + length:
                return number, candidate - before
            before += length
        raise AssertionError(f"candidate {candidate} of {before}")

    def exponent(self, candidate: int) -> Fraction:
        return self.exponents[self.run_of(candidate)[0]]

    def starts(self) -> list[int]:
        """First candidates of all runs that have any."""
        starts = [0, *accumulate(self.lengths)][:-1]
        return [start for start, length in zip(starts, self.lengths, strict=True) if length]


@dataclass(frozen=True)
class Selection:
    """One candidate, by the exponential mechanism or by permute-and-flip; what is private are the scores."""

    rule: str
    total: int

    def log_probability(self, scores: Scores, candidate: int) -> Decimal:
        with localcontext() as context:
            context.prec = DIGITS
            least = min(
                exponent for exponent, length in zip(scores.exponents, scores.lengths, strict=True) if length
            )
            weights = [_exp(least - exponent) for exponent in scores.exponents]
            own = scores.run_of(candidate)[0]
            if self.rule == "exponential":
                together = sum(
                    (length * weight for length, weight in zip(scores.lengths, weights, strict=True)),
                    Decimal(0),
                )
                return weights[own].ln() - together.ln()
            # p ∫ Π (1 - p_j + p_j t) dt over the other candidates, t from 0 to 1
            polynomial = [Decimal(1)]
            for number, (length, weight) in enumerate(zip(scores.lengths, weights, strict=True)):
                for _ in range(length - (number == own)):
                    polynomial = [
                        low * (1 - weight) + high * weight
                        for low, high in zip(
                            [*polynomial, Decimal(0)], [Decimal(0), *polynomial], strict=True
                        )
                    ]
            integral = sum(
                (part / (power + 1) for power, part in enumerate(polynomial)),
                Decimal(0),
            )
            return (weights[own] * integral).ln()

    def loss(self, mine: Scores, other: Scores, outcome: int) -> Fraction:
        if mine == other:
            return Fraction(0)
        return Fraction(self.log_probability(mine, outcome)) - Fraction(self.log_probability(other, outcome))

    def span(self, mine: Scores, other: Scores) -> Fraction:
        """Range over all candidates of how far their exponents move: bounded range, which bounds the loss."""
        places = sorted({*mine.starts(), *other.starts()})
        moves = [other.exponent(place) - mine.exponent(place) for place in places]
        return max(moves) - min(moves)

    def bound(self, mine: Scores, other: Scores) -> Fraction:
        if self.rule == "exponential" and mine.weighed == other.weighed:
            # the weights add up to the same on both sides, so that a probability moves as its own weight does
            places = sorted({*mine.starts(), *other.starts()})
            return max(abs(other.exponent(place) - mine.exponent(place)) for place in places)
        return self.span(mine, other)

    def rho(self, mine: Scores, other: Scores) -> Fraction:
        return self.span(mine, other) ** 2 / 8

    def worst(self, mine: Scores, other: Scores) -> int:
        places = sorted({*mine.starts(), *other.starts()})
        return max(places, key=lambda place: self.loss(mine, other, place))


@dataclass(frozen=True)
class Odds:
    """The row of a matrix that a record passes: integer weights of the states."""

    weights: Whole

    def logarithm(self, state: int) -> Fraction:
        weight = self.weights[state]
        if not weight:
            return -INFINITE
        with localcontext() as context:
            context.prec = DIGITS
            return Fraction((Decimal(weight) / Decimal(sum(self.weights))).ln())


@dataclass(frozen=True)
class Transition:
    """One state drawn from a row of a matrix; what is private is which row."""

    states: int

    def loss(self, mine: Odds, other: Odds, outcome: int) -> Fraction:
        return mine.logarithm(outcome) - other.logarithm(outcome) if mine != other else Fraction(0)

    def bound(self, mine: Odds, other: Odds) -> Fraction:
        return max(abs(self.loss(mine, other, state)) for state in range(self.states))

    def rho(self, mine: Odds, other: Odds) -> Fraction:
        return self.bound(mine, other) ** 2 / 2

    def worst(self, mine: Odds, other: Odds) -> int:
        return max(range(self.states), key=lambda state: self.loss(mine, other, state))


def _over(move: int, scale: Fraction) -> Fraction:
    if not scale:
        return INFINITE * (move > 0) - INFINITE * (move < 0)
    return move / scale


def _blocks(move: int, steps: int) -> int:
    if not move:
        return 0
    return -(-move // steps) if steps else int(INFINITE)


def _exp(exponent: Fraction) -> Decimal:
    return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
