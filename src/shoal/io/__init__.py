"""Reading and writing: tables from paths or data frames as arrays, and arrays back as the same kind of frame or file."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
