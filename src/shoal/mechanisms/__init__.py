"""Mechanisms by name: how a described table and a budget become a protected table."""

from collections.abc import Mapping

from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.mechanisms.clusters import CLUSTERS

MECHANISMS: Mapping[str, Mechanism] = {"clusters": CLUSTERS}

__all__ = ["MECHANISMS", "Mechanism", "Progress", "Rebuilt"]
