"""What the iDP paper says about its experiments: our measurements come in, a verdict on each statement leaves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.reproduce.idp.measure import EPSILONS, NARROW, WIDE, Cell, DataSet, Scores

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
        _yes(moved < 0.05, "no: its scale is not, but clipping to the domain is"),
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
    first, last = ks[0], ks[-1]
    upper = bounds["original"]["f"]
    wide_k = next(cell.k for cell in found if cell.alpha == WIDE)

    def loss(method: str, epsilon: float, k: int, alpha: float = NARROW) -> Loss:
        return _loss(found[Cell(method, alpha, epsilon, k)], upper)

    def best(method: str, epsilon: float) -> tuple[Loss, int]:
        return min(((loss(method, epsilon, k), k) for k in ks), key=lambda pair: pair[0].value)

    def losses(method: str) -> str:
        return ", ".join(f"{best(method, e)[0]} (k = {best(method, e)[1]})" for e in SAFE)

    pairs = [(loss("idp-ls", e, first), loss("idp-ls", e, last)) for e in SAFE]
    yield Claim(
        "iDP-LS improves with k",
        f"loss at k = {first} and {last}, by ε: " + "; ".join(f"{a} to {b}" for a, b in pairs),
        _tally([_less(b, a) for a, b in pairs]),
    )
    if data.name == "Census":
        pairs = [(loss("idp-ls", e, wide_k), loss("idp-ls", e, wide_k, WIDE)) for e in (0.1, 1.0)]
        yield Claim(
            "iDP-LS is better for narrower domains when ε > 0.01",
            f"loss at k = {wide_k} with α = 1.5 and 3, by ε: " + "; ".join(f"{a} and {b}" for a, b in pairs),
            _tally([_less(a, b) for a, b in pairs]),
        )
        late = [[loss("idp-ls", e, k) for k in ks if k >= 50] for e in (0.1, 1.0)]
        yield Claim(
            "iDP-LS is quite stable from k = 50 on when ε > 0.01",
            "loss by k and ε: " + "; ".join(", ".join(map(str, row)) for row in late),
            _tally([_stable(row) for row in late]),
        )
        yield Claim(
            "the best of iDP-LS is about 20%, 10%, 5% worse than the original at ε = 0.01, 0.1, 1",
            losses("idp-ls"),
            _beside([best("idp-ls", e)[0] for e in SAFE], (0.2, 0.1, 0.05)),
        )
        yield Claim(
            "the best of iDP-CBLS is 10%, 3%, 0% worse",
            losses("idp-cbls"),
            _beside([best("idp-cbls", e)[0] for e in SAFE], (0.1, 0.03, 0.0)),
        )
        one, other = best("idp-cbls", 0.01)[0], best("idp-ls", 0.1)[0]
        yield Claim(
            "iDP-CBLS at ε = 0.01 is similar to iDP-LS at ε = 0.1",
            f"loss {one} and {other}",
            _beside([one], (other.value,)),
        )
    pairs = [(best("idp-cbls", e)[0], loss("idp-cbls", e, last)) for e in SAFE]
    yield Claim(
        "iDP-CBLS degrades for large k",
        f"loss at the best k and at k = {last}, by ε: " + "; ".join(f"{a} to {b}" for a, b in pairs),
        _tally([_less(a, b) for a, b in pairs]),
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
        spread = _loss(bounds["original"], upper).half
        for epsilon in (0.1, 1.0):
            own = [loss("idp-cbls", epsilon, k) for k in ks]
            beyond = [_less(item, Loss(0.0, spread)) for item in own].count("yes")
            verdict = f"reached; exceeded beyond the interval at {beyond} of {len(ks)} k"
            yield Claim(
                f"iDP-CBLS at ε = {epsilon:g} reaches the original and exceeds it for some k",
                "loss by k: " + ", ".join(map(str, own)),
                verdict if min(item.value for item in own) < 0.01 else "no",
            )


@dataclass(frozen=True)
class Loss:
    """A share of the F-measure that is lost, with half its interval over the runs (0 for a single run)."""

    value: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:.1%} ± {self.half:.1%}"


def _loss(found: Mapping[str, Any], upper: Mapping[str, float]) -> Loss:
    # classes move together from run to run, so their half intervals are averaged and not combined by squares
    return Loss(
        _mean(1 - (found["f"][name] or 0.0) / upper[name] for name in upper),
        _mean(_half(found["f_interval"][name]) / upper[name] for name in upper),
    )


def _half(interval: list[float] | None) -> float:
    return 0.0 if interval is None else (interval[1] - interval[0]) / 2


def _less(a: Loss, b: Loss) -> str:
    """Whether one loss is lower than another, as far as the runs can tell."""
    if abs(a.value - b.value) <= math.hypot(a.half, b.half):
        return "unclear"
    return "yes" if a.value < b.value else "no"


def _stable(row: list[Loss]) -> str:
    low, high = min(row, key=lambda item: item.value), max(row, key=lambda item: item.value)
    if _less(low, high) == "yes":
        return "no"
    return "yes" if max(item.half for item in row) < 0.05 else "unclear"


def _beside(own: list[Loss], said: tuple[float, ...]) -> str:
    """As said within the interval or 2 points, better or worse; one word for each."""
    words = [
        "as said" if abs(a.value - b) <= max(a.half, 0.02) else "better" if a.value < b else "worse"
        for a, b in zip(own, said, strict=True)
    ]
    return "holds" if set(words) == {"as said"} else ", ".join(words)


def _tally(words: list[str]) -> str:
    if set(words) == {"yes"}:
        return "holds"
    return ", ".join(words)


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
