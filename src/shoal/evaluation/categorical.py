"""How much names and whole tables lost: columns come in, semantic errors and total variations leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.columns.kinds import KIND_FACTS, Kind
from shoal.evaluation.columns import Codes, Column, Nominal, Numbers

# equal parts of a numeric attribute's public domain
BINS = 20
# a table of counts with more cells than this many per row is mostly empty: sorting is cheaper
_CELLS_PER_ROW = 4


def semantic_sse(column: Nominal) -> float:
    """Sum of squared semantic distances between the values of matching rows.

    Reference:
        The thesis, section 6.4.2, with the distance of Eq. 6.6.

    >>> flat = Nominal("x", np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 1, 1]), size=2)
    >>> round(semantic_sse(flat), 4)
    0.5431
    """
    # a table has few different pairs of values, and distances cost more than counting
    span = column.size + 1
    pairs, counts = np.unique((column.before + 1) * span + column.after + 1, return_counts=True)
    gaps = column.distances(pairs // span - 1, pairs % span - 1)
    return float(np.sum(counts * gaps * gaps))


def scaled_sse(column: Column) -> float:
    """Sum of squared errors of matching rows in units of the squared width of the domain; NaN without a width.

    Rows with a missing number are left out.
    """
    if column.width <= 0:
        return math.nan
    if isinstance(column, Nominal):
        return semantic_sse(column) / column.width**2
    gaps = (column.after - column.before) / column.width
    return float(np.nansum(gaps * gaps))


def categories(column: Column) -> tuple[Codes, Codes, int]:
    """Category of each original and of each published row, and their number; missing values have their own.

    Names are categories by themselves, numbers and dates fall into equal parts of the public domain, places in
    an order do so only if there are more places than parts.
    """
    if isinstance(column, Nominal):
        return column.before + 1, column.published + 1, column.size + 1
    cut = Parts.of(column.kind, column.domain)
    return cut(column.before), cut(column.published), cut.size


@dataclass(frozen=True, slots=True)
class Parts:
    """Equal parts of a domain, and one more for missing values."""

    lo: float
    hi: float
    parts: int

    @classmethod
    def of(cls, kind: Kind, domain: tuple[float, float]) -> Parts:
        lo, hi = domain
        if KIND_FACTS[kind].listed and hi - lo < BINS:
            # one part around each place
            return cls(lo - 0.5, hi + 0.5, round(hi - lo) + 1)
        return cls(lo, hi, BINS)

    @property
    def size(self) -> int:
        return self.parts + 1

    def __call__(self, values: Numbers) -> Codes:
        """The part of each value; those outside of the domain are in the first or the last one."""
        missing = np.isnan(values)
        width = (self.hi - self.lo) / self.parts
        place = np.zeros(values.shape)
        if width > 0:
            place = np.floor((np.where(missing, self.lo, values) - self.lo) / width)
        return np.where(missing, self.parts, np.clip(place, 0, self.parts - 1)).astype(np.int64)


def total_variation(before: Codes, after: Codes, size: int) -> float:
    """Half the sum of |p' - p| over the categories: the share of rows that would have to change theirs.

    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)
    0.25
    """
    rows = before.size + after.size
    if size > _CELLS_PER_ROW * rows:
        every = np.unique(np.concatenate((before, after)), return_inverse=True)[1]
        before, after, size = every[: before.size], every[before.size :], int(every.max()) + 1
    p = np.bincount(before, minlength=size) / before.size
    q = np.bincount(after, minlength=size) / after.size
    return 0.5 * float(np.abs(p - q).sum())


@dataclass(frozen=True, slots=True)
class Contingency:
    """Total variations of the two-way tables.

    Attributes:
        mean: over all pairs of columns; NaN without a pair.
        largest: the largest of them; NaN without a pair.
        worst: the two columns that have it.
        pairs: number of pairs.
    """

    mean: float
    largest: float
    worst: tuple[str, str] | None
    pairs: int


def contingency(columns: Sequence[Column]) -> Contingency:
    """Total variation between the original and the published two-way table of every pair of columns.

    Cost:
        One pass over the rows for each pair of columns.

    >>> a = Nominal("a", np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), size=2)
    >>> b = Nominal("b", np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 1, 0, 1]), size=2)
    >>> contingency([a, b]).mean
    0.5
    """
    coded = [categories(column) for column in columns]
    found: dict[tuple[str, str], float] = {}
    for j, (first, first_after, _) in enumerate(coded):
        for other in range(j + 1, len(coded)):
            second, second_after, size = coded[other]
            cells = coded[j][2] * size
            found[columns[j].name, columns[other].name] = total_variation(
                first * size + second, first_after * size + second_after, cells
            )
    return contingency_of(found)


def contingency_of(found: Mapping[tuple[str, str], float]) -> Contingency:
    """The total variations of pairs of columns together."""
    if not found:
        return Contingency(math.nan, math.nan, None, 0)
    # the first of equal ones, however they were added up
    worst = max(found, key=lambda names: round(found[names], 12))
    return Contingency(math.fsum(found.values()) / len(found), found[worst], worst, len(found))


Counted = tuple[Codes, Codes]


def counted_variation(before: Counted, after: Counted) -> float:
    """Total variation from the different categories of each table and how many rows have each.

    >>> counted_variation((np.array([0, 1]), np.array([2, 2])), (np.array([0, 1]), np.array([1, 3])))
    0.25
    """
    every = np.union1d(before[0], after[0])
    shares = []
    for codes, counts in (before, after):
        share = np.zeros(every.size)
        share[np.searchsorted(every, codes)] = counts / counts.sum()
        shares.append(share)
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())
