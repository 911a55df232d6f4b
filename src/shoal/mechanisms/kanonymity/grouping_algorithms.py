"""Grouping algorithms for k-anonymity, l-diversity and t-closeness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError
from shoal.numbers import Integers
from shoal.partition import (
    EMD,
    Partition,
    as_matrix,
    check_k,
    count_groups,
    distinct_for_units,
    distinct_values,
    mdav,
    most_rows_of_a_unit,
    ratio_distances,
    units_of_groups,
    within,
)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Allotment:
    """Number of records of each bucket in each group.

    Attributes:
        counts: one row per group, one column per bucket; rows add up to group sizes, columns to bucket sizes.
        emphasis: the bucket of which each group holds as much as possible.
    """

    counts: Integers
    emphasis: Integers

    @property
    def sizes(self) -> Integers:
        return np.asarray(self.counts.sum(axis=1))


def allot(bucket_sizes: Integers, t: int, k: int) -> Allotment:
    """As many groups as possible of at least k records, each within a factor t of the table in every bucket.

    Group i of k_i records takes n_ij records of bucket j, ⌈k_i p_j / t⌉ ≤ n_ij ≤ ⌊k_i p_j t⌋ with p_j the bucket's
    share of the table. Such counts with given row and column sums are a transportation problem; among its solutions the
    one is used in which groups hold most of the bucket they emphasise. Groups of one size that emphasise one bucket are
    treated as one, so the size of the problem does not depend on the number of records.

    If there is no solution for as many groups as k allows, fewer and larger groups are tried; a single group of all
    records is always a solution.

    Args:
        bucket_sizes: number of records of each bucket, none empty.
        t: largest ratio between a bucket's share in a group and in the table, an integer.
        k: minimum group size.

    Cost: a linear programme of at most 2 b² variables for b buckets, and O(groups · b).

    Reference: the thesis, section 7.2.2, whose recipe can take more records from a bucket than it has.

    >>> allot(np.array([4, 4, 4]), t=2, k=4).counts.tolist()
    [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    """
    total = int(bucket_sizes.sum())
    if not 1 <= k <= total:
        raise OptionError("k-between-1-number-records", option="k", total=total, found=k)
    buckets = bucket_sizes.size
    # the thesis' number of groups is a multiple of the number of buckets
    most = total // k
    for groups in (*range(most // buckets * buckets, 0, -buckets), *range(min(buckets - 1, most), 1, -1)):
        found = _allotted(bucket_sizes, t, groups) if _possible(bucket_sizes, t, groups) else None
        if found is not None:
            return found
    return Allotment(bucket_sizes[np.newaxis, :].copy(), np.array([int(np.argmax(bucket_sizes))]))


def group_sizes(total: int, groups: int) -> Integers:
    """Sizes that differ by at most one.

    >>> group_sizes(11, 3).tolist()
    [4, 4, 3]
    """
    ends = -(-np.arange(groups + 1, dtype=np.int64) * total // groups)
    return np.diff(ends)


def bounds(sizes: Integers, bucket_sizes: Integers, t: int) -> tuple[Integers, Integers]:
    """Minimum and maximum number of records of each bucket (columns) in groups of these sizes (rows)."""
    total = int(bucket_sizes.sum())
    product = sizes[:, np.newaxis] * bucket_sizes[np.newaxis, :]
    return -(-product // (t * total)), np.minimum(product * t // total, sizes[:, np.newaxis])


def _possible(bucket_sizes: Integers, t: int, groups: int) -> bool:
    """Whether the bounds allow the row and column sums: a fast necessary condition."""
    smaller, larger = divmod(int(bucket_sizes.sum()), groups)
    sizes = np.array([smaller, smaller + 1]) if larger else np.array([smaller])
    times = np.array([groups - larger, larger])[: sizes.size, np.newaxis]
    low, high = bounds(sizes, bucket_sizes, t)
    rows = (low <= high).all() and (low.sum(axis=1) <= sizes).all() and (high.sum(axis=1) >= sizes).all()
    taken, room = (low * times).sum(axis=0), (high * times).sum(axis=0)
    return bool(rows and (taken <= bucket_sizes).all() and (room >= bucket_sizes).all())


def _allotted(bucket_sizes: Integers, t: int, groups: int) -> Allotment | None:
    """The counts for this many groups, or None if there are none."""
    sizes = group_sizes(int(bucket_sizes.sum()), groups)
    emphasis = _emphasis(bucket_sizes, groups)
    kinds, member = np.unique(np.stack([sizes, emphasis], axis=1), axis=0, return_inverse=True)
    member = member.ravel()
    times = np.bincount(member)
    low, high = bounds(kinds[:, 0], bucket_sizes, t)
    solved = _transport(
        kinds[:, 0] * times, bucket_sizes, low * times[:, None], high * times[:, None], kinds[:, 1]
    )
    if solved is None:
        return None
    counts = np.empty((groups, bucket_sizes.size), dtype=np.int64)
    for kind, number in enumerate(times.tolist()):
        counts[member == kind] = _spread(solved[kind], number)
    return Allotment(counts, emphasis)


def _emphasis(bucket_sizes: Integers, groups: int) -> Integers:
    """Buckets in turn, each as often as its share requires."""
    ends = np.cumsum(bucket_sizes) * groups
    middle = (2 * np.arange(groups, dtype=np.int64) + 1) * int(bucket_sizes.sum())
    in_order = np.searchsorted(2 * ends, middle, side="right")
    # alternating, so that neighbouring groups of unequal size do not all emphasise one bucket
    rank = np.arange(groups) - np.searchsorted(in_order, in_order)
    often = np.bincount(in_order, minlength=bucket_sizes.size)[in_order]
    return in_order[np.lexsort((in_order, (2 * rank + 1) / often))].astype(np.int64)


def _transport(
    rows: Integers, columns: Integers, low: Integers, high: Integers, emphasis: Integers
) -> Integers | None:
    """Integers between the bounds with these row and column sums, largest at each row's emphasis."""
    from scipy.optimize import linprog

    r, c = low.shape
    gain = np.zeros((r, c))
    gain[np.arange(r), emphasis] = 1.0
    # the matrix is totally unimodular: every vertex of the polytope, where the simplex method ends, is integral
    solution = linprog(
        -gain.ravel(),
        A_eq=np.vstack([np.repeat(np.eye(r), c, axis=1), np.tile(np.eye(c), r)]),
        b_eq=np.concatenate((rows, columns)).astype(np.float64),
        bounds=list(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)),
        method="highs-ds",
    )
    if solution.x is None or not solution.success:
        return None
    found: Integers = np.rint(solution.x).astype(np.int64).reshape(r, c)
    exact = (found.sum(axis=1) == rows).all() and (found.sum(axis=0) == columns).all()
    if not exact or (found < low).any() or (found > high).any():
        raise AssertionError(
            "the transportation problem has no integral solution: probably a bug, please report it."
        )
    return found


