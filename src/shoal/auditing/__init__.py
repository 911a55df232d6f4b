"""Auditing: a lower bound on the real ε of a method, from many runs on neighbouring data sets."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
