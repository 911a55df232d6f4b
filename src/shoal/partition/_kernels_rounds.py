"""A tree of the remaining records in, MDAV rounds carried out on it: the labels grow in place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.display import internal
from shoal.partition._kernels_brute import NO_INDEX
from shoal.partition._kernels_build import Shell, build_shell
from shoal.partition._kernels_cache import cached
from shoal.partition._kernels_tree import Scratch, Tree, close_boxes, delete, farthest, nearest
from shoal.partition._kernels_vector import SLACK, borrowed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@internal()
class Task(NamedTuple):
    """The table, what has been done to it, and working memory."""

    X: Floats  # (n, d)
    labels: Integers  # (n,): -1 for the remaining records
    cut: Floats  # (d, pieces): see `exact_sum`
    sums: Floats  # (d, pieces): of the remaining records
    centre: Floats  # (d,)
    heap: Floats  # (k - 1,)
    members: Integers  # (k,)
    leaves: Integers  # (k,)
    queue: Integers  # (16 k,)
    key: Floats  # (n, 1)
    key_index: Integers  # (n,)


@njit(nogil=True)
def mean(sums: Floats, count: int, out: Floats) -> None:
    """Mean of the remaining records: the operations of `exact_sum.rounded`, then one division."""
    last = sums.shape[1] - 1
    for j in range(sums.shape[0]):
        total, rest = sums[j, last], 0.0
        for piece in range(last - 1, -1, -1):
            lead = sums[j, piece]
            new = lead + total
            part = new - lead
            rest = ((lead - (new - part)) + (total - part)) + rest
            total = new
        out[j] = (total + rest) / count


@njit(nogil=True)
def outermost(shell: Shell, labels: Integers, centre: Floats) -> int:
    """The record farthest from the centre if the shell can tell, else -1.

    A record whose distance from the shell's own centre is r lies within r + drift of the present one.
    """
    values, radius, record, origin, state = shell
    drift = 0.0
    for j in range(centre.size):
        drift += (centre[j] - origin[j]) * (centre[j] - origin[j])
    drift = np.sqrt(drift)
    best, best_index = -1.0, NO_INDEX
    while state[0] < state[1] and labels[record[state[0]]] >= 0:
        state[0] += 1
    for t in range(state[0], state[1]):
        limit = radius[t] + drift
        if limit * limit * (1.0 + SLACK) < best:
            return best_index
        if labels[record[t]] >= 0:
            continue
        total = 0.0
        for j in range(centre.size):
            total += (values[t, j] - centre[j]) * (values[t, j] - centre[j])
        if total > best or (total == best and record[t] < best_index):
            best, best_index = total, record[t]
    return best_index if state[3] == 1 else -1


@njit(nogil=True)
def farthest_from_mean(tree: Tree, scratch: Scratch, shell: Shell, task: Task, alive: int) -> int:
    """The live record farthest from the centre, from the shell if possible and from the tree otherwise."""
    centre = task.centre
    mean(task.sums, alive, centre)
    found = outermost(shell, task.labels, centre)
    if found >= 0:
        return found
    # A shell that fails soon after it was made (all records tie) is not worth another one.
    if shell.state[2] - alive > alive // 64:
        build_shell(tree, shell, centre, alive, task.key, task.key_index)
        found = outermost(shell, task.labels, centre)
        if found >= 0:
            return found
    return farthest(tree, scratch, centre)


@njit(nogil=True)
def take_cluster(tree: Tree, scratch: Scratch, task: Task, pole: int, cluster: int) -> None:
    """Remove a pole and its nearest records from the tree and give them a cluster number."""
    X, labels, cut, sums, _, heap, members, leaves, queue, _, _ = task
    members[0] = pole
    delete(tree, members[:1], cut, sums, leaves[:1])
    nearest(tree, scratch, X[pole], heap, members[1:])
    delete(tree, members[1:], cut, sums, leaves[1:])
    for t in range(members.size):
        labels[members[t]] = cluster
    close_boxes(tree, leaves, queue, cluster + 1)


@cached
def rounds(
    owned_tree: Tree,
    owned_scratch: Scratch,
    owned_shell: Shell,
    owned_task: Task,
    cluster: int,
    alive: int,
    least: int,
    limit: int,
) -> tuple[int, int]:
    """Carry out up to `limit` rounds while at least `least` records remain; returns (cluster, alive)."""
    tree, scratch = borrowed(owned_tree), borrowed(owned_scratch)
    shell, task = borrowed(owned_shell), borrowed(owned_task)
    k = task.members.size
    for _ in range(limit):
        if alive < max(least, 2 * k):
            break
        pole = farthest_from_mean(tree, scratch, shell, task, alive)
        take_cluster(tree, scratch, task, pole, cluster)
        cluster += 1
        alive -= k
        if alive >= 2 * k:
            pole = farthest(tree, scratch, task.X[pole])
            take_cluster(tree, scratch, task, pole, cluster)
            cluster += 1
            alive -= k
    return cluster, alive
