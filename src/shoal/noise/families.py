"""Noise families by name: how each is drawn, and its cost when one record changes several sums; box noise.

A new family is one entry: a `NoiseFamily`. `register_noise` adds third-party ones.

The density of box noise is constant on boxes of half-widths z_j + i·s_j and falls by exp(-ε) from each to the next. It
is a mixture of uniform draws from the boxes: box i with weight q^i times its volume, q = exp(-ε). That weight, written
with binomial coefficients of i, makes i the sum of a small r and r+1 geometric counts, so every moment is a finite sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise.discrete import (
    BLOCK,
    CONFIDENCE,
    OPTIMISE,
    Epsilon,
    LatticeStaircase,
    check_staircase,
    discrete_laplace,
    discrete_staircase,
)
from shoal.noise.entropy import Source
from shoal.noise.entropy import source as source_for
from shoal.noise.exact import WeightedChoice, enclose_exp, geometric, round_up_scale
from shoal.numbers import Integers
from shoal.origin import Outside

_GRID = 33
_ZOOMS = 4
_HALVINGS = 45
_SMALLEST = 1e-9


@dataclass(frozen=True, slots=True)
class Box:
    """Box noise on real vectors.

    Attributes:
        widths: sensitivity of each coordinate to one record, s.
        epsilon: the budget of the whole vector.
        centre: half-widths of the innermost box, z.

    >>> example = Box((1.0, 10.0), 1.0, (0.1, 1.0))
    >>> [round(value, 4) for value in example.variances], round(example.region(0.95).size, 1)
    ([4.0338, 403.3805], 916.9)
    """

    widths: tuple[float, ...]
    epsilon: float
    centre: tuple[float, ...]

    @classmethod
    def best(cls, widths: Sequence[float], epsilon: float, optimise: str = "variance") -> Box:
        """The shape with the best innermost box proportional to the widths."""
        share = best_share(len(widths), epsilon, optimise)
        return cls(tuple(widths), epsilon, tuple(share * width for width in widths))

    def level(self, x: ArrayLike) -> NDArray[np.float64]:
        """The number of the first box that contains x; the last axis of x runs over the coordinates."""
        beyond = (np.abs(np.asarray(x, dtype=np.float64)) - self.centre) / self.widths
        return np.asarray(np.maximum(np.ceil(beyond), 0).max(axis=-1))

    def density(self, x: ArrayLike) -> NDArray[np.float64]:
        """The density at x; the last axis of x runs over the coordinates."""
        shares = [z / s for z, s in zip(self.centre, self.widths, strict=True)]
        total = sum(math.log(2 * width) for width in self.widths) + math.log(-math.expm1(-self.epsilon))
        return np.asarray(np.exp(-self.epsilon * self.level(x) - total - _log_volumes(shares, self.epsilon)))

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of each coordinate: a third of the mean squared half-width of the drawn box."""
        first, second = _moments(self.centre, self.widths, self.epsilon)
        return tuple(
            float(z * z + 2 * z * s * first + s * s * second) / 3
            for z, s in zip(self.centre, self.widths, strict=True)
        )

    def region(self, confidence: float) -> Region:
        """The smallest region of this probability, for a centre proportional to the widths."""
        shares = [z / s for z, s in zip(self.centre, self.widths, strict=True)]
        if max(shares) - min(shares) > 1e-9 * max(shares):
            raise OptionError("smallest-region-needs-centre-proportions-widths")
        reach = float(_reach(np.array(shares[:1]), len(shares), self.epsilon, confidence)[0])
        return Region(reach, math.prod(2 * reach * width for width in self.widths))


@dataclass(frozen=True, slots=True)
class Region:
    """The box of half-widths reach·s_j and its volume."""

    reach: float
    size: float


