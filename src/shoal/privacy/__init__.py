"""What a guarantee compares and what it costs: adjacency, and the accountant that all noise is paid through."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
