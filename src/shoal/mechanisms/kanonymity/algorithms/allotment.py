"""How many records of each bucket go into each group: bucket sizes, t and k come in, a table of counts leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError

Counts = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Allotment:
    """Records of each bucket in each group.

    Attributes:
        counts: one row per group, one column per bucket; rows add up to group sizes, columns to bucket sizes.
        emphasis: the bucket that each group holds as much of as it may.
    """

    counts: Counts
    emphasis: Counts

    @property
    def sizes(self) -> Counts:
        return np.asarray(self.counts.sum(axis=1))


def allot(bucket_sizes: Counts, t: int, k: int) -> Allotment:
    """As many groups as possible of at least k records, each within a factor t of the table in every bucket.

    Group i of k_i records takes n_ij records of bucket j, ⌈k_i p_j / t⌉ ≤ n_ij ≤ ⌊k_i p_j t⌋ with p_j the bucket's
    share of the table. Such counts with given row and column sums are a transportation problem; among its
    solutions the one is taken where groups hold most of the bucket they emphasise. Groups of one size that
    emphasise one bucket are treated as one, so the problem is small whatever the number of records.

    Where no solution exists for as many groups as k allows, fewer and larger groups are tried; a single group of
    all records always is one.

    Args:
        bucket_sizes: number of records of each bucket, none empty.
        t: largest ratio between a bucket's share in a group and in the table, a whole number.
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


def group_sizes(total: int, groups: int) -> Counts:
    """Sizes that differ by one at most.

    >>> group_sizes(11, 3).tolist()
    [4, 4, 3]
    """
    ends = -(-np.arange(groups + 1, dtype=np.int64) * total // groups)
    return np.diff(ends)


def bounds(sizes: Counts, bucket_sizes: Counts, t: int) -> tuple[Counts, Counts]:
    """Fewest and most records of each bucket (columns) in groups of these sizes (rows)."""
    total = int(bucket_sizes.sum())
    product = sizes[:, np.newaxis] * bucket_sizes[np.newaxis, :]
    return -(-product // (t * total)), np.minimum(product * t // total, sizes[:, np.newaxis])


def _possible(bucket_sizes: Counts, t: int, groups: int) -> bool:
    """Whether the bounds leave room for the row and column sums: quick to ask, and necessary."""
    smaller, larger = divmod(int(bucket_sizes.sum()), groups)
    sizes = np.array([smaller, smaller + 1]) if larger else np.array([smaller])
    times = np.array([groups - larger, larger])[: sizes.size, np.newaxis]
    low, high = bounds(sizes, bucket_sizes, t)
    rows = (low <= high).all() and (low.sum(axis=1) <= sizes).all() and (high.sum(axis=1) >= sizes).all()
    taken, room = (low * times).sum(axis=0), (high * times).sum(axis=0)
    return bool(rows and (taken <= bucket_sizes).all() and (room >= bucket_sizes).all())


def _allotted(bucket_sizes: Counts, t: int, groups: int) -> Allotment | None:
    """The counts for this many groups, or None where there are none."""
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


def _emphasis(bucket_sizes: Counts, groups: int) -> Counts:
    """Buckets in turn, each as often as its share asks for."""
    ends = np.cumsum(bucket_sizes) * groups
    middle = (2 * np.arange(groups, dtype=np.int64) + 1) * int(bucket_sizes.sum())
    in_order = np.searchsorted(2 * ends, middle, side="right")
    # alternating, so that neighbouring groups of unequal size are not all of one bucket
    rank = np.arange(groups) - np.searchsorted(in_order, in_order)
    often = np.bincount(in_order, minlength=bucket_sizes.size)[in_order]
    return in_order[np.lexsort((in_order, (2 * rank + 1) / often))].astype(np.int64)


def _transport(rows: Counts, columns: Counts, low: Counts, high: Counts, emphasis: Counts) -> Counts | None:
    """Whole numbers between the bounds with these row and column sums, most where a row has its emphasis."""
    from scipy.optimize import linprog

    r, c = low.shape
    gain = np.zeros((r, c))
    gain[np.arange(r), emphasis] = 1.0
    # the matrix is totally unimodular: every corner of the polytope, where the simplex method ends, is integral
    solution = linprog(
        -gain.ravel(),
        A_eq=np.vstack([np.repeat(np.eye(r), c, axis=1), np.tile(np.eye(c), r)]),
        b_eq=np.concatenate((rows, columns)).astype(np.float64),
        bounds=list(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)),
        method="highs-ds",
    )
    if solution.x is None or not solution.success:
        return None
    found: Counts = np.rint(solution.x).astype(np.int64).reshape(r, c)
    exact = (found.sum(axis=1) == rows).all() and (found.sum(axis=0) == columns).all()
    if not exact or (found < low).any() or (found > high).any():
        raise AssertionError(
            "the transportation problem has no integral solution: probably a bug, please report it."
        )
    return found


def _spread(totals: Counts, groups: int) -> Counts:
    """The same totals over equal groups: every group gets the even share of a bucket, rounded down or up."""
    counts = np.tile(totals // groups, (groups, 1))
    # a bucket has fewer left over than there are groups, so dealt in turn none gets two of it
    left_over = np.repeat(np.arange(totals.size), totals % groups)
    np.add.at(counts, (np.arange(left_over.size) % groups, left_over), 1)
    return counts
