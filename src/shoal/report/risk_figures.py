"""Figures of risk, learning and clusters: measured lines come in, dots with intervals and bars leave as drawings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.interval import Interval
from shoal.evaluation.risk_lines import RiskLine
from shoal.report.compare import bin_edges
from shoal.report.drawing import NEUTRAL, ORIGINAL, RELEASED, Figure, rounded_number, short, wrapped

_MOST_BARS = 60
_FEW_SIZES = 24
_MOST_GROUPS = 8
_HUES = (RELEASED, ORIGINAL, NEUTRAL, "#7b4fa3", "#3c8d40", "#b0303c", "#8a7a1f", "#2b5fb4")
# name, colour, and value with interval of each line
_Series = tuple[str, str, list[tuple[float | None, Interval | None]]]
# series of dots lie one below the other
_APART = 0.22


def risk_figure(lines: Sequence[RiskLine]) -> Figure:
    """Each attack with its interval, beside guessing and the unprotected table."""
    series: list[_Series] = [
        ("unprotected table", ORIGINAL, [(line.unprotected, line.unprotected_interval) for line in lines]),
        ("released table", RELEASED, [(line.success, line.interval) for line in lines]),
        ("guessing", NEUTRAL, [(line.chance, None) for line in lines]),
    ]
    return _dot_plot(
        series,
        [line.name for line in lines],
        "attempts that succeed",
        "How often each attack succeeds, with 95% intervals",
    )


def learning_figure(learning: dict[str, Any]) -> Figure:
    """Accuracy and F-measures of a classifier that learned from the release, beside its bounds."""
    names = ["accuracy", *(f"F, {name}" for name in learning["classes"])]
    series: list[_Series] = []
    for source, title, colour in (
        ("original", "trained on the original", ORIGINAL),
        ("released", "trained on the release", RELEASED),
        ("majority", "always the most frequent class", NEUTRAL),
    ):
        found = learning[source]
        values = [found["accuracy"], *found["f"].values()]
        intervals = [found["accuracy_interval"], *found["f_interval"].values()]
        series.append((title, colour, list(zip(values, intervals, strict=True))))
    return _dot_plot(
        series,
        names,
        "score, 100% is best",
        f"How well {learning['target']} can be learned, with 95% intervals",
    )


def cluster_figure(groups: Sequence[tuple[str, NDArray[np.int64]]]) -> Figure:
    """How many clusters have which size, for each group of attributes."""
    shown = [(name, sizes.astype(np.float64)) for name, sizes in groups[:_MOST_GROUPS]]
    every = np.unique(np.concatenate([sizes for _, sizes in shown]))
    edges = bin_edges([every], _MOST_BARS)
    # few different sizes are names of bars, many are a scale
    few = every.size <= _FEW_SIZES
    middles = (edges[:-1] + edges[1:]) / 2
    data = [
        {
            "type": "bar",
            "name": short(name, 30),
            "x": [f"{size:g}" for size in every] if few else middles.tolist(),
            "y": [int((sizes == size).sum()) for size in every]
            if few
            else np.histogram(sizes, bins=edges)[0].tolist(),
            "marker": {"color": hue},
            "hovertemplate": "%{y} clusters of %{x}",
        }
        for (name, sizes), hue in zip(shown, _HUES, strict=False)
    ]
    layout = {
        "height": 280,
        "xaxis": {"title": {"text": "records in a cluster"}, "type": "category" if few else "linear"},
        "yaxis": {"title": {"text": "clusters"}, "rangemode": "tozero"},
        "barmode": "group",
        "bargap": 0.7 if every.size < 4 else 0.2,
        "showlegend": len(data) > 1,
    }
    smallest = min(int(sizes.min()) for _, sizes in groups)
    largest = max(int(sizes.max()) for _, sizes in groups)
    return Figure(
        {"data": data, "layout": layout},
        "Sizes of the clusters",
        f"Bar chart of cluster sizes, from {smallest} to {largest} records.",
        wide=True,
    )


def _dot_plot(
    series: Sequence[_Series],
    names: Sequence[str],
    axis: str,
    caption: str,
) -> Figure:
    places = list(range(len(names)))[::-1]
    data = []
    for number, (name, colour, points) in enumerate(series):
        ends = [
            (0.0, 0.0) if value is None or not interval else (interval[1] - value, value - interval[0])
            for value, interval in points
        ]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [None if value is None else rounded_number(value) for value, _ in points],
                "y": [rounded_number(place + _APART * (1 - number)) for place in places],
                "marker": {
                    "color": colour,
                    "size": 8,
                    "symbol": ("diamond", "circle", "x-thin-open")[number],
                },
                "error_x": {
                    "type": "data",
                    "array": [rounded_number(max(up, 0.0)) for up, _ in ends],
                    "arrayminus": [rounded_number(max(down, 0.0)) for _, down in ends],
                    "color": colour,
                },
                "hovertemplate": f"{name}: %{{x:.1%}}",
            }
        )
    layout = {
        "height": 110 + 48 * len(names),
        "xaxis": {"tickformat": ".0%", "range": [-0.02, 1.02], "title": {"text": axis}},
        "yaxis": {
            "tickvals": places,
            "ticktext": [wrapped(name) for name in names],
            "range": [-0.6, len(names) - 0.4],
            "zeroline": False,
        },
        "showlegend": True,
    }
    return Figure(
        {"data": data, "layout": layout},
        caption,
        f"Dot plot. {caption}. The table below it holds the same numbers.",
        wide=True,
    )
