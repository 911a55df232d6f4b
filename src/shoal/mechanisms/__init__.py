"""Mechanisms by name: how a described table and a budget become a protected table."""

from collections.abc import Mapping

from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.mechanisms.clusters import CLUSTERS
from shoal.mechanisms.tree import TREE

MECHANISMS: Mapping[str, Mechanism] = {"clusters": CLUSTERS, "tree": TREE}

__all__ = ["MECHANISMS", "Mechanism", "Progress", "Rebuilt"]
