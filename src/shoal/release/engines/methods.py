"""Methods on engines: aggregates come in, the stages that make a release leave. What is drawn once is drawn here.

Every plan draws from the same source, in the same order, as the method does in memory: with a seed the noise is the
same. What tasks draw comes from children of a key that is made for one release and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.histogram import Histogram
from shoal.mechanisms.mask import floors, sum_noise
from shoal.mechanisms.pairs.contrasts import PairCounts
from shoal.mechanisms.pairs.joint import exact_products
from shoal.mechanisms.pairs.mechanism import Drawing, fitted, measure_attributes, pair_positions
from shoal.mechanisms.pairs.mechanism import (
    draw_values as draw_pair_values,
)
from shoal.mechanisms.pairs.model import Measured, measure_counts, pair_codes
from shoal.mechanisms.pairs.rows import block_sizes
from shoal.mechanisms.rebuild import centroids
from shoal.mechanisms.tree.counts import whole_counts
from shoal.mechanisms.tree.intervals import Intervals, codes_of
from shoal.mechanisms.tree.mechanism import (
    Model as TreeModel,
)
from shoal.mechanisms.tree.mechanism import (
    draw_values as draw_tree_values,
)
from shoal.mechanisms.tree.mechanism import (
    grown,
    leaves_of,
    measure_attribute,
    noisy_leaves,
    settle_rows,
    tree_points,
    tree_positions,
)
from shoal.mechanisms.tree.rows import Block, blocks_of
from shoal.method.stages import Group
from shoal.noise import Source
from shoal.noise.categorical import categorical_centroids
from shoal.noise.keyed import fresh_key
from shoal.partition import optimal
from shoal.partition.ranking import group_sizes
from shoal.progress import Progress
from shoal.release.engines.blobs import blobs_in, unpacked
from shoal.release.engines.look import Elsewhere, check_positions
from shoal.release.engines.order import Order
from shoal.release.engines.ranks import Ranges, Ranked, heavy_positions, lay_ranges
from shoal.release.engines.stages import Over, Runner, Stage
from shoal.release.engines.tasks import (
    Outgoing,
    counted,
    drawn_rows,
    from_ranges,
    heavy_rows,
    noisy_records,
    summed,
    to_ranges,
)
from shoal.release.protect import Preparation
from shoal.sensitivity.local import CALIBRATIONS, cluster_scales

if TYPE_CHECKING:
    from shoal.mechanisms.tree.boxes import Tree

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# rows of a run in which heavy positions are counted
_RUN = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Stages that end in blobs of released rows, and what is known of the release.

    Attributes:
        out: where its rows go.
        internal: private facts for the internal report.
        unchanged: columns that hold the records' own values.
        conditions: what was measured in words, where it follows from what was let out on the way.
    """

    over: Over
    stages: tuple[Stage, ...]
    out: Outgoing
    internal: dict[str, Any]
    unchanged: frozenset[str] = field(default_factory=frozenset)
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """A prepared release on an engine."""

    prepared: Preparation
    runner: Runner
    records: Elsewhere
    tell: Progress

    @property
    def described(self) -> Described:
        """Without who answers for the records: this goes to tasks."""
        return self.prepared.described.without_records()

    @property
    def over(self) -> Over:
        return Over(self.records.reading.columns)

    def source(self) -> Source:
        """What tasks draw from: children of a new key, or of the seed."""
        return self.prepared.source if self.prepared.source.reproducible else fresh_key()

    def outgoing(self, rows: int, source: Source, *, linked: bool = True) -> Outgoing:
        columns = 1 if linked else len(self.prepared.described.columns)
        return Outgoing(
            tuple(Order.drawn(rows, source.child("order of rows", number)) for number in range(columns))
        )

    def histograms(self) -> list[Histogram]:
        """Positions of all columns with their counts. Private."""
        described = self.prepared.described
        check_positions(described.lattices, described.n)
        return [self.records.histogram(name, described.lattices) for name in described.columns]

    def counts(self, what: str, count: Callable[[Described], Sequence[Integers]]) -> list[Integers]:
        """Tables of counts over all records. Private."""
        task = partial(counted, reading=self.records.reading, described=self.described, count=count)
        found: dict[int, Integers] = {}
        for _, part, blob in blobs_in(self.runner.collect(what, self.over, Stage(task, 1), Stage(summed))):
            found[part] = unpacked(blob)[0].astype(np.int64)
        return [found[part] for part in sorted(found)]

    def facts(self, **more: Any) -> dict[str, Any]:
        """Private facts: how many values were clipped, and what else is known."""
        described = self.prepared.described
        clipped = {}
        for name in described.columns:
            lattice = described.lattices[name]
            ends = float(lattice.lo), float(lattice.hi)
            clipped[name] = self.records.outside(described.attribute(name), *ends)[0]
        return {"values_clipped": clipped, **more}


