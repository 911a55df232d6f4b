"""One exact sample of a refined prior, with the same work whatever its probabilities are."""

from __future__ import annotations

import numpy as np

from shoal.noise import Source
from shoal.query.refinement.refine import Refined


def sample(refined: Refined, source: Source, *, known: bool = True) -> int:
    """The number of one answer, drawn with exactly the probabilities of the law.

    A group is drawn by whole numbers over the common denominator of all chances, an answer inside it by the
    whole-number weights of the prior: no probability is ever rounded.

    Args:
        refined: the law.
        source: where the bits come from.
        known: whether there is a truth at all; if not, the answer is drawn from the prior, with the same work.

    >>> from fractions import Fraction
    >>> from shoal.noise import Seeded
    >>> from shoal.query.refinement import Factors, Labels, nominal, refine, uniform
    >>> prior = uniform(Labels(("a", "b")))
    >>> sample(refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(30))), Seeded(1))
    1
    """
    drawn, below, group = whole_below(refined.common, source), 0, 0
    for chance in refined.chances[:-1]:
        below += chance
        group += drawn >= below
    members = (refined.groups == group) | (not known)
    sums = np.cumsum(np.multiply(refined.prior.weights, members))
    place = fraction_of(int(sums[-1]), source)
    return int(np.count_nonzero(sums <= place))


def fraction_of(bound: int, source: Source) -> int:
    """A uniform whole number below a bound: the whole part of the bound times a uniform real number.

    Unlike `whole_below` it draws the same number of words whatever the bound, except once in 2^66 draws where it is at
    most 2^62: there more digits of the real number are needed.

    >>> from shoal.noise import Seeded
    >>> fraction_of(1, Seeded(1)), fraction_of(2**62, Seeded(1)) < 2**62
    (0, True)
    """
    digits, bits = 0, 0
    while True:
        for word in source.words(2 if not bits else 1).tolist():
            digits, bits = digits << 64 | word, bits + 64
        low, high = digits * bound >> bits, ((digits + 1) * bound - 1) >> bits
        if low == high:
            return low


def whole_below(bound: int, source: Source) -> int:
    """A uniform whole number below a public bound of any size, without bias: too large numbers are drawn again.

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
