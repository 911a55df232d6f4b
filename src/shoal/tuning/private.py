"""A choice of k that is private by itself: one of several candidates is drawn, under a budget of its own.

Only one score is offered, because only for this one a bound on what a record can change is proved: the squared error
of groups at fixed ranks, of each column by itself, beside the noise that public facts tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ClaimError, OptionError
from shoal.mechanisms.cluster_methods import RankingDP
from shoal.noise.choice import exponential_choice
from shoal.noise.families import NOISES
from shoal.partition.rank_groups import group_sizes
from shoal.privacy import Spend
from shoal.release.protect import Preparation
from shoal.tuning.clipped import anywhere_square
from shoal.tuning.grid import Setting

METHOD = RankingDP.name
# Penalties are whole numbers of this many to a squared domain width: fine against what the budget can tell apart.
UNITS = 64
# Values are taken to this many bits, so that sums of squares fit into 64.
_BITS = 16


def choose_privately(candidates: Mapping[Setting, Preparation], spend: Spend) -> Setting:
    """One of the candidates, drawn by the exponential mechanism with the least expected error the likeliest.

    Args:
        candidates: releases of the same columns by `ranking-dp` under claim `dp`, settled from public facts.
        spend: what was charged for the choice.

    Raises:
        ClaimError: the release itself does not claim `dp`, so that there is nothing to add the budget to.

    Guarantee:
        ε-DP of the original records under replace-one for the ε that is spent, the number of records public: one
        replaced record changes every penalty by at most `UNITS`. Proof: docs/proofs/tuning.md.

    Cost:
        One sort per column, one pass per candidate and column.

    Reference:
        McSherry and Talwar, "Mechanism Design via Differential Privacy"; PSD-2014 for the groups.
    """
    check_candidates(candidates)
    penalties = np.array(list(rank_fixed_penalties(list(candidates.values()))), dtype=np.int64)
    epsilon, source = spend.take()
    rate = epsilon / (2 * UNITS)
    place = exponential_choice(np.ones(penalties.size, dtype=np.int64), penalties, rate, source)
    return list(candidates)[place]


def check_candidates(candidates: Mapping[Setting, Preparation]) -> None:
    """Whether a choice among these is covered by the proof; public facts only.

    Raises:
        ClaimError: it is not.
    """
    for setting, prepared in candidates.items():
        _check(setting, prepared)


def rank_fixed_penalties(candidates: Sequence[Preparation]) -> list[int]:
    """For every candidate the mean over columns of expected error / width², in `UNITS`, rounded down.

    The sensitivity of the mean is at most 1 under replace-one. Rounding down adds nothing to it: if two numbers differ
    by at most a whole number, so do their whole parts.

    Guarantee:
        Exact on integers: no rounding before the last step depends on a record.
    """
    described = candidates[0].described
    totals = [Fraction(0)] * len(candidates)
    for name in described.columns:
        positions, _ = described.positions(name)
        values, width = coarse(positions, described.lattices[name].steps)
        ordered = np.sort(values)
        for place, prepared in enumerate(candidates):
            method = prepared.method
            assert isinstance(method, RankingDP)
            sizes = group_sizes(described.n, method.size, method.remainder)
            noise = _public_noise(sizes, float(prepared.plan.shares[name]), clip=method.clip)
            totals[place] += rank_fixed_sse(ordered, sizes) / width**2 + Fraction(noise)
    return [math.floor(UNITS * total / len(described.columns)) for total in totals]


def rank_fixed_sse(ordered: NDArray[np.int64], sizes: NDArray[np.int64]) -> Fraction:
    """Squared error, around their means, of sorted whole numbers in consecutive groups of the given sizes.

    Guarantee:
        Values from 0 to W, one of them replaced: it changes by at most W². Proof: docs/proofs/tuning.md.

    >>> rank_fixed_sse(np.array([0, 2, 5, 6, 7]), np.array([2, 3]))
    Fraction(4, 1)
    """
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    squares = int(np.sum(ordered * ordered))
    sums = np.add.reduceat(ordered, starts)
    total = Fraction(squares)
    for size in np.unique(sizes).tolist():
        # a group's sum squared can need more than 64 bits
        total -= Fraction(sum(part * part for part in sums[sizes == size].tolist()), size)
    return total


def coarse(positions: NDArray[np.int64], steps: int) -> tuple[NDArray[np.int64], int]:
    """Positions in 16 bits, in the same order, and the largest one there can be.

    >>> coarse(np.array([0, 3, 7]), 7), coarse(np.array([0, 2**20]), 2**20)[1]
    ((array([0, 3, 7]), 7), 32768)
    """
    shift = max(0, steps.bit_length() - _BITS)
    return positions >> shift, steps >> shift


def _public_noise(sizes: NDArray[np.int64], share: float, *, clip: bool) -> float:
    """Squared error that noise is expected to cause, in squared widths, from public facts alone."""
    scale = 1.0 / (sizes.astype(np.float64) * share)
    square = anywhere_square(scale) if clip else 2.0 * scale * scale
    return float(np.sum(sizes * square))


def _check(setting: Setting, prepared: Preparation) -> None:
    method, statement = prepared.method, prepared.statement
    if statement.data_dependent:
        raise ClaimError("private-needs-every-other-choice-made", data_dependent=statement.data_dependent[0])
    if not isinstance(method, RankingDP):
        raise ClaimError("private-chooses-only", method=METHOD, method_2=method.name)
    if statement.model != "dp":
        raise ClaimError("private-adds-what-choice-costs-claim", setting=setting, model=statement.model)
    if not NOISES[method.noise].closed_form:
        raise OptionError("private-knows-error-laplace-noise-only", noise=method.noise)
