"""Equal rows: columns come in, a group number per row and the group sizes leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

# a table of this many places for each value is quicker than a sort
_COUNTED = 8


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """Which rows are identical.

    Attributes:
        labels: group number of each row.
        sizes: number of rows of each group.
        first: number of one row of each group.
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    first: NDArray[np.int64]


def row_groups(columns: Iterable[NDArray[np.float64] | NDArray[np.int64]]) -> RowGroups:
    """Group identical rows; missing values (NaN) equal each other.

    At most one sort per column instead of one sort of whole rows: no row is ever copied. Groups are numbered in the
    order of their values.

    >>> row_groups([np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0])]).sizes.tolist()
    [2, 1]
    """
    labels: NDArray[np.int64] | None = None
    for column in columns:
        codes = places(column)
        # both factors are below the number of rows, so the product stays far inside 64 bits
        labels = codes if labels is None else places(labels * (codes.max(initial=0) + 1) + codes)
    if labels is None:
        raise ValueError("at least one column is needed to compare rows.")
    sizes = np.bincount(labels)
    first = np.empty(sizes.size, dtype=np.int64)
    # the last one written stays: the first row of each group
    first[labels[::-1]] = np.arange(labels.size)[::-1]
    return RowGroups(labels, sizes.astype(np.int64), first)


def places(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of the different values each one is, in ascending order.

    Whole numbers that lie close together are counted instead of sorted.

    >>> places(np.array([7, 5, 7, 9])).tolist()
    [1, 0, 1, 2]
    """
    if values.size and np.issubdtype(values.dtype, np.integer):
        low, high = int(values.min()), int(values.max())
        if high - low < _COUNTED * values.size:
            moved = values - low
            there = np.zeros(high - low + 1, dtype=bool)
            there[moved] = True
            return np.asarray((np.cumsum(there) - 1)[moved], dtype=np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def units_of_groups(labels: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different units the rows of each group belong to.

    Args:
        labels: group of each row, from 0, none empty.
        units: unit of each row, from 0: the person that a row is about.

    >>> units_of_groups(np.array([0, 0, 0, 1, 1]), np.array([4, 4, 4, 4, 2])).tolist()
    [1, 2]
    """
    pairs = _pairs(labels, units)
    return np.bincount(labels[pairs.first], minlength=int(labels.max(initial=-1)) + 1).astype(np.int64)


def most_rows_of_a_unit(labels: NDArray[np.int64], units: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest number of rows that one unit has in each group; arguments as above.

    >>> most_rows_of_a_unit(np.array([0, 0, 0, 1, 1]), np.array([4, 4, 4, 4, 2])).tolist()
    [3, 1]
    """
    pairs = _pairs(labels, units)
    most = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, labels[pairs.first], pairs.sizes)
    return most


def _pairs(labels: NDArray[np.int64], units: NDArray[np.int64]) -> RowGroups:
    return row_groups([labels, units])
