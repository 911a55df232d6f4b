"""Words come last: code decides by codes and facts, and this room renders them as English."""

from shoal.text.render import Flag, Message, catalogue, render, way_out

__all__ = ["Flag", "Message", "catalogue", "render", "way_out"]
