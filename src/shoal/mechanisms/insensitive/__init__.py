"""Noise on insensitive clusters: what every cluster costs, and the method as it was published."""

from shoal.mechanisms.insensitive.mechanism import INSENSITIVE

__all__ = ["INSENSITIVE"]
