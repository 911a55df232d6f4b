"""The edge: a path or a frame comes in, arrays go on; arrays come back, the same kind of frame or file goes out."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
