"""Evaluate stage: an original and a released table come in, measures of utility and risk leave."""

from shoal.evaluation.learning import Settings, learn
from shoal.evaluation.measure import evaluate
from shoal.evaluation.measures import mean_sse
from shoal.evaluation.result import Evaluation
from shoal.evaluation.survey import Estimates, estimates

__all__ = ["Estimates", "Evaluation", "Settings", "estimates", "evaluate", "learn", "mean_sse"]