def _spread(totals: Integers, groups: int) -> Integers:
    """The same totals over equal groups: every group gets the even share of a bucket, rounded down or up."""
    counts = np.tile(totals // groups, (groups, 1))
    # a bucket has a remainder smaller than the number of groups, so dealing in turn gives no group two of it
    left_over = np.repeat(np.arange(totals.size), totals % groups)
    np.add.at(counts, (np.arange(left_over.size) % groups, left_over), 1)
    return counts


# function from a partition to those of its groups that do not satisfy a condition
Lacking = Callable[[Partition], NDArray[np.bool_]]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Groups that satisfy a condition, and the cost of merging.

    Attributes:
        partition: the groups after merging.
        groups_before: number of groups before merging.
        sse_before: squared distances of the records to the mean of their group, before merging.
        sse: the same after merging.
    """

    partition: Partition
    groups_before: int
    sse_before: float
    sse: float

    @property
    def cost(self) -> dict[str, float]:
        """Number of groups lost, and the increase of the records' distances to the mean of their group."""
        return {
            "groups_before": self.groups_before,
            "groups": len(self.partition),
            "sse_before": self.sse_before,
            "sse": self.sse,
        }


def merge_until(partition: Partition, X: ArrayLike, lacking: Lacking) -> Merged:
    """Merge groups that fail a condition with the group whose mean is nearest, until all groups satisfy it.

    Failing groups are merged round by round, smallest first; a group involved in a merge waits for the next round.
    Groups only grow, so their minimum size k is kept, and a single group is the last possible result.

    Args:
        partition: the initial groups.
        X: the quasi-identifiers, scaled for distances.
        lacking: returns the groups that do not satisfy the condition; the whole table as one group must satisfy it.

    Cost: one search among group means and one count of the records per round; usually few rounds, because all
        failing groups are merged in each.
    """
    values = as_matrix(X)
    current = partition
    while len(current) > 1:
        lacks = lacking(current)
        if not lacks.any():
            break
        joined = _joined(current.centroids(values), current.sizes, lacks)
        current = Partition.from_labels(joined[current.labels], partition.columns)
    return Merged(current, len(partition), squared_error(partition, values), squared_error(current, values))


def squared_error(partition: Partition, values: NDArray[np.float64]) -> float:
    """Sum of squared distances of all records to the mean of their group."""
    return float(((values - partition.centroids(values)[partition.labels]) ** 2).sum())


def _joined(
    means: NDArray[np.float64], sizes: NDArray[np.int64], lacks: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """New group number of each group after one round."""
    from scipy.spatial import cKDTree

    wanting = np.flatnonzero(lacks)
    wanting = wanting[np.argsort(sizes[wanting], kind="stable")]
    found = np.asarray(cKDTree(means).query(means[wanting], k=2)[1])
    # a group with an equal mean may come before the group itself
    nearest = np.where(found[:, 0] == wanting, found[:, 1], found[:, 0])
    target = np.arange(sizes.size)
    touched = np.zeros(sizes.size, dtype=np.bool_)
    for group, neighbour in zip(wanting.tolist(), nearest.tolist(), strict=True):
        if not touched[group]:
            target[group] = target[neighbour]
            touched[group] = touched[neighbour] = True
    return target


def lacks_persons(units: Integers, k: int, *, even: bool) -> Lacking:
    """Groups that have fewer than k persons or, if `even`, more than one row in k of one person.

    A value swapped inside a group is a person's with the probability of that person's share of its rows. If no
    person has more than one row in k there are at least k persons, and both remain true when groups are merged.
    """

    def lacking(current: Partition) -> NDArray[np.bool_]:
        if even:
            return np.asarray(current.sizes < k * most_rows_of_a_unit(current.labels, units))
        return np.asarray(units_of_groups(current.labels, units) < k)

    return lacking


def lacks_values(coded: Sequence[Integers], l: int, units: Integers | None = None) -> Lacking:  # noqa: E741
    """Groups with fewer than l distinct values of an attribute, each of another person if persons are counted."""

    def distinct(labels: Integers, values: Integers) -> Integers:
        if units is None:
            return distinct_values(count_groups(labels, values))
        return distinct_for_units(labels, values, units)

    def lacking(current: Partition) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.reduce([distinct(current.labels, values) < l for values in coded]))

    return lacking


def lacks_closeness(
    coded: Sequence[Integers], t: float, ground: str, units: Integers | None = None
) -> Lacking:
    """Groups farther than t from the table in an attribute: in earth mover's distance, or in the ratio of shares
    for the ground `ratio`."""
    distances = ratio_distances if ground == "ratio" else EMD[ground]

    def lacking(current: Partition) -> NDArray[np.bool_]:
        found = [~within(distances(count_groups(current.labels, values, units)), t) for values in coded]
        return np.asarray(np.logical_or.reduce(found))

    return lacking


def any_of(conditions: Sequence[Lacking]) -> Lacking:
    """Groups that fail any of the conditions."""

    def lacking(current: Partition) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.reduce([condition(current) for condition in conditions]))

    return lacking


