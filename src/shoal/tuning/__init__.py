"""Tune stage: a table and a budget come in, settings compared by loss and risk leave."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
