"""Compare original and released tables: distributions, correlations, group means and single rows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.columns import MISSING_VALUE, Attribute, Kind, day_text, labels_of, numbers
from shoal.display import internal
from shoal.evaluation import Distribution, Moments, correlations, excerpt
from shoal.io import Table
from shoal.numbers import Floats, Integers
from shoal.partition import actual_k
from shoal.report.findings import Subject

# two-way tables of larger tables are counted on a sample
MOST_ROWS = 100_000


def sampled(n: int) -> Integers:
    """The sample of a table's rows for joint counts; the same for every call."""
    if n <= MOST_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MOST_ROWS, replace=False))


@internal()
@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Smallest and largest value of a column, and whether all values are integers."""

    low: float
    high: float
    whole: bool

    @classmethod
    def of(cls, values: Floats) -> ColumnRange | None:
        """The range of the values; None without a value."""
        if not values.size:
            return None
        whole = bool(np.all(values == np.rint(values)))
        return cls(float(values.min()), float(values.max()), whole)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class OrderedMarginal:
    """An ordered column: its values and how often each occurs, missing ones left out.

    Attributes:
        missing: number of rows without a value.
        ends: None without a value.
    """

    distribution: Distribution
    moments: Moments
    ends: ColumnRange | None
    missing: int

    @classmethod
    def of(cls, values: Floats, rows: int) -> OrderedMarginal:
        """The marginal of all values of a table with the given number of rows."""
        return cls(Distribution.of(values), Moments.of(values), ColumnRange.of(values), rows - values.size)

    @property
    def size(self) -> int:
        return self.moments.n

    def shares(self, edges: Floats) -> Floats:
        """Share of the values in each bin."""
        found = self.distribution
        counts = np.histogram(found.values, bins=edges, weights=found.counts)[0]
        return np.asarray(counts / max(self.size, 1))

    def quantiles(self, points: Sequence[float] | Floats) -> Floats:
        """Quantiles as `np.quantile` of all the values.

        >>> OrderedMarginal.of(np.array([1.0, 1.0, 2.0, 4.0]), 4).quantiles([0.5, 1.0]).tolist()
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


class TableAnswers(Protocol):
    """What the comparison needs to know about a table."""

    @property
    def n(self) -> int: ...

    def ends(self, attribute: Attribute) -> ColumnRange | None:
        """The range of an ordered column."""

    def marginal(self, attribute: Attribute) -> OrderedMarginal:
        """The marginal of an ordered column."""

    def labels(self, attribute: Attribute) -> Counter[str]:
        """Counts of each value of a nominal column; a missing value is a separate value."""

    def correlations(self, attributes: Sequence[Attribute]) -> Floats:
        """Correlations of ordered columns."""

    def sample(self) -> Table:
        """The sampled rows for joint counts."""


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class OfTable:
    """The answers from a table in memory, or from one read column by column."""

    table: Table

    @property
    def n(self) -> int:
        return self.table.n

    def _values(self, attribute: Attribute) -> Floats:
        values = numbers(self.table, attribute)
        present: Floats = values[np.isfinite(values)]
        return present

    def ends(self, attribute: Attribute) -> ColumnRange | None:
        return ColumnRange.of(self._values(attribute))

    def marginal(self, attribute: Attribute) -> OrderedMarginal:
        return OrderedMarginal.of(self._values(attribute), self.n)

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
class CountedTable:
    """The answers from a table that a runner has already counted.

    Attributes:
        marginals: of ordered columns.
        names: of nominal columns.
        related: the ordered columns, and their correlations.
        rows: the rows that `sampled` selects.
        different: number of distinct rows; None where not counted.
    """

    n: int
    marginals: Mapping[str, OrderedMarginal]
    names: Mapping[str, Counter[str]]
    related: tuple[tuple[str, ...], Floats]
    rows: Table
    different: int | None = None

    def ends(self, attribute: Attribute) -> ColumnRange | None:
        return self.marginals[attribute.name].ends

    def marginal(self, attribute: Attribute) -> OrderedMarginal:
        return self.marginals[attribute.name]

    def labels(self, attribute: Attribute) -> Counter[str]:
        return self.names[attribute.name]

    def correlations(self, attributes: Sequence[Attribute]) -> Floats:
        names, found = self.related
        places = [names.index(attribute.name) for attribute in attributes]
        return np.asarray(found[np.ix_(places, places)])

    def sample(self) -> Table:
        return self.rows


