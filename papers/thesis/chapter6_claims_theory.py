"""Verdicts on the propositions and other claims of sections 6.1 to 6.3, from small worlds and clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from papers.psd2014.lemma import alternating_move
from papers.study import Claim, counted
from papers.texts import judging
from papers.thesis import chapter6_semantics as semantics
from papers.thesis import chapter6_small as small
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import Found
from papers.thesis.chapter6_verdicts import extent
from shoal.partition import mdav
from shoal.taxonomy import Taxonomy

judge = judging("thesis/chapter6")


def theory(
    census: Found,
    adult: Found,
    trees: Sequence[Taxonomy],
    replaced: Mapping[str, Replaced],
    broken: Mapping[int, tuple[int, int]],
    single: int,
    stable: Mapping[int, float],
) -> list[Claim]:
    """All statements of the three sections, in their order.

    Args:
        census: what was measured on Census.
        adult: and on Adult.
        trees: of Adult.
        replaced: what one replaced record changes, by box.
        broken: in how many of how many replacements MDAV violates Definition 12, by k.
        single: attributes of Census whose largest value only one record has.
        stable: share of MDAV's clusters on Census that one replaced record changes by one record at most, by k.
    """
    return [
        *_noise(census, adult),
        _most_clusters(stable),
        *_insensitivity(broken),
        *_sensitivity(replaced["insensitive"]),
        *_numeric(census, adult, replaced["insensitive"]),
        *_categorical(adult, trees),
        *_distance(trees, single),
    ]


def _noise(census: Found, adult: Found) -> Iterator[Claim]:
    worse = {name: f.sse(1, "1") / f.nothing.sse for name, f in (("Census", census), ("Adult", adult))}
    yield judge(
        "noise-every-record-calibrated",
        (value > 1 for value in worse.values()),
        ", ".join(f"{value:.2g} on {name}" for name, value in worse.items()),
    )

    variances = [abs(one.variations[j]) for one in census.alone["insensitive"].values() for j in range(4, 8)]
    means = [abs(one.variations[j]) for one in census.alone["insensitive"].values() for j in range(4)]
    yield judge(
        "microaggregated-data-preserve-statistical",
        [max(means) < 1e-12, max(variances) < 0.1],
        min(variances),
        max(variances),
    )


def _most_clusters(stable: Mapping[int, float]) -> Claim:
    return judge(
        "any-microaggregation-change-record",
        (share > 0.5 for share in stable.values()),
        ", ".join(f"{share:.0%} (k = {k})" for k, share in stable.items()),
    )


def _insensitivity(broken: Mapping[int, tuple[int, int]]) -> Iterator[Claim]:
    before, after = small.toy(changed=False), small.toy(changed=True)
    clusters = [small.contents(table, small.toy_clusters(table, "MDAV")) for table in (before, after)]
    left = sum(min(small.difference(one, two) for two in clusters[1]) > 1 for one in clusters[0])
    yield judge(
        "mdav-insensitive-after-change",
        [left >= 2, all(some for k, (some, _) in broken.items() if k > 2)],
        left,
        ", ".join(f"k = {k}: {some} of {of} replacements" for k, (some, of) in broken.items()),
    )
    pairs = small.pairs_always_match()
    odd = small.worst_neighbour(small.line_worlds(5, 3), partial(mdav, k=2))
    yield judge("there-such-examples-every", [not pairs, odd > 1], "" if pairs else "not ", odd)
    one, two = (small.worst_neighbour(small.line_worlds(n, 3), partial(mdav, k=3)) for n in (6, 8))
    apart = small.definition_12(*small.one_order_example())
    yield judge("mdav-distance-consistent-total", [one <= 1, two <= 1], one, two, apart)
    yield judge("algorithm-6-1-fixed", [small.insensitive_worst() <= 1], small.insensitive_worst())
    depends = small.worst_neighbour(small.line_worlds(4, 3), small.by_a_data_dependent_order)
    yield judge("insensitive-only-fixed-sequence", [depends > 1], depends)


def _sensitivity(replaced: Replaced) -> Iterator[Claim]:
    yield judge("centroid-insensitive-clusters-changes", [small.insensitive_worst() <= 1])
    before, after = small.toy(changed=False), small.toy(changed=True)
    made = [small.toy_clusters(table, "single") for table in (before, after)]
    moved = np.abs(made[0].centroids(before) - made[1].centroids(after)).max(axis=1)
    farthest = np.abs(before - after).max()
    yield judge(
        "change-record-spread-over",
        [bool((moved > 0).all()), bool(moved.max() < farthest)],
        farthest,
        extent(moved),
    )
    changed, total = alternating_move()
    yield judge(
        "only-few-centroids-move",
        [small.insensitive_worst() <= 1, total / changed < 0.9],
        changed,
        total / changed,
    )
    line = np.array([[0], [1], [2], [8], [9], [10]])
    shifted = line.copy()
    shifted[0] = 10
    rows = small.rows_moved(line, shifted, [(0, 10)], k=3)
    yield judge(
        "row-released-record-moves",
        [rows.max() <= 1, replaced.own <= 1],
        rows[0],
        rows[3],
        replaced.own,
        replaced.others,
    )


def _numeric(census: Found, adult: Found, replaced: Replaced) -> Iterator[Claim]:
    costs = {m: small.plain_loss(attributes=m) for m in (1, 4)}
    yield judge("answers-every-record-itself", (cost <= 1 for cost in costs.values()), costs[1], costs[4])
    five, four = np.array([0] * 5 + [1] * 5)[:, np.newaxis], np.array([0] * 4 + [1] * 6)[:, np.newaxis]
    loss = small.rows_loss(five, four, [(0, 1)], 5)
    yield judge(
        "after-insensitive-microaggregation-noise", [loss <= 1, replaced.loss <= 1], loss, replaced.loss
    )
    yield judge("distance-reference-point-ties", [small.insensitive_worst() <= 1])
    table = small.toy(changed=False)
    loose, tight = (
        small.spread_within(table, small.toy_clusters(table, name)) for name in ("single", "MDAV")
    )
    looser = [
        f.alone["single"][k].sse > one.sse for f in (census, adult) for k, one in f.alone["MDAV"].items()
    ]
    yield judge("standard-mdav-more-homogeneous", [tight < loose, *looser], tight, loose, counted(looser))
    homogeneous = {
        name: [f.alone["insensitive"][k].sse / one.sse for k, one in f.alone["single"].items()]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield judge(
        "several-orders-each-corner",
        (value < 1 for values in homogeneous.values() for value in values),
        ", ".join(f"{name} {extent(values)}" for name, values in homogeneous.items()),
    )


def _categorical(adult: Found, trees: Sequence[Taxonomy]) -> Iterator[Claim]:
    kinds = [one for name in ("MDAV", "insensitive") for one in adult.alone[name].values()]
    better = [one.sse < one.others["values"] for one in kinds]
    yield judge(
        "groups-values-among-candidates", better, extent(one.others["values"] / one.sse for one in kinds)
    )
    modal = [one.sse < one.others["mode"] for one in kinds]
    yield judge(
        "centroids-frequency-mode-give",
        [*modal, min(one.others["mode"] / one.sse for one in kinds) > 1.5],
        extent(one.others["mode"] / one.sse for one in kinds),
        counted(modal),
    )
    tree = Taxonomy.flat(["a", "b"])
    candidates = [set(tree.minimal(values).labels) for values in (["a"], ["a", "b"])]
    loss_of_all = small.concept_loss(tree, tree.diameter, ["a"] * 5, ["a"] * 4 + ["b"])
    yield judge(
        "all-concepts-domain-must",
        [candidates[0] != candidates[1], loss_of_all <= 1],
        len(candidates[1]) - 1,
        loss_of_all,
    )
    yield judge("taking-additive-inverse-marginality", [semantics.same_differences(trees[0])])
    loss = {
        delta: small.concept_loss(small.lopsided(), value, ["c"] * 50, ["c"] * 49 + ["f"])
        for delta, value in (("δ(b,t)", small.lopsided().width), ("diameter", small.lopsided().diameter))
    }
    yield judge(
        "sensitivity-marginality-distance-two",
        [loss["δ(b,t)"] <= 1, all(tree.width == tree.diameter for tree in trees)],
        loss["δ(b,t)"],
        loss["diameter"],
        " and ".join(f"{tree.width:.4f}" for tree in trees),
        " and ".join(f"{tree.diameter:.4f}" for tree in trees),
    )
    rows = 5 * small.concept_loss(
        Taxonomy.flat(["a", "b"]), Taxonomy.flat(["a", "b"]).diameter, ["a"] * 5, ["a"] * 4 + ["b"]
    )
    yield judge("algorithm-6-3-insensitive", [rows <= 1], rows)
    certain = {k: one.others["certainty"] for k, one in adult.alone["insensitive"].items()}
    tie = [semantics.certainty_of_a_tie(k) for k in (2, 100)]
    shown = [k for k in (2, 5, 15, 30, 100) if k in certain]
    yield judge(
        "uncertainty-needed-decreases-k",
        [*(certain[b] > certain[a] for a, b in pairwise(shown)), tie[1] > tie[0]],
        ", ".join(f"{certain[k]:.2f} (k = {k})" for k in shown),
        tie[0],
        tie[1],
    )


def _distance(trees: Sequence[Taxonomy], single: int) -> Iterator[Claim]:
    yield judge("measures-features-information-content", "not tested")
    ratios = [semantics.outlying(tree) for tree in trees]
    lower = [one["logarithm"] <= min(one["fraction"], one["edges"], one["exponential"]) for one in ratios]
    yield judge(
        "logarithmic-distance-less-sensitive",
        lower,
        "; ".join(
            ", ".join(f"{name} {value:.2f}" for name, value in one.items())
            + f" ({tree.labels[0]}: {len(tree.domain)} values)"
            for one, tree in zip(ratios, trees, strict=True)
        ),
    )
    axioms = [semantics.broken_axioms(tree) for tree in trees]
    yield judge("eq-6-6-distance", [not any(axioms)], sum(axioms))
    coarse, fine = small.finer()
    largest = max(float(tree.distance_table().max()) for tree in trees)
    yield judge(
        "normalised-0-1-insensitive", [largest <= 1, math.isclose(coarse, fine)], largest, coarse, fine
    )
    yield judge("eq-6-7-depends", [small.insensitive_worst() <= 1, single == 0], single)
