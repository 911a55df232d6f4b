"""Records in, MDAV cluster numbers out: exact searches in a tree of boxes that shrinks with the records."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from shoal.partition._kernels_brute import NO_INDEX
from shoal.partition._kernels_build import Shell, fill, live_rows, order_rows
from shoal.partition._kernels_rounds import Task, rounds
from shoal.partition._kernels_tree import Scratch, Tree
from shoal.partition._kernels_vector import FAN, LEAF
from shoal.partition.exact_sum import cutters, pieces_sum, rounded
from shoal.partition.reference import Progress

# The tree is rebuilt when this part of its records remains.
REBUILD_AT = 3
# A tree of so few records is not rebuilt: its searches cost less than the building.
SMALLEST_REBUILD = 2048
# Work per lane that does not grow with the number of attributes, in attributes.
SEARCH_OVERHEAD = 4
# Clusters made before the work done so far is compared with that of scanning.
FIRST_COMPARISON = 64
# Seconds between two returns to Python, where an interrupt is noticed and progress reported.
BREATH = 0.2


def _empty_tree(records: int, place: NDArray[np.int64], reference: NDArray[np.float64]) -> Tree:
    """Leaves and groups for a number of records, all empty."""
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
    return Tree(
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
    shell.state[2] = 2 * n  # made when there were more records: due to be made anew
    return shell


def mdav_tree(
    X: NDArray[np.float64], k: int, progress: Progress | None = None, scan_threads: int | None = None
) -> NDArray[np.int64]:
    """Cluster number of each record, in order of creation.

    Args:
        X: records, shape (n, d).
        k: minimum cluster size.
        progress: called with (records done, records in all) several times a second.
        scan_threads: allow going over to scanning, with so many threads, when the tree does more work than that.
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
                from shoal.partition.brute import mdav_brute

                return mdav_brute(X, k, scan_threads, progress, labels)
        live_rows(tree, rows, index)
    labels[labels < 0] = cluster
    if progress is not None:
        progress(n, n)
    return labels


def _search_work(scratch: Scratch, d: int) -> float:
    """Lanes times attributes looked at so far: counted, not timed, so that a busy machine chooses alike."""
    leaves, groups = scratch.work.tolist()
    return float((leaves * LEAF + groups * FAN * 2) * (d + SEARCH_OVERHEAD))
