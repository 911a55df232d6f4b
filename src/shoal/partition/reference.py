"""MDAV in numpy with exact column sums: the reference for all compiled kernels.

Each value is split into a few pieces, every piece a multiple of a power of two so coarse that n of them add up without
rounding. Sums of pieces are then exact in any order, so a centroid is the same in every algorithm, on any number of
threads, and for any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# 4 pieces hold 4 * (52 - log2 n) bits: at n = 1e6 exact for values that span 22 orders of magnitude.
PIECES = 4
Progress = Callable[[int, int], None]


def cutters(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The constants M, shape (d, PIECES), such that (x + M) - M is the leading piece of x.

    Args:
        columns: values, shape (d, n): the largest set of records that will ever be summed.
    """
    d, n = columns.shape
    headroom = int(n).bit_length() + 1
    result = np.zeros((d, PIECES))
    for j in range(d):
        exponent = int(np.frexp(np.abs(columns[j]).max())[1])
        for piece in range(PIECES):
            result[j, piece] = np.ldexp(1.5, exponent + headroom)
            exponent += headroom - 52
    return result


def pieces_sum(columns: NDArray[np.float64], cut: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums of the pieces of each column, shape (d, PIECES)."""
    result = np.zeros(cut.shape)
    for j in range(columns.shape[0]):
        rest = columns[j]
        for piece in range(PIECES):
            lead = (rest + cut[j, piece]) - cut[j, piece]
            result[j, piece] = lead.sum()
            rest = rest - lead
    return result


def rounded(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the pieces of each column, rounded once to a double.

    >>> column = np.array([[1e16, 1.0, -1e16]])
    >>> rounded(pieces_sum(column, cutters(column))).tolist()
    [1.0]
    """
    total = sums[:, PIECES - 1]
    rest = np.zeros(sums.shape[0])
    for piece in range(PIECES - 2, -1, -1):
        lead = sums[:, piece]
        new = lead + total
        part = new - lead
        rest = ((lead - (new - part)) + (total - part)) + rest
        total = new
    result: NDArray[np.float64] = total + rest
    return result


def squared_distances(columns: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """(x0-p0)^2 + (x1-p1)^2 + ..., added in this order: every kernel must give the same bits."""
    total: NDArray[np.float64] = columns[0] - point[0]
    total *= total
    for j in range(1, columns.shape[0]):
        difference = columns[j] - point[j]
        difference *= difference
        total += difference
    return total


class _RemainingByIndex:
    """The records not yet in a cluster, in index order; removed ones are marked, then compacted away."""

    def __init__(self, columns: NDArray[np.float64]) -> None:
        self.columns = columns
        self.index = np.arange(columns.shape[1])
        self.dead = np.zeros(columns.shape[1], dtype=bool)
        self.count = columns.shape[1]
        self.cut = cutters(columns)
        self.sums = pieces_sum(columns, self.cut)

    def mean(self) -> NDArray[np.float64]:
        centre: NDArray[np.float64] = rounded(self.sums) / self.count
        return centre

    def farthest(self, point: NDArray[np.float64]) -> int:
        """Position of the record farthest from a point; argmax breaks ties by lowest index."""
        distances = squared_distances(self.columns, point)
        distances[self.dead] = -1.0
        return int(np.argmax(distances))

    def take_cluster(self, pole: int, k: int) -> NDArray[np.int64]:
        """Remove a pole and its k-1 nearest by (distance, index); returns their positions."""
        distances = squared_distances(self.columns, self.columns[:, pole])
        distances[self.dead] = np.inf
        distances[pole] = -1.0
        limit = np.partition(distances, k - 1)[k - 1]
        inside = np.flatnonzero(distances < limit)
        tied = np.flatnonzero(distances == limit)[: k - inside.size]
        members = np.concatenate([inside, tied])
        self.sums -= pieces_sum(self.columns[:, members], self.cut)
        self.dead[members] = True
        self.count -= k
        return members

    def sweep(self) -> None:
        """Drop removed records once they are an eighth: scanning them costs more than copying the rest."""
        if 8 * self.count < 7 * self.index.size:
            alive = ~self.dead
            self.columns = np.ascontiguousarray(self.columns[:, alive])
            self.index = self.index[alive]
            self.dead = np.zeros(self.count, dtype=bool)


def mdav_numpy(X: NDArray[np.float64], k: int, progress: Progress | None = None) -> NDArray[np.int64]:
    """Cluster number of each record, in order of creation."""
    n = X.shape[0]
    labels = np.empty(n, dtype=np.int64)
    remaining = _RemainingByIndex(np.ascontiguousarray(X.T))
    cluster = 0

    def cut_off(pole: int) -> None:
        nonlocal cluster
        labels[remaining.index[remaining.take_cluster(pole, k)]] = cluster
        cluster += 1

    while remaining.count >= 3 * k:
        first = remaining.farthest(remaining.mean())
        cut_off(first)
        cut_off(remaining.farthest(remaining.columns[:, first]))
        remaining.sweep()
        if progress is not None:
            progress(n - remaining.count, n)
    if remaining.count >= 2 * k:
        cut_off(remaining.farthest(remaining.mean()))
    labels[remaining.index[~remaining.dead]] = cluster
    if progress is not None:
        progress(n, n)
    return labels
