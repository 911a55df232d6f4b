"""Exact integer noise and the sources of randomness it is drawn from."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
