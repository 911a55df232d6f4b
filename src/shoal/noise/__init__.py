"""Exact integer noise and the entropy that feeds it."""

from shoal.noise.box import discrete_box
from shoal.noise.box_shape import Box, LatticeBox
from shoal.noise.entropy import Seeded, Source, SystemEntropy, source
from shoal.noise.epsilon import parse_epsilon
from shoal.noise.exact import bernoulli_exp, geometric_exp
from shoal.noise.exponential import exponential_choice
from shoal.noise.laplace import discrete_laplace
from shoal.noise.scale import round_up_scale
from shoal.noise.staircase import discrete_staircase
from shoal.noise.staircase_shape import LatticeStaircase, Staircase

__all__ = [
    "Box",
    "LatticeBox",
    "LatticeStaircase",
    "Seeded",
    "Source",
    "Staircase",
    "SystemEntropy",
    "bernoulli_exp",
    "discrete_box",
    "discrete_laplace",
    "discrete_staircase",
    "exponential_choice",
    "geometric_exp",
    "parse_epsilon",
    "round_up_scale",
    "source",
]
