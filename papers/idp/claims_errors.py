"""Verdicts on the claims of section 4.1 of the iDP paper, from expected errors of all settings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

from papers.idp.expectation import PRINTED, level, of_domain_ends
from papers.idp.results import Measured
from papers.idp.settings import EPSILONS, METHODS, NARROW, WIDE, Cell
from papers.idp.verdicts import mean
from papers.study import Claim, counted
from papers.texts import judging

judge = judging("idp/texts")

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
    for claim in itertools.chain(
        _plain(levels), _clustered(levels), _cluster_based(levels), _best_sizes(levels)
    ):
        yield replace(claim, where=where)


def _plain(levels: _Levels) -> Iterator[Claim]:
    at, ks = levels.at, levels.ks
    below = [at("laplace", e) >= at(m, e, k) for e, k in levels.settings for m in (*NOISY, "idp-cbls")]
    yield judge("plain-noise-dp-highest", below)
    ends = at("laplace", EPSILONS[0]), at("laplace", EPSILONS[-1])
    yield judge("sse-plain-noise-dp", [ends[0] - ends[1] < 0.1], ends[0], ends[1])
    thrown = level(of_domain_ends(levels.found.values, NARROW)[PRINTED])
    gaps = [thrown - at("laplace", e) for e in EPSILONS]
    yield judge("data-masked-plain-noise", [gap < 0.1 for gap in gaps], thrown, _list(gaps, ".3f"))
    best = {method: [levels.best(method, e)[1] for e in EPSILONS] for method in NOISY}
    yield judge(
        "dp-um-idp-ls",
        [size == ks[-1] for sizes in best.values() for size in sizes],
        "; ".join(f"best k of {METHODS[m]} by ε: {_list(best[m], 'd')}" for m in NOISY),
    )


def _clustered(levels: _Levels) -> Iterator[Claim]:
    at, ks = levels.at, levels.ks
    apart = [abs(at("ranking-dp", e, k) - at("idp-ls", e, k)) for e, k in levels.settings]
    yield judge(
        "dp-um-idp-ls-similar", [gap < SIMILAR for gap in apart], max(apart), sorted(apart)[len(apart) // 2]
    )
    for method in NOISY:
        falls = [at(method, e, a) > at(method, e, b) for e in EPSILONS for a, b in itertools.pairwise(ks)]
        whole = ", ".join(f"{at(method, e, ks[0]):.2f} to {at(method, e, ks[-1]):.2f}" for e in EPSILONS)
        yield judge("sse-decreases-k-grows", falls, METHODS[method], whole)
    lower = [at("idp-ls", e, k) < at("ranking-dp", e, k) for e, k in levels.settings]
    yield judge("idp-ls-lower-sse", lower)
    gaps, wide_gaps = levels.gaps(NARROW), levels.gaps(WIDE)
    yield judge("difference-between-dp-um", [a < b for a, b in itertools.pairwise(gaps)], _list(gaps, ".3f"))
    ratios = [wide / narrow for wide, narrow in zip(wide_gaps, gaps, strict=True)]
    unchanged = all(0.8 < ratio < 1.25 for ratio in ratios)
    yield judge(
        "difference-between-dp-um-idp",
        [unchanged, max(ratios) < 1.25 * min(ratios)],
        _list(ratios, ".2f"),
        "much the same" if unchanged else "not the same",
        ", by about one factor at all ε" if max(ratios) < 1.25 * min(ratios) else "",
    )
    moved = [at("idp-ls", e, k, WIDE) - at("idp-ls", e, k) for e, k in levels.settings]
    yield judge("idp-ls-still-depends", [change > 0.05 for change in moved], min(moved), max(moved))
    narrower = [at("laplace", e) < at("laplace", e, 0, WIDE) for e in EPSILONS] + [
        at(m, e, k) < at(m, e, k, WIDE) for m in NOISY for e, k in levels.settings
    ]
    yield judge("dp-dp-um-idp", narrower)


def _cluster_based(levels: _Levels) -> Iterator[Claim]:
    at, ks = levels.at, levels.ks
    gain = [min(levels.best(m, e)[0] for m in NOISY) - levels.best("idp-cbls", e)[0] for e in EPSILONS]
    same = [min(at(m, e, k) for m in NOISY) - at("idp-cbls", e, k) for e, k in levels.settings]
    yield judge(
        "idp-cbls-better-other",
        [min(gain) >= 2, max(same) >= 2],
        _list(gain, ".2f"),
        min(same),
        max(same),
        counted([g >= 2 for g in same]),
    )
    own, others = levels.best("idp-cbls", 0.01)[0], [at(m, 1.0, ks[-1]) for m in NOISY]
    yield judge(
        "idp-cbls-epsilon-0",
        [abs(own - other) < SIMILAR for other in others],
        own,
        others[0],
        others[1],
        ks[-1],
        " and ".join(str(min(ks, key=lambda k: abs(at(m, 1.0, k) - own))) for m in NOISY),
    )
    moved = [max(abs(at("idp-cbls", e, k) - at("idp-cbls", e, k, WIDE)) for k in ks) for e in EPSILONS]
    scales = sum(facts["inner_moved_by_domain"] for facts in levels.found.clusters.values())
    yield judge(
        "idp-cbls-affected-domain",
        [scales == 0, *(change < 0.05 for change in moved)],
        scales,
        _list(moved, ".2f"),
    )


def _best_sizes(levels: _Levels) -> Iterator[Claim]:
    at, ks = levels.at, levels.ks
    best = [levels.best("idp-cbls", e) for e in EPSILONS]
    yield judge("idp-cbls-best-k", [5 <= k <= 15 for _, k in best], _list([k for _, k in best], "d"))
    rise = [at("idp-cbls", e, ks[-1]) - value for e, (value, _) in zip(EPSILONS, best, strict=True)]
    yield judge("larger-k-raise-sse", [0 < change < 1 for change in rise], ks[-1], _list(rise, "+.2f"))
    alone = [10 ** (at("idp-cbls", math.inf, ks[-1]) - at("idp-cbls", e, ks[-1])) for e in EPSILONS]
    yield judge("larger-k-do-because", [part > 0.5 for part in alone], ks[-1], _list(alone, ".1%"))


def _list(values: list[float] | list[int], form: str) -> str:
    return ", ".join(format(value, form) for value in values)
