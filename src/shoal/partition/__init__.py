"""Group similar records: values in, a `Partition` (one cluster number per record) out."""

from shoal.partition.base import Partition, given, normalise
from shoal.partition.insensitive_groups import insensitive
from shoal.partition.multivariate import mdav, vmdav
from shoal.partition.univariate import best_k, expected_error, optimal, ranking

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
