"""Questions to a table that stays inside: queries as data, their exact prices, one noisy answer each."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
