"""Queries: differentially private answers about a table, with queries as data and their exact prices."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