def by_record(work: Work) -> Made:
    """`laplace`: noise on every record by itself."""
    prepared, source = work.prepared, work.source()
    described = work.described
    out = work.outgoing(work.runner.rows, source)
    task = partial(
        noisy_records,
        reading=work.records.reading,
        described=described,
        method=prepared.method,
        mechanism=prepared.mechanism,
        plan=prepared.plan,
        source=source.child("noise"),
        out=out,
    )
    n = prepared.described.n
    alone = {"columns": list(described.columns), "count": n, "smallest": 1, "largest": 1}
    return Made(work.over, (Stage(task, out.buckets),), out, work.facts(clusters=[alone]))


def by_rank(work: Work) -> Made:
    """`ranking-dp`, `optimal-dp` and the iDP methods: noise on the sums of clusters of ranks, column by column."""
    prepared = work.prepared
    method, described = prepared.method, prepared.described
    histograms = work.histograms()
    ranges = _ranges(work, histograms)
    given = []
    clusters, exact = [], {}
    for number, name in enumerate(described.columns):
        sizes = _sizes(work, name, histograms[number])
        ranked = Ranked.of(histograms[number], sizes)
        values, without = _cluster_values(work, name, ranked)
        given += ranges.given(number, sizes, values)
        exact.update({} if without is None else {name: without})
        clusters.append(
            {
                "columns": [name],
                "count": sizes.size,
                "smallest": int(sizes.min()),
                "largest": int(sizes.max()),
            }
        )
        work.tell("drawing noise", number + 1, len(described.columns))
    source = work.source()
    rows = work.runner.rows if method.link else described.n
    out = work.outgoing(rows, source, linked=method.link)
    route = partial(to_ranges, reading=work.records.reading, described=work.described, routes=ranges.routes)
    place = partial(from_ranges, starts=ranges.starts, out=out, by_rank=not method.link)
    stages = (Stage(route, ranges.buckets, tuple(given)), Stage(place, out.buckets))
    more = {"clusters_without_noise": exact} if exact else {}
    return Made(work.over, stages, out, work.facts(clusters=clusters, **more))


def _ranges(work: Work, histograms: Sequence[Histogram]) -> Ranges:
    columns = work.prepared.described.columns
    heavy = {
        name: found
        for name, histogram in zip(columns, histograms, strict=True)
        if (found := heavy_positions(histogram))
    }
    counts: dict[tuple[int, int], dict[int, int]] = {}
    if heavy:
        task = partial(
            heavy_rows,
            reading=work.records.reading,
            described=work.described,
            heavy=heavy,
            size=_RUN,
        )
        for _, part, blob in blobs_in(work.runner.collect("counting heavy values", work.over, Stage(task))):
            (position,), runs, many = unpacked(blob)
            mine = counts.setdefault((part, int(position)), {})
            for run, count in zip(runs.tolist(), many.tolist(), strict=True):
                mine[run] = mine.get(run, 0) + count
    sorted_counts = {
        key: (
            np.array(sorted(found), dtype=np.int64),
            np.array([found[run] for run in sorted(found)], dtype=np.int64),
        )
        for key, found in counts.items()
    }
    return lay_ranges(histograms, sorted_counts, _RUN)


def _sizes(work: Work, name: str, histogram: Histogram) -> Integers:
    """Sizes of the clusters of a column in order of rank."""
    method, described = work.prepared.method, work.prepared.described
    if method.partition != "optimal":
        return group_sizes(described.n, method.size, method.remainder)
    assert histogram.counts is not None
    # the best runs of values follow from how often each occurs
    ordered = np.repeat(histogram.positions, histogram.counts)
    share = work.prepared.plan.shares[name]
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


