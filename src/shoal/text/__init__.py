"""Words come last: code decides by codes and facts, and this room renders them as English."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
