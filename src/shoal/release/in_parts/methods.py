"""Methods on engines: aggregates come in, the stages that make a release leave. What is drawn once is drawn here.

Every plan draws from the same source, in the same order, as the method does in memory: with a seed the noise is the
same. What tasks draw comes from children of a key that is made for one release and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.engines.runner import Over, Stage
from shoal.mechanisms.pairs.measure_one import Histogram
from shoal.mechanisms.pairs.measure_pairs import PairCounts
from shoal.mechanisms.pairs.mechanism import measure_attributes, pair_positions
from shoal.mechanisms.pairs.method import PairsDP
from shoal.mechanisms.pairs.model import Counted, Measured, counted, measure_pairs
from shoal.mechanisms.pairs.sample import Drawing, block_sizes, fitted, with_triples
from shoal.mechanisms.pairs.sample import draw_values as draw_pair_values
from shoal.mechanisms.tree.intervals import Intervals, codes_of, whole_counts
from shoal.mechanisms.tree.mechanism import Model as TreeModel
from shoal.mechanisms.tree.mechanism import draw_values as draw_tree_values
from shoal.mechanisms.tree.mechanism import (
    grown,
    leaves_of,
    measure_attribute,
    noisy_leaves,
    settle_rows,
    tree_points,
    tree_positions,
)
from shoal.mechanisms.tree.method import TreeDP
from shoal.mechanisms.tree.sample import Block, blocks_of
from shoal.noise import Source
from shoal.release.in_parts.rank_methods import by_moments, by_rank, by_swap
from shoal.release.in_parts.tasks import drawn_rows, noisy_records
from shoal.release.in_parts.work import Made, Work

if TYPE_CHECKING:
    from shoal.mechanisms.tree.sample import Tree


__all__ = ["Made", "Work", "by_moments", "by_pairs", "by_rank", "by_record", "by_swap", "by_tree"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_record(work: Work) -> Made:
    """`laplace`: noise on every record by itself."""
    prepared, source = work.prepared, work.source()
    described = work.described
    # which batch a record is in follows from its place in the table
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
    return Made(work.over, (Stage(task, out.buckets),), out, work.facts(clusters=[alone]))


def by_tree(work: Work) -> Made:
    """`tree-dp`: cut points, counts and sums from histograms, one pass for the leaves, rows drawn in blocks."""
    prepared = work.prepared
    method, described, account = cast("TreeDP", prepared.method), prepared.described, prepared.account()
    known = settle_rows(method, described, account)
    measured: list[Intervals] = []
    for name, histogram in zip(described.columns, work.histograms(), strict=True):
        assert histogram.counts is not None
        positions, counts = histogram.positions, histogram.counts
        if name in described.flagged and work.records.missing_of(name):
            positions = np.append(positions, tree_points(described, name) - 1)
            counts = np.append(counts, work.records.missing_of(name))
        measured.append(measure_attribute(described, name, positions, counts, known, account))
        work.tell("cutting attributes", len(measured), len(described.columns))
    tree = grown(measured, known.layout)
    exact = np.zeros(tree.leaves, dtype=np.int64)
    if known.layout.leaves:
        (exact,) = work.counts("counting leaves", partial(_leaf_counts, tree=tree, measured=tuple(measured)))
    cells = noisy_leaves(tree, exact, measured, known, account)
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
    method, described, account = cast("PairsDP", prepared.method), prepared.described, prepared.account()
    found = work.histograms()
    for name in described.flagged:
        # beside the values: present or missing
        missing = work.records.missing_of(name)
        flags = np.array([described.n - missing, missing], dtype=np.int64)
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
    sums = Counted(PairCounts([], known.bins, shaped), products, triples)
    model = measure_pairs(sums, known, described.n, account)
    made = fitted(model, known, account.free("a model of pairs"))
    drawing = with_triples(made, model, known, sums, account)
    sizes = block_sizes(known.rows)
    own = work.source()
    draw = partial(_pairs_block, drawing=drawing, described=work.described, source=own)
    return replace(_drawn(work, draw, sizes, own, known.rows), conditions=known.conditions)


def _pairs(known: Measured) -> list[tuple[int, int]]:
    number = len(known.bins)
    return [(a, b) for a in range(number) for b in range(a + 1, number)]


def _pair_tables(here: Described, known: Measured) -> list[Integers]:
    positions, _ = pair_positions(here)
    sums = counted(positions, known)
    found = [sums.counts.table(a, b) for a, b in _pairs(known)]
    return [*found, *(part for part in (sums.products, sums.triples) if part is not None)]


def _pairs_block(number: int, drawing: Drawing, described: Described, source: Source) -> Mapping[str, Floats]:
    return draw_pair_values(drawing, described, number, source)
