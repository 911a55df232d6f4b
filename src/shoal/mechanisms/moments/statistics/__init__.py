"""Moments of clusters: exact statistics, how far one record moves them, and rows drawn from noisy ones."""

from shoal.mechanisms.moments.statistics.summary import Summary

__all__ = ["Summary"]
