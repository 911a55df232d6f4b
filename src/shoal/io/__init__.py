"""Reading and writing: tables from paths or data frames as arrays, and arrays back as frames or files."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
