"""Noise families by name: how each is drawn, and its cost when one record changes several sums.

A new family is one entry: a `NoiseFamily`. `register_noise` adds third-party ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.display import internal
from shoal.noise.box import LatticeBox, discrete_box
from shoal.noise.entropy import Source
from shoal.noise.exact import round_up_scale
from shoal.noise.laplace import LatticeStaircase, check_staircase, discrete_laplace, discrete_staircase
from shoal.numbers import Integers
from shoal.origin import Outside

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
