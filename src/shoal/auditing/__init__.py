"""Empirical ε: a method is run many times on neighbouring data sets, and what tells them apart bounds ε from below."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
