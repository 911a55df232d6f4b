"""Evaluate stage: an original and a released table come in, measures of utility and risk leave."""

from shoal.evaluation.measure import evaluate
from shoal.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate"]
