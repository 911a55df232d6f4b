"""Risk, learning and clusters as figures: measured lines come in, strips with dots and a bar chart leave.

A strip is part of a table: dots and intervals on a line from 0 to 100%, beside the numbers that they show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.learning import Interval
from shoal.evaluation.verdict import RiskLine
from shoal.report.compare import bin_edges
from shoal.report.drawing import Figure
from shoal.report.source import Ends
from shoal.report.svg import WIDTH, Scale, below, beside, box, drawing, path, short_number, ticks

_MOST_BARS = 40
# fewer different sizes than this are said, not drawn
_FEWEST_SIZES = 4
_LEFT, _TOP, _BASE = 40, 8, 150


@dataclass(frozen=True, slots=True)
class Mark:
    """A dot on a strip with its interval, in percent from the left; without an interval, a line across."""

    kind: str
    at: float
    left: float
    width: float


def risk_strip(line: RiskLine) -> tuple[Mark, ...]:
    """An attack on the released table, beside guessing and the unprotected table."""
    return _marks(
        ("guessing", line.chance, None),
        ("original", line.unprotected, line.unprotected_interval),
        ("released", line.success, line.interval),
    )


def learning_strips(learning: Mapping[str, Any]) -> dict[str, tuple[Mark, ...]]:
    """Accuracy and F-measures of a classifier that learned from the release, beside its bounds."""
    found = {
        "accuracy": [
            (kind, learning[source]["accuracy"], learning[source]["accuracy_interval"])
            for source, kind in _SOURCES
        ]
    }
    for name in learning["classes"]:
        found[f"F-measure of {name}"] = [
            (kind, learning[source]["f"][name], learning[source]["f_interval"][name])
            for source, kind in _SOURCES
        ]
    return {name: _marks(*points) for name, points in found.items()}


_SOURCES = (("majority", "guessing"), ("original", "original"), ("released", "released"))


def _marks(*points: tuple[str, float | None, Interval | None]) -> tuple[Mark, ...]:
    found = []
    for kind, value, interval in points:
        if value is None:
            continue
        low, high = (value, value) if not interval or kind == "guessing" else interval
        found.append(Mark(kind, _percent(value), _percent(low), round(_percent(high) - _percent(low), 2)))
    return tuple(found)


def _percent(share: float) -> float:
    return round(100 * min(max(share, 0.0), 1.0), 2)


def cluster_figure(groups: Sequence[tuple[str, NDArray[np.int64]]]) -> Figure | None:
    """How many clusters have which size, all groups of attributes together; None where few words say it."""
    sizes = np.concatenate([sizes for _, sizes in groups]).astype(np.float64)
    if np.unique(sizes).size < _FEWEST_SIZES:
        return None
    edges = bin_edges([Ends.of(sizes)], _MOST_BARS).tolist()
    counts = np.histogram(sizes, bins=edges)[0]
    across = Scale(edges[0], edges[-1], _LEFT, WIDTH - 8)
    high = float(counts.max())
    up = Scale(0.0, high, _BASE, _TOP)
    bars = "".join(
        box(across(left) + 0.5, up(float(count)), across(right) - across(left) - 1, _BASE - up(float(count)))
        for left, right, count in zip(edges, edges[1:], counts, strict=False)
        if count
    )
    marks = [
        beside(
            up,
            [(value, short_number(value)) for value in ticks(0, high, 4) if value == int(value)],
            _LEFT,
            WIDTH - 8,
        ),
        path(bars, "released"),
        below(across, [(value, short_number(value)) for value in ticks(edges[0], edges[-1])], _BASE),
    ]
    alt = f"Bar chart of cluster sizes, from {sizes.min():.0f} to {sizes.max():.0f} records."
    return Figure(drawing(marks, _BASE + 22, alt), "Clusters by the number of their records", alt)
