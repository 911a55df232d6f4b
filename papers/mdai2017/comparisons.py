"""What MDAI-2017 reads off its Figures 3 and 4: curves over k come in, verdicts leave."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from papers.cluster_errors import share_verdict
from papers.mdai2017.curves import (
    BASELINE_EPSILON,
    EPSILONS,
    INSENSITIVE,
    IR_1,
    IR_2,
    MDAV,
    PAPER_METHODS,
    Curves,
)
from papers.mdai2017.facts import increases, matrix, widths
from papers.study import Claim
from shoal.mechanisms.insensitive.size import paying_clusters
from shoal.partition import mdav

# "as well as" and "small" in the paper's words
_CLOSE = 1.1
# "similar" on a figure that spans orders of magnitude
_SIMILAR = 2.0


def figure_claims(curves: Curves, file: Path) -> list[Claim]:
    """Sections 4.1, 4.4 and 4.5, line by line."""
    return [
        _bound(curves),
        _outliers(file),
        _alone_grows(curves),
        _alone_flattens(curves),
        _noisy_falls(curves),
        _noisy_flattens(curves),
        _converges(curves),
        _rate(curves),
        _beats(curves, IR_1, "sse", "IR_MDAV+DP_1 has a lower SSE than MDAV+DP."),
        _beats(curves, IR_2, "sse", "IR_MDAV+DP_2 has a lower SSE than MDAV+DP."),
        _alone_better(curves),
        _second_better(curves),
        _difference_small(curves),
        _beats(curves, IR_1, "sae", "IR_MDAV+DP_1 has a lower SAE than MDAV+DP."),
        _beats(curves, IR_2, "sae", "IR_MDAV+DP_2 has a lower SAE than MDAV+DP."),
        _second_better_sae(curves),
    ]


def baseline_claims(curves: Curves) -> list[Claim]:
    """The comparison with the insensitive method at ε = 10, and what is said of the gain."""
    ratios = {
        name: [
            curves.points[name, 1, k]["sse"] / curves.points[INSENSITIVE, BASELINE_EPSILON, k]["sse"]
            for k in curves.ks
        ]
        for name in (IR_1, IR_2)
    }
    good = sum(ratio <= _CLOSE for each in ratios.values() for ratio in each)
    best = {name: curves.best(name, 1) for name in (IR_1, IR_2)}
    base = curves.best(INSENSITIVE, BASELINE_EPSILON)
    near = [best[name][1] * _SIMILAR >= base[1] >= best[name][1] / _SIMILAR for name in best]
    alike = {
        name: [k for k, ratio in zip(curves.ks, each, strict=True) if 1 / _SIMILAR <= ratio <= _SIMILAR]
        for name, each in ratios.items()
    }
    coarser = [
        curves.points[INSENSITIVE, 1, k]["sse_alone"] / curves.points[MDAV, 1, k]["sse_alone"]
        for k in curves.ks
    ]
    half = min(curves.ks, key=lambda k: abs(k - 50))
    published = [k for k in curves.ks if curves.points[IR_2, 1, k]["sse"] <= _CLOSE * curves.published[k]]
    same = {
        (name, epsilon): [
            curves.points[INSENSITIVE, epsilon, k]["sse"] / curves.points[name, epsilon, k]["sse"]
            for k in curves.ks
        ]
        for name in PAPER_METHODS
        for epsilon in EPSILONS
    }
    gains = [ratio for each in same.values() for ratio in each]
    at_hundred = {name: same[name, 1][curves.ks.index(100)] for name in PAPER_METHODS}
    return [
        Claim(
            "section 4.5",
            "IR_MDAV+DP at ε = 1 does as well as the insensitive method at ε = 10.",
            f"Its SSE is {min(map(min, ratios.values())):.2g} to {max(map(max, ratios.values())):.2g} times that of "
            f"the insensitive method at the same k; at their best k {best[IR_1][1]:.3g} and {best[IR_2][1]:.3g} beside "
            f"{base[1]:.3g}: better, even. Against noise drawn for every row with parallel composition (the thesis), "
            + (
                f"which promises nothing, it is as good at k = {', '.join(map(str, published))} only."
                if published
                else "which promises nothing, at no k."
            ),
            share_verdict(good, 2 * len(curves.ks)),
        ),
        Claim(
            "conclusion",
            "In SSE, IR_MDAV+DP at ε = 1 is similar to the insensitive method at ε = 10.",
            "Within a factor of two at their best k: "
            + "; ".join(f"{name} {best[name][1] / base[1]:.2f} times" for name in best)
            + ". At the same k: "
            + "; ".join(
                f"{name} at k = {', '.join(map(str, ks))}" if ks else f"{name} nowhere"
                for name, ks in alike.items()
            )
            + "; elsewhere it is better by more.",
            share_verdict(
                sum(near) + sum(map(len, alike.values())), len(near) + len(ratios) * len(curves.ks)
            ),
        ),
        Claim(
            "abstract; sections 4.5, 5",
            "The methods improve utility significantly over the insensitive method.",
            f"At the same ε and k the insensitive method has {min(gains):.1f} to {max(gains):.0f} times the SSE; at "
            f"ε = 1, k = 100 "
            + ", ".join(f"{ratio:.0f} times that of {name}" for name, ratio in at_hundred.items())
            + ". It buys a stronger claim, differential privacy of the records, so the two are not interchangeable.",
            share_verdict(sum(gain > _CLOSE for gain in gains), len(gains)),
        ),
        Claim(
            "abstract; sections 4, 5",
            "Plain microaggregation avoids what makes insensitive microaggregation hard.",
            "No order of records, no corners of the domain, and one cluster's share of ε where the insensitive method "
            f"divides it by ⌊n/k⌋ ({paying_clusters(1080, half)} at k = {half}): noise smaller by that factor. The "
            "guarantee goes with it.",
            "holds" if paying_clusters(1080, half) > 1 else "fails",
        ),
        Claim(
            "section 4",
            "Insensitive microaggregation is more restrictive and keeps less than MDAV.",
            f"Without noise its SSE is {min(coarser):.2f} to {max(coarser):.2f} times that of MDAV at the same k.",
            share_verdict(sum(ratio > 1 for ratio in coarser), len(coarser)),
        ),
    ]


def _bound(curves: Curves) -> Claim:
    kept = {
        what: [
            point[what] >= point[f"{what}_alone"]
            for (name, *_), point in curves.points.items()
            if name in PAPER_METHODS
        ]
        for what in ("sse", "sae")
    }
    hits = [one for each in kept.values() for one in each]
    return Claim(
        "section 4.1",
        "The clusters without noise bound what can be reached with it.",
        f"SSE in {sum(kept['sse'])} of {len(kept['sse'])} points (a mean minimises it), SAE in {sum(kept['sae'])} of "
        f"{len(kept['sae'])}.",
        share_verdict(sum(hits), len(hits)),
    )


def _outliers(file: Path) -> Claim:
    values = matrix(file)
    made = mdav(values / widths(values), 50)
    off = np.sort(np.abs(values - made.centroids(values)[made.labels]).ravel())[::-1]
    worst = off[: off.size // 100]
    squares, sizes = (worst**2).sum() / (off**2).sum(), worst.sum() / off.sum()
    return Claim(
        "section 4.4",
        "A large error in one record weighs more in SSE than in SAE.",
        f"The worst 1% of the cells make up {squares:.0%} of SSE and {sizes:.0%} of SAE (MDAV, k = 50, no noise).",
        "holds" if squares > sizes else "fails",
    )


def _alone_grows(curves: Curves) -> Claim:
    grown = {name: increases(curves.over_k(name, 1, "sse_alone")) for name in (MDAV, IR_1)}
    hits = [one for each in grown.values() for one in each]
    return Claim(
        "section 4.5, Figure 3",
        "SSE of MDAV and IR_MDAV alone grows with k.",
        f"In {sum(grown[MDAV])} of {len(grown[MDAV])} steps of k for MDAV, {sum(grown[IR_1])} of {len(grown[IR_1])} "
        f"for IR_MDAV, k from {curves.ks[0]} to {curves.ks[-1]}.",
        share_verdict(sum(hits), len(hits)),
    )


def _slopes(curves: Curves, name: str, epsilon: int, what: str) -> tuple[float, float]:
    """Change per record of k at the small end, up to k = 10, and at the large, from k = 100 on."""

    def slope(low: int, high: int) -> float:
        first, last = (curves.points[name, epsilon, k][what] for k in (low, high))
        return (last - first) / (high - low)

    return slope(curves.ks[0], 10), slope(100, curves.ks[-1])


def _alone_flattens(curves: Curves) -> Claim:
    slopes = {name: _slopes(curves, name, 1, "sse_alone") for name in (MDAV, IR_1)}
    return Claim(
        "section 4.5, Figure 3",
        "SSE of MDAV and IR_MDAV alone is steep in k for small k and levels out.",
        "; ".join(
            f"{label}: {early:.2g} per record of k up to k = 10, {late:.2g} from k = 100 on"
            for label, (early, late) in zip(("MDAV", "IR_MDAV"), slopes.values(), strict=True)
        )
        + ".",
        share_verdict(sum(early > late for early, late in slopes.values()), len(slopes)),
    )


def _noisy_falls(curves: Curves) -> Claim:
    best = {(name, epsilon): curves.best(name, epsilon)[0] for name in PAPER_METHODS for epsilon in EPSILONS}
    to_end = sum(k == curves.ks[-1] for k in best.values())
    falls = sum(curves.over_k(name, epsilon)[0] > min(curves.over_k(name, epsilon)) for name, epsilon in best)
    return Claim(
        "section 4.5, Figure 3",
        "With noise, SSE falls as k grows.",
        "Up to a point, from which the clusters dominate: "
        + "; ".join(f"{name}, ε = {epsilon}: lowest at k = {k}" for (name, epsilon), k in best.items())
        + f" (of {curves.ks[0]} to {curves.ks[-1]}).",
        "fails" if not falls else share_verdict(to_end + 1, len(best) + 1),
    )


def _noisy_flattens(curves: Curves) -> Claim:
    slopes = {
        (name, epsilon): _slopes(curves, name, epsilon, "sse")
        for name in PAPER_METHODS
        for epsilon in EPSILONS
    }
    steeper = sum(abs(early) > abs(late) for early, late in slopes.values())
    early, late = slopes[IR_2, 1]
    return Claim(
        "section 4.5, Figure 3",
        "With noise, SSE falls more steeply for small k.",
        f"For {steeper} of {len(slopes)} curves; IR_MDAV+DP_2 at ε = 1: {early:.2g} per record of k up to k = 10, "
        f"{late:+.2g} from k = 100 on.",
        share_verdict(steeper, len(slopes)),
    )


def _converges(curves: Curves) -> Claim:
    excess = {
        (name, epsilon, k): curves.points[name, epsilon, k]["sse"]
        / curves.points[name, epsilon, k]["sse_alone"]
        for name in PAPER_METHODS
        for epsilon in EPSILONS
        for k in curves.ks
    }
    last = curves.ks[-1]
    ends = [excess[name, epsilon, last] for name in PAPER_METHODS for epsilon in EPSILONS]
    return Claim(
        "section 4.5, Figure 3",
        "For large k the SSE of every method tends to that of its clusters.",
        f"At k = {last} it is {min(ends):.2f} to {max(ends):.2f} times that of the clusters alone; at k = 100 "
        f"{min(e for (_, _, k), e in excess.items() if k == 100):.2f} to "
        f"{max(e for (_, _, k), e in excess.items() if k == 100):.2f}.",
        share_verdict(sum(end <= _CLOSE for end in ends), len(ends)),
    )


def _rate(curves: Curves) -> Claim:
    ratios = []
    for name in PAPER_METHODS:
        for k in curves.ks:
            one, two = (curves.points[name, epsilon, k] for epsilon in EPSILONS)
            ratios.append((one["sse"] - one["sse_alone"]) / (two["sse"] - two["sse_alone"]))
    halves = []
    for name in PAPER_METHODS:
        for k in curves.ks:
            if 2 * k in curves.ks:
                one, two = curves.points[name, 1, 2 * k], curves.points[name, 2, k]
                halves.append((one["sse"] - one["sse_alone"]) / (two["sse"] - two["sse_alone"]))
    near = sum(abs(half - 1) < 0.25 for half in halves)
    return Claim(
        "section 4.5, Figure 3",
        "How fast methods tend to the SSE of their clusters is proportional to ε.",
        "In this sense: noise depends on k·ε only, so twice ε does what twice k does. The excess over the clusters at "
        f"(2k, ε = 1) is {min(halves):.2f} to {max(halves):.2f} times that at (k, ε = 2). At the same k, ε = 2 has "
        f"{min(ratios):.1f} to {max(ratios):.1f} times less: up to the square of the ratio.",
        share_verdict(near, len(halves)),
    )


def _beats(curves: Curves, name: str, what: str, said: str) -> Claim:
    where = "section 4.5, Figure 3" if what == "sse" else "section 4.5, Figure 4"
    wins = {
        (epsilon, k): curves.points[name, epsilon, k][what] < curves.points[MDAV, epsilon, k][what]
        for epsilon in EPSILONS
        for k in curves.ks
    }
    lost = {epsilon: [k for k in curves.ks if not wins[epsilon, k]] for epsilon in EPSILONS}
    words = "; ".join(
        f"not at ε = {epsilon}, k = {', '.join(map(str, ks))}" for epsilon, ks in lost.items() if ks
    )
    return Claim(
        f"{where}; conclusion",
        said,
        f"In {sum(wins.values())} of {len(wins)} points{f' ({words})' if words else ''}.",
        share_verdict(sum(wins.values()), len(wins)),
    )


def _alone_better(curves: Curves) -> Claim:
    hits = [
        curves.points[IR_1, 1, k][what] < curves.points[MDAV, 1, k][what]
        for what in ("sse_alone", "sae_alone")
        for k in curves.ks
    ]
    return Claim(
        "section 4.5, Figures 3 and 4",
        "Without noise, individual ranking keeps more than MDAV.",
        f"SSE and SAE are lower in {sum(hits)} of {len(hits)} points.",
        share_verdict(sum(hits), len(hits)),
    )


def _second_better(curves: Curves) -> Claim:
    hits = [
        curves.points[IR_2, epsilon, k]["sse"] < curves.points[IR_1, epsilon, k]["sse"]
        for epsilon in EPSILONS
        for k in curves.ks
    ]
    return Claim(
        "section 4.5, Figure 3",
        "IR_MDAV+DP_2 has a lower SSE than IR_MDAV+DP_1.",
        f"In {sum(hits)} of {len(hits)} points.",
        share_verdict(sum(hits), len(hits)),
    )


def _difference_small(curves: Curves) -> Claim:
    less = {
        (epsilon, k): 1 - curves.points[IR_2, epsilon, k]["sse"] / curves.points[IR_1, epsilon, k]["sse"]
        for epsilon in EPSILONS
        for k in curves.ks
    }
    small = [part for part in less.values() if part <= _CLOSE - 1]
    return Claim(
        "section 4.5, Figure 3",
        "The difference in SSE between IR_MDAV+DP_1 and IR_MDAV+DP_2 is small.",
        f"{min(less.values()):.0%} to {max(less.values()):.0%} less; {less[1, 50]:.0%} at ε = 1, k = 50 and "
        f"{less[1, 100]:.0%} at k = 100. At most 10% in {len(small)} of {len(less)} points, those of large k.",
        share_verdict(len(small), len(less)),
    )


def _second_better_sae(curves: Curves) -> Claim:
    wins = {
        (epsilon, k): curves.points[IR_2, epsilon, k]["sae"] < curves.points[IR_1, epsilon, k]["sae"]
        for epsilon in EPSILONS
        for k in curves.ks
    }
    lost = [k for k in curves.ks if not wins[1, k]]
    alike = [
        (curves.points[name, epsilon, k]["sse"] < curves.points[MDAV, epsilon, k]["sse"])
        == (curves.points[name, epsilon, k]["sae"] < curves.points[MDAV, epsilon, k]["sae"])
        for name in (IR_1, IR_2)
        for epsilon in EPSILONS
        for k in curves.ks
    ]
    return Claim(
        "section 4.5, Figure 4",
        "The SAE results are consistent with those for SSE.",
        f"Each variant does better or worse than {MDAV} alike in {sum(alike)} of {len(alike)} points. The text gives "
        f"the order of the variants for SSE only: {IR_2} has the lower SAE in {sum(wins.values())} of "
        f"{len(wins)} points"
        + (f" (at ε = 1 not for k = {', '.join(map(str, lost))})" if lost else "")
        + ". Before clipping both splits have the same mean absolute noise, m·ΣW/(kε).",
        share_verdict(sum(alike) + sum(wins.values()), len(alike) + len(wins)),
    )
