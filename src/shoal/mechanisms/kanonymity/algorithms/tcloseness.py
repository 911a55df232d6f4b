"""t-closeness by bucketization: quasi-identifiers and buckets come in, groups that hide the bucket leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError
from shoal.mechanisms.kanonymity.algorithms.allotment import Allotment, allot
from shoal.mechanisms.kanonymity.algorithms.buckets import bucket_count
from shoal.partition import Partition
from shoal.partition.base import as_matrix, check_k

# Groups are chosen record by record in blocks of at most this many records; larger tables are halved first.
_BLOCK = 5_000
# called with how many records have a group and how many there are
Progress = Callable[[int, int], None]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CloseGroups:
    """Groups in which every bucket has nearly the share that it has in the table.

    Attributes:
        partition: the groups.
        allotment: how many records of each bucket they hold.
        distance: largest ratio, either way, between a bucket's share in a group and in the table; at most t.
    """

    partition: Partition
    allotment: Allotment
    distance: float


def close_groups(
    X: ArrayLike, buckets: NDArray[np.int64], t: int, k: int, *, progress: Progress | None = None
) -> CloseGroups:
    """Groups of at least k records that are close in X and t-close in the buckets of the confidential attribute.

    The counts of `allot` say how many records of each bucket a group takes. Which ones is chosen as in MDAV: the
    record farthest from the mean of those left starts a group that emphasises its bucket, and the nearest records
    of each bucket fill it. Tables above 5,000 records are first halved along their longest side, every half with
    the records its groups need.

    Args:
        X: quasi-identifiers, scaled for distances.
        buckets: bucket of the confidential attribute, 0 .. b - 1, see `shoal.mechanisms.kanonymity.algorithms.buckets`.
        t: largest ratio, a whole number.
        k: minimum group size; groups are larger where t asks for it.
        progress: called with the records that have a group, and their number.

    Guarantee:
        Given the groups, the odds of a bucket for one individual change by a factor of at most t in either
        direction against its share in the whole table. An intruder who knows more than those shares, such as the
        values of other members of the group, is not covered. This is not differential privacy.

    Cost: O(n d (log n + block / k)) time with blocks of at most 5,000 records, O(n d) memory.

    Reference: the thesis, section 7.2 (Definition 15 for the distance).

    >>> from shoal.mechanisms.kanonymity.algorithms.buckets import ordered_buckets
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
    """Two sets of groups, and the records for each: low and high along the side where records are most spread."""
    side = values[records]
    along = records[np.argsort(side[:, int(np.argmax(side.std(axis=0)))], kind="stable")]
    # every second group, so that both halves emphasise all buckets alike
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
