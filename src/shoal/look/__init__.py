"""The visual style of every page of Shoal: one stylesheet, light and dark."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
