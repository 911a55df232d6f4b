"""What every figure is made of: colours and a value that holds a drawing together with its words.

A drawing is plain JSON for plotly: nothing in it is random, so the same release gives the same page.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.dates import day_text
from shoal.columns.kinds import KIND_FACTS, Kind

ORIGINAL, RELEASED, NEUTRAL = "#b4682b", "#16697a", "#5b6b7a"
NARROW = 260
_LONGEST = 18


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A drawing with its caption, and what it shows in words for those who cannot see it.

    Attributes:
        wide: it takes the whole width of the page.
        flat: paper may show it flatter, because no list of labels sets its height.
    """

    spec: dict[str, Any]
    caption: str
    alt: str
    wide: bool = False
    flat: bool = False

    @property
    def height(self) -> int:
        return int(self.spec["layout"]["height"])


def short(text: str, longest: int = _LONGEST) -> str:
    """Text that plotly shows as it is: its own markup is spelled out."""
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return escape(cut, quote=False)


def wrapped(text: str, longest: int = _LONGEST) -> str:
    """Text over at most two lines, each as `short` makes it.

    >>> wrapped("singling out, several columns")
    'singling out,<br>several columns'
    """
    lines = textwrap.wrap(text, longest, break_long_words=False)
    rest = " ".join(lines[1:])
    return "<br>".join(short(line, longest) for line in (lines[0] if lines else "", rest) if line)


def rounded_number(value: float) -> float:
    return float(f"{value:.5g}")


def rounded(values: NDArray[np.float64]) -> list[Any]:
    """Plain numbers of five digits; what does not exist is None."""
    if values.ndim > 1:
        return [rounded(row) for row in values]
    return [rounded_number(value) if np.isfinite(value) else None for value in values]


def places_of(kind: Kind, values: NDArray[np.float64]) -> list[Any]:
    return [day_text(round(value)) for value in values] if KIND_FACTS[kind].days else rounded(values)
