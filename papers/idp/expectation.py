"""Expected errors in closed form: the average of infinitely many runs of a setting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.idp.settings import Cell
from shoal.partition import ranking

Real = NDArray[np.float64]
# places of the two metrics in a pair
CORRECTED, PRINTED = 0, 1


@dataclass(frozen=True, eq=False)
class Clusters:
    """One attribute, clustered by rank, on the domain from 0 to `top`; everything but `values` is per cluster.

    Attributes:
        values: sorted inside their clusters.
        starts: where each cluster begins.
        local: how far one record can move the sum of a cluster, Proposition 2.
        inner: how far it can move the sum without extremes, Proposition 3.
    """

    values: Real
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    top: float

    @property
    def means(self) -> Real:
        return np.add.reduceat(self.values, self.starts) / self.sizes

    @property
    def inner_means(self) -> Real:
        s = self.at
        return self.means + (s(1) - s(0) + s(-2) - s(-1)) / self.sizes

    @property
    def local(self) -> Real:
        return np.maximum(self.top - self.at(0), self.at(-1))

    @property
    def inner(self) -> Real:
        s = self.at
        up = (s(-1) - s(1)) + (s(2) - s(1)) + (s(-1) - s(-2))
        down = (s(-2) - s(0)) + (s(-2) - s(-3)) + (s(1) - s(0))
        return np.maximum(up, down)

    def at(self, place: int) -> Real:
        """The values at a place of every cluster, counted from its lower or, if negative, its upper end."""
        return self.values[self.starts + place if place >= 0 else self.starts + self.sizes + place]


def clusters(x: Real, k: int, alpha: float) -> Clusters:
    made = ranking(x, k)
    order = np.lexsort((x, made.labels))
    sizes = np.asarray(made.sizes)
    return Clusters(x[order], np.cumsum(sizes) - sizes, sizes, alpha * float(x.max()))


def mean_squares(values: Real, cell: Cell) -> Real:
    """Expected squared error of every attribute, averaged over the records; an infinite ε means no noise."""
    m = values.shape[1]
    unit = m / cell.epsilon
    return np.array([_mean_square(x, cell, unit) for x in values.T])


def expected(values: Real, cell: Cell) -> tuple[float, float]:
    """Expected mean SSE, corrected and as printed."""
    return metrics(values, mean_squares(values, cell))


def metrics(values: Real, squares: Real) -> tuple[float, float]:
    """Mean SSE, corrected and as printed, from the squared error of every attribute."""
    corrected, printed = (float(part.sum()) for part in shares(values, squares))
    return corrected, printed


def shares(values: Real, squares: Real) -> tuple[Real, Real]:
    """What every attribute adds to the mean SSE, corrected and as printed."""
    spread = values.std(axis=0, ddof=1)
    m = values.shape[1]
    return squares / spread**2 / m**2, squares / spread**4 / m**2


def of_column_means(values: Real) -> tuple[float, float]:
    """Mean SSE of a table in which every value is its column's mean: the least of all that say nothing of records."""
    return metrics(values, values.var(axis=0))


def of_domain_ends(values: Real, alpha: float) -> tuple[float, float]:
    """Mean SSE of values thrown to either end of the domain at random: what clipped noise of no bound leaves."""
    top = alpha * values.max(axis=0)
    return metrics(values, np.mean((values**2 + (top - values) ** 2) / 2, axis=0))


def _mean_square(x: Real, cell: Cell, unit: float) -> float:
    if not cell.k:
        top = cell.alpha * float(x.max())
        return float(np.mean(clipped_moments(np.full(x.size, top * unit), x, top - x)[1]))
    made = clusters(x, cell.k, cell.alpha)
    centre = made.inner_means if cell.method == "idp-cbls" else made.means
    reach = {"ranking-dp": np.full(made.sizes.size, made.top), "idp-ls": made.local, "idp-cbls": made.inner}
    first, second = clipped_moments(reach[cell.method] * unit / made.sizes, centre, made.top - centre)
    off = np.repeat(centre, made.sizes) - made.values
    total = np.sum(off**2 + 2 * off * np.repeat(first, made.sizes)) + np.sum(second * made.sizes)
    return float(total) / x.size


def clipped_moments(b: Real, low: Real, high: Real) -> tuple[Any, Any]:
    """Mean and mean square of Laplace noise of scale b, clipped to [-low, high].

    Noise on a value that is `low` above the lower and `high` below the upper end of its domain. No noise has moments 0.
    """
    scale = np.where(b > 0, b, 1.0)
    below, above = np.exp(-low / scale), np.exp(-high / scale)
    first = scale / 2 * (below - above)
    second = scale**2 * (2 - above * (1 + high / scale) - below * (1 + low / scale))
    return np.where(b > 0, first, 0.0), np.where(b > 0, second, 0.0)


def level(value: float) -> float:
    """A mean SSE on the logarithmic scale of the paper's figures."""
    return math.log10(value)
