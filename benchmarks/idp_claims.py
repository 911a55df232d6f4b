"""What the iDP paper says about its experiments: our measurements come in, a verdict on each statement leaves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.idp_measure import EPSILONS, NARROW, WIDE, Cell, DataSet, Scores

# the paper's own: the page also measures ε = 10
SAFE = EPSILONS[:3]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in our words, what was measured, and whether it holds."""

    said: str
    measured: str
    verdict: str


def sse_claims(data: DataSet, levels: Mapping[Cell, float]) -> Iterator[Claim]:
    """Section 4.1, statement by statement, from the expected log10 mean SSE of every setting."""
    ks = sorted({cell.k for cell in levels if cell.k})

    def at(method: str, epsilon: float, k: int = 0, alpha: float = NARROW) -> float:
        return levels[Cell(method, alpha, epsilon, k)]

    def best(method: str, epsilon: float) -> tuple[float, int]:
        return min((at(method, epsilon, k), k) for k in ks)

    noisy = ("ranking-dp", "idp-ls")
    settings = [(epsilon, k) for epsilon in SAFE for k in ks]
    below = [at("laplace", e) >= at(m, e, k) for e, k in settings for m in (*noisy, "idp-cbls")]
    yield Claim("DP has the highest SSE", _count(below), _share(below))
    ends = at("laplace", SAFE[0]), at("laplace", SAFE[-1])
    yield Claim(
        "SSE of DP barely decreases from ε = 0.01 to 1",
        f"{ends[0]:.2f} to {ends[1]:.2f}",
        _yes(ends[0] - ends[1] < 0.1),
    )
    for method, name in (("ranking-dp", "DP-UM"), ("idp-ls", "iDP-LS")):
        falls = [at(method, e, a) > at(method, e, b) for e in SAFE for a, b in itertools.pairwise(ks)]
        whole = ", ".join(f"{at(method, e, ks[0]):.2f} to {at(method, e, ks[-1]):.2f}" for e in SAFE)
        yield Claim(
            f"SSE of {name} decreases as k grows",
            f"{_count(falls)} steps of k; in all {whole}",
            _share(falls),
        )
    lower = [at("idp-ls", e, k) < at("ranking-dp", e, k) for e, k in settings]
    yield Claim("iDP-LS has lower SSE than DP-UM", _count(lower), _share(lower))
    gaps = [_mean(at("ranking-dp", e, k) - at("idp-ls", e, k) for k in ks) for e in SAFE]
    yield Claim(
        "their difference grows with ε",
        "mean difference " + ", ".join(f"{gap:.3f}" for gap in gaps),
        _yes(gaps == sorted(gaps)),
    )
    wide_gaps = [_mean(at("ranking-dp", e, k, WIDE) - at("idp-ls", e, k, WIDE) for k in ks) for e in SAFE]
    yield Claim(
        "their difference stays proportional when α varies",
        f"at ε = 1 a mean difference of {gaps[-1]:.3f} (α = 1.5) and {wide_gaps[-1]:.3f} (α = 3)",
        _yes(0.8 < wide_gaps[-1] / gaps[-1] < 1.25, f"no: {wide_gaps[-1] / gaps[-1]:.2f} times as large"),
    )
    narrower = [at("laplace", e) < at("laplace", e, 0, WIDE) for e in SAFE] + [
        at(m, e, k) < at(m, e, k, WIDE) for m in noisy for e, k in settings
    ]
    yield Claim("DP, DP-UM and iDP-LS have lower SSE with α = 1.5 than 3", _count(narrower), _share(narrower))
    gain = [min(best(m, e)[0] for m in noisy) - best("idp-cbls", e)[0] for e in SAFE]
    yield Claim(
        "iDP-CBLS is better by several orders of magnitude",
        "best k against best k, orders of magnitude: " + ", ".join(f"{g:.2f}" for g in gain),
        _yes(min(gain) >= 2, f"no: by {min(gain):.1f} to {max(gain):.1f}"),
    )
    own, others = best("idp-cbls", 0.01)[0], [at(m, 1.0, ks[-1]) for m in noisy]
    yield Claim(
        f"iDP-CBLS at ε = 0.01 is similar to DP-UM and iDP-LS at ε = 1 and large k (here {ks[-1]})",
        f"{own:.2f} against {others[0]:.2f} and {others[1]:.2f}",
        _yes(all(abs(own - other) < 0.3 for other in others)),
    )
    moved = max(abs(at("idp-cbls", e, k) - at("idp-cbls", e, k, WIDE)) for e, k in settings)
    by_epsilon = ", ".join(
        f"{max(abs(at('idp-cbls', e, k) - at('idp-cbls', e, k, WIDE)) for k in ks):.3f}" for e in SAFE
    )
    yield Claim(
        "iDP-CBLS is not affected by the domain",
        f"largest difference between α = 1.5 and 3 at ε = 0.01, 0.1, 1: {by_epsilon}",
        _yes(moved < 0.05, "only for large ε: clipping to the domain removes noise"),
    )
    sizes = [best("idp-cbls", e)[1] for e in SAFE]
    yield Claim(
        "iDP-CBLS is best with k from 5 to 15",
        f"best k {', '.join(map(str, sizes))}",
        _share([5 <= k <= 15 for k in sizes]),
    )
    rise = [at("idp-cbls", e, ks[-1]) - best("idp-cbls", e)[0] for e in SAFE]
    yield Claim(
        "larger k raise its SSE a little",
        f"from the best k to k = {ks[-1]}: " + ", ".join(f"{r:+.2f}" for r in rise),
        _share([r > 0 for r in rise]),
    )
    rivals = [best("idp-cbls", e)[0] <= at("laplace", 100 * e) for e in (0.01, 0.1)]
    yield Claim(
        "iDP-CBLS rivals DP with a 10 to 100 times larger ε",
        f"ε = 0.1: {best('idp-cbls', 0.1)[0]:.2f}; DP at ε = 10: {at('laplace', 10.0):.2f}",
        _share(rivals),
    )


