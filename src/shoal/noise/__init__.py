"""Exact integer noise and the entropy that feeds it."""

from shoal.noise.entropy import Seeded, Source, SystemEntropy, source
from shoal.noise.epsilon import parse_epsilon
from shoal.noise.exact import bernoulli_exp, geometric_exp
from shoal.noise.exponential import exponential_choice
from shoal.noise.laplace import discrete_laplace
from shoal.noise.scale import round_up_scale

__all__ = [
    "Seeded",
    "Source",
    "SystemEntropy",
    "bernoulli_exp",
    "discrete_laplace",
    "exponential_choice",
    "geometric_exp",
    "parse_epsilon",
    "round_up_scale",
    "source",
]
