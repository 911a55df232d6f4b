"""Draw rows from a private partition tree: its boxes, and positions inside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.tree.intervals import CutIntervals
from shoal.noise import Source
from shoal.numbers import Floats, Integers
from shoal.taxonomy import Taxonomy


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class DrawnTree:
    """The shape of a tree.

    Attributes:
        attributes: for each level, the attribute that each of its nodes halves.
        fractions: for each level, the left child's share of its node if attributes were independent.
        halved: number of halvings of each leaf's box in each attribute, shape (leaves, attributes).
        place: index of that interval among the 2^halved ones of the attribute, same shape.
    """

    attributes: tuple[Integers, ...]
    fractions: tuple[NDArray[np.float64], ...]
    halved: Integers
    place: Integers

    @property
    def leaves(self) -> int:
        return len(self.halved)


def grow(edges: Sequence[Integers], counts: Sequence[Sequence[NDArray[np.float64]]], depth: int) -> DrawnTree:
    """A tree of `depth` levels; every node halves the attribute in which its box is largest.

    Size combines width and records: the geometric mean of the box's share of the domain and its interval's share of
    the noisy counts. Ties go to the first attribute.

    Args:
        edges: the 2^cuts + 1 edges of each attribute, where `cuts` is the maximum number of its halvings.
        counts: interval counts of each attribute, for each number of halvings from 0 to its `cuts`.
        depth: at most the sum of all cuts.
    """
    number = len(edges)
    halved = np.zeros((1, number), dtype=np.int64)
    place = np.zeros((1, number), dtype=np.int64)
    cuts = np.array([len(of_attribute) - 1 for of_attribute in counts])
    nodes_of = (2 << int(cuts.max())) - 1
    sizes, shares = np.full((number, nodes_of), -1.0), np.full((number, nodes_of), 0.5)
    for j in range(number):
        all_own = (2 << int(cuts[j])) - 1
        sizes[j, :all_own], shares[j, :all_own] = (
            _sizes(edges[j], counts[j], int(cuts[j])),
            _left_shares(counts[j]),
        )
    attributes, fractions = [], []
    for _ in range(depth):
        columns = np.arange(number)
        # nodes of an attribute's own tree are numbered level by level: 2^halved - 1 + place
        own = (1 << halved) - 1 + place
        size = np.where(halved < cuts, sizes[columns, own], -1.0)
        chosen = size.argmax(axis=1)
        nodes = np.arange(len(chosen))
        attributes.append(chosen)
        fractions.append(shares[chosen, own[nodes, chosen]])
        halved, place = np.repeat(halved, 2, axis=0), np.repeat(place, 2, axis=0)
        child, split = np.arange(2 * len(chosen)), np.repeat(chosen, 2)
        place[child, split] = 2 * place[child, split] + child % 2
        halved[child, split] += 1
    return DrawnTree(tuple(attributes), tuple(fractions), halved, place)


def sort_into(tree: DrawnTree, codes: NDArray[np.integer[Any]], cuts: Sequence[int]) -> Integers:
    """The leaf of every record. `codes` has one row per attribute: the index of the record's interval."""
    levels = np.asarray(cuts, dtype=np.int64)
    number = codes.shape[1]
    records = np.arange(number)
    node = np.zeros(number, dtype=np.int64)
    halved = np.zeros((1, len(codes)), dtype=np.int64)
    for chosen in tree.attributes:
        attribute = chosen[node]
        used = halved[np.arange(len(chosen)), chosen][node]
        node = 2 * node + (codes[attribute, records].astype(np.int64) >> (levels[attribute] - 1 - used) & 1)
        halved = np.repeat(halved, 2, axis=0)
        halved[np.arange(len(halved)), np.repeat(chosen, 2)] += 1
    return node


