"""The discussion of errors in section 6.4.3: what was measured comes in, judged statements leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from papers.study import Claim, counted, judged
from papers.thesis.chapter6_print import KS
from papers.thesis.chapter6_runs import EPSILONS, Found
from papers.thesis.chapter6_verdicts import ABOUT, LOW, about, extent, gain, nearest, not_rising

WHERE = "6.4.3"


def errors(census: Found, adult: Found, corners: Mapping[tuple[int, int], float]) -> Iterator[Claim]:
    """All statements on SSE, in the order of the text; `corners` is SSE on Census by k and number of corners."""
    both = (census, adult)
    lower = [f.sse(k, e) < f.sse(1, e) for f in both for k in f.ks[1:] for e in EPSILONS]
    yield Claim(
        WHERE,
        "Microaggregation first reduces the loss of information on both data sets, against noise without clusters.",
        f"SSE is below that of k = 1 in {counted(lower)} settings of the method as published. The noise that is "
        "saved is noise that the privacy claim needs.",
        judged(lower),
    )
    ks = [k for k in KS[1:] if k in adult.ks]
    best = {
        (name, k): max(EPSILONS, key=lambda e: gain(f, k, e))
        for name, f in (("Census", census), ("Adult", adult))
        for k in ks
    }
    yield Claim(
        WHERE,
        "The relative improvement is best at ε = 1.",
        "Best ε: "
        + ", ".join(f"{name} k = {k}: {e}" for (name, k), e in best.items())
        + ". In print, too, ε = 10 is "
        "best for k = 5 (Table 6.2) and for k = 5 and 15 (Table 6.4).",
        judged(e == "1" for e in best.values()),
    )
    one, three = gain(census, 30, "1"), gain(adult, 30, "1")
    yield Claim(
        WHERE,
        "At k = 30 and ε = 1 SSE_f is about ten on Census and about three on Adult.",
        f"{one:.1f} on Census; {three:.1f} on Adult, with other trees.",
        judged([about(one, 10), about(three, 3)]),
    )
    some = (1, 2, 5, 10, 15, 20, 30, 50, 75, 100)
    falls = [
        step for f in both for e in LOW for step in not_rising([f.noisy[k, e].sse for k in some if k in f.ks])
    ]
    yield Claim(
        WHERE,
        "At ε = 0.01 and 0.1, the larger k, the smaller SSE.",
        f"{counted(falls)} steps from k to a larger k on both data sets do not rise by more than three standard "
        f"errors.",
        judged(falls),
    )
    useless = [f.sse(k, e) > f.nothing.sse for f in both for e in LOW for k in f.ks]
    yield Claim(
        WHERE,
        "At these ε the output is hardly useful even so.",
        f"SSE is above that of one centroid for the whole table in {counted(useless)} settings.",
        judged(useless),
    )
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
    yield Claim(
        WHERE,
        "At ε = 10, SSE declines sharply to about k = 5 and rises slowly above k = 10.",
        "; ".join(parts) + ".",
        judged(hits),
    )
    part = [f.alone["insensitive"][k].sse / f.sse(k, "10") for f in (census, adult) for k in f.ks if k >= 20]
    yield Claim(
        WHERE,
        "There, clusters and not noise make the error.",
        f"From k = 20 on, clusters alone make {min(part):.0%} to {max(part):.0%} of the SSE.",
        judged(value > 0.9 for value in part),
    )
    ratios = [
        tuple(f.sse(k, "10") / f.alone["MDAV"][k].sse for f in (census, adult))
        for k in adult.ks
        if k >= 5 and k in census.alone["MDAV"]
    ]
    yield Claim(
        WHERE,
        "That is more visible on Census, where SSE is nearer to that of standard MDAV.",
        f"SSE at ε = 10 over SSE of MDAV, k ≥ 5: {extent(one for one, _ in ratios)} on Census, "
        f"{extent(two for _, two in ratios)} on Adult.",
        judged(one < two for one, two in ratios),
    )


def _medium_epsilon(census: Found, adult: Found) -> Iterator[Claim]:
    parts, hits = [], []
    for name, f in (("Census", census), ("Adult", adult)):
        flat = [f.sse(k, "1") for k in f.ks if k >= 30]
        drop, wide = f.sse(1, "1") / f.sse(30, "1"), max(flat) / min(flat)
        hits += [drop > 10, wide <= ABOUT]
        parts.append(f"{name}: down by a factor of {drop:.0f} to k = 30, then within a factor of {wide:.2f}")
    yield Claim(
        WHERE,
        "At ε = 1, SSE declines substantially to k = 30 and stays nearly constant for larger k.",
        "; ".join(parts) + ".",
        judged(hits),
    )
    low = [f.sse(k, "1") / f.alone["MDAV"][k].sse for f in (census, adult) for k in f.ks if k >= 30]
    yield Claim(
        WHERE,
        "There, SSE is reasonably low.",
        f"For k ≥ 30 it is {extent(low)} times that of MDAV without noise. One centroid for the whole table: Census "
        f"{census.nothing.sse / census.sse(30, '1'):.1f}, Adult {adult.nothing.sse / adult.sse(30, '1'):.0f} times "
        "the SSE at k = 30.",
        judged(value < 3 for value in low),
    )


def _clusters_alone(census: Found, adult: Found, corners: Mapping[tuple[int, int], float]) -> Iterator[Claim]:
    def over(f: Found) -> dict[int, float]:
        return {k: f.alone["insensitive"][k].sse / one.sse for k, one in f.alone["MDAV"].items()}

    here, there = over(census), over(adult)
    more = [value > 1 for value in (*here.values(), *there.values())]
    yield Claim(
        WHERE,
        "Insensitive clusters have a higher SSE than those of MDAV.",
        f"In {counted(more)} settings: {extent(here.values())} times as much on Census, "
        f"{extent(there.values())} on Adult.",
        judged(more),
    )
    common = [(here[k], there[k]) for k in there if k in here]
    larger = [one < two for one, two in common]
    yield Claim(
        WHERE,
        "The increase is larger on Adult.",
        f"At {counted(larger)} k. The tables' factors at ε = 10 stand for an increase of about ten on Adult in print; "
        "with the trees at hand clusters are more homogeneous.",
        judged(larger),
    )
    fewer = [corners[k, 16] < corners[k, 4] for k in KS]
    yield Claim(
        WHERE,
        "Because two attributes have only 4 corners, where four have 16.",
        "SSE on Census with 2, 4, 8 and 16 corners: "
        + "; ".join(
            f"k = {k}: " + ", ".join(f"{corners[k, count]:.3g}" for count in (2, 4, 8, 16)) for k in KS
        )
        + ".",
        judged(fewer),
    )
    amplified = [
        one.others["values"] > one.sse
        for name in ("MDAV", "insensitive")
        for one in adult.alone[name].values()
    ]
    yield Claim(
        WHERE,
        "And because centroids are discrete, which amplifies what insensitive clusters lose.",
        f"With only the values as centroids, and no groups, SSE is larger in {counted(amplified)} settings on Adult: "
        "coarser centroids lose more.",
        judged(amplified),
    )
    orders = {
        name: [
            (f.sse(1, e) - f.sse(k, e)) / (f.alone["insensitive"][k].sse - f.alone["MDAV"][k].sse)
            for k in f.ks[1:]
            for e in EPSILONS
        ]
        for name, f in (("Census", census), ("Adult", adult))
    }
    tenfold = [value >= 10 for values in orders.values() for value in values]
    yield Claim(
        WHERE,
        "The increase of SSE by insensitive clusters is about an order of magnitude below the noise they save.",
        "Saved over increase, medians: "
        + ", ".join(f"{name} {sorted(values)[len(values) // 2]:.0f}" for name, values in orders.items())
        + f"; at least ten in {counted(tenfold)} settings.",
        judged(tenfold),
    )
