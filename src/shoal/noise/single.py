"""One exact discrete Laplace draw in whole-number arithmetic: where a single number is asked for, arrays cost more.

In: a scale t/s and a source. Out: one integer, distributed exactly as those of `discrete_laplace`.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.noise.entropy import Source

_WORDS = 16


def single_laplace(t: int, s: int, source: Source) -> int:
    """A draw with P(x) proportional to exp(-|x| s / t), exactly.

    Guarantee:
        The same as `discrete_laplace`, of which this is the same algorithm, one draw at a time.

    Reference:
        Canonne, Kamath and Steinke, Algorithm 2; docs/proofs/laplace.md.

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
