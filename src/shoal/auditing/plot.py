"""A picture of audits: results at several budgets come in, an SVG of the bound against ε leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from shoal.auditing.result import CAVEATS, Audit, confidence_words
from shoal.text import Message

_WIDTH, _HEIGHT = 640, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 610, 60, 360


def plot_svg(audits: Sequence[Audit]) -> str:
    """Bounds over budgets on logarithmic axes; a point above the diagonal refutes that budget."""
    ordered = sorted(audits, key=lambda audit: audit.epsilon)
    shown = [audit.epsilon for audit in ordered] + [audit.bound for audit in ordered if audit.bound > 0]
    low, high = math.floor(math.log10(min(shown) * 0.8)), math.ceil(math.log10(max(shown) * 1.25))
    low = max(low, math.floor(math.log10(ordered[0].epsilon)) - 1)

    def x(value: float) -> float:
        return _LEFT + (math.log10(value) - low) / (high - low) * (_RIGHT - _LEFT)

    def y(value: float) -> float:
        place = max(math.log10(value), low) if value > 0 else low
        return _BOTTOM - (place - low) / (high - low) * (_BOTTOM - _TOP)

    first = ordered[0]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(_title(first))}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="26" font-size="16">{escape(_title(first))}</text>',
        f'<text x="{_LEFT}" y="46" fill="#555">{escape(str(Message("above-is-refuted")))}</text>',
    ]
    for power in range(low, high + 1):
        label = f"{10.0**power:g}"
        across, up = x(10.0**power), y(10.0**power)
        parts += [
            f'<path d="M{across:.1f} {_TOP}V{_BOTTOM}M{_LEFT} {up:.1f}H{_RIGHT}" stroke="#ddd"/>',
            f'<text x="{across:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{label}</text>',
            f'<text x="{_LEFT - 8}" y="{up + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    parts += [
        f'<path d="M{_LEFT} {_BOTTOM}L{_RIGHT} {_TOP}" stroke="#555" stroke-dasharray="5 4"/>',
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 38}" text-anchor="middle">ε of the method</text>',
        f'<text transform="translate(18 {(_TOP + _BOTTOM) / 2}) rotate(-90)" text-anchor="middle">'
        f"real ε is at least ({escape(confidence_words(first.confidence))} each)</text>",
    ]
    for audit in ordered:
        colour = "#c0392b" if audit.refuted else "#1f7a8c"
        name = escape(f"ε = {audit.epsilon:g}: {audit.verdict}")
        parts.append(
            f'<circle cx="{x(audit.epsilon):.1f}" cy="{y(audit.bound):.1f}" r="5" fill="{colour}">'
            f"<title>{name}</title></circle>"
        )
    for line, text in enumerate(map(str, CAVEATS)):
        parts.append(
            f'<text x="12" y="{_HEIGHT - 30 + 16 * line}" font-size="11" fill="#555">{escape(text)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _title(audit: Audit) -> str:
    return f"{audit.method}, {audit.view} view"
