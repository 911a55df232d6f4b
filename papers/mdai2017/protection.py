"""Verdicts on the claims of MDAI-2017 about its guarantee and its noise."""

from __future__ import annotations

import math

import numpy as np

from papers.cluster_errors import noise_of_every_row
from papers.desk import Desk
from papers.linked_columns import Linked
from papers.mdai2017 import background, facts, theory
from papers.mdai2017.curves import (
    EPSILONS,
    IR_1,
    IR_2,
    MDAV,
    PAPER_METHODS,
    PLAIN_1,
    PLAIN_2,
    Curves,
    Point,
    setting,
)
from papers.mdai2017.printed import CENSUS_4, REPLACEMENTS, REPLACEMENTS_THAT_REGROUP
from papers.study import Claim, ClaimVerdict, Number, Section, counted
from papers.texts import judging, wording

judge = judging("mdai2017/texts")
heading = wording("mdai2017/texts")

Regroupings = dict[tuple[str, bool], facts.Regrouping]


def section(desk: Desk, curves: Curves, linked: Linked) -> Section:
    regrouped = facts.regroupings(desk)
    partitions = theory.other_partitions(desk)
    groups = facts.grouped_errors(desk)
    return Section(
        *heading("what-protected-how-noise"),
        _numbers(regrouped),
        _regrouping_table(regrouped) + "\n\n" + _group_table(groups),
        claims=[
            *_guarantee(regrouped, partitions, linked),
            *_noise(desk, curves),
            *_composition(desk, curves, regrouped["MDAV", False], groups),
            *background.claims(desk.file("census.csv"), curves, partitions),
        ],
    )


def _numbers(regrouped: Regroupings) -> list[Number]:
    found = []
    for how, printed in REPLACEMENTS_THAT_REGROUP.items():
        one = regrouped[how, False]
        # shares of two samples; pooled, since one of them may be 1
        pooled = (printed + one.changed) / (REPLACEMENTS + one.tried)
        error = REPLACEMENTS * math.sqrt(pooled * (1 - pooled) * (1 / REPLACEMENTS + 1 / one.tried))
        found.append(
            Number(
                "prototype, Census-4",
                f"{how}: of {REPLACEMENTS} replaced records, how many change the clusters of others",
                str(printed),
                REPLACEMENTS * one.changed / one.tried,
                error,
            )
        )
    return found


