"""The k-anonymity family as mechanisms: no budget, but a condition that the released table itself satisfies."""

from shoal.mechanisms.kanonymity.centroids import CENTROIDS
from shoal.mechanisms.kanonymity.closeness import T_CLOSENESS
from shoal.mechanisms.kanonymity.linked import ANATOMY
from shoal.mechanisms.kanonymity.swapping import SWAP_MDAV, SWAP_RANKING

__all__ = ["ANATOMY", "CENTROIDS", "SWAP_MDAV", "SWAP_RANKING", "T_CLOSENESS"]