def learning_claims(data: DataSet, found: Scores, bounds: Mapping[str, Any]) -> Iterator[Claim]:
    """Section 4.2, statement by statement; a loss is the mean over both classes of 1 - F / F of the original."""
    ks = sorted({cell.k for cell in found})
    upper = bounds["original"]["f"]
    wide_k = next(cell.k for cell in found if cell.alpha == WIDE)

    def loss(method: str, epsilon: float, k: int, alpha: float = NARROW) -> float:
        f = found[Cell(method, alpha, epsilon, k)]["f"]
        return _mean(1 - (f[name] or 0.0) / upper[name] for name in upper)

    def best(method: str, epsilon: float) -> tuple[float, int]:
        return min((loss(method, epsilon, k), k) for k in ks)

    def losses(method: str) -> str:
        return ", ".join(f"{best(method, e)[0]:.1%} (k = {best(method, e)[1]})" for e in SAFE)

    grows = [loss("idp-ls", e, ks[-1]) < loss("idp-ls", e, ks[0]) for e in SAFE]
    falls = "; ".join(f"{loss('idp-ls', e, ks[0]):.1%} to {loss('idp-ls', e, ks[-1]):.1%}" for e in SAFE)
    yield Claim("iDP-LS improves with k", f"loss at k = {ks[0]} and {ks[-1]}, by ε: {falls}", _share(grows))
    if data.name == "Census":
        better = [loss("idp-ls", e, wide_k) < loss("idp-ls", e, wide_k, WIDE) for e in (0.1, 1.0)]
        pairs = "; ".join(
            f"{loss('idp-ls', e, wide_k):.1%} and {loss('idp-ls', e, wide_k, WIDE):.1%}" for e in (0.1, 1.0)
        )
        yield Claim(
            "iDP-LS is better for narrower domains when ε > 0.01",
            f"loss at k = {wide_k} with α = 1.5 and 3, ε = 0.1 and 1: {pairs}",
            _share(better),
        )
        late = [k for k in ks if k >= 50]
        spans = [
            max(loss("idp-ls", e, k) for k in late) - min(loss("idp-ls", e, k) for k in late)
            for e in (0.1, 1.0)
        ]
        yield Claim(
            "iDP-LS is quite stable from k = 50 on when ε > 0.01",
            "loss varies by " + ", ".join(f"{span:.1%}" for span in spans),
            _share([span < 0.05 for span in spans]),
        )
        yield Claim(
            "the best of iDP-LS is about 20%, 10%, 5% worse than the original at ε = 0.01, 0.1, 1",
            losses("idp-ls"),
            _share(
                [
                    abs(best("idp-ls", e)[0] - said) < 0.04
                    for e, said in zip(SAFE, (0.2, 0.1, 0.05), strict=True)
                ]
            ),
        )
        yield Claim(
            "iDP-CBLS is 10%, 3%, 0% worse",
            losses("idp-cbls"),
            _share(
                [
                    abs(best("idp-cbls", e)[0] - said) < 0.02
                    for e, said in zip(SAFE, (0.1, 0.03, 0.0), strict=True)
                ]
            ),
        )
        one, other = best("idp-cbls", 0.01)[0], best("idp-ls", 0.1)[0]
        yield Claim(
            "iDP-CBLS at ε = 0.01 is similar to iDP-LS at ε = 0.1",
            f"loss {one:.1%} and {other:.1%}",
            _yes(abs(one - other) < 0.05, "no: better" if one < other else "no: worse"),
        )
    degrades = [loss("idp-cbls", e, ks[-1]) - best("idp-cbls", e)[0] for e in SAFE]
    yield Claim(
        "iDP-CBLS degrades for large k",
        f"loss added from the best k to k = {ks[-1]}: " + ", ".join(f"{d:.1%}" for d in degrades),
        _share([d > 0.005 for d in degrades]),
    )
    if data.name == "Wine":
        low, high = bounds["classes"].values()
        yield Claim(
            "there are 3.5 times more records of the class Not Excellent",
            f"{low} and {high}, {low / high:.2f} times",
            _yes(abs(low / high - 3.5) < 0.2),
        )
        names = list(upper)
        unequal = [
            found[Cell(m, NARROW, e, k)]["f"][names[0]] > (found[Cell(m, NARROW, e, k)]["f"][names[1]] or 0.0)
            for m in ("idp-ls", "idp-cbls")
            for e in SAFE
            for k in ks
        ]
        yield Claim("Excellent has the lower F-measure", _count(unequal), _share(unequal))
        for epsilon in (0.1, 1.0):
            least, k = best("idp-cbls", epsilon)
            f = found[Cell("idp-cbls", NARROW, epsilon, k)]["f"]
            shown = ", ".join(f"{f[name]:.3f} (original {upper[name]:.3f})" for name in names)
            yield Claim(
                f"iDP-CBLS at ε = {epsilon:g} reaches the original and exceeds it for some k",
                f"best k = {k}: {shown}",
                _yes(least < 0, "reached within 1%" if least < 0.01 else "no"),
            )


def _mean(values: Iterator[float] | Any) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


def _count(found: list[bool]) -> str:
    return f"{sum(found)} of {len(found)}"


def _share(found: list[bool]) -> str:
    if all(found):
        return "holds"
    return "no" if not any(found) else f"in part, {_count(found)}"


def _yes(found: bool, otherwise: str = "no") -> str:
    return "holds" if found else otherwise
