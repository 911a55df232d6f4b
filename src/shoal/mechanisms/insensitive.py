"""Insensitive microaggregation with noise: the published method and its corrected form."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Described
from shoal.errors import OptionError
from shoal.mechanisms import clusters
from shoal.mechanisms.cluster_methods import InsensitiveDP
from shoal.mechanisms.clusters import Clusters
from shoal.mechanisms.method import Rebuilt
from shoal.noise import Source, discrete_laplace, exponential_places, round_up_scale, score_by
from shoal.partition import Partition, check_k
from shoal.privacy import Accountant, Plan
from shoal.progress import Progress
from shoal.taxonomy import Taxonomy, histogram_blocks, marginality_sums
from shoal.text import Message

# number of rows drawn at once
_ROWS = 1 << 15


def noisy_rows(
    positions: NDArray[np.int64], steps: int, partition: Partition, k: int, epsilon: Fraction, source: Source
) -> NDArray[np.float64]:
    """Every record's cluster mean plus Laplace noise of scale steps/(k·ε), one draw for each record.

    Drawn on the cluster sum, whose step is the |C|-th part of a lattice step.

    Reference:
        thesis, Algorithm 6.2 with section 6.3.1.

    >>> from shoal.noise import Seeded
    >>> two = Partition.from_labels([0, 0, 1, 1])
    >>> noisy_rows(np.array([0, 2, 8, 10]), 10, two, 2, Fraction(10**9), Seeded(1)).tolist()
    [1.0, 1.0, 9.0, 9.0]
    """
    sizes = partition.sizes[partition.labels]
    sums = partition.sums(positions)[partition.labels]
    noise = np.zeros(positions.size, dtype=np.int64)
    for size in np.unique(partition.sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        noise[rows] = discrete_laplace(round_up_scale(size * steps / (k * epsilon)), rows.size, source)
    rows_of_means: NDArray[np.float64] = (sums + noise) / sizes
    return rows_of_means


def drawn_rows(
    codes: NDArray[np.int64],
    partition: Partition,
    taxonomy: Taxonomy,
    epsilon: Fraction,
    source: Source,
    *,
    generalise: bool = True,
) -> NDArray[np.int64]:
    """A concept for every record, drawn by the exponential mechanism from its cluster, one draw for each record.

    Reference:
        thesis, Algorithm 6.2 with Algorithm 6.3.

    >>> from shoal.noise import Seeded
    >>> tree, two = Taxonomy.flat(["a", "b"]), Partition.from_labels([0, 0, 1, 1])
    >>> drawn = drawn_rows(tree.encode(["a", "a", "b", "b"]), two, tree, Fraction(10**6), Seeded(1))
    >>> tree.decode(drawn).tolist()
    ['a', 'a', 'b', 'b']
    """
    candidates = taxonomy.candidates(generalise=generalise)
    scoring = score_by(taxonomy, epsilon, generalise=generalise, adjacency="replace-one")
    if scoring.scale is None:
        return candidates[source.below(candidates.size, codes.size)]
    scores = np.empty((len(partition), candidates.size), dtype=np.int64)
    for block, counts in histogram_blocks(taxonomy.shape, partition.labels, codes, len(partition)):
        scores[block] = marginality_sums(taxonomy.shape, counts, scoring.table)[:, candidates]
    places = np.empty(codes.size, dtype=np.int64)
    for start in range(0, codes.size, _ROWS):
        rows = slice(start, start + _ROWS)
        places[rows] = exponential_places(scores[partition.labels[rows]], scoring.scale, source)
    return candidates[places]


def paying_clusters(n: int, k: int) -> int:
    """Number of clusters one replaced record can change, by which ε is divided.

    Every cluster can change, by one record each; there are ⌊n/k⌋. Clusters of one record are an exception: they
    hold only the record's own values, in whatever order they are made.

    >>> paying_clusters(1080, 34), paying_clusters(1080, 1), paying_clusters(50, 34)
    (31, 1, 1)
    """
    return 1 if k == 1 else n // k


def default_size(n: int) -> int:
    """⌈√n⌉ + 1, at most n: from k > √n on, noise on a mean of k under ε divided by ⌊n/k⌋ is below that on a value.

    >>> default_size(1080), default_size(30162), default_size(2)
    (34, 175, 2)
    """
    return min(n, math.isqrt(n - 1) + 2)


def size_note(n: int, k: int) -> tuple[Message, ...]:
    """Why a k is too small to be useful; empty if it is not.

    >>> str(size_note(1080, 5)[0])[:88]
    'k = 5 with 1080 rows: one record can change 216 clusters, so each gets 1/216 of ε, and t'
    >>> size_note(1080, 34), size_note(1080, 1)
    ((), ())
    """
    paying = paying_clusters(n, k)
    if paying < k or k == 1:
        return ()
    factor = paying / k
    return (
        Message.of("k-pays-too-often", k=k, rows=n, paying=paying, factor=factor, default=default_size(n)),
    )


# why noise is useless where composition is parallel
_PUBLISHED = "as published, no claim"


def settle(method: InsensitiveDP, described: Described) -> tuple[InsensitiveDP, tuple[Message, ...]]:
    """Derive k from the public number of rows; report where a requested k cannot be useful."""
    n = described.n
    settled = replace(method, k=default_size(n)) if method.k is None else method
    check_k(settled.size, n)
    if method.composition == "parallel":
        for option, used in (("noise", "laplace"), ("split", "equal")):
            if getattr(method, option) != used:
                raise OptionError("option-composition-strict", option=option, used=used)
        return settled, ()
    notes = size_note(n, settled.size)
    if len(described.columns) == 1 and paying_clusters(n, settled.size) > 1:
        notes += (Message("one-column-by-ranking"),)
    return settled, notes


def plan(method: InsensitiveDP, described: Described) -> Plan:
    """Split ε among the attributes; every cluster gets the same part of each share."""
    if method.composition == "parallel":
        return Plan({}, dict.fromkeys(described.columns, method.budget))
    shared = clusters.plan(method, described)
    paying = _paying(method, described.n)
    if paying == 1:
        return shared
    condition = Message.of("all-clusters-pay", paying=paying)
    # a change in one column moves records between clusters, together with their other values
    whole = dict.fromkeys(shared.shares, method.budget)
    return replace(shared, conditions=(*shared.conditions, condition), per_attribute=whole)


def check(method: InsensitiveDP, described: Described, plan: Plan, labels: ArrayLike | None = None) -> None:
    """Raise what `run` would raise."""
    if method.composition == "parallel":
        # noise on the mean of up to 2k - 1 records is drawn on their sum
        spent = replace(plan, shares={name: share / 2 for name, share in plan.shares.items()})
    else:
        spent = _per_cluster(method, described, plan)
    clusters.check(method, described, spent, labels)


def freeze(
    method: InsensitiveDP,
    described: Described,
    plan: Plan,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> tuple[Clusters, ...]:
    """The clusters, held fixed while records change."""
    return clusters.freeze(method, described, plan, progress, labels)


def run(
    method: InsensitiveDP,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    labels: ArrayLike | None = None,
) -> Rebuilt:
    """Partition by the corners of the public domain, then noise on every cluster.

    Guarantee:
        composition=strict: ε-DP of the original records under replace-one, by composition over all clusters that one
        record can change and over the attributes. composition=parallel: none. Proof:
        docs/proofs/clusters.md#insensitive.

    Cost:
        See `shoal.partition.insensitive`; the noise is one draw per cluster and attribute.

    Reference:
        thesis, chapter 6, with its Proposition 8 and its use of parallel composition corrected.
    """
    if method.composition == "parallel":
        (made,) = clusters.freeze(method, described, plan, progress, None)
        return _as_published(method, described, made, account.free(_PUBLISHED))
    shares = _per_cluster(method, described, plan)
    return clusters.run(method, described, shares, account, progress, labels, _paying(method, described.n))


def run_frozen(
    method: InsensitiveDP,
    described: Described,
    plan: Plan,
    account: Accountant,
    progress: Progress,
    frozen: tuple[Clusters, ...],
) -> Rebuilt:
    """Like `run`, with existing clusters."""
    if method.composition == "parallel":
        (made,) = frozen
        return _as_published(method, described, made, account.free(_PUBLISHED))
    shares = _per_cluster(method, described, plan)
    paying = _paying(method, described.n)
    return clusters.run_frozen(method, described, shares, account, progress, frozen, paying)


def shares_of(method: InsensitiveDP, n: int, plan: Plan) -> dict[str, Fraction]:
    """The ε of one cluster by column."""
    paying = _paying(method, n)
    return {name: share / paying for name, share in plan.shares.items()}


def _paying(method: InsensitiveDP, n: int) -> int:
    return paying_clusters(n, method.size)


def _per_cluster(method: InsensitiveDP, described: Described, plan: Plan) -> Plan:
    return replace(plan, shares=shares_of(method, described.n, plan))


def _as_published(method: InsensitiveDP, described: Described, made: Clusters, source: Source) -> Rebuilt:
    partition = made.partition
    values: dict[str, NDArray[np.float64]] = {}
    clipped: dict[str, int] = {}
    for column in described.columns:
        tree, lattice = described.tree(column), described.lattices[column]
        positions, clipped[column] = described.positions(column)
        if tree is not None:
            drawn = drawn_rows(
                described.codes(column), partition, tree, method.budget, source, generalise=method.generalise
            )
            values[column] = drawn.astype(np.float64)
            continue
        rows = noisy_rows(positions, lattice.steps, partition, method.size, method.budget, source)
        found = lattice.values(rows)
        values[column] = np.clip(found, float(lattice.lo), float(lattice.hi)) if method.clip else found
    return Rebuilt(
        values,
        [partition],
        aligned=True,
        internal={"values_clipped": clipped, "clusters": [clusters.cluster_facts(partition)]},
    )
