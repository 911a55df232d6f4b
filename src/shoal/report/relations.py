"""Columns together: an original (or none) and a released table come in, correlations and two-way tables leave."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.column import labels_of, numbers
from shoal.display import internal
from shoal.io import Table
from shoal.report.compare import bin_edges, place_edges, top_labels
from shoal.report.source import source_of
from shoal.report.subject import Subject

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# a matrix with more columns than this cannot be read
MOST_COLUMNS = 24
MOST_PAIRS = 6
# pairs of which is said whether they were kept, and the shares of a relation from which on they were, or partly
MOST_KEPT = 12
KEPT, WEAKENED = 0.75, 0.25
_CELLS = 16
_LEFT_OUT = -1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Pearson correlations of the columns with an order; NaN where a column is constant."""

    names: tuple[str, ...]
    before: Floats | None
    after: Floats


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One column cut into few cells: equal parts of its range, or labels.

    Attributes:
        edges: of the parts; None for labels.
        codes: cell of each row of the original (if any) and of the released table; -1 for a row without one.
    """

    name: str
    attribute: Attribute
    labels: tuple[str, ...]
    edges: Floats | None
    codes: tuple[Codes, ...]

    @property
    def size(self) -> int:
        return len(self.labels) if self.edges is None else self.edges.size - 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Two columns together: shares of the rows in each cell.

    Attributes:
        moved: share of rows that would have to move between cells; None without an original.
    """

    first: Axis
    second: Axis
    before: Floats | None
    after: Floats
    moved: float | None