def _sizes(edges: Integers, counts: Sequence[NDArray[np.float64]], cuts: int) -> NDArray[np.float64]:
    """Size of every node of an attribute's own tree that can be halved, level by level."""
    # noise larger than every count can leave none at all
    width, total = float(edges[-1] - edges[0]), max(float(counts[0][0]), 1e-9)
    found = []
    for level in range(cuts):
        positions = np.diff(edges[:: 1 << (cuts - level)])
        # small floors keep the order of nodes that are empty in one respect
        size = np.sqrt(np.maximum(positions / width, 1e-9) * np.maximum(counts[level] / total, 1e-9))
        # a node of one position has no halves: used only if nothing else is left
        found.append(np.where(positions > 1, size, 0.0))
    return np.concatenate([*found, np.full(1 << cuts, -1.0)])


def _left_shares(counts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    found = []
    for above, below in pairwise(counts):
        found.append(np.divide(below[::2], above, out=np.full(above.size, 0.5), where=above > 1e-9))
    return np.concatenate([*found, np.full(counts[-1].size, 0.5)])


# Number of rows drawn at once; a larger leaf is drawn as several even samples of its rows.
BLOCK = 1 << 16


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Rows drawn at once: all rows of some leaves, or one of several even samples of a large leaf.

    Attributes:
        leaves: indices of the leaves.
        rows: number of rows of each in this block.
        all_rows: total number of rows of each.
        first, step: which rows: the first, and then every so many.
    """

    leaves: Integers
    rows: Integers
    all_rows: Integers
    first: int = 0
    step: int = 1

    @property
    def size(self) -> int:
        return int(self.rows.sum())


def blocks_of(rows: Integers, largest: int = BLOCK) -> list[RowBlock]:
    """The blocks of a table with the given number of rows in each leaf.

    >>> [(block.leaves.tolist(), block.rows.tolist(), block.first) for block in blocks_of(np.array([2, 3, 0, 9]), 5)]
    [([0, 1], [2, 3], 0), ([3], [5], 0), ([3], [4], 1)]
    """
    found: list[RowBlock] = []
    together: list[int] = []
    filled = 0
    sizes = rows.tolist()

    def close() -> None:
        if together:
            leaves = np.array(together, dtype=np.int64)
            found.append(RowBlock(leaves, rows[leaves], rows[leaves]))
            together.clear()

    for leaf, size in enumerate(sizes):
        if filled + size > largest or size > largest:
            close()
            filled = 0
        if size > largest:
            step = -(-size // largest)
            own = np.array([leaf], dtype=np.int64)
            parts = [len(range(first, size, step)) for first in range(step)]
            found += [
                RowBlock(own, np.array([part], dtype=np.int64), rows[own], first, step)
                for first, part in enumerate(parts)
            ]
        elif size:
            together.append(leaf)
            filled += size
    close()
    return found


def draw_positions(
    number: int, intervals: CutIntervals, tree: DrawnTree, rows: Integers, rebuild: str, source: Source
) -> Floats:
    """Positions of attribute `number` for all rows, leaf after leaf."""
    leaves = np.arange(rows.size)
    return draw_block(number, intervals, tree, RowBlock(leaves, rows, rows), rebuild, source)


def draw_block(
    number: int, intervals: CutIntervals, tree: DrawnTree, block: RowBlock, rebuild: str, source: Source
) -> Floats:
    """Positions of attribute `number` for the rows of a block, leaf by leaf.

    The rows of a leaf are spread evenly over the intervals inside its box, in proportion to their counts, and in
    random order; inside an interval they are placed by `rebuild`. If single positions were counted, the rows are spread
    over these.
    """
    cuts = len(intervals.counts) - 1
    span = 1 << (cuts - tree.halved[:, number])
    first = tree.place[:, number] * span
    counts = intervals.counts[-1]
    if intervals.points is not None:
        counts = intervals.points
        low, high = intervals.edges[first], intervals.edges[first + span]
        # a box without positions gets rows only by rounding, and then the adjacent position: a value, or that of
        # missing
        # values in their own half
        last = counts.size - 1 - (first < 1 << (cuts - 1) if intervals.gap else 0)
        first, span = np.minimum(low, last), np.maximum(high - low, 1)
    leaf = np.repeat(block.leaves, block.rows)
    level = _even(block, source)
    interval, level = _interval_of(level, first[leaf], span[leaf], counts)
    positions = np.empty(leaf.size)
    placed = interval if intervals.points is not None else _place(level, interval, intervals, rebuild)
    positions[_order(leaf, tree.leaves, source)] = placed
    return positions


def _even(block: RowBlock, source: Source) -> Floats:
    """For each leaf with r rows, one number in each r-th part of [0, 1), in increasing order."""
    rows, total = block.rows, block.size
    rank = block.first + block.step * (np.arange(total) - np.repeat(np.cumsum(rows) - rows, rows))
    jitter = (source.words(total) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (rank + jitter) / np.repeat(block.all_rows, rows)


def _order(leaf: Integers, leaves: int, source: Source) -> Integers:
    """All rows, leaf by leaf, in random order inside each leaf."""
    order = source.permutation(leaf.size)
    # a stable sort keeps the random order inside a leaf
    kind = np.uint16 if leaves <= 1 << 16 else np.int64
    return order[np.argsort(leaf[order].astype(kind), kind="stable")]


def _interval_of(level: Floats, first: Integers, span: Integers, counts: Floats) -> tuple[Integers, Floats]:
    """The interval at each level of the box's own distribution, and the level inside that interval."""
    running = np.concatenate(([0.0], np.cumsum(counts)))
    start, mass = running[first], running[first + span] - running[first]
    target = start + level * mass
    interval = np.searchsorted(running, target, side="right") - 1
    interval = np.clip(interval, first, first + span - 1)
    inside = np.divide(
        target - running[interval], counts[interval], out=level.copy(), where=counts[interval] > 1e-12
    )
    # a box with rows although its intervals have no counts: all of them equally
    bare = mass <= 1e-9
    if bare.any():
        spread = level[bare] * span[bare]
        steps = np.minimum(spread.astype(np.int64), span[bare] - 1)
        interval[bare], inside[bare] = first[bare] + steps, spread - steps
    return interval, np.clip(inside, 0.0, 1.0)


def _place(level: Floats, interval: Integers, intervals: CutIntervals, rebuild: str) -> Floats:
    low, high = intervals.lows[interval], intervals.highs[interval]
    if intervals.means is None:
        # names within an interval are interchangeable
        return np.minimum(np.floor(low + level * (high - low + 1)), high)
    mean = intervals.means[interval]
    if rebuild == "centroid":
        return mean
    # a lattice point includes half a step on either side, so that rounding treats all points of an interval equally
    if rebuild == "uniform":
        reach = np.minimum(mean - low, high - mean) + 0.5
        drawn = mean + (2 * level - 1) * reach
    else:
        from scipy.special import ndtri

        assert intervals.deviations is not None
        drawn = mean + intervals.deviations[interval] * ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return np.clip(np.rint(drawn), low, high)


def draw_concepts(
    positions: Floats, intervals: CutIntervals, taxonomy: Taxonomy, *, generalise: bool
) -> Floats:
    """Concepts for drawn positions: indices in the order of the taxonomy, where the values of a group are neighbours.

    With `generalise` a position that represents its interval becomes the smallest group containing the interval.
    """
    domain = np.asarray(taxonomy.domain, dtype=np.int64)
    places = positions.astype(np.int64)
    if not generalise or intervals.points is not None:
        return domain[places].astype(np.float64)
    first, last = domain[intervals.lows], domain[intervals.highs]
    groups = taxonomy.shape.lines[first, taxonomy.shape.common(first, last) - 1]
    interval = np.searchsorted(intervals.edges[1:-1], places, side="right")
    found: Floats = groups[interval].astype(np.float64)
    return found
