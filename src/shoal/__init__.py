"""Turn a table about people into one that can be published, and say exactly what is promised."""

from shoal._version import __version__

__all__ = ["__version__"]
