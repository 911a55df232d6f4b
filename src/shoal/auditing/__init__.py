"""Empirical ε: a method is run many times on neighbouring data sets, and what tells them apart bounds ε from below."""

from shoal.auditing.auditor import CAVEAT, VIEWS, Attack, Audit, audit

__all__ = ["CAVEAT", "VIEWS", "Attack", "Audit", "audit"]
