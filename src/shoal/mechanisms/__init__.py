"""Methods: turn a described table and a budget into a protected table."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
