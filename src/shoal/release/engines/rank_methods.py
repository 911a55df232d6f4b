"""Clusters of ranks on engines: histograms come in, noise is drawn once, records look up what their rank gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.lattice import Lattice
from shoal.mechanisms.histogram import Histogram
from shoal.mechanisms.mask import floors, sum_noise
from shoal.mechanisms.moments.masking import calibrate
from shoal.mechanisms.moments.mechanism import budget_of, masked, own_units, rows_source
from shoal.mechanisms.moments.statistics.draw import draw_ranks
from shoal.mechanisms.moments.statistics.power_sums import Centred
from shoal.mechanisms.rebuild import centroids
from shoal.method.stages import Group
from shoal.noise import Source
from shoal.noise.categorical import categorical_centroids
from shoal.partition import Partition, optimal
from shoal.partition.ranking import group_sizes
from shoal.release.engines.blobs import Blob
from shoal.release.engines.ranks import Ranges, Ranked, heavy_positions, lay_ranges
from shoal.release.engines.stages import Stage
from shoal.release.engines.tasks import RankValues, buckets_of, from_ranges, repeated, to_ranges
from shoal.release.engines.work import RUN, Made, Work, cluster_facts
from shoal.sensitivity.local import CALIBRATIONS, cluster_scales

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_rank(work: Work) -> Made:
    """`ranking-dp`, `optimal-dp` and the iDP methods: noise on the sums of clusters of ranks, column by column."""
    described = work.prepared.described
    histograms = work.histograms()
    ranges = _ranges(work, histograms)
    given: list[Blob] = []
    clusters, exact = [], {}
    for number, name in enumerate(described.columns):
        sizes = _sizes(work, name, histograms[number], work.prepared.plan.shares[name])
        ranked = Ranked.of(histograms[number], sizes, _missing(work, name))
        values, without = _cluster_values(work, name, ranked)
        given += ranges.given(number, sizes, values[: sizes.size])
        exact.update({} if without is None else {name: without})
        clusters.append(cluster_facts(name, ranked.sizes))
        work.tell("drawing noise", number + 1, len(described.columns))
    more = {"clusters_without_noise": exact} if exact else {}
    return _looked_up(work, ranges, given, repeated, work.source(), clusters=clusters, **more)


def by_moments(work: Work) -> Made:
    """`xm-20` to `xm-26` and their like: noise on the moments of clusters of ranks, rows drawn rank by rank."""
    prepared = work.prepared
    method, described = prepared.method, prepared.described
    histograms = work.histograms()
    ranges = _ranges(work, histograms)
    given: list[Blob] = []
    clusters: list[dict[str, Any]] = []
    repairs: dict[str, int] = {}
    for number, name in enumerate(described.columns):
        lattice = described.lattices[name]
        group = Group((name,), (lattice,), (np.empty(0, dtype=np.int64),))
        budget = budget_of(prepared.plan, group)
        # without noise there is none to weigh
        share = Fraction(1) if budget is None else budget.means[0]
        sizes = _sizes(work, name, histograms[number], share)
        ranked = Ranked.of(histograms[number], sizes, _missing(work, name))
        centred = Centred.of_runs(*ranked.runs(), ranked.sums(), ranked.sizes)
        partition = Partition(np.empty(0, dtype=np.int64), ranked.sizes, (name,))
        fixed = calibrate(group, partition, budget, method, centred)
        possible = masked(group, fixed, budget, prepared.source, method, centred)
        statistics = [possible.statistics.means]
        if possible.shape is not None:
            statistics.append(possible.shape.deviations)
            statistics += [] if possible.shape.skewness is None else [possible.shape.skewness]
        given += ranges.given(number, sizes, *(found[: sizes.size, 0] for found in statistics))
        for what, count in possible.repairs.items():
            repairs[what] = repairs.get(what, 0) + count
        clusters.append(cluster_facts(name, ranked.sizes))
        work.tell("drawing noise", number + 1, len(described.columns))
    source = work.source()
    values = partial(
        _drawn_values,
        columns=tuple((name, described.lattices[name]) for name in described.columns),
        clip=method.clip,
        source=source,
    )
    return _looked_up(work, ranges, given, values, source, clusters=clusters, repairs=repairs)


def _drawn_values(
    number: int,
    first: int,
    sizes: Integers,
    arrays: Sequence[Floats],
    columns: Sequence[tuple[str, Lattice]],
    clip: bool,
    source: Source,
) -> Floats:
    """What the records of consecutive ranks get: a mean, or a draw from a distribution."""
    name, lattice = columns[number]
    means, *shape = arrays
    if shape:
        skewness = shape[1] if len(shape) > 1 else None
        scaled = draw_ranks(means, shape[0], skewness, sizes, first, rows_source(source, name))
    else:
        scaled = np.repeat(means, sizes)
    return own_units(scaled[:, np.newaxis], (lattice,), clip=clip)[:, 0]


def _looked_up(
    work: Work, ranges: Ranges, given: Sequence[Blob], values: RankValues, source: Source, **facts: Any
) -> Made:
    """Stages that bring every record to its rank, and what it gets there to a released row."""
    method, described = work.prepared.method, work.prepared.described
    rows = work.runner.rows if method.link else described.n
    out = work.outgoing(rows, source, linked=method.link)
    reading = work.records.reading
    route = partial(
        to_ranges, reading=reading, described=work.described, routes=ranges.routes, apart=ranges.buckets
    )
    apart = buckets_of(work.runner.rows) if reading.separating else 0
    place = partial(from_ranges, starts=ranges.starts, out=out, by_rank=not method.link, values=values)
    stages = (Stage(route, ranges.buckets + apart, tuple(given)), Stage(place, out.buckets))
    return Made(work.over, stages, out, work.facts(**facts))


def _ranges(work: Work, histograms: Sequence[Histogram]) -> Ranges:
    heavy: Mapping[str, Sequence[int]] = {
        name: found
        for name, histogram in zip(work.prepared.described.columns, histograms, strict=True)
        if (found := heavy_positions(histogram))
    }
    return lay_ranges(histograms, work.heavy_counts(heavy), RUN)


def _missing(work: Work, name: str) -> int:
    """How many records have no value of a column, and get none."""
    return work.records.missing_of(name) if name in work.records.reading.separating else 0


def _sizes(work: Work, name: str, histogram: Histogram, share: Fraction) -> Integers:
    """Sizes of the clusters of a column in order of rank."""
    method, described = work.prepared.method, work.prepared.described
    if method.partition != "optimal":
        return group_sizes(described.n - _missing(work, name), method.size, method.remainder)
    assert histogram.counts is not None
    # the best runs of values follow from how often each occurs
    ordered = np.repeat(histogram.positions, histogram.counts)
    return optimal(ordered, described.lattices[name].steps, share, method.size).sizes


def _cluster_values(work: Work, name: str, ranked: Ranked) -> tuple[Floats, int | None]:
    """What the records of every cluster get, and how many clusters have no noise where that can be."""
    prepared = work.prepared
    method, plan, described, source = prepared.method, prepared.plan, prepared.described, prepared.source
    lattice, tree = described.lattices[name], described.tree(name)
    share = plan.shares[name]
    if tree is not None:
        labels, positions, counts = ranked.runs()
        codes = np.asarray(tree.domain, dtype=np.int64)[positions]
        chosen = categorical_centroids(
            labels,
            codes,
            ranked.sizes.size,
            tree,
            share,
            source,
            generalise=method.generalise,
            counts=counts,
        )
        return chosen.astype(np.float64), None
    calibration = CALIBRATIONS[method.sensitivity]
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
    noise = sum_noise((name,), (lattice.steps,), scales, share, ranked.sizes.size, source, method)[:, 0]
    sums = ranked.calibrated_sums(method.sensitivity) + noise
    without = None if scales is None else int(np.count_nonzero(scales == 0))
    return centroids(sums, ranked.sizes, lattice, clip=method.clip), without
