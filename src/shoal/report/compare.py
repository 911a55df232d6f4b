"""Attributes before and after: an original (or none) and a released table come in, shares, quantiles and changes leave.

Only counts in bins and quantiles go on, never the values themselves: pages stay small for tables of any size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.attribute import MISSING_VALUE, Attribute
from shoal.columns.kinds import Kind, day_text
from shoal.display import internal
from shoal.evaluation.utility import Moments
from shoal.io import Table
from shoal.report.source import Ends, Marginal, source_of
from shoal.report.subject import Subject

Floats = NDArray[np.float64]

BINS = 48
MOST_LABELS = 20
OTHER = "(other values)"
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_POINTS = np.linspace(0.0, 1.0, 101)
# places among the points of the quantiles that are put into words
_NAMED = (5, 25, 50, 75, 95)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Shares of the rows, of the original (None without one) and of the released table.

    Attributes:
        edges: of the bins of numbers and days; None for labels.
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
    """A statistic of both tables in words, and the difference."""

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
        statistics: of the released table in words, where there is no original to compare it with.
    """

    name: str
    kind: Kind
    distribution: Distribution
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
    """Every released column that can be compared; without an original, what the released table alone shows.

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


def bin_edges(ends: Sequence[Ends | None], most: int = BINS) -> Floats:
    """Edges of equal bins over all the values; whole numbers are never split unevenly between bins.

    >>> bin_edges([Ends.of(np.array([0.0, 3.0]))]).tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    present = [one for one in ends if one is not None]
    lo, hi = (min(one.low for one in present), max(one.high for one in present)) if present else (0.0, 1.0)
    if all(one.whole for one in present):
        width = max(1, math.ceil((hi - lo + 1) / most))
        return lo - 0.5 + width * np.arange(math.ceil((hi - lo + 1) / width) + 1, dtype=np.float64)
    return np.linspace(lo, hi if hi > lo else lo + 1.0, most + 1)


def place_edges(places: int) -> Floats:
    """One bin around each place of an order."""
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
        Distribution(None if original is None else every[0], every[-1], labels=tuple(labels)),
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
        Distribution(
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


def _statistics(attribute: Attribute, values: Marginal) -> tuple[tuple[str, str], ...]:
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
        # days have no zero of their own
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
    """A number of a column as the column's own value."""
    if attribute.kind_facts.listed:
        return attribute.ordered[round(value)]
    return day_text(round(value)) if attribute.kind_facts.days else number_words(value)


def number_words(value: float) -> str:
    """A number as a table shows it.

    >>> number_words(1234.5), number_words(-2.5e7), number_words(1.2345e12)
    ('1,234.5', '-25,000,000', '1.234×10¹²')
    """
    if abs(value) < 1e6:
        return f"{value:,.6g}"
    if abs(value) < 1e8:
        return f"{value:,.0f}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}"
