"""Exact Bernoulli(exp(-x)) for rational x, and what follows from it. In: ratios and a source. Out: decisions.

No probability is ever a floating-point number: every decision is a rational coin flip of the source.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.noise.entropy import LARGEST_DENOMINATOR, Integers, Source, pick

_ONE = np.asarray(1, dtype=np.uint64)


def bernoulli_exp(numerator: Integers, denominator: Integers, source: Source) -> NDArray[np.bool_]:
    """True with probability exactly exp(-numerator / denominator), for any ratio of at least 0.

    Args:
        numerator: whole numbers of at least 0.
        denominator: whole numbers from 1 to 2^56 - 1; broadcast with the numerator.
        source: where the bits come from.

    Cost:
        Time linear in the number of flips, whatever the ratio; about three 16-bit digits each.

    Reference:
        Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", Algorithm 1.

    >>> from shoal.noise.entropy import Seeded
    >>> bernoulli_exp([0, 10**6], 1, Seeded(1)).tolist()
    [True, False]
    """
    above, under = np.broadcast_arrays(np.asarray(numerator), np.asarray(denominator))
    if above.dtype.kind not in "iu" or under.dtype.kind not in "iu":
        raise OptionError("exp-x-needs-x-ratio-whole")
    if above.size and (above.min() < 0 or under.min() < 1 or under.max() >= LARGEST_DENOMINATOR):
        raise OptionError("exp-x-needs-numerator-0-denominator")
    shape = above.shape
    above, under = above.ravel().astype(np.uint64), under.ravel().astype(np.uint64)
    whole, rest = np.divmod(above, under)
    result = bernoulli_exp_fraction(rest, under, source)
    # exp(-whole) is `whole` successes in a row, and a failure ends the row.
    alive = np.flatnonzero(result & (whole > 0))
    left = whole[alive]
    while alive.size:
        success = bernoulli_exp_one(alive.size, source)
        result[alive[~success]] = False
        alive, left = alive[success], left[success] - np.uint64(1)
        alive, left = alive[left > 0], left[left > 0]
    return result.reshape(shape)


def bernoulli_exp_fraction(
    above: NDArray[np.uint64], under: NDArray[np.uint64], source: Source
) -> NDArray[np.bool_]:
    """Bernoulli(exp(-x)) for x = above / under in [0, 1]; `under` is one number or as long as `above`.

    Flip coins of probability x/1, x/2, x/3 ... until the first failure: its number is odd with probability
    exp(-x). The coin x/j is a coin 1/j followed, on success, by a coin x, so no product can overflow.
    """
    failed = ~source.flip(above, under, above.size)
    result, alive = failed, np.flatnonzero(~failed)
    step = 1
    while alive.size:
        step += 1
        first = source.flip(_ONE, np.asarray(step, dtype=np.uint64), alive.size)
        second = np.flatnonzero(first)
        candidates = alive[second]
        both = source.flip(above[candidates], pick(under, candidates), candidates.size)
        if step % 2:
            result[alive] = True
            result[candidates[both]] = False
        alive = candidates[both]
    return result


def bernoulli_exp_one(n: int, source: Source) -> NDArray[np.bool_]:
    """n coins of probability exactly exp(-1): the first coin of the row above, 1/1, always succeeds."""
    result = np.zeros(n, dtype=np.bool_)
    alive = np.arange(n)
    step = 1
    while alive.size:
        step += 1
        success = source.flip(_ONE, np.asarray(step, dtype=np.uint64), alive.size)
        if step % 2:
            result[alive[~success]] = True
        alive = alive[success]
    return result


def geometric_exp(n: int, source: Source) -> NDArray[np.int64]:
    """n counts V with P(V >= v) = exp(-v): successes of exp(-1) before the first failure.

    >>> from shoal.noise.entropy import Seeded
    >>> bool((geometric_exp(100, Seeded(2)) >= 0).all())
    True
    """
    count = np.zeros(n, dtype=np.int64)
    alive = np.arange(n)
    while alive.size:
        alive = alive[bernoulli_exp_one(alive.size, source)]
        count[alive] += 1
    return count
