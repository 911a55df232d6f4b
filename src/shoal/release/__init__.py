"""Releases: protect a prepared table, estimate and rehearse the result, and write the publishable files."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
