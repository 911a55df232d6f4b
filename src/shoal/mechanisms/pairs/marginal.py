"""What is known about one attribute. In: noisy counts. Out: bins that pairs use, their shares, and a fine distribution.

Post-processing: no record, no budget.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# An exponential density this steep over its interval is a point for all purposes.
_STEEPEST = 500.0


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Fine:
    """A distribution over the positions of an attribute, interval by interval.

    Attributes:
        lows, highs: first and last position of each interval.
        shares: probability of each; they add up to one.
        slopes: how fast the density grows inside, in exponents per interval; 0 is uniform.
    """

    lows: Integers
    highs: Integers
    shares: Floats
    slopes: Floats

    def positions(self, levels: Floats) -> Floats:
        """Whole positions at these levels (0 to 1) of the distribution function."""
        ends = np.cumsum(self.shares)
        ends /= ends[-1]
        which = np.minimum(np.searchsorted(ends, levels, side="right"), ends.size - 1)
        starts = np.concatenate(([0.0], ends[:-1]))
        share = ends[which] - starts[which]
        inside = np.divide(levels - starts[which], share, out=np.full(levels.size, 0.5), where=share > 1e-15)
        inside = np.clip(inside, 0.0, 1.0)
        place = _exponential_quantile(inside, self.slopes[which])
        low, high = self.lows[which], self.highs[which]
        found: Floats = np.clip(np.floor(low + place * (high - low + 1)), low, high)
        return found


def _exponential_quantile(level: Floats, slope: Floats) -> Floats:
    """Quantiles of the density proportional to exp(slope·x) on [0, 1]."""
    steepness = np.maximum(np.abs(slope), 1e-6)
    # a falling density is a growing one read from the other end
    grown = np.where(slope > 0, level, 1 - level)
    place = np.log1p(grown * np.expm1(steepness)) / steepness
    found: Floats = np.where(slope > 0, place, 1 - place)
    return found


def slopes_for(means: Floats) -> Floats:
    """The slopes of exponential densities on [0, 1] with these means: most spread out given the mean.

    >>> slopes_for(np.array([0.75, 0.25])).round(2).tolist()
    [3.59, -3.59]
    """
    wanted = np.clip(means, 1 / _STEEPEST, 1 - 1 / _STEEPEST)
    low, high = np.full(wanted.size, -_STEEPEST), np.full(wanted.size, _STEEPEST)
    for _ in range(60):
        middle = (low + high) / 2
        small = _exponential_mean(middle) < wanted
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    found: Floats = (low + high) / 2
    return found


def _exponential_mean(slope: Floats) -> Floats:
    flat = np.abs(slope) < 1e-4
    safe = np.where(flat, 1.0, slope)
    return np.where(flat, 0.5 + slope / 12, -1 / np.expm1(-safe) - 1 / safe)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """One attribute, once its share is spent.

    Attributes:
        fine: the distribution of its positions.
        shares: probabilities of the bins that pairs use.
        levels: halvings that make the bins, 2^levels of them; 0 for names, and for attributes of one value.
        edges: bin i holds the positions edges[i] .. edges[i+1] - 1; None for names.
        groups: the bin of each position, for names.
    """

    fine: Fine
    shares: Floats
    levels: int
    edges: Integers | None
    groups: NDArray[np.uint8] | None = None

    @property
    def bins(self) -> int:
        return self.shares.size

    @property
    def names(self) -> bool:
        return self.groups is not None

    @property
    def exact_bins(self) -> bool:
        """A bin holds one position at most, so that it says all."""
        if self.groups is not None:
            return False
        assert self.edges is not None
        return bool((np.diff(self.edges) <= 1).all())

    def codes(self, positions: Integers) -> NDArray[np.uint8]:
        """The bin of each position. Of records' positions it is private."""
        if self.groups is not None:
            return self.groups[positions]
        assert self.edges is not None
        # a table from position to bin is quicker than a search, as long as it stays small
        if self.edges[-1] <= 1 << 16 and self.edges[-1] <= 4 * positions.size:
            table = np.searchsorted(self.edges[1:-1], np.arange(self.edges[-1]), side="right").astype(
                np.uint8
            )
            return table[positions]
        return np.searchsorted(self.edges[1:-1], positions, side="right").astype(np.uint8)


def points(shares: Floats) -> Fine:
    """A distribution over single positions."""
    places = np.arange(shares.size, dtype=np.int64)
    return Fine(places, places, shares, np.zeros(shares.size))


def constant() -> Marginal:
    """An attribute of one value."""
    return Marginal(points(np.ones(1)), np.ones(1), 0, np.array([0, 1], dtype=np.int64))
