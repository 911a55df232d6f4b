"""Reports: a release or the bundle of one comes in, one self-contained page leaves, with no outside resource."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
