"""Population uniques by a log-linear model: patterns of keys and weights come in, expected numbers leave.

The number of people in a cell of the table of all keys is modelled as Poisson, its mean fitted to the margins of the
sample: large where the values of the keys are common, small where they are rare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.display import internal
from shoal.errors import OptionError
from shoal.evaluation.disclosure.keys import Floats, Patterns

# cells of the full table, which only a model with interactions needs
MOST_CELLS = 20_000_000
_ROUNDS, _CLOSE = 200, 1e-10


@internal()
@dataclass(frozen=True, slots=True)
class PopulationUniques:
    """Sample uniques, and how many of them are expected to be unique in the population.

    Attributes:
        sample_uniques: records whose keys no other record has.
        tau1: expected number of them that are unique in the population too.
        tau2: expected number of correct matches of sample uniques with the population.
    """

    sample_uniques: int
    tau1: float
    tau2: float


def population_uniques(
    found: Patterns,
    levels: Sequence[int],
    weights: Floats | None = None,
    margins: Sequence[Sequence[int]] = (),
    fraction: float | None = None,
) -> PopulationUniques:
    """τ1 = Σ exp(-(1-π) λ) and τ2 = Σ (1 - exp(-(1-π) λ)) / ((1-π) λ) over sample uniques, λ = μ/π.

    μ is the fitted mean of the sample in the cell, π the share of its people who are in the sample: 1/weight, or the
    same `fraction` for all. A missing value counts as one more value of its key.

    Args:
        found: the different combinations of key values.
        levels: number of values of each key.
        weights: of each pattern's one record; None means that everybody is in the table.
        margins: sets of keys whose joint table the model keeps beside the one of each key.
        fraction: share of the population that is in the sample, instead of 1/weight.

    Raises:
        OptionError: the full table of all keys is too large for a model with interactions.

    Reference:
        Skinner and Holmes (1998); Skinner and Shlomo (2008).
    """
    alone = np.flatnonzero(found.counts == 1)
    fitted = main_effects(found)[alone] if not margins else with_margins(found, levels, margins)[alone]
    if fraction is not None:
        share = np.full(alone.size, fraction)
    else:
        share = np.ones(alone.size) if weights is None else 1.0 / weights[alone]
    share = np.minimum(share, 1.0)
    outside = (1.0 - share) * fitted / share
    # (1 - e^-x) / x, which is 1 at 0
    matches = np.divide(-np.expm1(-outside), outside, out=np.ones_like(outside), where=outside > 0)
    return PopulationUniques(
        int(alone.size), math.fsum(np.exp(-outside).tolist()), math.fsum(matches.tolist())
    )


def main_effects(found: Patterns) -> Floats:
    """Fitted mean of each pattern's cell where keys are independent: n times the product of shares."""
    n = found.counts.sum()
    fitted = np.full(found.counts.size, float(n))
    for key in found.codes:
        fitted *= np.bincount(key + 1, found.counts)[key + 1] / n
    return fitted


def with_margins(found: Patterns, levels: Sequence[int], margins: Sequence[Sequence[int]]) -> Floats:
    """The same with joint tables of some keys kept, by iterative proportional fitting on the full table."""
    gaps = [bool((key < 0).any()) for key in found.codes]
    shape = tuple(many + gap for many, gap in zip(levels, gaps, strict=True))
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise OptionError("table-all-keys-cells-more-than", cells=cells, most_cells=MOST_CELLS)
    # a missing value is the last level of its key
    places = tuple(np.where(key < 0, size - 1, key) for key, size in zip(found.codes, shape, strict=True))
    sample = np.zeros(shape)
    np.add.at(sample, places, found.counts)
    fitted = np.full(shape, sample.sum() / cells)
    kept = [tuple(margin) for margin in margins]
    kept += [(key,) for key in range(len(shape)) if not any(key in margin for margin in kept)]
    for _ in range(_ROUNDS):
        largest = 0.0
        for margin in kept:
            others = tuple(key for key in range(len(shape)) if key not in margin)
            wanted, there = sample.sum(others, keepdims=True), fitted.sum(others, keepdims=True)
            largest = max(largest, float(np.abs(wanted - there).max()))
            fitted *= np.divide(wanted, there, out=np.zeros_like(wanted), where=there > 0)
        if largest < _CLOSE * sample.sum():
            break
    return np.asarray(fitted[places])
