"""Disclosure risk: how likely a table's records are re-identified by an intruder who knows the quasi-identifiers."""

from shoal.evaluation.disclosure.measure import risk
from shoal.evaluation.disclosure.result import TOLERATED, Risk, RiskFigures
from shoal.evaluation.disclosure.suda import Points
from shoal.partition import Form, MissingRule

__all__ = ["TOLERATED", "Form", "MissingRule", "Points", "Risk", "RiskFigures", "risk"]
