"""Knowledge refinement: draw one answer from a prior that is moved towards the truth."""

from shoal.query.refinement.distances import (
    absolute,
    combined,
    from_function,
    from_table,
    from_taxonomy,
    nominal,
)
from shoal.query.refinement.factors import Factors, movable
from shoal.query.refinement.priors import (
    Prior,
    categorical,
    from_scipy,
    histogram,
    joint,
    normal,
    product,
    uniform,
)
from shoal.query.refinement.refine import Refined, refine
from shoal.query.refinement.sample import fraction_of, sample
from shoal.query.refinement.support import Grid, Labels, Points, Support

__all__ = [
    "Factors",
    "Grid",
    "Labels",
    "Points",
    "Prior",
    "Refined",
    "Support",
    "absolute",
    "categorical",
    "combined",
    "fraction_of",
    "from_function",
    "from_scipy",
    "from_table",
    "from_taxonomy",
    "histogram",
    "joint",
    "movable",
    "nominal",
    "normal",
    "product",
    "refine",
    "sample",
    "uniform",
]
