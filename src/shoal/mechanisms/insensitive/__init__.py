"""Noise on insensitive clusters: what every cluster costs, and the method as it was published."""
