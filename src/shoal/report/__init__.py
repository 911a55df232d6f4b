"""Reports: self-contained HTML pages about a release or a bundle, without external resources."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
