"""Evaluation: measure the utility and the disclosure risk of a released table against its original."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
