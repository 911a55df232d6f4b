"""Evaluate stage: an original and a released table come in, measures of utility and risk leave."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
