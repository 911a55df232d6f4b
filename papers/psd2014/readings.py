"""Verdicts on the claims that PSD-2014 bases on its Figure 1."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from papers.psd2014.curves import EPSILONS, Curves, logarithm
from papers.study import Claim
from papers.texts import judging

judge = judging("psd2014/texts")

# log10: "equal" and "almost" in the paper's words
_ABOUT = 0.1
_ALMOST = 0.3
# "larger k" in the paper's words, of 2 to 100
_LARGE = 50


def readings(curves: Curves) -> list[Claim]:
    """Section 5, line by line, then abstract and conclusion."""
    return [
        *_alone(curves),
        *_gains(curves),
        *_small_epsilon(curves),
        *_large_epsilon(curves),
        *_rest(curves),
    ]


def _alone(curves: Curves) -> list[Claim]:
    alone = curves.over_k("1", "sse_alone")
    grows = [after > before for before, after in pairwise(alone)]
    shares = {epsilon: max(alone) / curves.plain[epsilon] for epsilon in EPSILONS}
    own = {epsilon: alone[-1] / curves.points[epsilon, curves.ks[-1]]["sse"] for epsilon in EPSILONS}
    return [
        judge("what-individual-ranking-alone", grows, curves.ks[0], curves.ks[-1]),
        judge(
            "what-individual-ranking-alone-loses",
            (share < 0.01 for share in shares.values()),
            ", ".join(f"{share:.0e} of plain noise at ε = {epsilon}" for epsilon, share in shares.items()),
            own["0.1"],
            own["1"],
            own["10"],
            curves.ks[-1],
        ),
    ]


def _gains(curves: Curves) -> list[Claim]:
    first = {epsilon: 1 - curves.points[epsilon, 2]["sse"] / curves.plain[epsilon] for epsilon in EPSILONS}
    last = {
        epsilon: logarithm(curves.plain[epsilon]) - logarithm(curves.points[epsilon, curves.ks[-1]]["sse"])
        for epsilon in EPSILONS
    }
    return [
        judge(
            "k-2-method-needs",
            (gain > 0.1 for gain in first.values()),
            ", ".join(f"{gain:.0%} at ε = {epsilon}" for epsilon, gain in first.items()),
        ),
        judge(
            "relative-gain-over-plain",
            max(last.values()) - min(last.values()) > _ABOUT,
            curves.ks[-1],
            ", ".join(f"{gain:.2f} at ε = {epsilon}" for epsilon, gain in last.items()),
        ),
    ]


def _small_epsilon(curves: Curves) -> list[Claim]:
    worse = [curves.points["0.1", k]["sse"] > curves.spread for k in curves.ks]
    own = logarithm(curves.points["0.1", 100]["sse"])
    plain = {epsilon: logarithm(curves.plain[epsilon]) for epsilon in EPSILONS}
    return [
        judge("epsilon-0-1-output", worse, logarithm(curves.spread)),
        judge("epsilon-0-1-k", abs(own - plain["1"]) <= _ABOUT, own, plain["1"], plain["10"]),
    ]


def _large_epsilon(curves: Curves) -> list[Claim]:
    logs = {epsilon: [logarithm(sse) for sse in curves.over_k(epsilon)] for epsilon in EPSILONS}
    middle = min(range(len(curves.ks)), key=lambda place: abs(curves.ks[place] - 10))
    early, late = (
        (logs["10"][start] - logs["10"][end]) / (curves.ks[end] - curves.ks[start])
        for start, end in ((0, middle), (middle, -1))
    )
    above = {
        k: logs["10"][place] - logarithm(curves.points["10", k]["sse_alone"])
        for place, k in enumerate(curves.ks)
        if k >= _LARGE
    }
    parts = {k: curves.points["10", k]["sse_alone"] / curves.points["10", k]["sse"] for k in curves.ks}
    main = [k for k, part in parts.items() if part > 0.5]
    last = curves.ks[-1]
    grouped = {
        epsilon: curves.points[epsilon, last]["sse_alone"] / curves.points[epsilon, last]["sse"]
        for epsilon in ("1", "10")
    }
    straight = {epsilon: _straightness(curves.ks, logs[epsilon]) for epsilon in EPSILONS}
    return [
        judge(
            "epsilon-10-sse-falls",
            "fails"
            if early <= late
            else "holds"
            if logs["10"][middle] - logs["10"][-1] < _ALMOST
            else "holds partly",
            early,
            curves.ks[middle],
            late,
            logs["10"][middle] - logs["10"][-1],
        ),
        judge(
            "epsilon-10-sse-almost",
            (gap < _ALMOST for gap in above.values()),
            ", ".join(f"{gap:.2f} at k = {k}" for k, gap in above.items()),
            _ALMOST,
        ),
        judge(
            "epsilon-10-error-large",
            "fails" if not main else "holds" if min(main) <= 50 else "holds partly",
            parts[curves.ks[-1]],
            curves.ks[-1],
            ", ".join(f"{parts[k]:.0%} at {k}" for k in (10, 25, 50)),
            f": more than half from k = {min(main)} on." if main else ": never more than half.",
        ),
        judge(
            "epsilon-1-fall-closer",
            [straight["1"] > straight["10"], grouped["1"] < grouped["10"]],
            ", ".join(f"{value:.2f} at ε = {epsilon}" for epsilon, value in straight.items()),
            curves.ks[-1],
            ", ".join(f"{part:.1%} of SSE at ε = {epsilon}" for epsilon, part in grouped.items()),
        ),
    ]


def _straightness(ks: tuple[int, ...], values: list[float]) -> float:
    return float(np.corrcoef(ks, values)[0, 1] ** 2)


def _rest(curves: Curves) -> list[Claim]:
    lower = [
        curves.points[epsilon, k]["sse"] < curves.plain[epsilon] for epsilon in EPSILONS for k in curves.ks
    ]
    over = {epsilon: curves.plain[epsilon] / curves.spread for epsilon in EPSILONS}
    return [
        judge("individual-ranking-lowers-scale", lower),
        judge(
            "differentially-private-records-made",
            (ratio > 1 for ratio in over.values()),
            ", ".join(f"{ratio:.1f} times (ε = {epsilon})" for epsilon, ratio in over.items()),
        ),
        judge("epsilon-0-1-10", "not tested"),
    ]
