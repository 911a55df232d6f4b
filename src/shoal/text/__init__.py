"""Words come last: code decides by codes and facts, and this room renders them as English."""

from shoal.text.render import Flag, Message, catalogue, render, way_out
from shoal.text.words import capital, counted, listed, percent, roughly

__all__ = [
    "Flag",
    "Message",
    "capital",
    "catalogue",
    "counted",
    "listed",
    "percent",
    "render",
    "roughly",
    "way_out",
]
