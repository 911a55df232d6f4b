"""The value every partition algorithm returns: which cluster each record belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.display import internal
from shoal.errors import InputError, OptionError

# Squared distances between such values, summed over many attributes, are still finite.
_LARGEST = 1e150
_STANDS_FOR: ContextVar[float] = ContextVar("_STANDS_FOR", default=1.0)


@internal(".labels and .sizes")
@dataclass(frozen=True, slots=True, eq=False)
class Partition:
    """Disjoint clusters that cover every record.

    Attributes:
        labels: cluster number of each record, in input order, 0 .. number of clusters - 1.
        sizes: number of records of each cluster.
        columns: names of the attributes the partition was made on (empty when unknown).
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    columns: tuple[str, ...] = ()

    @classmethod
    def from_labels(cls, labels: ArrayLike, columns: tuple[str, ...] = ()) -> Partition:
        """A partition from any integer labels; clusters are numbered in order of their label.

        >>> Partition.from_labels([7, 3, 7]).sizes.tolist()
        [1, 2]
        """
        raw = np.asarray(labels)
        if raw.ndim != 1 or raw.size == 0:
            raise InputError("labels-non-empty-dimensional-array-entry")
        _, inverse, counts = np.unique(raw, return_inverse=True, return_counts=True)
        return cls(inverse.astype(np.int64), counts.astype(np.int64), columns)

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
    """Records as a finite float64 matrix (n, d); one attribute may come as a vector."""
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
    """The minimum cluster size as a plain integer, or an error that names the limits."""
    if isinstance(k, bool) or int(k) != k:
        raise OptionError("k-whole-number", option="k", found=k)
    if k < 1:
        raise OptionError("k-least-1", option="k", found=k)
    if k > n:
        raise OptionError("k-too-large", option="k", k=k, n=n)
    return int(k)


@contextmanager
def standing_for(rows: float) -> Iterator[None]:
    """Has every algorithm take the way of a table with so many times the rows; the clusters are the same.

    Small tables are not worth compiled code. A trial with a few rows of a large one must not be taken for such.
    """
    token = _STANDS_FOR.set(rows)
    try:
        yield
    finally:
        _STANDS_FOR.reset(token)


def rows_stood_for(n: int) -> int:
    """The number of rows by which the way is chosen.

    >>> with standing_for(10):
    ...     rows_stood_for(500)
    5000
    """
    return round(n * _STANDS_FOR.get())
