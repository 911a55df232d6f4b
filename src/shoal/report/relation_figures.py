"""Figures of columns together: correlations and two-way tables come in, matrices leave as drawings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.dates import day_text
from shoal.report.drawing import Figure, places_of, rounded, rounded_number, short
from shoal.report.relations import Axis, Correlations, Pairs, PairTable

# empty cells are white, so the palest colour has to be seen beside it
_SEA = [[0.0, "#d3e9ee"], [0.25, "#a9d2db"], [0.6, "#4d9fb0"], [1.0, "#0d3f4a"]]
_DIVERGING = [[0.0, "#8c4a12"], [0.25, "#dda878"], [0.5, "#ffffff"], [0.75, "#7fbcc9"], [1.0, "#0f5261"]]
_WARM = [[0.0, "#ffffff"], [0.5, "#dda878"], [1.0, "#8c4a12"]]
# numbers are written into the cells of a matrix up to this many columns
_READABLE = 6
# up to so many labels below a figure there is room for slanted ones
_SLOPING = 8


def correlation_figures(found: Correlations) -> list[Figure]:
    """The matrices side by side, and their difference."""
    if found.before is None:
        return [
            _matrix(found.names, found.after, "Correlations in the released table", _DIVERGING, (-1.0, 1.0))
        ]
    gap = found.after - found.before
    reach = max(float(np.nanmax(np.abs(gap), initial=0.0)), 0.05)
    return [
        _matrix(found.names, found.before, "Correlations in the original", _DIVERGING, (-1.0, 1.0)),
        _matrix(found.names, found.after, "Correlations in the released table", _DIVERGING, (-1.0, 1.0)),
        _matrix(found.names, gap, "Difference, released minus original", _DIVERGING, (-reach, reach)),
    ]


def moved_figure(found: Pairs) -> Figure | None:
    """For each pair of columns the share of rows that would have to move."""
    if found.moved is None:
        return None
    matrix = found.moved.copy()
    np.fill_diagonal(matrix, np.nan)
    top = max(float(np.nanmax(matrix, initial=0.0)), 0.05)
    drawn = _matrix(
        found.names, matrix, "Two-way tables: share of rows that would have to move", _WARM, (0.0, top)
    )
    return replace(drawn, wide=True)


def pair_figures(found: PairTable) -> list[Figure]:
    """Two columns together, before and after, in the same colours."""
    parts = [(found.after, "released")]
    if found.before is not None:
        parts.insert(0, (found.before, "original"))
    top = max(float(grid.max()) for grid, _ in parts)
    return [_grid(found, grid, which, top) for grid, which in parts]


def _grid(found: PairTable, grid: NDArray[np.float64], which: str, top: float) -> Figure:
    title = f"{found.first.name} and {found.second.name}, {which}"
    data = [
        {
            "type": "heatmap",
            "x": _middles(found.first),
            "y": _middles(found.second),
            # empty cells stay white; the root shows rare cells beside common ones
            "z": [[cell or None for cell in row] for row in rounded(np.sqrt(grid.T))],
            "customdata": rounded(grid.T),
            "colorscale": _SEA,
            "zmin": 0,
            "zmax": rounded_number(float(np.sqrt(top))),
            "showscale": False,
            "hovertemplate": "%{x}, %{y}: %{customdata:.2%} of the rows",
        }
    ]
    height = 300 if found.second.edges is not None else max(300, 110 + 16 * found.second.size)
    layout = {
        "height": height,
        "xaxis": {"tickangle": 0 if found.first.edges is not None else _slope(found.first.size)}
        | _scale(found.first),
        "yaxis": _scale(found.second),
    }
    words = f"Two-way table of {title}: {_peak(found, grid)}."
    numbers = found.first.edges is not None and found.second.edges is not None
    return Figure({"data": data, "layout": layout}, title, words, flat=numbers)


def _slope(labels: int) -> int:
    return -60 if labels <= _SLOPING else -90


def _middles(axis: Axis) -> list[Any]:
    if axis.edges is None:
        return list(range(axis.size))
    return places_of(axis.attribute.kind, (axis.edges[:-1] + axis.edges[1:]) / 2)


def _scale(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"showgrid": False, "zeroline": False}
    if axis.edges is None:
        # labels speak for themselves, and a title would lie across long ones
        labels = [short(label, 14) for label in axis.labels]
        return found | {"tickvals": list(range(axis.size)), "ticktext": labels, "tickfont": {"size": 10}}
    kind = "date" if axis.attribute.kind_facts.days else "linear"
    return found | {"type": kind, "title": {"text": short(axis.name)}}


def _peak(found: PairTable, grid: NDArray[np.float64]) -> str:
    i, j = np.unravel_index(int(grid.argmax()), grid.shape)
    cell = f"{_cell_words(found.first, int(i))} with {_cell_words(found.second, int(j))}"
    return f"the most frequent cell is {cell}, {100 * grid[i, j]:.1f}% of the rows"


def _cell_words(axis: Axis, place: int) -> str:
    if axis.edges is None:
        return axis.labels[place]
    low, high = axis.edges[place], axis.edges[place + 1]
    if axis.attribute.kind_facts.days:
        return f"{day_text(round(low))} to {day_text(round(high))}"
    return f"{low:.4g} to {high:.4g}"


def _matrix(
    names: Sequence[str],
    values: NDArray[np.float64],
    title: str,
    colours: list[list[Any]],
    ends: tuple[float, float],
) -> Figure:
    labels = [short(name, 14) for name in names]
    places = list(range(len(names)))
    data = [
        {
            "type": "heatmap",
            "x": places,
            "y": places,
            "z": rounded(values),
            "colorscale": colours,
            "zmin": rounded_number(ends[0]),
            "zmax": rounded_number(ends[1]),
            "texttemplate": "%{z:.2f}" if len(names) <= _READABLE else "",
            "textfont": {"size": 10},
            "hovertemplate": "%{z:.3f}",
            "showscale": len(names) > _READABLE,
            "colorbar": {"thickness": 10, "len": 0.9},
            "xgap": 1,
            "ygap": 1,
        }
    ]
    ticks: dict[str, Any] = {"tickvals": places, "ticktext": labels, "showgrid": False, "zeroline": False}
    if len(names) > _SLOPING:
        ticks["tickfont"] = {"size": 10}
    layout = {
        "height": max(320, 90 + 20 * len(names)),
        "xaxis": {"tickangle": _slope(len(names)), **ticks},
        "yaxis": {"autorange": "reversed", **ticks},
    }
    off = [
        (abs(float(values[i, j])), names[i], names[j], float(values[i, j]))
        for i in range(len(names))
        for j in range(i)
        if np.isfinite(values[i, j])
    ]
    words = "no value"
    if off:
        _, first, second, value = max(off)
        words = f"the largest value is {value:.2f}, of {first} and {second}"
    return Figure({"data": data, "layout": layout}, title, f"Matrix. {title}: {words}.")
