"""Partitions and the shared parts of all algorithms: checked labels, sorted order, normalised attributes, exact sums.

MDAV in numpy is the reference for all compiled kernels. Each value is split into a few pieces, every piece a multiple
of a power of two so coarse that n of them add up without rounding. Sums of pieces are then exact in any order, so a
centroid is the same in every algorithm, on any number of threads, and for any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arguments import as_names
from shoal.display import internal
from shoal.errors import InputError, OptionError, closest

# Squared distances between such values, summed over many attributes, are still finite.
_LARGEST = 1e150
_STANDS_FOR: ContextVar[float] = ContextVar("_STANDS_FOR", default=1.0)
_SMALL = 4096
_WORD = 64
# code of a missing value in a pattern
MISSING = -1
# number of elements handled at once, so that intermediate arrays stay in the processor's cache
_PIECE = 1 << 15
_WAYS = ("none", "domain", "zscore")


@internal(".labels and .sizes")
@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Disjoint clusters that cover every record.

    Attributes:
        labels: cluster number of each record, in input order, 0 .. number of clusters - 1.
        sizes: number of records of each cluster.
        columns: names of the attributes the partition was made on (empty if unknown).
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    columns: tuple[str, ...] = ()

    @classmethod
    def from_labels(cls, labels: ArrayLike, columns: str | Sequence[str] = ()) -> Partition:
        """A partition from any integer labels; clusters are numbered in order of their label.

        >>> Partition.from_labels([7, 3, 7]).sizes.tolist()
        [1, 2]
        """
        raw = np.asarray(labels)
        if raw.ndim != 1 or raw.size == 0:
            raise InputError("labels-non-empty-dimensional-array-entry")
        _, inverse, counts = np.unique(raw, return_inverse=True, return_counts=True)
        return cls(inverse.astype(np.int64), counts.astype(np.int64), as_names(columns))

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.labels.size)

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Exact sum of integer values per cluster: shape (clusters,) or (clusters, columns)."""
        if values.ndim == 1:
            out = np.zeros(len(self), dtype=np.int64)
            np.add.at(out, self.labels, values)
            return out
        return np.stack([self.sums(column) for column in values.T], axis=1)

    def centroids(self, X: ArrayLike) -> NDArray[np.float64]:
        """Mean of each cluster: shape (clusters,) for one column, (clusters, columns) for a table.

        >>> Partition.from_labels([0, 0, 1]).centroids([1.0, 3.0, 5.0]).tolist()
        [2.0, 5.0]
        """
        values = np.asarray(X, dtype=np.float64)
        if values.shape[0] != self.n:
            raise InputError("table-rows-partition-records", found=values.shape[0], n=self.n)
        if values.ndim == 1:
            return np.bincount(self.labels, weights=values, minlength=len(self)) / self.sizes
        return np.stack([self.centroids(column) for column in values.T], axis=1)