def source_of(table: Table) -> TableAnswers:
    """The object that answers for a table."""
    return table.records if isinstance(table.records, CountedTable) else OfTable(table)


BINS = 48
MOST_LABELS = 20
OTHER = "(other values)"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_POINTS = np.linspace(0.0, 1.0, 101)
# indices, among the quantile points, of those quoted in the text
_NAMED = (5, 25, 50, 75, 95)

# largest number of columns for a readable matrix
MOST_COLUMNS = 24
MOST_PAIRS = 6
# pairs whose preservation is reported, and the shares of a relation from which it counts as kept, or partly kept
MOST_KEPT = 12
KEPT, WEAKENED = 0.75, 0.25
_CELLS = 16
_LEFT_OUT = -1
MOST_GROUPED = 3
# the mean of fewer rows reveals more about them than about their group
_FEWEST_ROWS = 5
_MOST_GROUPS = 12
# values (rows times columns) up to which equal rows are counted
_COUNTED = 5_000_000


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class ComparedDistribution:
    """Shares of the rows, of the original (None without one) and of the released table.

    Attributes:
        edges: of the bins of numbers and dates; None for labels.
        labels: names of the categories, of ordinal and nominal columns.
    """

    before: Floats | None
    after: Floats
    edges: Floats | None = None
    labels: tuple[str, ...] = ()

    @property
    def moved(self) -> float | None:
        """Half the sum of the absolute differences: the share of rows that would have to move."""
        return None if self.before is None else 0.5 * float(np.abs(self.after - self.before).sum())


@dataclass(frozen=True, slots=True)
class Change:
    """A statistic of both tables as text, and the difference."""

    statistic: str
    before: str
    after: str
    change: str


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One attribute of both tables.

    Attributes:
        quantiles: of the original and of the released values, at the same 101 points; None without an order or an
            original.
        missing: number of missing values of the original (None without one) and of the released table.
        statistics: of the released table as text, where there is no original to compare it with.
    """

    name: str
    kind: Kind
    distribution: ComparedDistribution
    quantiles: tuple[Floats, Floats] | None
    changes: tuple[Change, ...]
    missing: tuple[int | None, int]
    statistics: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what needs an original is None without one."""
        shown = self.distribution
        before, after = (None, None) if self.quantiles is None else self.quantiles
        return {
            "name": self.name,
            "kind": self.kind,
            "shares": {"before": _listed(shown.before), "after": _listed(shown.after)},
            "edges": _listed(shown.edges),
            "labels": list(shown.labels),
            "moved": shown.moved,
            "quantiles": None
            if before is None
            else {"at": _listed(_POINTS), "before": _listed(before), "after": _listed(after)},
            "changes": [
                {"statistic": c.statistic, "before": c.before, "after": c.after, "change": c.change}
                for c in self.changes
            ],
            "missing": {"before": self.missing[0], "after": self.missing[1]},
        }


def _listed(values: Floats | None) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


def compare(subject: Subject, original: Table | None) -> list[Comparison]:
    """Compare every released column that can be compared; without an original, describe the released table alone.

    Cost:
        One sort per column.
    """
    return [
        _nominal(subject, name, original)
        if not subject.attribute(name).kind_facts.ordered
        else _ordered(subject, name, original)
        for name in subject.columns
        if original is None or name in original.names
    ]


