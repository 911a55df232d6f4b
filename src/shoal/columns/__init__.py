"""Columns: what is declared about a table, and its records as positions on public lattices."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
