"""A tree of boxes over the remaining records in, nearest and farthest records out, by branch and bound.

Leaves hold LEAF records attribute by attribute; a group holds the boxes of FAN children the same way, so that
one pass of vector instructions bounds all children at once. Bounds use the operations of the exact distance in
the same order; rounding is monotone, so they hold to the last bit and equality can be decided by record index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.partition._kernels_brute import NO_INDEX, offer
from shoal.partition._kernels_vector import (
    FAN,
    LEAF,
    distances_beyond,
    distances_within,
    far_bounds,
    lowest_bit,
    near_bounds,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tree(NamedTuple):
    """Everything the searches read; all arrays are changed in place when records leave."""

    values: Floats  # (leaves, d, LEAF)
    radius: Floats  # (leaves, LEAF): distance to the reference point
    record: Integers  # (leaves, LEAF): record numbers
    live: Integers  # (leaves,): number of live records, which are the first ones
    low: Floats  # (groups, d, FAN): boxes of the children; low > high where a child is empty
    high: Floats
    reach: Floats  # (groups, FAN): largest radius of each child
    least: Integers  # (groups, FAN): smallest record number of each child
    child: Integers  # (groups,): number of the first child
    parent: Integers  # (groups,): -1 for the root
    place: Integers  # (n,): leaf * LEAF + slot of each live record
    reference: Floats  # (d,)
    leaf_stamp: Integers  # (leaves,): the last cluster that made the box be fitted
    group_stamp: Integers  # (groups,)


class Scratch(NamedTuple):
    """Working memory of one search."""

    distances: Floats  # (LEAF,)
    bounds: Floats  # (FAN,)
    stack_bound: Floats
    stack_node: Integers  # groups as themselves, leaves as -1 - leaf
    work: Integers  # (2,): leaves scanned, groups bounded


@njit(cache=True, nogil=True)
def smallest_record(tree: Tree, node: int) -> int:
    """The smallest record number below a node of the stack."""
    if node < 0:
        return int(tree.least[(-1 - node) // FAN, (-1 - node) % FAN])
    group = tree.parent[node]
    return int(tree.least[group, node - tree.child[group]]) if group >= 0 else 0


@njit(cache=True, nogil=True)
def nearest(tree: Tree, scratch: Scratch, point: Floats, heap: Floats, heap_index: Integers) -> None:
    """Fill the heap with the records nearest to a point, equal distances by lowest index."""
    want = heap.size
    if want == 0:
        return
    filled = 0
    worst, worst_index = np.inf, NO_INDEX
    distances, bounds = scratch.distances, scratch.bounds
    stack_bound, stack_node = scratch.stack_bound, scratch.stack_node
    leaf_groups = tree.values.shape[0] // FAN
    stack_bound[0], stack_node[0] = 0.0, tree.child.size - 1
    top = 1
    while top > 0:
        top -= 1
        node = stack_node[top]
        if stack_bound[top] >= worst and (
            stack_bound[top] > worst or smallest_record(tree, node) > worst_index
        ):
            continue
        if node < 0:
            leaf = -1 - node
            scratch.work[0] += 1
            hits = distances_within(tree.values[leaf], point, worst, distances)
            hits &= (1 << tree.live[leaf]) - 1
            index = tree.record[leaf]
            while hits != 0:
                i = lowest_bit(hits)
                hits &= hits - 1
                t = distances[i]
                if t < worst or (t == worst and index[i] < worst_index):
                    offer(heap, heap_index, filled, t, index[i])
                    filled = min(filled + 1, want)
                    if filled == want:
                        worst, worst_index = heap[0], heap_index[0]
            continue
        scratch.work[1] += 1
        hits = near_bounds(tree.low[node], tree.high[node], point, worst, bounds)
        base = top
        first = -1 - tree.child[node] if node < leaf_groups else tree.child[node]
        step = -1 if node < leaf_groups else 1
        while hits != 0:
            c = lowest_bit(hits)
            hits &= hits - 1
            t = bounds[c]
            if t < worst or tree.least[node, c] < worst_index:
                at = top
                while at > base and stack_bound[at - 1] < t:
                    stack_bound[at] = stack_bound[at - 1]
                    stack_node[at] = stack_node[at - 1]
                    at -= 1
                stack_bound[at] = t
                stack_node[at] = first + step * c
                top += 1


@njit(cache=True, nogil=True)
def farthest(tree: Tree, scratch: Scratch, point: Floats) -> int:
    """The record farthest from a point, equal distances by lowest index."""
    best, best_index = -1.0, NO_INDEX
    distances, bounds = scratch.distances, scratch.bounds
    stack_bound, stack_node = scratch.stack_bound, scratch.stack_node
    leaf_groups = tree.values.shape[0] // FAN
    stack_bound[0], stack_node[0] = np.inf, tree.child.size - 1
    top = 1
    while top > 0:
        top -= 1
        node = stack_node[top]
        if stack_bound[top] <= best and (stack_bound[top] < best or smallest_record(tree, node) > best_index):
            continue
        if node < 0:
            leaf = -1 - node
            scratch.work[0] += 1
            hits = distances_beyond(tree.values[leaf], point, best, distances)
            hits &= (1 << tree.live[leaf]) - 1
            index = tree.record[leaf]
            while hits != 0:
                i = lowest_bit(hits)
                hits &= hits - 1
                t = distances[i]
                if t > best or (t == best and index[i] < best_index):
                    best, best_index = t, index[i]
            continue
        scratch.work[1] += 1
        hits = far_bounds(
            tree.low[node], tree.high[node], tree.reach[node], point, tree.reference, best, bounds
        )
        base = top
        first = -1 - tree.child[node] if node < leaf_groups else tree.child[node]
        step = -1 if node < leaf_groups else 1
        while hits != 0:
            c = lowest_bit(hits)
            hits &= hits - 1
            t = bounds[c]
            least = tree.least[node, c]
            if least < NO_INDEX and (t > best or least < best_index):
                at = top
                while at > base and stack_bound[at - 1] > t:
                    stack_bound[at] = stack_bound[at - 1]
                    stack_node[at] = stack_node[at - 1]
                    at -= 1
                stack_bound[at] = t
                stack_node[at] = first + step * c
                top += 1
    return best_index


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def close_leaf(tree: Tree, leaf: int) -> bool:
    """Fit the box of a leaf to its live records; says whether anything changed."""
    group, slot = leaf // FAN, leaf % FAN
    m = tree.live[leaf]
    changed = False
    for j in range(tree.values.shape[1]):
        row = tree.values[leaf, j, :m]
        low, high = np.inf, -np.inf
        for i in range(m):
            low = min(low, row[i])
            high = max(high, row[i])
        if low != tree.low[group, j, slot] or high != tree.high[group, j, slot]:
            tree.low[group, j, slot] = low
            tree.high[group, j, slot] = high
            changed = True
    reach = 0.0
    least = NO_INDEX
    radius, index = tree.radius[leaf, :m], tree.record[leaf, :m]
    for i in range(m):
        reach = max(reach, radius[i])
        least = min(least, index[i])
    if reach != tree.reach[group, slot] or least != tree.least[group, slot]:
        tree.reach[group, slot] = reach
        tree.least[group, slot] = least
        changed = True
    return changed


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def close_group(tree: Tree, node: int, group: int, slot: int) -> bool:
    """Fit the box that a parent keeps of a group to the boxes inside it; says whether anything changed."""
    changed = False
    for j in range(tree.values.shape[1]):
        row_low, row_high = tree.low[node, j], tree.high[node, j]
        low, high = np.inf, -np.inf
        for c in range(row_low.size):
            low = min(low, row_low[c])
            high = max(high, row_high[c])
        if low != tree.low[group, j, slot] or high != tree.high[group, j, slot]:
            tree.low[group, j, slot] = low
            tree.high[group, j, slot] = high
            changed = True
    reach = 0.0
    least = NO_INDEX
    row_reach, row_least = tree.reach[node], tree.least[node]
    for c in range(row_reach.size):
        reach = max(reach, row_reach[c])
        least = min(least, row_least[c])
    if reach != tree.reach[group, slot] or least != tree.least[group, slot]:
        tree.reach[group, slot] = reach
        tree.least[group, slot] = least
        changed = True
    return changed


@njit(cache=True, nogil=True)
def delete(tree: Tree, record: int, cut: Floats, sums: Floats) -> int:
    """Take one record out of its leaf and of the sums, boxes left as they are; returns the leaf."""
    leaf, slot = tree.place[record] // LEAF, tree.place[record] % LEAF
    last = tree.live[leaf] - 1
    block = tree.values[leaf]
    for j in range(block.shape[0]):
        rest = block[j, slot]
        for piece in range(cut.shape[1]):
            lead = (rest + cut[j, piece]) - cut[j, piece]
            sums[j, piece] -= lead
            rest -= lead
        block[j, slot] = block[j, last]
    moved = tree.record[leaf, last]
    tree.record[leaf, slot] = moved
    tree.radius[leaf, slot] = tree.radius[leaf, last]
    tree.place[moved] = leaf * LEAF + slot
    tree.live[leaf] = last
    return int(leaf)


@njit(cache=True, nogil=True)
def close_boxes(tree: Tree, leaves: Integers, queue: Integers, stamp: int) -> None:
    """Fit boxes upward from changed leaves, stopping where a box did not change.

    Args:
        tree: the tree.
        leaves: where records left; may repeat.
        queue: working memory.
        stamp: a number not used before, to fit each box once.
    """
    size = 0
    for leaf in leaves:
        if tree.leaf_stamp[leaf] != stamp:
            tree.leaf_stamp[leaf] = stamp
            group = leaf // FAN
            if close_leaf(tree, leaf) and tree.group_stamp[group] != stamp:
                tree.group_stamp[group] = stamp
                queue[size] = group
                size += 1
    at = 0
    while at < size:
        node = queue[at]
        at += 1
        group = tree.parent[node]
        if group >= 0:
            changed = close_group(tree, node, group, node - tree.child[group])
            if changed and tree.group_stamp[group] != stamp:
                tree.group_stamp[group] = stamp
                queue[size] = group
                size += 1