def bin_edges(ends: Sequence[ColumnRange | None], most: int = BINS) -> Floats:
    """Edges of equal bins over all the values; integers are never split unevenly between bins.

    >>> bin_edges([ColumnRange.of(np.array([0.0, 3.0]))]).tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    present = [one for one in ends if one is not None]
    lo, hi = (min(one.low for one in present), max(one.high for one in present)) if present else (0.0, 1.0)
    if all(one.whole for one in present):
        width = max(1, math.ceil((hi - lo + 1) / most))
        return lo - 0.5 + width * np.arange(math.ceil((hi - lo + 1) / width) + 1, dtype=np.float64)
    return np.linspace(lo, hi if hi > lo else lo + 1.0, most + 1)


def place_edges(places: int) -> Floats:
    """One bin around each position of an order."""
    return np.arange(places + 1, dtype=np.float64) - 0.5


def top_labels(subject: Subject, name: str, tables: Sequence[Table]) -> tuple[list[str], list[Counter[str]]]:
    """The labels to show, in their declared order where there is one, and how often each table has each."""
    attribute = subject.attribute(name)
    counts = [source_of(table).labels(attribute) for table in tables]
    together: Counter[str] = sum(counts, Counter())
    tree = attribute.tree
    declared = list(tree.labels) if tree is not None else sorted(together)
    public = set() if tree is None else set(tree.values) - {MISSING_VALUE}
    known = [label for label in declared if label in together or label in public]
    listed = set(known)
    known += [label for label in sorted(together) if label not in listed]
    if len(known) <= MOST_LABELS:
        return known, counts
    # the frequent ones; ties by name, so that the same tables give the same page
    frequent = sorted(known, key=lambda label: (-together[label], label))[: MOST_LABELS - 1]
    return [*frequent, OTHER], [_folded(count, frequent) for count in counts]


def _folded(counts: Counter[str], shown: Sequence[str]) -> Counter[str]:
    kept = Counter({label: counts[label] for label in shown})
    kept[OTHER] = counts.total() - kept.total()
    return kept


def _nominal(subject: Subject, name: str, original: Table | None) -> Comparison:
    tables = [subject.table] if original is None else [original, subject.table]
    labels, counts = top_labels(subject, name, tables)
    every = [np.array([count[label] for label in labels]) / max(count.total(), 1) for count in counts]
    changes: tuple[Change, ...] = ()
    if original is not None:
        order = np.argsort(-np.abs(every[1] - every[0]), kind="stable")[:5]
        changes = tuple(
            Change(labels[place], _percent(every[0][place]), _percent(every[1][place]), _points(every, place))
            for place in order
        )
    gone = [count[MISSING_VALUE] for count in counts]
    return Comparison(
        name,
        "nominal",
        ComparedDistribution(None if original is None else every[0], every[-1], labels=tuple(labels)),
        None,
        changes,
        (None if original is None else gone[0], gone[-1]),
        _most_frequent(labels, every[0]) if original is None else (),
    )


def _most_frequent(labels: Sequence[str], found: Floats) -> tuple[tuple[str, str], ...]:
    order = np.argsort(-found, kind="stable")[:5]
    return tuple((labels[place], _percent(found[place])) for place in order if found[place] > 0)


def _points(every: Sequence[Floats], place: int) -> str:
    return f"{100 * (every[1][place] - every[0][place]):+.2f}"


def _ordered(subject: Subject, name: str, original: Table | None) -> Comparison:
    attribute = subject.attribute(name)
    after = source_of(subject.table).marginal(attribute)
    before = None if original is None else source_of(original).marginal(attribute)
    parts = [after] if before is None else [before, after]
    labels = attribute.ordered if attribute.kind_facts.listed else ()
    edges = place_edges(len(labels)) if labels else bin_edges([part.ends for part in parts])
    quantiles = (
        (before.quantiles(_POINTS), after.quantiles(_POINTS))
        if before is not None and before.size and after.size
        else None
    )
    return Comparison(
        name,
        attribute.kind,
        ComparedDistribution(
            None if before is None else before.shares(edges),
            after.shares(edges),
            None if labels else edges,
            labels,
        ),
        quantiles if not attribute.kind_facts.listed else None,
        _changes(attribute, before.moments, after.moments, quantiles)
        if before is not None and quantiles is not None
        else (),
        (None if before is None else before.missing, after.missing),
        _statistics(attribute, after) if original is None else (),
    )


def _statistics(attribute: Attribute, values: OrderedMarginal) -> tuple[tuple[str, str], ...]:
    if not values.size:
        return ()
    found: list[tuple[str, str]] = []
    if not attribute.kind_facts.listed:
        found.append(("mean", value_words(attribute, values.moments.mean)))
        days = " days" if attribute.kind_facts.days else ""
        found.append(("standard deviation", f"{number_words(math.sqrt(values.moments.variance))}{days}"))
    points = values.quantiles([place / 100 for place in _NAMED])
    return (
        *found,
        *(
            (_quantile_name(place), value_words(attribute, float(v)))
            for place, v in zip(_NAMED, points, strict=True)
        ),
    )


def _quantile_name(place: int) -> str:
    return "median" if place == 50 else f"{place}% quantile"


def _changes(
    attribute: Attribute, before: Moments, after: Moments, quantiles: tuple[Floats, Floats]
) -> tuple[Change, ...]:
    def line(statistic: str, first: float, second: float, change: str) -> Change:
        return Change(statistic, value_words(attribute, first), value_words(attribute, second), change)

    found: list[Change] = []
    spread = math.sqrt(before.variance)
    if not attribute.kind_facts.listed:
        first, second = before.mean, after.mean
        # days have no natural zero
        days = attribute.kind_facts.days
        found.append(
            line("mean", first, second, f"{second - first:+.4g} days" if days else _relative(first, second))
        )
        first, second = before.variance, after.variance
        found.append(Change("variance", number_words(first), number_words(second), _relative(first, second)))
    for place in _NAMED:
        low, high = (every[place] for every in quantiles)
        title = _quantile_name(place)
        moved = f"{round((high - low) / spread, 2) + 0.0:+.2f} sd" if spread > 0 else ""
        if attribute.kind_facts.listed:
            moved = f"{round(float(high)) - round(float(low)):+d}"
        found.append(line(title, float(low), float(high), moved))
    return tuple(found)


def _relative(before: float, after: float) -> str:
    return percent_words((after - before) / abs(before), "+") if before else ""


def percent_words(share: float, sign: str = "") -> str:
    """A share in percent, never with a power of ten or a negative zero.

    >>> percent_words(0.01234), percent_words(-0.5, "+"), percent_words(12.3456, "+"), percent_words(-0.0000012)
    ('1.23%', '-50.0%', '+1,235%', '0.00%')
    """
    percent = 100 * share
    digits = 0 if abs(percent) >= 100 else 1 if abs(percent) >= 10 else 2
    return f"{round(percent, digits) + 0.0:{sign},.{digits}f}%"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def value_words(attribute: Attribute, value: float) -> str:
    """A number of a column, formatted as a value of that column."""
    if attribute.kind_facts.listed:
        return attribute.ordered[round(value)]
    return day_text(round(value)) if attribute.kind_facts.days else number_words(value)


def number_words(value: float) -> str:
    """A number as formatted in tables.

    >>> number_words(1234.5), number_words(-2.5e7), number_words(1.2345e12)
    ('1,234.5', '-25,000,000', '1.234×10¹²')
    """
    if abs(value) < 1e6:
        return f"{value:,.6g}"
    if abs(value) < 1e8:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}"


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Pearson correlations of the ordered columns; NaN where a column is constant."""

    names: tuple[str, ...]
    before: Floats | None
    after: Floats


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One column cut into a few cells: equal parts of its range, or labels.

    Attributes:
        edges: of the parts; None for labels.
        codes: cell of each row of the original (if any) and of the released table; -1 for a row without one.
    """

    name: str
    attribute: Attribute
    labels: tuple[str, ...]
    edges: Floats | None
    codes: tuple[Integers, ...]

    @property
    def size(self) -> int:
        return len(self.labels) if self.edges is None else self.edges.size - 1


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Two columns jointly: shares of the rows in each cell.

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
    """Strength of association of two columns: bias-corrected Cramér's V of their two-way tables.

    Attributes:
        before, after: in the original and in the released table, 0 (independent) to 1 (one determines the other).
        chance: a value that independent columns rarely reach in a table of that size.
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
class TwoWayTables:
    """Two-way tables.

    Attributes:
        names: the columns included.
        moved: for each pair of columns the share of rows that would have to move; None without an original.
        shown: the pairs to draw: those that changed most, then the most strongly associated ones.
        kept: association of columns before and after, the strongest pairs first; empty without an original.
        axes: the columns, cut into cells.
        strongest: the pairs as column indices, in order of decreasing association.
    """

    names: tuple[str, ...]
    moved: Floats | None
    shown: tuple[PairTable, ...]
    left_out: tuple[str, ...]
    kept: tuple[KeptPair, ...]
    axes: tuple[Axis, ...]
    strongest: tuple[tuple[int, int], ...]


