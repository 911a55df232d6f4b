"""Disclosure risk: what an intruder may know of a table's records comes in, how likely they are found leaves."""

from shoal.evaluation.disclosure.figures import RiskFigures
from shoal.evaluation.disclosure.measure import risk
from shoal.evaluation.disclosure.result import Risk

__all__ = ["Risk", "RiskFigures", "risk"]
