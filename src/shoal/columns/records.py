"""What describing a table asks of its records: aggregates, whether the records are in memory or elsewhere.

An engine that never holds the table answers the same questions by passes over its parts, and the same sentences follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import Attribute
from shoal.columns.coding import labels_of, numbers
from shoal.columns.provenance import beyond_bounds
from shoal.display import internal
from shoal.io import Table, first_row

if TYPE_CHECKING:
    from shoal.columns.schema import Schema

Rows = NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Absent:
    """Missing values of a column.

    Attributes:
        count: how many.
        first: number of the first row without a value, from 0.
        rows: which rows have none; None where records are elsewhere.
    """

    count: int
    first: int
    rows: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class KeptElsewhere:
    """How many rows take part, where their numbers are not known here."""

    size: int


class Records(Protocol):
    """The questions, answered for all rows unless `kept` says which take part."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def look(
        self, table: Table, chosen: Sequence[Attribute], policies: Mapping[str, str], na: Sequence[str]
    ) -> None:
        """Told once the columns are chosen, before the questions that follow."""

    def labels(self, attribute: Attribute) -> list[str]:
        """The different values of a nominal column as text, in order."""

    def absent(self, attribute: Attribute) -> Absent:
        """Its missing values; values that the column cannot have are errors that name the row."""

    def kept(self, dropping: Iterable[str]) -> Any:
        """Numbers of the rows that have a value in all of these columns."""

    def ends(self, attribute: Attribute, kept: Any) -> tuple[float, float]:
        """Smallest and largest value."""

    def unit(self, name: str, kept: Any) -> tuple[bool, int]:
        """Whether a unit is missing in a row, and the most rows that one unit has."""

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Any) -> int:
        """How many values lie outside of a domain."""


class RecordsElsewhere(Records, Protocol):
    """Who answers for records that are not here."""

    def run_steps(self, schema: Schema, na: Sequence[str]) -> None:
        """Told first of all, where the schema has steps before protection: answers are about records after them."""

    def steps(self) -> tuple[tuple[str, int], ...]:
        """The steps, by their keys, and how many cells each changed; known after a look."""


class InMemory:
    """The answers of a table that is here, or that is read column by column."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._absent: dict[str, NDArray[np.bool_]] = {}

    @property
    def n(self) -> int:
        return self._table.n

    def look(
        self, table: Table, chosen: Sequence[Attribute], policies: Mapping[str, str], na: Sequence[str]
    ) -> None:
        self._table = table

    def labels(self, attribute: Attribute) -> list[str]:
        return sorted({label for label in labels_of(self._table, attribute) if label is not None})

    def absent(self, attribute: Attribute) -> Absent:
        gaps = gaps_of(numbers(self._table, attribute), attribute)
        self._absent[attribute.name] = gaps
        return Absent(int(gaps.sum()), int(np.argmax(gaps)) if gaps.size else 0, gaps)

    def kept(self, dropping: Iterable[str]) -> Rows | None:
        dropped = np.zeros(self.n, dtype=np.bool_)
        for name in dropping:
            dropped |= self._absent[name]
        return np.flatnonzero(~dropped) if dropped.any() else None

    def ends(self, attribute: Attribute, kept: Rows | None) -> tuple[float, float]:
        values = numbers(self._table, attribute)
        values = values if kept is None else values[kept]
        if not values.size:
            return np.inf, -np.inf
        return float(np.nanmin(values)), float(np.nanmax(values))

    def unit(self, name: str, kept: Rows | None) -> tuple[bool, int]:
        column: Any = self._table.series(name)
        if column.null_count():
            return True, 0
        values = column.to_numpy()
        _, counts = np.unique(values if kept is None else values[kept], return_counts=True)
        return False, int(counts.max(initial=0))

    def outside(self, attribute: Attribute, lo: float, hi: float, kept: Rows | None) -> int:
        values = numbers(self._table, attribute)
        values = values if kept is None else values[kept]
        # a missing value is nowhere
        return int(((values < lo) | (values > hi)).sum())


def gaps_of(values: NDArray[np.float64], attribute: Attribute) -> NDArray[np.bool_]:
    """Which values are missing; an infinite one, or one with more decimals than its bounds have, is an error."""
    wrong = np.isinf(values)
    if not wrong.any() and attribute.type == "decimal" and (attribute.places or 0) > 0:
        scaled = values * 10.0 ** (attribute.places or 0)
        # a float is off by what it cannot hold, and a column of them by a few sums
        wrong = np.abs(scaled - np.rint(scaled)) > np.maximum(1e-6, np.abs(scaled) * 2.0**-48)
    if wrong.any():
        row = first_row(wrong)
        raise beyond_bounds(attribute, float(values[row - 1]), row)
    return np.isnan(values)
