"""A picture of a tuning: compared rows come in, an SVG of loss against risk leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from shoal.evaluation.measures import ranked_by
from shoal.tuning.choose import Row

_WIDTH, _HEIGHT = 720, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 520, 56, 450
_COLOURS = ("#1f7a8c", "#c0392b", "#7d5ba6", "#2e8b57", "#d98324", "#4a4e69", "#b5179e", "#6c757d")


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis from one place on the page to another."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        clipped = min(max(value, self.low), self.high)
        part = math.log(clipped / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers inside the axis, a handful of them."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= 8:
                break
        return found


def plot_svg(rows: Sequence[Row], utility: str, best: Row | None, title: str) -> str:
    """Loss over linkage risk on logarithmic axes, one point per setting, the frontier drawn through.

    Settings without a risk are drawn over their size k.
    """
    drawn = [row for row in rows if row.apart is None and row.loss is not None]
    by_risk = all(row.risk is not None for row in drawn)

    def across(row: Row) -> float:
        if by_risk and row.risk is not None:
            return row.risk.mean
        return float(row.setting.k or 1)

    x = _axis([across(row) for row in drawn], _LEFT, _RIGHT)
    y = _axis([row.loss.mean for row in drawn if row.loss], _BOTTOM, _TOP)
    methods = list(dict.fromkeys(row.setting.method for row in drawn))
    # what lies on the frontier must not be covered by what does not
    in_front_last = sorted(drawn, key=lambda row: (row.frontier, row is best))
    colours = {method: _COLOURS[place % len(_COLOURS)] for place, method in enumerate(methods)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="28" font-size="16">{escape(title)}</text>',
        *_grid(x, y),
        _label_below("rows linked to their own record, %" if by_risk else "k"),
        f'<text transform="translate(18 {(_TOP + _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(ranked_by()[utility])}</text>",
        *_frontier_line(drawn, across, x, y),
        *(_point(row, across(row), x, y, colours[row.setting.method], row is best) for row in in_front_last),
        *_legend(colours, best),
        f'<text x="{_LEFT}" y="{_HEIGHT - 12}" font-size="11" fill="#555">Facts about the original data: not for '
        "publication. Claims differ between methods.</text>",
    ]
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive) / 1.3, max(positive) * 1.3
    return _Axis(low, high, start, end)


def _grid(x: _Axis, y: _Axis) -> list[str]:
    parts = [
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" stroke="#888" fill="none"/>',
    ]
    for value in x.ticks():
        place = x.place(value)
        parts.append(f'<path d="M{place:.1f} {_TOP}V{_BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{place:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    for value in y.ticks():
        place = y.place(value)
        parts.append(f'<path d="M{_LEFT} {place:.1f}H{_RIGHT}" stroke="#eee"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


def _label_below(text: str) -> str:
    return f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">{escape(text)}</text>'


def _frontier_line(drawn: Sequence[Row], across: Callable[[Row], float], x: _Axis, y: _Axis) -> list[str]:
    """Steps through the rows that no other row beats in both means."""
    steps: list[tuple[float, float]] = []
    for row in sorted(drawn, key=lambda row: (across(row), row.loss.mean if row.loss else 0.0)):
        if row.frontier and row.loss and (not steps or row.loss.mean < steps[-1][1]):
            steps.append((across(row), row.loss.mean))
    if len(steps) < 2:
        return []
    places = [(x.place(risk), y.place(loss)) for risk, loss in steps]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
    path += "".join(f"H{across:.1f}V{up:.1f}" for across, up in places[1:])
    return [f'<path d="{path}" stroke="#222" stroke-dasharray="5 4" fill="none"/>']


def _point(row: Row, value: float, x: _Axis, y: _Axis, colour: str, best: bool) -> str:
    assert row.loss is not None
    across, up = x.place(value), y.place(row.loss.mean)
    words = f"{row.setting} ({row.model}): loss {row.loss}" + (f", linked {row.risk}%" if row.risk else "")
    whiskers = f"M{across:.1f} {y.place(row.loss.at_least):.1f}V{y.place(row.loss.at_most):.1f}"
    if row.risk is not None:
        whiskers += f"M{x.place(row.risk.at_least):.1f} {up:.1f}H{x.place(row.risk.at_most):.1f}"
    ring = f'<circle cx="{across:.1f}" cy="{up:.1f}" r="10" fill="none" stroke="#222" stroke-width="2"/>'
    return (
        f'<path d="{whiskers}" stroke="{colour}" stroke-opacity="0.35"/>'
        f'<circle cx="{across:.1f}" cy="{up:.1f}" r="5" fill="{colour if row.frontier else "white"}" '
        f'stroke="{colour}" stroke-width="1.5"><title>{escape(words)}</title></circle>{ring if best else ""}'
    )


def _legend(colours: dict[str, str], best: Row | None) -> list[str]:
    parts = []
    for place, (method, colour) in enumerate(colours.items()):
        up = _TOP + 12 + 20 * place
        parts.append(f'<circle cx="{_RIGHT + 22}" cy="{up - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{_RIGHT + 34}" y="{up}">{escape(method)}</text>')
    up = _TOP + 24 + 20 * len(colours)
    lines = ["filled: on the frontier", "dashes: the frontier"] + (["ring: recommended"] if best else [])
    return parts + [
        f'<text x="{_RIGHT + 16}" y="{up + 18 * place}" font-size="11" fill="#555">{line}</text>'
        for place, line in enumerate(lines)
    ]