def diversify(partition: Partition, X: ArrayLike, confidential: Sequence[ArrayLike], l: int) -> Merged:  # noqa: E741
    """Merge groups until each has at least l distinct values of every sensitive attribute.

    Args:
        partition: groups from any algorithm; their minimum size is kept.
        X: the quasi-identifiers, scaled for distances: a group is merged with the one whose mean is nearest.
        confidential: the sensitive attributes, a vector each, of any type.
        l: minimum number of distinct values.

    Returns:
        The groups, and the cost of merging.

    Guarantee:
        Distinct l-diversity of the groups.

    Cost: see `merge_until`.

    Reference: left open by the thesis, section 3.5.

    >>> made = diversify(Partition.from_labels([0, 0, 1, 1]), [1.0, 1.1, 5.0, 5.1], [["a", "a", "a", "b"]], l=2)
    >>> made.partition.sizes.tolist(), made.cost["groups_before"]
    ([4], 2)
    """
    if l < 1:
        raise OptionError("l-least-1", option="l", found=l)
    coded = [value_numbers(values, partition.n) for values in confidential]
    for number, values in enumerate(coded, start=1):
        if int(values.max()) + 1 < l:
            raise OptionError("l-cannot-reached", l=l, number=number, values=int(values.max()) + 1)
    return merge_until(partition, X, lacks_values(coded, l))


