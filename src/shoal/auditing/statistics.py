"""Attack statistics: released tables come in, one row of numbers for each of them leaves.

Every statistic is something an attacker can compute from a release: order statistics, counts of rows in a region,
numbers of distinct rows, who shares a value with whom, exact hits of a value, the order of rows, likelihood ratios,
and the statistics of clusters where they are published.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shoal.auditing.likelihood import LikelihoodRatio
from shoal.auditing.neighbours import Point
from shoal.auditing.trial import Outputs
from shoal.display import internal

Matrix = NDArray[np.float64]
Numbers = NDArray[np.float64]

# Tables of more rows are looked at only in some ranks and positions, and not pair by pair.
_SMALL = 16
_PAIRWISE = 32
_RADII = (0.05, 0.25)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """What to compute, knowing the pair of data sets that is to be told apart.

    Attributes:
        columns, lo, hi: the released columns and their public domains.
        rows: how many rows of a release are looked at; the number of rows itself is always seen.
        record: position of the record that differs.
        targets: what that record is on the left and on the right (absent ones left out).
        likelihood: the likelihood ratio of left against right, where the distribution of a release is known.
    """

    columns: tuple[str, ...]
    lo: Point
    hi: Point
    rows: int
    record: int
    targets: tuple[Point, ...]
    likelihood: LikelihoodRatio | None

    def compute(self, outputs: Outputs) -> dict[str, Numbers]:
        """Every statistic of every release."""
        found: dict[str, Numbers] = {
            "number of rows": (~np.isnan(outputs.tables[:, :, 0])).sum(axis=1).astype(np.float64)
        }
        tables = _with_rows(outputs.tables, self.rows)
        for part in (self._values, self._regions, self._sharing, self._order, self._likelihood):
            for name, numbers in part(tables):
                found[name] = np.asarray(numbers, dtype=np.float64)
        return found | _published(outputs)

    def _values(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        rows = outputs.shape[1]
        for j, name in enumerate(self.columns):
            ordered = np.sort(outputs[:, :, j], axis=1)
            for rank in _some(rows):
                yield f"value of rank {rank + 1} in {name}", ordered[:, rank]
            yield f"sum of {name}", np.nansum(ordered, axis=1)
            yield f"rows exactly at the low end of {name}", (ordered == self.lo[j]).sum(axis=1)
            yield f"rows exactly at the high end of {name}", (ordered == self.hi[j]).sum(axis=1)
            lowest, highest = ordered[:, :1], np.nanmax(ordered, axis=1, keepdims=True)
            yield f"rows that share the smallest value of {name}", (ordered == lowest).sum(axis=1)
            yield f"rows that share the largest value of {name}", (ordered == highest).sum(axis=1)

    def _regions(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        lo, hi = np.asarray(self.lo), np.asarray(self.hi)
        width = hi - lo
        middle = (lo + hi) / 2
        for side, target in zip(("left", "right"), self.targets, strict=False):
            distance = (np.abs(outputs - np.asarray(target)) / width).max(axis=2)
            yield f"distance of the nearest row to the {side} record", np.nanmin(distance, axis=1)
            yield f"rows exactly equal to the {side} record", (distance == 0).sum(axis=1)
            for radius in _RADII:
                yield f"rows within {radius:g} of the {side} record", (distance <= radius).sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            pair = f"{self.columns[j]} and {self.columns[other]}"
            first, second = outputs[:, :, j], outputs[:, :, other]
            yield (
                f"rows above the middle in {pair}",
                ((first > middle[j]) & (second > middle[other])).sum(axis=1),
            )
            yield (
                f"rows below the middle in {pair}",
                ((first < middle[j]) & (second < middle[other])).sum(axis=1),
            )
            moved = (first - middle[j]) * (second - middle[other])
            yield f"product of {pair}", np.nansum(moved, axis=1) / (width[j] * width[other])

    def _sharing(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        ordered = sort_rows(outputs)
        changes = (ordered[:, 1:] != ordered[:, :-1]) & ~np.isnan(ordered[:, 1:])
        yield "number of distinct rows", 1 + changes.any(axis=2).sum(axis=1)
        for j, name in enumerate(self.columns):
            values = np.sort(outputs[:, :, j], axis=1)
            steps = (values[:, 1:] != values[:, :-1]) & ~np.isnan(values[:, 1:])
            yield f"number of distinct values of {name}", 1 + steps.sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            first, second = outputs[:, :, j], outputs[:, :, other]
            pair = f"{self.columns[j]} and {self.columns[other]}"
            ends = {"smallest": np.nanmin, "largest": np.nanmax}
            for one, end in ends.items():
                for two, other_end in ends.items():
                    both = (first == end(first, axis=1, keepdims=True)) & (
                        second == other_end(second, axis=1, keepdims=True)
                    )
                    yield f"rows with the {one} and the {two} value of {pair}", both.sum(axis=1)
        if outputs.shape[1] <= _PAIRWISE:
            yield from self._pairwise(outputs)

    def _pairwise(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        upper = np.triu_indices(outputs.shape[1], 1)
        same = [outputs[:, upper[0], j] == outputs[:, upper[1], j] for j in range(len(self.columns))]
        for j, name in enumerate(self.columns):
            yield f"pairs of rows that share {name}", same[j].sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            together = (same[j] & same[other]).sum(axis=1)
            yield f"pairs of rows that share {self.columns[j]} and {self.columns[other]}", together

    def _order(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        rows = outputs.shape[1]
        for j, name in enumerate(self.columns):
            for row in dict.fromkeys((0, min(self.record, rows - 1), rows - 1)):
                yield f"{name} in row {row + 1}", outputs[:, row, j]
            if self.record >= rows:
                continue
            own = outputs[:, self.record, j]
            for row in _some(rows):
                if row != self.record:
                    shared = own == outputs[:, row, j]
                    yield f"rows {self.record + 1} and {row + 1} share {name}", shared

    def _likelihood(self, outputs: Matrix) -> Iterator[tuple[str, Numbers]]:
        if self.likelihood is not None:
            yield "likelihood ratio", self.likelihood(outputs)


def _published(outputs: Outputs) -> dict[str, Numbers]:
    """The statistics of clusters themselves, where they are published, and their sums."""
    found = {}
    for name, values in outputs.statistics.items():
        found["number of published clusters"] = np.full(values.shape[0], float(values.shape[1]))
        for cluster in _some(values.shape[1]):
            found[f"{name} in published cluster {cluster + 1}"] = values[:, cluster]
        found[f"sum of {name} over published clusters"] = np.nansum(values, axis=1)
    return found


def _with_rows(outputs: Matrix, rows: int) -> Matrix:
    """Cut to so many rows, which are random ones, or filled up with rows of NaN."""
    runs, present, columns = outputs.shape
    if present >= rows:
        return outputs[:, :rows]
    return np.concatenate([outputs, np.full((runs, rows - present, columns), np.nan)], axis=1)


def sort_rows(outputs: Matrix) -> Matrix:
    """Rows of every table in lexicographic order."""
    order = np.lexsort(tuple(outputs[:, :, j] for j in reversed(range(outputs.shape[2]))), axis=1)
    return np.take_along_axis(outputs, order[:, :, None], axis=1)


def _some(rows: int) -> list[int]:
    """All positions of a small table, a spread of those of a large one, both ends always."""
    if rows <= _SMALL:
        return list(range(rows))
    spread = np.linspace(0, rows - 1, _SMALL - 4).round().astype(int)
    return sorted({0, 1, 2, rows - 3, rows - 2, rows - 1, *spread.tolist()})
