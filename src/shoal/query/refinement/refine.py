"""The refined prior: exact probabilities of all answers from a prior, distances from the truth and factors.

The truth and its distances are private, so the work must not follow from them. Nothing is sorted: the distances at
which the probability changes are found by bisection over all values that a distance can have, and every step of it is
a pass over all answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.query.refinement.factors import Factors
from shoal.query.refinement.priors import Prior

Mask = NDArray[np.bool_]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """The law of the answer. It is secret: only one sample of it may be published.

    Attributes:
        groups: the group of each answer; inside a group probabilities are in the ratio of the prior.
        chances: the probability of each group, in parts of `common`; they add up to it.
        common: a whole number that follows from public facts alone.
    """

    prior: Prior
    groups: NDArray[np.int8]
    chances: tuple[int, ...]
    common: int

    def probabilities(self) -> list[Fraction]:
        """The exact probability of every answer, in the order of the support."""
        masses = [int((self.prior.weights * (self.groups == number)).sum()) for number in range(self.size)]
        return [
            Fraction(self.chances[group] * weight, self.common * masses[group]) if weight else Fraction(0)
            for group, weight in zip(self.groups.tolist(), self.prior.weights.tolist(), strict=True)
        ]

    @property
    def size(self) -> int:
        return len(self.chances)


def refine(
    prior: Prior, distances: NDArray[Any] | None, factors: Factors, moved: Fraction = Fraction(0)
) -> Refined:
    """Raise the prior near the truth and lower it far from it, as far as the factors allow.

    The nearest answers that hold at most the mass p_u together are multiplied by `up`, the farthest ones that hold at
    most 1 - p_u by `down`; answers at the distance between, if there are any, share what is left, which is between
    the two. Answers at one distance have one factor.

    Args:
        prior: what is expected of the answer.
        distances: from the truth, for every answer; None if there is no truth (the person is not there): the prior
            itself is the law then.
        factors: see `Factors.individual` and `Factors.statistical`.
        moved: probability taken from the farthest answers and given to the nearest, see `movable`.

    Guarantee:
        Without `moved`, the probability of every answer is within `down` .. `up` times its prior mass, exactly. With
        it, the probability of every set of answers is off from such a law by at most `moved`.

    Cost:
        A pass over the answers for every bit of a distance, whatever the distances are.

    Reference:
        Thesis, Algorithm 5.1, with p_u and p_d in their places and the sets' own masses in α_ud;
        docs/proofs/refinement.md.

    >>> from shoal.query.refinement.distances import nominal
    >>> from shoal.query.refinement.priors import categorical
    >>> prior = categorical({"0": "0.99", "1": "0.01"})
    >>> law = refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(1)))
    >>> [round(float(p), 6) for p in law.probabilities()]
    [0.972817, 0.027183]
    """
    if distances is None:
        return Refined(prior, np.zeros(prior.support.size, dtype=np.int8), (1,), 1)
    keys, total = _keys(np.asarray(distances)), prior.total
    # every probability below is a whole number of parts of this
    parts = lcm(factors.up.denominator, factors.down.denominator, moved.denominator)
    up, down = int(factors.up * parts), int(factors.down * parts)
    raised = factors.mass_up * total
    least = -(-raised.numerator // raised.denominator)

    def within(mask: Mask) -> int:
        return int(np.multiply(prior.weights, mask).sum())

    border = _first(keys, lambda key: within(keys <= key) >= least)
    # the sphere at the border belongs to the raised ones only if it fits as a whole
    fits = within(keys <= border) == raised
    near = border - (not fits)
    groups = (keys > near).astype(np.int8) + (keys > border)
    rates = (up, 0, down)
    masses = [within(groups == number) for number in range(3)]
    high, low = up * masses[0], down * masses[2]
    chances = (high, parts * total - high - low, low)
    if not moved:
        return Refined(prior, groups, chances, parts * total)
    return _moved(prior, keys, groups, rates, chances, int(moved * parts) * total, parts * total)


def _moved(
    prior: Prior,
    keys: NDArray[np.int64],
    groups: NDArray[np.int8],
    rates: tuple[int, int, int],
    chances: tuple[int, int, int],
    amount: int,
    common: int,
) -> Refined:
    """Take `amount` from the farthest answers, one distance after the other, and give it to the nearest ones."""
    # impossible answers are nobody's nearest
    nearest = keys == np.maximum(keys, (prior.weights == 0) * np.iinfo(np.int64).max).min()
    weights = [np.multiply(prior.weights, (groups == number) & ~nearest) for number in range(3)]

    def chance(mask: Mask) -> int:
        """The probability of these answers but the nearest; the middle group is at one distance, so all or none."""
        inner, middle, outer = (int(np.multiply(one, mask).sum()) for one in weights)
        return rates[0] * inner + chances[1] * (middle > 0) + rates[2] * outer

    border = _first(keys, lambda key: chance(keys > key) <= amount)
    at, beyond = (keys == border) & ~nearest, (keys > border) & ~nearest
    kept = ~(nearest | at | beyond)
    # 0 nearest, 1 to 3 as they were, 4 at the border, 5 beyond it
    final = (groups + 1) * kept + 4 * at + 5 * beyond
    spared = max(chance(keys >= border) - amount, 0)
    untouched = [chance(kept & (groups == number)) for number in range(3)]
    return Refined(
        prior,
        final.astype(np.int8),
        (common - sum(untouched) - spared, *untouched, spared, 0),
        common,
    )


def _keys(distances: NDArray[Any]) -> NDArray[np.int64]:
    """Distances as whole numbers in the same order, so that one is found by its bits.

    >>> _keys(np.array([0.5, -0.0, 0.0, -2.0, np.inf])).argsort(kind="stable").tolist()
    [3, 1, 2, 0, 4]
    """
    if distances.dtype.kind != "f":
        return distances
    # 0.0 is added to make the two zeros one
    bits = (distances.astype(np.float64) + 0.0).view(np.int64)
    keys: NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return keys


def _first(keys: NDArray[np.int64], holds: Callable[[Any], bool]) -> int:
    """The least number for which something holds that holds from there on: as many steps as a key has bits."""
    ends = np.iinfo(keys.dtype)
    low, high = int(ends.min), int(ends.max)
    for _ in range(ends.bits):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(keys.dtype.type(middle)) else (middle + 1, high)
    return high
