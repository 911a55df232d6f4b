"""The private partition tree: cuts, intervals, boxes, counts, rows, in this order."""

from shoal.mechanisms.tree.mechanism import TREE

__all__ = ["TREE"]
