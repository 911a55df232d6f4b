"""MDAV on large tables: exact searches in a tree of boxes, or multithreaded scans."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from shoal.partition import _kernels as kernels
from shoal.partition._kernels import NO_INDEX
from shoal.partition._kernels_tree import (
    Scratch,
    SearchTree,
    Shell,
    Task,
    fill,
    live_rows,
    order_rows,
    rounds,
)
from shoal.partition._kernels_vector import FAN, LEAF
from shoal.partition.base import Progress, cutters, pieces_sum, rounded

# The tree is rebuilt when this part of its records remains.
REBUILD_AT = 3
# A tree of so few records is not rebuilt: its searches cost less than the building.
SMALLEST_REBUILD = 2048
# Work per lane that is independent of the number of attributes, in attributes.
SEARCH_OVERHEAD = 4
# Number of clusters before the work so far is compared with that of scanning.
FIRST_COMPARISON = 64
# Seconds between returns to Python, where interrupts are handled and progress is reported.
BREATH = 0.2
# Handing work to a thread costs some 50 microseconds: not worth it below this many values per thread.
VALUES_PER_THREAD = 500_000


def _empty_tree(records: int, place: NDArray[np.int64], reference: NDArray[np.float64]) -> SearchTree:
    """Empty leaves and groups for a number of records."""
    d = reference.size
    leaves = -(-records // (LEAF * FAN)) * FAN
    widths = [leaves // FAN]
    while widths[-1] > 1:
        widths.append(-(-widths[-1] // FAN))
    groups = sum(widths)
    child = np.empty(groups, dtype=np.int64)
    parent = np.full(groups, -1, dtype=np.int64)
    offset = below = 0
    for level, width in enumerate(widths):
        child[offset : offset + width] = below + FAN * np.arange(width)
        if level > 0:
            parent[below:offset] = offset + np.arange(offset - below) // FAN
        below, offset = offset, offset + width
    return SearchTree(
        values=np.zeros((leaves, d + 1, LEAF)),
        record=np.zeros((leaves, LEAF), dtype=np.int64),
        live=np.zeros(leaves, dtype=np.int64),
        low=np.full((groups, d + 1, FAN), np.inf),
        high=np.full((groups, d + 1, FAN), -np.inf),
        least=np.full((groups, FAN), NO_INDEX, dtype=np.int64),
        child=child,
        parent=parent,
        place=place,
        reference=reference,
        leaf_stamp=np.zeros(leaves, dtype=np.int64),
        group_stamp=np.zeros(groups, dtype=np.int64),
    )


def _scratch() -> Scratch:
    depth = 16 * FAN
    return Scratch(
        distances=np.zeros(LEAF),
        bounds=np.zeros(FAN),
        stack_bound=np.zeros(depth),
        stack_node=np.zeros(depth, dtype=np.int64),
        work=np.zeros(2, dtype=np.int64),
    )


def _task(X: NDArray[np.float64], k: int) -> Task:
    n, d = X.shape
    columns = np.ascontiguousarray(X.T)
    cut = cutters(columns)
    return Task(
        X=X,
        labels=np.full(n, -1, dtype=np.int64),
        cut=cut,
        sums=pieces_sum(columns, cut),
        centre=np.zeros(d),
        heap=np.zeros(k - 1),
        members=np.zeros(k, dtype=np.int64),
        leaves=np.zeros(k, dtype=np.int64),
        queue=np.zeros(16 * k, dtype=np.int64),
        key=np.zeros((n, 1)),
        key_index=np.zeros(n, dtype=np.int64),
    )


def _empty_shell(n: int, d: int) -> Shell:
    capacity = max(64, n // 16)
    shell = Shell(
        values=np.zeros((capacity, d)),
        radius=np.zeros(capacity),
        record=np.zeros(capacity, dtype=np.int64),
        centre=np.zeros(d),
        state=np.zeros(4, dtype=np.int64),
    )
    shell.state[2] = 2 * n  # made with more records than now: due for rebuilding
    return shell


def mdav_tree(
    X: NDArray[np.float64], k: int, progress: Progress | None = None, scan_threads: int | None = None
) -> NDArray[np.int64]:
    """Cluster number of each record, in order of creation.

    Args:
        X: records, shape (n, d).
        k: minimum cluster size.
        progress: called with (records done, total) several times a second.
        scan_threads: allow switching to scanning, with so many threads, if the tree does more work than that.
    """
    n, d = X.shape
    X = np.ascontiguousarray(X)
    task = _task(X, k)
    sums, labels = task.sums, task.labels
    cluster, alive = 0, n
    rows, index = X.copy(), np.arange(n)
    place = np.zeros(n, dtype=np.int64)
    shell, scratch = _empty_shell(n, d), _scratch()
    limit = 16
    scanning = 0.0
    while alive >= 2 * k:
        order_rows(rows[:alive], index[:alive], LEAF)
        tree = _empty_tree(alive, place, rounded(sums) / alive)
        fill(tree, rows[:alive], index[:alive])
        least = alive // REBUILD_AT if alive > SMALLEST_REBUILD else 0
        while alive >= max(least, 2 * k):
            started, alive_before, clusters_before = time.perf_counter(), alive, cluster
            cluster, alive = rounds(tree, scratch, shell, task, cluster, alive, least, limit)
            limit = max(1, min(2 * limit, int(limit * BREATH / (time.perf_counter() - started))))
            if progress is not None:
                progress(n - alive, n)
            scanning += 0.75 * (cluster - clusters_before) * (alive_before + alive) * (d + 2)
            if (
                scan_threads is not None
                and cluster >= FIRST_COMPARISON
                and _search_work(scratch, d) > scanning
            ):
                return mdav_brute(X, k, scan_threads, progress, labels)
        live_rows(tree, rows, index)
    labels[labels < 0] = cluster
    if progress is not None:
        progress(n, n)
    return labels


def _search_work(scratch: Scratch, d: int) -> float:
    """Lanes times attributes processed so far: counted, not timed, so that the choice does not depend on load."""
    leaves, groups = scratch.work.tolist()
    return float((leaves * LEAF + groups * FAN * 2) * (d + SEARCH_OVERHEAD))


class _Share:
    """The remaining records of one thread, every T-th of the table so that all shares shrink equally."""

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


class _RemainingShares:
    """All shares together: searches run in every share, results are merged by (distance, index)."""

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
        """Remove a pole and its k-1 nearest; returns them, and the record previously farthest from the pole."""
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
        progress: called with (records done, total) after every round.
        labels: continue a partition whose unassigned records are -1 (changed in place).
    """
    n, d = X.shape
    if labels is None:
        labels = np.full(n, -1, dtype=np.int64)
    alive = np.flatnonzero(labels < 0)
    cluster = int(labels.max()) + 1
    shares = max(1, min(threads, alive.size * d // VALUES_PER_THREAD))
    with ThreadPoolExecutor(shares - 1) if shares > 1 else nullcontext() as pool:
        remaining = _RemainingShares(X, alive, k, shares, pool)
        while remaining.count >= 3 * k:
            first = remaining.farthest(remaining.mean())
            members, second = remaining.take_cluster(first)
            labels[members] = cluster
            if labels[second] >= 0:  # all of the rest tie with the cluster: search again without it
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
