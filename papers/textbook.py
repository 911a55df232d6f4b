"""Results that several papers take from the literature, with the privacy losses found on small worlds.

A loss is the largest |ln P(y | D) - ln P(y | D')| over neighbouring tables D, D' (one record replaced) and results y.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Table = tuple[int, ...]
# results are looked at from far below to far above all answers
_RESULTS = np.linspace(-60, 60, 2401)


def neighbours(records: int, top: int) -> Iterator[tuple[Table, Table]]:
    """All pairs of tables of values 0..top that differ in one record."""
    for table in product(range(top + 1), repeat=records):
        for place, value in product(range(records), range(top + 1)):
            if value != table[place]:
                yield table, (*table[:place], value, *table[place + 1 :])


def counted_privately(answer: int, top: int, epsilon: float) -> Floats:
    """Chances of the results 0..top for a count: geometric noise, cut at both ends.

    >>> bool(np.isclose(counted_privately(1, 3, 0.5).sum(), 1))
    True
    """
    q = math.exp(-epsilon)
    chances = np.array([q ** abs(result - answer) * (1 - q) / (1 + q) for result in range(top + 1)])
    chances[0], chances[-1] = q**answer / (1 + q), q ** (top - answer) / (1 + q)
    return chances


def loss(one: Floats, other: Floats) -> float:
    return float(np.abs(np.log(one) - np.log(other)).max())


def sequential_loss(first: float, second: float) -> float:
    """Two counts of the same three records, each with noise of its own.

    >>> round(sequential_loss(0.5, 1.0), 9)
    1.5
    """

    def both(table: Table) -> Floats:
        ones = sum(table)
        return np.multiply.outer(counted_privately(ones, 3, first), counted_privately(ones, 3, second))

    return max(loss(both(table), both(other)) for table, other in neighbours(3, 1))


def attribute_loss(first: float, second: float) -> float:
    """Counts of two attributes that have nothing to do with each other: in the world of all tables both change freely.

    >>> round(attribute_loss(0.5, 1.0), 9)
    1.5
    """

    def both(table: Table) -> Floats:
        one, other = sum(value // 2 for value in table), sum(value % 2 for value in table)
        return np.multiply.outer(counted_privately(one, 2, first), counted_privately(other, 2, second))

    return max(loss(both(table), both(other)) for table, other in neighbours(2, 3))


def parallel_loss(epsilon: float, subsets: Literal["rows", "values"]) -> float:
    """Counts of two disjoint subsets of four records: the first and last two rows, or those of low and high value.

    >>> [round(parallel_loss(0.5, subsets), 9) for subsets in ("rows", "values")]
    [0.5, 1.0]
    """

    def both(table: Table) -> Floats:
        low = sum(table[:2]) if subsets == "rows" else sum(value == 0 for value in table)
        high = sum(table[2:]) if subsets == "rows" else sum(value == 1 for value in table)
        return np.multiply.outer(counted_privately(low, 4, epsilon), counted_privately(high, 4, epsilon))

    return max(loss(both(table), both(other)) for table, other in neighbours(4, 1))


def laplace_loss(epsilon: float) -> float:
    """Sum and maximum of three records with Laplace noise scaled to the L1 sensitivity of the pair.

    >>> round(laplace_loss(0.5), 9)
    0.5
    """

    def answer(table: Table) -> Sequence[float]:
        return sum(table), max(table)

    pairs = [(answer(table), answer(other)) for table, other in neighbours(3, 2)]
    reach = max(sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one, other in pairs)
    scale = reach / epsilon
    # independent noise: the worst results of both answers come together
    return max(
        sum(
            loss(_laplace(a, scale), _laplace(b, scale)) if a != b else 0.0
            for a, b in zip(one, other, strict=True)
        )
        for one, other in pairs
    )


def local_loss(epsilon: float, frozen: bool) -> float:
    """The median of three records with noise scaled to its local sensitivity: that of the one table for both tables
    (frozen), or to each table's own. Infinite where one table gets no noise and the other does.

    >>> local_loss(0.5, frozen=True) <= 0.5 + 1e-9, local_loss(0.5, frozen=False)
    (True, inf)
    """
    pairs = list(neighbours(3, 4))
    reach: dict[Table, float] = {}
    for table, other in pairs:
        reach[table] = max(reach.get(table, 0.0), abs(_median(table) - _median(other)))
    return max(
        _noisy_loss(
            _median(table),
            reach[table] / epsilon,
            _median(other),
            (reach[table] if frozen else reach[other]) / epsilon,
        )
        for table, other in pairs
    )


def _noisy_loss(one: float, scale: float, other: float, other_scale: float) -> float:
    if not scale and not other_scale:
        return 0.0 if one == other else math.inf
    if not scale or not other_scale:
        return math.inf
    return loss(_laplace(one, scale), _laplace(other, other_scale))


def _median(table: Table) -> float:
    return float(sorted(table)[len(table) // 2])


def _laplace(centre: float, scale: float) -> Floats:
    return np.asarray(np.exp(-np.abs(_RESULTS - centre) / scale) / (2 * scale))


def histogram_cells(values: Floats, bins: int = 10) -> list[tuple[int, int]]:
    """Cells of a histogram of the first 1, 2, ... attributes with so many bins each, and how many hold a record.

    >>> histogram_cells(np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]))
    [(10, 2), (100, 3)]
    """
    low, high = values.min(axis=0), values.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    binned = np.minimum((values - low) / width * bins, bins - 1).astype(np.int64)
    return [
        (bins**number, len(np.unique(binned[:, :number], axis=0))) for number in range(1, values.shape[1] + 1)
    ]
