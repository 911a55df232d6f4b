"""One attribute's intervals. In: its positions and what each level may spend. Out: edges, noisy counts, noisy means.

This module and `cuts.py` are where the budget of single attributes is spent; the rest is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.tree.counts import Level, consistent_counts
from shoal.mechanisms.tree.cuts import draw_edges
from shoal.mechanisms.tree.gate import noisy
from shoal.mechanisms.tree.layout import Layout
from shoal.noise import Source

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Squares are measured in this many parts of the largest possible one, so that their sums fit into 64 bits.
_SQUARE_PARTS = 1 << 20
# How far a cut near the median may miss the half of the records besides the noise of the cut itself (ties do that).
_TIES = 0.02
# Standard deviation of an interval's mean around its centre, in widths, if nothing is known.
_CENTRED = 0.15
# A table from position to interval is quicker than a search, as long as it stays small.
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """What is known about one attribute once its budget is spent.

    Attributes:
        edges: interval i holds the positions edges[i] .. edges[i+1] - 1 (none at all if the edges are equal).
        counts: consistent counts for each number of halvings, the last for the intervals themselves.
        means: mean position of each interval; None where positions are only names.
        deviations: standard deviation of each interval; None unless it was paid for.
        points: consistent counts of the single positions, where these were counted.
    """

    edges: Integers
    counts: list[Floats]
    means: Floats | None
    deviations: Floats | None
    points: Floats | None = None

    @property
    def lows(self) -> Integers:
        """First position of each interval; an empty one stands for the position beside it, inside the domain."""
        return ends_of(self.edges)[0]

    @property
    def highs(self) -> Integers:
        """Last position of each interval."""
        return ends_of(self.edges)[1]


def ends_of(edges: Integers) -> tuple[Integers, Integers]:
    """First and last positions of the intervals; those of an empty one are the position where it would be.

    Behind the last position there is none, so an empty interval at the end stands for the last one.

    >>> [ends.tolist() for ends in ends_of(np.array([0, 3, 3, 5, 5]))]
    [[0, 3, 3, 4], [2, 3, 4, 4]]
    """
    lows = np.minimum(edges[:-1], edges[-1] - 1)
    return lows, np.maximum(edges[1:] - 1, lows)


def measure_intervals(
    positions: Integers, steps: int, total: float, layout: Layout, source: Source
) -> tuple[Intervals, NDArray[np.uint16]]:
    """Spend one attribute's share: cut points, then counts and sums of the intervals between them.

    Returns:
        The intervals, and for every record the number of its interval (private).

    Guarantee:
        Level by level: cut points cost their share by `draw_cut`; given the edges, a record is in one interval,
        so counts cost their share with noise of scale 2/share (1/share when adding), and sums of 2·position -
        low - high, at most the interval's width in size, theirs with noise of 2·width/share (width/share when
        adding), whatever the width of each interval. Adaptive composition adds the shares up.

    Cost:
        One sort of the positions and one pass per level.

    Reference:
        docs/proofs/tree.md, sections 2 to 4.
    """
    ordered = np.sort(positions)
    edges = draw_edges(ordered, steps, layout.cut_rates, source)
    places = np.searchsorted(ordered, edges)
    exact = np.diff(places).astype(np.int64)
    levels = []
    for level, (share, rate) in enumerate(zip(layout.intervals, layout.cut_rates, strict=True)):
        scale = layout.count_scale(share)
        counts = exact.reshape(2 << level, -1).sum(axis=1)
        # a cut misses the median by about 1/rate records
        doubt = _TIES + float(1 / rate) / max(total / 2**level, 1.0)
        levels.append(
            Level(noisy(counts, scale, source), 2 * float(scale) ** 2, np.full(1 << level, 0.5), doubt)
        )
    counts_by_level = _without_empty(consistent_counts(total, levels), edges)
    codes = codes_of(positions, edges, steps)
    if not layout.means:
        return Intervals(edges, counts_by_level, None, None), codes
    lows, highs = ends_of(edges)
    # whole sums, exact also where an intermediate result wraps around
    sums, ends = _sums(ordered, places), (lows + highs).astype(np.int64)
    twice = 2 * sums - exact * ends
    widths = highs - lows
    scales = [layout.sum_scale(int(width), layout.means) for width in widths]
    weights = np.maximum(counts_by_level[-1], 1.0)
    offsets = noisy(twice, scales, source) / (2 * weights)
    spreads = np.array([float(scale) for scale in scales]) / (np.sqrt(2) * weights)
    means = steadied(offsets, spreads, edges) + (lows + highs) / 2
    means = np.clip(means, lows, highs)
    deviations = None
    if layout.squares:
        deviations = _deviations(ordered, places, lows, highs, means, weights, layout, source)
    return Intervals(edges, counts_by_level, means, deviations), codes


def _sums(values: Integers, places: NDArray[np.intp]) -> Integers:
    """Exact sums of the runs between consecutive places."""
    running = np.concatenate(([0], np.cumsum(values)))
    return np.diff(running[places])


def codes_of(positions: Integers, edges: Integers, steps: int) -> NDArray[np.uint16]:
    """The number of each record's interval."""
    inner = edges[1:-1]
    if steps > _LARGEST_TABLE or steps > 4 * positions.size:
        return np.searchsorted(inner, positions, side="right").astype(np.uint16)
    table = np.searchsorted(inner, np.arange(steps + 1), side="right").astype(np.uint16)
    return table[positions]


