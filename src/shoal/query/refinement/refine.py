"""The refined prior. In: a prior, distances from the truth, factors. Out: exact probabilities of all answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.query.refinement.factors import Factors
from shoal.query.refinement.priors import Prior


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """The law of the answer. It is secret: only one sample of it may leave the house.

    Attributes:
        order: numbers of the answers of positive prior mass, nearest first.
        ends: where segments of that order end; inside a segment probabilities are in the ratio of the prior.
        chances: the probability of each segment; they add up to 1.
    """

    prior: Prior
    order: NDArray[np.int64]
    ends: tuple[int, ...]
    chances: tuple[Fraction, ...]

    def probabilities(self) -> list[Fraction]:
        """The exact probability of every answer, in the order of the support."""
        found = [Fraction(0)] * self.prior.support.size
        start = 0
        for end, chance in zip(self.ends, self.chances, strict=True):
            members = self.order[start:end]
            mass = int(self.prior.weights[members].sum())
            for number in members.tolist():
                found[number] = chance * int(self.prior.weights[number]) / mass
            start = end
        return found


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
        One sort of the answers.

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
    possible = np.flatnonzero(prior.weights)
    if distances is None:
        return Refined(prior, possible, (possible.size,), (Fraction(1),))
    far = np.asarray(distances)[possible]
    by_distance = np.argsort(far, kind="stable")
    order, far = possible[by_distance], far[by_distance]
    sums = np.cumsum(prior.weights[order])
    # one entry per distance: where its answers end, and the weight up to there
    ends = np.append(np.flatnonzero(far[1:] > far[:-1]) + 1, far.size)
    spheres = sums[ends - 1]
    total = int(sums[-1])
    raised = factors.mass_up * total
    inner = int(np.searchsorted(spheres, raised.numerator // raised.denominator, side="right"))
    outer = int(np.searchsorted(spheres, -(-raised.numerator // raised.denominator), side="left"))
    near, middle = (int(ends[inner - 1]) if inner else 0), int(ends[outer])
    near_mass = Fraction(int(sums[near - 1]) if near else 0, total)
    far_mass = 1 - Fraction(int(sums[middle - 1]), total)
    high, low = factors.up * near_mass, factors.down * far_mass
    segments = [(0, near, high), (near, middle, 1 - high - low), (middle, order.size, low)]
    if moved:
        segments = _move(segments, ends, sums, moved)
    kept = [(end, chance) for start, end, chance in segments if end > start]
    return Refined(prior, order, tuple(end for end, _ in kept), tuple(chance for _, chance in kept))


# from, to, probability
Segment = tuple[int, int, Fraction]


def _move(
    segments: list[Segment], ends: NDArray[np.int64], sums: NDArray[np.int64], amount: Fraction
) -> list[Segment]:
    """Take `amount` from the farthest answers, one distance after the other, and give it to the nearest ones."""

    def part(segment: Segment, start: int, end: int) -> Segment:
        """The share of a segment's probability that the answers from `start` to `end` have by the prior."""
        whole = weight(segment[0], segment[1])
        return start, end, segment[2] * weight(start, end) / whole if whole else Fraction(0)

    def weight(start: int, end: int) -> int:
        return (int(sums[end - 1]) if end else 0) - (int(sums[start - 1]) if start else 0)

    nearest = int(ends[0])
    others = [
        part(segment, max(segment[0], nearest), segment[1]) for segment in segments if segment[1] > nearest
    ]
    left, kept = amount, []
    for segment in reversed(others):
        start, end, chance = segment
        if chance <= left:
            left -= chance
            kept.append((start, end, Fraction(0)))
            continue
        if left:
            # the distance at which the amount is used up: farther answers lose everything, nearer ones nothing
            border = int(sums[end - 1]) - left * weight(start, end) / chance
            number = int(
                np.searchsorted(sums[ends - 1], border.numerator // border.denominator, side="right")
            )
            edge, last = (int(ends[number - 1]) if number else 0), int(ends[number])
            spared = part(segment, edge, end)[2] - left
            kept += [(last, end, Fraction(0)), (edge, last, spared), part(segment, start, edge)]
            left = Fraction(0)
        else:
            kept.append(segment)
    return [(0, nearest, 1 - sum((chance for _, _, chance in kept), Fraction(0))), *reversed(kept)]
