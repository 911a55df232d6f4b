"""The stages of each method on engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described, Lattice, coded
from shoal.engines import Blob, Over, TaskStage, batch_of, by_bucket
from shoal.mechanisms import (
    KINDS,
    Centred,
    CrossMoment,
    CutIntervals,
    Drawing,
    Group,
    Histogram,
    MeasuredMarginals,
    PairCounts,
    PairsDP,
    PartitionMethod,
    RecordSums,
    RowBlock,
    SwapRanking,
    TreeDP,
    block_sizes,
    blocks_of,
    budget_of,
    calibrate,
    centroids,
    cluster_scales,
    codes_of,
    compared,
    concepts_of,
    confidential_columns,
    counted,
    draw_pair_values,
    draw_ranks,
    draw_tree_values,
    fitted,
    floors,
    grown,
    leaves_of,
    masked,
    measure_attribute,
    measure_attributes,
    measure_pairs,
    noisy_leaves,
    own_units,
    pair_numbers,
    pair_positions,
    place_in_tree,
    rows_source,
    settle_rows,
    sum_noise,
    sums_of,
    swap_source,
    swapped_ranks,
    tree_numbers,
    tree_points,
    tree_positions,
    whole_counts,
    with_triples,
)
from shoal.mechanisms import TreeModel as TreeModel
from shoal.noise import NOISES, Source, categorical_centroids
from shoal.numbers import Floats, Integers
from shoal.partition import Partition, group_sizes, optimal
from shoal.privacy import Accountant
from shoal.release.in_parts.ranks import (
    GIVEN,
    RANGE,
    STAYING,
    Ranges,
    RankBuckets,
    Ranked,
    heavy_positions,
    lay_ranges,
    lay_rank_buckets,
    owned,
    to_rank_buckets,
)
from shoal.release.in_parts.tasks import (
    Outgoing,
    buckets_of,
    drawn_rows,
    from_ranges,
    noisy_records,
    to_ranges,
)
from shoal.release.in_parts.work import RUN, Made, Work, cluster_facts

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.mechanisms import DrawnTree


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
    stages = (TaskStage(route, ranges.buckets + apart, tuple(given)), TaskStage(place, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters, **more))


def _ranges(work: Work, histograms: Sequence[Histogram]) -> Ranges:
    heavy: Mapping[str, Sequence[int]] = {
        name: found
        for name, histogram in zip(work.prepared.described.columns, histograms, strict=True)
        if (found := heavy_positions(histogram))
    }
    return lay_ranges(histograms, work.heavy_counts(heavy), RUN)


def missing_of(work: Work, name: str) -> int:
    """Number of records without a value in a column, which receive none."""
    return work.records.missing_of(name) if name in work.records.reading.separating else 0


def cluster_sizes(work: Work, name: str, histogram: Histogram, share: Fraction) -> Integers:
    """Sizes of the clusters of a column in order of rank."""
    method, described = cast("PartitionMethod", work.prepared.method), work.prepared.described
    if method.partition != "optimal":
        return group_sizes(described.n - missing_of(work, name), method.size, method.remainder)
    assert histogram.counts is not None
    # the optimal runs of values depend on the count of each value
    ordered = np.repeat(histogram.positions, histogram.counts)
    return optimal(ordered, described.lattices[name].steps, share, method.size).sizes


def _cluster_values(work: Work, name: str, ranked: Ranked, account: Accountant) -> tuple[Floats, int | None]:
    """The released value of every cluster, and the number of clusters without noise where that can occur."""
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


def by_swap(work: Work) -> Made:
    """`swap-ranking`: sensitive values are swapped inside groups of ranks, the others stay unchanged."""
    method, described = cast("SwapRanking", work.prepared.method), work.prepared.described
    rows = work.runner.rows
    names = confidential_columns(method, described)
    histograms = dict(zip(described.columns, work.histograms(), strict=True))
    heavy = {
        name: found
        for name in names
        if _on_lattice(described, name) and (found := heavy_positions(histograms[name], RANGE))
    }
    cut = work.heavy_counts(heavy)
    least = dict(method.sizes or ())
    routes: dict[str, RankBuckets] = {}
    given: list[Blob] = []
    clusters = []
    first = 0
    for number, name in enumerate(names):
        sizes = group_sizes(described.n, least.get(name, method.size), method.remainder)
        place = described.columns.index(name)
        own = {position: found for (column, position), found in cut.items() if column == place}
        keys = _keys(described, name)
        # a block of ranks that is drawn together is never cut: a range consists of whole ones
        routes[name] = lay_rank_buckets(number, first, rows, histograms[name], sizes, keys, own)
        given += routes[name].given(sizes)
        clusters.append(cluster_facts(name, sizes))
        first += routes[name].buckets
    source = work.source()
    out = work.outgoing(rows, source)
    staying = tuple(name for name in described.columns if name not in names)
    send = partial(
        to_rank_buckets,
        reading=work.records.reading,
        described=work.described,
        routes=routes,
        values=_own_values,
        staying=staying,
        apart=first,
    )
    place_rows = partial(
        swapped_rows,
        described=work.described,
        routes=routes,
        staying=staying,
        # separated as in memory, where a table without strata is one class
        source=source.child("class", 0),
        out=out,
    )
    buckets = first + (-(-rows // RANGE) if staying else 0)
    stages = (TaskStage(send, buckets, tuple(given)), TaskStage(place_rows, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters), frozenset(described.columns))


def _on_lattice(described: Described, name: str) -> bool:
    """Whether all records of one position have the same value, so that rows alone decide their order."""
    attribute = described.attribute(name)
    if not attribute.kind_facts.measured:
        return True
    return described.table.is_integer(name) and described.lattices[name].step == 1


def _keys(described: Described, name: str) -> Integers | None:
    """The order of nominal values, which is that of their taxonomy."""
    tree = described.tree(name)
    if tree is None:
        return None
    return place_in_tree(tree)[np.asarray(tree.domain, dtype=np.int64)].astype(np.int64)


def _own_values(described: Described, name: str) -> Floats:
    return KINDS[described.attribute(name).kind_facts.middle].values(described, name)[0]


def _ranks(name: str, values: NDArray[Any], described: Described) -> NDArray[Any]:
    tree = described.tree(name)
    return values if tree is None else place_in_tree(tree)[values.astype(np.int64)]


def swapped_rows(
    batches: Iterator[pa.RecordBatch],
    described: Described,
    routes: Mapping[str, RankBuckets],
    staying: Sequence[str],
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Swap values inside groups of ranks.

    Guarantee:
        A uniform permutation in every group (`kanonymity.swap_algorithms.swap_ranking`), the same one
        however often it is computed.
    """
    numbers = {name: number for number, name in enumerate(described.columns)}
    for bucket, parts in by_bucket(batches):
        for rows, *others in parts.get(STAYING, []):
            for name, own in zip(staying, others, strict=True):
                yield batch_of(list(out.column_blobs(numbers[name], rows, own)))
        if GIVEN in parts:
            here = owned(bucket, parts, routes, partial(_ranks, described=described))
            drawn = swapped_ranks(here.sizes, here.start, swap_source(source, here.number))
            values = here.values[drawn - here.start]
            yield batch_of(list(out.column_blobs(numbers[here.name], here.rows, values)))


