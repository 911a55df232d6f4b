"""Pairs over private trees: single attributes, contrasts of pairs, one model of both, rows, in this order."""

from shoal.mechanisms.pairs.mechanism import PAIRS

__all__ = ["PAIRS"]
