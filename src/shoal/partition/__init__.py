"""Group similar records: values in, a `Partition` (one cluster number per record) out."""

from shoal.partition.base import Partition
from shoal.partition.best_k import best_k
from shoal.partition.given import given
from shoal.partition.insensitive import insensitive
from shoal.partition.interval_costs import expected_error
from shoal.partition.mdav import mdav
from shoal.partition.normalise import normalise
from shoal.partition.optimal import optimal
from shoal.partition.ranking import ranking
from shoal.partition.vmdav import vmdav

__all__ = [
    "Partition",
    "best_k",
    "expected_error",
    "given",
    "insensitive",
    "mdav",
    "normalise",
    "optimal",
    "ranking",
    "vmdav",
]