def bring_close(
    partition: Partition, X: ArrayLike, confidential: Sequence[ArrayLike], t: float, ground: str = "ordered"
) -> Merged:
    """Merge groups until each is within earth mover's distance t of the table in every sensitive attribute.

    Args:
        partition: groups from any algorithm; their minimum size is kept.
        X: the quasi-identifiers, scaled for distances: a group is merged with the one whose mean is nearest.
        confidential: the sensitive attributes, a vector each, of any sortable type.
        t: largest distance, from 0 to 1.
        ground: the distance of two values: `ordered` is the number of values between them as a share of all,
            `equal` is 1 for any two.

    Guarantee:
        t-closeness in the usual sense: the distribution in a group differs from that of the table by at most t
        in earth mover's distance. That bounds no ratio of probabilities.

    Cost: see `merge_until`.

    >>> values = [1, 2, 3, 4]
    >>> bring_close(Partition.from_labels([0, 0, 1, 1]), [0.0, 1.0, 2.0, 3.0], [values], t=0.2).partition.sizes.tolist()
    [4]
    """
    if not 0 <= t <= 1:
        raise OptionError("t-from-0-1", option="t", found=t)
    if ground not in EMD:
        raise OptionError("unknown-ground", option="ground", ground=ground, allowed=tuple(EMD))
    coded = [value_numbers(values, partition.n) for values in confidential]
    return merge_until(partition, X, lacks_closeness(coded, t, ground))


