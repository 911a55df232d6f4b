"""One exact sample. In: a refined prior and a source of bits. Out: the number of an answer."""

from __future__ import annotations

import math

import numpy as np

from shoal.noise import Source
from shoal.query.refinement.refine import Refined


def sample(refined: Refined, source: Source) -> int:
    """The number of one answer, drawn with exactly the probabilities of the law.

    A segment is drawn by whole numbers over the common denominator of all chances, an answer inside it by the
    whole-number weights of the prior: no probability is ever rounded.

    >>> from fractions import Fraction
    >>> from shoal.noise import Seeded
    >>> from shoal.query.refinement import Factors, Labels, nominal, refine, uniform
    >>> prior = uniform(Labels(("a", "b")))
    >>> sample(refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(30))), Seeded(1))
    1
    """
    common = math.lcm(*(chance.denominator for chance in refined.chances))
    drawn = whole_below(common, source)
    start, end, below = 0, 0, 0
    for stop, chance in zip(refined.ends, refined.chances, strict=True):
        start, end = end, stop
        below += chance.numerator * (common // chance.denominator)
        if drawn < below:
            break
    # sums over all answers, not only over the segment: which one was drawn must not show in the time
    sums = np.cumsum(refined.prior.weights[refined.order])
    before = int(sums[start - 1]) if start else 0
    place = np.searchsorted(sums, before + int(source.below(int(sums[end - 1]) - before, 1)[0]), side="right")
    return int(refined.order[int(place)])


def whole_below(bound: int, source: Source) -> int:
    """A uniform whole number below a bound of any size, without bias: too large numbers are drawn again.

    >>> from shoal.noise import Seeded
    >>> whole_below(1, Seeded(1)), whole_below(10**30, Seeded(1)) < 10**30
    (0, True)
    """
    bits = (bound - 1).bit_length()
    words = -(-bits // 64)
    while True:
        drawn = 0
        for word in source.words(words).tolist():
            drawn = drawn << 64 | word
        drawn >>= 64 * words - bits
        if drawn < bound:
            return drawn
