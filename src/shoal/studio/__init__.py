"""The studio: the window a data custodian works in, in a browser on this machine, on top of the library."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
