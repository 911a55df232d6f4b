"""Local suppression: quasi-identifiers come in, the same with the fewest cells emptied leave."""

from shoal.mechanisms.suppression.mechanism import SUPPRESS

__all__ = ["SUPPRESS"]