def as_matrix(X: ArrayLike) -> NDArray[np.float64]:
    """Records as a finite float64 matrix (n, d); a vector is one attribute."""
    values = np.asarray(X, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError("records-must-be-a-table")
    if values.shape[0] == 0:
        raise InputError("there-no-records-group")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError("row-column-missing-infinite", row=row + 1, column=column + 1)
    if np.abs(values).max() > _LARGEST:
        row, column = np.argwhere(np.abs(values) > _LARGEST)[0]
        raise InputError(
            "row-column-too-large-square", row=row + 1, column=column + 1, found=values[row, column]
        )
    return values


def check_k(k: int, n: int) -> int:
    """The minimum cluster size as a plain integer, or an error that states the limits."""
    if isinstance(k, bool) or int(k) != k:
        raise OptionError("k-whole-number", option="k", found=k)
    if k < 1:
        raise OptionError("k-least-1", option="k", found=k)
    if k > n:
        raise OptionError("k-too-large", option="k", k=k, n=n)
    return int(k)


@contextmanager
def standing_for(rows: float) -> Iterator[None]:
    """Make every algorithm choose its code path as for a table with so many times the rows; clusters are unchanged.

    Small tables are not worth compiled code. A trial with a few rows of a large table must not count as small.
    """
    token = _STANDS_FOR.set(rows)
    try:
        yield
    finally:
        _STANDS_FOR.reset(token)


def rows_stood_for(n: int) -> int:
    """The number of rows by which the code path is chosen.

    >>> with standing_for(10):
    ...     rows_stood_for(500)
    5000
    """
    return round(n * _STANDS_FOR.get())


def stable_order(values: NDArray[Any]) -> NDArray[np.int64]:
    """Record numbers in ascending order of value, equal values in input order: a stable argsort.

    Sorting plain integers is several times faster than sorting an index by them, so value and index are packed into
    one 64-bit word. Where both do not fit, the lowest bits of the value are dropped and the few neighbours left in the
    wrong order are sorted afterwards.

    Cost: one value sort of n words; n words of memory besides the input, up to 4n where values and index do not fit.

    >>> stable_order(np.array([3.5, -1.0, 3.5, 0.0])).tolist()
    [1, 3, 0, 2]
    """
    n = values.size
    if n < _SMALL:
        return np.argsort(values, kind="stable").astype(np.int64, copy=False)
    low, high = (int(_keys(np.array([bound]))[0]) for bound in (values.min(), values.max()))
    index_bits = int(n - 1).bit_length()
    dropped = max((high - low).bit_length() + index_bits - _WORD, 0)
    packed = np.empty(n, dtype=np.uint64)
    index = np.arange(min(_PIECE, n), dtype=np.uint64)
    for start in range(0, n, _PIECE):
        piece = _keys(values[start : start + _PIECE])
        piece -= np.uint64(low)
        piece >>= np.uint64(dropped)
        piece <<= np.uint64(index_bits)
        piece |= index[: piece.size] + np.uint64(start)
        packed[start : start + _PIECE] = piece
    packed.sort()
    packed &= np.uint64((1 << index_bits) - 1)
    order = packed.view(np.int64)
    return _repaired(order, values, low, dropped) if dropped else order


def _keys(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Unsigned 64-bit integers in the order of the values."""
    if values.dtype.kind == "u":
        return values.astype(np.uint64)
    if values.dtype.kind == "f":
        # + 0.0 turns -0.0 into 0.0; negative numbers have all their bits flipped, others only the sign
        bits = (values.astype(np.float64) + 0.0).view(np.int64)
        return (bits ^ ((bits >> 63) | np.int64(-(2**63)))).view(np.uint64)
    return (values.astype(np.int64) ^ np.int64(-(2**63))).view(np.uint64)


def _repaired(order: NDArray[np.int64], values: NDArray[Any], low: int, dropped: int) -> NDArray[np.int64]:
    """Sort the records that differ only in the dropped bits."""
    ordered = values[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    if wrong.size == 0:
        return order
    if wrong.size > order.size // 64:
        return np.argsort(values, kind="stable").astype(np.int64, copy=False)
    kept = (_keys(ordered) - np.uint64(low)) >> np.uint64(dropped)
    runs = np.unique(kept[wrong])
    starts = np.searchsorted(kept, runs, side="left").tolist()
    ends = np.searchsorted(kept, runs, side="right").tolist()
    for start, end in zip(starts, ends, strict=True):
        run = order[start:end]
        order[start:end] = run[np.argsort(values[run], kind="stable")]
    return order


def normalise(X: ArrayLike, how: str, widths: ArrayLike | None = None) -> NDArray[np.float64]:
    """Scale the attributes for distance computations.

    Args:
        X: records, shape (n, d).
        how: `none` keeps the values; `domain` divides attribute j by its public width, the only scaling that is
            not data-dependent; `zscore` subtracts the mean and divides by the population standard deviation (divisor
            n), and by 1 where an attribute is constant.
        widths: width of the public domain of each attribute, for `domain`.

    >>> normalise([[1.0, 7.0], [3.0, 7.0]], "zscore").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    values = as_matrix(X)
    if how == "none":
        return values
    if how == "domain":
        return values / _checked_widths(widths, values.shape[1])
    if how == "zscore":
        constant = values.min(axis=0) == values.max(axis=0)
        # The mean of equal numbers can have a rounding error; the value itself cannot.
        centre = np.where(constant, values[0], values.mean(axis=0))
        spread = values.std(axis=0)
        return np.asarray((values - centre) / np.where(constant | (spread == 0.0), 1.0, spread))
    raise OptionError(
        "how-not-scaling", option="how", found=how, allowed=tuple(_WAYS), hint=closest(how, _WAYS)
    )


def _checked_widths(widths: ArrayLike | None, columns: int) -> NDArray[np.float64]:
    if widths is None:
        raise OptionError("how-domain-needs-widths-width-public", option="how")
    result = np.asarray(widths, dtype=np.float64)
    if result.shape != (columns,):
        raise OptionError("widths-shape-expected-width-per-attribute", found=result.shape, columns=columns)
    if not (np.isfinite(result) & (result > 0)).all():
        column = int(np.flatnonzero(~(np.isfinite(result) & (result > 0)))[0])
        raise OptionError("width-not-above-0", column=column + 1, found=result[column])
    return result


def given(labels: ArrayLike, k: int | None = None) -> Partition:
    """The partition given by the caller's labels.

    Args:
        labels: one label per record (integers or text); clusters are numbered in order of their label.
        k: refuse the labels if a cluster has fewer records than this.

    >>> given(["b", "a", "b", "a"], k=2).labels.tolist()
    [1, 0, 1, 0]
    """
    raw = np.asarray(labels)
    if raw.dtype.kind == "f" and not np.isfinite(raw).all():
        raise InputError("labels-not-missing")
    partition = Partition.from_labels(raw)
    if k is not None:
        smallest = int(np.argmin(partition.sizes))
        least = check_k(k, partition.n)
        if partition.sizes[smallest] < least:
            label = np.unique(raw)[smallest].item()
            raise InputError(
                "cluster-records-fewer-than-k", cluster=label, found=partition.sizes[smallest], least=least
            )
    return partition


# 4 pieces hold 4 * (52 - log2 n) bits: at n = 1e6 exact for values that span 22 orders of magnitude.
PIECES = 4
Progress = Callable[[int, int], None]


def cutters(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The constants M, shape (d, PIECES), such that (x + M) - M is the leading piece of x.

    Args:
        columns: values, shape (d, n): the largest set of records that will ever be summed.
    """
    d, n = columns.shape
    headroom = int(n).bit_length() + 1
    result = np.zeros((d, PIECES))
    for j in range(d):
        exponent = int(np.frexp(np.abs(columns[j]).max())[1])
        for piece in range(PIECES):
            result[j, piece] = np.ldexp(1.5, exponent + headroom)
            exponent += headroom - 52
    return result


def pieces_sum(columns: NDArray[np.float64], cut: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums of the pieces of each column, shape (d, PIECES)."""
    result = np.zeros(cut.shape)
    for j in range(columns.shape[0]):
        rest = columns[j]
        for piece in range(PIECES):
            lead = (rest + cut[j, piece]) - cut[j, piece]
            result[j, piece] = lead.sum()
            rest = rest - lead
    return result


def rounded(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the pieces of each column, rounded once to a double.

    >>> column = np.array([[1e16, 1.0, -1e16]])
    >>> rounded(pieces_sum(column, cutters(column))).tolist()
    [1.0]
    """
    total = sums[:, PIECES - 1]
    rest = np.zeros(sums.shape[0])
    for piece in range(PIECES - 2, -1, -1):
        lead = sums[:, piece]
        new = lead + total
        part = new - lead
        rest = ((lead - (new - part)) + (total - part)) + rest
        total = new
    result: NDArray[np.float64] = total + rest
    return result


def squared_distances(columns: NDArray[np.float64], point: NDArray[np.float64]) -> NDArray[np.float64]:
    """(x0-p0)^2 + (x1-p1)^2 + ..., added in this order: every kernel must give the same bits."""
    total: NDArray[np.float64] = columns[0] - point[0]
    total *= total
    for j in range(1, columns.shape[0]):
        difference = columns[j] - point[j]
        difference *= difference
        total += difference
    return total


class _RemainingByIndex:
    """The records not yet in a cluster, in index order; removed ones are marked, then compacted away."""

    def __init__(self, columns: NDArray[np.float64]) -> None:
        self.columns = columns
        self.index = np.arange(columns.shape[1])
        self.dead = np.zeros(columns.shape[1], dtype=bool)
        self.count = columns.shape[1]
        self.cut = cutters(columns)
        self.sums = pieces_sum(columns, self.cut)

    def mean(self) -> NDArray[np.float64]:
        centre: NDArray[np.float64] = rounded(self.sums) / self.count
        return centre

    def farthest(self, point: NDArray[np.float64]) -> int:
        """Position of the record farthest from a point; argmax breaks ties by lowest index."""
        distances = squared_distances(self.columns, point)
        distances[self.dead] = -1.0
        return int(np.argmax(distances))

    def take_cluster(self, pole: int, k: int) -> NDArray[np.int64]:
        """Remove a pole and its k-1 nearest by (distance, index); returns their positions."""
        distances = squared_distances(self.columns, self.columns[:, pole])
        distances[self.dead] = np.inf
        distances[pole] = -1.0
        limit = np.partition(distances, k - 1)[k - 1]
        inside = np.flatnonzero(distances < limit)
        tied = np.flatnonzero(distances == limit)[: k - inside.size]
        members = np.concatenate([inside, tied])
        self.sums -= pieces_sum(self.columns[:, members], self.cut)
        self.dead[members] = True
        self.count -= k
        return members

    def sweep(self) -> None:
        """Drop removed records once they are an eighth: scanning them costs more than copying the rest."""
        if 8 * self.count < 7 * self.index.size:
            alive = ~self.dead
            self.columns = np.ascontiguousarray(self.columns[:, alive])
            self.index = self.index[alive]
            self.dead = np.zeros(self.count, dtype=bool)


def mdav_numpy(X: NDArray[np.float64], k: int, progress: Progress | None = None) -> NDArray[np.int64]:
    """Cluster number of each record, in order of creation."""
    n = X.shape[0]
    labels = np.empty(n, dtype=np.int64)
    remaining = _RemainingByIndex(np.ascontiguousarray(X.T))
    cluster = 0

    def cut_off(pole: int) -> None:
        nonlocal cluster
        labels[remaining.index[remaining.take_cluster(pole, k)]] = cluster
        cluster += 1

    while remaining.count >= 3 * k:
        first = remaining.farthest(remaining.mean())
        cut_off(first)
        cut_off(remaining.farthest(remaining.columns[:, first]))
        remaining.sweep()
        if progress is not None:
            progress(n - remaining.count, n)
    if remaining.count >= 2 * k:
        cut_off(remaining.farthest(remaining.mean()))
    labels[remaining.index[~remaining.dead]] = cluster
    if progress is not None:
        progress(n, n)
    return labels
