"""Clusters of ranks on engines: histograms come in, noise is drawn once, records look up what their rank gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.cluster_methods import PartitionMethod
from shoal.mechanisms.clusters import centroids, concepts_of, floors, sum_noise, sums_of
from shoal.mechanisms.pairs.measure_one import Histogram
from shoal.mechanisms.partition_stage import Group
from shoal.mechanisms.sensitivity import cluster_scales
from shoal.noise.choice import categorical_centroids
from shoal.noise.families import NOISES
from shoal.partition import optimal
from shoal.partition.rank_groups import group_sizes
from shoal.privacy import Accountant
from shoal.release.engines.blobs import Blob
from shoal.release.engines.ranks import Ranges, Ranked, heavy_positions, lay_ranges
from shoal.release.engines.stages import Stage
from shoal.release.engines.tasks import buckets_of, from_ranges, to_ranges
from shoal.release.engines.work import RUN, Made, Work, cluster_facts

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_rank(work: Work) -> Made:
    """`ranking-dp`, `optimal-dp` and the iDP methods: noise on the sums of clusters of ranks, column by column."""
    described, account = work.prepared.described, work.prepared.account()
    histograms = work.histograms()
    ranges = _ranges(work, histograms)
    given: list[Blob] = []
    clusters, exact = [], {}
    for number, name in enumerate(described.columns):
        sizes = cluster_sizes(work, name, histograms[number], work.prepared.plan.shares[name])
        ranked = Ranked.of(histograms[number], sizes, missing_of(work, name))
        values, without = _cluster_values(work, name, ranked, account)
        given += ranges.given(number, sizes, values[: sizes.size])
        exact.update({} if without is None else {name: without})
        clusters.append(cluster_facts(name, ranked.sizes))
        work.tell("drawing noise", number + 1, len(described.columns))
    more = {"clusters_without_noise": exact} if exact else {}
    linked, reading, source = work.prepared.method.output.linked, work.records.reading, work.source()
    rows = work.runner.rows if linked else described.n
    out = work.outgoing(rows, source, linked=linked)
    route = partial(
        to_ranges, reading=reading, described=work.described, routes=ranges.routes, apart=ranges.buckets
    )
    apart = buckets_of(work.runner.rows) if reading.separating else 0
    place = partial(from_ranges, starts=ranges.starts, out=out, by_rank=not linked)
    stages = (Stage(route, ranges.buckets + apart, tuple(given)), Stage(place, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters, **more))


def _ranges(work: Work, histograms: Sequence[Histogram]) -> Ranges:
    heavy: Mapping[str, Sequence[int]] = {
        name: found
        for name, histogram in zip(work.prepared.described.columns, histograms, strict=True)
        if (found := heavy_positions(histogram))
    }
    return lay_ranges(histograms, work.heavy_counts(heavy), RUN)


def missing_of(work: Work, name: str) -> int:
    """How many records have no value of a column, and get none."""
    return work.records.missing_of(name) if name in work.records.reading.separating else 0


def cluster_sizes(work: Work, name: str, histogram: Histogram, share: Fraction) -> Integers:
    """Sizes of the clusters of a column in order of rank."""
    method, described = cast("PartitionMethod", work.prepared.method), work.prepared.described
    if method.partition != "optimal":
        return group_sizes(described.n - missing_of(work, name), method.size, method.remainder)
    assert histogram.counts is not None
    # the best runs of values follow from how often each occurs
    ordered = np.repeat(histogram.positions, histogram.counts)
    return optimal(ordered, described.lattices[name].steps, share, method.size).sizes


def _cluster_values(work: Work, name: str, ranked: Ranked, account: Accountant) -> tuple[Floats, int | None]:
    """What the records of every cluster get, and how many clusters have no noise where that can be."""
    method, described = cast("PartitionMethod", work.prepared.method), work.prepared.described
    lattice, tree = described.lattices[name], described.tree(name)
    share = work.prepared.plan.shares[name]
    if tree is not None:
        own, source = account.spend(concepts_of(name), share, over="clusters").take()
        labels, positions, counts = ranked.runs()
        codes = np.asarray(tree.domain, dtype=np.int64)[positions]
        chosen = categorical_centroids(
            labels,
            codes,
            ranked.sizes.size,
            tree,
            own,
            source,
            generalise=method.generalise,
            counts=counts,
        )
        return chosen.astype(np.float64), None
    calibration = method.calibration
    scales = None
    if calibration.changes is not None:
        ends, partition = ranked.outline()
        group = Group((name,), (lattice,), (ends,))
        (scales,) = cluster_scales(
            [calibration.changes(ends, lattice.steps, partition)],
            [lattice.steps],
            [share],
            partition,
            floors(group, method),
            ranked.sizes,
        )
    spend = account.spend(sums_of([name], together=NOISES[method.noise].joint), share, over="clusters")
    noise = sum_noise((name,), (lattice.steps,), scales, spend, ranked.sizes.size, method)[:, 0]
    sums = ranked.calibrated_sums(method.sensitivity) + noise
    without = None if scales is None else int(np.count_nonzero(scales == 0))
    return centroids(sums, ranked.sizes, lattice, clip=method.clip), without
