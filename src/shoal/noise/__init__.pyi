from shoal.noise.block import block_deviations as block_deviations
from shoal.noise.block import block_noise as block_noise
from shoal.noise.block import elliptope_deviation as elliptope_deviation
from shoal.noise.block import elliptope_noise as elliptope_noise
from shoal.noise.choice import categorical_centroids as categorical_centroids
from shoal.noise.choice import check_response as check_response
from shoal.noise.choice import exponential_choice as exponential_choice
from shoal.noise.choice import exponential_places as exponential_places
from shoal.noise.choice import randomised_response as randomised_response
from shoal.noise.choice import reversal_probability as reversal_probability
from shoal.noise.choice import score_by as score_by
from shoal.noise.choice import through_matrix as through_matrix
from shoal.noise.discrete import OPTIMISE as OPTIMISE
from shoal.noise.discrete import LatticeStaircase as LatticeStaircase
from shoal.noise.discrete import Staircase as Staircase
from shoal.noise.discrete import check_staircase as check_staircase
from shoal.noise.discrete import choice_rate as choice_rate
from shoal.noise.discrete import choice_rho as choice_rho
from shoal.noise.discrete import discrete_gaussian as discrete_gaussian
from shoal.noise.discrete import discrete_laplace as discrete_laplace
from shoal.noise.discrete import discrete_staircase as discrete_staircase
from shoal.noise.discrete import epsilon_from as epsilon_from
from shoal.noise.discrete import parse_delta as parse_delta
from shoal.noise.discrete import pure_rho as pure_rho
from shoal.noise.discrete import rho_from as rho_from
from shoal.noise.discrete import single_laplace as single_laplace
from shoal.noise.entropy import Seeded as Seeded
from shoal.noise.entropy import Source as Source
from shoal.noise.entropy import SystemEntropy as SystemEntropy
from shoal.noise.entropy import computed_again as computed_again
from shoal.noise.entropy import fresh_key as fresh_key
from shoal.noise.entropy import source as source
from shoal.noise.exact import LARGEST as LARGEST
from shoal.noise.exact import LARGEST_NUMERATOR as LARGEST_NUMERATOR
from shoal.noise.exact import MOST_DELTA as MOST_DELTA
from shoal.noise.exact import MOST_EPSILON as MOST_EPSILON
from shoal.noise.exact import SCALE_DENOMINATOR as SCALE_DENOMINATOR
from shoal.noise.exact import SMALLEST as SMALLEST
from shoal.noise.exact import bernoulli_exp as bernoulli_exp
from shoal.noise.exact import enclose_exp as enclose_exp
from shoal.noise.exact import geometric_exp as geometric_exp
from shoal.noise.exact import parse_epsilon as parse_epsilon
from shoal.noise.exact import round_up_scale as round_up_scale
from shoal.noise.exact import shown as shown
from shoal.noise.families import NOISES as NOISES
from shoal.noise.families import Box as Box
from shoal.noise.families import LatticeBox as LatticeBox
from shoal.noise.families import NoiseFamily as NoiseFamily
from shoal.noise.families import Region as Region
from shoal.noise.families import add_noise as add_noise
from shoal.noise.families import discrete_box as discrete_box
from shoal.noise.families import laplace_scale as laplace_scale

__all__ = [
    "Box",
    "LatticeBox",
    "LatticeStaircase",
    "NoiseFamily",
    "Region",
    "Seeded",
    "Source",
    "Staircase",
    "SystemEntropy",
    "bernoulli_exp",
    "block_deviations",
    "block_noise",
    "categorical_centroids",
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
    "through_matrix",
]
