"""Draw curves in panels, as one SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _GAP = 330, 230, 20
_LEFT, _TOP, _RIGHT, _BOTTOM = 46, 30, 320, 200
COLOURS = ("#1f7a8c", "#c0392b", "#8e6bbf", "#5f7f2e", "#444444")


@dataclass(frozen=True)
class Curve:
    """Points of one name; a curve of a single point is a level line over all places."""

    name: str
    places: Sequence[float]
    values: Sequence[float]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    curves: Sequence[Curve]
    axis: str = "k"


def panels(
    title: str, shown: Sequence[Panel], columns: int = 2, *, common: bool = True, logarithmic: bool = True
) -> str:
    """Panels with a common axis of places and, if `common`, one value axis; the legend is below."""
    places = sorted({place for panel in shown for curve in panel.curves for place in curve.places if place})
    if not logarithmic:
        drawn = [curve.places for panel in shown for curve in panel.curves if len(curve.places) > 1]
        first, last = min(map(min, drawn)), max(map(max, drawn))
        places = [first + share * (last - first) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    scale: Callable[[float], float] = math.log if logarithmic else float
    ranges = [_range([panel]) for panel in shown] if not common else [_range(shown)] * len(shown)
    legend = list({(c.name, c.colour, c.dashed): None for panel in shown for c in panel.curves})
    rows = math.ceil(len(shown) / columns)
    lines = math.ceil(len(legend) / 4)
    width, height = columns * (_WIDTH + _GAP), 30 + rows * _HEIGHT + 20 * lines + 10
    parts = opened(title, width, height)
    for number, panel in enumerate(shown):
        x, y = number % columns * (_WIDTH + _GAP), 30 + number // columns * _HEIGHT
        parts += [
            f'<g transform="translate({x} {y})">',
            *_panel(panel, places, *ranges[number], scale),
            "</g>",
        ]
    for number, (name, colour, dashed) in enumerate(legend):
        left, below = 20 + number % 4 * (width - 40) / 4, 30 + rows * _HEIGHT + 20 * (number // 4) + 12
        parts += [
            f'<path d="M{left:.0f} {below - 4}h22" stroke="{colour}" stroke-width="2"{_dashes(dashed)}/>',
            f'<text x="{left + 28:.0f}" y="{below}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def opened(title: str, width: float, height: float) -> list[str]:
    """The beginning of a drawing: white ground and its title."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="11" role="img">',
        f'<title>{escape(title)}</title><rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]


def _range(shown: Sequence[Panel]) -> tuple[float, float]:
    values = [value for panel in shown for curve in panel.curves for value in curve.values]
    pad = 0.05 * (max(values) - min(values)) or 1.0
    return min(values) - pad, max(values) + pad


def _panel(
    panel: Panel, places: Sequence[float], low: float, high: float, scale: Callable[[float], float]
) -> list[str]:
    first, last = scale(places[0]), scale(places[-1])

    def across(place: float) -> float:
        return _LEFT + (scale(place) - first) / ((last - first) or 1.0) * (_RIGHT - _LEFT)

    def up(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    parts = [
        f'<text x="{_LEFT}" y="{_TOP - 8}">{escape(panel.title)}</text>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#777"/>',
        f'<text x="{_RIGHT}" y="{_BOTTOM + 26}" text-anchor="end">{escape(panel.axis)}</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = low + share * (high - low)
        digits = 2 if high - low > 0.2 else 3
        parts.append(
            f'<text x="{_LEFT - 5}" y="{up(value) + 4:.0f}" text-anchor="end">{value:.{digits}f}</text>'
        )
    parts += [
        f'<text x="{across(place):.0f}" y="{_BOTTOM + 14}" text-anchor="middle">{place:g}</text>'
        for place in places[:: max(1, len(places) // 8 + (len(places) % 8 > 0 and len(places) > 8))]
    ]
    for curve in panel.curves:
        points = (
            [(_LEFT, up(curve.values[0])), (_RIGHT, up(curve.values[0]))]
            if len(curve.values) == 1
            else [(across(p), up(v)) for p, v in zip(curve.places, curve.values, strict=True)]
        )
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="1.6"'
            f"{_dashes(curve.dashed)}/>"
        )
    return parts


def _dashes(dashed: bool) -> str:
    return ' stroke-dasharray="5 3"' if dashed else ""
