"""Verdicts on the claims of chapter 7, from its examples and facts about Census."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise, product
from statistics import fmean
from typing import Any

import numpy as np

from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis.chapter3_facts import known_members, random_groups, swap_chances
from papers.thesis.chapter7_worlds import (
    MEDICAL,
    generalisations,
    overdrawn,
    random_distributions,
    ratio,
    solvable,
    supports_of_neighbours,
    theoretical,
)
from shoal.mechanisms.kanonymity.grouping_algorithms import allot

judge = judging("thesis/chapter7")

_SLACK = 1e-9


def partition_claims(census: Mapping[str, Any]) -> Iterator[Claim]:
    """Statements of section 7.1."""
    levels = generalisations()
    minimal = [(one, two) for one, two, k in levels if k >= 4 and one + two == 2]
    fewer = [k for one, two, k in levels if one + two < 2]
    yield judge(
        "minimal-generalisation-best-depends", [(0, 2) in minimal, (2, 0) in minimal, max(fewer) < 4], minimal
    )
    alone = [k for one, two, k in levels if (one, two) in ((0, 2), (2, 0))]
    # what a record looks like in both versions
    seen = Counter((a, b >> 2, a >> 2, b) for a, b in product(range(4), repeat=2))
    together = min(seen.values())
    yield judge(
        "releasing-several-versions-different",
        [together < min(alone)],
        " and ".join(map(str, alone)),
        together,
    )
    loss = [len({row[1] for row in MEDICAL}), len({row[2] for row in MEDICAL})]
    yield judge("generalisation-loses-much-generalised", [loss[0] > 1, loss[1] > 1], loss[0], loss[1])
    lost = census["quasi_loss"]
    yield judge(
        "groups-confidential-attribute-replacing",
        [lost["confidential"] > lost["quasi"]],
        lost["confidential"],
        lost["quasi"],
    )
    gaps = census["optimal"]
    yield judge(
        "taking-k-smallest-largest",
        (gap < 1 + 1e-6 for pair in gaps.values() for gap in pair),
        "; ".join(
            f"{name} {five:.2f} (k = 5), {twelve:.2f} (k = 12)" for name, (five, twelve) in gaps.items()
        ),
    )
    small, tenth = census["rank_ranges"].values()
    yield judge(
        "groups-confidential-attribute-vary",
        [small["confidential"][1] < 0.02, small["quasi"][1] > 0.5],
        small["confidential"][1],
        small["quasi"][0],
        small["quasi"][1],
    )
    low, high = tenth["quasi"]
    fixed = tenth["confidential"]
    yield judge(
        "there-k-fixes-variability",
        [census["tenth"] >= 108, fixed[1] < 0.2, high - low > fixed[1] - fixed[0]],
        census["tenth"],
        fixed[0],
        fixed[1],
        low,
        high,
    )


def claims(census: Mapping[str, Any]) -> Iterator[Claim]:
    """Statements of sections 7.2 to 7.4, of chapter 8 on this chapter, and the hopes of section 8.3."""
    yield from _distance(census)
    yield _coarseness(census)
    yield from _construction(census)
    yield from _privacy(census)
    yield from _hopes(census)


def _distance(census: Mapping[str, Any]) -> Iterator[Claim]:
    pairs = list(random_distributions(40))
    by_point = [max(max(a / b, b / a) for a, b in zip(one, other, strict=True)) for one, other in pairs]
    same = [
        math.isclose(ratio(one, other), found) for (one, other), found in zip(pairs, by_point, strict=True)
    ]
    yield judge("discrete-distributions-distance-largest", same)
    share = census["unbucketised"]
    yield judge("without-buckets-distance-infinite", [share == 1], share)
    merged = [
        ratio([one[0] + one[1], *one[2:]], [other[0] + other[1], *other[2:]]) <= found + _SLACK
        for (one, other), found in zip(pairs, by_point, strict=True)
    ]
    yield judge("fewer-buckets-easier-t", merged)


def _coarseness(census: Mapping[str, Any]) -> Claim:
    lost = {int(b): loss for b, loss in census["bucket_loss"].items()}
    return judge(
        "coarser-buckets-more-confidential",
        (fine < coarse for coarse, fine in pairwise(lost.values())),
        ", ".join(f"{loss:.0f}% ({b} buckets)" for b, loss in lost.items()),
    )


def _construction(census: Mapping[str, Any]) -> Iterator[Claim]:
    tables = {t: theoretical(t) for t in range(1, 10)}
    exact = [
        np.allclose(table.sum(axis=1), 1)
        and np.allclose(table.mean(axis=0), 1 / (t + 1))
        and math.isclose(max((table * (t + 1)).max(), (1 / (table * (t + 1))).max()), t)
        for t, table in tables.items()
    ]
    yield judge("t-1-buckets-use", exact)
    saved = {name: (one, two) for name, (one, two) in census["homogeneous"].items()}
    yield judge(
        "using-distance-up-makes",
        (two < one for one, two in saved.values()),
        ", ".join(
            f"{one:.1f}% for t = 1, {two:.1f}% for t = 2 ({name})" for name, (one, two) in saved.items()
        ),
    )
    over = [overdrawn(1000, 2, one) for one in range(1, 112)]
    others = [overdrawn(n, 2, 7) > 0 for n in range(63, 1101)]
    solved = [solvable(1000, 2, one) for one in (1, 7, 20, 60, 111)]
    yield judge(
        "recipe-fewest-records-all",
        (not o for o in others),
        counted(o > 0 for o in over),
        max(over),
        over[6],
        counted(others),
        counted(solved),
    )
    smallest = {
        (n, t): int(allot(np.bincount(np.arange(n) % (t + 1)), t, t + 1).sizes.min())
        for n, t in ((12, 2), (1000, 2), (60, 4))
    }
    yield judge(
        "k-least-t-1",
        (size == n // ((t + 1) * (n // (t + 1) ** 2)) for (n, t), size in smallest.items()),
        ", ".join(f"{size} (N = {n}, t = {t})" for (n, t), size in smallest.items()),
    )
    distances = census["closeness"]
    yield judge(
        "construction-reaches-k-anonymity",
        (d <= t + _SLACK for d, t in zip(distances, (2, 3, 5) * 7, strict=True)),
        max(distances),
    )


def _privacy(census: Mapping[str, Any]) -> Iterator[Claim]:
    first, second, common = supports_of_neighbours()
    yield judge("uninformed-intruders-exp-epsilon", [common == first == second], first, second, common)
    known = known_members((1, 2, 3, 4), 3)
    yield judge("somebody-who-knows-k", [known == 1], known)
    yield judge("informed-intruders-exp-epsilon", [known < 1], Fraction(1, 4), known)
    by_size = {k: known_members(range(k), 3) for k in (4, 12, 100)}
    swap, whole = fmean(census["swap"]), fmean(census["whole"])
    yield judge(
        "larger-k-mitigates-most",
        [*(later < earlier for earlier, later in pairwise(by_size.values())), whole > 2 * swap],
        ", ".join(f"{chance} (k = {k})" for k, chance in by_size.items()),
        whole,
        swap,
    )
    kept = swap_chances(random_groups(8, 4))[0]
    yield judge("swapping-inside-hidden-groups", [kept <= Fraction(1, 8)], kept)
    yield judge("t-closeness-probabilistic-k", "holds partly" if kept > Fraction(1, 8) else "holds", kept)
    yield judge("truthfulness-data-inside-groups", [census["truthful"]])


def _hopes(census: Mapping[str, Any]) -> Iterator[Claim]:
    swap, noise = fmean(census["swap"]), fmean(run[0] for run in census["laplace"])
    outside = fmean(run[1] for run in census["laplace"])
    yield judge("hoped-more-utility-laplace", [swap < noise, outside > 0], swap, noise, outside)
