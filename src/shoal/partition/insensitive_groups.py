"""Insensitive microaggregation: replacing one record changes every cluster by at most one record.

A corner is an integer with one bit per attribute, the first attribute's bit the highest: 0 is the low end of the
attribute's domain, 1 the high end. There are 2^m corners, generated only as far as they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OptionError, closest
from shoal.partition.base import Partition, as_matrix, check_k, stable_order
from shoal.partition.multivariate import CornerAxis, distance_unit, numeric_ends, squared
from shoal.partition.reference import Progress
from shoal.partition.univariate import ranking

ORDERS = ("corners", "single")

# A sort costs about as much as this many selections: corners that are visited more often are sorted once.
_FEW_VISITS = 6
# Entries of all sorted corners together, 4 bytes each.
_SORTED_ENTRIES = 1 << 26
# Larger than any distance, also after subtracting distances.
_GONE = 1 << 62


def corner_sequence(attributes: int, rule: str = "alternate") -> Iterator[int]:
    """The corners in the order in which clusters are taken from them, determined by m and the rule only.

    `alternate` counts upwards and takes the opposite corner after each. `hamming` always continues with the corner
    that differs in most attributes from the previous one; ties go to the one farthest from the corner before that, and
    so on back to the first, then to the lowest number.

    Reference: thesis, section 6.3.3 (`hamming`); `alternate` is the sequence behind its printed tables.

    >>> [f"{corner:03b}" for corner in corner_sequence(3)]
    ['000', '111', '001', '110', '010', '101', '011', '100']
    >>> [f"{corner:03b}" for corner in corner_sequence(3, "hamming")]
    ['000', '111', '001', '110', '011', '100', '010', '101']
    """
    if rule not in CORNER_RULES:
        raise OptionError(
            "corners-not-known",
            option="corners",
            found=rule,
            allowed=tuple(CORNER_RULES),
            hint=closest(rule, CORNER_RULES),
        )
    return CORNER_RULES[rule](attributes)


def _alternate(attributes: int) -> Iterator[int]:
    everything = (1 << attributes) - 1
    for corner in range(1 << (attributes - 1)):
        yield corner
        yield everything ^ corner


def _hamming(attributes: int) -> Iterator[int]:
    """Opposite corners always follow each other, so only the first of each pair has to be chosen.

    Farthest from the opposite of the pair before means nearest to its first corner, and likewise further back.
    """
    everything = (1 << attributes) - 1
    firsts: list[int] = []
    taken: set[int] = set()
    for _ in range(1 << (attributes - 1)):
        corner = _nearest_free(firsts, taken, attributes) if firsts else 0
        firsts.append(corner)
        taken |= {corner, everything ^ corner}
        yield corner
        yield everything ^ corner


def _nearest_free(firsts: list[int], taken: set[int], attributes: int) -> int:
    free: list[int] = []
    distance = 0
    while not free:
        distance += 1
        flips = (sum(1 << bit for bit in bits) for bits in combinations(range(attributes), distance))
        free = [corner for flip in flips if (corner := firsts[-1] ^ flip) not in taken]
    for earlier in reversed(firsts[:-1]):
        if len(free) == 1:
            break
        nearest = min((corner ^ earlier).bit_count() for corner in free)
        free = [corner for corner in free if (corner ^ earlier).bit_count() == nearest]
    return min(free)


CORNER_RULES: Mapping[str, Callable[[int], Iterator[int]]] = {"alternate": _alternate, "hamming": _hamming}


def insensitive(
    X: ArrayLike,
    k: int,
    *,
    bounds: ArrayLike,
    order: str = "corners",
    corners: str = "alternate",
    progress: Progress | None = None,
) -> Partition:
    """Insensitive microaggregation of numeric records.

    Args:
        X: records, shape (n, d), inside the bounds.
        k: minimum cluster size.
        bounds: public domain (lo, hi) of each attribute; the corners of this box are the reference points.
        order: `corners`: cluster g takes the k records nearest to the g-th corner among the remaining ones,
            while at least 2k remain; the rest, k to 2k-1 records, is the last cluster. After the last corner the
            sequence restarts. `single`: insensitive MDAV, all records in one order by their distance to the low corner,
            clusters of k taken from both ends in turn.
        corners: sequence of the corners, see `shoal.partition.insensitive_groups.corner_sequence`.
        progress: called with (records done, total) from time to time; may raise to stop.

    Guarantee:
        Definition 12: if one record is replaced, cluster i of the new table differs from cluster i of the old
        one in at most one record (as collections of values), for every i. The number of clusters, ⌊n/k⌋, and their
        sizes depend on n and k only. That alone gives no privacy: all clusters may change at once, and the noise
        must cover that. Proof: docs/proofs/clusters.md#insensitive.

    Cost:
        Memory O(n d). Time O(n d) for each of the ⌊n/k⌋ clusters, or O(n log n) for each of the 2^d corners where
        they are visited often.

    Reference:
        thesis, Propositions 6 and 7, sections 6.3.2 and 6.3.3.

    >>> insensitive([[0, 0], [1, 1], [9, 9], [8, 9], [5, 5]], k=2, bounds=[(0, 10), (0, 10)]).labels.tolist()
    [0, 0, 1, 1, 1]
    """
    values = as_matrix(X)
    public = np.asarray(bounds, dtype=np.float64)
    if public.shape != (values.shape[1], 2):
        raise OptionError("bounds-shape-expected-lo-hi-each", found=public.shape, columns=values.shape[1])
    ends = [
        numeric_ends(column, float(lo), float(hi)) for column, (lo, hi) in zip(values.T, public, strict=True)
    ]
    return insensitive_mixed(ends, k, order=order, corners=corners, progress=progress)


def insensitive_mixed(
    ends: Sequence[CornerAxis],
    k: int,
    *,
    order: str = "corners",
    corners: str = "alternate",
    progress: Progress | None = None,
) -> Partition:
    """Insensitive microaggregation of records with attributes of any kind; see `insensitive`.

    Records at equal distance are ordered by their values, attribute by attribute, so that the order is total on record
    values: only identical records tie, and it does not matter which of them is taken.

    >>> from shoal.partition.multivariate import nominal_ends
    >>> colours = nominal_ends([0, 1, 1, 2], to_low=[0, 0.5, 1], to_high=[1, 0.5, 0], between=1)
    >>> insensitive_mixed([colours, numeric_ends([1, 2, 9, 9], 0, 10)], k=2).labels.tolist()
    [0, 0, 1, 1]
    """
    if order not in ORDERS:
        raise OptionError(
            "order-not-known", option="order", found=order, allowed=tuple(ORDERS), hint=closest(order, ORDERS)
        )
    n = ends[0].values.size
    least = check_k(k, n)
    sequence = corner_sequence(len(ends), corners)
    # ties in distance go to the lowest number, so records are numbered in the order of their values
    by_value = np.lexsort([one.values for one in reversed(ends)])
    remaining = _RemainingCorners(ends, by_value)
    if order == "single":
        found = _from_both_ends(remaining, least)
    else:
        wanted = list(islice(sequence, n // least - 1))
        found = _from_corners(remaining, least, wanted, progress)
    labels = np.empty(n, dtype=np.int64)
    labels[by_value] = found
    if progress is not None:
        progress(n, n)
    return Partition(labels, np.bincount(labels))


class _RemainingCorners:
    """The records not yet in a cluster, with their squared distances to the corners.

    The distance to a corner is that to the low corner plus the change from each attribute at its high end. All of
    these are integers, so the order of addition does not matter.
    """

    def __init__(self, ends: Sequence[CornerAxis], by_value: NDArray[np.int64]) -> None:
        n, bits = by_value.size, distance_unit(ends)
        self.number = np.arange(n)
        self.place = np.arange(n)
        self.alive = np.ones(n, dtype=bool)
        self.count = n
        self.to_low = np.zeros(n, dtype=np.int64)
        self.to_high = np.zeros(n, dtype=np.int64)
        self.change = np.empty((len(ends), n), dtype=np.int64)
        for j, one in enumerate(ends):
            low, high = squared(one.low[by_value], bits), squared(one.high[by_value], bits)
            self.to_low += low
            self.to_high += high
            np.subtract(high, low, out=self.change[j])

    def distances(self, corner: int) -> NDArray[np.int64]:
        """Distances to one corner; removed records are farther than all others."""
        d = self.change.shape[0]
        at_high = [j for j in range(d) if corner >> (d - 1 - j) & 1]
        if 2 * len(at_high) <= d:
            total = self.to_low.copy()
            for j in at_high:
                total += self.change[j]
            return total
        total = self.to_high.copy()
        for j in set(range(d)).difference(at_high):
            total -= self.change[j]
        return total

    def nearest(self, corner: int, size: int) -> NDArray[np.int64]:
        """Numbers of the nearest records in order of distance, ties in order of number."""
        far = self.distances(corner)
        if size == self.count:
            return self.number[stable_order(far)[:size]]
        limit = np.partition(far, size - 1)[size - 1]
        inside = np.flatnonzero(far < limit)
        inside = np.concatenate((inside, np.flatnonzero(far == limit)[: size - inside.size]))
        return self.number[inside[np.argsort(far[inside], kind="stable")]]

    def remove(self, members: NDArray[np.int64]) -> None:
        self.alive[members] = False
        self.count -= members.size
        gone = self.place[members]
        self.to_low[gone] = self.to_high[gone] = _GONE
        # compaction costs as much as a few scans, so it waits until a quarter is gone
        if 4 * self.count < 3 * self.number.size:
            keep = np.flatnonzero(self.alive[self.number])
            self.number, self.to_low, self.to_high = (
                self.number[keep],
                self.to_low[keep],
                self.to_high[keep],
            )
            self.change = np.ascontiguousarray(self.change[:, keep])
            self.place[self.number] = np.arange(keep.size)


def _from_both_ends(remaining: _RemainingCorners, k: int) -> NDArray[np.int64]:
    ranks = np.empty(remaining.count, dtype=np.int64)
    ranks[remaining.nearest(0, remaining.count)] = np.arange(remaining.count)
    return ranking(ranks, k, "middle").labels


def _from_corners(
    remaining: _RemainingCorners, k: int, sequence: Sequence[int], progress: Progress | None
) -> NDArray[np.int64]:
    """Cluster numbers of all records; `sequence` has at most one corner for each cluster but the last."""
    n = remaining.count
    clusters = n // k
    labels = np.full(n, clusters - 1, dtype=np.int64)
    queues: dict[int, _Queue] = {}
    for cluster in range(clusters - 1):
        which = cluster % len(sequence)
        members = queues[which].take(k, remaining.alive) if which in queues else None
        if members is None:
            visits = (clusters - 2 - cluster) // len(sequence) + 1
            size = k if visits <= _FEW_VISITS else max(_SORTED_ENTRIES // len(sequence), 8 * k)
            nearest = remaining.nearest(sequence[which], min(size, remaining.count))
            members = nearest[:k]
            if nearest.size > k:
                queues[which] = _Queue(nearest[k:])
        labels[members] = cluster
        remaining.remove(members)
        if progress is not None and cluster % 64 == 0:
            progress(n - remaining.count, n)
    return labels


class _Queue:
    """Records in order of their distance to one corner, including some removed since."""

    def __init__(self, order: NDArray[np.int64]) -> None:
        self.order = order.astype(np.int32) if order.size < 2**31 else order
        self.start = 0

    def take(self, k: int, alive: NDArray[np.bool_]) -> NDArray[np.int64] | None:
        """The next k remaining records, or None if the queue has fewer."""
        width = 2 * k + 32
        while True:
            window = self.order[self.start : self.start + width]
            there = np.flatnonzero(alive[window])
            if there.size >= k:
                self.start += int(there[k - 1]) + 1
                return window[there[:k]].astype(np.int64)
            if window.size < width:
                return None
            width *= 4
