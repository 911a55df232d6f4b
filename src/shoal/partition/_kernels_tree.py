"""A tree of boxes over the remaining records in, nearest and farthest records out, by branch and bound.

Leaves hold LEAF records attribute by attribute; a group holds the boxes of FAN children the same way. Bounds use
the operations of the exact distance in the same order; rounding is monotone, so they hold to the last bit and
equality can be decided by record index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.display import internal
from shoal.partition._kernels_brute import NO_INDEX, offer
from shoal.partition._kernels_vector import (
    FAN,
    LEAF,
    distances_beyond,
    distances_within,
    far_bounds,
    fit_group,
    fit_leaf,
    lowest_bit,
    near_bounds,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@internal()
class Tree(NamedTuple):
    """Everything the searches read; all arrays are changed in place when records leave."""

    values: Floats  # (leaves, d + 1, LEAF): the attributes, and the distance to the reference
    record: Integers  # (leaves, LEAF): record numbers
    live: Integers  # (leaves,): number of live records, which are the first ones
    low: Floats  # (groups, d + 1, FAN): boxes of the children; low > high where a child is empty
    high: Floats
    least: Integers  # (groups, FAN): smallest record number of each child
    child: Integers  # (groups,): number of the first child
    parent: Integers  # (groups,): -1 for the root
    place: Integers  # (n,): leaf * LEAF + slot of each live record
    reference: Floats  # (d,)
    leaf_stamp: Integers  # (leaves,): the last cluster that made the box be fitted
    group_stamp: Integers  # (groups,)


@internal()
class Scratch(NamedTuple):
    """Working memory of one search."""

    distances: Floats  # (LEAF,)
    bounds: Floats  # (FAN,)
    stack_bound: Floats
    stack_node: Integers  # groups as themselves, leaves as -1 - leaf
    work: Integers  # (2,): leaves scanned, groups bounded


@njit(nogil=True, forceinline=True)
def smallest_record(least: Integers, child: Integers, parent: Integers, node: int) -> int:
    """The smallest record number below a node of the stack."""
    if node < 0:
        return int(least[(-1 - node) // FAN, (-1 - node) % FAN])
    group = parent[node]
    return int(least[group, node - child[group]]) if group >= 0 else 0


@njit(nogil=True)
def nearest(tree: Tree, scratch: Scratch, point: Floats, heap: Floats, heap_index: Integers) -> None:
    """Fill the heap with the records nearest to a point, equal distances by lowest index."""
    want = heap.size
    if want == 0:
        return
    filled = 0
    worst, worst_index = np.inf, NO_INDEX
    values, record, live, low, high, least, child, parent, _, reference, _, _ = tree
    distances, bounds, stack_bound, stack_node, work = scratch
    leaf_groups = values.shape[0] // FAN
    stack_bound[0], stack_node[0] = 0.0, child.size - 1
    top = 1
    while top > 0:
        top -= 1
        node = stack_node[top]
        if stack_bound[top] >= worst and (
            stack_bound[top] > worst or smallest_record(least, child, parent, node) > worst_index
        ):
            continue
        if node < 0:
            leaf = -1 - node
            work[0] += 1
            hits = distances_within(values, leaf, point, worst, distances)
            hits &= (1 << live[leaf]) - 1
            while hits != 0:
                i = lowest_bit(hits)
                hits &= hits - 1
                t = distances[i]
                if t < worst or (t == worst and record[leaf, i] < worst_index):
                    offer(heap, heap_index, filled, t, record[leaf, i])
                    filled = min(filled + 1, want)
                    if filled == want:
                        worst, worst_index = heap[0], heap_index[0]
            continue
        work[1] += 1
        hits = near_bounds(low, high, node, point, reference, worst, bounds)
        base = top
        first = -1 - child[node] if node < leaf_groups else child[node]
        step = -1 if node < leaf_groups else 1
        while hits != 0:
            c = lowest_bit(hits)
            hits &= hits - 1
            t = bounds[c]
            if t < worst or least[node, c] < worst_index:
                at = top
                while at > base and stack_bound[at - 1] < t:
                    stack_bound[at] = stack_bound[at - 1]
                    stack_node[at] = stack_node[at - 1]
                    at -= 1
                stack_bound[at] = t
                stack_node[at] = first + step * c
                top += 1


@njit(nogil=True)
def farthest(tree: Tree, scratch: Scratch, point: Floats) -> int:
    """The record farthest from a point, equal distances by lowest index."""
    best, best_index = -1.0, NO_INDEX
    values, record, live, low, high, least, child, parent, _, reference, _, _ = tree
    distances, bounds, stack_bound, stack_node, work = scratch
    leaf_groups = values.shape[0] // FAN
    stack_bound[0], stack_node[0] = np.inf, child.size - 1
    top = 1
    while top > 0:
        top -= 1
        node = stack_node[top]
        if stack_bound[top] <= best and (
            stack_bound[top] < best or smallest_record(least, child, parent, node) > best_index
        ):
            continue
        if node < 0:
            leaf = -1 - node
            work[0] += 1
            hits = distances_beyond(values, leaf, point, best, distances)
            hits &= (1 << live[leaf]) - 1
            while hits != 0:
                i = lowest_bit(hits)
                hits &= hits - 1
                t = distances[i]
                if t > best or (t == best and record[leaf, i] < best_index):
                    best, best_index = t, record[leaf, i]
            continue
        work[1] += 1
        hits = far_bounds(low, high, node, point, reference, best, bounds)
        base = top
        first = -1 - child[node] if node < leaf_groups else child[node]
        step = -1 if node < leaf_groups else 1
        while hits != 0:
            c = lowest_bit(hits)
            hits &= hits - 1
            t = bounds[c]
            if least[node, c] < NO_INDEX and (t > best or least[node, c] < best_index):
                at = top
                while at > base and stack_bound[at - 1] > t:
                    stack_bound[at] = stack_bound[at - 1]
                    stack_node[at] = stack_node[at - 1]
                    at -= 1
                stack_bound[at] = t
                stack_node[at] = first + step * c
                top += 1
    return best_index


@njit(nogil=True)
def delete(tree: Tree, gone: Integers, cut: Floats, sums: Floats, leaves: Integers) -> None:
    """Take records out of the sums and of their leaves, written to `leaves`; boxes stay as they are."""
    values, record, live, _, _, _, _, _, place, _, _, _ = tree
    for t in range(gone.size):
        leaf, slot = place[gone[t]] // LEAF, place[gone[t]] % LEAF
        last = live[leaf] - 1
        for j in range(cut.shape[0]):
            rest = values[leaf, j, slot]
            for piece in range(cut.shape[1]):
                lead = (rest + cut[j, piece]) - cut[j, piece]
                sums[j, piece] -= lead
                rest -= lead
        for j in range(values.shape[1]):
            values[leaf, j, slot] = values[leaf, j, last]
        moved = record[leaf, last]
        record[leaf, slot] = moved
        place[moved] = leaf * LEAF + slot
        live[leaf] = last
        leaves[t] = leaf


@njit(nogil=True)
def close_boxes(tree: Tree, leaves: Integers, queue: Integers, stamp: int) -> None:
    """Fit boxes upward from changed leaves, stopping where a box did not change.

    Args:
        tree: the tree.
        leaves: where records left; may repeat.
        queue: working memory for groups.
        stamp: a number not used before, to fit each box once.
    """
    values, record, live, low, high, least, child, parent, _, _, leaf_stamp, group_stamp = tree
    size = 0
    for t in range(leaves.size):
        leaf = leaves[t]
        if leaf_stamp[leaf] == stamp:
            continue
        leaf_stamp[leaf] = stamp
        group, slot, m = leaf // FAN, leaf % FAN, live[leaf]
        changed = fit_leaf(values, values, leaf, m, low, high, group, slot)
        smallest = NO_INDEX
        for i in range(m):
            smallest = min(smallest, record[leaf, i])
        if (changed or smallest != least[group, slot]) and group_stamp[group] != stamp:
            group_stamp[group] = stamp
            queue[size] = group
            size += 1
        least[group, slot] = smallest
    at = 0
    while at < size:
        node = queue[at]
        at += 1
        group = parent[node]
        if group < 0:
            continue
        slot = node - child[group]
        changed = fit_group(low, high, node, FAN, low, high, group, slot)
        smallest = NO_INDEX
        for c in range(FAN):
            smallest = min(smallest, least[node, c])
        if (changed or smallest != least[group, slot]) and group_stamp[group] != stamp:
            group_stamp[group] = stamp
            queue[size] = group
            size += 1
        least[group, slot] = smallest
