"""Group similar records: values in, a `Partition` (one cluster number per record) out."""

from shoal.partition.base import Partition
from shoal.partition.given import given
from shoal.partition.mdav import mdav
from shoal.partition.normalise import normalise
from shoal.partition.ranking import ranking
from shoal.partition.vmdav import vmdav

__all__ = ["Partition", "given", "mdav", "normalise", "ranking", "vmdav"]
