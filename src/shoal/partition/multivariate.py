"""Multivariate microaggregation: MDAV and V-MDAV, on numbers and on mixed attributes, and insensitive microaggregation.

The distance of a record to a corner (thesis, Eq. 6.7) depends, for every attribute, only on the distances of the
record's value to the low and the high end of the attribute's domain, divided by the distance between the ends. Numbers
and concepts of a taxonomy differ only in how these distances are measured.

Insensitive: replacing one record changes every cluster by at most one record. A corner is then an integer with one bit
per attribute, the first attribute's bit the highest: 0 is the low end of the domain, 1 the high end. There are 2^m
corners, generated only as far as they are needed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError, closest
from shoal.kernels import plain
from shoal.numbers import Floats, Integers
from shoal.partition.base import (
    Partition,
    Progress,
    as_matrix,
    check_k,
    cutters,
    mdav_numpy,
    pieces_sum,
    rounded,
    rows_stood_for,
    squared_distances,
    stable_order,
)
from shoal.partition.univariate import ranking

if TYPE_CHECKING:
    from shoal.taxonomy import Taxonomy


_ALGORITHMS = ("auto", "numpy", "brute", "tree")

# Compiling the kernels takes longer than this many seconds of numpy computation.
_NUMPY_SECONDS = 1.0
_NUMPY_SECONDS_ONCE_COMPILED = 0.02
# Beyond this many attributes boxes hardly ever exclude anything; below it the tree detects that itself.
_TREE_ATTRIBUTES = 40
# Squared distances are integral multiples of a small unit; their sums stay below 2^60, so that a larger value that
# still
# fits can mark removed records.
_LARGEST_BITS = 60


def mdav(
    X: ArrayLike,
    k: int,
    *,
    algorithm: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> Partition:
    """Fixed-size multivariate microaggregation.

    While at least 3k records remain: the record farthest from their mean and its k-1 nearest are a cluster;
    then the record farthest from that one among the rest and its k-1 nearest are the next. If at least 2k
    remain, one more cluster around the record farthest from the mean. The rest, k to 2k-1 records, is the
    last cluster. Ties go to the lowest record index; fewer than 2k records are one cluster. Clusters are
    numbered in order of creation. Distances are Euclidean on the values as given: see `normalise`.

    Args:
        X: records, shape (n, d), finite.
        k: minimum cluster size.
        algorithm: how the clusters are found; the result is identical. `numpy` needs no compilation, `brute`
            scans all records with compiled code, `tree` searches a tree of boxes, `auto` uses numpy for small tables,
            brute in high dimension, and the tree otherwise, which switches to scanning if its boxes do not exclude
            enough.
        threads: maximum number of threads for scanning large tables; all processors by default.
        progress: called with (records done, total) from time to time; may raise to stop.

    Guarantee: none by itself; noise added to the cluster means protects given the partition.
    Cost: O(n d) memory; O(n^2 d / k) time by scanning, near O(n log n) by the tree in few dimensions. The first
        large table of an installation waits some seconds for compilation, later ones do not.
    Reference: MDAI-2017, Algorithm 1.

    >>> mdav([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]], k=2).labels.tolist()
    [1, 1, 2, 2, 0, 0]
    """
    if algorithm not in _ALGORITHMS:
        raise OptionError(
            "algorithm-not-known",
            option="algorithm",
            found=algorithm,
            allowed=tuple(_ALGORITHMS),
            hint=closest(algorithm, _ALGORITHMS),
        )
    if threads is not None and threads < 1:
        raise OptionError("threads-least-1", option="threads", found=threads)
    values = as_matrix(X)
    least = check_k(k, values.shape[0])
    labels = _labels(values, least, algorithm, threads or os.cpu_count() or 1, progress)
    return Partition(labels, np.bincount(labels))


def _labels(
    values: NDArray[np.float64], k: int, algorithm: str, threads: int, progress: Progress | None
) -> NDArray[np.int64]:
    n, d = values.shape
    if algorithm == "auto":
        algorithm = _choice(n, d, k)
        may_scan = True
    else:
        may_scan = False
    if algorithm == "numpy":
        return mdav_numpy(values, k, progress)
    if algorithm == "brute":
        from shoal.partition.nearest import mdav_brute

        return mdav_brute(values, k, threads, progress)
    from shoal.partition.nearest import mdav_tree

    return mdav_tree(values, k, progress, scan_threads=threads if may_scan else None)


def prepares_kernels(n: int, d: int, k: int) -> bool:
    """Whether `mdav` must load compiled code first, which takes some seconds once per installation."""
    return "shoal.partition.nearest" not in sys.modules and _choice(n, d, k) != "numpy"


def _choice(n: int, d: int, k: int) -> str:
    """The initial algorithm, chosen by the shape of the table and by what is compiled already."""
    n = rows_stood_for(n)
    compiled = "shoal.partition.nearest" in sys.modules
    limit = _NUMPY_SECONDS_ONCE_COMPILED if compiled else _NUMPY_SECONDS
    if numpy_seconds(n, d, k) <= limit or plain():
        return "numpy"
    return "brute" if d > _TREE_ATTRIBUTES else "tree"


def numpy_seconds(n: int, d: int, k: int) -> float:
    """Estimated time of the numpy algorithm: n/2k rounds, each with a fixed cost and four scans."""
    return n / (2 * k) * (2e-4 + 2.5e-9 * n * (d + 4))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Concepts:
    """One nominal attribute: its tree, and the squared distances to the concepts needed so far.

    There is no table of all pairs: a row of distances is computed when a concept first becomes a reference point.
    """

    tree: Taxonomy
    known: dict[int, Floats] = field(default_factory=dict)

    def squared_to(self, code: int) -> Floats:
        if code not in self.known:
            self.known[code] = (self.tree.distances_to(code) / (self.tree.width or 1.0)) ** 2
        return self.known[code]


def mdav_mixed(
    numbers: ArrayLike | None,
    codes: Sequence[Integers],
    trees: Sequence[Taxonomy],
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> Partition:
    """Fixed-size clusters of similar mixed records, by the same rule as `mdav`.

    The squared distance of two records is the sum over attributes of squared differences, for numbers as given
    (divide them by their public widths), for concepts their semantic distance over the distance of the two ends of the
    domain. The average record has the mean of every number and the least marginal value of every nominal attribute.

    Args:
        numbers: the numeric attributes, one column each, or None.
        codes: for each nominal attribute the concept of every record.
        trees: their taxonomies.
        k: minimum cluster size; all clusters but the last one have exactly k records.

    Cost:
        Time n²/k per attribute, memory n per attribute; no loop over records.

    Reference:
        The thesis, Equation 6.7 (distance) and section 2.2 (MDAV).

    >>> from shoal.taxonomy import Taxonomy
    >>> tree = Taxonomy.flat(["a", "b"])
    >>> mdav_mixed([[0.0], [0.1], [0.0], [0.1]], [tree.encode(["a", "b", "a", "b"])], [tree], 2).labels.tolist()
    [1, 0, 1, 0]
    """
    found = [np.asarray(column, dtype=np.int64) for column in codes]
    if numbers is None and not found:
        raise InputError("there-no-attribute-group")
    n = found[0].size if numbers is None else as_matrix(numbers).shape[0]
    matrix = np.zeros((n, 0)) if numbers is None else as_matrix(numbers)
    check_k(k, n)
    work = _RemainingMixed(
        np.arange(n), np.ascontiguousarray(matrix.T), found, [_Concepts(tree) for tree in trees]
    )
    labels = np.empty(n, dtype=np.int64)
    cluster = 0
    while work.size >= 2 * k:
        several = work.size >= 3 * k
        far = int(np.argmax(work.distances_to_average()))
        reference = work.record(far)
        cluster = _take(work, work.distances(*reference), k, labels, cluster)
        if several:
            opposite = work.record(int(np.argmax(work.distances(*reference))))
            cluster = _take(work, work.distances(*opposite), k, labels, cluster)
        if progress is not None:
            progress(n - work.size, n)
    labels[work.members] = cluster
    return Partition(labels, np.bincount(labels, minlength=cluster + 1).astype(np.int64))


class _RemainingMixed:
    """The records without a cluster, stored contiguously for every pass."""

    def __init__(
        self, members: Integers, numbers: Floats, codes: list[Integers], concepts: list[_Concepts]
    ) -> None:
        self.members, self.numbers, self.codes, self.concepts = members, numbers, codes, concepts
        self.counts = [
            np.bincount(column, minlength=known.tree.size)
            for column, known in zip(codes, concepts, strict=True)
        ]

    @property
    def size(self) -> int:
        return int(self.members.size)

    def record(self, place: int) -> tuple[Floats, list[int]]:
        return self.numbers[:, place].copy(), [int(column[place]) for column in self.codes]

    def distances(self, numbers: Floats, codes: list[int]) -> Floats:
        """Squared distances of all remaining records to one."""
        total = np.zeros(self.size)
        for column, value in zip(self.numbers, numbers, strict=True):
            total += (column - value) ** 2
        for column, known, code in zip(self.codes, self.concepts, codes, strict=True):
            total += known.squared_to(code)[column]
        return total

    def distances_to_average(self) -> Floats:
        middles = []
        for known, counts in zip(self.concepts, self.counts, strict=True):
            candidates = known.tree.candidates(generalise=False)
            marginal = known.tree.marginalities(counts)[candidates]
            middles.append(int(candidates[np.argmin(marginal)]))
        return self.distances(self.numbers.mean(axis=1), middles)

    def remove(self, places: NDArray[np.intp]) -> None:
        keep = np.ones(self.size, dtype=np.bool_)
        keep[places] = False
        for number, column in enumerate(self.codes):
            self.counts[number] -= np.bincount(column[places], minlength=self.counts[number].size)
            self.codes[number] = column[keep]
        self.members, self.numbers = self.members[keep], self.numbers[:, keep]


def _take(work: _RemainingMixed, distances: Floats, k: int, labels: Integers, cluster: int) -> int:
    """Label the k nearest records as the next cluster; ties go to the lowest record."""
    # records are in input order, so that a stable choice among the nearest is a choice by index
    bound = np.partition(distances, k - 1)[k - 1]
    closer = np.flatnonzero(distances < bound)
    tied = np.flatnonzero(distances == bound)[: k - closer.size]
    places = np.concatenate([closer, tied])
    labels[work.members[places]] = cluster
    work.remove(places)
    return cluster + 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CornerAxis:
    """Distances of one attribute to a corner.

    Attributes:
        values: numbers that order records at equal distance, different for different values.
        low: distance of each record's value to the low end, in units of the distance between the ends.
        high: the same to the high end.
        reach: public upper bound of both, independent of the records.
    """

    values: NDArray[np.int64] | NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    reach: float = 1.0


def numeric_ends(values: ArrayLike, lo: float, hi: float) -> CornerAxis:
    """Corner distances of numbers inside their public domain [lo, hi].

    >>> ends = numeric_ends([0, 3, 10], 0, 10)
    >>> ends.low.tolist(), ends.high.tolist()
    ([0.0, 0.3, 1.0], [1.0, 0.7, 0.0])
    """
    numbers = np.asarray(values)
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise OptionError("public-domain-needs-lo-hi-both", found=lo, hi=hi)
    # written so that a missing value counts as outside
    outside = ~((numbers >= lo) & (numbers <= hi))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("row-outside-domain", row=row + 1, found=numbers[row], lo=lo, hi=hi)
    width = hi - lo
    return CornerAxis(numbers, (numbers - lo) / width, (hi - numbers) / width)


def nominal_ends(codes: ArrayLike, to_low: ArrayLike, to_high: ArrayLike, between: float) -> CornerAxis:
    """Corner distances of values of a finite public domain.

    Args:
        codes: number of each record's value.
        to_low: distance of value 0, 1, ... of the domain to the low end.
        to_high: distance of value 0, 1, ... of the domain to the high end.
        between: distance of the two ends; 0 in a domain of one value, which needs no division.

    >>> ends = nominal_ends([0, 2, 1], to_low=[0.0, 0.5, 0.8], to_high=[0.8, 0.6, 0.0], between=0.8)
    >>> ends.low.tolist(), ends.high.round(2).tolist(), ends.reach
    ([0.0, 1.0, 0.625], [1.0, 0.0, 0.75], 1.0)
    """
    numbers = np.asarray(codes, dtype=np.int64)
    low, high = np.asarray(to_low, dtype=np.float64), np.asarray(to_high, dtype=np.float64)
    outside = (numbers < 0) | (numbers >= low.size)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError("row-code-domain-values-0", row=row + 1, found=numbers[row], most=low.size - 1)
    unit = between if between > 0 else 1.0
    reach = float(max(low.max(), high.max())) / unit
    return CornerAxis(numbers, (low / unit)[numbers], (high / unit)[numbers], reach)


def distance_unit(ends: Sequence[CornerAxis]) -> int:
    """Number of fractional bits of a squared distance: as many as sums over all attributes allow.

    >>> distance_unit([numeric_ends([1], 0, 2)] * 4)
    57
    """
    most = sum(math.ceil(one.reach) ** 2 for one in ends)
    return _LARGEST_BITS - most.bit_length()


def squared(distances: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Squares in units of 2^-bits, rounded to nearest: functions of the value alone, with exact sums.

    >>> squared(np.array([0.5, 1.0]), 4).tolist()
    [4, 16]
    """
    exact = distances * distances
    exact *= 2.0**bits
    return np.rint(exact, out=exact).astype(np.int64)


