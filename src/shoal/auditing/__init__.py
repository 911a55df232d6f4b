"""Empirical ε: a method is run many times on neighbouring data sets, and what tells them apart bounds ε from below."""

from shoal.auditing.instrument import VIEWS, audit
from shoal.auditing.result import CAVEAT, Attack, Audit

__all__ = ["CAVEAT", "VIEWS", "Attack", "Audit", "audit"]
