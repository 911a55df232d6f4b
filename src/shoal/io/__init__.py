"""Reading and writing: tables from paths or data frames to arrays, and arrays back to frames or files of that kind."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