def vmdav(X: ArrayLike, k: int, gamma: float = 0.2, *, progress: Progress | None = None) -> Partition:
    """Variable-size multivariate microaggregation.

    While at least k records are free: the free record farthest from the mean of the whole table and its k-1 nearest
    free records are a cluster. Then, as long as it has fewer than 2k-1 records, the cluster may grow: take the free
    record with the smallest distance d_in to a member of the cluster, and let d_out be its distance to the nearest
    other free record; it joins if d_in < gamma d_out, otherwise the cluster is complete. If one free record
    remains, d_out is infinite, so it joins unless gamma is 0. Fewer than k free records at the end join, in record
    order, the cluster with the nearest mean (of its members before this step).

    Ties go to the lowest record index, and to the cluster made first. Clusters are numbered in order of
    creation. Sizes are k to 2k-1, except that clusters near leftovers may be larger. gamma = 0 gives
    clusters of exactly k and leftovers.

    Args:
        X: records, shape (n, d), finite.
        k: minimum cluster size.
        gamma: gain factor, at least 0; about 0.2 for scattered data, about 1.1 for clustered data.
        progress: called with (records done, total) after every cluster; may raise to stop.

    Guarantee: none by itself; noise added to the cluster means protects given the partition.
    Cost: O(n^2 d) time at worst, O(n d) memory.
    Reference: the gain factor of variable-size MDAV (V-MDAV).

    >>> vmdav([[0.0], [0.1], [0.2], [9.0], [9.1], [20.0]], k=2, gamma=1.0).labels.tolist()
    [1, 1, 1, 0, 0, 0]
    """
    if not np.isfinite(gamma) or gamma < 0:
        raise OptionError("gamma-number-least-0", option="gamma", found=gamma)
    values = as_matrix(X)
    n = values.shape[0]
    least = check_k(k, n)
    columns = np.ascontiguousarray(values.T)
    centre = rounded(pieces_sum(columns, cutters(columns))) / n
    labels = np.full(n, -1, dtype=np.int64)
    free = np.arange(n)
    by_distance = squared_distances(columns, centre)
    cluster = 0
    while free.size >= least:
        pole = free[np.argmax(by_distance[free])]
        members = _grown(columns, free, int(pole), least, gamma)
        labels[members] = cluster
        cluster += 1
        free = free[labels[free] < 0]
        if progress is not None:
            progress(n - free.size, n)
    if free.size:
        means = Partition.from_labels(labels[labels >= 0]).centroids(values[labels >= 0])
        for record in free:
            labels[record] = np.argmin(squared_distances(means.T, values[record]))
        if progress is not None:
            progress(n, n)
    return Partition(labels, np.bincount(labels))