def value_numbers(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """The rank of each record's value among the distinct values of the table, lowest first."""
    raw = np.asarray(values)
    if raw.shape != (n,):
        raise InputError("confidential-attribute-needs-value-per-record", n=n, np=np.shape(values))
    return np.unique(raw, return_inverse=True)[1].astype(np.int64)


def bucket_count(t: int) -> int:
    """Number of buckets that exhaust a ratio of t: a group can have t times the share of one and 1/t of the others."""
    if isinstance(t, bool) or int(t) != t or t < 1:
        raise OptionError("t-whole-number-least-1", option="t", found=t)
    return int(t) + 1


def ordered_buckets(values: ArrayLike, t: int) -> NDArray[np.int64]:
    """t + 1 buckets of consecutive values with nearly equal numbers of records.

    Cuts are after record ⌊iN/(t+1) + 1/2⌋ of the sorted attribute, or at the nearest position where the value
    changes. If a value is so frequent that two cuts coincide, there are fewer buckets.

    Reference: the thesis, section 7.2.

    >>> ordered_buckets([1, 2, 3, 4, 5, 6], 2).tolist()
    [0, 0, 1, 1, 2, 2]
    >>> ordered_buckets([1, 7, 7, 7, 7, 9], 2).tolist()
    [0, 1, 1, 1, 1, 2]
    """
    count = bucket_count(t)
    raw = np.asarray(values)
    n = raw.shape[0]
    numbers = value_numbers(raw, n)
    # records up to and including each value
    reached = np.cumsum(np.bincount(numbers))
    wanted = np.array([(2 * i * n + count) // (2 * count) for i in range(1, count)], dtype=np.int64)
    inner = reached[:-1]
    if inner.size == 0:
        return np.zeros(n, dtype=np.int64)
    after = np.clip(np.searchsorted(inner, wanted), 0, inner.size - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.where(np.abs(inner[before] - wanted) < np.abs(inner[after] - wanted), before, after)
    # the bucket of a value is the number of cuts before it
    return np.searchsorted(np.unique(nearer), numbers, side="left").astype(np.int64)


def nominal_buckets(values: ArrayLike, t: int, order: Sequence[object] | None = None) -> NDArray[np.int64]:
    """At most t + 1 buckets of unordered values: one value each, or sets with nearly equal numbers of records.

    Args:
        values: the attribute, of any type.
        t: the ratio to exhaust.
        order: values in an order of similarity, such as the leaves of a taxonomy; buckets are then runs of it.
            Otherwise the most frequent values come first, each into the emptiest bucket.

    >>> nominal_buckets(["a", "a", "a", "b", "c", "c"], 1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    count = bucket_count(t)
    raw = np.asarray(values)
    if order is not None:
        place = {value: number for number, value in enumerate(order)}
        unknown = [value for value in np.unique(raw).tolist() if value not in place]
        if unknown:
            raise OptionError("order-does-not-list-value", unknown=unknown[0])
        return ordered_buckets([place[value] for value in raw.tolist()], t)
    numbers = value_numbers(raw, raw.shape[0])
    frequency = np.bincount(numbers)
    bucket = np.zeros(frequency.size, dtype=np.int64)
    filled = np.zeros(min(count, frequency.size), dtype=np.int64)
    for value in np.argsort(-frequency, kind="stable").tolist():
        bucket[value] = int(np.argmin(filled))
        filled[bucket[value]] += frequency[value]
    return bucket[numbers]


def compound_buckets(X: ArrayLike, t: int) -> NDArray[np.int64]:
    """t + 1 buckets of records that are close in several sensitive attributes together, by MDAV.

    Args:
        X: the sensitive attributes, scaled for distances.
        t: the ratio to exhaust.

    Equal records all go to their most frequent bucket, so a bucket is a set of combinations of values.

    Reference: the thesis, section 7.1.1 (a single compound attribute).

    >>> X = [[1.0, 1.0], [1.1, 1.0], [5.0, 5.0], [5.1, 5.0], [9.0, 0.0], [9.1, 0.0]]
    >>> np.bincount(compound_buckets(X, 2)).tolist()
    [2, 2, 2]
    """
    from shoal.partition import row_groups

    values = as_matrix(X)
    count = min(bucket_count(t), values.shape[0])
    made = mdav(values, values.shape[0] // count).labels
    equal = row_groups(values.T).labels
    pairs, frequency = np.unique(equal * (made.max() + 1) + made, return_counts=True)
    # the last entry of a combination is its most frequent bucket
    by_frequency = np.lexsort((frequency, pairs // (made.max() + 1)))
    bucket = np.empty(int(equal.max()) + 1, dtype=np.int64)
    bucket[pairs[by_frequency] // (made.max() + 1)] = pairs[by_frequency] % (made.max() + 1)
    return value_numbers(bucket[equal], equal.size)


# Groups are filled record by record in blocks of at most this many records; larger tables are halved first.
_BLOCK = 5_000
# called with the number of records in groups and the total
Progress = Callable[[int, int], None]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CloseGroups:
    """Groups in which every bucket has nearly its share of the table.

    Attributes:
        partition: the groups.
        allotment: number of records of each bucket in them.
        distance: largest ratio, either way, between a bucket's share in a group and in the table; at most t.
    """

    partition: Partition
    allotment: Allotment
    distance: float


def close_groups(
    X: ArrayLike, buckets: NDArray[np.int64], t: int, k: int, *, progress: Progress | None = None
) -> CloseGroups:
    """Groups of at least k records that are close in X and t-close in the buckets of the sensitive attribute.

    The counts of `allot` determine how many records of each bucket a group takes. Which ones is chosen as in MDAV:
    the record farthest from the mean of the remaining ones starts a group that emphasises its bucket, and the nearest
    records of each bucket fill it. Tables above 5,000 records are first halved along their longest side, every half
    with the records its groups need.

    Args:
        X: quasi-identifiers, scaled for distances.
        buckets: bucket of the sensitive attribute, 0 .. b - 1.
        t: largest ratio, an integer.
        k: minimum group size; groups are larger if t requires it.
        progress: called with the number of records in groups, and the total.

    Guarantee:
        Given the groups, the probability of a bucket for one individual changes by a factor of at most t in either
        direction relative to its share in the whole table. An intruder who knows more than those shares, such as the
        values of other members of the group, is not covered. This is not differential privacy.

    Cost: O(n d (log n + block / k)) time with blocks of at most 5,000 records, O(n d) memory.

    Reference: the thesis, section 7.2 (Definition 15 for the distance).

    >>> from shoal.mechanisms.kanonymity.grouping_algorithms import ordered_buckets
    >>> made = close_groups(np.arange(12.0), ordered_buckets(np.arange(12), 2), t=2, k=4)
    >>> made.partition.sizes.tolist(), made.distance
    ([4, 4, 4], 1.5)
    """
    values = as_matrix(X)
    n = values.shape[0]
    bucket_count(t)
    least = check_k(k, n)
    if buckets.shape != (n,):
        raise InputError("there-bucket-per-record-shape", n=n, shape=buckets.shape)
    bucket_sizes = np.bincount(buckets)
    allotment = allot(bucket_sizes, t, least)
    labels = np.empty(n, dtype=np.int64)
    done = 0
    pending = [(np.arange(n), np.arange(len(allotment.sizes)))]
    while pending:
        records, groups = pending.pop()
        if records.size > _BLOCK and groups.size > 1:
            pending += _halves(values, buckets, allotment, records, groups)
            continue
        labels[records] = _fill(values[records], buckets[records], allotment, groups)
        done += records.size
        if progress:
            progress(done, n)
    return CloseGroups(
        Partition(labels, allotment.sizes), allotment, bucket_distance(allotment.counts, bucket_sizes)
    )


def bucket_distance(counts: NDArray[np.int64], bucket_sizes: NDArray[np.int64]) -> float:
    """Largest ratio, either way, between a bucket's share in a group (row) and in the table."""
    own = counts / counts.sum(axis=1, keepdims=True)
    table = bucket_sizes / bucket_sizes.sum()
    with np.errstate(divide="ignore"):
        return float(np.maximum(own / table, table / own).max())


def _halves(
    values: NDArray[np.float64],
    buckets: NDArray[np.int64],
    allotment: Allotment,
    records: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Two sets of groups, and the records for each: low and high along the side with the largest spread."""
    side = values[records]
    along = records[np.argsort(side[:, int(np.argmax(side.std(axis=0)))], kind="stable")]
    # every second group, so that both halves emphasise all buckets equally
    parts = (groups[::2], groups[1::2])
    needed = allotment.counts[parts[0]].sum(axis=0)
    low: list[NDArray[np.int64]] = []
    high: list[NDArray[np.int64]] = []
    for bucket, count in enumerate(needed.tolist()):
        own = along[buckets[along] == bucket]
        low.append(own[:count])
        high.append(own[count:])
    return [(np.concatenate(low), parts[0]), (np.concatenate(high), parts[1])]


def _fill(
    values: NDArray[np.float64], buckets: NDArray[np.int64], allotment: Allotment, groups: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The group of each record of a block; the groups need exactly these records."""
    labels = np.empty(values.shape[0], dtype=np.int64)
    waiting: dict[int, list[int]] = {}
    for group in groups[::-1].tolist():
        waiting.setdefault(int(allotment.emphasis[group]), []).append(group)
    left = [np.flatnonzero(buckets == bucket) for bucket in range(allotment.counts.shape[1])]
    for _ in range(groups.size):
        remaining = np.concatenate(left)
        centre = values[remaining].mean(axis=0)
        start = remaining[np.argmax(((values[remaining] - centre) ** 2).sum(axis=1))]
        emphasised = int(buckets[start])
        if not waiting.get(emphasised):
            emphasised = max(waiting, key=lambda bucket: len(waiting[bucket]))
        group = waiting[emphasised].pop()
        for bucket, count in enumerate(allotment.counts[group].tolist()):
            own = left[bucket]
            distances = ((values[own] - values[start]) ** 2).sum(axis=1)
            nearest = np.argsort(distances, kind="stable")[:count]
            labels[own[nearest]] = group
            left[bucket] = np.delete(own, nearest)
    return labels
