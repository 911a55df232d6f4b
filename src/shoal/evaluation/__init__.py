"""Evaluate stage: an original and a released table come in, measures of utility and risk leave."""

from shoal.evaluation.learning import Settings, learn
from shoal.evaluation.mean_sse import mean_sse
from shoal.evaluation.measure import evaluate
from shoal.evaluation.population import Estimates, estimates
from shoal.evaluation.result import Evaluation

__all__ = ["Estimates", "Evaluation", "Settings", "estimates", "evaluate", "learn", "mean_sse"]