def correlate(subject: Subject, original: Table | None) -> Correlations | None:
    """Correlations of both tables; None with fewer than two ordered columns."""
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


def pair_tables(subject: Subject, original: Table | None) -> TwoWayTables | None:
    """Two-way tables of all pairs of columns, and the few worth showing; None with fewer than two columns.

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
    return TwoWayTables(
        tuple(used),
        moved,
        tuple(shown),
        tuple(left_out),
        tuple(sorted(kept, key=lambda pair: -pair.before)),
        tuple(axes),
        tuple(sorted(together, key=lambda pair: (-together[pair], pair))),
    )


def _worth_showing(together: dict[tuple[int, int], float], moved: Floats | None) -> list[tuple[int, int]]:
    """The most strongly associated pairs and before them, where known, those that changed most."""
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


def _cells(values: Floats, edges: Floats) -> Integers:
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
    """Distance of a two-way table from that of independent columns, as a share of the rows."""
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
    """Three standard deviations of the squared measure above zero, at least 0.05."""
    used = _filled(grid)
    if min(used.shape) < 2:
        return 1.0
    degrees = math.prod(size - 1 for size in used.shape)
    return max(0.05, math.sqrt(3 * math.sqrt(2 * degrees) / max(rows, 1) / (min(used.shape) - 1)))


def _filled(grid: Floats) -> Floats:
    """A two-way table without empty rows and columns."""
    filled: Floats = grid[grid.sum(axis=1) > 0][:, grid.sum(axis=0) > 0]
    return filled


@dataclass(frozen=True, slots=True)
class Grouped:
    """The mean of one column within the groups defined by another.

    Attributes:
        labels: of the groups, at most twelve, the largest first.
        before, after: the means; None for a group with too few rows, and all of `before` without an original.
    """

    measured: str
    by: str
    labels: tuple[str, ...]
    before: tuple[float | None, ...] | None
    after: tuple[float | None, ...]

    @property
    def words(self) -> str:
        """The largest change, as text."""
        if self.before is None:
            return f"{len(self.labels)} groups of the released table"
        gaps = [
            (abs(second - first), label, first, second)
            for label, first, second in zip(self.labels, self.before, self.after, strict=True)
            if first is not None and second is not None
        ]
        if not gaps:
            return "no group has enough rows in both tables"
        _, label, first, second = max(gaps)
        return f"the group that moves most is {label}, from {first:,.4g} to {second:,.4g}"


def grouped(subject: Subject, original: Table | None, pairs: TwoWayTables | None) -> list[Grouped]:
    """Means of numeric columns within the groups of nominal ones: the most strongly associated pairs."""
    if pairs is None:
        return []
    tables = [subject.table] if original is None else [original, subject.table]
    samples = [source_of(table).sample() for table in tables]
    found: list[Grouped] = []
    for first, second in pairs.strongest:
        one, other = pairs.axes[first], pairs.axes[second]
        for measured, by in ((one, other), (other, one)):
            facts = measured.attribute.kind_facts
            if facts.measured and not facts.days and by.edges is None and by.size > 1:
                means = [
                    _means(numbers(sample, measured.attribute), by.codes[number], by.size)
                    for number, sample in enumerate(samples)
                ]
                found += _of_groups(measured.name, by, means)
        if len(found) >= MOST_GROUPED:
            break
    return found[:MOST_GROUPED]


def _means(values: Floats, codes: NDArray[np.int64], size: int) -> list[float | None]:
    here = np.isfinite(values) & (codes >= 0)
    counts = np.bincount(codes[here], minlength=size)
    sums = np.bincount(codes[here], weights=values[here], minlength=size)
    return [
        float(total / count) if count >= _FEWEST_ROWS else None
        for total, count in zip(sums, counts, strict=True)
    ]


def _of_groups(name: str, by: Axis, means: Sequence[list[float | None]]) -> list[Grouped]:
    counts = np.bincount(by.codes[0][by.codes[0] >= 0], minlength=by.size)
    order = [int(code) for code in np.argsort(-counts, kind="stable")]
    shown = [code for code in order if any(found[code] is not None for found in means)][:_MOST_GROUPS]
    if len(shown) < 2 or not any(means[-1][code] is not None for code in shown):
        return []
    # ordinal values keep their order
    if by.attribute.kind_facts.listed:
        shown = sorted(shown)
    return [
        Grouped(
            name,
            by.name,
            tuple(by.labels[code] for code in shown),
            tuple(means[0][code] for code in shown) if len(means) == 2 else None,
            tuple(means[-1][code] for code in shown),
        )
    ]


def different_rows(subject: Subject) -> int | None:
    """Number of distinct rows of the released table; None where counting would take long."""
    table = subject.table
    if isinstance(table.records, CountedTable):
        return table.records.different
    if table.path is not None or not subject.columns or table.n * len(subject.columns) > _COUNTED:
        return None
    return actual_k(table, subject.columns).groups
