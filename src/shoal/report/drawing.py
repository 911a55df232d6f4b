"""What every figure is: a drawing with its caption, and with words for those who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass

_LONGEST = 18


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
