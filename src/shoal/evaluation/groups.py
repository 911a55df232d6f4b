"""Equal rows: columns come in, a group number per row and the group sizes leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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

    One sort per column instead of one sort of whole rows: no row is ever copied.

    >>> row_groups([np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 5.0])]).sizes.tolist()
    [2, 1]
    """
    labels: NDArray[np.int64] | None = None
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
        if labels is None:
            labels = codes
        else:
            # both factors are below the number of rows, so the product stays far inside 64 bits
            labels = np.unique(labels * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1].astype(
                np.int64
            )
    if labels is None:
        raise ValueError("at least one column is needed to compare rows.")
    _, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    return RowGroups(labels, sizes.astype(np.int64), first.astype(np.int64))
