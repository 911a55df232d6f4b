"""One attribute counted value by value. In: its positions, few in number. Out: the same as from cut points.

Where a domain is small, its values are intervals that nobody needs to look for: the attribute's whole share is spent
on one noisy count for each, and cut points are read off the noisy counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.tree.counts import nearest_counts
from shoal.mechanisms.tree.gate import noisy
from shoal.mechanisms.tree.intervals import Floats, Integers, Intervals, codes_of
from shoal.mechanisms.tree.layout import Layout
from shoal.mechanisms.tree.spending import Purse


def measure_values(
    positions: Integers, points: int, total: float, layout: Layout, purse: Purse
) -> tuple[Intervals, NDArray[np.uint16]]:
    """Spend one attribute's share on a count of each of its `points` values.

    Returns:
        The intervals, and for every record the number of its interval (private).

    Guarantee:
        A replaced record changes two counts by one, an added one one: noise of scale 2/share (1/share when adding)
        costs the share. Counts and edges are functions of the noisy counts.

    Cost:
        One pass over the positions.

    Reference:
        docs/proofs/tree.md, section 3.
    """
    exact = np.bincount(positions, minlength=points).astype(np.int64)
    found = values_of(exact, total, layout, purse)
    return found, codes_of(positions, found.edges, points - 1)


def values_of(exact: Integers, total: float, layout: Layout, purse: Purse) -> Intervals:
    """`measure_values` of the exact count of each value."""
    points = exact.size
    spend = purse.spend(purse.purposes.values, layout.attribute, over="values")
    counts = nearest_counts(noisy(exact, layout.moved, spend), total)
    gap = layout.gap > 0
    cuts = len(layout.cuts) + gap
    edges = halved(counts, len(layout.cuts), [0, *([points - 1] if gap else []), points])
    running = np.concatenate(([0.0], np.cumsum(counts)))
    by_level = [np.diff(running[edges[:: 1 << (cuts - level)]]) for level in range(cuts + 1)]
    return Intervals(edges, by_level, None, None, points=counts, gap=gap)


def halved(counts: Floats, cuts: int, first: Sequence[int]) -> Integers:
    """Edges of intervals of the values; every level cuts every interval where its counts are nearest to halves.

    An interval of one value stays whole: its second half is empty. `first` are the edges before the first level.

    >>> halved(np.array([8.0, 1.0, 1.0]), 2, [0, 3]).tolist()
    [0, 1, 1, 2, 3]
    """
    running = np.concatenate(([0.0], np.cumsum(counts)))
    edges = np.array(first, dtype=np.int64)
    for _ in range(cuts):
        refined = np.empty(2 * edges.size - 1, dtype=np.int64)
        refined[::2] = edges
        for place, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            inner = running[low + 1 : high]
            middle = (running[low] + running[high]) / 2
            refined[2 * place + 1] = low + 1 + int(np.argmin(np.abs(inner - middle))) if inner.size else high
        edges = refined
    return edges
