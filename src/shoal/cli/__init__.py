"""The command line: each command parses its options, calls the library and prints the result."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
