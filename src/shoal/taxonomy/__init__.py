"""Taxonomies of nominal values: trees of concepts, distances between them, what is central and what marginal."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
