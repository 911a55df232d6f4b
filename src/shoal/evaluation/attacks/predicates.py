"""Predicates: conditions on columns come in, the number of rows that fulfil each of them leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A predicate that two rows of a small sample fulfil isolates nobody: rows looked at before all of them.
FIRST_LOOKS = (2_000, 50_000)


@dataclass(frozen=True, slots=True, eq=False)
class Predicates:
    """Conjunctions of conditions low <= value <= high, one line each.

    Attributes:
        columns: positions of the columns, the same number in each predicate.
        low: lower limits, -inf for none.
        high: upper limits; equal to `low` for an equation.
    """

    columns: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.columns)

    def pick(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Predicates:
        return Predicates(self.columns[which], self.low[which], self.high[which])

    def join(self, other: Predicates) -> Predicates:
        return Predicates(
            np.concatenate((self.columns, other.columns)),
            np.concatenate((self.low, other.low)),
            np.concatenate((self.high, other.high)),
        )

    def distinct(self) -> Predicates:
        """Each predicate once, the first of equals kept in its place."""
        lines = np.column_stack((self.columns, self.low, self.high))
        _, first = np.unique(lines, axis=0, return_index=True)
        return self.pick(np.sort(first))


def count_matches(values: NDArray[np.float64], predicates: Predicates) -> NDArray[np.int64]:
    """How many rows fulfil each predicate.

    Cost:
        O(n) for a predicate: every condition is asked only of the rows that fulfilled those before it.

    >>> low, high = np.array([[2.0, -np.inf], [1.0, 5.0]]), np.array([[np.inf, 6.0], [1.0, 5.0]])
    >>> rows = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 6.0], [4.0, 7.0]])
    >>> count_matches(rows, Predicates(np.array([[0, 1], [0, 1]]), low, high)).tolist()
    [2, 1]
    """
    counts = np.zeros(len(predicates), dtype=np.int64)
    for i in range(len(predicates)):
        rows: NDArray[np.int64] | None = None
        for j, low, high in zip(predicates.columns[i], predicates.low[i], predicates.high[i], strict=True):
            column = values[:, j] if rows is None else values[rows, j]
            fits = np.flatnonzero((column >= low) & (column <= high))
            rows = fits if rows is None else rows[fits]
        counts[i] = 0 if rows is None else rows.size
    return counts


def looks(rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Larger and larger parts of the rows, in the end all of them."""
    steps = [len(rows) // look for look in FIRST_LOOKS if look < len(rows)]
    return [np.asfortranarray(rows[::step]) for step in (*steps, 1)]


def isolating(rows: Sequence[NDArray[np.float64]], predicates: Predicates) -> Predicates:
    """Those predicates that exactly one row fulfils; the rows as `looks` gives them."""
    *parts, whole = rows
    for few in parts:
        predicates = predicates.pick(count_matches(few, predicates) <= 1)
    return predicates.pick(count_matches(whole, predicates) == 1)
