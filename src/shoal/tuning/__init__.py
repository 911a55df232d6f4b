"""Tuning: compare protection settings by utility loss and re-identification risk, and recommend one."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
