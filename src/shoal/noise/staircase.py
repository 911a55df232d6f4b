"""Staircase noise on the integers. In: a sensitivity in lattice steps, an ε and a source. Out: exact int64 draws."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.enclosed import Choice, enclose_exp, geometric
from shoal.noise.entropy import Shape, Source
from shoal.noise.entropy import source as source_for
from shoal.noise.epsilon import parse_epsilon, shown
from shoal.noise.scale import LARGEST_NUMERATOR
from shoal.noise.staircase_shape import best_centre

# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
BLOCK = 1 << 16
Epsilon = Fraction | Decimal | str | int | float


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
        steps: how far one record can move the query, D; 0 always draws 0. D/ε is at most 2^52.
        epsilon: the privacy budget of this one query; a Fraction of any size above 0 is exact.
        size: shape of the result.
        source: where the bits come from; the operating system's entropy when absent.
        optimise: "variance" or "interval" (the shortest one of 95%): what the centre is chosen for.
        centre: half-width of the centre, instead of the best one.

    Returns:
        Draws modulo 2^64 in two's complement, as for `discrete_laplace`.

    Raises:
        OptionError: steps or centre is negative or not whole, ε is not above 0, or D/ε is too large.

    Guarantee:
        Added to ONE integer query that changes by at most D between neighbours, the result is ε-DP for that
        relation of neighbours, with pure ε and no floating-point gap. A shift by a single step already costs
        all of ε, so several queries that all move a little cost ε each: where a vector of queries moves by at most
        D in L1 norm, Laplace noise costs ε and this noise does not.

    Cost:
        Linear in the number of draws, about 15 bytes of entropy each, and logarithmic in 1/ε.

    Reference:
        Thesis, Theorems 1 and 2; Geng and Viswanath, "The Optimal Mechanism in Differential Privacy";
        docs/proofs/staircase.md.

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
    """The exact ε, once it is clear that noise for these steps can be drawn."""
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
def _outside(steps: int, epsilon: Fraction, centre: int) -> Choice:
    """1 for a draw outside the centre. The centre weighs 2d+1, all that is outside 2D·q/(1-q), with q = exp(-ε)."""

    def bounds(bits: int) -> tuple[list[int], list[int]]:
        below, above = enclose_exp(epsilon, bits)
        inside = (2 * centre + 1) * ((1 << bits) - above), (2 * centre + 1) * ((1 << bits) - below)
        return [inside[0], inside[0] + 2 * steps * below], [inside[1], inside[1] + 2 * steps * above]

    return Choice(bounds)


def _draw(steps: int, epsilon: Fraction, centre: int, n: int, source: Source) -> NDArray[np.int64]:
    """n draws: uniform in the centre, or a sign, a geometric number of blocks and a place in the next one."""
    outside = _outside(steps, epsilon, centre).draw(n, source) > 0
    far, near = np.flatnonzero(outside), np.flatnonzero(~outside)
    draws = np.empty(n, dtype=np.int64)
    draws[near] = source.below(2 * centre + 1, near.size) - centre
    # the product may leave int64 and then is what it should be modulo 2^64
    magnitude = geometric(epsilon, far.size, source) * np.int64(steps) + source.below(steps, far.size)
    magnitude += centre + 1
    negative = source.digits(1, far.size).view(np.bool_)
    draws[far] = np.where(negative, -magnitude, magnitude)
    return draws
