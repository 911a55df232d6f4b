"""Box noise on integer vectors. In: sensitivities in lattice steps, one ε and a source. Out: exact int64 draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.box_shape import best_centres
from shoal.noise.enclosed import Choice, enclose_exp, geometric
from shoal.noise.entropy import Source
from shoal.noise.entropy import source as source_for
from shoal.noise.staircase import BLOCK, Epsilon, check_staircase


def discrete_box(
    steps: Sequence[int],
    epsilon: Epsilon,
    size: int = 1,
    source: Source | None = None,
    *,
    optimise: str = "variance",
    centre: Sequence[int] | None = None,
) -> NDArray[np.int64]:
    """Noise vectors of constant probability on nested boxes, times exp(-ε) from each box to the next.

    Box i holds the vectors with |x_j| <= centre_j + i·steps_j for every coordinate j.

    Args:
        steps: how far one record can move each coordinate; a coordinate of 0 steps always draws 0.
        epsilon: the privacy budget of the whole vector; a Fraction of any size above 0 is exact.
        size: number of vectors.
        source: where the bits come from; the operating system's entropy when absent.
        optimise: "variance" or "interval" (the smallest region of 95%): what the centre is chosen for.
        centre: half-widths of the innermost box, instead of the best ones.

    Returns:
        One row per vector, one column per coordinate.

    Raises:
        OptionError: steps or centre does not fit, ε is not above 0, or steps/ε exceeds 2^52.

    Guarantee:
        Added to ONE integer vector of which coordinate j changes by at most steps_j between neighbours, all of them
        at once if need be, the result is ε-DP for that relation of neighbours. Every vector a record can
        change costs ε of its own, as for `discrete_staircase`.

    Cost:
        Linear in the number of vectors, times the number of coordinates.

    Reference:
        Thesis, Theorem 3 and Example 5; docs/proofs/staircase.md.

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
def _order(steps: tuple[int, ...], epsilon: Fraction, centre: tuple[int, ...]) -> Choice:
    """The order r, weighing its difference times (q/(1-q))^r; all weights are multiplied by (1-q)^m."""
    weights = differences(steps, centre)

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(epsilon, bits)
        one = 1 << bits
        return _sums(weights, below, one - above), _sums(weights, above, one - below)

    return Choice(bounds)


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
