"""Confidence intervals from a published release alone: sampling, privacy noise, and what nothing measured."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
