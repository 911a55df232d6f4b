"""Disclosure risk: how likely a table's records are re-identified by an intruder who knows the quasi-identifiers."""

from shoal.evaluation.disclosure.record_risk import Points
from shoal.evaluation.disclosure.result import TOLERATED, Risk, RiskFigures, risk
from shoal.partition import Form, MissingRule

__all__ = ["TOLERATED", "Form", "MissingRule", "Points", "Risk", "RiskFigures", "risk"]
