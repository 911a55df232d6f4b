"""What a page needs of a table, whether its records are in memory or were counted elsewhere.

A table of any size is told by its marginals, its correlations and a sample of rows, which is all that pages show of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.column import labels_of, numbers
from shoal.display import internal
from shoal.evaluation.excerpt import excerpt
from shoal.evaluation.utility import Distribution, Moments, correlations
from shoal.io import Table

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

# two-way tables of larger tables are counted on a sample
MOST_ROWS = 100_000


def sampled(n: int) -> Rows:
    """The rows of a table that are looked at together: the same ones every time."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))


@internal()
@dataclass(frozen=True, slots=True)
class Ends:
    """Smallest and largest value of a column, and whether all of them are whole numbers."""

    low: float
    high: float
    whole: bool

    @classmethod
    def of(cls, values: Floats) -> Ends | None:
        """None without a value."""
        if not values.size:
            return None
        whole = bool(np.all(values == np.rint(values)))
        return cls(float(values.min()), float(values.max()), whole)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """A column with an order: its values and how often each occurs, missing ones left out.

    Attributes:
        missing: number of rows without a value.
        ends: None without a value.
    """

    distribution: Distribution
    moments: Moments
    ends: Ends | None
    missing: int

    @classmethod
    def of(cls, values: Floats, rows: int) -> Marginal:
        """Of all the values of a table with so many rows."""
        return cls(Distribution.of(values), Moments.of(values), Ends.of(values), rows - values.size)

    @property
    def size(self) -> int:
        return self.moments.n

    def shares(self, edges: Floats) -> Floats:
        """Share of the values in each bin."""
        found = self.distribution
        counts = np.histogram(found.values, bins=edges, weights=found.counts)[0]
        return np.asarray(counts / max(self.size, 1))

    def quantiles(self, points: Sequence[float] | Floats) -> Floats:
        """As `np.quantile` of all the values.

        >>> Marginal.of(np.array([1.0, 1.0, 2.0, 4.0]), 4).quantiles([0.5, 1.0]).tolist()
        [1.5, 4.0]
        """
        found = self.distribution
        places = np.asarray(points, dtype=np.float64) * (self.size - 1)
        running = np.cumsum(found.counts)
        low, high = (
            found.values[np.searchsorted(running, ends.astype(np.int64), side="right")]
            for ends in (np.floor(places), np.ceil(places))
        )
        return np.asarray(low + (high - low) * (places - np.floor(places)))


class Source(Protocol):
    """The answers about a table."""

    @property
    def n(self) -> int: ...

    def ends(self, attribute: Attribute) -> Ends | None:
        """Of a column with an order."""

    def marginal(self, attribute: Attribute) -> Marginal:
        """Of a column with an order."""

    def labels(self, attribute: Attribute) -> Counter[str]:
        """How often each name of a nominal column occurs; missing ones have a name of their own."""

    def correlations(self, attributes: Sequence[Attribute]) -> Floats:
        """Of columns with an order."""

    def sample(self) -> Table:
        """The rows that are looked at together."""


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class OfTable:
    """The answers of a table that is here, or that is read column by column."""

    table: Table

    @property
    def n(self) -> int:
        return self.table.n

    def _values(self, attribute: Attribute) -> Floats:
        values = numbers(self.table, attribute)
        present: Floats = values[np.isfinite(values)]
        return present

    def ends(self, attribute: Attribute) -> Ends | None:
        return Ends.of(self._values(attribute))

    def marginal(self, attribute: Attribute) -> Marginal:
        return Marginal.of(self._values(attribute), self.n)

    def labels(self, attribute: Attribute) -> Counter[str]:
        return Counter(
            MISSING_VALUE if label is None else label for label in labels_of(self.table, attribute)
        )

    def correlations(self, attributes: Sequence[Attribute]) -> Floats:
        values = np.column_stack([numbers(self.table, attribute) for attribute in attributes])
        return correlations(np.where(np.isfinite(values), values, np.nan))

    def sample(self) -> Table:
        rows = sampled(self.n)
        if rows.size == self.n:
            return self.table
        return excerpt(self.table, rows, self.table.names)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The answers about a table that was counted where it is.

    Attributes:
        marginals: of columns with an order.
        names: of nominal columns.
        related: the columns with an order, and their correlations.
        rows: the rows that `sampled` names.
        different: how many different rows there are; None where they were not counted.
    """

    n: int
    marginals: Mapping[str, Marginal]
    names: Mapping[str, Counter[str]]
    related: tuple[tuple[str, ...], Floats]
    rows: Table
    different: int | None = None

    def ends(self, attribute: Attribute) -> Ends | None:
        return self.marginals[attribute.name].ends

    def marginal(self, attribute: Attribute) -> Marginal:
        return self.marginals[attribute.name]

    def labels(self, attribute: Attribute) -> Counter[str]:
        return self.names[attribute.name]

    def correlations(self, attributes: Sequence[Attribute]) -> Floats:
        names, found = self.related
        places = [names.index(attribute.name) for attribute in attributes]
        return np.asarray(found[np.ix_(places, places)])

    def sample(self) -> Table:
        return self.rows


def source_of(table: Table) -> Source:
    """Who answers for a table."""
    return table.records if isinstance(table.records, Counted) else OfTable(table)