@dataclass(frozen=True, slots=True)
class LatticeBox:
    """Box noise on integer vectors, the distribution of `discrete_box`: integer `steps`, `centre` of 2z_j+1 integers.

    >>> LatticeBox((1,), 1.0, (0,)).mass([[0], [1]]).round(4).tolist()
    [0.4621, 0.17]
    """

    steps: tuple[int, ...]
    epsilon: float
    centre: tuple[int, ...]

    @classmethod
    def best(cls, steps: Sequence[int], epsilon: Fraction, optimise: str = "variance") -> LatticeBox:
        """The shape that `discrete_box` draws from."""
        return cls(tuple(steps), float(epsilon), best_centres(tuple(steps), epsilon, optimise))

    @property
    def _space(self) -> Box:
        """The density whose integral over the unit cube around x is the mass at x."""
        return Box(
            tuple(float(step) for step in self.steps), self.epsilon, tuple(z + 0.5 for z in self.centre)
        )

    def level(self, x: ArrayLike) -> NDArray[np.int64]:
        """Number of factors exp(-ε) between the mass at 0 and that at x."""
        beyond = np.maximum(np.abs(np.asarray(x, dtype=np.int64)) - np.array(self.centre), 0)
        return np.asarray((-(-beyond // np.array(self.steps))).max(axis=-1))

    def mass(self, x: ArrayLike) -> NDArray[np.float64]:
        """P(X = x) for an integer vector x."""
        # integers are never on the edge of a box that is wider by one half
        return self._space.density(np.asarray(x, dtype=np.float64))

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of each coordinate."""
        return tuple(variance - 1 / 12 for variance in self._space.variances)


@lru_cache(maxsize=1024)
def best_centres(steps: tuple[int, ...], epsilon: Fraction, optimise: str) -> tuple[int, ...]:
    """Integer half-widths of the innermost box, as close to proportional to the steps as possible."""
    share = best_share(len(steps), float(epsilon), optimise)
    return tuple(min(max(round(share * step - 0.5), 0), max(step - 1, 0)) for step in steps)


@lru_cache(maxsize=1024)
def best_share(dimensions: int, epsilon: float, optimise: str = "variance") -> float:
    """The half-width of the innermost box as a share of the widths: minimum variance, or smallest region of 95%.

    >>> round(best_share(1, 1.0), 4), round(best_share(2, 1.0), 4)
    (0.4167, 0.6975)
    """
    if optimise not in OPTIMISE:
        raise OptionError("unknown-optimise", option="optimise", found=optimise, allowed=tuple(OPTIMISE))
    low, high = _SMALLEST, 1.0
    for _ in range(_ZOOMS):
        shares = np.linspace(low, high, _GRID)
        if optimise == "variance":
            first, second = _moments([shares] * dimensions, [1.0] * dimensions, epsilon)
            loss = shares**2 + 2 * shares * first + second
        else:
            loss = _reach(shares, dimensions, epsilon, CONFIDENCE)
        best = int(np.argmin(loss))
        low, high = shares[max(best - 1, 0)], shares[min(best + 1, _GRID - 1)]
    return float((low + high) / 2)


def laplace_region(scale: float, dimensions: int, confidence: float) -> tuple[float, float]:
    """Radius in L1 norm and volume of the smallest region of independent Laplace noise of one scale.

    >>> [round(value, 2) for value in laplace_region(11, 2, 0.95)]
    [52.18, 5446.03]
    """
    from scipy.special import gammaincinv

    radius = float(gammaincinv(dimensions, confidence)) * scale
    return radius, (2 * radius) ** dimensions / math.factorial(dimensions)


def _mixture(
    centre: Sequence[float | NDArray[np.float64]], widths: Sequence[float], epsilon: float
) -> list[NDArray[np.float64]]:
    """Probabilities of r: proportional to the r-th difference at 0 of the volume, times (q/(1-q))^r.

    i·C(i, r) = r·C(i, r) + (r+1)·C(i, r+1) gives the differences factor by factor, without cancellation.
    """
    odds = 1 / math.expm1(epsilon) if epsilon < 700 else 0.0
    weights = [np.asarray(1.0)]
    for z, s in zip(centre, widths, strict=True):
        padded = [np.asarray(0.0), *weights, np.asarray(0.0)]
        weights = [(z + s * r) * padded[r + 1] + s * r * odds * padded[r] for r in range(len(weights) + 1)]
        total = sum(weights, np.asarray(0.0))
        weights = [weight / total for weight in weights]
    return weights


def _moments(
    centre: Sequence[float | NDArray[np.float64]], widths: Sequence[float], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and mean square of the number i of the box: i = r + a negative binomial count of r+1 successes."""
    odds = 1 / math.expm1(epsilon) if epsilon < 700 else 0.0
    first, second = np.asarray(0.0), np.asarray(0.0)
    for r, weight in enumerate(_mixture(centre, widths, epsilon)):
        mean = r + (r + 1) * odds
        first = first + weight * mean
        second = second + weight * (mean * mean + (r + 1) * odds * (1 + odds))
    return first, second


def _log_volumes(shares: Sequence[float | NDArray[np.float64]], epsilon: float) -> NDArray[np.float64]:
    """The logarithm of the sum of q^i · Π(share_j + i) over all boxes i."""
    rest = -math.expm1(-epsilon)
    weights, logarithm = [np.asarray(1.0)], np.asarray(-math.log(rest))
    for share in shares:
        padded = [np.asarray(0.0), *weights, np.asarray(0.0)]
        # in units of 1/(1-q) per factor; the total goes into the logarithm, so that nothing leaves the range
        weights = [
            rest * (share + r) * padded[r + 1] + r * math.exp(-epsilon) * padded[r]
            for r in range(len(weights) + 1)
        ]
        total = sum(weights, np.asarray(0.0))
        weights = [weight / total for weight in weights]
        logarithm = logarithm + np.log(total / rest)
    return logarithm


def _reach(
    share: NDArray[np.float64], dimensions: int, epsilon: float, confidence: float
) -> NDArray[np.float64]:
    """The t for which the box of half-widths t·s_j contains the noise with this probability, by bisection.

    Box i > t - share lies inside with probability (t/(share+i))^m; summed over i, with l the first such box,
    the noise is outside with probability q^l · (Σ_j q^j (share+l+j)^m - t^m/(1-q)) / Σ_i q^i (share+i)^m.
    """
    if not 0 < confidence < 1:
        raise OptionError("confidence-lie-between-0-1", option="confidence", found=confidence)
    total = _log_volumes([share] * dimensions, epsilon)
    rest = math.log(-math.expm1(-epsilon))

    def outside(reach: NDArray[np.float64]) -> NDArray[np.float64]:
        first = np.maximum(np.floor(reach - share) + 1, 0)
        tail = _log_volumes([share + first] * dimensions, epsilon) - total
        inner = dimensions * np.log(reach) - rest - total
        return np.asarray((np.exp(tail) - np.exp(inner)) * np.exp(-epsilon * first))

    low, high = np.zeros_like(share), np.ones_like(share)
    while np.any(outside(high) > 1 - confidence):
        high = 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_short = outside(middle) > 1 - confidence
        low, high = np.where(too_short, middle, low), np.where(too_short, high, middle)
    return high


def discrete_box(
    steps: Sequence[int],
    epsilon: Epsilon,
    size: int = 1,
    source: Source | None = None,
    *,
    optimise: str = "variance",
    centre: Sequence[int] | None = None,
) -> NDArray[np.int64]:
    """Noise vectors with constant probability on nested boxes, times exp(-ε) from each box to the next.

    Box i contains the vectors with |x_j| <= centre_j + i·steps_j for every coordinate j.

    Args:
        steps: sensitivity of each coordinate to one record; a coordinate of 0 steps always draws 0.
        epsilon: the privacy budget of the whole vector; a Fraction of any size above 0 is exact.
        size: number of vectors.
        source: source of the bits; the operating system's entropy when absent.
        optimise: objective for the centre: "variance" or "interval" (the smallest region of 95%).
        centre: half-widths of the innermost box, instead of the best ones.

    Returns:
        One row per vector, one column per coordinate.

    Raises:
        OptionError: steps or centre are invalid, ε is not above 0, or steps/ε exceeds 2^52.

    Guarantee:
        Added to ONE integer vector of which coordinate j changes by at most steps_j between neighbouring data
        sets, possibly all coordinates at once, the result is ε-DP for that adjacency. Every vector a record can change
        costs a separate ε, as for `discrete_staircase`.

    Cost:
        Linear in the number of vectors, times the number of coordinates.

    Reference:
        Thesis, Theorem 3 and Example 5; docs/proofs/noise.md#staircase.

    >>> discrete_box([0, 0], 1, 2).tolist()
    [[0, 0], [0, 0]]
    >>> discrete_box([10, 1000], "0.5", 4).shape
    (4, 2)
    """
    exact = Fraction(1)
    for step in steps:
        exact = check_staircase(step, epsilon)
    moving = [j for j, step in enumerate(steps) if step > 0]
    widths = tuple(int(steps[j]) for j in moving)
    halves = best_centres(widths, exact, optimise) if centre is None else _centres(centre, steps, moving)
    draws = np.zeros((size, len(steps)), dtype=np.int64)
    if moving:
        bits = source_for(None) if source is None else source
        for start in range(0, size, BLOCK):
            block = draws[start : start + BLOCK]
            block[:, moving] = _draw(widths, exact, halves, len(block), bits)
    return draws


def _centres(centre: Sequence[int], steps: Sequence[int], moving: list[int]) -> tuple[int, ...]:
    if len(centre) != len(steps) or min(centre) < 0:
        raise OptionError(
            "centre-hold-whole-number-least-0",
            option="centre",
            steps=len(steps),
            found=list(centre),
        )
    return tuple(int(centre[j]) for j in moving)


def differences(steps: tuple[int, ...], centre: tuple[int, ...]) -> tuple[int, ...]:
    """The differences at 0, of order 0 to m, of the number of integer vectors in box i.

    >>> differences((1,), (0,)), differences((1, 10), (0, 1))
    ((1, 2), (3, 66, 80))
    """
    found = [1]
    for step, half in zip(steps, centre, strict=True):
        padded = [0, *found, 0]
        found = [
            (2 * half + 1 + 2 * step * r) * padded[r + 1] + 2 * step * r * padded[r]
            for r in range(len(found) + 1)
        ]
    return tuple(found)


@lru_cache(maxsize=256)
def _order(steps: tuple[int, ...], epsilon: Fraction, centre: tuple[int, ...]) -> WeightedChoice:
    """The order r, weighted by its difference times (q/(1-q))^r; all weights are multiplied by (1-q)^m."""
    weights = differences(steps, centre)

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(epsilon, bits)
        one = 1 << bits
        return _sums(weights, below, one - above), _sums(weights, above, one - below)

    return WeightedChoice(bounds)


def _sums(weights: tuple[int, ...], q: int, rest: int) -> list[int]:
    degree, total, sums = len(weights) - 1, 0, []
    for r, weight in enumerate(weights):
        total += weight * q**r * rest ** (degree - r)
        sums.append(total)
    return sums


def _draw(
    steps: tuple[int, ...], epsilon: Fraction, centre: tuple[int, ...], n: int, source: Source
) -> NDArray[np.int64]:
    """n vectors: an order r, a box r + (r+1 geometric counts), a uniform vector of that box."""
    order = _order(steps, epsilon, centre).draw(n, source)
    box = order.copy()
    for r in range(len(steps) + 1):
        reaching = np.flatnonzero(order >= r)
        box[reaching] += geometric(epsilon, reaching.size, source)
    # steps/ε is at most 2^52, so a half-width of 2^62 has a probability below exp(-900)
    halves = [half + box * np.int64(step) for step, half in zip(steps, centre, strict=True)]
    return np.stack([source.below(2 * half + 1) - half for half in halves], axis=1)


Draw = Callable[[tuple[int, ...], Fraction, int, str, Source], Integers]
DrawNumbers = Callable[[int, Fraction, tuple[int, ...], str, Source], Integers]
DrawColumns = Callable[[tuple[int, ...], tuple[Fraction, ...], int, Source], Integers]


@internal()
@dataclass(frozen=True, slots=True)
class NoiseFamily:
    """A kind of noise for cluster sums.

    Attributes:
        about: a short description of its use; empty for the default.
        draw: one column of noise per sensitivity, given sensitivities in lattice steps, their ε, a number of
            clusters, the objective and a source.
        check: raises if noise for these sensitivities and their ε cannot be drawn.
        joint: all sums of a cluster get joint noise and share one ε; otherwise each attribute has its own.
        blockwise: any change of a cluster's sums costs the whole ε, so a record may affect one cluster only.
            Otherwise a change costs in proportion to its L1 norm, over all clusters together.
        variances: variance of the noise on each sum, in squared steps, for the same sensitivities, ε and
            objective; None if unknown.
        shaped: there are several shapes for one ε, and `optimise` is the objective for the shape.
        closed_form: Laplace noise of scale W/ε on every sum, whose expected errors and likelihoods are known.
        outside: the third party that registered it, None for Shoal's own.
        draw_columns: one column of noise for each sensitivity with its own ε; by default drawn one after the other.
        draw_numbers: an array of noise for numbers that each have a sensitivity in steps and an ε of their own.
    """

    about: str
    draw: Draw
    check: Callable[[tuple[int, ...], Fraction], None]
    joint: bool = False
    blockwise: bool = True
    variances: Callable[[tuple[int, ...], Fraction, str], tuple[float, ...]] | None = None
    shaped: bool = False
    closed_form: bool = False
    outside: Outside | None = None
    draw_columns: DrawColumns | None = None
    draw_numbers: DrawNumbers | None = None

    def columns(
        self, steps: tuple[int, ...], shares: tuple[Fraction, ...], n: int, optimise: str, source: Source
    ) -> Integers:
        """Noise for n clusters, one column for each sensitivity and its ε."""
        if self.draw_columns is not None:
            return self.draw_columns(steps, shares, n, source)
        drawn = [
            self.draw((width,), share, n, optimise, source)
            for width, share in zip(steps, shares, strict=True)
        ]
        return np.concatenate(drawn, axis=1)

    def numbers(
        self, steps: int, share: Fraction, shape: tuple[int, ...], optimise: str, source: Source
    ) -> Integers:
        """Noise for an array of numbers, each with the given sensitivity in steps and cost `share`."""
        if self.draw_numbers is not None:
            return self.draw_numbers(steps, share, shape, optimise, source)
        return self.draw((steps,), share, math.prod(shape), optimise, source).reshape(shape)


def _laplace(steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source) -> Integers:
    return discrete_laplace(laplace_scale(sum(steps), epsilon), (n, len(steps)), source)


def _laplace_columns(
    steps: tuple[int, ...], shares: tuple[Fraction, ...], n: int, source: Source
) -> Integers:
    scales = [laplace_scale(width, share) for width, share in zip(steps, shares, strict=True)]
    return discrete_laplace(scales, (n, len(steps)), source)


def _laplace_numbers(
    steps: int, share: Fraction, shape: tuple[int, ...], optimise: str, source: Source
) -> Integers:
    return discrete_laplace(laplace_scale(steps, share), shape, source)


def laplace_scale(steps: int, epsilon: Fraction) -> Fraction:
    """Scale, in lattice steps, of Laplace noise that costs ε for a change of so many steps in L1 norm."""
    return round_up_scale(Fraction(steps) / epsilon)


def _check_laplace(steps: tuple[int, ...], epsilon: Fraction) -> None:
    laplace_scale(sum(steps), epsilon)


def _staircase(steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source) -> Integers:
    (width,) = steps
    return discrete_staircase(width, epsilon, (n, 1), source, optimise=optimise)


def _staircase_numbers(
    steps: int, share: Fraction, shape: tuple[int, ...], optimise: str, source: Source
) -> Integers:
    return discrete_staircase(steps, share, shape, source, optimise=optimise)


def _box(steps: tuple[int, ...], epsilon: Fraction, n: int, optimise: str, source: Source) -> Integers:
    return discrete_box(steps, epsilon, n, source, optimise=optimise)


def _check_staircase(steps: tuple[int, ...], epsilon: Fraction) -> None:
    for step in steps:
        check_staircase(step, epsilon)


def _laplace_variances(steps: tuple[int, ...], epsilon: Fraction, optimise: str) -> tuple[float, ...]:
    # P(z) is proportional to q^|z| with q = exp(-1/b), which has variance 2q/(1-q)²
    half = 0.5 / float(laplace_scale(sum(steps), epsilon))
    return (0.5 / math.sinh(half) ** 2 if half < 300 else 0.0,) * len(steps)


def _staircase_variances(steps: tuple[int, ...], epsilon: Fraction, optimise: str) -> tuple[float, ...]:
    return tuple(LatticeStaircase.best(width, epsilon, optimise).variance for width in steps)


def _box_variances(steps: tuple[int, ...], epsilon: Fraction, optimise: str) -> tuple[float, ...]:
    return LatticeBox.best(steps, epsilon, optimise).variances


_NOISES: dict[str, NoiseFamily] = {
    "laplace": NoiseFamily(
        "",
        _laplace,
        _check_laplace,
        blockwise=False,
        variances=_laplace_variances,
        closed_form=True,
        draw_columns=_laplace_columns,
        draw_numbers=_laplace_numbers,
    ),
    "staircase": NoiseFamily(
        "least variance for one sum",
        _staircase,
        _check_staircase,
        variances=_staircase_variances,
        shaped=True,
        draw_numbers=_staircase_numbers,
    ),
    "box": NoiseFamily(
        "one ε for all sums of a cluster",
        _box,
        _check_staircase,
        joint=True,
        variances=_box_variances,
        shaped=True,
    ),
}
NOISES: Mapping[str, NoiseFamily] = _NOISES


def add_noise(name: str, family: NoiseFamily) -> None:
    """Register a noise family under a name, for `shoal.extend`."""
    _NOISES[name] = family