def _grown(
    columns: NDArray[np.float64], free: NDArray[np.int64], pole: int, k: int, gamma: float
) -> list[int]:
    """The pole, its k-1 nearest free records, and those admitted by the gain factor."""
    nearby = columns[:, free]
    to_pole = squared_distances(nearby, columns[:, pole])
    to_pole[np.searchsorted(free, pole)] = -1.0
    limit = np.partition(to_pole, k - 1)[k - 1]
    positions = np.flatnonzero(to_pole < limit).tolist()
    positions += np.flatnonzero(to_pole == limit)[: k - len(positions)].tolist()
    if k == 1 or free.size == k:
        return [int(free[position]) for position in positions]
    inside = np.zeros(free.size, dtype=bool)
    inside[positions] = True
    to_cluster = np.full(free.size, np.inf)
    for position in positions:
        np.minimum(to_cluster, squared_distances(nearby, nearby[:, position]), out=to_cluster)
    while len(positions) < min(2 * k - 1, free.size):
        to_cluster[inside] = np.inf
        candidate = int(np.argmin(to_cluster))
        from_candidate = squared_distances(nearby, nearby[:, candidate])
        others = ~inside
        others[candidate] = False
        out = np.sqrt(from_candidate[others].min()) if others.any() else np.inf
        if not np.sqrt(to_cluster[candidate]) < gamma * out:
            break
        positions.append(candidate)
        inside[candidate] = True
        np.minimum(to_cluster, from_candidate, out=to_cluster)
    return [int(free[position]) for position in positions]


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
        corners: sequence of the corners, see `shoal.partition.multivariate.corner_sequence`.
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
