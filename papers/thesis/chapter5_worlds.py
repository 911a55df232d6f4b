"""Small worlds of chapter 5: exact privacy losses and errors by prior, truth and budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from shoal.columns.kinds import Lattice
from shoal.query.refinement import (
    Factors,
    Labels,
    Points,
    Prior,
    absolute,
    categorical,
    nominal,
    normal,
    refine,
    uniform,
)

Law = list[Fraction]
# points of a small continuous world
STEPS = 24


def unit_interval(steps: int) -> Points:
    """Points of [0, 1]."""
    return Points(Lattice(Fraction(0), Fraction(1), Fraction(1, steps)))


def priors() -> dict[str, Prior]:
    """What somebody may expect of a number of [0, 1]: nothing, something right about 1/4, something far off."""
    points = unit_interval(STEPS)
    return {
        "uniform": uniform(points),
        "around 1/4": normal(points.lattice, Fraction(1, 4), Fraction(1, 8)),
        "around 3/4": normal(points.lattice, Fraction(3, 4), Fraction(1, 8)),
    }


def laws(prior: Prior, factors: Factors, moved: Fraction = Fraction(0)) -> list[Law]:
    """The law of the answer for every truth."""
    return [
        refine(prior, absolute(prior.support, truth), factors, moved).probabilities()
        for truth in range(prior.support.size)
    ]


def loss(pairs: Iterable[tuple[Law, Law]]) -> float:
    """The largest logarithm of a ratio of probabilities, over all pairs of laws."""
    return max(math.log(a / b) for one, other in pairs for a, b in zip(one, other, strict=True) if a)


def loss_individual(prior: Prior, factors: Factors) -> tuple[float, float]:
    """ε of a question about one person: record added or removed, record replaced."""
    known = laws(prior, factors)
    absent = refine(prior, None, factors).probabilities()
    either = [pair for law in known for pair in ((law, absent), (absent, law))]
    return loss(either), loss(permutations(known, 2))


def delta_needed(pairs: Iterable[tuple[Law, Law]], factor: Fraction) -> float:
    """The least δ for which P1(S) <= factor · P2(S) + δ for all sets S and all pairs of laws."""
    return float(
        max(
            sum((max(a - factor * b, Fraction(0)) for a, b in zip(one, other, strict=True)), Fraction(0))
            for one, other in pairs
        )
    )


def printed_deltas(delta: Fraction) -> tuple[float, float]:
    """δ that the two schemes of section 5.2 really need at ε = ln 2: moving δ (one person), moving δ/2 (statistics)."""
    prior = priors()["uniform"]
    person = Factors(Fraction(2), Fraction(1, 2))
    absent = refine(prior, None, person).probabilities()
    alone = [pair for law in laws(prior, person, delta) for pair in ((law, absent), (absent, law))]
    # α_u = 4/3 and α_d = 2/3, so that half of the mass is raised as in Figure 5.3
    statistic = laws(prior, Factors(Fraction(4, 3), Fraction(2, 3)), delta / 2)
    return delta_needed(alone, Fraction(2)), delta_needed(permutations(statistic, 2), Fraction(2))


def expected_error(law: Law, truth: int) -> float:
    """Mean distance of an answer from the truth, in units of the interval."""
    return sum(float(p) * abs(i - truth) for i, p in enumerate(law)) / (len(law) - 1)


def errors_by_prior(truth: int, epsilon: Fraction) -> dict[str, tuple[float, float]]:
    """Mean error of a sample of the prior and of a refined answer, by prior."""
    found = {}
    for name, prior in priors().items():
        own = [prior.mass(i) for i in range(prior.support.size)]
        refined = refine(prior, absolute(prior.support, truth), Factors.individual(epsilon)).probabilities()
        found[name] = expected_error(own, truth), expected_error(refined, truth)
    return found


def squared_error(epsilon: float, truth: float) -> float:
    """Of a refined answer about one person, uniform prior on [0, 1], in closed form."""
    up, down = math.exp(epsilon), math.exp(-epsilon)
    size = (1 - down) / (up - down)
    start = min(max(truth - size / 2, 0.0), 1 - size)

    def integral(low: float, high: float) -> float:
        return ((high - truth) ** 3 - (low - truth) ** 3) / 3

    return down * integral(0.0, 1.0) + (up - down) * integral(start, start + size)


def clipped_laplace_error(scale: float, truth: float) -> float:
    """Mean squared error of truth plus Laplace noise, put back into [0, 1]."""

    def side(room: float) -> float:
        return 2 * scale**2 - math.exp(-room / scale) * (2 * scale**2 + 2 * scale * room)

    return (side(truth) + side(1 - truth)) / 2


def mean_over_truths(error: Callable[[float], float], count: int = 400) -> float:
    return sum(error((i + 0.5) / count) for i in range(count)) / count


def two_persons(epsilon: Fraction) -> dict[str, Law]:
    """Tables 5.3 and 5.4: laws of two answers about two persons, both 0, with one of them missing or not."""
    prior = uniform(Labels(("0", "1")))
    factors = Factors.individual(epsilon)
    here = refine(prior, nominal(prior.support, 0), factors).probabilities()
    missing = refine(prior, None, factors).probabilities()
    return {
        "both there": [a * b for a in here for b in here],
        "first missing": [a * b for a in missing for b in here],
        "second missing": [a * b for a in here for b in missing],
    }


def boolean(share: Fraction, epsilon: Fraction) -> list[Law]:
    """Laws of the answer for the truths 0 and 1, if 1 is expected with this probability."""
    prior = categorical({"0": 1 - share, "1": share})
    return [
        refine(prior, nominal(prior.support, truth), Factors.individual(epsilon)).probabilities()
        for truth in (0, 1)
    ]


def adaptive_loss(epsilon: Fraction, questions: int) -> float:
    """The worst loss of questions about one person, each with the posterior of the answers before as its prior.

    All sequences of answers, for the truths 0 and 1 against a person who is not there.
    """
    share = epsilon / questions
    factors = Factors.individual(share)
    worst = 0.0
    for truth, answers in product((0, 1), product((0, 1), repeat=questions)):
        ratio, belief = Fraction(1), Fraction(1, 2)
        for answer in answers:
            prior = categorical({"0": 1 - belief, "1": belief})
            laws_by_truth = [
                refine(prior, nominal(prior.support, one), factors).probabilities()[answer] for one in (0, 1)
            ]
            ratio *= laws_by_truth[truth] / prior.mass(answer)
            odds = belief * laws_by_truth[1] / ((1 - belief) * laws_by_truth[0])
            # priors must be decimals of some length; which, is the attacker's business
            belief = (odds / (1 + odds)).limit_denominator(10**6)
        worst = max(worst, abs(math.log(ratio)))
    return worst


def count_error(people: int, epsilon: Fraction) -> float:
    """Variance of a refined count about the truth in the middle, without prior knowledge."""
    prior = uniform(Points(Lattice(Fraction(0), Fraction(people), Fraction(1))))
    law = refine(prior, absolute(prior.support, people // 2), Factors.statistical(epsilon)).probabilities()
    return sum(float(p) * (i - people // 2) ** 2 for i, p in enumerate(law))


def least_variance_factors(epsilon: float, grid: int) -> tuple[float, float]:
    """Of all factors that a question about one person may use, those with the least variance at the truth 1/2."""

    def variance(pair: Sequence[float]) -> float:
        up, down = pair
        size = (1 - down) / (up - down) if up > down else 0.0
        return (up * size**3 + down * (1 - size**3)) / 12

    ups = np.linspace(1, math.exp(epsilon), grid).tolist()
    downs = np.linspace(math.exp(-epsilon), 1, grid).tolist()
    best: tuple[float, float] = min(product(ups, downs), key=variance)
    return best
