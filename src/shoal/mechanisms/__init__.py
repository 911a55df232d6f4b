"""Mechanisms by name: how a described table and a budget become a protected table."""

from collections.abc import Mapping

from shoal.mechanisms.base import Mechanism, Progress, Rebuilt
from shoal.mechanisms.clusters import CLUSTERS
from shoal.mechanisms.insensitive import INSENSITIVE
from shoal.mechanisms.kanonymity import ANATOMY, CENTROIDS, SWAP_MDAV, SWAP_RANKING, T_CLOSENESS
from shoal.mechanisms.moments import MOMENTS
from shoal.mechanisms.tree import TREE

MECHANISMS: Mapping[str, Mechanism] = {
    "anatomy": ANATOMY,
    "centroids": CENTROIDS,
    "clusters": CLUSTERS,
    "insensitive": INSENSITIVE,
    "moments": MOMENTS,
    "swap-mdav": SWAP_MDAV,
    "swap-ranking": SWAP_RANKING,
    "t-closeness": T_CLOSENESS,
    "tree": TREE,
}

__all__ = ["MECHANISMS", "Mechanism", "Progress", "Rebuilt"]