def by_moments(work: Work) -> Made:
    """`xm-20` to `xm-26` and similar: noise on the moments of clusters of ranks, with rows drawn from these."""
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
    routes: dict[str, RankBuckets] = {}
    given: list[Blob] = []
    clusters: list[dict[str, Any]] = []
    repairs: dict[str, int] = {}
    first = 0
    for number, name in enumerate(described.columns):
        group = Group((name,), (described.lattices[name],), (np.empty(0, dtype=np.int64),))
        budget = budget_of(prepared.plan, group)
        # without noise there is none to weight
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
        routes[name] = lay_rank_buckets(number, first, rows, histograms[number], sizes, None, own)
        given += routes[name].given(sizes, *(found[: sizes.size, 0] for found in statistics))
        first += routes[name].buckets
        for what, count in possible.repairs.items():
            repairs[what] = repairs.get(what, 0) + count
        clusters.append(cluster_facts(name, ranked.sizes))
        work.tell("drawing noise", number + 1, len(described.columns))
    source, reading = work.source(), work.records.reading
    out = work.outgoing(rows, source)
    send = partial(
        to_rank_buckets,
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
    stages = (TaskStage(send, buckets, tuple(given)), TaskStage(place, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters, repairs=repairs))


def _positions(described: Described, name: str) -> Integers:
    return described.positions(name)[0]


def _themselves(name: str, values: NDArray[Any]) -> NDArray[Any]:
    return values


def moment_rows(
    batches: Iterator[pa.RecordBatch],
    routes: Mapping[str, RankBuckets],
    lattices: Sequence[Lattice],
    clip: bool,
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Give every record a mean, or a draw from its cluster's distribution; in a cluster, row numbers decide which."""
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


__all__ = ["Made", "Work", "by_moments", "by_pairs", "by_rank", "by_record", "by_swap", "by_tree"]


def by_record(work: Work) -> Made:
    """`laplace` and `pram`: every record is protected by itself."""
    prepared, source = work.prepared, work.source()
    described = work.described
    # the batch of a record follows from its position in the table
    shared = prepared.account().parallel("batches of records")
    out = work.outgoing(work.runner.rows, source)
    task = partial(
        noisy_records,
        reading=work.records.reading,
        described=described,
        method=prepared.method,
        plan=prepared.plan,
        shared=shared.elsewhere(),
        source=source.child("noise"),
        out=out,
    )
    n = prepared.described.n
    alone = {"columns": list(described.columns), "count": n, "smallest": 1, "largest": 1}
    clusters = [alone] if isinstance(prepared.method, PartitionMethod) else []
    return Made(work.over, (TaskStage(task, out.buckets),), out, work.facts(clusters=clusters))


def by_tree(work: Work) -> Made:
    """`tree-dp`: cut points, counts and sums from histograms, one pass for the leaves, rows drawn in blocks."""
    prepared = work.prepared
    method, account, ruled = cast("TreeDP", prepared.method), prepared.account(), work.columns()
    described = ruled.described
    known = settle_rows(method, described, account)
    measured: list[CutIntervals] = []
    for name, histogram in zip(described.columns, ruled.histograms, strict=True):
        assert histogram.counts is not None
        positions, counts = histogram.positions, histogram.counts
        if name in described.flagged and ruled.missing[name]:
            positions = np.append(positions, tree_points(described, name) - 1)
            counts = np.append(counts, ruled.missing[name])
        measured.append(measure_attribute(described, name, positions, counts, known, account))
        work.tell("cutting attributes", len(measured), len(described.columns))
    tree = grown(measured, known.layout)
    exact = np.zeros(tree.leaves, dtype=np.int64)
    if known.layout.leaves:
        (exact,) = work.counts("counting leaves", partial(_leaf_counts, tree=tree, measured=tuple(measured)))
    cells = noisy_leaves(tree, exact, measured, known, account, described)
    per_leaf = whole_counts(cells, known.rows)
    model = TreeModel(tuple(measured), tree, per_leaf, method.rebuild, method.generalise)
    blocks = blocks_of(per_leaf)
    own = work.source()
    draw = partial(_tree_block, model=model, described=work.described, blocks=blocks, source=own)
    made = _drawn(work, draw, [block.size for block in blocks], own, known.rows, ruled.internal)
    return replace(made, measurements=tree_numbers(described, account, known.rows))


def _leaf_counts(part: Described, tree: DrawnTree, measured: Sequence[CutIntervals]) -> list[Integers]:
    here = coded(part)
    codes = np.empty((len(here.columns), here.n), dtype=np.uint16)
    for number, (name, found) in enumerate(zip(here.columns, measured, strict=True)):
        codes[number] = codes_of(tree_positions(here, name)[0], found.edges, tree_points(here, name) - 1)
    return [leaves_of(tree, codes, measured)]


def _tree_block(
    number: int, model: TreeModel, described: Described, blocks: Sequence[RowBlock], source: Source
) -> Mapping[str, Floats]:
    return draw_tree_values(model, coded(described), blocks[number], number, source)


def _drawn(
    work: Work,
    draw: Callable[[int], Mapping[str, Floats]],
    sizes: Sequence[int],
    source: Source,
    rows: int,
    more: Mapping[str, Any],
) -> Made:
    out = work.outgoing(rows, source)
    ends = np.cumsum(np.array(sizes, dtype=np.int64))
    task = partial(drawn_rows, draw=draw, starts=ends - np.array(sizes, dtype=np.int64), out=out)
    facts = work.facts(rows_released=rows, clusters=[], **more)
    return Made(Over(count=len(sizes)), (TaskStage(task, out.buckets),), out, facts)


def by_pairs(work: Work) -> Made:
    """`pairs-dp`: attributes from histograms, one pass for the counts of all pairs of bins, rows drawn in blocks."""
    prepared = work.prepared
    method, account, ruled = cast("PairsDP", prepared.method), prepared.account(), work.columns()
    described = ruled.described
    found = list(ruled.histograms)
    for name in described.flagged:
        # beside the values: present or missing
        missing = ruled.missing[name]
        flags = np.array([prepared.described.n - missing, missing], dtype=np.int64)
        found.append(Histogram(np.flatnonzero(flags), flags[flags > 0]))
    known = measure_attributes(method, described, found, account)
    count = partial(_pair_tables, known=known)
    tables = work.counts("counting pairs", count) if len(known.bins) > 1 else []
    triples = tables.pop() if known.triples is not None else None
    products = tables.pop() if known.clipped is not None else None
    shaped = {
        (a, b): table.reshape(known.bins[a], known.bins[b])
        for (a, b), table in zip(_pairs(known), tables, strict=True)
    }
    sums = RecordSums(PairCounts([], known.bins, shaped), products, triples)
    model = measure_pairs(sums, known, prepared.described.n, account)
    made = fitted(model, known, account.free("a model of pairs"))
    drawing = with_triples(made, model, known, sums, account)
    sizes = block_sizes(known.rows)
    own = work.source()
    draw = partial(_pairs_block, drawing=drawing, described=work.described, source=own)
    numbers = pair_numbers(described, known, account)
    checked = compared(drawing, coded(work.described), own)
    out = _drawn(work, draw, sizes, own, known.rows, {**ruled.internal, **checked})
    return replace(out, conditions=known.conditions, measurements=numbers)


def _pairs(known: MeasuredMarginals) -> list[tuple[int, int]]:
    number = len(known.bins)
    return [(a, b) for a in range(number) for b in range(a + 1, number)]


def _pair_tables(here: Described, known: MeasuredMarginals) -> list[Integers]:
    positions, _ = pair_positions(coded(here))
    sums = counted(positions, known)
    found = [sums.counts.table(a, b) for a, b in _pairs(known)]
    return [*found, *(part for part in (sums.products, sums.triples) if part is not None)]


def _pairs_block(number: int, drawing: Drawing, described: Described, source: Source) -> Mapping[str, Floats]:
    return draw_pair_values(drawing, coded(described), number, source)
