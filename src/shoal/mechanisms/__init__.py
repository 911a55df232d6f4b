"""Mechanisms by name: how a described table and a budget become a protected table."""

from shoal.mechanisms.table import MECHANISMS

__all__ = ["MECHANISMS"]
