"""Shoal Studio: the local browser interface for data custodians, built on the library."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
