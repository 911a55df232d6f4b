"""What several Laplace answers cost together. In: linear queries and their scales. Out: the exact joint price.

One record cannot be in every filter at once and at both ends of every column, so answers to several queries often
cost less together than one by one. The worst records are found among finitely many: inside a box in which no condition
changes, what a record adds is linear in its values, so that a corner of the box is worst.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.query.cells import Cells
from shoal.query.facts import MISSING, Facts
from shoal.query.linear import Linear
from shoal.query.where import Condition, conditions, meets

# a label that no condition names
_OTHER = object()
_MOST_TRIALS = 1 << 17
_MOST_PAIRS = 1 << 10
_SAFE = 1 << 61
_FINEST = 10**15

Record = dict[str, Any]
# for every condition, by value of its column, whether it holds
Truths = dict[Condition, dict[Any, bool]]


@dataclass(frozen=True, slots=True)
class Part:
    """One number of an answer with Laplace noise of this scale, in the unit of the answer; perhaps one cell of many."""

    linear: Linear
    scale: Fraction
    cells: Cells | None = None
    cell: int = 0

    def added(self, record: Record, truths: Truths) -> int:
        """What one record adds, in units."""
        where, cells = self.linear.where, self.cells
        if where is not None and not meets(where, lambda one: truths[one][record[one.column]]):
            return 0
        if cells is not None:
            value = record[cells.column]
            if cells.labels:
                return int(value == cells.labels[self.cell])
            low, high = cells.bounds[self.cell]
            return int(low <= value <= high)
        if self.linear.column is None:
            return 1
        position = record[self.linear.column]
        return 0 if position == MISSING else self.linear.factor * position + self.linear.offset


def countable(parts: Sequence[Part], facts: Facts) -> bool:
    """Whether the records to be tried are few enough."""
    points = _points(parts, facts)
    return math.prod(len(found) for found in points.values()) * len(parts) <= _MOST_TRIALS


def joint_cost(parts: Sequence[Part], facts: Facts) -> Fraction:
    """The largest Σ |change of a number| / scale that one record can cause; `countable` says if it can be asked for.

    Guarantee:
        Laplace noise of these scales on all numbers together costs one row at most this, also if each query was chosen
        after seeing the answers before it. Proof: docs/proofs/refinement.md, section 7.

    Reference:
        Thesis, Protocol 1.
    """
    points = _points(parts, facts)
    records = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
    truths = {
        condition: {value: _holds(condition, value, facts) for value in points[condition.column]}
        for part in parts
        for condition in conditions(part.linear.where)
    }
    rates = [part.linear.unit / part.scale for part in parts]
    # rates with a common denominator that is too long are rounded up: the price only grows, by next to nothing
    common = min(math.lcm(*(rate.denominator for rate in rates)), _FINEST)
    whole = [math.ceil(rate * common) for rate in rates]
    rows = {
        tuple(part.added(record, truths) * rate for part, rate in zip(parts, whole, strict=True))
        for record in records
    }
    largest = max(sum(map(abs, row)) for row in rows)
    if not facts.replace_one:
        return Fraction(largest, common)
    if len(rows) > _MOST_PAIRS:
        # no two records are farther apart than both are from nothing
        return Fraction(2 * largest, common)
    table: NDArray[Any] = np.array(list(rows), dtype=np.int64 if largest < _SAFE else object)
    widest = max(int(np.abs(table - row).sum(axis=1).max()) for row in table)
    return Fraction(widest, common)


def _holds(condition: Condition, value: Any, facts: Facts) -> bool:
    if facts.has_lattice(facts.attribute(condition.column)):
        return any(low <= value <= high for low, high in condition.spans)
    return value != MISSING and (value in condition.values) != (condition.op == "!=")


def _points(parts: Sequence[Part], facts: Facts) -> dict[str, set[Any]]:
    """By column, the values at which something changes: the worst records are among their combinations."""
    points: dict[str, set[Any]] = {}
    for part in parts:
        for condition in conditions(part.linear.where):
            if facts.has_lattice(facts.attribute(condition.column)):
                _add(points, condition.column, facts, condition.spans)
            else:
                points.setdefault(condition.column, {_OTHER, MISSING}).update(condition.values)
        cells = part.cells
        if cells is not None and cells.labels:
            points.setdefault(cells.column, {_OTHER, MISSING}).update(cells.labels)
        elif cells is not None:
            _add(points, cells.column, facts, [cells.bounds[part.cell]])
        if part.linear.column is not None:
            _add(points, part.linear.column, facts, [])
    return points


def _add(
    points: dict[str, set[Any]], column: str, facts: Facts, intervals: Sequence[tuple[int, int]]
) -> None:
    """Both sides of every border of an interval, and both ends of the domain."""
    steps = facts.lattice(column).steps
    found = points.setdefault(column, {MISSING, 0, steps})
    for low, high in intervals:
        found.update(min(max(point, 0), steps) for point in (low - 1, low, high, high + 1))
