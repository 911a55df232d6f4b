"""Verdicts on the claims that MDAI-2017 bases on its Figures 3 and 4."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
from papers.study import Claim, counted
from papers.texts import judging
from shoal.mechanisms.insensitive import paying_clusters
from shoal.partition import mdav

judge = judging("mdai2017/texts")

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
        _beats(curves, IR_1, "sse"),
        _beats(curves, IR_2, "sse"),
        _alone_better(curves),
        _second_better(curves),
        _difference_small(curves),
        _beats(curves, IR_1, "sae"),
        _beats(curves, IR_2, "sae"),
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
        judge(
            "ir-mdav-dp-epsilon",
            (ratio <= _CLOSE for each in ratios.values() for ratio in each),
            min(map(min, ratios.values())),
            max(map(max, ratios.values())),
            best[IR_1][1],
            best[IR_2][1],
            base[1],
            f"which promises nothing, it is as good at k = {', '.join(map(str, published))} only."
            if published
            else "which promises nothing, at no k.",
        ),
        judge(
            "sse-ir-mdav-dp",
            [*near, *(k in alike[name] for name in ratios for k in curves.ks)],
            "; ".join(f"{name} {best[name][1] / base[1]:.2f} times" for name in best),
            "; ".join(
                f"{name} at k = {', '.join(map(str, ks))}" if ks else f"{name} nowhere"
                for name, ks in alike.items()
            ),
        ),
        judge(
            "methods-improve-utility-significantly",
            (gain > _CLOSE for gain in gains),
            min(gains),
            max(gains),
            ", ".join(f"{ratio:.0f} times that of {name}" for name, ratio in at_hundred.items()),
        ),
        judge(
            "plain-microaggregation-avoids-what",
            paying_clusters(1080, half) > 1,
            paying_clusters(1080, half),
            half,
        ),
        judge(
            "insensitive-microaggregation-more-restrictive",
            (ratio > 1 for ratio in coarser),
            min(coarser),
            max(coarser),
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
    return judge(
        "clusters-without-noise-bound",
        hits,
        sum(kept["sse"]),
        len(kept["sse"]),
        sum(kept["sae"]),
        len(kept["sae"]),
    )


def _outliers(file: Path) -> Claim:
    values = matrix(file)
    made = mdav(values / widths(values), 50)
    off = np.sort(np.abs(values - made.centroids(values)[made.labels]).ravel())[::-1]
    worst = off[: off.size // 100]
    squares, sizes = (worst**2).sum() / (off**2).sum(), worst.sum() / off.sum()
    return judge("large-error-record-weighs", squares > sizes, squares, sizes)


def _alone_grows(curves: Curves) -> Claim:
    grown = {name: increases(curves.over_k(name, 1, "sse_alone")) for name in (MDAV, IR_1)}
    hits = [one for each in grown.values() for one in each]
    return judge(
        "sse-mdav-ir-mdav",
        hits,
        sum(grown[MDAV]),
        len(grown[MDAV]),
        sum(grown[IR_1]),
        len(grown[IR_1]),
        curves.ks[0],
        curves.ks[-1],
    )


def _slopes(curves: Curves, name: str, epsilon: int, what: str) -> tuple[float, float]:
    """Change per record of k at the small end, up to k = 10, and at the large, from k = 100 on."""

    def slope(low: int, high: int) -> float:
        first, last = (curves.points[name, epsilon, k][what] for k in (low, high))
        return (last - first) / (high - low)

    return slope(curves.ks[0], 10), slope(100, curves.ks[-1])


def _alone_flattens(curves: Curves) -> Claim:
    slopes = {name: _slopes(curves, name, 1, "sse_alone") for name in (MDAV, IR_1)}
    return judge(
        "sse-mdav-ir-mdav-alone",
        (early > late for early, late in slopes.values()),
        "; ".join(
            f"{label}: {early:.2g} per record of k up to k = 10, {late:.2g} from k = 100 on"
            for label, (early, late) in zip(("MDAV", "IR_MDAV"), slopes.values(), strict=True)
        ),
    )


def _noisy_falls(curves: Curves) -> Claim:
    best = {(name, epsilon): curves.best(name, epsilon)[0] for name in PAPER_METHODS for epsilon in EPSILONS}
    falls = any(curves.over_k(name, epsilon)[0] > min(curves.over_k(name, epsilon)) for name, epsilon in best)
    return judge(
        "noise-sse-falls-k",
        [falls, *(falls and k == curves.ks[-1] for k in best.values())],
        "; ".join(f"{name}, ε = {epsilon}: lowest at k = {k}" for (name, epsilon), k in best.items()),
        curves.ks[0],
        curves.ks[-1],
    )


def _noisy_flattens(curves: Curves) -> Claim:
    slopes = {
        (name, epsilon): _slopes(curves, name, epsilon, "sse")
        for name in PAPER_METHODS
        for epsilon in EPSILONS
    }
    steeper = [abs(early) > abs(late) for early, late in slopes.values()]
    return judge("noise-sse-falls-more", steeper, *slopes[IR_2, 1])


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
    return judge(
        "large-k-sse-every",
        (end <= _CLOSE for end in ends),
        last,
        min(ends),
        max(ends),
        min(e for (_, _, k), e in excess.items() if k == 100),
        max(e for (_, _, k), e in excess.items() if k == 100),
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
    return judge(
        "how-fast-methods-tend",
        (abs(half - 1) < 0.25 for half in halves),
        min(halves),
        max(halves),
        min(ratios),
        max(ratios),
    )


def _beats(curves: Curves, name: str, what: str) -> Claim:
    wins = {
        (epsilon, k): curves.points[name, epsilon, k][what] < curves.points[MDAV, epsilon, k][what]
        for epsilon in EPSILONS
        for k in curves.ks
    }
    lost = {epsilon: [k for k in curves.ks if not wins[epsilon, k]] for epsilon in EPSILONS}
    words = "; ".join(
        f"not at ε = {epsilon}, k = {', '.join(map(str, ks))}" for epsilon, ks in lost.items() if ks
    )
    figure = 3 if what == "sse" else 4
    return judge(
        "lower-error-than-mdav", wins.values(), figure, name, what.upper(), f" ({words})" if words else ""
    )


def _alone_better(curves: Curves) -> Claim:
    hits = [
        curves.points[IR_1, 1, k][what] < curves.points[MDAV, 1, k][what]
        for what in ("sse_alone", "sae_alone")
        for k in curves.ks
    ]
    return judge("without-noise-individual-ranking", hits)


def _second_better(curves: Curves) -> Claim:
    hits = [
        curves.points[IR_2, epsilon, k]["sse"] < curves.points[IR_1, epsilon, k]["sse"]
        for epsilon in EPSILONS
        for k in curves.ks
    ]
    return judge("ir-mdav-dp-2", hits)


def _difference_small(curves: Curves) -> Claim:
    less = {
        (epsilon, k): 1 - curves.points[IR_2, epsilon, k]["sse"] / curves.points[IR_1, epsilon, k]["sse"]
        for epsilon in EPSILONS
        for k in curves.ks
    }
    return judge(
        "difference-sse-between-ir",
        (part <= _CLOSE - 1 for part in less.values()),
        min(less.values()),
        max(less.values()),
        less[1, 50],
        less[1, 100],
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
    return judge(
        "sae-results-consistent-those",
        [*alike, *wins.values()],
        MDAV,
        counted(alike),
        IR_2,
        counted(wins.values()),
        f" (at ε = 1 not for k = {', '.join(map(str, lost))})" if lost else "",
    )
