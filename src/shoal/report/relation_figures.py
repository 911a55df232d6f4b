"""Figures of columns together: correlations and two-way tables come in, matrices leave as drawings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import day_text
from shoal.report.drawing import Figure, short
from shoal.report.groups import Grouped
from shoal.report.relations import Axis, Correlations, Pairs, PairTable
from shoal.report.svg import (
    WIDTH,
    Scale,
    below,
    beside,
    box,
    day_ticks,
    drawing,
    path,
    place,
    short_number,
    text,
    ticks,
)

# numbers are written into the cells of a matrix up to this many columns
_READABLE = 8
# shades of a colour, as the stylesheet has them; level 0 is an empty cell
_LEVELS = 8
_LETTERS = 14
_LABELS, _BASE, _EDGE = 96, 80, 6
_ROW, _BAR, _DOTS = 22, 3, 116


def correlation_figures(found: Correlations) -> list[Figure]:
    """The matrices side by side, and their difference."""
    after = _matrix(found.names, found.after, "Correlations in the released table", 1.0)
    if found.before is None:
        return [after]
    gap = found.after - found.before
    reach = max(float(np.nanmax(np.abs(gap), initial=0.0)), 0.05)
    return [
        _matrix(found.names, found.before, "Correlations in the original", 1.0),
        after,
        _matrix(found.names, gap, "Difference, released minus original", reach),
    ]


def moved_figure(found: Pairs) -> Figure | None:
    """For each pair of columns the share of rows that would have to move."""
    if found.moved is None:
        return None
    matrix = found.moved.copy()
    np.fill_diagonal(matrix, np.nan)
    top = max(float(np.nanmax(matrix, initial=0.0)), 0.05)
    return _matrix(found.names, matrix, "Two-way tables: share of rows that would have to move", top)


def pair_figures(found: PairTable) -> list[Figure]:
    """Two columns together, before and after, in the same colours."""
    parts = [(found.after, "released")]
    if found.before is not None:
        parts.insert(0, (found.before, "original"))
    top = max(float(grid.max()) for grid, _ in parts)
    return [_grid(found, grid, which, top) for grid, which in parts]


def group_figure(found: Grouped) -> Figure:
    """The mean of one column in each group of another, before and after."""
    values = [*found.after, *(found.before or ())]
    present = [value for value in values if value is not None]
    low, high = min(present), max(present)
    pad = 0.06 * (high - low or abs(high) or 1.0)
    across = Scale(low - pad, high + pad, _DOTS, WIDTH - 10)
    base = 4 + _ROW * len(found.labels)
    parts, links, before, after = [], [], [], []
    for number, label in enumerate(found.labels):
        y = 4 + _ROW * number + _ROW / 2
        parts.append(path(f"M{_DOTS} {place(y)}H{WIDTH - 10}", "grid"))
        parts.append(text(_DOTS - 6, y + 4, short(label, 16), anchor="end", kind="name"))
        first = None if found.before is None else found.before[number]
        second = found.after[number]
        if first is not None and second is not None:
            links.append(f"M{place(across(first))} {place(y)}H{place(across(second))}")
        if first is not None:
            before.append(f"M{place(across(first))} {place(y)}h0")
        if second is not None:
            after.append(f"M{place(across(second))} {place(y)}h0")
    parts += [path("".join(links), "link"), path("".join(before), "dots big original")]
    parts += [path("".join(after), "dots big")]
    parts.append(below(across, [(value, short_number(value)) for value in ticks(low, high, 4)], base))
    title = f"Mean {found.measured} by {found.by}"
    return Figure(drawing(parts, base + 20, f"{title}: {found.words}"), title, f"{title}: {found.words}")


def _grid(found: PairTable, grid: NDArray[np.float64], which: str, top: float) -> Figure:
    title = f"{found.first.name} and {found.second.name}, {which}"
    left = 42 if found.second.edges is not None else _LABELS
    height = 190.0 if found.second.edges is not None else max(120.0, 15.0 * found.second.size)
    base = _EDGE + height
    wide = (WIDTH - _EDGE - left) / found.first.size
    tall = height / found.second.size
    # the root shows rare cells beside common ones
    levels = np.ceil(np.sqrt(grid / (top or 1.0)) * _LEVELS).astype(int)
    cells: dict[int, list[str]] = {}
    for i, j in zip(*np.nonzero(grid), strict=True):
        y = base - tall * (j + 1) if found.second.edges is not None else _EDGE + tall * j
        cells.setdefault(int(levels[i, j]), []).append(box(left + wide * i, float(y), wide - 0.6, tall - 0.6))
    marks = [path("".join(parts), f"more-{level}") for level, parts in sorted(cells.items())]
    marks += _across(found.first, left, wide, base)
    if found.second.edges is None:
        marks += [
            text(left - 5, _EDGE + tall * (j + 0.5) + 4, short(label, _LETTERS), anchor="end", kind="name")
            for j, label in enumerate(found.second.labels)
        ]
    else:
        edges = found.second.edges
        scale = Scale(float(edges[0]), float(edges[-1]), base, _EDGE)
        marks.insert(0, beside(scale, _numbers(found.second), left, WIDTH - _EDGE))
    foot = 20 if found.first.edges is not None else _BASE
    alt = f"Two-way table of {title}: {_peak(found, grid)}."
    return Figure(drawing(marks, base + foot, alt), title, alt)


def _across(axis: Axis, left: float, wide: float, base: float) -> list[str]:
    """Labels below a two-way table: slanted names, or a scale."""
    if axis.edges is None:
        return _slanted(axis.labels, left, wide, base)
    scale = Scale(float(axis.edges[0]), float(axis.edges[-1]), left, WIDTH - _EDGE)
    return [below(scale, _numbers(axis), base)]


def _slanted(labels: Sequence[str], left: float, wide: float, base: float) -> list[str]:
    return [
        text(left + wide * (i + 0.5) + 4, base + 10, short(label, 11), anchor="end", turn=-60, kind="name")
        for i, label in enumerate(labels)
    ]


def _numbers(axis: Axis) -> list[tuple[float, str]]:
    assert axis.edges is not None
    low, high = float(axis.edges[0]), float(axis.edges[-1])
    if axis.attribute.kind_facts.days:
        return day_ticks(low, high)
    return [(value, short_number(value)) for value in ticks(low, high)]


def _peak(found: PairTable, grid: NDArray[np.float64]) -> str:
    i, j = np.unravel_index(int(grid.argmax()), grid.shape)
    cell = f"{_cell_words(found.first, int(i))} with {_cell_words(found.second, int(j))}"
    return f"the most frequent cell is {cell}, {100 * grid[i, j]:.1f}% of the rows"


def _cell_words(axis: Axis, number: int) -> str:
    if axis.edges is None:
        return axis.labels[number]
    low, high = axis.edges[number], axis.edges[number + 1]
    if axis.attribute.kind_facts.days:
        return f"{day_text(round(low))} to {day_text(round(high))}"
    return f"{low:.4g} to {high:.4g}"


def _matrix(names: Sequence[str], values: NDArray[np.float64], title: str, reach: float) -> Figure:
    """Squares, darker the farther a value is from nothing; two colours for its two signs."""
    side = (WIDTH - _EDGE - _LABELS) / len(names)
    tall = min(side, 34.0)
    base = _EDGE + tall * len(names)
    cells: dict[str, list[str]] = {}
    words = []
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = float(values[i, j])
        level = min(round(abs(value) / reach * _LEVELS), _LEVELS)
        x, y = _LABELS + side * j, _EDGE + tall * i
        cells.setdefault(f"{'more' if value >= 0 else 'less'}-{level}", []).append(
            box(x, float(y), side - 1, tall - 1)
        )
        if len(names) <= _READABLE:
            kind = "on-dark" if level > _LEVELS // 2 else "number"
            words.append(
                text(x + side / 2 - 0.5, y + tall / 2 + 3.5, f"{value:.2f}", anchor="middle", kind=kind)
            )
    marks = [path("".join(parts), name) for name, parts in sorted(cells.items())]
    marks += [*words, *_slanted(names, _LABELS, side, base)]
    marks += [
        text(_LABELS - 5, _EDGE + tall * (i + 0.5) + 4, short(name, _LETTERS), anchor="end", kind="name")
        for i, name in enumerate(names)
    ]
    alt = f"Matrix. {title}: {_largest(names, values)}."
    return Figure(drawing(marks, base + _BASE, alt), title, alt)


def _largest(names: Sequence[str], values: NDArray[np.float64]) -> str:
    off = [
        (abs(float(values[i, j])), names[i], names[j], float(values[i, j]))
        for i in range(len(names))
        for j in range(i)
        if np.isfinite(values[i, j])
    ]
    if not off:
        return "no value"
    _, first, second, value = max(off)
    return f"the largest value is {value:.2f}, of {first} and {second}"
