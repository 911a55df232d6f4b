"""The discussion of linkages and Scores in section 6.4.3: what was measured comes in, judged statements leave."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from papers.study import Claim, counted, judged
from papers.thesis.chapter6_print import KS, TABLE_6_1, TABLE_6_3, TABLE_6_4
from papers.thesis.chapter6_runs import EPSILONS, Found, factors
from papers.thesis.chapter6_verdicts import (
    ABOUT,
    HIGH,
    LOW,
    about,
    extent,
    nearest,
    rank_correlation,
)

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
    yield Claim(
        WHERE,
        "RL behaves the other way round as SSE.",
        f"Rank correlation of SSE and RL over k is negative for {counted(signs)} curves with noise and "
        f"{counted(alone)} without.",
        judged([*signs, *alone]),
    )
    highest = [
        f.alone["MDAV"][k].linkage
        >= max(f.alone["insensitive"][k].linkage, *(f.linkage(k, e) for e in EPSILONS))
        for f in (census, adult)
        for k in f.ks[1:]
    ]
    yield Claim(
        WHERE,
        "Standard MDAV has the most linkages.",
        f"At {counted(highest)} k on both data sets. On Adult insensitive clusters link slightly more than MDAV from "
        "k = 5 on, with the trees at hand.",
        judged(highest),
    )
    below = [k for k, one in census.alone["MDAV"].items() if one.linkage < 5]
    yield Claim(
        WHERE,
        "On Census, MDAV needs k ≥ 20 for less than 5% of linkages.",
        f"The first k below 5% is {below[0]}: {census.alone['MDAV'][below[0]].linkage:.2f}%.",
        judged([below[0] == 20, all(one.linkage < 5 for k, one in census.alone["MDAV"].items() if k >= 20)]),
    )
    first = min(adult.alone["MDAV"])
    lower = [adult.alone["MDAV"][k].linkage < census.alone["MDAV"][k].linkage / 5 for k in adult.ks[1:]]
    yield Claim(
        WHERE,
        "On Adult RL is much lower, below 1% from k = 2.",
        f"MDAV links {adult.alone['MDAV'][first].linkage:.2f}% at k = {first}, less than a fifth of Census at "
        f"{counted(lower)} k; print has 0.95% at k = 2, with other trees.",
        judged([*lower, adult.alone["MDAV"][first].linkage < 1]),
    )
    yield from _insensitive_linkages(census, adult)
    yield from _chance(census, adult)
    yield from _one(census, adult)


def _insensitive_linkages(census: Found, adult: Found) -> Iterator[Claim]:
    less = {
        name: [f.alone["insensitive"][k].linkage / one.linkage for k, one in f.alone["MDAV"].items()]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield Claim(
        WHERE,
        "Insensitive clusters link slightly less than MDAV on Census, significantly less on Adult.",
        "RL over that of MDAV: "
        + ", ".join(f"{name} {extent(values)}" for name, values in less.items())
        + ".",
        judged([max(less["Census"]) <= 1.01, max(less["Adult"]) < min(1.0, *less["Census"])]),
    )
    similar = {
        name: [about(f.linkage(k, "10"), f.alone["insensitive"][k].linkage) for k in f.ks[1:]]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield Claim(
        WHERE,
        "Insensitive clusters alone and ε = 10 have very similar RL.",
        f"Within a factor of {ABOUT} at {counted(similar['Census'])} k on Census and {counted(similar['Adult'])} "
        f"on Adult; "
        "noise halves RL and more at the smallest k.",
        judged([*similar["Census"], *similar["Adult"]]),
    )


def _chance(census: Found, adult: Found) -> Iterator[Claim]:
    for name, f, n in (("Census", census, 1080), ("Adult", adult, 30_162)):
        guess = 100 / n
        mean = {e: sum(f.linkage(k, e) for k in f.ks) / len(f.ks) for e in LOW}
        last = f.ks[-1]
        yield Claim(
            WHERE,
            f"At ε = 0.01 and 0.1 RL on {name} hardly varies with k and is chance, about {guess:.2g}%.",
            f"Mean over k: {mean['0.01']:.2g}% at ε = 0.01, {mean['0.1']:.2g}% at 0.1, where it rises to "
            f"{f.linkage(last, '0.1'):.2g}% at k = {last}.",
            judged([about(mean["0.01"], guess), about(f.linkage(last, "0.1"), guess)]),
        )
    means = [census.noisy[k, "0.01"].linkage for k in census.ks]
    between = float(np.std([one.mean for one in means], ddof=1))
    within = math.sqrt(sum(one.error() ** 2 for one in means) / len(means))
    yield Claim(
        WHERE,
        "The large spikes of these curves show that records are matched at random.",
        f"At ε = 0.01 on Census RL varies over k by {between:.3f}, as the standard errors of its points "
        f"({within:.3f}) "
        "say it must if nothing depends on k.",
        judged([about(between, within)]),
    )
    penalty = [f.linkage(f.ks[-1], e) / f.linkage(1, e) for f in (census, adult) for e in LOW]
    yield Claim(
        WHERE,
        "At low ε the privacy of plain differential privacy is kept: clusters cost none to speak of.",
        f"RL at the largest k over RL at k = 1: {extent(penalty)}. RL is one attack; differential privacy of the "
        "original records is lost at any k > 1 (below).",
        judged(value < 2 for value in penalty),
    )


def _one(census: Found, adult: Found) -> Iterator[Claim]:
    start, end = census.linkage(1, "1"), census.linkage(nearest(census, 25), "1")
    yield Claim(
        WHERE,
        "At ε = 1 on Census, RL rises from 0.2% at k = 1 to about 1% at k = 25.",
        f"From {start:.2f}% to {end:.2f}%.",
        judged([about(start, 0.2), about(end, 1)]),
    )
    start, later = adult.linkage(1, "1"), [adult.linkage(k, "1") for k in adult.ks if k >= 20]
    yield Claim(
        WHERE,
        "At ε = 1 on Adult, RL rises from 0.02% at k = 1 to about 0.05% for k ≥ 20.",
        f"From {start:.4f}% to {extent(later)}%. Table 6.4 has 0.0019% at k = 1: the text's 0.02 is ten times too "
        "large. More linkages here because clusters are more homogeneous.",
        judged([about(start, 0.02), *(about(value, 0.05) for value in later)]),
    )
    orders = [
        (e, math.log10(f.alone["MDAV"][k].linkage / f.linkage(k, e)))
        for f in (census, adult)
        for k in KS
        if k in f.ks
        for e in EPSILONS
    ]
    hits = [round(order) == (2 if e in LOW else 1) for e, order in orders]
    yield Claim(
        WHERE,
        "Against MDAV, RL is lower by about two orders of magnitude (ε ≤ 0.1) and one (ε ≥ 1).",
        f"log10 of RL_f: {extent(order for e, order in orders if e in LOW)} at ε ≤ 0.1, "
        f"{extent(order for e, order in orders if e in HIGH)} at ε ≥ 1; rounded, {counted(hits)} are what the "
        f"text says. "
        "Print has 1.27 at k = 30, ε = 10: a tenth of an order.",
        judged(hits),
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
    yield Claim(
        WHERE,
        "Scores against MDAV are above 1 on Census always, on Adult at ε = 0.01 and 0.1.",
        f"{counted(hits)} are. The printed Score is the product of the two factors.",
        judged(hits),
    )
    lower = [against["Adult", k, e] < against["Census", k, e] for name, k, e in against if name == "Adult"]
    printed = [
        float(TABLE_6_3[k].split()[4 + 3 * place]) < float(TABLE_6_1[k].split()[4 + 3 * place])
        for k in KS
        for place in range(len(EPSILONS))
    ]
    yield Claim(
        WHERE,
        "They are lower on Adult than on Census.",
        f"In {counted(lower)} settings; in print in {counted(printed)}.",
        judged(lower),
    )
    falling = [
        against[name, later, e] < against[name, earlier, e]
        for name, f in (("Census", census), ("Adult", adult))
        for e in EPSILONS
        for earlier, later in pairwise([k for k in KS if k in f.ks])
    ]
    yield Claim(
        WHERE,
        "They tend to fall as k grows.",
        f"{counted(falling)} steps fall; on Adult at ε = 10 they rise, in print as well.",
        judged(falling),
    )
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
    yield Claim(
        WHERE,
        "Scores against k = 1 tend to grow with ε and k.",
        f"{counted(rising)} steps to a larger ε and {counted(wider)} to a larger k rise.",
        judged([*rising, *wider]),
    )
    over = {
        name: [score > 1 for (of, k, e), score in plain.items() if of == name and k >= 15 and e in HIGH]
        for name in ("Census", "Adult")
    }
    own = " and ".join(TABLE_6_4["1"].split()[place] for place in (7, 10))
    yield Claim(
        WHERE,
        "For k ≥ 15 and ε ≥ 1 they are above 1: less loss of information makes up for more linkages.",
        f"Census {counted(over['Census'])}, Adult {counted(over['Adult'])}. Table 6.4 itself has {own} at ε = 1.",
        judged([*over["Census"], *over["Adult"]]),
    )
    lowest = {
        (name, e): min(f.ks, key=lambda k: f.sse(k, e))
        for name, f in (("Census", census), ("Adult", adult))
        for e in HIGH
    }
    inner = [1 < k < 100 for k in lowest.values()]
    yield Claim(
        WHERE,
        "For given ε and data, some k is best.",
        "Least SSE: "
        + ", ".join(f"{name} ε = {e} at k = {k}" for (name, e), k in lowest.items())
        + "; at ε ≤ 0.1 the "
        "largest k tried.",
        judged(inner),
    )
