"""Privacy guarantees: adjacency, claims, the privacy accountant, statements and verdicts."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
