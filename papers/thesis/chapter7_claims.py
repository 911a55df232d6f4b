"""Statements of chapter 7: its examples and facts about Census come in, verdicts leave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise, product
from statistics import fmean
from typing import Any

import numpy as np

from papers.study import Claim, counted, judged
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
from shoal.kanonymity import allot

_SLACK = 1e-9


def partition_claims(census: Mapping[str, Any]) -> Iterator[Claim]:
    """Statements of section 7.1."""
    levels = generalisations()
    minimal = [(one, two) for one, two, k in levels if k >= 4 and one + two == 2]
    fewer = [k for one, two, k in levels if one + two < 2]
    yield Claim(
        "7.1",
        "Which minimal generalisation is best depends on the user: one keeps Q1 = A apart, another Q2 = P.",
        f"4-anonymous with the least generalisation: levels {minimal}; the first keeps Q1 as it is, the last Q2.",
        judged([(0, 2) in minimal, (2, 0) in minimal, max(fewer) < 4]),
    )
    alone = [k for one, two, k in levels if (one, two) in ((0, 2), (2, 0))]
    # what a record looks like in both versions
    seen = Counter((a, b >> 2, a >> 2, b) for a, b in product(range(4), repeat=2))
    together = min(seen.values())
    yield Claim(
        "7.1",
        "Releasing several versions with different partitions endangers anonymity.",
        "Of the 16 records, the version that keeps Q1 and the one that keeps Q2 have groups of at least "
        f"{' and '.join(map(str, alone))}; who has both can tell apart groups of {together}.",
        judged([together < min(alone)]),
    )
    loss = [len({row[1] for row in MEDICAL}), len({row[2] for row in MEDICAL})]
    yield Claim(
        "7.1.2",
        "Generalisation loses much, and generalised values can coincide in different groups; Anatomy keeps all values "
        "and the distribution inside groups.",
        f"Table 7.3 leaves one date of birth of {loss[0]} and one sex of {loss[1]}, the same in all groups. Table 7.4 "
        "keeps every value: `tests/kanonymity/test_anatomy.py` compares the counts of every group.",
        judged([loss[0] > 1, loss[1] > 1]),
    )
    lost = census["quasi_loss"]
    yield Claim(
        "7.1.2",
        "With groups by the confidential attribute, replacing quasi-identifiers by one value a group would lose even "
        "more: they may span the whole domain.",
        f"Groups of 12 on Census: {lost['confidential']:.0f}% of the variation of A1 to A6 is inside groups by FICA, "
        f"{lost['quasi']:.0f}% inside groups by A1 to A6.",
        judged([lost["confidential"] > lost["quasi"]]),
    )
    gaps = census["optimal"]
    yield Claim(
        "Algorithm 7.1",
        "Taking the k smallest and largest in turn is the optimal partition by the confidential attribute.",
        "SSE inside groups over that of the best partition into groups of at least k: "
        + "; ".join(
            f"{name} {five:.2f} (k = 5), {twelve:.2f} (k = 12)" for name, (five, twelve) in gaps.items()
        )
        + ".",
        judged(gap < 1 + 1e-6 for pair in gaps.values() for gap in pair),
    )
    small, tenth = census["rank_ranges"].values()
    yield Claim(
        "7.1.1, 7.1.3",
        "Groups by the confidential attribute vary little: good utility, and for small k almost certain attribute "
        "disclosure, unlike groups by quasi-identifiers.",
        f"FICA on Census, k = 5: a group spans at most {small['confidential'][1]:.1%} of the ranks, against at least "
        f"{small['quasi'][0]:.1%} with groups by A1 to A6 (at most {small['quasi'][1]:.0%}).",
        judged([small["confidential"][1] < 0.02, small["quasi"][1] > 0.5]),
    )
    low, high = tenth["quasi"]
    fixed = tenth["confidential"]
    yield Claim(
        "7.1.3",
        "There k fixes the variability: k = N/10 hides everybody among 10% of the sample. By quasi-identifiers it "
        "cannot be fixed beforehand.",
        f"k = N/10: groups of at least {census['tenth']} of 1,080 that span {fixed[0]:.0%} to {fixed[1]:.0%} of the "
        f"ranks of FICA; by A1 to A6 {low:.0%} to {high:.0%}.",
        judged([census["tenth"] >= 108, fixed[1] < 0.2, high - low > fixed[1] - fixed[0]]),
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
    yield Claim(
        "Proposition 10",
        "For discrete distributions the distance is the largest ratio at a single value.",
        f"All sets of values tried: the same for {counted(same)} pairs of distributions.",
        judged(same),
    )
    share = census["unbucketised"]
    yield Claim(
        "7.2",
        "Without buckets the distance is infinite.",
        f"FICA on Census, groups of 12: infinite for {share:.0%} of the groups.",
        judged([share == 1]),
    )
    merged = [
        ratio([one[0] + one[1], *one[2:]], [other[0] + other[1], *other[2:]]) <= found + _SLACK
        for (one, other), found in zip(pairs, by_point, strict=True)
    ]
    yield Claim(
        "7.2.1",
        "The fewer buckets, the easier t-closeness; with one bucket everything is 1-close, and there can be at most k.",
        f"Joining two values never enlarges the distance: {counted(merged)}. A group of k that lacks a bucket is at "
        "infinite distance.",
        judged(merged),
    )


def _coarseness(census: Mapping[str, Any]) -> Claim:
    lost = {int(b): loss for b, loss in census["bucket_loss"].items()}
    return Claim(
        "7.2.1",
        "The coarser the buckets, the more of the confidential attribute is lost.",
        "A8 of Census, variation inside buckets: "
        + ", ".join(f"{loss:.0f}% ({b} buckets)" for b, loss in lost.items())
        + ".",
        judged(fine < coarse for coarse, fine in pairwise(lost.values())),
    )


def _construction(census: Mapping[str, Any]) -> Iterator[Claim]:
    tables = {t: theoretical(t) for t in range(1, 10)}
    exact = [
        np.allclose(table.sum(axis=1), 1)
        and np.allclose(table.mean(axis=0), 1 / (t + 1))
        and math.isclose(max((table * (t + 1)).max(), (1 / (table * (t + 1))).max()), t)
        for t, table in tables.items()
    ]
    yield Claim(
        "7.2.1, Table 7.6",
        "t + 1 buckets use the distance t up: one bucket at t times its share, the others at 1/t.",
        f"Rows add up to 1, columns to the table, distance exactly t: {counted(exact)} (t = 1 to 9). For t that is not "
        "whole there is no such number of buckets.",
        judged(exact),
    )
    saved = {name: (one, two) for name, (one, two) in census["homogeneous"].items()}
    yield Claim(
        "7.2.1",
        "Using the distance up makes groups more homogeneous in the quasi-identifiers.",
        "Information loss in A1 to A6 inside groups of 12 over three buckets: "
        + ", ".join(
            f"{one:.1f}% for t = 1, {two:.1f}% for t = 2 ({name})" for name, (one, two) in saved.items()
        )
        + ".",
        judged(two < one for one, two in saved.values()),
    )
    over = [overdrawn(1000, 2, one) for one in range(1, 112)]
    others = [overdrawn(n, 2, 7) > 0 for n in range(63, 1101)]
    solved = [solvable(1000, 2, one) for one in (1, 7, 20, 60, 111)]
    yield Claim(
        "7.2.2",
        "The recipe (the fewest records of all other buckets, the rest from its own) makes a t-close partition.",
        f"1,000 records, t = 2: it takes more records from a bucket than there are for {counted(o > 0 for o in over)} "
        f"values of l, by up to {max(over)}; at l = 7 by {over[6]}. Of 63 to 1,100 records at l = 7, {counted(others)} "
        f"are overdrawn. The transportation problem has a solution in {counted(solved)} of the cases tried.",
        judged(not o for o in others),
    )
    smallest = {
        (n, t): int(allot(np.bincount(np.arange(n) % (t + 1)), t, t + 1).sizes.min())
        for n, t in ((12, 2), (1000, 2), (60, 4))
    }
    yield Claim(
        "7.2.2",
        "k is at least t + 1, and k = N/((t + 1)l) for l from 1 to ⌊N/(t + 1)²⌋ will do.",
        "Smallest groups that can be made: "
        + ", ".join(f"{size} (N = {n}, t = {t})" for (n, t), size in smallest.items())
        + ", those of the largest l.",
        judged(size == n // ((t + 1) * (n // (t + 1) ** 2)) for (n, t), size in smallest.items()),
    )
    distances = census["closeness"]
    yield Claim(
        "7.2, 7.4, 8.1",
        "The construction reaches k-anonymity of 12 and t-closeness for any numeric attribute.",
        f"A7 to A13 of Census, t = 2, 3 and 5: largest distance {max(distances):.3f}, all within t: "
        f"{counted(d <= t + _SLACK for d, t in zip(distances, (2, 3, 5) * 7, strict=True))}, by the transportation "
        "problem.",
        judged(d <= t + _SLACK for d, t in zip(distances, (2, 3, 5) * 7, strict=True)),
    )


def _privacy(census: Mapping[str, Any]) -> Iterator[Claim]:
    first, second, common = supports_of_neighbours()
    yield Claim(
        "7, 7.3, 7.3.1, 7.4, 8.1, 1.2",
        "For uninformed intruders exp(ε)-closeness is equivalent to, and implies, ε-differential privacy.",
        f"Six records, t = 2, one value changed: {first} possible releases of one table, {second} of the other, "
        f"{common} in common, so the loss is infinite. What holds is a bound of t on the odds of a bucket for one "
        "person, for somebody who believes the table's shares and nothing else.",
        judged([common == first == second]),
    )
    known = known_members((1, 2, 3, 4), 3)
    yield Claim(
        "7.3.2",
        "Somebody who knows k - 1 members of a group knows the last one.",
        f"Chance {known} in a group of four.",
        judged([known == 1]),
    )
    yield Claim(
        "7, 7.3.2, 7.4",
        "For informed intruders exp(ε)-closeness approximates ε-differential privacy well.",
        f"Such an intruder gains certainty (from {Fraction(1, 4)} to {known}); no approximation is defined, and "
        "section 8.3 leaves the exact guarantee to future work.",
        judged([known < 1]),
    )
    by_size = {k: known_members(range(k), 3) for k in (4, 12, 100)}
    swap, whole = fmean(census["swap"]), fmean(census["whole"])
    yield Claim(
        "7.3.2",
        "A larger k mitigates that, most of all k = N, which is likely to damage utility severely.",
        "Somebody who knows three members guesses another right with probability "
        + ", ".join(f"{chance} (k = {k})" for k, chance in by_size.items())
        + f". Mean change of the correlations of A8 with A1 to A6: {whole:.3f} after swapping within all of Census, "
        f"{swap:.3f} within 2-close groups of 12.",
        judged([*(later < earlier for earlier, later in pairwise(by_size.values())), whole > 2 * swap]),
    )
    kept = swap_chances(random_groups(8, 4))[0]
    yield Claim(
        "7.3.2",
        "Swapping inside hidden groups protects as if k were N.",
        f"Eight records, all groups of four, all permutations: a record keeps its own value with probability {kept}, "
        "not 1/8.",
        judged([kept <= Fraction(1, 8)]),
    )
    yield Claim(
        "7.1, 7.3.2",
        "For t-closeness probabilistic k-anonymity is preferable to Anatomy, since it hides the groups.",
        f"It shows less: no table of groups. The guess that nothing moved stays right with 1/k ({kept} above).",
        "holds partly" if kept > Fraction(1, 8) else "holds",
    )
    yield Claim(
        "1.2, 8.1",
        "The truthfulness of the data inside groups is kept.",
        "After swapping A8 of Census inside 2-close groups every group holds the values of its members; Anatomy lists "
        "them: `tests/kanonymity/test_anatomy.py`, `test_swap.py`.",
        judged([census["truthful"]]),
    )


def _hopes(census: Mapping[str, Any]) -> Iterator[Claim]:
    swap, noise = fmean(census["swap"]), fmean(run[0] for run in census["laplace"])
    outside = fmean(run[1] for run in census["laplace"])
    yield Claim(
        "8.3",
        "Hoped for: more utility than Laplace noise, and no values out of range.",
        f"A8 of Census, groups of 12: mean change of its correlations with A1 to A6 {swap:.3f} after swapping for "
        f"t = 2, {noise:.3f} after noise of ε = ln 2 on every record, which sends {outside:.0%} of the values out of "
        "range. The two promise different things: one of them is differential privacy.",
        judged([swap < noise, outside > 0]),
    )
