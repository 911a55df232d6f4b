"""Compiled MDAV rounds on a tree of boxes: build it, search it by branch and bound, label clusters.

Leaves hold LEAF records attribute by attribute; a group holds the boxes of FAN children the same way. Bounds use the
operations of the exact distance in the same order; rounding is monotone, so they are valid to the last bit and ties can
be decided by record index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.display import internal
from shoal.kernels import compiled, plain
from shoal.numbers import Floats, Integers
from shoal.partition._kernels import NO_INDEX, offer
from shoal.partition._kernels_vector import FAN, LEAF, SLACK

if plain():
    from shoal.partition._kernels_vector import (
        borrowed,
        distances_beyond,
        distances_within,
        far_bounds,
        fit_group,
        fit_leaf,
        lowest_bit,
        near_bounds,
    )
else:
    from shoal.partition._kernels_llvm import (
        borrowed,
        distances_beyond,
        distances_within,
        far_bounds,
        fit_group,
        fit_leaf,
        lowest_bit,
        near_bounds,
    )

# Number of rows sampled to choose the attribute on which a large node is split.
SAMPLE = 256
# The shell is sorted down to runs of this many records.
SHELL_RUN = 8


@internal()
class SearchTree(NamedTuple):
    """The arrays of the tree, changed in place when records are removed."""

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
    leaf_stamp: Integers  # (leaves,): the last cluster for which the box was refitted
    group_stamp: Integers  # (groups,)


@internal()
class Scratch(NamedTuple):
    """Working memory of one search."""

    distances: Floats  # (LEAF,)
    bounds: Floats  # (FAN,)
    stack_bound: Floats
    stack_node: Integers  # groups as themselves, leaves as -1 - leaf
    work: Integers  # (2,): leaves scanned, groups bounded


@compiled(inline=True, keep=False)
def smallest_record(least: Integers, child: Integers, parent: Integers, node: int) -> int:
    """The smallest record number below a node of the stack."""
    if node < 0:
        return int(least[(-1 - node) // FAN, (-1 - node) % FAN])
    group = parent[node]
    return int(least[group, node - child[group]]) if group >= 0 else 0


@compiled(keep=False)
def nearest(tree: SearchTree, scratch: Scratch, point: Floats, heap: Floats, heap_index: Integers) -> None:
    """Fill the heap with the records nearest to a point, ties by lowest index."""
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


@compiled(keep=False)
def farthest(tree: SearchTree, scratch: Scratch, point: Floats) -> int:
    """The record farthest from a point, ties by lowest index."""
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


@compiled(keep=False)
def delete(tree: SearchTree, gone: Integers, cut: Floats, sums: Floats, leaves: Integers) -> None:
    """Remove records from the sums and their leaves, which are written to `leaves`; boxes are unchanged."""
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


@compiled(keep=False)
def close_boxes(tree: SearchTree, leaves: Integers, queue: Integers, stamp: int) -> None:
    """Refit boxes upward from changed leaves, stopping where a box did not change.

    Args:
        tree: the tree.
        leaves: leaves that lost records; may repeat.
        queue: working memory for groups.
        stamp: a number not used before, to refit each box once.
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


@internal()
class Shell(NamedTuple):
    """The outermost records at some moment, roughly farthest first; records removed since are still listed."""

    values: Floats  # (capacity, d)
    radius: Floats  # (capacity,): at least the distances of this and all later entries to the centre then
    record: Integers  # (capacity,)
    centre: Floats  # (d,)
    state: (
        Integers  # (4,): first possibly live entry, number of entries, records in all then, complete or not
    )


@compiled(inline=True, keep=False)
def swap_rows(rows: Floats, index: Integers, a: int, b: int) -> None:
    for j in range(rows.shape[1]):
        t = rows[a, j]
        rows[a, j] = rows[b, j]
        rows[b, j] = t
    t_index = index[a]
    index[a] = index[b]
    index[b] = t_index


