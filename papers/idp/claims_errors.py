"""Section 4.1 of the iDP paper: expected errors of all settings come in, a verdict on each statement leaves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from papers.idp.expectation import PRINTED, level, of_domain_ends
from papers.idp.results import Measured
from papers.idp.settings import EPSILONS, METHODS, NARROW, WIDE, Cell
from papers.idp.verdicts import mean
from papers.study import Claim, ClaimVerdict, counted, judged

NOISY = ("ranking-dp", "idp-ls")
# "similar" on the logarithmic scale: a factor of two
SIMILAR = math.log10(2)


class _Levels:
    """Expected log10 mean SSE as printed."""

    def __init__(self, found: Measured) -> None:
        self.found, self.ks = found, found.data.ks
        self.settings = [(epsilon, k) for epsilon in EPSILONS for k in self.ks]

    def at(self, method: str, epsilon: float, k: int = 0, alpha: float = NARROW) -> float:
        return self.found.expected_level(Cell(method, alpha, epsilon, k), PRINTED)

    def best(self, method: str, epsilon: float) -> tuple[float, int]:
        return self.found.best(method, epsilon, PRINTED)

    def gaps(self, alpha: float) -> list[float]:
        """Mean over k of how far iDP-LS is below DP-UM, by ε."""
        return [
            mean(self.at("ranking-dp", e, k, alpha) - self.at("idp-ls", e, k, alpha) for k in self.ks)
            for e in EPSILONS
        ]


def claims(found: Measured) -> Iterator[Claim]:
    """Every statement about Figure 3 or 4."""
    levels = _Levels(found)
    where = f"section 4.1, {found.data.name}"
    for said, words, verdict in itertools.chain(
        _plain(levels), _clustered(levels), _cluster_based(levels), _best_sizes(levels)
    ):
        yield Claim(where, said, words, verdict)


Row = tuple[str, str, ClaimVerdict]


def _plain(levels: _Levels) -> Iterator[Row]:
    at, ks = levels.at, levels.ks
    below = [at("laplace", e) >= at(m, e, k) for e, k in levels.settings for m in (*NOISY, "idp-cbls")]
    yield "plain noise (DP) has the highest SSE", f"{counted(below)} settings", judged(below)
    ends = at("laplace", EPSILONS[0]), at("laplace", EPSILONS[-1])
    yield (
        "the SSE of plain noise (DP) barely decreases from ε = 0.01 to 1",
        f"{ends[0]:.2f} to {ends[1]:.2f}",
        judged([ends[0] - ends[1] < 0.1]),
    )
    thrown = level(of_domain_ends(levels.found.values, NARROW)[PRINTED])
    gaps = [thrown - at("laplace", e) for e in EPSILONS]
    yield (
        "data masked by plain noise (DP) are nearly random for ε = 0.01 to 1",
        f"values thrown to either end of their domain at random have {thrown:.2f}; DP is lower by "
        + _list(gaps, ".3f"),
        judged([gap < 0.1 for gap in gaps]),
    )
    best = {method: [levels.best(method, e)[1] for e in EPSILONS] for method in NOISY}
    yield (
        "DP-UM and iDP-LS need large k",
        "; ".join(f"best k of {METHODS[m]} by ε: {_list(best[m], 'd')}" for m in NOISY),
        judged([size == ks[-1] for sizes in best.values() for size in sizes]),
    )


def _clustered(levels: _Levels) -> Iterator[Row]:
    at, ks = levels.at, levels.ks
    apart = [abs(at("ranking-dp", e, k) - at("idp-ls", e, k)) for e, k in levels.settings]
    yield (
        "DP-UM and iDP-LS are similar",
        f"at most {max(apart):.2f} apart, in the median {sorted(apart)[len(apart) // 2]:.3f}",
        judged([gap < SIMILAR for gap in apart]),
    )
    for method in NOISY:
        falls = [at(method, e, a) > at(method, e, b) for e in EPSILONS for a, b in itertools.pairwise(ks)]
        whole = ", ".join(f"{at(method, e, ks[0]):.2f} to {at(method, e, ks[-1]):.2f}" for e in EPSILONS)
        yield (
            f"SSE of {METHODS[method]} decreases as k grows",
            f"{counted(falls)} steps of k; in all, by ε, {whole}",
            judged(falls),
        )
    lower = [at("idp-ls", e, k) < at("ranking-dp", e, k) for e, k in levels.settings]
    yield "iDP-LS has lower SSE than DP-UM", f"{counted(lower)} settings", judged(lower)
    gaps, wide_gaps = levels.gaps(NARROW), levels.gaps(WIDE)
    yield (
        "the difference between DP-UM and iDP-LS grows with ε",
        f"mean difference by ε: {_list(gaps, '.3f')}",
        judged([a < b for a, b in itertools.pairwise(gaps)]),
    )
    ratios = [wide / narrow for wide, narrow in zip(wide_gaps, gaps, strict=True)]
    unchanged = all(0.8 < ratio < 1.25 for ratio in ratios)
    yield (
        "the difference between DP-UM and iDP-LS stays proportional when the domain varies",
        f"with α = 3 it is, by ε, {_list(ratios, '.2f')} times that with α = 1.5: "
        + ("much the same" if unchanged else "not the same")
        + (", by about one factor at all ε" if max(ratios) < 1.25 * min(ratios) else ""),
        judged([unchanged, max(ratios) < 1.25 * min(ratios)]),
    )
    moved = [at("idp-ls", e, k, WIDE) - at("idp-ls", e, k) for e, k in levels.settings]
    yield (
        "iDP-LS still depends on the domain",
        f"α = 3 raises its SSE by {min(moved):.2f} to {max(moved):.2f}",
        judged([change > 0.05 for change in moved]),
    )
    narrower = [at("laplace", e) < at("laplace", e, 0, WIDE) for e in EPSILONS] + [
        at(m, e, k) < at(m, e, k, WIDE) for m in NOISY for e, k in levels.settings
    ]
    yield "DP, DP-UM and iDP-LS have lower SSE with smaller domains", f"{counted(narrower)}", judged(narrower)


def _cluster_based(levels: _Levels) -> Iterator[Row]:
    at, ks = levels.at, levels.ks
    gain = [min(levels.best(m, e)[0] for m in NOISY) - levels.best("idp-cbls", e)[0] for e in EPSILONS]
    same = [min(at(m, e, k) for m in NOISY) - at("idp-cbls", e, k) for e, k in levels.settings]
    yield (
        "iDP-CBLS is better than the other methods by several orders of magnitude",
        f"each at its best k, by ε: {_list(gain, '.2f')} orders; at the same k {min(same):.2f} to "
        f"{max(same):.2f}, "
        f"two or more in {counted([g >= 2 for g in same])} settings",
        judged([min(gain) >= 2, max(same) >= 2]),
    )
    own, others = levels.best("idp-cbls", 0.01)[0], [at(m, 1.0, ks[-1]) for m in NOISY]
    yield (
        "iDP-CBLS at ε = 0.01 is similar to DP-UM and iDP-LS at ε = 1 and large k",
        f"{own:.2f} against {others[0]:.2f} and {others[1]:.2f} at k = {ks[-1]}; they come nearest to it at k = "
        + " and ".join(str(min(ks, key=lambda k: abs(at(m, 1.0, k) - own))) for m in NOISY),
        judged([abs(own - other) < SIMILAR for other in others]),
    )
    moved = [max(abs(at("idp-cbls", e, k) - at("idp-cbls", e, k, WIDE)) for k in ks) for e in EPSILONS]
    scales = sum(facts["inner_moved_by_domain"] for facts in levels.found.clusters.values())
    yield (
        "iDP-CBLS is not affected by the domain",
        f"its sensitivities are not ({scales} clusters change); its SSE differs by up to "
        f"{_list(moved, '.2f')} by ε "
        "between α = 1.5 and 3, since results are clipped to the domain",
        judged([scales == 0, *(change < 0.05 for change in moved)]),
    )


def _best_sizes(levels: _Levels) -> Iterator[Row]:
    at, ks = levels.at, levels.ks
    best = [levels.best("idp-cbls", e) for e in EPSILONS]
    yield (
        "iDP-CBLS is best with k from 5 to 15",
        f"best k by ε: {_list([k for _, k in best], 'd')}",
        judged([5 <= k <= 15 for _, k in best]),
    )
    rise = [at("idp-cbls", e, ks[-1]) - value for e, (value, _) in zip(EPSILONS, best, strict=True)]
    yield (
        "larger k raise the SSE of iDP-CBLS a little",
        f"from the best k to k = {ks[-1]}, by ε: {_list(rise, '+.2f')}",
        judged([0 < change < 1 for change in rise]),
    )
    alone = [10 ** (at("idp-cbls", math.inf, ks[-1]) - at("idp-cbls", e, ks[-1])) for e in EPSILONS]
    yield (
        "larger k do so because microaggregation then distorts iDP-CBLS more than less noise helps",
        f"at k = {ks[-1]} microaggregation alone, without noise, makes {_list(alone, '.1%')} of the SSE, by "
        "ε; the rest "
        "is noise, which does not fall with k, for wider clusters have larger sensitivities",
        judged([part > 0.5 for part in alone]),
    )


def _list(values: list[float] | list[int], form: str) -> str:
    return ", ".join(format(value, form) for value in values)
