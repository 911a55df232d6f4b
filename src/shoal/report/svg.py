"""Drawings as SVG text with captions and descriptions.

Every drawing is as wide as the screen of a phone, so that its letters have their own size there and on paper, and pages
need no script. Nothing in it is random: the same release gives the same page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from shoal.columns.kinds import day_text
from shoal.display import internal

WIDTH = 360
_DAYS_OF_A_YEAR = 365.25
_LONGEST = 18


@internal()
@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` on the places from `start` to `end` of a drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (self.end - self.start) * (value - self.low) / span


def place(value: float) -> str:
    """A coordinate, to a tenth.

    >>> place(3.0), place(2.26)
    ('3', '2.3')
    """
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, *, anchor: str = "start", turn: int = 0, kind: str = "") -> str:
    turned = f' transform="rotate({turn} {place(x)} {place(y)})"' if turn else ""
    sort = f' class="{kind}"' if kind else ""
    return f'<text x="{place(x)}" y="{place(y)}" text-anchor="{anchor}"{sort}{turned}>{escape(words)}</text>'


def path(points: str, kind: str) -> str:
    return f'<path class="{kind}" d="{points}"/>'


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a part of a path, so that many of one colour are one mark."""
    return f"M{place(x)} {place(y)}h{place(width)}v{place(height)}h{place(-width)}z"


def staircase(edges: Sequence[float], heights: Sequence[float], across: Scale, up: Scale) -> str:
    """The outline of a histogram."""
    steps = [f"M{place(across(edges[0]))} {place(up(0.0))}"]
    for left, height in zip(edges, heights, strict=False):
        steps.append(f"H{place(across(left))}V{place(up(height))}")
    return "".join([*steps, f"H{place(across(edges[-1]))}V{place(up(0.0))}"])


def drawing(parts: Iterable[str], height: float, alt: str, width: float = WIDTH, kind: str = "plot") -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {place(width)} {place(height)}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends.

    >>> ticks(0, 97), ticks(17, 90, 4), ticks(0, 0.13)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [20.0, 40.0, 60.0, 80.0], [0.0, 0.05, 0.1])
    """
    span = high - low
    if not span > 0:
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 12) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def short_number(value: float) -> str:
    """A number for an axis.

    >>> short_number(20_000), short_number(2.5e6), short_number(0.25), short_number(-3)
    ('20k', '2.5M', '0.25', '-3')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def day_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Days for an axis, as years where there are many of them."""
    years = (high - low) / _DAYS_OF_A_YEAR
    if years < 4:
        return [(low, day_text(round(low))), (high, day_text(round(high)))]
    first = int(day_text(round(low))[:4])
    return [
        (low + (year - first) * _DAYS_OF_A_YEAR, f"{year:g}")
        for year in ticks(first + 1, first + math.floor(years), 4)
    ]


def below(scale: Scale, marks: Iterable[tuple[float, str]], base: float) -> str:
    """Labels of the axis below a drawing."""
    return "".join(
        text(
            min(max(scale(value), scale.start + 3 * len(words)), scale.end - 2.6 * len(words)),
            base + 14,
            words,
            anchor="middle",
        )
        for value, words in marks
    )


def beside(scale: Scale, marks: Iterable[tuple[float, str]], left: float, right: float) -> str:
    """Labels of the axis beside a drawing, and a line across it for each."""
    return "".join(
        path(f"M{place(left)} {place(scale(value))}H{place(right)}", "grid")
        + text(left - 5, scale(value) + 4, words, anchor="end")
        for value, words in marks
    )


def percents(high: float, most: int = 4) -> list[tuple[float, str]]:
    """Shares for an axis that begins at nothing."""
    return [(value, f"{100 * value:.3g}%") for value in ticks(0.0, high, most)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its caption.

    Attributes:
        svg: the drawing, safe to stand in a page; its label says what it shows.
        wide: it takes two places of a gallery.
    """

    svg: str
    caption: str
    alt: str
    wide: bool = False


def short(text: str, longest: int = _LONGEST) -> str:
    """
    >>> short("a rather long name", 8)
    'a rathe…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
