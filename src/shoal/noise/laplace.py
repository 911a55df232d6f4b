"""Discrete Laplace noise: exact draws for arrays and, faster for one number, in integer arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.noise.entropy import Shape, Source, pick, shape_with
from shoal.noise.entropy import source as source_for
from shoal.noise.exact import bernoulli_exp_fraction, geometric_exp
from shoal.noise.scale import Scale, split_scale

# Draws handled together: large enough to hide the cost of a numpy call, small enough for the processor's cache.
BLOCK = 1 << 17
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
        for start in range(0, pending.size, BLOCK):
            block = pending[start : start + BLOCK]
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
