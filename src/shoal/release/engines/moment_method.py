"""Moments of clusters of ranks on engines: histograms come in, noise is drawn once, stages that draw rows leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.columns.kinds import Lattice
from shoal.mechanisms.moments.mechanism import budget_of, calibrate, masked, own_units, rows_source
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.mechanisms.moments.sampling import draw_ranks
from shoal.mechanisms.moments.statistics import Centred
from shoal.mechanisms.partition_stage import Group
from shoal.noise import Source
from shoal.partition import Partition
from shoal.release.engines.blobs import Blob, batch_of, by_bucket
from shoal.release.engines.neighbours import GIVEN, Neighbours, lay_neighbours, owned, to_neighbours
from shoal.release.engines.rank_methods import cluster_sizes, missing_of
from shoal.release.engines.ranks import RANGE, Ranked, heavy_positions
from shoal.release.engines.stages import Stage
from shoal.release.engines.tasks import Outgoing
from shoal.release.engines.work import Made, Work, cluster_facts

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_moments(work: Work) -> Made:
    """`xm-20` to `xm-26` and their like: noise on the moments of clusters of ranks, rows drawn from these."""
    prepared = work.prepared
    method, described, rows = cast("CrossMoment", prepared.method), prepared.described, work.runner.rows
    account = prepared.account()
    histograms = work.histograms()
    heavy = {
        name: found
        for name, histogram in zip(described.columns, histograms, strict=True)
        if (found := heavy_positions(histogram, RANGE))
    }
    cut = work.heavy_counts(heavy)
    routes: dict[str, Neighbours] = {}
    given: list[Blob] = []
    clusters: list[dict[str, Any]] = []
    repairs: dict[str, int] = {}
    first = 0
    for number, name in enumerate(described.columns):
        group = Group((name,), (described.lattices[name],), (np.empty(0, dtype=np.int64),))
        budget = budget_of(prepared.plan, group)
        # without noise there is none to weigh
        share = Fraction(1) if budget is None else budget.means[0]
        sizes = cluster_sizes(work, name, histograms[number], share)
        ranked = Ranked.of(histograms[number], sizes, missing_of(work, name))
        centred = Centred.of_runs(*ranked.runs(), ranked.sums(), ranked.sizes)
        partition = Partition(np.empty(0, dtype=np.int64), ranked.sizes, (name,))
        fixed = calibrate(group, partition, budget, method, centred)
        possible = masked(group, fixed, budget, account, method, centred)
        statistics = [possible.statistics.means]
        if possible.shape is not None:
            statistics.append(possible.shape.deviations)
            statistics += [] if possible.shape.skewness is None else [possible.shape.skewness]
        own = {position: found for (column, position), found in cut.items() if column == number}
        routes[name] = lay_neighbours(number, first, rows, histograms[number], sizes, None, own)
        given += routes[name].given(sizes, *(found[: sizes.size, 0] for found in statistics))
        first += routes[name].buckets
        for what, count in possible.repairs.items():
            repairs[what] = repairs.get(what, 0) + count
        clusters.append(cluster_facts(name, ranked.sizes))
        work.tell("drawing noise", number + 1, len(described.columns))
    source, reading = work.source(), work.records.reading
    out = work.outgoing(rows, source)
    send = partial(
        to_neighbours,
        reading=reading,
        described=work.described,
        routes=routes,
        values=_positions,
        staying=(),
        apart=first,
    )
    lattices = tuple(described.lattices[name] for name in described.columns)
    place = partial(moment_rows, routes=routes, lattices=lattices, clip=method.clip, source=source, out=out)
    buckets = first + (-(-rows // RANGE) if reading.separating else 0)
    stages = (Stage(send, buckets, tuple(given)), Stage(place, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters, repairs=repairs))


def _positions(described: Described, name: str) -> Integers:
    return described.positions(name)[0]


def _themselves(name: str, values: NDArray[Any]) -> NDArray[Any]:
    return values


def moment_rows(
    batches: Iterator[pa.RecordBatch],
    routes: Mapping[str, Neighbours],
    lattices: Sequence[Lattice],
    clip: bool,
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Every record gets a mean, or a draw from the distribution of its cluster; inside a cluster the rows say which."""
    for bucket, parts in by_bucket(batches):
        if GIVEN not in parts:
            for number, gaps in parts.items():
                for (missing,) in gaps:
                    yield batch_of(list(out.column_blobs(number, missing, np.full(missing.size, np.nan))))
            continue
        here = owned(bucket, parts, routes, _themselves)
        means, *shape = here.given
        if shape:
            skewness = shape[1] if len(shape) > 1 else None
            own = rows_source(source, here.name)
            scaled = draw_ranks(means, shape[0], skewness, here.sizes, here.start, own)
        else:
            scaled = np.repeat(means, here.sizes)
        values = own_units(scaled[:, np.newaxis], (lattices[here.number],), clip=clip)[:, 0]
        clusters = np.repeat(np.arange(here.sizes.size), here.sizes)
        rows = here.rows[np.lexsort((here.rows, clusters))]
        yield batch_of(list(out.column_blobs(here.number, rows, values)))
