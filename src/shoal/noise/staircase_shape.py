"""Closed forms of staircase noise. In: a sensitivity, an ε, the half-width of the centre. Out: numbers to read.

Two shapes: the density on the real line that the thesis studies, and the mass function on the integers that is drawn.
Floating point is enough here: whatever the centre is, the noise that is drawn from it is private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError, closest

OPTIMISE = ("variance", "interval")
CONFIDENCE = 0.95


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
    """The best whole half-width of the centre on the integers, of the whole numbers around the real one.

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
        """The shape of least variance, or of the shortest interval of 95%."""
        return cls(width, epsilon, width * best_fraction(epsilon, optimise))

    @property
    def _odds(self) -> float:
        """q / (1-q), the weight of everything beyond the centre in units of `width` on either side."""
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
        # what the block has left counts once, every later block 1/(1-q) times
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
        """Half the length of the interval around 0 that holds X with this probability."""
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

    This is the law of `discrete_staircase`.

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
        """How many factors exp(-ε) the mass at x is below that at 0."""
        beyond = np.maximum(np.abs(np.asarray(x, dtype=np.int64)) - self.centre, 0)
        return np.asarray(-(-beyond // max(self.steps, 1)))

    def mass(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X = x) for whole x."""
        return np.asarray(self._line.height * np.exp(-self.epsilon * self.level(x)))

    def below(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X <= x) for whole x."""
        return self._line.mass(np.asarray(x, dtype=np.float64) + 0.5)

    @property
    def variance(self) -> float:
        # X plus an independent uniform number of [-1/2, 1/2) has the density of the line
        return self._line.variance - 1 / 12

    def interval(self, confidence: float) -> int:
        """The least h for which -h .. h holds X with at least this probability."""
        return max(math.ceil(self._line.interval(confidence) - 0.5 - 1e-9), 0)

    def quantile(self, probability: float) -> int:
        """The least whole x with P(X <= x) >= probability."""
        return math.ceil(self._line.quantile(probability) - 0.5 - 1e-9)


def _check_probability(name: str, value: Any) -> None:
    if not 0 < value < 1:
        raise OptionError("option-lie-between-0-1", option=name, found=value)
