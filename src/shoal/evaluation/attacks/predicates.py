"""Predicates: conditions on columns come in, the number of rows that fulfil each of them leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal


@internal()
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


def count_matches(
    values: NDArray[np.float64], predicates: Predicates, enough: int | None = None
) -> NDArray[np.int64]:
    """How many rows fulfil each predicate.

    Args:
        values: (rows, columns).
        enough: nobody wants to know more than this: counting stops there.

    Cost:
        O(n) for a predicate that few rows fulfil, less where counting stops early.

    >>> low, high = np.array([[2.0, -np.inf], [1.0, 5.0]]), np.array([[np.inf, 6.0], [1.0, 5.0]])
    >>> rows = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 6.0], [4.0, 7.0]])
    >>> count_matches(rows, Predicates(np.array([[0, 1], [0, 1]]), low, high)).tolist()
    [2, 1]
    """
    from shoal.evaluation.attacks._match_kernel import count

    counts = np.zeros(len(predicates), dtype=np.int64)
    count(
        np.asfortranarray(values, dtype=np.float64),
        predicates.columns,
        predicates.low,
        predicates.high,
        len(values) + 1 if enough is None else enough,
        counts,
    )
    return counts


def isolating(rows: NDArray[np.float64], predicates: Predicates) -> Predicates:
    """Those predicates that exactly one row fulfils."""
    return predicates.pick(count_matches(rows, predicates, enough=2) == 1)
