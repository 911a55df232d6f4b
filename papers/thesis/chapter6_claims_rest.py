"""Sections 6.4.4 and 6.5, and what the thesis says of them elsewhere: measurements come in, judged statements leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from papers.study import Claim, counted, judged
from papers.thesis.chapter6_print import KS, STATISTICS, TABLE_6_5
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import EPSILONS, Found, Runs
from papers.thesis.chapter6_small import insensitive_worst
from papers.thesis.chapter6_verdicts import about, extent, not_rising

Strict = Mapping[tuple[str, int | None, str], Runs]
TABLE_KS = (1, *KS)
MEANS, VARIANCES = range(4), range(4, 8)
# what is left of a mean's variation where noise of either sign cancels is no more than its standard error
_SEEN = 3.0


def statistics(census: Found) -> Iterator[Claim]:
    """Section 6.4.4, on Table 6.5."""
    where = "6.4.4"
    kept = [
        abs(census.alone[name][k].variations[j]) < 1e-12
        for name in ("MDAV", "insensitive")
        for k in KS
        for j in MEANS
    ]
    yield Claim(
        where,
        "Clusters alone preserve the means exactly.",
        f"{counted(kept)} means are.",
        judged(kept),
    )
    runs = {
        (j, k, e): _size(census.noisy[k, e].variations[j])
        for j in range(8)
        for k in TABLE_KS
        for e in EPSILONS
    }
    falls = [step for j in MEANS for e in EPSILONS for step in not_rising([runs[j, k, e] for k in TABLE_KS])]
    printed = [
        float(TABLE_6_5[STATISTICS[j], later][place]) < float(TABLE_6_5[STATISTICS[j], earlier][place])
        for j in MEANS
        for place in range(len(EPSILONS))
        for earlier, later in pairwise(TABLE_KS)
    ]
    yield Claim(
        where,
        "The variations of the means fall monotonically from k = 1 to k = 30.",
        f"{counted(falls)} steps do not rise beyond three standard errors; in print, means of ten runs, "
        f"{counted(printed)} fall.",
        judged(falls),
    )
    drop = {
        (j, e): runs[j, 1, e].mean / runs[j, 30, e].mean if runs[j, 30, e].mean else math.inf
        for j in range(8)
        for e in EPSILONS
    }
    seen = {(j, e): runs[j, 30, e].mean > _SEEN * runs[j, 30, e].error() for j in range(8) for e in EPSILONS}
    like = {e: max(drop[j, e] for j in MEANS) / min(drop[j, e] for j in MEANS) <= 2 for e in EPSILONS}
    words = "; ".join(f"ε = {e}: {extent(drop[j, e] for j in MEANS)}" for e in EPSILONS)
    yield Claim(
        where,
        "For fixed ε the decrease is similar for all attributes.",
        f"Quotient of k = 1 and k = 30: {words}. At ε ≥ 1 attributes differ widely, in print as well.",
        judged(like.values()),
    )
    sharper = [drop[j, after] > drop[j, before] for j in MEANS for before, after in pairwise(EPSILONS)]
    yield Claim(
        where,
        "The decrease becomes sharper as ε grows.",
        f"In {counted(sharper)} steps to a larger ε.",
        judged(sharper),
    )
    low = [about(drop[j, "0.01"], 1.1, 1.1) for j in MEANS]
    yield Claim(
        where,
        "At ε = 0.01 it is a factor of about 1.1.",
        f"{extent(drop[j, '0.01'] for j in MEANS)}, all four attributes.",
        judged(low),
    )
    high = [about(drop[j, "10"], 200, 2) for j in MEANS]
    noise = [STATISTICS[j].split()[-1] for j in MEANS if not seen[j, "10"]]
    yield Claim(
        where,
        "At ε = 10 it reaches about 200.",
        ", ".join(f"{drop[j, '10']:.0f} ({STATISTICS[j].split()[-1]})" for j in MEANS)
        + "."
        + (
            f" Of {' and '.join(noise)} nothing is left at k = 30 but noise that cancels over runs."
            if noise
            else ""
        ),
        judged(high),
    )
    small = [drop[j, "0.1"] < 2 for j in MEANS]
    yield Claim(
        where,
        "ε above 0.1 is needed to reduce the variations of the means significantly.",
        f"At ε = 0.1 k = 30 reduces them by a factor of {extent(drop[j, '0.1'] for j in MEANS)}.",
        judged(small),
    )
    yield from _variances(census, runs, drop)


def _size(runs: Runs) -> Runs:
    """Runs of the sign that makes their mean a size."""
    return runs if runs.mean >= 0 else Runs(-runs.values)


def _variances(
    census: Found, runs: Mapping[tuple[int, int, str], Runs], drop: Mapping[tuple[int, str], float]
) -> Iterator[Claim]:
    where = "6.4.4"
    alone = {
        (name, k, j): abs(census.alone[name][k].variations[j])
        for name in ("MDAV", "insensitive")
        for k in KS
        for j in VARIANCES
    }
    grows = [
        alone[name, later, j] > alone[name, earlier, j]
        for name in ("MDAV", "insensitive")
        for j in VARIANCES
        for earlier, later in pairwise(KS)
    ]
    yield Claim(
        where,
        "Clusters alone change the variances more, the larger k.",
        f"{counted(grows)} steps.",
        judged(grows),
    )
    growth = {
        name: [alone[name, 30, j] / alone[name, 2, j] for j in VARIANCES] for name in ("MDAV", "insensitive")
    }
    yield Claim(
        where,
        "The growth factor is larger for MDAV than for insensitive clusters.",
        f"k = 30 over k = 2: {extent(growth['MDAV'])} for MDAV, {extent(growth['insensitive'])} insensitive.",
        judged(one > two for one, two in zip(growth["MDAV"], growth["insensitive"], strict=True)),
    )
    falls = [
        step
        for j in VARIANCES
        for e in EPSILONS[:3]
        for step in not_rising([runs[j, k, e] for k in TABLE_KS])
    ]
    yield Claim(
        where,
        "With noise and ε ≤ 1 they fall as k grows, for all attributes.",
        f"{counted(falls)} steps do not rise.",
        judged(falls),
    )
    sharper = [
        drop[j, after] > drop[j, before] for j in VARIANCES for before, after in pairwise(EPSILONS[:3])
    ]
    words = "; ".join(f"ε = {e}: {extent(drop[j, e] for j in VARIANCES)}" for e in EPSILONS[:3])
    yield Claim(
        where,
        "They fall more at higher ε.",
        f"Quotient of k = 1 and k = 30: {words}.",
        judged(sharper),
    )
    rises = [
        runs[j, later, "10"].mean > runs[j, earlier, "10"].mean
        for j in VARIANCES
        for earlier, later in pairwise((5, 15, 30))
    ]
    yield Claim(where, "At ε = 10 they rise for k above 5.", f"{counted(rises)} steps.", judged(rises))
    same = [abs(runs[j, 30, "10"].mean / alone["insensitive", 30, j] - 1) for j in VARIANCES]
    yield Claim(
        where,
        "At ε = 10 the method behaves like clusters alone.",
        f"At k = 30 the variations of the variances are within {max(same):.1%} of those without noise.",
        judged(value < 0.05 for value in same),
    )
    ratio = [census.sse(k, "1") / census.alone["MDAV"][k].sse for k in (30, 100)]
    yield Claim(
        where,
        "After microaggregation, differentially private data keep utility much like k-anonymity does.",
        f"SSE at ε = 1 over that of MDAV: {ratio[0]:.1f} at k = 30, {ratio[1]:.1f} at k = 100; at ε = 0.1 and "
        f"k = 100 "
        f"{census.sse(100, '0.1') / census.alone['MDAV'][100].sse:.0f}. As published, that is, without "
        "differential privacy.",
        judged([*(value < 3 for value in ratio), census.sse(100, "0.1") < 3 * census.alone["MDAV"][100].sse]),
    )


def conclusions(census: Found, adult: Found, strict: Strict, replaced: Replaced) -> Iterator[Claim]:
    """Section 6.5, the abstract of the chapter, chapters 1 and 8."""
    orders = {
        name: {e: max(math.log10(f.sse(1, e) / f.sse(k, e)) for k in f.ks) for e in EPSILONS}
        for name, f in (("Census", census), ("Adult", adult))
    }
    words = "; ".join(
        f"{name} " + ", ".join(f"{value:.1f} (ε = {e})" for e, value in values.items())
        for name, values in orders.items()
    )
    yield Claim(
        "6.5",
        "The loss of information of differential privacy falls by several orders of magnitude.",
        f"log10 of SSE at k = 1 over SSE at the best k: {words}.",
        judged(value >= 2 for values in orders.values() for value in values.values()),
    )
    yield Claim(
        "6.5, 1.2, 8.1",
        "The guarantee of ε-differential privacy is preserved.",
        f"One replaced record of Census changes up to {replaced.clusters} of {replaced.of} clusters (k = 5), "
        f"and all rows in them: the loss is up to {replaced.loss:.0f}ε.",
        judged([replaced.loss <= 1]),
    )
    fewer = [
        f.linkage(k, e) < f.alone["MDAV"][k].linkage
        for f in (census, adult)
        for k in f.ks[1:]
        for e in EPSILONS
    ]
    yield Claim(
        "6.5",
        "Practical privacy is better than that of k-anonymity: fewer linkages than MDAV.",
        f"In {counted(fewer)} settings.",
        judged(fewer),
    )
    yield from _corrected(strict)
    yield Claim(
        "8.1, 8.3",
        "Microaggregation reduces the sensitivity of identity queries to 1/k.",
        f"On Census, k = 5, the replaced record's own row moves by up to {replaced.own:.1f}·W/k, other rows by "
        f"up to {replaced.others:.2f}·W/k; all answers together, in the norm that counts for the noise, by "
        f"{replaced.loss:.0f}·W/k.",
        judged([replaced.own <= 1, replaced.others <= 1]),
    )
    yield Claim(
        "8.3",
        "Insensitive clusters guarantee that at most one record per cluster changes; their sizes are alike.",
        "True of every cluster, over all neighbours of a small world; sizes are k, the last one k to 2k - 1. It says "
        "nothing of how many clusters change.",
        judged([insensitive_worst() <= 1]),
    )
    yield Claim(
        "6.4.2",
        "ε from 0.01 to 10 covers what is usual in the literature.",
        "A survey of the literature, not a computation.",
        "not tested",
    )
    yield Claim(
        "8.3",
        "Counts in such clusters instead of fixed buckets may be more accurate on sparse data.",
        "A proposal for future work; Shoal's `tree-dp` does it with a private tree instead.",
        "not tested",
    )


def _corrected(strict: Strict) -> Iterator[Claim]:
    ks = sorted({k for _, k, _ in strict if k is not None})
    epsilons = list(dict.fromkeys(e for _, _, e in strict))
    better = {
        (k, e): strict["insensitive-dp", k, e].mean < strict["laplace", None, e].mean
        for k in ks
        for e in epsilons
    }
    least = {e: min((k for k in ks if better[k, e]), default=None) for e in epsilons}
    words = ", ".join(f"ε = {e}: " + (f"from k = {k}" if k else "never") for e, k in least.items())
    yield Claim(
        "abstract, 6.1, 1.2",
        "With k-anonymity first, ε-differential privacy needs less noise, and the data are more useful.",
        "With the noise that ε-differential privacy does need (strict composition), SSE is below that of plain "
        f"Laplace noise {words}; tried: k = {', '.join(map(str, ks))}. As published: less noise, no guarantee.",
        judged(better.values()),
    )