@compiled(inline=True, keep=False)
def median_of_three(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))


@compiled(keep=False)
def select(rows: Floats, index: Integers, start: int, stop: int, nth: int, column: int) -> None:
    """Partially sort rows: those before `nth` are not larger in a column, and those from it on not smaller."""
    low, high = start, stop - 1
    chance = np.uint64(0x9E3779B97F4A7C15)
    while low < high:
        if high - low < 64:
            pivot = median_of_three(rows[low, column], rows[(low + high) // 2, column], rows[high, column])
        else:
            # Three medians at scattered positions: no order of the input makes this quadratic in practice.
            span = np.uint64(high - low + 1)
            medians = (0.0, 0.0, 0.0)
            for _ in range(3):
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                at = np.int64((chance >> np.uint64(33)) % span)
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                also = np.int64((chance >> np.uint64(33)) % span)
                chance = chance * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                third = np.int64((chance >> np.uint64(33)) % span)
                found = median_of_three(
                    rows[low + at, column], rows[low + also, column], rows[low + third, column]
                )
                medians = (medians[1], medians[2], found)
            pivot = median_of_three(medians[0], medians[1], medians[2])
        a, b = low, high
        while a <= b:
            while rows[a, column] < pivot:
                a += 1
            while rows[b, column] > pivot:
                b -= 1
            if a <= b:
                swap_rows(rows, index, a, b)
                a += 1
                b -= 1
        if nth <= b:
            high = b
        elif nth >= a:
            low = a
        else:
            return


@compiled(keep=False)
def widest(rows: Floats, start: int, stop: int) -> int:
    """The attribute with the largest spread, estimated on a sample of rows."""
    if rows.shape[1] == 1:
        return 0
    step = max(1, (stop - start) // SAMPLE)
    best, column = -1.0, 0
    for j in range(rows.shape[1]):
        total = 0.0
        count = 0
        for i in range(start, stop, step):
            total += rows[i, j]
            count += 1
        mean = total / count
        spread = 0.0
        for i in range(start, stop, step):
            spread += (rows[i, j] - mean) * (rows[i, j] - mean)
        if spread > best:
            best, column = spread, j
    return column


@compiled
def order_rows(rows: Floats, index: Integers, run: int) -> None:
    """Order rows so that aligned runs of `run` rows, and of 2, 4, 8 ... such runs, are compact in space.

    With one column: ascending, except for the order inside a run.
    """
    starts = np.empty(128, dtype=np.int64)
    stops = np.empty(128, dtype=np.int64)
    starts[0], stops[0] = 0, rows.shape[0]
    top = 1
    while top > 0:
        top -= 1
        start, stop = starts[top], stops[top]
        runs = (stop - start + run - 1) // run
        if runs <= 1:
            continue
        half = 1
        while 2 * half < runs:
            half *= 2
        middle = start + half * run
        select(rows, index, start, stop, middle, widest(rows, start, stop))
        starts[top], stops[top] = start, middle
        starts[top + 1], stops[top + 1] = middle, stop
        top += 2


@compiled
def live_rows(tree: SearchTree, rows: Floats, index: Integers) -> int:
    """Copy the live records in the order of the leaves; returns their number."""
    values, record, live, _, _, _, _, _, _, _, _, _ = tree
    at = 0
    for leaf in range(live.size):
        for i in range(live[leaf]):
            for j in range(rows.shape[1]):
                rows[at, j] = values[leaf, j, i]
            index[at] = record[leaf, i]
            at += 1
    return at


@compiled
def fill(tree: SearchTree, rows: Floats, index: Integers) -> None:
    """Fill the leaves with ordered rows and fit all boxes."""
    values, record, live, _, _, _, _, _, place, reference, _, _ = tree
    n, d = rows.shape
    distances = np.empty(LEAF)
    for leaf in range(live.size):
        start = leaf * LEAF
        m = max(0, min(LEAF, n - start))
        live[leaf] = m
        for i in range(m):
            for j in range(d):
                values[leaf, j, i] = rows[start + i, j]
            record[leaf, i] = index[start + i]
            place[index[start + i]] = start + i
        distances_within(values, leaf, reference, 0.0, distances)
        for i in range(LEAF):
            values[leaf, d, i] = np.sqrt(distances[i])
    close_boxes(tree, np.arange(live.size), np.empty(live.size, dtype=np.int64), -1)


@compiled(keep=False)
def build_shell(
    tree: SearchTree, shell: Shell, centre: Floats, alive: int, key: Floats, index: Integers
) -> None:
    """List the outermost sixteenth of the live records, farthest from a centre first.

    Args:
        tree: the live records.
        shell: the output.
        centre: the point distances are measured from.
        alive: number of live records.
        key: working memory, shape (n, 1).
        index: working memory, shape (n,).
    """
    values, record, live, _, _, _, _, _, place, _, _, _ = tree
    distances = np.empty(LEAF)
    at = 0
    for leaf in range(live.size):
        m = live[leaf]
        if m > 0:
            distances_within(values, leaf, centre, 0.0, distances)
            for i in range(m):
                key[at, 0] = distances[i]
                index[at] = record[leaf, i]
                at += 1
    size = min(alive, max(alive // 16, 64))
    if size < alive:
        select(key, index, 0, alive, alive - size, 0)
    shell_values, shell_radius, shell_record, shell_centre, state = shell
    outer = key[alive - size : alive]
    outer_index = index[alive - size : alive]
    order_rows(outer, outer_index, SHELL_RUN)
    largest = 0.0
    for source in range(size):
        t = size - 1 - source
        largest = max(largest, outer[source, 0])
        leaf, slot = place[outer_index[source]] // LEAF, place[outer_index[source]] % LEAF
        for j in range(centre.size):
            shell_values[t, j] = values[leaf, j, slot]
        shell_radius[t] = np.sqrt(largest)
        shell_record[t] = outer_index[source]
    for j in range(centre.size):
        shell_centre[j] = centre[j]
    state[0], state[1], state[2], state[3] = 0, size, alive, size == alive


@internal()
class Task(NamedTuple):
    """The table, the state of the partition, and working memory."""

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


@compiled(keep=False)
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


@compiled(keep=False)
def outermost(shell: Shell, labels: Integers, centre: Floats) -> int:
    """The record farthest from the centre if the shell can determine it, else -1.

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


@compiled(keep=False)
def farthest_from_mean(tree: SearchTree, scratch: Scratch, shell: Shell, task: Task, alive: int) -> int:
    """The live record farthest from the centre, by the shell if possible and by the tree otherwise."""
    centre = task.centre
    mean(task.sums, alive, centre)
    found = outermost(shell, task.labels, centre)
    if found >= 0:
        return found
    # A shell that fails soon after it was built (all records tie) is not worth rebuilding.
    if shell.state[2] - alive > alive // 64:
        build_shell(tree, shell, centre, alive, task.key, task.key_index)
        found = outermost(shell, task.labels, centre)
        if found >= 0:
            return found
    return farthest(tree, scratch, centre)


@compiled(keep=False)
def take_cluster(tree: SearchTree, scratch: Scratch, task: Task, pole: int, cluster: int) -> None:
    """Remove a pole and its nearest records from the tree and label them as a cluster."""
    X, labels, cut, sums, _, heap, members, leaves, queue, _, _ = task
    members[0] = pole
    delete(tree, members[:1], cut, sums, leaves[:1])
    nearest(tree, scratch, X[pole], heap, members[1:])
    delete(tree, members[1:], cut, sums, leaves[1:])
    for t in range(members.size):
        labels[members[t]] = cluster
    close_boxes(tree, leaves, queue, cluster + 1)


@compiled
def rounds(
    owned_tree: SearchTree,
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
