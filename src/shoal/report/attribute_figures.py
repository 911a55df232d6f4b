"""Figures of one attribute: a comparison comes in, its distributions and quantiles leave as drawings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import KIND_FACTS
from shoal.report.compare import Change, Comparison
from shoal.report.drawing import NARROW, NEUTRAL, ORIGINAL, RELEASED, Figure, places_of, rounded, short


def distribution(found: Comparison) -> Figure:
    """Shares of the rows over the range of a column, or over its labels."""
    parts = found.distribution
    if parts.edges is None:
        return _bars(found)
    x = places_of(found.kind, parts.edges)
    data = []
    if parts.before is not None:
        data.append(_steps(x, parts.before, "original", ORIGINAL, fill=True))
    data.append(_steps(x, parts.after, "released", RELEASED, fill=parts.before is None))
    layout = {
        "height": NARROW,
        "xaxis": {"type": KIND_FACTS[found.kind].axis},
        "yaxis": {"tickformat": ".0%", "rangemode": "tozero"},
        "showlegend": parts.before is not None,
        "hovermode": "x",
    }
    return Figure({"data": data, "layout": layout}, "Distribution", _distribution_alt(found), flat=True)


def _steps(
    x: list[Any], shares: NDArray[np.float64], name: str, colour: str, *, fill: bool
) -> dict[str, Any]:
    heights = rounded(shares)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": x,
        "y": [*heights, heights[-1]],
        "line": {"shape": "hv", "width": 1 if fill else 2, "color": colour},
        "fillcolor": f"{colour}55",
        "fill": "tozeroy" if fill else "none",
    }


def _bars(found: Comparison) -> Figure:
    parts = found.distribution
    labels = [short(label) for label in parts.labels]
    # the first label belongs on top, and plotly counts upwards
    places = list(range(len(labels)))[::-1]
    sources = [(parts.after, "released", RELEASED)]
    if parts.before is not None:
        sources.append((parts.before, "original", ORIGINAL))
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": places,
            "x": rounded(shares),
            "marker": {"color": colour},
            "text": labels,
            "textposition": "none",
            "hovertemplate": "%{text}: %{x:.1%}",
        }
        for shares, name, colour in sources
    ]
    layout = {
        "height": max(NARROW, 70 + 24 * len(labels)),
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": {"tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {"tickvals": places, "ticktext": labels, "showgrid": False, "zeroline": False},
        "legend": {"traceorder": "reversed"},
        "showlegend": parts.before is not None,
    }
    return Figure({"data": data, "layout": layout}, "Distribution", _distribution_alt(found))


def quantiles(found: Comparison) -> Figure | None:
    """Released against original quantiles: on the diagonal where nothing changed."""
    if found.quantiles is None:
        return None
    before, after = (places_of(found.kind, values) for values in found.quantiles)
    ends = [min(before[0], after[0]), max(before[-1], after[-1])]
    axis = {"type": KIND_FACTS[found.kind].axis}
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": ends,
            "line": {"color": NEUTRAL, "width": 1, "dash": "dash"},
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": before,
            "y": after,
            "marker": {"color": RELEASED, "size": 4},
            "hovertemplate": "original %{x}, released %{y}",
        },
    ]
    layout = {
        "height": NARROW,
        "showlegend": False,
        "xaxis": {"title": {"text": "original"}, **axis},
        "yaxis": {"title": {"text": "released"}, **axis},
    }
    largest = max(found.changes, key=_size_of_change, default=None)
    moved = "" if largest is None else f" The {largest.statistic} moves by {largest.change}."
    return Figure(
        {"data": data, "layout": layout},
        "Quantiles, released against original",
        f"Quantile-quantile plot of {found.name}.{moved}",
        flat=True,
    )


def _distribution_alt(found: Comparison) -> str:
    parts = found.distribution
    tables = "the released table" if parts.before is None else "the original and the released table"
    moved = f" {100 * parts.moved:.1f}% of the rows would have to move." if parts.moved is not None else ""
    return f"Distribution of {found.name} in {tables}.{moved}"


def _size_of_change(change: Change) -> float:
    words = change.change.split()
    return abs(float(words[0])) if len(words) == 2 and words[1] == "sd" else -1.0
