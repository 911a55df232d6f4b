"""Statements of chapter 5: enumerated worlds and closed forms come in, verdicts leave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from inspect import signature
from itertools import permutations, product

from papers.study import Claim, counted, judged
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
from shoal.query.composition import Charge, protocol_1_total, total
from shoal.query.facts import Facts
from shoal.query.refinement import Factors, Labels, combined, joint, movable, nominal, refine
from shoal.query.spec import cost, parse
from shoal.schema import Attribute, Schema

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
    yield Claim(
        "5.1",
        "Whatever the prior knowledge, the answer is more accurate than it.",
        f"Mean error of a refined answer below that of a sample of the prior in {counted(nearer)} cases (three priors, "
        f"{len(truths)} truths, ε = 1).",
        judged(nearer),
    )
    quarter = by_truth[STEPS // 4]
    good, none, wrong = (quarter[name][1] for name in ("around 1/4", "uniform", "around 3/4"))
    yield Claim(
        "5.1",
        "The better the prior knowledge, the better the answer; a wrong one makes it worse: pretending does not pay.",
        f"Truth 1/4, ε = 1: mean error {good:.3f} with a prior around it, {none:.3f} without knowledge, "
        f"{wrong:.3f} with a prior around 3/4.",
        judged([good < none, none < wrong]),
    )
    known = Counter(tuple(law) for law in laws(priors()["uniform"], Factors.individual(_ONE)))
    unique = sum(count == 1 for count in known.values())
    yield Claim(
        "5.1",
        "A sample must be returned and not the refined distribution, which can tell the truth exactly.",
        f"{unique} of {known.total()} truths have a law of their own; the others lie near an end of the range.",
        judged([unique > 0]),
    )
    statistic = loss(permutations(laws(priors()["uniform"], Factors.statistical(_ONE)), 2))
    yield Claim(
        "Proposition 2",
        "With α_u = e^ε α_d the mechanism is ε-differentially private for any query.",
        f"Largest loss between any two truths at ε = 1: {statistic:.4f}.",
        judged([statistic <= 1 + _SLACK]),
    )
    found = {name: loss_individual(prior, Factors.individual(_ONE)) for name, prior in priors().items()}
    added, replaced = (max(pair[side] for pair in found.values()) for side in (0, 1))
    yield Claim(
        "Proposition 3",
        "For a query about one person, α_u = e^ε and α_d = e^(-ε) give ε-differential privacy.",
        f"Largest loss at ε = 1: {added:.4f} for a record added or removed, {replaced:.4f} for one replaced, which "
        "section 2.9 calls neighbours too.",
        judged([added <= 1 + _SLACK, replaced <= 1 + _SLACK]),
    )
    yield Claim(
        "5.1",
        "The same factors give 2ε for a statistical query.",
        f"{replaced:.4f} at ε = 1, between two truths.",
        judged([1.9 < replaced <= 2 + _SLACK]),
    )


def _algorithm() -> Iterator[Claim]:
    best = least_variance_factors(1.0, 41)
    yield Claim(
        "5.2, Table 5.2",
        "Of all allowed factors, α_u = e^ε and α_d = e^(-ε) gain the most knowledge.",
        f"Least variance of {41**2} pairs of factors at ε = 1, truth 1/2: α_u = {best[0]:.4f}, α_d = {best[1]:.4f}.",
        judged([math.isclose(best[0], math.e), math.isclose(best[1], 1 / math.e)]),
    )
    lifts = [Factors.statistical(_ONE, Fraction(share, 10)) for share in (2, 5, 8)]
    yield Claim(
        "5.2",
        "For statistical queries a larger α_u comes with a larger α_d: more is gained near the truth, less far off.",
        "(α_u, α_d) at ε = 1: " + ", ".join(f"({float(f.up):.3f}, {float(f.down):.3f})" for f in lifts) + ".",
        judged(
            [lifts[0].up < lifts[1].up < lifts[2].up, lifts[0].down < lifts[1].down < lifts[2].down],
        ),
    )
    factors = Factors.individual(_ONE)
    printed = (factors.up - 1) / (factors.up - factors.down)
    mass = float(factors.up * printed + factors.down * (1 - printed))
    rest = float(1 - printed - (1 - factors.down) / (factors.up - factors.down))
    right = all(sum(law) == 1 for prior in priors().values() for law in laws(prior, factors))
    yield Claim(
        "5.2, Algorithm 5.1",
        "The resulting probabilities add up to one, in either branch of the algorithm.",
        f"As printed they add up to {mass:.2f} in the first branch (p_u and p_d are swapped), and the second divides "
        f"by 1 - p_u - p_d = {rest:.0f}. Corrected, {'all' if right else 'not all'} laws add up to 1 exactly.",
        judged([abs(mass - 1) < _SLACK, rest != 0]),
    )


def _branches() -> Iterator[Claim]:
    pairs = [(1 + up / 10, down / 10) for up in range(1, 30) for down in range(10)]
    masses = [(1 - down) / (up - down) for up, down in pairs]
    skewed = boolean(Fraction(1, 100), _ONE)
    wanted = float(Factors.individual(_ONE).mass_up)
    yield Claim(
        "5.1, 5.2",
        "With continuous prior knowledge there is a set with the mass that any factors ask for; otherwise there may be "
        "none.",
        f"The mass lies between 0 and 1 for {counted(0 <= mass <= 1 for mass in masses)} pairs of factors. A prior of "
        f"0.99 and 0.01 has no set of mass {wanted:.3f}.",
        judged([*(0 <= mass <= 1 for mass in masses), wanted not in (0.0, 0.01, 0.99, 1.0)]),
    )
    factors = Factors.individual(_ONE)
    ratios = [law[value] / (Fraction(99, 100), Fraction(1, 100))[value] for law in skewed for value in (0, 1)]
    yield Claim(
        "5.2, Algorithm 5.1",
        "In the second branch, too, differential privacy holds: the factor of the rest lies between the other two.",
        "Corrected as in the errata. Factors on the prior of 0.99 and 0.01 at ε = 1: "
        + ", ".join(f"{float(ratio):.4f}" for ratio in ratios)
        + f", all between {float(factors.down):.4f} and {float(factors.up):.4f}.",
        judged(factors.down <= ratio <= factors.up for ratio in ratios),
    )


def _deltas() -> Iterator[Claim]:
    person, statistic = printed_deltas(Fraction(1, 5))
    yield Claim(
        "5.2, Figure 5.2",
        "For (ε, δ)-differential privacy a query about one person may move δ to the true answer.",
        f"At (ln 2, 0.2) moving 0.2 needs δ = {person:.2f}; δ·exp(-ε) may be moved.",
        judged([person <= 0.2 + _SLACK]),
    )
    yield Claim(
        "5.2, Figure 5.3",
        "A statistical query may move δ/2.",
        f"At (ln 2, 0.2) moving 0.1 needs δ = {statistic:.2f}; δ/(1 + exp(ε)) may be moved.",
        judged([statistic <= 0.2 + _SLACK]),
    )
    fifth = Fraction(1, 5)
    alone, many = (
        float(movable(Fraction(6931, 10_000), fifth, individual=individual, replace_one=False))
        for individual in (True, False)
    )
    yield Claim(
        "5.2",
        "A query about one person gains more from δ than a statistical one.",
        f"Corrected, {alone:.3f} and {many:.3f} may be moved at (ln 2, 0.2).",
        judged([alone > many]),
    )


def _several(questions: int) -> Iterator[Claim]:
    laws_of_two = two_persons(_ONE)
    both = laws_of_two["both there"]
    others = [laws_of_two[name] for name in ("first missing", "second missing")]
    ratios = {round(float(a / b), 6) for other in others for a, b in zip(both, other, strict=True)}
    expected = {round(math.exp(-1), 6), round(2 - math.exp(-1), 6)}
    yield Claim(
        "Example 8",
        "With two persons asked about at ε = 1 and one removed, ratios take the values α_d and 2 - α_d only.",
        f"{', '.join(f'{ratio:.4f}' for ratio in sorted(ratios))}.",
        judged([ratios == expected]),
    )
    disjoint = loss(pair for other in others for pair in ((both, other), (other, both)))
    price = total([Charge(_ONE, person=("id", "1")), Charge(_ONE, person=("id", "2"))])
    same = total([Charge(_ONE, person=("id", "1")), Charge(_ONE, person=("id", "1"))])
    yield Claim(
        "5.3, Proposition 4",
        "Answers add up to Σ ε_i; about disjoint individuals they cost max ε_i together.",
        f"Loss {disjoint:.4f} for two persons at ε = 1 each and a record added or removed; charged {price}, and {same} "
        "for two questions about one person. A record replaced costs twice as much. Enumerated for all values in "
        "`tests/query/test_composition.py`.",
        judged([disjoint <= 1 + _SLACK, price == 1, same == 2]),
    )
    facts = Facts(Schema((Attribute("group", "nominal", "other"),)), "add-remove")
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
    yield Claim(
        "5.3, 5.4.1",
        "With noise, queries about disjoint sets of individuals cost the dearest of them; a sum of Δ(f_j)/λ_j in the "
        "place of Δ(f_1, ..., f_i)/λ answers fewer queries.",
        f"Three counts of disjoint groups at λ = 2: {together} by joint sensitivity, {apart} as a sum.",
        judged([together == Fraction(1, 2), together < apart]),
    )
    worst = adaptive_loss(_ONE, questions)
    yield Claim(
        "5.4.1, Protocol 2",
        "Whatever priors and distances are sent, all answers together lose ε at most.",
        f"{questions} questions about one person at ε/{questions}, each with the posterior of the answers before as "
        f"prior: loss {worst:.4f} over all {2**questions} sequences of answers, ε = 1. Refusals: `tests/query/ledger`.",
        judged([worst <= 1 + _SLACK]),
    )
    yield Claim(
        "5.4.2, Proposition 5, Corollary 2, 1.2",
        "No adaptive attack on an interactive mechanism of ε succeeds.",
        "True, by the composition theorem for adaptive queries. What is proved is that a function of given answers is "
        "private, which says nothing about questions that depend on answers.",
        "holds partly" if worst <= 1 + _SLACK else "fails",
    )


def _boolean() -> Iterator[Claim]:
    absent, present = (list(map(float, law)) for law in boolean(Fraction(1, 100), _ONE))
    laplace = math.exp(-1) / 2
    answers = {
        "Laplace": laplace * 0.99 + (1 - laplace) * 0.01,
        "refined": 0.99 * absent[1] + 0.01 * present[1],
    }
    yield Claim(
        "5.5.1",
        "With 1% of ones, the distribution of refined answers is much closer to that of the attribute.",
        f"P(1) = {answers['refined']:.4f}, against {answers['Laplace']:.3f} with rounded Laplace noise.",
        judged([abs(answers["refined"] - 0.01) < abs(answers["Laplace"] - 0.01) / 2]),
    )
    right = 0.99 * absent[0] + 0.01 * present[1]
    odds = 0.01 * math.exp(2) / (0.99 + 0.01 * math.exp(2))
    yield Claim(
        "5.5.1",
        "Laplace noise does not let the user exploit prior knowledge, and refinement outperforms it for Boolean "
        "attributes.",
        f"A refined answer is right with probability {right:.4f}, a rounded noisy one with {1 - laplace:.3f}. But the "
        f"user may weigh a noisy answer with the prior: then 1 never has more than {odds:.1%}, the best guess is "
        "always 0, and it is right with 0.99, more often than a refined answer.",
        judged([right > 1 - laplace, right > 0.99]),
    )


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
    yield Claim(
        "5.5, 5.5.2, 5.6, 5.7",
        "About one person, refinement is much more accurate than Laplace noise, even without prior knowledge.",
        "Against Laplace noise of the fair scale 1/(2ε), put back into [0, 1], mean squared error over all truths: "
        + ", ".join(f"{c:.3f} and {d:.3f} (ε = {e:.2g})" for e, (_, _, c, d) in rows.items())
        + f"; better in {counted(better)} (with truth 1/2). Always answering 1/2 has 0.083: below ε = 1 no answer is "
        "worth it.",
        judged(better),
    )
    inside = [-math.expm1(-epsilon / 2) for epsilon in _EPSILONS]
    yield Claim(
        "5.5, 5.6",
        "Laplace noise sends the answer out of range with great probability, refinement never.",
        "Out of [0, 1] with probability "
        + ", ".join(f"{1 - p:.2f} (ε = {epsilon:.2g})" for epsilon, p in zip(_EPSILONS, inside, strict=True))
        + ", more than the printed table says; more likely out than in "
        + f"at {counted(p < 0.5 for p in inside)} ε. Putting it back costs nothing.",
        judged(p < 0.5 for p in inside),
    )


def _discussion() -> Iterator[Claim]:
    asked = list(signature(refine).parameters)
    yield Claim(
        "5.4.1, 5.6, 5.7",
        "Simplicity: no sensitivity has to be computed.",
        f"`shoal.query.refinement.refine` takes {', '.join(f'`{name}`' for name in asked)}; nothing of it depends on a "
        "sensitivity.",
        judged("sensitivity" not in name for name in asked),
    )
    parts = [Labels(("no", "yes"))] * 2
    prior = joint(parts, {("no", "no"): 1, ("no", "yes"): 2, ("yes", "no"): 7})
    distance = combined([nominal, nominal])
    impossible = [
        refine(prior, distance(prior.support, truth), Factors.statistical(_ONE)).probabilities()[3]
        for truth in range(prior.support.size)
    ]
    yield Claim(
        "5.6",
        "Generality: categories are answered as easily as numbers.",
        "Nominal, ordinal and taxonomic distances refine alike: `tests/query/refinement`.",
        judged([all(sum(law) == 1 for law in boolean(Fraction(1, 3), _ONE))]),
    )
    yield Claim(
        "5.6",
        "Consistency: an impossible combination (employed and on benefits) is never answered; with noise there is no "
        "way to avoid it.",
        f"Its probability is {max(impossible)} for every truth. With noise, moving the answer to the nearest possible "
        "one avoids it as well, at no cost in privacy.",
        "holds partly" if max(impossible) == 0 else "fails",
    )
    wide = {people: count_error(people, _ONE) for people in (2, 10, 100, 1000)}
    yield Claim(
        "5.6, 5.7",
        "Where the range is large against the sensitivity and nothing is known, noise is better.",
        "Variance of a refined count of n people, ε = 1: "
        + ", ".join(f"{value:.3g} (n = {people})" for people, value in wide.items())
        + "; Laplace noise has 2.",
        judged([wide[2] < 2, wide[100] > 2, wide[1000] > wide[100]]),
    )
    corners = list(product(range(4), repeat=2))
    orders = {
        tuple(sorted(corners, key=lambda point: (length(*point), point)))
        for length in (lambda x, y: x + y, max, math.hypot)
    }
    yield Claim(
        "5.2, Example 7",
        "For several components there is no natural distance: it depends on the application.",
        f"Sums, maxima and Euclidean distances put {len(corners)} points of a square into {len(orders)} different "
        "orders; Shoal lets the query name its distance.",
        judged([len(orders) == 3]),
    )
