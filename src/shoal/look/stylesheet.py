"""The stylesheet of every page of Shoal: custom properties for colours, shapes, spacing and type, light and dark."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def tokens() -> str:
    """The stylesheet as text: custom properties of the root element only, for the head of a page.

    >>> "--published" in tokens()
    True
    """
    return files("shoal.look").joinpath("tokens.css").read_text("utf-8")
