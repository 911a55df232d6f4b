"""Noise on moments of clusters, and rows drawn from the noisy moments."""

from shoal.mechanisms.moments.mechanism import MOMENTS

__all__ = ["MOMENTS"]
