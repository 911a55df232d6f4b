"""Verdicts on the claims of chapter 5, from enumerated worlds and closed forms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from inspect import signature
from itertools import permutations, product

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter5_worlds import (
    STEPS,
    adaptive_loss,
    boolean,
    clipped_laplace_error,
    count_error,
    errors_by_prior,
    laws,
    least_variance_factors,
    loss,
    loss_individual,
    mean_over_truths,
    printed_deltas,
    priors,
    squared_error,
    two_persons,
)
from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.query.facts import DatasetFacts
from shoal.query.price import AnswerCost, protocol_1_total, total
from shoal.query.refinement import Factors, Labels, combined, joint, movable, nominal, refine
from shoal.query.spec import cost, parse

judge = judging("thesis/chapter5")

_ONE = Fraction(1)
_SLACK = 1e-9
_EPSILONS = (0.1, math.log(2), 1.0, 2.0)


def claims(*, quick: bool) -> Iterator[Claim]:
    """All statements of the chapter, in its order."""
    yield from _mechanism()
    yield from _algorithm()
    yield from _branches()
    yield from _deltas()
    yield from _several(6 if quick else 9)
    yield from _boolean()
    yield from _continuous()
    yield from _discussion()


def _mechanism() -> Iterator[Claim]:
    truths = range(0, STEPS + 1, 3)
    by_truth = {truth: errors_by_prior(truth, _ONE) for truth in truths}
    nearer = [after <= before for found in by_truth.values() for before, after in found.values()]
    yield judge("whatever-prior-knowledge-answer", nearer, len(truths))
    quarter = by_truth[STEPS // 4]
    good, none, wrong = (quarter[name][1] for name in ("around 1/4", "uniform", "around 3/4"))
    yield judge("better-prior-knowledge-better", [good < none, none < wrong], good, none, wrong)
    known = Counter(tuple(law) for law in laws(priors()["uniform"], Factors.individual(_ONE)))
    unique = sum(count == 1 for count in known.values())
    yield judge("sample-must-returned-refined", [unique > 0], unique, known.total())
    statistic = loss(permutations(laws(priors()["uniform"], Factors.statistical(_ONE)), 2))
    yield judge("u-e-epsilon-d", [statistic <= 1 + _SLACK], statistic)
    found = {name: loss_individual(prior, Factors.individual(_ONE)) for name, prior in priors().items()}
    added, replaced = (max(pair[side] for pair in found.values()) for side in (0, 1))
    yield judge("query-about-person-u", [added <= 1 + _SLACK, replaced <= 1 + _SLACK], added, replaced)
    yield judge("same-factors-give-2epsilon", [1.9 < replaced <= 2 + _SLACK], replaced)


def _algorithm() -> Iterator[Claim]:
    best = least_variance_factors(1.0, 41)
    yield judge(
        "all-allowed-factors-u",
        [math.isclose(best[0], math.e), math.isclose(best[1], 1 / math.e)],
        41**2,
        best[0],
        best[1],
    )
    lifts = [Factors.statistical(_ONE, Fraction(share, 10)) for share in (2, 5, 8)]
    yield judge(
        "statistical-queries-larger-u",
        [lifts[0].up < lifts[1].up < lifts[2].up, lifts[0].down < lifts[1].down < lifts[2].down],
        ", ".join(f"({float(f.up):.3f}, {float(f.down):.3f})" for f in lifts),
    )
    factors = Factors.individual(_ONE)
    printed = (factors.up - 1) / (factors.up - factors.down)
    mass = float(factors.up * printed + factors.down * (1 - printed))
    rest = float(1 - printed - (1 - factors.down) / (factors.up - factors.down))
    right = all(sum(law) == 1 for prior in priors().values() for law in laws(prior, factors))
    yield judge(
        "resulting-probabilities-add-up",
        [abs(mass - 1) < _SLACK, rest != 0],
        mass,
        rest,
        "all" if right else "not all",
    )


def _branches() -> Iterator[Claim]:
    pairs = [(1 + up / 10, down / 10) for up in range(1, 30) for down in range(10)]
    masses = [(1 - down) / (up - down) for up, down in pairs]
    skewed = boolean(Fraction(1, 100), _ONE)
    wanted = float(Factors.individual(_ONE).mass_up)
    yield judge(
        "continuous-prior-knowledge-there",
        [*(0 <= mass <= 1 for mass in masses), wanted not in (0.0, 0.01, 0.99, 1.0)],
        counted(0 <= mass <= 1 for mass in masses),
        wanted,
    )
    factors = Factors.individual(_ONE)
    ratios = [law[value] / (Fraction(99, 100), Fraction(1, 100))[value] for law in skewed for value in (0, 1)]
    yield judge(
        "second-branch-too-differential",
        (factors.down <= ratio <= factors.up for ratio in ratios),
        ", ".join(f"{float(ratio):.4f}" for ratio in ratios),
        float(factors.down),
        float(factors.up),
    )


def _deltas() -> Iterator[Claim]:
    person, statistic = printed_deltas(Fraction(1, 5))
    yield judge("epsilon-differential-privacy-query", [person <= 0.2 + _SLACK], person)
    yield judge("statistical-query-may-move", [statistic <= 0.2 + _SLACK], statistic)
    fifth = Fraction(1, 5)
    alone, many = (
        float(movable(Fraction(6931, 10_000), fifth, individual=individual, replace_one=False))
        for individual in (True, False)
    )
    yield judge("query-about-person-gains", [alone > many], alone, many)


def _several(questions: int) -> Iterator[Claim]:
    laws_of_two = two_persons(_ONE)
    both = laws_of_two["both there"]
    others = [laws_of_two[name] for name in ("first missing", "second missing")]
    ratios = {round(float(a / b), 6) for other in others for a, b in zip(both, other, strict=True)}
    expected = {round(math.exp(-1), 6), round(2 - math.exp(-1), 6)}
    yield judge(
        "two-persons-asked-about", [ratios == expected], ", ".join(f"{ratio:.4f}" for ratio in sorted(ratios))
    )
    disjoint = loss(pair for other in others for pair in ((both, other), (other, both)))
    price = total([AnswerCost(_ONE, person=("id", "1")), AnswerCost(_ONE, person=("id", "2"))])
    same = total([AnswerCost(_ONE, person=("id", "1")), AnswerCost(_ONE, person=("id", "1"))])
    yield judge(
        "answers-add-up-epsilon", [disjoint <= 1 + _SLACK, price == 1, same == 2], disjoint, price, same
    )
    facts = DatasetFacts(Schema((Attribute("group", "nominal", "other"),)), "add-remove")
    counts = [
        parse(
            {
                "kind": "protocol-1",
                "scale": "2",
                "query": {"kind": "count", "where": {"column": "group", "op": "==", "value": name}},
            },
            facts,
        )
        for name in ("a", "b", "c")
    ]
    together, apart = protocol_1_total(counts, facts), sum((cost(one, facts) for one in counts), Fraction(0))
    yield judge(
        "noise-queries-about-disjoint", [together == Fraction(1, 2), together < apart], together, apart
    )
    worst = adaptive_loss(_ONE, questions)
    yield judge(
        "whatever-priors-distances-sent", [worst <= 1 + _SLACK], questions, questions, worst, 2**questions
    )
    yield judge("adaptive-attack-interactive-mechanism", "holds partly" if worst <= 1 + _SLACK else "fails")


def _boolean() -> Iterator[Claim]:
    absent, present = (list(map(float, law)) for law in boolean(Fraction(1, 100), _ONE))
    laplace = math.exp(-1) / 2
    answers = {
        "Laplace": laplace * 0.99 + (1 - laplace) * 0.01,
        "refined": 0.99 * absent[1] + 0.01 * present[1],
    }
    yield judge(
        "1-ones-distribution-refined",
        [abs(answers["refined"] - 0.01) < abs(answers["Laplace"] - 0.01) / 2],
        answers["refined"],
        answers["Laplace"],
    )
    right = 0.99 * absent[0] + 0.01 * present[1]
    odds = 0.01 * math.exp(2) / (0.99 + 0.01 * math.exp(2))
    yield judge("laplace-noise-does-let", [right > 1 - laplace, right > 0.99], right, 1 - laplace, odds)


def _continuous() -> Iterator[Claim]:
    rows = {
        epsilon: (
            squared_error(epsilon, 0.5),
            clipped_laplace_error(1 / (2 * epsilon), 0.5),
            mean_over_truths(lambda truth, epsilon=epsilon: squared_error(epsilon, truth)),  # type: ignore[misc]
            mean_over_truths(
                lambda truth, epsilon=epsilon: clipped_laplace_error(1 / (2 * epsilon), truth)  # type: ignore[misc]
            ),
        )
        for epsilon in _EPSILONS
    }
    better = [pair for a, b, c, d in rows.values() for pair in (a < b, c < d)]
    yield judge(
        "about-person-refinement-much",
        better,
        ", ".join(f"{c:.3f} and {d:.3f} (ε = {e:.2g})" for e, (_, _, c, d) in rows.items()),
    )
    inside = [-math.expm1(-epsilon / 2) for epsilon in _EPSILONS]
    yield judge(
        "laplace-noise-sends-answer",
        (p < 0.5 for p in inside),
        ", ".join(f"{1 - p:.2f} (ε = {epsilon:.2g})" for epsilon, p in zip(_EPSILONS, inside, strict=True)),
    )


def _discussion() -> Iterator[Claim]:
    asked = list(signature(refine).parameters)
    yield judge(
        "simplicity-sensitivity-computed",
        ("sensitivity" not in name for name in asked),
        ", ".join(f"`{name}`" for name in asked),
    )
    parts = [Labels(("no", "yes"))] * 2
    prior = joint(parts, {("no", "no"): 1, ("no", "yes"): 2, ("yes", "no"): 7})
    distance = combined([nominal, nominal])
    impossible = [
        refine(prior, distance(prior.support, truth), Factors.statistical(_ONE)).probabilities()[3]
        for truth in range(prior.support.size)
    ]
    yield judge(
        "generality-categories-answered-easily", [all(sum(law) == 1 for law in boolean(Fraction(1, 3), _ONE))]
    )
    yield judge(
        "consistency-impossible-combination-employed",
        "holds partly" if max(impossible) == 0 else "fails",
        max(impossible),
    )
    wide = {people: count_error(people, _ONE) for people in (2, 10, 100, 1000)}
    yield judge(
        "where-range-large-against",
        [wide[2] < 2, wide[100] > 2, wide[1000] > wide[100]],
        ", ".join(f"{value:.3g} (n = {people})" for people, value in wide.items()),
    )
    corners = list(product(range(4), repeat=2))
    orders = {
        tuple(sorted(corners, key=lambda point: (length(*point), point)))
        for length in (lambda x, y: x + y, max, math.hypot)
    }
    yield judge("several-components-there-natural", [len(orders) == 3], len(corners), len(orders))