def _regrouping_table(regrouped: Regroupings) -> str:
    lines = [
        "| clusters | the record is replaced by | tried | clusters of others changed | clusters that are new, mean |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for (how, copied), one in regrouped.items():
        words = "a copy of another record" if copied else "any record of the domain"
        lines.append(f"| {how} | {words} | {one.tried} | {one.changed} | {one.clusters:.1f} |")
    return "\n".join(lines)


def _group_table(groups: dict[tuple[tuple[str, ...], ...], Point]) -> str:
    lines = [
        "Algorithm 2 on every way to group the four attributes: MDAV in each group, k = 50, ε = 1, ε_i in proportion "
        "to the widths of the group; expected errors.",
        "",
        "| groups | SSE of the clusters | SSE | SAE |",
        "| --- | ---: | ---: | ---: |",
    ]
    for grouping, point in groups.items():
        words = " / ".join(", ".join(group) for group in grouping)
        lines.append(f"| {words} | {point['sse_alone']:.3g} | {point['sse']:.4g} | {point['sae']:.3g} |")
    return "\n".join(lines)


def _guarantee(
    regrouped: Regroupings, partitions: dict[str, tuple[float, str]], linked: Linked
) -> list[Claim]:
    mdav, ranked = regrouped["MDAV", False], regrouped["individual ranking", False]
    stable = mdav.changed == ranked.changed == 0
    given = all(model == "dp-given-partition" for _, model in partitions.values())
    verdict: ClaimVerdict = "holds" if stable else "holds partly" if given else "fails"
    again = (
        f"{mdav.changed} of {mdav.tried} replaced records change the clusters of others under MDAV, {ranked.changed} "
        f"of {ranked.tried} under individual ranking"
    )
    return [
        judge("noise-scaled-centroids-makes", verdict, again),
        judge(
            "microaggregated-data-set-target", "holds" if mdav.clusters < 2 else "holds partly", mdav.clusters
        ),
        judge(
            "sensitivity-earlier-method-based", "holds partly" if linked.refutes else "fails", linked.words
        ),
        judge(
            "works-any-microaggregation-algorithm",
            bool(given),
            "; ".join(f"{name} {sse:.3g}" for name, (sse, _) in partitions.items()),
        ),
    ]


def _noise(desk: Desk, curves: Curves) -> list[Claim]:
    file = desk.file("census.csv")
    move = theory.fixed_centroid_move()
    own = noise_of_every_row(setting(file, "mdav-dp", epsilon=1, k=50, split="proportional"))
    plain = curves.plain[PLAIN_2, 1]["sse"]
    values = facts.matrix(file)
    spread = float(((values - values.mean(axis=0)) ** 2).sum())
    losses = [
        curves.plain[name, epsilon]["sse"] / spread for name in (PLAIN_1, PLAIN_2) for epsilon in EPSILONS
    ]
    unclustered = {MDAV: PLAIN_2, IR_1: PLAIN_1, IR_2: PLAIN_2}
    ratios = [
        point["sse"] / curves.plain[unclustered[name], epsilon]["sse"]
        for (name, epsilon, _), point in curves.points.items()
        if name in PAPER_METHODS
    ]
    below = {
        name: [k for k in curves.ks if curves.points[name, 1, k]["sse"] < spread]
        for name in (MDAV, IR_1, IR_2)
    }
    return [
        judge("centroid-sensitivity-record-divided", abs(move - 1) < 1e-9, move),
        judge("noise-own-every-copy", own >= 0.99 * plain, own, plain, curves.points[MDAV, 1, 50]["sse"]),
        judge("masking-every-record-itself", (loss > 1 for loss in losses), min(losses), max(losses), spread),
        judge(
            "error-microaggregation-more-made",
            (ratio < 1 for ratio in ratios),
            min(ratios),
            max(ratios),
            "; ".join(
                f"{name} from k = {min(good)} on" if good else f"{name} never" for name, good in below.items()
            ),
        ),
    ]


def _composition(
    desk: Desk, curves: Curves, regrouped: facts.Regrouping, groups: dict[tuple[tuple[str, ...], ...], Point]
) -> list[Claim]:
    spent = [facts.spends_all(desk.file("census.csv"), grouping) for grouping in groups]
    noises = theory.noise_variances(desk, curves.ks)
    equal = [abs(joint[name] / each[name] - 1) < 1e-9 for joint, each in noises.values() for name in CENSUS_4]
    tables = 100 if desk.quick else 1000
    tried = {(n, k): theory.separate_loses(n, k, tables) for n, k in ((6, 2), (6, 3), (5, 2), (7, 3))}
    together, separate = theory.joint_and_separate(np.array(theory.COUNTEREXAMPLE, dtype=np.float64).T, 2)
    census = [
        curves.points[IR_2, 1, k]["sse_alone"] < curves.points[MDAV, 1, k]["sse_alone"] for k in curves.ks
    ]
    single = tuple((name,) for name in CENSUS_4)
    finest, whole = groups[single]["sse"], groups[(CENSUS_4,)]["sse"]
    between = [point["sse"] for grouping, point in groups.items() if 1 < len(grouping) < len(CENSUS_4)]
    divided = sum(count for (n, k), count in tried.items() if n % k == 0)
    left = sum(count for (n, k), count in tried.items() if n % k)
    return [
        judge(
            "clusters-hold-different-records",
            "holds" if regrouped.clusters < 1 else "holds partly",
            regrouped.clusters,
        ),
        judge("attributes-split-into-groups", spent, whole, min(between), max(between), finest),
        judge("epsilon-proportion-widths-both", equal, len(CENSUS_4), len(noises)),
        judge(
            "individual-ranking-epsilon-proportion",
            [*census, separate <= together],
            counted(census),
            divided,
            2 * tables,
            left,
            theory.COUNTEREXAMPLE,
            together,
            separate,
        ),
    ]
