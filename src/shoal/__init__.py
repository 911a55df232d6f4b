"""Turn a table about people into one that can be published, with the privacy guarantee stated exactly."""

from shoal._door import door
from shoal._moved import keep_old_paths

__getattr__, __dir__, __all__ = door(__name__, __file__)

keep_old_paths()
