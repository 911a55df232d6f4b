"""What PSD-2014 says about sensitivity and composition: small worlds come in, a section with verdicts leaves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from papers.cluster_errors import share_verdict
from papers.desk import Desk
from papers.linked_columns import Linked
from papers.psd2014 import background, lemma
from papers.psd2014.curves import EPSILONS, SIZES, Curves, logarithm
from papers.psd2014.printed import FARTHEST_FIRST
from papers.study import Claim, Number, Section

# the bound is met exactly; sums of floats are not
_ROUNDING = 1e-9


def section(desk: Desk, curves: Curves, linked: Linked) -> Section:
    ranked = lemma.ranked_moves(lemma.WORLDS)
    farthest = lemma.farthest_first_moves(lemma.WORLDS)
    return Section(
        "Lemma 1 and what follows from it",
        "Every table of whole numbers in a small world, every replacement of one value: the sum of the changes of all "
        "centroids, over the lemma's bound |x' - x|/k, and over W/k, W the width of the domain, which noise is scaled "
        "to.",
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
        Claim(
            "Lemma 1",
            "Replacing one value by another at most Δ away moves the centroids of groups of k consecutive values by at "
            "most Δ/k together.",
            f"At most that in {sum(kept)} of {len(kept)} cases, with the remainder last (as in the paper's algorithm), "
            "first or in the middle. Proof: docs/proofs/sums.md.",
            share_verdict(sum(kept), len(kept)),
        ),
        Claim(
            "Lemma 1, end of the proof",
            "The bound holds whichever group is the larger one.",
            "If its place is fixed by rank, yes. Univariate MDAV, which starts at the farther end, puts it where the "
            f"data say and breaks the bound in {len(broken)} of {len(uneven)} worlds with a remainder, by up to "
            f"{max(move.of_change for move in farthest.values()):.1f} times.",
            "holds partly" if broken else "holds",
        ),
        Claim(
            "section 4",
            "A total order in which the triangle inequality holds makes the changes add up to Δ/k.",
            "Distances always satisfy it. Records of two attributes, ordered by their distance to a corner, move the "
            f"centroids by up to {ordered.of_change:.1f} times |r' - r|/k: what the proof needs is that distances "
            "add up along the order, and in one dimension they do.",
            "holds" if ordered.of_change <= 1 + _ROUNDING else "fails",
        ),
        Claim(
            "section 4, on the earlier method",
            "One replaced record can change all n/k clusters of insensitive microaggregation; n/k times Δ/k, which its "
            "noise is scaled to, overestimates what that adds up to.",
            f"Nine records in clusters of three that lie at two ends of the domain in turn: {changed} of 3 clusters "
            f"change, together by {added:.2f} times Δ/k, Δ the diameter of the domain. The factor is needed.",
            share_verdict(int(changed == 3) + int(added < 2.9), 2),
        ),
        Claim(
            "section 4",
            "After individual ranking the noise is 1/k of that of the standard approach.",
            f"Variance before clipping, times k², is 1 within 1% for {sum(scales)} of {len(scales)} values of k (the "
            "larger last group has a little less).",
            share_verdict(sum(scales), len(scales)),
        ),
    ]


def _composition(curves: Curves, linked: Linked) -> list[Claim]:
    plain = curves.plain["1"]
    own = logarithm(curves.points["0.1", curves.ks[-1]]["sse"])
    return [
        Claim(
            "Lemma 4; abstract; section 1.1; conclusion",
            "With ε for each of m attributes the released data set is mε-differentially private: utility grows without "
            "giving up that guarantee.",
            f"Not for linked columns: {linked.words}, so no ε holds. Which groups meet in a row is released with the "
            "rows, and no noise covers it. True for one attribute in shuffled rows, and for several with `link=False` "
            "(every column shuffled by itself): audits of both pass in docs/promise.md. Linked columns get "
            "`dp-given-partition`.",
            "holds partly" if linked.refutes else "holds",
        ),
        Claim(
            "section 5",
            "The stronger guarantee of ε = 0.1 comes at the loss that the standard approach has at ε = 1.",
            f"At k = {curves.ks[-1]} at no more than that: log10(SSE/m) {own:.2f} beside {logarithm(plain):.2f}. The "
            "guarantee is that of Lemma 4, which linked columns do not have.",
            share_verdict(int(own <= logarithm(plain)) + int(not linked.refutes), 2),
        ),
        Claim(
            "section 4, note",
            "All copies of a centroid must get the same noise, or the gain is lost.",
            f"Noise of its own for each of 10 copies: expected SSE {curves.every_row:.3g} at ε = 1, as for plain noise "
            f"({plain:.3g}); one draw per group has {curves.points['1', 10]['sse']:.3g}.",
            "holds" if curves.every_row > 0.99 * plain else "fails",
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
        Claim(
            "sections 3, 4",
            "Individual ranking needs less noise than the earlier method based on insensitive microaggregation.",
            f"Expected SSE is lower in {sum(better)} of {len(better)} points, by a factor of {min(ratios):.2f} to "
            f"{max(ratios):,.0f} (`insensitive-dp`, strict). That method promises differential privacy with linked "
            "columns, though.",
            share_verdict(sum(better), len(better)),
        ),
        Claim(
            "section 3",
            "The k that the earlier method needs depends on the number of records.",
            "Smallest k tried at which it beats plain noise, ε = 1: "
            + "; ".join(f"{k} for {name} records" for k, name in zip(first, names, strict=True))
            + ".",
            "holds" if grows else "fails",
        ),
        Claim(
            "section 3",
            "Individual ranking gains whatever the number of records.",
            "SSE of plain noise over its own, k = 10, ε = 1: "
            + "; ".join(
                f"{gain:.1f} for {name} records" for gain, name in zip(gains.values(), names, strict=True)
            )
            + ".",
            share_verdict(sum(gain > 1.1 for gain in gains.values()), len(gains)),
        ),
    ]