def by_tree(work: Work) -> Made:
    """`tree-dp`: cut points, counts and sums from histograms, one pass for the leaves, rows drawn in blocks."""
    prepared = work.prepared
    method, described, source = prepared.method, prepared.described, prepared.source
    known = settle_rows(method, described, source)
    measured: list[Intervals] = []
    for name, histogram in zip(described.columns, work.histograms(), strict=True):
        assert histogram.counts is not None
        positions, counts = histogram.positions, histogram.counts
        if name in described.flagged and work.records.missing_of(name):
            positions = np.append(positions, tree_points(described, name) - 1)
            counts = np.append(counts, work.records.missing_of(name))
        measured.append(measure_attribute(described, name, positions, counts, known, source))
        work.tell("cutting attributes", len(measured), len(described.columns))
    tree = grown(measured, known.layout)
    exact = np.zeros(tree.leaves, dtype=np.int64)
    if known.layout.leaves:
        (exact,) = work.counts("counting leaves", partial(_leaf_counts, tree=tree, measured=tuple(measured)))
    cells = noisy_leaves(tree, exact, measured, known.layout, float(known.rows), source)
    per_leaf = whole_counts(cells, known.rows)
    model = TreeModel(tuple(measured), tree, per_leaf, method.rebuild, method.generalise)
    blocks = blocks_of(per_leaf)
    own = work.source()
    draw = partial(_tree_block, model=model, described=work.described, blocks=blocks, source=own)
    return _drawn(work, draw, [block.size for block in blocks], own, known.rows)


def _leaf_counts(here: Described, tree: Tree, measured: Sequence[Intervals]) -> list[Integers]:
    codes = np.empty((len(here.columns), here.n), dtype=np.uint16)
    for number, (name, found) in enumerate(zip(here.columns, measured, strict=True)):
        codes[number] = codes_of(tree_positions(here, name)[0], found.edges, tree_points(here, name) - 1)
    return [leaves_of(tree, codes, measured)]


def _tree_block(
    number: int, model: TreeModel, described: Described, blocks: Sequence[Block], source: Source
) -> Mapping[str, Floats]:
    return draw_tree_values(model, described, blocks[number], number, source)


def _drawn(
    work: Work, draw: Callable[[int], Mapping[str, Floats]], sizes: Sequence[int], source: Source, rows: int
) -> Made:
    out = work.outgoing(rows, source)
    ends = np.cumsum(np.array(sizes, dtype=np.int64))
    task = partial(drawn_rows, draw=draw, starts=ends - np.array(sizes, dtype=np.int64), out=out)
    facts = work.facts(rows_released=rows, clusters=[])
    return Made(Over(count=len(sizes)), (Stage(task, out.buckets),), out, facts)


def by_pairs(work: Work) -> Made:
    """`pairs-dp`: attributes from histograms, one pass for the counts of all pairs of bins, rows drawn in blocks."""
    prepared = work.prepared
    method, described, source = prepared.method, prepared.described, prepared.source
    found = work.histograms()
    for name in described.flagged:
        # beside the values: present or missing
        missing = work.records.missing_of(name)
        flags = np.array([described.n - missing, missing], dtype=np.int64)
        found.append(Histogram(np.flatnonzero(flags), flags[flags > 0]))
    known = measure_attributes(method, described, found, source)
    count = partial(_pair_tables, known=known)
    tables = work.counts("counting pairs", count) if len(known.bins) > 1 else []
    products = tables.pop() if known.clipped is not None else None
    shaped = {
        (a, b): table.reshape(known.bins[a], known.bins[b])
        for (a, b), table in zip(_pairs(known), tables, strict=True)
    }
    counts = PairCounts([], known.bins, shaped)
    drawing = fitted(measure_counts(counts, products, known, described.n, source), known, source)
    sizes = block_sizes(known.rows)
    own = work.source()
    draw = partial(_pairs_block, drawing=drawing, described=work.described, source=own)
    return replace(_drawn(work, draw, sizes, own, known.rows), conditions=known.conditions)


def _pairs(known: Measured) -> list[tuple[int, int]]:
    number = len(known.bins)
    return [(a, b) for a in range(number) for b in range(a + 1, number)]


def _pair_tables(here: Described, known: Measured) -> list[Integers]:
    positions, _ = pair_positions(here)
    counts = PairCounts(pair_codes(known.marginals, positions, known.flags), known.bins)
    found = [counts.table(a, b) for a, b in _pairs(known)]
    if known.clipped is not None:
        found.append(exact_products(positions, known.clipped))
    return found


def _pairs_block(number: int, drawing: Drawing, described: Described, source: Source) -> Mapping[str, Floats]:
    return draw_pair_values(drawing, described, number, source)
