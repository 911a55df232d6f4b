"""Sections 6.1 to 6.3: small worlds and clusters alone come in, propositions and other statements judged leave."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from papers.psd2014.lemma import alternating_move
from papers.study import Claim, counted, judged
from papers.thesis import chapter6_semantics as semantics
from papers.thesis import chapter6_small as small
from papers.thesis.chapter6_replaced import Replaced
from papers.thesis.chapter6_runs import Found
from papers.thesis.chapter6_verdicts import extent
from shoal.partition import mdav
from shoal.taxonomy import Taxonomy

DEFINITION = "`tests/partition/test_insensitive_definition.py`"
PRIVACY = "`tests/mechanisms/test_insensitive_dp.py`"


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
    yield Claim(
        "6.1, 1.2",
        "Noise on every record, calibrated to any change of it, severely hampers utility.",
        "SSE of plain noise at ε = 1 over that of one centroid for the whole table: "
        + ", ".join(f"{value:.2g} on {name}" for name, value in worse.items())
        + ".",
        judged(value > 1 for value in worse.values()),
    )

    variances = [abs(one.variations[j]) for one in census.alone["insensitive"].values() for j in range(4, 8)]
    means = [abs(one.variations[j]) for one in census.alone["insensitive"].values() for j in range(4)]
    yield Claim(
        "6.2",
        "The microaggregated data preserve the statistical information, so queries deviate little.",
        f"Insensitive clusters on Census keep all means; variances lose {min(variances):.0%} to "
        f"{max(variances):.0%}, the "
        "more the larger k.",
        judged([max(means) < 1e-12, max(variances) < 0.1]),
    )


def _most_clusters(stable: Mapping[int, float]) -> Claim:
    return Claim(
        "6.2",
        "With any microaggregation, the change of one record affects most clusters slightly only.",
        "Clusters of MDAV on Census that differ in one record at most from a cluster after a record was replaced: "
        + ", ".join(f"{share:.0%} (k = {k})" for k, share in stable.items())
        + ".",
        judged(share > 0.5 for share in stable.values()),
    )


def _insensitivity(broken: Mapping[int, tuple[int, int]]) -> Iterator[Claim]:
    before, after = small.toy(changed=False), small.toy(changed=True)
    clusters = [small.contents(table, small.toy_clusters(table, "MDAV")) for table in (before, after)]
    left = sum(min(small.difference(one, two) for two in clusters[1]) > 1 for one in clusters[0])
    yield Claim(
        "6.2, Figure 6.1",
        "MDAV is not insensitive: after one change, two clusters of three differ in more than one record from the "
        "most similar new one.",
        f"{left} of 3 on the table of the figure. On Census: "
        + ", ".join(f"k = {k}: {some} of {of} replacements" for k, (some, of) in broken.items())
        + " leave no bijection as in Definition 12.",
        judged([left >= 2, all(some for k, (some, _) in broken.items() if k > 2)]),
    )
    pairs = small.pairs_always_match()
    odd = small.worst_neighbour(small.line_worlds(5, 3), partial(mdav, k=2))
    yield Claim(
        "6.2",
        "There are such examples for every k > 1, and none for k = 1.",
        "Not for k = 2 and an even n: any two partitions into pairs satisfy Definition 12 "
        f"({'' if pairs else 'not '}true "
        f"for all partitions of six). For k = 2 and n = 5, MDAV on one attribute reaches a difference of {odd}.",
        judged([not pairs, odd > 1]),
    )
    one, two = (small.worst_neighbour(small.line_worlds(n, 3), partial(mdav, k=3)) for n in (6, 8))
    apart = small.definition_12(*small.one_order_example())
    yield Claim(
        "Proposition 6",
        "MDAV with a distance that is consistent with a total order is insensitive.",
        f"One attribute, k = 3, all neighbours of a small world: clusters differ in up to {one} record for n = "
        f"6, in {two} "
        "for n = 8. With 2k to 3k - 1 records left, MDAV takes the end that is farther from the mean, and one "
        f"record can "
        f"turn that round ({apart} records in the example of the errata). Right if the end is fixed "
        f'(`order="single"`).',
        judged([one <= 1, two <= 1]),
    )
    yield Claim(
        "Proposition 7, if",
        "Algorithm 6.1 with a fixed sequence of total orders is insensitive.",
        f"No neighbour of a small world differs by more than {small.insensitive_worst()}; {DEFINITION}.",
        judged([small.insensitive_worst() <= 1]),
    )
    depends = small.worst_neighbour(small.line_worlds(4, 3), small.by_a_data_dependent_order)
    yield Claim(
        "Proposition 7, only if",
        "It is insensitive only with a fixed sequence of total orders.",
        "n = 2k, an order that is turned round if the sum of the records is odd: clusters differ in at most "
        f"{depends} "
        "record, since both orders give the same two clusters. Nor is any order needed for k = 1, n < 2k, or pairs.",
        judged([depends > 1]),
    )


def _sensitivity(replaced: Replaced) -> Iterator[Claim]:
    yield Claim(
        "6.2",
        "A centroid of insensitive clusters changes by at most the range divided by k in every attribute.",
        f"Over all neighbours of a small world the sum of a cluster moves by the width at most; {DEFINITION}.",
        judged([small.insensitive_worst() <= 1]),
    )
    before, after = small.toy(changed=False), small.toy(changed=True)
    made = [small.toy_clusters(table, "single") for table in (before, after)]
    moved = np.abs(made[0].centroids(before) - made[1].centroids(after)).max(axis=1)
    farthest = np.abs(before - after).max()
    yield Claim(
        "6.2, Figure 6.2",
        "The change of one record is spread over all centroids, each moving less.",
        f"On the table of the figure the record moves by {farthest}, all three centroids by {extent(moved)}.",
        judged([bool((moved > 0).all()), bool(moved.max() < farthest)]),
    )
    changed, total = alternating_move()
    yield Claim(
        "6.2",
        "Only a few centroids can move by as much as 1/k of the largest variation.",
        "True of one attribute, where all of them together move by no more. Nine records of two attributes, clusters "
        f"of three in one order, two ends of the domain in turn: {changed} of 3 centroids move by "
        f"{total / changed:.2f} times 1/k of the diagonal each.",
        judged([small.insensitive_worst() <= 1, total / changed < 0.9]),
    )
    line = np.array([[0], [1], [2], [8], [9], [10]])
    shifted = line.copy()
    shifted[0] = 10
    rows = small.rows_moved(line, shifted, [(0, 10)], k=3)
    yield Claim(
        "Proposition 8",
        "The row released for a record moves by at most 1/k of the range: Δ(I_r∘M) ≤ Δ(I_r)/k.",
        f"0, 1, 2, 8, 9, 10 with k = 3, 0 becomes 10: the row of that record moves by {rows[0]:.1f}·W/k, the "
        f"row of 8 by "
        f"{rows[3]:.1f}·W/k, for their clusters are others now. On Census, k = 5: {replaced.own:.1f} and "
        f"{replaced.others:.2f}. True of the c-th centroid, not of a record's row; and false for any M that is not "
        "insensitive, which the proposition does not demand.",
        judged([rows.max() <= 1, replaced.own <= 1]),
    )


def _numeric(census: Found, adult: Found, replaced: Replaced) -> Iterator[Claim]:
    costs = {m: small.plain_loss(attributes=m) for m in (1, 4)}
    yield Claim(
        "6.3",
        "Answers for every record by itself compose in parallel: the table is ε-differentially private if each is.",
        "True of the original table, where an answer depends on its record alone, with one attribute: "
        f"{costs[1]:.0f}ε. With "
        f"noise for all of ε in each of four attributes, as in section 6.4, it is {costs[4]:.0f}ε.",
        judged(cost <= 1 for cost in costs.values()),
    )
    five, four = np.array([0] * 5 + [1] * 5)[:, np.newaxis], np.array([0] * 4 + [1] * 6)[:, np.newaxis]
    loss = small.rows_loss(five, four, [(0, 1)], 5)
    yield Claim(
        "6.3, 6.3.1, Algorithm 6.2",
        "After insensitive microaggregation, noise for k·ε gives ε-differential privacy of the table.",
        f"Five zeros and five ones, k = 5, one 0 becomes 1: the loss is {loss:.0f}ε (also seen in samples: "
        f"{PRIVACY}). On "
        f"Census, k = 5: up to {replaced.loss:.0f}ε. Rows share a cluster, and clusters share the changed "
        f"record, so nothing "
        "composes in parallel.",
        judged([loss <= 1, replaced.loss <= 1]),
    )
    yield Claim(
        "6.3.1",
        "Distance to a reference point, ties by alphabetical order, is a total order.",
        "Records that it cannot tell apart are equal; an order that leaves ties open is not insensitive: "
        f"{DEFINITION}.",
        judged([small.insensitive_worst() <= 1]),
    )
    table = small.toy(changed=False)
    loose, tight = (
        small.spread_within(table, small.toy_clusters(table, name)) for name in ("single", "MDAV")
    )
    looser = [
        f.alone["single"][k].sse > one.sse for f in (census, adult) for k, one in f.alone["MDAV"].items()
    ]
    yield Claim(
        "6.3.2, Figures 6.1, 6.2",
        "Standard MDAV has the more homogeneous clusters; insensitive MDAV those that are more stable.",
        f"SSE {tight:.0f} against {loose:.0f} on the table of the figures; on Census and Adult MDAV is below in "
        f"{counted(looser)} settings.",
        judged([tight < loose, *looser]),
    )
    homogeneous = {
        name: [f.alone["insensitive"][k].sse / one.sse for k, one in f.alone["single"].items()]
        for name, f in (("Census", census), ("Adult", adult))
    }
    yield Claim(
        "6.2, 6.3.3, Figure 6.3",
        "Several orders, one for each corner, give more homogeneous clusters than a single one.",
        "SSE over that of the single order: "
        + ", ".join(f"{name} {extent(values)}" for name, values in homogeneous.items())
        + ". (Section 6.4, to which the thesis refers for this, does not compare them.)",
        judged(value < 1 for values in homogeneous.values() for value in values),
    )


def _categorical(adult: Found, trees: Sequence[Taxonomy]) -> Iterator[Claim]:
    kinds = [one for name in ("MDAV", "insensitive") for one in adult.alone[name].values()]
    better = [one.sse < one.others["values"] for one in kinds]
    yield Claim(
        "6.3.4, 6.4.1",
        "Groups of values among the candidates make centroids more accurate.",
        f"SSE is lower than with values only in {counted(better)} settings on Adult, by a factor of "
        f"{extent(one.others['values'] / one.sse for one in kinds)}.",
        judged(better),
    )
    modal = [one.sse < one.others["mode"] for one in kinds]
    yield Claim(
        "6.3.4",
        "Centroids by frequency (the mode) give much less useful results than semantic ones.",
        f"SSE with the most frequent value over SSE with the least marginal concept: "
        f"{extent(one.others['mode'] / one.sse for one in kinds)} on Adult; larger in {counted(modal)} settings.",
        judged([*modal, min(one.others["mode"] / one.sse for one in kinds) > 1.5]),
    )
    tree = Taxonomy.flat(["a", "b"])
    candidates = [set(tree.minimal(values).labels) for values in (["a"], ["a", "b"])]
    loss_of_all = small.concept_loss(tree, tree.diameter, ["a"] * 5, ["a"] * 4 + ["b"])
    yield Claim(
        "6.3.4",
        "All concepts of the domain must be candidates for a centroid, not only those of the sample.",
        f"A cluster of five a can only become a with its own concepts, four a and a b also {len(candidates[1]) - 1} "
        f"others: no ε bounds that. With all concepts one draw at ε = 1 loses {loss_of_all:.2f}.",
        judged([candidates[0] != candidates[1], loss_of_all <= 1]),
    )
    yield Claim(
        "6.3.4",
        "Taking the additive inverse of the marginality does not change relative probabilities.",
        "It keeps the differences of candidates and turns their order round, which is its purpose.",
        judged([semantics.same_differences(trees[0])]),
    )
    loss = {
        delta: small.concept_loss(small.lopsided(), value, ["c"] * 50, ["c"] * 49 + ["f"])
        for delta, value in (("δ(b,t)", small.lopsided().width), ("diameter", small.lopsided().diameter))
    }
    yield Claim(
        "Proposition 9, proof",
        "The sensitivity of the marginality is the distance of the two boundaries.",
        f"In a tree of seven values one draw at ε = 1 loses {loss['δ(b,t)']:.3f} with it, "
        f"{loss['diameter']:.3f} with the "
        "diameter: boundaries are not always the farthest values. On the trees of Adult at hand both are the same ("
        + ", ".join(f"{tree.width:.4f}" for tree in trees)
        + ").",
        judged([loss["δ(b,t)"] <= 1, all(tree.width == tree.diameter for tree in trees)]),
    )
    rows = 5 * small.concept_loss(
        Taxonomy.flat(["a", "b"]), Taxonomy.flat(["a", "b"]).diameter, ["a"] * 5, ["a"] * 4 + ["b"]
    )
    yield Claim(
        "Proposition 9",
        "Algorithm 6.3 on insensitive clusters gives an ε-differentially private table.",
        "One draw for one cluster and attribute is. Every record has a draw of its own: the five rows of a "
        f"cluster of a "
        f"flat tree lose {rows:.1f}ε together, and all clusters and attributes add up.",
        judged([rows <= 1]),
    )
    certain = {k: one.others["certainty"] for k, one in adult.alone["insensitive"].items()}
    tie = [semantics.certainty_of_a_tie(k) for k in (2, 100)]
    shown = [k for k in (2, 5, 15, 30, 100) if k in certain]
    yield Claim(
        "Proposition 9",
        "The uncertainty that is needed decreases as k grows.",
        "Mean probability of the best concept at ε = 1 on Adult: "
        + ", ".join(f"{certain[k]:.2f} (k = {k})" for k in shown)
        + f". Not in every cluster: half of one value, half of another stays at {tie[0]:.2f} from k = 2 to "
        f"{tie[1]:.2f} at "
        "k = 100.",
        judged([*(certain[b] > certain[a] for a, b in pairwise(shown)), tie[1] > tie[0]]),
    )


def _distance(trees: Sequence[Taxonomy], single: int) -> Iterator[Claim]:
    yield Claim(
        "6.3.5",
        "Measures on features or on information content agree best with human judgement.",
        "A result of other papers; no such judgements are at hand.",
        "not tested",
    )
    ratios = [semantics.outlying(tree) for tree in trees]
    lower = [one["logarithm"] <= min(one["fraction"], one["edges"], one["exponential"]) for one in ratios]
    yield Claim(
        "6.3.5",
        "A logarithmic distance is less sensitive to outlying values than a linear or exponential one.",
        "Largest over mean distance of two values: "
        + "; ".join(
            ", ".join(f"{name} {value:.2f}" for name, value in one.items())
            + f" ({tree.labels[0]}: {len(tree.domain)} values)"
            for one, tree in zip(ratios, trees, strict=True)
        )
        + ".",
        judged(lower),
    )
    axioms = [semantics.broken_axioms(tree) for tree in trees]
    yield Claim(
        "6.3.5",
        "Eq. 6.6 is a distance: non-negative, reflexive, symmetric, subadditive.",
        f"{sum(axioms)} violations among all pairs and triples of the trees of Adult; random trees: "
        "`tests/taxonomy/test_taxonomy_distance.py`.",
        judged([not any(axioms)]),
    )
    coarse, fine = small.finer()
    largest = max(float(tree.distance_table().max()) for tree in trees)
    yield Claim(
        "6.3.5",
        "It is normalised to [0, 1] and insensitive to size and granularity of the taxonomy.",
        f"At most {largest:.3f} on these trees, always below 1. But two values are {coarse:.3f} apart below "
        f"the root, {fine:.3f} "
        "with one more concept between them and the root.",
        judged([largest <= 1, math.isclose(coarse, fine)]),
    )
    yield Claim(
        "6.3.6",
        "Eq. 6.7 depends on the boundaries of the domain only, not on the records, and so defines a total order.",
        "With public boundaries it does. In the experiment they are 1.5 times the largest value of the data, "
        "which is that "
        f"of a single record in {single} of 4 attributes: whoever replaces it moves all distances.",
        judged([small.insensitive_worst() <= 1, single == 0]),
    )
