"""Taxonomies of nominal values: trees of concepts, distances between them, what is central and what marginal."""

from shoal.taxonomy.tree import Taxonomy

__all__ = ["Taxonomy"]
