"""Disclosure risk: what an intruder may know of a table's records comes in, how likely they are found leaves."""

from shoal.evaluation.disclosure.measure import risk
from shoal.evaluation.disclosure.result import TOLERATED, Risk, RiskFigures
from shoal.evaluation.disclosure.suda import Points
from shoal.partition import Form, MissingRule

__all__ = ["TOLERATED", "Form", "MissingRule", "Points", "Risk", "RiskFigures", "risk"]
