"""Swapping among neighbours in rank on engines: counts of positions come in, stages that change owners leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from shoal.columns.describe import Described
from shoal.mechanisms.kanonymity.columns import KINDS, confidential_columns, place_in_tree
from shoal.mechanisms.kanonymity.methods import SwapRanking
from shoal.mechanisms.kanonymity.swap_algorithms import swap_source, swapped_ranks
from shoal.noise import Source
from shoal.partition.rank_groups import group_sizes
from shoal.release.engines.blobs import Blob, batch_of, by_bucket
from shoal.release.engines.neighbours import (
    GIVEN,
    STAYING,
    Neighbours,
    lay_neighbours,
    owned,
    to_neighbours,
)
from shoal.release.engines.ranks import RANGE, heavy_positions
from shoal.release.engines.stages import Stage
from shoal.release.engines.tasks import Outgoing
from shoal.release.engines.work import Made, Work, cluster_facts

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_swap(work: Work) -> Made:
    """`swap-ranking`: confidential values change owners inside groups of ranks, the others stay."""
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
    routes: dict[str, Neighbours] = {}
    given: list[Blob] = []
    clusters = []
    first = 0
    for number, name in enumerate(names):
        sizes = group_sizes(described.n, least.get(name, method.size), method.remainder)
        place = described.columns.index(name)
        own = {position: found for (column, position), found in cut.items() if column == place}
        keys = _keys(described, name)
        # a block of ranks that is drawn together is never cut: a range has whole ones
        routes[name] = lay_neighbours(number, first, rows, histograms[name], sizes, keys, own)
        given += routes[name].given(sizes)
        clusters.append(cluster_facts(name, sizes))
        first += routes[name].buckets
    source = work.source()
    out = work.outgoing(rows, source)
    staying = tuple(name for name in described.columns if name not in names)
    send = partial(
        to_neighbours,
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
        # told apart as in memory, where a table without strata is one class
        source=source.child("class", 0),
        out=out,
    )
    buckets = first + (-(-rows // RANGE) if staying else 0)
    stages = (Stage(send, buckets, tuple(given)), Stage(place_rows, out.buckets))
    return Made(work.over, stages, out, work.facts(clusters=clusters), frozenset(described.columns))


def _on_lattice(described: Described, name: str) -> bool:
    """Whether records of one position have one value, so that their rows alone settle who is first."""
    attribute = described.attribute(name)
    if not attribute.kind_facts.measured:
        return True
    return described.table.is_integer(name) and described.lattices[name].step == 1


def _keys(described: Described, name: str) -> Integers | None:
    """The order of names, which is that of their taxonomy."""
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
    routes: Mapping[str, Neighbours],
    staying: Sequence[str],
    source: Source,
    out: Outgoing,
) -> Iterator[pa.RecordBatch]:
    """Values change owners inside groups of ranks.

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
