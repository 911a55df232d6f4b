"""Taxonomies of nominal values: trees of concepts, semantic distances, centroids and marginality."""

from shoal._door import door

__getattr__, __dir__, __all__ = door(__name__, __file__)
