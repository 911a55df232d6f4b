"""What PSD-2014 reads off its Figure 1: curves over k come in, verdicts leave."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from papers.cluster_errors import share_verdict
from papers.psd2014.curves import EPSILONS, Curves, logarithm
from papers.study import Claim

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
        Claim(
            "section 5, Figure 1",
            "What individual ranking alone loses grows with k.",
            f"In {sum(grows)} of {len(grows)} steps of k from {curves.ks[0]} to {curves.ks[-1]}.",
            share_verdict(sum(grows), len(grows)),
        ),
        Claim(
            "section 5, Figure 1",
            "What individual ranking alone loses is negligible beside the noise for most ε.",
            "At most "
            + ", ".join(f"{share:.0e} of plain noise at ε = {epsilon}" for epsilon, share in shares.items())
            + f". Of the method's own error it is {own['0.1']:.1%}, {own['1']:.1%} and {own['10']:.0%} at k = "
            f"{curves.ks[-1]}.",
            share_verdict(sum(share < 0.01 for share in shares.values()), len(shares)),
        ),
    ]


def _gains(curves: Curves) -> list[Claim]:
    first = {epsilon: 1 - curves.points[epsilon, 2]["sse"] / curves.plain[epsilon] for epsilon in EPSILONS}
    last = {
        epsilon: logarithm(curves.plain[epsilon]) - logarithm(curves.points[epsilon, curves.ks[-1]]["sse"])
        for epsilon in EPSILONS
    }
    return [
        Claim(
            "section 5, Figure 1",
            "From k = 2 on the method needs significantly less noise than plain Laplace noise.",
            "Half the scale at k = 2. After clipping SSE is less by "
            + ", ".join(f"{gain:.0%} at ε = {epsilon}" for epsilon, gain in first.items())
            + ": small ε leaves little but the width of the domain.",
            share_verdict(sum(gain > 0.1 for gain in first.values()), len(first)),
        ),
        Claim(
            "section 5, Figure 1",
            "The relative gain over plain noise depends on ε.",
            "log10 of the gain at k = "
            f"{curves.ks[-1]}: "
            + ", ".join(f"{gain:.2f} at ε = {epsilon}" for epsilon, gain in last.items())
            + ".",
            "holds" if max(last.values()) - min(last.values()) > _ABOUT else "fails",
        ),
    ]


def _small_epsilon(curves: Curves) -> list[Claim]:
    worse = [curves.points["0.1", k]["sse"] > curves.spread for k in curves.ks]
    own = logarithm(curves.points["0.1", 100]["sse"])
    plain = {epsilon: logarithm(curves.plain[epsilon]) for epsilon in EPSILONS}
    return [
        Claim(
            "section 5, Figure 1",
            "At ε = 0.1 the output is of little use even after individual ranking.",
            f"Worse than one mean for all (log10 {logarithm(curves.spread):.2f}) at {sum(worse)} of {len(worse)} "
            "values of k.",
            share_verdict(sum(worse), len(worse)),
        ),
        Claim(
            "section 5, Figure 1",
            "ε = 0.1 with k = 100 loses about what plain noise loses at ε = 1.",
            f"{own:.2f} beside {plain['1']:.2f}. The noise depends on k·ε only, so the counterpart is plain noise at "
            f"ε = 10: {plain['10']:.2f}. The method is better than the paper says.",
            "holds" if abs(own - plain["1"]) <= _ABOUT else "fails",
        ),
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
        Claim(
            "section 5, Figure 1",
            "At ε = 10 SSE falls much for small k and then hardly changes.",
            f"log10 falls by {early:.2f} per record of k up to k = {curves.ks[middle]}, by {late:.3f} from there on: "
            f"still by {logs['10'][middle] - logs['10'][-1]:.1f} in all.",
            "fails"
            if early <= late
            else "holds"
            if logs["10"][middle] - logs["10"][-1] < _ALMOST
            else "holds partly",
        ),
        Claim(
            "section 5, Figure 1",
            "At ε = 10 SSE is almost as low as individual ranking alone for large k.",
            "log10 is higher by "
            + ", ".join(f"{gap:.2f} at k = {k}" for k, gap in above.items())
            + f"; almost is taken to be {_ALMOST}, a factor of two.",
            share_verdict(sum(gap < _ALMOST for gap in above.values()), len(above)),
        ),
        Claim(
            "section 5, Figure 1",
            "At ε = 10 the error of large groups dominates and limits the gain.",
            f"It is {parts[curves.ks[-1]]:.0%} of SSE at k = {curves.ks[-1]}, "
            + ", ".join(f"{parts[k]:.0%} at {k}" for k in (10, 25, 50))
            + (f": more than half from k = {min(main)} on." if main else ": never more than half."),
            "fails" if not main else "holds" if min(main) <= 50 else "holds partly",
        ),
        Claim(
            "section 5, Figure 1",
            "At ε = 1 the fall is closer to a straight line, as the error of the groups limits it less.",
            "R² of a line through log10 SSE over k: "
            + ", ".join(f"{value:.2f} at ε = {epsilon}" for epsilon, value in straight.items())
            + f". At k = {curves.ks[-1]} the groups alone make up "
            + ", ".join(f"{part:.1%} of SSE at ε = {epsilon}" for epsilon, part in grouped.items())
            + ".",
            share_verdict(int(straight["1"] > straight["10"]) + int(grouped["1"] < grouped["10"]), 2),
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
        Claim(
            "abstract; section 1; conclusion",
            "Individual ranking lowers the scale of the noise and so improves utility.",
            f"SSE below that of plain noise in {sum(lower)} of {len(lower)} points.",
            share_verdict(sum(lower), len(lower)),
        ),
        Claim(
            "abstract; section 1",
            "Differentially private records made by plain noise are of limited use.",
            "SSE is "
            + ", ".join(f"{ratio:.1f} times (ε = {epsilon})" for epsilon, ratio in over.items())
            + " that of one mean for all.",
            share_verdict(sum(ratio > 1 for ratio in over.values()), len(over)),
        ),
        Claim(
            "section 5",
            "ε from 0.1 to 10 covers what is usual in the literature.",
            "A survey of the literature, not a computation.",
            "not tested",
        ),
    ]
