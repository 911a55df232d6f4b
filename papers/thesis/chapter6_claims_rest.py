"""Verdicts on the claims of sections 6.4.4 and 6.5, and on related claims elsewhere in the thesis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter6_print import KS, STATISTICS, TABLE_6_5
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import EPSILONS, Found, Runs
from papers.thesis.chapter6_small import insensitive_worst
from papers.thesis.chapter6_verdicts import about, extent, not_rising

judge = judging("thesis/chapter6")

Strict = Mapping[tuple[str, int | None, str], Runs]
TABLE_KS = (1, *KS)
MEANS, VARIANCES = range(4), range(4, 8)
# what is left of a mean's variation where noise of either sign cancels is no more than its standard error
_SEEN = 3.0


def statistics(census: Found) -> Iterator[Claim]:
    """Section 6.4.4, on Table 6.5."""
    kept = [
        abs(census.alone[name][k].variations[j]) < 1e-12
        for name in ("MDAV", "insensitive")
        for k in KS
        for j in MEANS
    ]
    yield judge("clusters-alone-preserve-means", kept)
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
    yield judge("variations-means-fall-monotonically", falls, counted(printed))
    drop = {
        (j, e): runs[j, 1, e].mean / runs[j, 30, e].mean if runs[j, 30, e].mean else math.inf
        for j in range(8)
        for e in EPSILONS
    }
    seen = {(j, e): runs[j, 30, e].mean > _SEEN * runs[j, 30, e].error() for j in range(8) for e in EPSILONS}
    like = {e: max(drop[j, e] for j in MEANS) / min(drop[j, e] for j in MEANS) <= 2 for e in EPSILONS}
    words = "; ".join(f"ε = {e}: {extent(drop[j, e] for j in MEANS)}" for e in EPSILONS)
    yield judge("fixed-epsilon-decrease-similar", like.values(), words)
    sharper = [drop[j, after] > drop[j, before] for j in MEANS for before, after in pairwise(EPSILONS)]
    yield judge("decrease-becomes-sharper-epsilon", sharper)
    low = [about(drop[j, "0.01"], 1.1, 1.1) for j in MEANS]
    yield judge("epsilon-0-01-factor", low, extent(drop[j, "0.01"] for j in MEANS))
    high = [about(drop[j, "10"], 200, 2) for j in MEANS]
    noise = [STATISTICS[j].split()[-1] for j in MEANS if not seen[j, "10"]]
    yield judge(
        "epsilon-10-reaches-about",
        high,
        ", ".join(f"{drop[j, '10']:.0f} ({STATISTICS[j].split()[-1]})" for j in MEANS),
        f" Of {' and '.join(noise)} nothing is left at k = 30 but noise that cancels over runs."
        if noise
        else "",
    )
    small = [drop[j, "0.1"] < 2 for j in MEANS]
    yield judge("epsilon-above-0-1", small, extent(drop[j, "0.1"] for j in MEANS))
    yield from _variances(census, runs, drop)


def _size(runs: Runs) -> Runs:
    """Runs of the sign that makes their mean a size."""
    return runs if runs.mean >= 0 else Runs(-runs.values)


def _variances(
    census: Found, runs: Mapping[tuple[int, int, str], Runs], drop: Mapping[tuple[int, str], float]
) -> Iterator[Claim]:
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
    yield judge("clusters-alone-change-variances", grows)
    growth = {
        name: [alone[name, 30, j] / alone[name, 2, j] for j in VARIANCES] for name in ("MDAV", "insensitive")
    }
    yield judge(
        "growth-factor-larger-mdav",
        (one > two for one, two in zip(growth["MDAV"], growth["insensitive"], strict=True)),
        extent(growth["MDAV"]),
        extent(growth["insensitive"]),
    )
    falls = [
        step
        for j in VARIANCES
        for e in EPSILONS[:3]
        for step in not_rising([runs[j, k, e] for k in TABLE_KS])
    ]
    yield judge("noise-epsilon-1-fall", falls)
    sharper = [
        drop[j, after] > drop[j, before] for j in VARIANCES for before, after in pairwise(EPSILONS[:3])
    ]
    words = "; ".join(f"ε = {e}: {extent(drop[j, e] for j in VARIANCES)}" for e in EPSILONS[:3])
    yield judge("fall-more-higher-epsilon", sharper, words)
    rises = [
        runs[j, later, "10"].mean > runs[j, earlier, "10"].mean
        for j in VARIANCES
        for earlier, later in pairwise((5, 15, 30))
    ]
    yield judge("epsilon-10-rise-k", rises)
    same = [abs(runs[j, 30, "10"].mean / alone["insensitive", 30, j] - 1) for j in VARIANCES]
    yield judge("epsilon-10-method-behaves", (value < 0.05 for value in same), max(same))
    ratio = [census.sse(k, "1") / census.alone["MDAV"][k].sse for k in (30, 100)]
    yield judge(
        "after-microaggregation-differentially-private",
        [*(value < 3 for value in ratio), census.sse(100, "0.1") < 3 * census.alone["MDAV"][100].sse],
        ratio[0],
        ratio[1],
        census.sse(100, "0.1") / census.alone["MDAV"][100].sse,
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
    yield judge(
        "loss-information-differential-privacy",
        (value >= 2 for values in orders.values() for value in values.values()),
        words,
    )
    yield judge(
        "guarantee-epsilon-differential-privacy",
        [replaced.loss <= 1],
        replaced.clusters,
        replaced.of,
        replaced.loss,
    )
    fewer = [
        f.linkage(k, e) < f.alone["MDAV"][k].linkage
        for f in (census, adult)
        for k in f.ks[1:]
        for e in EPSILONS
    ]
    yield judge("practical-privacy-better-k", fewer)
    yield from _corrected(strict)
    yield judge(
        "microaggregation-reduces-sensitivity-identity",
        [replaced.own <= 1, replaced.others <= 1],
        replaced.own,
        replaced.others,
        replaced.loss,
    )
    yield judge("insensitive-clusters-guarantee-most", [insensitive_worst() <= 1])
    yield judge("epsilon-0-01-10", "not tested")
    yield judge("counts-such-clusters-instead", "not tested")


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
    yield judge("k-anonymity-first-epsilon", better.values(), words, ", ".join(map(str, ks)))
