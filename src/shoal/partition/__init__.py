"""Microaggregation: partition records into clusters of similar records."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
