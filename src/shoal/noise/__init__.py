"""Exact integer noise and the entropy that feeds it."""
