"""Verdicts on the claims of PSD-2014 about sensitivity and composition, on small worlds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from papers.desk import Desk
from papers.linked_columns import Linked
from papers.psd2014 import background, lemma
from papers.psd2014.curves import EPSILONS, SIZES, Curves, logarithm
from papers.psd2014.printed import FARTHEST_FIRST
from papers.study import Claim, Number, Section
from papers.texts import judging, wording

judge = judging("psd2014/texts")
heading = wording("psd2014/texts")

# the bound is met exactly; sums of floats are not
_ROUNDING = 1e-9


def section(desk: Desk, curves: Curves, linked: Linked) -> Section:
    ranked = lemma.ranked_moves(lemma.WORLDS)
    farthest = lemma.farthest_first_moves(lemma.WORLDS)
    return Section(
        *heading("lemma-1-what-follows"),
        [
            Number(
                "prototype",
                "groups cut at the farther end first: largest move over W/k",
                FARTHEST_FIRST,
                max(move.of_width for move in farthest.values()),
                why="both are the worst found in a search; Shoal's covers all tables of small worlds",
            )
        ],
        _table(ranked, farthest),
        claims=[
            *_lemma(ranked, farthest, curves),
            *_composition(curves, linked),
            *_prior_work(curves),
            *background.claims(desk),
        ],
    )


def _table(
    ranked: Mapping[tuple[lemma.World, str], lemma.Move], farthest: Mapping[lemma.World, lemma.Move]
) -> str:
    lines = [
        "| records | k | values | remainder last | first | middle | farther end first | over the width |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for world, move in farthest.items():
        n, k, top = world
        cells = [f"{ranked[world, remainder].of_change:.2f}" for remainder in lemma.REMAINDERS]
        cells += [f"{move.of_change:.2f}", f"{move.of_width:.2f}"]
        lines.append(f"| {n} | {k} | 0 to {top} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _lemma(
    ranked: Mapping[tuple[lemma.World, str], lemma.Move],
    farthest: Mapping[lemma.World, lemma.Move],
    curves: Curves,
) -> list[Claim]:
    kept = [move.of_change <= 1 + _ROUNDING for move in ranked.values()]
    uneven = {world: move for world, move in farthest.items() if world[0] % world[1]}
    broken = [move for move in uneven.values() if move.of_change > 1 + _ROUNDING]
    ordered = lemma.ordered_records_move()
    changed, added = lemma.alternating_move()
    scales = [abs(ratio * k * k - 1) < 0.01 for k, ratio in curves.unclipped.items()]
    return [
        judge("replacing-value-another-most", kept),
        judge(
            "bound-holds-whichever-group",
            "holds partly" if broken else "holds",
            len(broken),
            len(uneven),
            max(move.of_change for move in farthest.values()),
        ),
        judge("total-order-triangle-inequality", ordered.of_change <= 1 + _ROUNDING, ordered.of_change),
        judge("replaced-record-change-all", [changed == 3, added < 2.9], changed, added),
        judge("after-individual-ranking-noise", scales),
    ]


def _composition(curves: Curves, linked: Linked) -> list[Claim]:
    plain = curves.plain["1"]
    own = logarithm(curves.points["0.1", curves.ks[-1]]["sse"])
    return [
        judge("epsilon-each-m-attributes", "holds partly" if linked.refutes else "holds", linked.words),
        judge(
            "stronger-guarantee-epsilon-0",
            [own <= logarithm(plain), not linked.refutes],
            curves.ks[-1],
            own,
            logarithm(plain),
        ),
        judge(
            "all-copies-centroid-must",
            curves.every_row > 0.99 * plain,
            curves.every_row,
            plain,
            curves.points["1", 10]["sse"],
        ),
    ]


def _prior_work(curves: Curves) -> list[Claim]:
    better = [
        curves.points[epsilon, k]["sse"] < curves.prior[epsilon, k] for epsilon in EPSILONS for k in curves.ks
    ]
    ratios = [
        curves.prior[epsilon, k] / curves.points[epsilon, k]["sse"] for epsilon in EPSILONS for k in curves.ks
    ]
    gains = {size: curves.by_size[size][0] / curves.by_size[size][1] for size in SIZES}
    first = [curves.by_size[size][2] for size in SIZES]
    grows = all(
        before is not None and after is not None and before < after for before, after in pairwise(first)
    )
    names = [f"{size:,}" if size else "all 30,162" for size in SIZES]
    return [
        judge("individual-ranking-needs-less", better, min(ratios), max(ratios)),
        judge(
            "k-earlier-method-needs",
            bool(grows),
            "; ".join(f"{k} for {name} records" for k, name in zip(first, names, strict=True)),
        ),
        judge(
            "individual-ranking-gains-whatever",
            (gain > 1.1 for gain in gains.values()),
            "; ".join(
                f"{gain:.1f} for {name} records" for gain, name in zip(gains.values(), names, strict=True)
            ),
        ),
    ]
