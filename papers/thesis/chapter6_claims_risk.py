"""Verdicts on the claims about linkages and Scores in section 6.4.3."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter6_print import KS, TABLE_6_1, TABLE_6_3, TABLE_6_4
from papers.thesis.chapter6_runs import EPSILONS, Found, factors
from papers.thesis.chapter6_verdicts import ABOUT, HIGH, LOW, about, extent, nearest, rank_correlation

judge = judging("thesis/chapter6")

WHERE = "6.4.3"


def risks(census: Found, adult: Found) -> list[Claim]:
    """All statements on RL and Score, in the order of the text."""
    return [*_linkages(census, adult), *_scores(census, adult)]


def _linkages(census: Found, adult: Found) -> Iterator[Claim]:
    signs = [
        rank_correlation([f.sse(k, e) for k in f.ks], [f.linkage(k, e) for k in f.ks]) < 0
        for f in (census, adult)
        for e in EPSILONS
    ]
    alone = [
        rank_correlation(
            [one.sse for one in f.alone[name].values()], [one.linkage for one in f.alone[name].values()]
        )
        < 0
        for f in (census, adult)
        for name in ("MDAV", "insensitive")
    ]
    yield judge("rl-behaves-other-way", [*signs, *alone], counted(signs), counted(alone))
    highest = [
        f.alone["MDAV"][k].linkage
        >= max(f.alone["insensitive"][k].linkage, *(f.linkage(k, e) for e in EPSILONS))
        for f in (census, adult)
        for k in f.ks[1:]
    ]
    yield judge("standard-mdav-most-linkages", highest)
    below = [k for k, one in census.alone["MDAV"].items() if one.linkage < 5]
    yield judge(
        "census-mdav-needs-k",
        [below[0] == 20, all(one.linkage < 5 for k, one in census.alone["MDAV"].items() if k >= 20)],
        below[0],
        census.alone["MDAV"][below[0]].linkage,
    )
    first = min(adult.alone["MDAV"])
    lower = [adult.alone["MDAV"][k].linkage < census.alone["MDAV"][k].linkage / 5 for k in adult.ks[1:]]
    yield judge(
        "adult-rl-much-lower",
        [*lower, adult.alone["MDAV"][first].linkage < 1],
        adult.alone["MDAV"][first].linkage,
        first,
        counted(lower),
    )
    yield from _insensitive_linkages(census, adult)
    yield from _chance(census, adult)
    yield from _one(census, adult)


def _insensitive_linkages(census: Found, adult: Found) -> Iterator[Claim]:
    less = {
        name: [f.alone["insensitive"][k].linkage / one.linkage for k, one in f.alone["MDAV"].items()]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield judge(
        "insensitive-clusters-link-slightly",
        [max(less["Census"]) <= 1.01, max(less["Adult"]) < min(1.0, *less["Census"])],
        ", ".join(f"{name} {extent(values)}" for name, values in less.items()),
    )
    similar = {
        name: [about(f.linkage(k, "10"), f.alone["insensitive"][k].linkage) for k in f.ks[1:]]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield judge(
        "insensitive-clusters-alone-epsilon",
        [*similar["Census"], *similar["Adult"]],
        ABOUT,
        counted(similar["Census"]),
        counted(similar["Adult"]),
    )


def _chance(census: Found, adult: Found) -> Iterator[Claim]:
    for name, f, n in (("Census", census, 1080), ("Adult", adult, 30_162)):
        guess = 100 / n
        mean = {e: sum(f.linkage(k, e) for k in f.ks) / len(f.ks) for e in LOW}
        last = f.ks[-1]
        yield judge(
            "epsilon-0-01-0-1",
            [about(mean["0.01"], guess), about(f.linkage(last, "0.1"), guess)],
            name,
            guess,
            mean["0.01"],
            mean["0.1"],
            f.linkage(last, "0.1"),
            last,
        )
    means = [census.noisy[k, "0.01"].linkage for k in census.ks]
    between = float(np.std([one.mean for one in means], ddof=1))
    within = math.sqrt(sum(one.error() ** 2 for one in means) / len(means))
    yield judge("large-spikes-these-curves", [about(between, within)], between, within)
    penalty = [f.linkage(f.ks[-1], e) / f.linkage(1, e) for f in (census, adult) for e in LOW]
    yield judge("low-epsilon-privacy-plain", (value < 2 for value in penalty), extent(penalty))


def _one(census: Found, adult: Found) -> Iterator[Claim]:
    start, end = census.linkage(1, "1"), census.linkage(nearest(census, 25), "1")
    yield judge("epsilon-1-census-rl", [about(start, 0.2), about(end, 1)], start, end)
    start, later = adult.linkage(1, "1"), [adult.linkage(k, "1") for k in adult.ks if k >= 20]
    yield judge(
        "epsilon-1-adult-rl",
        [about(start, 0.02), *(about(value, 0.05) for value in later)],
        start,
        extent(later),
    )
    orders = [
        (e, math.log10(f.alone["MDAV"][k].linkage / f.linkage(k, e)))
        for f in (census, adult)
        for k in KS
        if k in f.ks
        for e in EPSILONS
    ]
    hits = [round(order) == (2 if e in LOW else 1) for e, order in orders]
    yield judge(
        "against-mdav-rl-lower",
        hits,
        extent(order for e, order in orders if e in LOW),
        extent(order for e, order in orders if e in HIGH),
    )


def _scores(census: Found, adult: Found) -> Iterator[Claim]:
    against = {
        (name, k, e): factors(f.alone["MDAV"][k], f.noisy[k, e])[2].value
        for name, f in (("Census", census), ("Adult", adult))
        for k in KS
        if k in f.ks
        for e in EPSILONS
    }
    hits = [score > 1 for (name, _, e), score in against.items() if name == "Census" or e in LOW]
    yield judge("scores-against-mdav-above", hits)
    lower = [against["Adult", k, e] < against["Census", k, e] for name, k, e in against if name == "Adult"]
    printed = [
        float(TABLE_6_3[k].split()[4 + 3 * place]) < float(TABLE_6_1[k].split()[4 + 3 * place])
        for k in KS
        for place in range(len(EPSILONS))
    ]
    yield judge("lower-adult-census", lower, counted(printed))
    falling = [
        against[name, later, e] < against[name, earlier, e]
        for name, f in (("Census", census), ("Adult", adult))
        for e in EPSILONS
        for earlier, later in pairwise([k for k in KS if k in f.ks])
    ]
    yield judge("tend-fall-k-grows", falling)
    plain = {
        (name, k, e): factors(f.noisy[1, e], f.noisy[k, e])[2].value
        for name, f in (("Census", census), ("Adult", adult))
        for k in KS[1:]
        if k in f.ks
        for e in EPSILONS
    }
    rising = [
        plain[name, k, after] > plain[name, k, before]
        for name, k, _ in {(name, k, "") for name, k, _ in plain}
        for before, after in pairwise(EPSILONS)
    ]
    wider = [
        plain[name, after, e] > plain[name, before, e]
        for name, f in (("Census", census), ("Adult", adult))
        for e in EPSILONS
        for before, after in pairwise([k for k in KS[1:] if k in f.ks])
    ]
    yield judge("scores-against-k-1", [*rising, *wider], counted(rising), counted(wider))
    over = {
        name: [score > 1 for (of, k, e), score in plain.items() if of == name and k >= 15 and e in HIGH]
        for name in ("Census", "Adult")
    }
    own = " and ".join(TABLE_6_4["1"].split()[place] for place in (7, 10))
    yield judge(
        "k-15-epsilon-1",
        [*over["Census"], *over["Adult"]],
        counted(over["Census"]),
        counted(over["Adult"]),
        own,
    )
    lowest = {
        (name, e): min(f.ks, key=lambda k: f.sse(k, e))
        for name, f in (("Census", census), ("Adult", adult))
        for e in HIGH
    }
    inner = [1 < k < 100 for k in lowest.values()]
    yield judge(
        "given-epsilon-data-some",
        inner,
        ", ".join(f"{name} ε = {e} at k = {k}" for (name, e), k in lowest.items()),
    )
