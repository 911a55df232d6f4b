"""Verdicts on the claims about errors in section 6.4.3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from papers.study import Claim
from papers.texts import judging
from papers.thesis.chapter6_print import KS
from papers.thesis.chapter6_runs import EPSILONS, Found
from papers.thesis.chapter6_verdicts import ABOUT, LOW, about, extent, gain, nearest, not_rising

judge = judging("thesis/chapter6")

WHERE = "6.4.3"


def errors(census: Found, adult: Found, corners: Mapping[tuple[int, int], float]) -> Iterator[Claim]:
    """All statements on SSE, in the order of the text; `corners` is SSE on Census by k and number of corners."""
    both = (census, adult)
    lower = [f.sse(k, e) < f.sse(1, e) for f in both for k in f.ks[1:] for e in EPSILONS]
    yield judge("microaggregation-first-reduces-loss", lower)
    ks = [k for k in KS[1:] if k in adult.ks]
    best = {
        (name, k): max(EPSILONS, key=lambda e: gain(f, k, e))
        for name, f in (("Census", census), ("Adult", adult))
        for k in ks
    }
    yield judge(
        "relative-improvement-best-epsilon",
        (e == "1" for e in best.values()),
        ", ".join(f"{name} k = {k}: {e}" for (name, k), e in best.items()),
    )
    one, three = gain(census, 30, "1"), gain(adult, 30, "1")
    yield judge("k-30-epsilon-1", [about(one, 10), about(three, 3)], one, three)
    some = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)
    falls = [
        step for f in both for e in LOW for step in not_rising([f.noisy[k, e].sse for k in some if k in f.ks])
    ]
    yield judge("epsilon-0-01-0", falls)
    useless = [f.sse(k, e) > f.nothing.sse for f in both for e in LOW for k in f.ks]
    yield judge("these-epsilon-output-hardly", useless)
    yield from _large_epsilon(census, adult)
    yield from _medium_epsilon(census, adult)
    yield from _clusters_alone(census, adult, corners)


def _large_epsilon(census: Found, adult: Found) -> Iterator[Claim]:
    parts, hits = [], []
    for name, f in (("Census", census), ("Adult", adult)):
        first, last = (
            f.sse(1, "10") / f.sse(nearest(f, 5), "10"),
            f.sse(f.ks[-1], "10") / f.sse(nearest(f, 10), "10"),
        )
        lowest = min(f.ks, key=lambda k: f.sse(k, "10"))
        hits += [first > 5, 2 <= lowest <= 15, last > 1]
        parts.append(
            f"{name}: down by a factor of {first:.0f} to k = {nearest(f, 5)}, least at k = {lowest}, "
            f"up by {last:.1f} to k = {f.ks[-1]}"
        )
    yield judge("epsilon-10-sse-declines", hits, "; ".join(parts))
    part = [f.alone["insensitive"][k].sse / f.sse(k, "10") for f in (census, adult) for k in f.ks if k >= 20]
    yield judge("there-clusters-noise-make", (value > 0.9 for value in part), min(part), max(part))
    ratios = [
        tuple(f.sse(k, "10") / f.alone["MDAV"][k].sse for f in (census, adult))
        for k in adult.ks
        if k >= 5 and k in census.alone["MDAV"]
    ]
    yield judge(
        "more-visible-census-where",
        (one < two for one, two in ratios),
        extent(one for one, _ in ratios),
        extent(two for _, two in ratios),
    )


def _medium_epsilon(census: Found, adult: Found) -> Iterator[Claim]:
    parts, hits = [], []
    for name, f in (("Census", census), ("Adult", adult)):
        flat = [f.sse(k, "1") for k in f.ks if k >= 30]
        drop, wide = f.sse(1, "1") / f.sse(30, "1"), max(flat) / min(flat)
        hits += [drop > 10, wide <= ABOUT]
        parts.append(f"{name}: down by a factor of {drop:.0f} to k = 30, then within a factor of {wide:.2f}")
    yield judge("epsilon-1-sse-declines", hits, "; ".join(parts))
    low = [f.sse(k, "1") / f.alone["MDAV"][k].sse for f in (census, adult) for k in f.ks if k >= 30]
    yield judge(
        "there-sse-reasonably-low",
        (value < 3 for value in low),
        extent(low),
        census.nothing.sse / census.sse(30, "1"),
        adult.nothing.sse / adult.sse(30, "1"),
    )


def _clusters_alone(census: Found, adult: Found, corners: Mapping[tuple[int, int], float]) -> Iterator[Claim]:
    def over(f: Found) -> dict[int, float]:
        return {k: f.alone["insensitive"][k].sse / one.sse for k, one in f.alone["MDAV"].items()}

    here, there = over(census), over(adult)
    more = [value > 1 for value in (*here.values(), *there.values())]
    yield judge("insensitive-clusters-higher-sse", more, extent(here.values()), extent(there.values()))
    common = [(here[k], there[k]) for k in there if k in here]
    larger = [one < two for one, two in common]
    yield judge("increase-larger-adult", larger)
    fewer = [corners[k, 16] < corners[k, 4] for k in KS]
    yield judge(
        "because-two-attributes-only",
        fewer,
        "; ".join(
            f"k = {k}: " + ", ".join(f"{corners[k, count]:.3g}" for count in (2, 4, 8, 16)) for k in KS
        ),
    )
    amplified = [
        one.others["values"] > one.sse
        for name in ("MDAV", "insensitive")
        for one in adult.alone[name].values()
    ]
    yield judge("because-centroids-discrete-amplifies", amplified)
    orders = {
        name: [
            (f.sse(1, e) - f.sse(k, e)) / (f.alone["insensitive"][k].sse - f.alone["MDAV"][k].sse)
            for k in f.ks[1:]
            for e in EPSILONS
        ]
        for name, f in (("Census", census), ("Adult", adult))
    }
    tenfold = [value >= 10 for values in orders.values() for value in values]
    yield judge(
        "increase-sse-insensitive-clusters",
        tenfold,
        ", ".join(f"{name} {sorted(values)[len(values) // 2]:.0f}" for name, values in orders.items()),
    )