def _without_empty(counts: list[Floats], edges: Integers) -> list[Floats]:
    """Nothing lies in an interval without positions: its sibling has all that the parent has."""
    cuts = len(counts) - 1
    found = counts[:1]
    for level in range(1, cuts + 1):
        empty = np.diff(edges[:: 1 << (cuts - level)]) == 0
        before, parent = counts[level].reshape(-1, 2), found[-1]
        above = before.sum(axis=1)
        share = np.divide(before[:, 0], above, out=np.full(above.size, 0.5), where=above > 0)
        share = np.where(empty[1::2], 1.0, np.where(empty[::2], 0.0, share))
        found.append(np.column_stack((share * parent, (1 - share) * parent)).ravel())
    return found


def steadied(offsets: Floats, spreads: Floats, edges: Integers) -> Floats:
    """Offsets of the means from the centres, weighted against what is likely if their noise is large.

    Inside, the mean is near the centre. The first and the last interval reach to the ends of the domain and are
    mostly empty: their mean is likely as far from the nearest cut as the neighbouring interval is wide.
    """
    widths = np.maximum(np.diff(edges) - 1, 0).astype(np.float64)
    likely, doubt = np.zeros(widths.size), _CENTRED * widths
    filled = np.flatnonzero(np.diff(edges) > 0)
    if filled.size == 1:
        return offsets
    for outer, neighbour, side in ((filled[0], filled[1], 1), (filled[-1], filled[-2], -1)):
        reach = min(widths[outer] / 2, widths[neighbour] + 1)
        likely[outer] = side * (widths[outer] / 2 - reach)
        doubt[outer] = min(doubt[outer], reach)
    prior, noise = doubt**2, spreads**2
    trust = np.divide(prior, prior + noise, out=np.zeros_like(prior), where=prior > 0)
    steadied: Floats = trust * offsets + (1 - trust) * likely
    return steadied


def _deviations(
    ordered: Integers,
    places: NDArray[np.intp],
    lows: Integers,
    highs: Integers,
    means: Floats,
    weights: Floats,
    layout: Layout,
    source: Source,
) -> Floats:
    """Noisy standard deviations from sums of squares around the centres, in 2^20 parts of the largest square."""
    half = np.maximum((highs - lows) / 2, 0.5)
    centres = (lows + highs) / 2
    codes = np.repeat(np.arange(lows.size), np.diff(places))
    parts = np.rint(((ordered - centres[codes]) / half[codes]) ** 2 * _SQUARE_PARTS).astype(np.int64)
    # centred: a term is at most half the range in size, whatever rounding did
    bound = _SQUARE_PARTS // 2
    parts = np.clip(parts, 0, _SQUARE_PARTS) - bound
    sums = noisy(_sums(parts, places), layout.sum_scale(bound, layout.squares), source)
    squares = (sums / weights + bound) / _SQUARE_PARTS * half**2
    deviations: Floats = np.sqrt(np.clip(squares - (means - centres) ** 2, 0, half**2))
    return deviations
