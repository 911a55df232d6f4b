"""Records in, MDAV cluster numbers out: fused scans over all remaining records, in threads where they pay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from shoal.partition import _kernels_brute as kernels
from shoal.partition.exact_sum import cutters, pieces_sum, rounded
from shoal.partition.reference import Progress

# A hand-over to a thread costs some 50 microseconds: below this many values per thread it does not pay.
VALUES_PER_THREAD = 500_000


class _Share:
    """The remaining records of one thread, every T-th of the table so that all shares shrink alike."""

    def __init__(self, columns: NDArray[np.float64], index: NDArray[np.int64], k: int) -> None:
        self.columns = columns
        self.index = index
        self.count = index.size
        self.heap = np.empty(k - 1)
        self.heap_index = np.empty(k - 1, dtype=np.int64)
        self.farthest = (-1.0, int(kernels.NO_INDEX))
        self.filled = 0

    def scan(self, point: NDArray[np.float64], nearest: bool) -> None:
        heap, heap_index = (self.heap, self.heap_index) if nearest else (self.heap[:0], self.heap_index[:0])
        best, best_index, self.filled = kernels.scan(
            self.columns, self.index, self.count, point, heap, heap_index
        )
        self.farthest = (best, best_index)


class _Remaining:
    """All shares together: searches run in every share, their findings are merged by (distance, index)."""

    def __init__(
        self,
        X: NDArray[np.float64],
        alive: NDArray[np.int64],
        k: int,
        shares: int,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self.X = X
        self.k = k
        self.count = alive.size
        self.pool = pool
        self.place = np.empty(X.shape[0], dtype=np.int64)
        self.owner = np.zeros(X.shape[0], dtype=np.int64)
        self.shares = []
        for number in range(shares):
            index = alive[number::shares].copy()
            self.place[index] = np.arange(index.size)
            self.owner[index] = number
            self.shares.append(_Share(np.ascontiguousarray(X[index].T), index, k))
        columns = np.ascontiguousarray(X.T)
        self.cut = cutters(columns)
        self.sums = pieces_sum(columns[:, alive], self.cut)

    def mean(self) -> NDArray[np.float64]:
        centre: NDArray[np.float64] = rounded(self.sums) / self.count
        return centre

    def _scan(self, point: NDArray[np.float64], nearest: bool) -> None:
        jobs = []
        if self.pool is not None:
            jobs = [self.pool.submit(share.scan, point, nearest) for share in self.shares[1:]]
        self.shares[0].scan(point, nearest)
        for job in jobs:
            job.result()

    def farthest(self, point: NDArray[np.float64]) -> int:
        self._scan(point, nearest=False)
        return self._farthest_found()

    def _farthest_found(self) -> int:
        return min((-distance, index) for distance, index in (share.farthest for share in self.shares))[1]

    def take_cluster(self, pole: int) -> tuple[NDArray[np.int64], int]:
        """Remove a pole and its k-1 nearest; returns them, and the record farthest from the pole before."""
        self._remove(np.array([pole]))
        self._scan(self.X[pole], nearest=True)
        index = np.concatenate([share.heap_index[: share.filled] for share in self.shares])
        if len(self.shares) > 1:
            distance = np.concatenate([share.heap[: share.filled] for share in self.shares])
            index = index[np.lexsort((index, distance))[: self.k - 1]]
        self._remove(index)
        return np.append(index, pole), self._farthest_found()

    def _remove(self, gone: NDArray[np.int64]) -> None:
        self.count -= gone.size
        for number, share in enumerate(self.shares):
            mine = gone[self.owner[gone] == number] if len(self.shares) > 1 else gone
            share.count = kernels.remove(
                share.columns, share.index, share.count, self.place, mine, self.cut, self.sums
            )


def mdav_brute(
    X: NDArray[np.float64],
    k: int,
    threads: int = 1,
    progress: Progress | None = None,
    labels: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Cluster number of each record, in order of creation.

    Args:
        X: records, shape (n, d).
        k: minimum cluster size.
        threads: upper limit; small tables use one. The result does not depend on it.
        progress: called with (records done, records in all) after every round.
        labels: continue a partition whose unassigned records are -1 (changed in place).
    """
    n, d = X.shape
    if labels is None:
        labels = np.full(n, -1, dtype=np.int64)
    alive = np.flatnonzero(labels < 0)
    cluster = int(labels.max()) + 1
    shares = max(1, min(threads, alive.size * d // VALUES_PER_THREAD))
    with ThreadPoolExecutor(shares - 1) if shares > 1 else nullcontext() as pool:
        remaining = _Remaining(X, alive, k, shares, pool)
        while remaining.count >= 3 * k:
            first = remaining.farthest(remaining.mean())
            members, second = remaining.take_cluster(first)
            labels[members] = cluster
            if labels[second] >= 0:  # all of the rest tie with the cluster: look again without it
                second = remaining.farthest(X[first])
            members, _ = remaining.take_cluster(second)
            labels[members] = cluster + 1
            cluster += 2
            if progress is not None:
                progress(n - remaining.count, n)
        if remaining.count >= 2 * k:
            members, _ = remaining.take_cluster(remaining.farthest(remaining.mean()))
            labels[members] = cluster
            cluster += 1
    labels[labels < 0] = cluster
    if progress is not None:
        progress(n, n)
    return labels
