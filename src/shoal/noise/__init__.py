"""Exact integer noise and the entropy that feeds it."""

from shoal.noise.block import block_deviations, block_noise, elliptope_deviation, elliptope_noise
from shoal.noise.box import Box, LatticeBox, discrete_box
from shoal.noise.choice import exponential_choice
from shoal.noise.entropy import Seeded, Source, SystemEntropy, source
from shoal.noise.exact import bernoulli_exp, geometric_exp
from shoal.noise.gaussian import (
    choice_rate,
    choice_rho,
    discrete_gaussian,
    epsilon_from,
    parse_delta,
    pure_rho,
    rho_from,
)
from shoal.noise.laplace import discrete_laplace
from shoal.noise.scale import parse_epsilon, round_up_scale
from shoal.noise.staircase import LatticeStaircase, Staircase, discrete_staircase

__all__ = [
    "Box",
    "LatticeBox",
    "LatticeStaircase",
    "Seeded",
    "Source",
    "Staircase",
    "SystemEntropy",
    "bernoulli_exp",
    "block_deviations",
    "block_noise",
    "choice_rate",
    "choice_rho",
    "discrete_box",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "elliptope_deviation",
    "elliptope_noise",
    "epsilon_from",
    "exponential_choice",
    "geometric_exp",
    "parse_delta",
    "parse_epsilon",
    "pure_rho",
    "rho_from",
    "round_up_scale",
    "source",
]
