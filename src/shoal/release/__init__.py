"""From a prepared table to files that may be published."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
