"""Figures of one attribute: a comparison comes in, its distributions and quantiles leave as drawings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.columns.kinds import KIND_FACTS
from shoal.report.compare import Change, Comparison
from shoal.report.drawing import Figure, short
from shoal.report.svg import (
    WIDTH,
    Scale,
    below,
    beside,
    box,
    day_ticks,
    drawing,
    path,
    percents,
    place,
    short_number,
    staircase,
    text,
    ticks,
)

_HEIGHT = 190
_LEFT, _RIGHT, _TOP, _BASE = 40, WIDTH - 8, 8, _HEIGHT - 22
# a row of labels: its height, that of each bar, and where bars begin and end
_ROW, _BAR, _BARS, _END = 22, 7, 124, WIDTH - 46
_SPARK = (100, 24)


def distribution(found: Comparison) -> Figure:
    """Shares of the rows over the range of a column, or over its labels."""
    parts = found.distribution
    if parts.edges is None:
        return _bars(found)
    edges = parts.edges.tolist()
    across = Scale(edges[0], edges[-1], _LEFT, _RIGHT)
    high = _highest(found)
    up = Scale(0.0, high, _BASE, _TOP)
    marks = [beside(up, percents(high), _LEFT, _RIGHT)]
    if parts.before is not None:
        marks.append(path(staircase(edges, parts.before.tolist(), across, up), "original"))
    kind = "released" if parts.before is None else "released line"
    marks.append(path(staircase(edges, parts.after.tolist(), across, up), kind))
    marks.append(below(across, _axis(found, edges[0], edges[-1]), _BASE))
    alt = _distribution_alt(found)
    return Figure(drawing(marks, _HEIGHT, alt), "Distribution", alt)


def spark(found: Comparison) -> str:
    """The distribution as a small drawing without words, for the line that opens a column."""
    parts, (width, height) = found.distribution, _SPARK
    edges = list(range(parts.after.size + 1)) if parts.edges is None else parts.edges.tolist()
    across, up = Scale(edges[0], edges[-1], 0, width), Scale(0.0, _highest(found), height, 1)
    marks = []
    if parts.before is not None:
        marks.append(path(staircase(edges, parts.before.tolist(), across, up), "original"))
    kind = "released" if parts.before is None else "released line"
    marks.append(path(staircase(edges, parts.after.tolist(), across, up), kind))
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(marks)}</svg>"
    )


def quantiles(found: Comparison) -> Figure | None:
    """Released against original quantiles: on the diagonal where nothing changed."""
    if found.quantiles is None:
        return None
    before, after = found.quantiles
    low, high = float(min(before[0], after[0])), float(max(before[-1], after[-1]))
    across, up = Scale(low, high, _LEFT + 8, _RIGHT), Scale(low, high, _BASE, _TOP)
    marks = _axis(found, low, high)
    diagonal = f"M{place(across(low))} {place(up(low))}L{place(across(high))} {place(up(high))}"
    dots = "".join(
        f"M{place(across(float(x)))} {place(up(float(y)))}h0" for x, y in zip(before, after, strict=True)
    )
    largest = max(found.changes, key=_size_of_change, default=None)
    moved = "" if largest is None else f" The {largest.statistic} moves by {largest.change}."
    alt = f"Quantile-quantile plot of {found.name}.{moved}"
    parts = [
        beside(up, marks, _LEFT + 8, _RIGHT),
        below(across, marks, _BASE),
        path(diagonal, "guide"),
        path(dots, "dots"),
    ]
    return Figure(drawing(parts, _HEIGHT, alt), "Quantiles, released against original", alt)


def _bars(found: Comparison) -> Figure:
    """A line for each label: both shares as bars, and the released one in words."""
    parts = found.distribution
    height = _ROW * len(parts.labels) + 6
    scale = Scale(0.0, _highest(found), 0, _END - _BARS)
    original, released, words = [], [], []
    for number, label in enumerate(parts.labels):
        top = 4 + _ROW * number
        after = float(parts.after[number])
        if parts.before is not None:
            original.append(box(_BARS, top, scale(float(parts.before[number])), _BAR))
        released.append(
            box(_BARS, top + (_BAR if parts.before is not None else _BAR / 2), scale(after), _BAR)
        )
        words.append(text(_BARS - 6, top + 11, short(label), anchor="end", kind="name"))
        words.append(text(WIDTH - 2, top + 11, f"{100 * after:.1f}%", anchor="end"))
    alt = _distribution_alt(found)
    marks = [path("".join(original), "original"), path("".join(released), "released"), *words]
    return Figure(drawing(marks, height, alt), "Distribution, with the released shares", alt)


def _axis(found: Comparison, low: float, high: float) -> Sequence[tuple[float, str]]:
    if KIND_FACTS[found.kind].days:
        return day_ticks(low, high)
    return [(value, short_number(value)) for value in ticks(low, high)]


def _highest(found: Comparison) -> float:
    parts = found.distribution
    every = [parts.after] if parts.before is None else [parts.before, parts.after]
    return max(max(float(np.max(shares, initial=0.0)) for shares in every), 1e-9)


def _distribution_alt(found: Comparison) -> str:
    parts = found.distribution
    tables = "the released table" if parts.before is None else "the original and the released table"
    return f"Distribution of {found.name} in {tables}."


def _size_of_change(change: Change) -> float:
    words = change.change.split()
    return abs(float(words[0])) if len(words) == 2 and words[1] == "sd" else -1.0