@dataclass(frozen=True, slots=True)
class KeptPair:
    """How far two columns belong together: Cramér's V of their two-way tables, without what chance adds to it.

    Attributes:
        before, after: in the original and in the released table, 0 (nothing) to 1 (one tells the other).
        chance: what columns that have nothing to do with each other hardly reach in a table of that size.
    """

    first: str
    second: str
    before: float
    after: float
    chance: float

    @property
    def word(self) -> str:
        """Whether the release still shows the relation.

        >>> KeptPair("age", "pay", 0.3, 0.28, 0.01).word, KeptPair("age", "pay", 0.3, 0.02, 0.01).word
        ('kept', 'lost')
        """
        if self.before <= self.chance:
            return "none to keep"
        left = self.after / self.before
        return "kept" if left >= KEPT else "weakened" if left >= WEAKENED else "lost"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Two-way tables.

    Attributes:
        names: the columns that take part.
        moved: for each pair of columns the share of rows that would have to move; None without an original.
        shown: the pairs to draw: those that changed most, then those that belong together most.
        kept: how far columns belong together before and after, the closest pairs first; empty without an original.
        axes: the columns, cut into cells.
        strongest: the pairs as places among the columns, those that belong together most first.
    """

    names: tuple[str, ...]
    moved: Floats | None
    shown: tuple[PairTable, ...]
    left_out: tuple[str, ...]
    kept: tuple[KeptPair, ...]
    axes: tuple[Axis, ...]
    strongest: tuple[tuple[int, int], ...]


def correlate(subject: Subject, original: Table | None) -> Correlations | None:
    """Correlations of both tables; None with fewer than two columns that have an order."""
    names = [
        name
        for name in subject.columns
        if subject.attribute(name).kind_facts.ordered and (original is None or name in original.names)
    ][:MOST_COLUMNS]
    if len(names) < 2:
        return None
    attributes = [subject.attribute(name) for name in names]
    return Correlations(
        tuple(names),
        None if original is None else source_of(original).correlations(attributes),
        source_of(subject.table).correlations(attributes),
    )


def pair_tables(subject: Subject, original: Table | None) -> Pairs | None:
    """Two-way tables of all pairs of columns, and the few worth looking at; None with fewer than two columns.

    Cost:
        One pass over at most 100,000 rows for each pair of at most 24 columns.
    """
    names = [name for name in subject.columns if original is None or name in original.names]
    used, left_out = names[:MOST_COLUMNS], names[MOST_COLUMNS:]
    if len(used) < 2:
        return None
    tables = [subject.table] if original is None else [original, subject.table]
    samples = [source_of(table).sample() for table in tables]
    axes = [_axis(subject, name, tables, samples) for name in used]
    moved = None if original is None else np.zeros((len(used), len(used)))
    together: dict[tuple[int, int], float] = {}
    kept: list[KeptPair] = []
    for i, j in itertools.combinations(range(len(used)), 2):
        grids = _grids(axes[i], axes[j])
        together[i, j] = _dependence(grids[0])
        if moved is not None:
            moved[i, j] = moved[j, i] = 0.5 * float(np.abs(grids[1] - grids[0]).sum())
            first, second = (cramers_v(grid, own.n) for grid, own in zip(grids, samples, strict=True))
            kept.append(KeptPair(used[i], used[j], first, second, _hardly_by_chance(grids[0], samples[0].n)))
    shown = []
    for i, j in _worth_showing(together, moved):
        grids = _grids(axes[i], axes[j])
        before = None if original is None else grids[0]
        shown.append(
            PairTable(axes[i], axes[j], before, grids[-1], None if moved is None else float(moved[i, j]))
        )
    return Pairs(
        tuple(used),
        moved,
        tuple(shown),
        tuple(left_out),
        tuple(sorted(kept, key=lambda pair: -pair.before)),
        tuple(axes),
        tuple(sorted(together, key=lambda pair: (-together[pair], pair))),
    )


def _worth_showing(together: dict[tuple[int, int], float], moved: Floats | None) -> list[tuple[int, int]]:
    """The pairs that belong together most, and before them, where that is known, those that changed most."""
    strongest = sorted(together, key=lambda pair: (-together[pair], pair))
    if moved is None:
        return strongest[:MOST_PAIRS]
    worst = sorted(together, key=lambda pair: (-float(moved[pair]), pair))[: MOST_PAIRS // 2]
    return [*worst, *(pair for pair in strongest if pair not in worst)][:MOST_PAIRS]


def _axis(subject: Subject, name: str, tables: Sequence[Table], samples: Sequence[Table]) -> Axis:
    attribute = subject.attribute(name)
    if not attribute.kind_facts.ordered:
        labels, _ = top_labels(subject, name, tables)
        place = {label: code for code, label in enumerate(labels)}
        last = len(labels) - 1
        codes = tuple(
            np.array(
                [
                    place.get(MISSING_VALUE if label is None else label, last)
                    for label in labels_of(sample, attribute)
                ],
                np.int64,
            )
            for sample in samples
        )
        return Axis(name, attribute, tuple(labels), None, codes)
    labels_in_order: tuple[str, ...] = attribute.ordered if attribute.kind_facts.listed else ()
    edges = (
        place_edges(len(labels_in_order))
        if labels_in_order
        else bin_edges([source_of(table).ends(attribute) for table in tables], _CELLS)
    )
    codes = tuple(_cells(numbers(sample, attribute), edges) for sample in samples)
    return Axis(name, attribute, labels_in_order, None if labels_in_order else edges, codes)


def _cells(values: Floats, edges: Floats) -> Codes:
    present = np.isfinite(values)
    found = np.searchsorted(edges, np.where(present, values, edges[0]), side="right") - 1
    return np.where(present, np.clip(found, 0, edges.size - 2), _LEFT_OUT).astype(np.int64)


def _grids(first: Axis, second: Axis) -> list[Floats]:
    """Shares of the rows in each cell, one grid for each table."""
    grids = []
    for one, other in zip(first.codes, second.codes, strict=True):
        both = (one != _LEFT_OUT) & (other != _LEFT_OUT)
        counts = np.bincount(one[both] * second.size + other[both], minlength=first.size * second.size)
        grids.append(counts.reshape(first.size, second.size) / max(int(both.sum()), 1))
    return grids


def _dependence(grid: Floats) -> float:
    """How far a two-way table is from that of independent columns, as a share of the rows."""
    expected = grid.sum(axis=1, keepdims=True) * grid.sum(axis=0, keepdims=True)
    return 0.5 * float(np.abs(grid - expected).sum())


def cramers_v(grid: Floats, rows: int) -> float:
    """Cramér's V of a two-way table of shares, with the correction of its bias by Bergsma (2013).

    >>> round(cramers_v(np.diag([0.5, 0.5]), 1000), 2), cramers_v(np.full((2, 2), 0.25), 1000)
    (1.0, 0.0)
    """
    used = _filled(grid)
    if min(used.shape) < 2 or rows < 3:
        return 0.0
    expected = used.sum(axis=1, keepdims=True) * used.sum(axis=0, keepdims=True)
    phi = float(((used - expected) ** 2 / expected).sum())
    wide, tall = (size - (size - 1) ** 2 / (rows - 1) for size in used.shape)
    left = max(0.0, phi - math.prod(size - 1 for size in used.shape) / (rows - 1))
    return min(math.sqrt(left / max(min(wide, tall) - 1, 1e-9)), 1.0)


def _hardly_by_chance(grid: Floats, rows: int) -> float:
    """Three standard deviations of the squared measure above nothing, and never less than 0.05."""
    used = _filled(grid)
    if min(used.shape) < 2:
        return 1.0
    degrees = math.prod(size - 1 for size in used.shape)
    return max(0.05, math.sqrt(3 * math.sqrt(2 * degrees) / max(rows, 1) / (min(used.shape) - 1)))


def _filled(grid: Floats) -> Floats:
    """A two-way table without empty rows and columns."""
    filled: Floats = grid[grid.sum(axis=1) > 0][:, grid.sum(axis=0) > 0]
    return filled
