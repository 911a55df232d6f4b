"""Record linkage: the share of released rows that an intruder links to their original records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.learning import Interval, wilson
from shoal.evaluation.pair import Column, Nominal, Ordered
from shoal.numbers import Integers
from shoal.partition import row_groups

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


# Distances closer than the rounding of their coordinates are treated as equal.
TIE_ULPS = 8.0
# The tree works on shifted coordinates; its own rounding stays within a few times the tie width.
TREE_SLACK = 4.0
# An exact search from a point far from all records visits most of the tree; an approximate neighbour is found at once
# and already decides nearly every row of a noisy table. So: approximate first, exact for what remains.
APPROXIMATIONS = (20.0, 4.0, 1.0)
THREADS_FROM = 20_000
TIES_AT_ONCE = 4096
# row-record comparisons that take a few seconds; beyond that, rows are sampled
MOST_COMPARISONS = 400_000_000
LEAST_ROWS = 1_000
# entries of the distance tables in memory at a time
_TABLE_ENTRIES = 4_000_000
# the choice of rows is not secret, and repeated calls should return the same number
_SAMPLE_SEED = 20170901


@dataclass(frozen=True, slots=True)
class Linkage:
    """Share of records that an intruder who holds the original table links correctly.

    Attributes:
        percent: record linkage RL, 0 to 100.
        interval: 95% Wilson interval of `percent`.
        chance: percentage that random guessing links, 100/n.
        records: number n of records compared.
        rows: number of rows linked: n, or fewer where a sample was taken.
    """

    percent: float
    interval: Interval
    chance: float
    records: int
    rows: int


def record_linkage(
    original: NDArray[np.float64], released: NDArray[np.float64], widths: NDArray[np.float64]
) -> Linkage:
    """Record linkage by an intruder who holds the original records and links each row to the nearest.

    RL = 100/n Σ Pr(x'_i); Pr(x'_i) = 1/|G| when the record x_i that row i came from is in the set G of
    originals nearest to x'_i, and 0 otherwise. Distance: every attribute divided by its public width.

    Cost:
        O(n log n) in few attributes, more in many: a tree over distinct originals, searched once for each
        distinct released row. Memory O(n).

    Reference:
        thesis, section 6.4.2 and Eq. 6.7.

    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> record_linkage(x, np.array([[0.5], [0.5], [10.5], [10.5]]), np.array([20.0])).percent
    50.0
    """
    credits = linkage_credits(original, released, widths)
    n = credits.size
    mean = float(credits.mean())
    low, high = wilson(mean, n)
    return Linkage(100.0 * mean, (100.0 * low, 100.0 * high), 100.0 / n, n, n)


def linkage_credits(
    original: NDArray[np.float64], released: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """1/|G| for each row whose own record is among the nearest originals G, else 0.

    Attributes of width 0 contribute no distance and are ignored.

    >>> x = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    >>> linkage_credits(x, x, np.array([5.0, 5.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    n = original.shape[0]
    if n == 0 or released.shape != original.shape:
        raise ValueError("record linkage compares two tables of the same shape with at least one row.")
    used = widths > 0
    if not used.any():
        return np.full(n, 1.0 / n)
    widths = widths[used]
    # columns contiguous: distances are summed attribute by attribute
    X = np.asfortranarray(original[:, used])
    Y = np.asfortranarray(released[:, used])
    own = distances(X, Y, widths)
    slack = tie_width(X, Y, widths)
    search = _Search.over(X, widths)
    query_of = row_groups(Y.T).labels

    alive = np.arange(n)
    for approximation in APPROXIMATIONS:
        # one strictly closer original decides a row, however it was found
        first, position = _distinct(query_of[alive])
        closest = search.some_near(Y[alive[first]], approximation)
        alive = alive[own[alive] <= closest[position] + slack[alive]]
    first, position = _distinct(query_of[alive])
    reach, tied = search.nearest_sets(Y[alive[first]], slack[alive[first]])
    hit = own[alive] <= reach[position]
    credits = np.zeros(n)
    credits[alive[hit]] = 1.0 / tied[position[hit]]
    return credits


def distances(
    a: NDArray[np.float64], b: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Eq. 6.7 between paired rows, always summed in the order of the attributes."""
    total = np.zeros(max(a.shape[0], b.shape[0]))
    for j, width in enumerate(widths):
        step = (a[:, j] - b[:, j]) / width
        total += step * step
    return np.sqrt(total)


def tie_width(
    original: NDArray[np.float64], released: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much two distances from a released row may differ by rounding alone."""
    size = np.zeros(released.shape[0])
    for j, width in enumerate(widths):
        size += np.maximum(np.abs(released[:, j]), np.abs(original[:, j]).max()) / width
    return TIE_ULPS * np.finfo(np.float64).eps * size


def _distinct(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One position of each distinct label, and the index of its distinct label for every entry."""
    _, first, position = np.unique(labels, return_index=True, return_inverse=True)
    return first.astype(np.int64), position.astype(np.int64)


def _workers(rows: int) -> int:
    return -1 if rows >= THREADS_FROM else 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Nearest-neighbour search over the distinct original records.

    Attributes:
        records: distinct records; `weights` says how many of each there are.
        centre: shift of the tree's coordinates, so that a large offset costs no precision.
    """

    tree: cKDTree
    records: NDArray[np.float64]
    weights: NDArray[np.int64]
    centre: NDArray[np.float64]
    widths: NDArray[np.float64]

    @classmethod
    def over(cls, original: NDArray[np.float64], widths: NDArray[np.float64]) -> _Search:
        from scipy.spatial import cKDTree

        groups = row_groups(original.T)
        records = original[groups.first]
        centre = records.mean(axis=0)
        # cells split in their middle stay compact where amounts are skewed: half the time of median splits for far rows
        tree = cKDTree((records - centre) / widths, leafsize=32, balanced_tree=False)
        return cls(tree, records, groups.sizes, centre, widths)

    def some_near(self, points: NDArray[np.float64], approximation: float) -> NDArray[np.float64]:
        """Distance to some record at most 1 + approximation times as far as the nearest."""
        scaled = (points - self.centre) / self.widths
        _, found = self.tree.query(scaled, eps=approximation, workers=_workers(len(points)))
        return distances(points, self.records[found], self.widths)

    def nearest_sets(
        self, points: NDArray[np.float64], slack: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """For each point the largest distance that counts as nearest, and |G|, the records within it."""
        scaled = (points - self.centre) / self.widths
        workers = _workers(len(points))
        near, found = self.tree.query(scaled, workers=workers)
        reach = distances(points, self.records[found], self.widths) + slack
        tied = self.weights[found]
        # counting what is equally near is far cheaper than asking for the second nearest when that one is far
        wide = near + TREE_SLACK * slack
        around = self.tree.query_ball_point(scaled, wide, workers=workers, return_length=True)
        doubtful = np.flatnonzero(around > 1)
        for start in range(0, doubtful.size, TIES_AT_ONCE):
            rows = doubtful[start : start + TIES_AT_ONCE]
            balls = self.tree.query_ball_point(scaled[rows], wide[rows])
            counts = np.fromiter((len(ball) for ball in balls), dtype=np.int64, count=rows.size)
            members = np.concatenate([np.asarray(ball, dtype=np.int64) for ball in balls])
            starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
            gaps = distances(np.repeat(points[rows], counts, axis=0), self.records[members], self.widths)
            reach[rows] = np.minimum.reduceat(gaps, starts) + slack[rows]
            inside = np.where(gaps <= np.repeat(reach[rows], counts), self.weights[members], 0)
            tied[rows] = np.add.reduceat(inside, starts)
        return reach, tied


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """The distinct original records, one per line.

    Attributes:
        codes: place of each record's value among `values`, per nominal attribute.
        values: the distinct original codes of each nominal attribute.
        numbers: numeric attributes divided by their widths.
        weights: how many records each distinct one stands for.
        of_row: the distinct record that each row came from.
    """

    codes: NDArray[np.int32]
    values: list[Integers]
    numbers: NDArray[np.float64]
    weights: Integers
    of_row: Integers


def mixed_linkage(columns: Sequence[Column], comparisons: int = MOST_COMPARISONS) -> Linkage | None:
    """Record linkage over mixed attributes by an intruder who holds the original records.

    The distance is that of Eq. 6.7: every attribute's difference, numeric or semantic, divided by the width of its
    domain, and then Euclidean. Rows with a missing number are left out; a missing nominal value is a separate value.
    None if no row is left.

    Args:
        columns: with matching rows.
        comparisons: limit on row-record comparisons; beyond it, a random sample of rows is linked.

    Cost:
        At most rows linked times distinct records; a row is decided by the first record that is nearer than its own.

    Reference:
        The thesis, section 6.4.2 and Eq. 6.7.

    >>> job = Nominal("job", np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0, 0, 1]), size=2)
    >>> round(mixed_linkage([job]).percent, 4)
    50.0
    """
    nominal = [column for column in columns if isinstance(column, Nominal) and column.width > 0]
    ordered = [column for column in columns if isinstance(column, Ordered) and column.width > 0]
    complete = np.ones(columns[0].before.size, dtype=bool)
    for column in columns:
        if isinstance(column, Ordered):
            complete &= ~np.isnan(column.before) & ~np.isnan(column.after)
    rows = np.flatnonzero(complete)
    if rows.size == 0:
        return None
    # attributes with many values separate most records: the scan tests them first
    nominal.sort(key=lambda column: -np.count_nonzero(np.bincount(column.before + 1)))
    if not nominal and not ordered:
        credits = np.full(rows.size, 1.0 / rows.size)
    else:
        records = _records(nominal, ordered, rows)
        picked = _sample(rows.size, records.weights.size, comparisons)
        credits = _credits(nominal, ordered, rows, picked, records)
    mean = float(credits.mean())
    low, high = wilson(mean, credits.size)
    return Linkage(100.0 * mean, (100.0 * low, 100.0 * high), 100.0 / rows.size, rows.size, credits.size)


def _records(nominal: Sequence[Nominal], ordered: Sequence[Ordered], rows: Integers) -> _Records:
    coded = [np.unique(column.before[rows], return_inverse=True) for column in nominal]
    numbers = [column.before[rows] for column in ordered]
    groups = row_groups([*(codes.astype(np.int64) for _, codes in coded), *numbers])
    # adjacent records in the file are often alike: a random order finds a nearer record sooner
    order = np.random.default_rng(_SAMPLE_SEED).permutation(groups.first.size)
    first = groups.first[order]
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return _Records(
        codes=_side_by_side([codes[first] for _, codes in coded], first.size).astype(np.int32),
        values=[values for values, _ in coded],
        numbers=_side_by_side(
            [values[first] / column.width for values, column in zip(numbers, ordered, strict=True)],
            first.size,
        ),
        weights=groups.sizes[order],
        of_row=place[groups.labels],
    )


def _sample(rows: int, records: int, comparisons: int) -> Integers:
    """All rows, or a random sample as large as the limit on comparisons allows."""
    most = max(LEAST_ROWS, comparisons // records)
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(_SAMPLE_SEED).choice(rows, most, replace=False)).astype(np.int64)


def _credits(
    nominal: Sequence[Nominal],
    ordered: Sequence[Ordered],
    rows: Integers,
    picked: Integers,
    records: _Records,
) -> NDArray[np.float64]:
    from shoal.evaluation._kernels import scan

    chosen = rows[picked]
    slack = np.full(chosen.size, TIE_ULPS * np.finfo(np.float64).eps * len(nominal))
    ours = _side_by_side([column.after[chosen] / column.width for column in ordered], chosen.size)
    slack += tie_width(records.numbers, ours, np.ones(len(ordered)))
    longest = max((values.size for values in records.values), default=1)
    at_once = max(1, _TABLE_ENTRIES // longest)
    parts: list[NDArray[np.float64]] = []
    for start in range(0, chosen.size, at_once):
        block = slice(start, start + at_once)
        lines: list[Integers] = []
        tables: list[NDArray[np.float64]] = []
        begin = 0
        for column, values in zip(nominal, records.values, strict=True):
            found, line = np.unique(column.after[chosen[block]], return_inverse=True)
            gaps = column.distances(found[:, np.newaxis], values) / column.width
            lines.append(begin + line.astype(np.int64) * values.size)
            tables.append((gaps * gaps).ravel())
            begin += gaps.size
        parts.append(
            scan(
                np.concatenate(tables) if tables else np.empty(0),
                _side_by_side(lines, ours[block].shape[0]).astype(np.int64),
                records.codes,
                ours[block],
                records.numbers,
                records.weights,
                records.of_row[picked[block]],
                slack[block],
            )
        )
    return np.concatenate(parts)


def _side_by_side(columns: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
    """One line per row, contiguous; also for no columns."""
    return np.column_stack(columns) if columns else np.empty((rows, 0))
