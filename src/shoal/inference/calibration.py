"""Calibrate released rows to the noisy numbers they were drawn from, and state what uncertainty is left.

The rows are a smoothed reading of the measurements, which themselves are unbiased with known noise. A statistic is
corrected by that part of its influence function which measured functions explain, as survey sampling calibrates weights
to known totals; docs/inference.md has the formulas and the assumption.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtri

from shoal.display import internal
from shoal.inference.measured import FINE, ONE, PRODUCT, Evaluated, details, evaluated
from shoal.inference.rows import Cells, WeightedRows
from shoal.numbers import Floats
from shoal.privacy import Measurements

# How far, in standard deviations of a function, the rows may be from the truth: single columns, products of signs,
# finer contrasts. Not estimated from the gap to the measurements, because the rows were fitted to their noise.
_PRIOR = {ONE: 3.0, PRODUCT: 1.0, FINE: 0.15}
# The bias left in what nothing measured, as a part of its standard deviation: inside the cells of single columns, if
# these are heavy-tailed, and among several columns.
KAPPA_ONE, KAPPA_HEAVY, KAPPA_MORE = 0.3, 1.0, 0.1
_RIDGE = 1e-7
# A function of which less than this part of the variance is left by the others is one of them.
_DEPENDENT = 1e-5
# A distribution is heavy-tailed if its quantiles have a smaller correlation with normal ones than this.
_NORMAL = 0.9


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """The standard deviations of a statistic, each by its source.

    Attributes:
        noise: of the noise added for privacy.
        sampling: of the choice of the people who were asked.
        inside, beyond: of what no function explains, inside the cells of single columns and among several columns.
        kappa: the bias that is allowed for inside cells, in these standard deviations.
        apart: how far two ways of estimating it are apart.
        carried: the part of the statistic that measured functions explain, from 0 to 1.
    """

    noise: Floats
    sampling: Floats
    inside: Floats
    beyond: Floats
    kappa: float
    apart: Floats
    carried: Floats

    @property
    def unmeasured(self) -> Floats:
        """An allowance for what nothing measured."""
        found: Floats = np.sqrt(
            (self.kappa * self.inside) ** 2 + (KAPPA_MORE * self.beyond) ** 2 + self.apart**2
        )
        return found


class WeightCalibration:
    """WeightedRows in the columns of a statistic, calibrated to all measurements of these columns.

    Cost:
        WeightedRows times functions squared, and functions cubed.
    """

    def __init__(self, rows: WeightedRows, measurements: Measurements, cells: Mapping[str, Cells]) -> None:
        self.rows, self.measurements, self.cells = rows, measurements, cells
        self.base = rows.weights / rows.weights.sum()
        raw = evaluated(measurements, rows)
        mean = self.base @ raw.functions
        spread = np.sqrt(np.maximum(self.base @ raw.functions**2 - mean**2, 0))
        kept = spread > 1e-9
        self.functions = (raw.functions[:, kept] - mean[kept]) / spread[kept]
        self.gap = (raw.means[kept] - mean[kept]) / spread[kept]
        self.noise = raw.deviations[kept] / spread[kept]
        self.prior = np.array([_PRIOR[one] ** 2 for one in _chosen(raw, kept)])
        # one draw of noise on the number of rows moves all means at once
        self.common = measurements.rows_sd / measurements.rows * raw.means[kept] / spread[kept]

    @property
    def number(self) -> int:
        """Number of functions."""
        return int(self.gap.size)

    @cached_property
    def gram(self) -> Floats:
        # a product with itself takes half the time
        own = self.functions * np.sqrt(self.base)[:, None]
        found: Floats = own.T @ own
        return found

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        own = self.gram * np.sqrt(self.prior)
        spread = own @ own.T + np.outer(self.common, self.common)
        spread[np.diag_indices_from(spread)] += self.noise**2 + 1e-14
        found: tuple[Floats, bool] = cho_factor(spread, lower=True)
        return found

    def weights_for(self, gap: Floats) -> Floats:
        """Calibrated weights, of mean 1, if the rows differ so much from the measurements."""
        if not self.number:
            return self.rows.weights
        moved = self.prior * (self.gram @ cho_solve(self._factor, gap))
        found: Floats = self.rows.weights * (1 + self.functions @ moved)
        return found

    @cached_property
    def weights(self) -> Floats:
        """The calibrated weights."""
        return self.weights_for(self.gap)

    def correction(self, influence: Floats) -> Floats:
        """The first-order change of statistics with these influence functions, (rows, statistics)."""
        found: Floats = self._explained(influence)[1].T @ self.gap
        return found

    def _explained(self, influence: Floats) -> tuple[Floats, Floats, Floats]:
        """Covariances with the functions, their coefficients on the gap, and the influence less its mean."""
        own = influence - self.base @ influence
        both = self.functions.T @ (self.base[:, None] * own)
        if not self.number:
            return both, both, own
        return both, cho_solve(self._factor, self.gram @ (self.prior[:, None] * both)), own

    def uncertainty(self, influence: Floats, weights: Floats, *, records: bool, deff: float) -> Uncertainty:
        """Of statistics with these influence functions (rows, statistics) under calibrated weights."""
        both, coefficients, own = self._explained(influence)
        whole = np.maximum(self.base @ own**2, 1e-300)
        sampled = np.maximum(weights @ influence**2 / weights.sum(), 0) / self.measurements.rows * deff
        inside, beyond = self.residuals(both, own, whole)
        if self.number:
            # in the quadratic form, the noise that rows followed and the doubt that remains about what was measured
            noise = (self.prior[:, None] * both * both).sum(axis=0)
            noise -= (coefficients * (self.gram @ (self.prior[:, None] * both))).sum(axis=0)
        else:
            noise = np.zeros(whole.size)
        return Uncertainty(
            np.sqrt(np.maximum(noise, 0)),
            np.zeros(whole.size) if records else np.sqrt(sampled),
            inside,
            beyond,
            self.kappa,
            np.zeros(whole.size),
            1 - (inside**2 + beyond**2) / whole,
        )

    def residuals(self, both: Floats, own: Floats, whole: Floats) -> tuple[Floats, Floats]:
        """Standard deviations of what no function explains: by single columns inside their cells, and the rest."""
        left, remainder = whole.copy(), own
        if self.number:
            explained = cho_solve(self._projection, both)
            left = np.maximum(whole - (both * explained).sum(axis=0), 0)
            # as many rows as functions are explained by chance alone
            left = np.minimum(left * self._by_chance, whole)
            remainder = own - self.functions @ explained
        if not self._details.shape[1]:
            return np.zeros(left.size), np.sqrt(left)
        more, factor = self._detail_projection
        inside = more.T @ (self.base[:, None] * remainder)
        variance = np.clip((inside * cho_solve(factor, inside)).sum(axis=0) * self._by_chance, 0, left)
        return np.sqrt(variance), np.sqrt(left - variance)

    @cached_property
    def _projection(self) -> tuple[Floats, bool]:
        found: tuple[Floats, bool] = cho_factor(self.gram + _RIDGE * np.eye(self.number), lower=True)
        return found

    @cached_property
    def _by_chance(self) -> float:
        """The factor by which a variance that is left over is too small, as in an adjusted R²."""
        factor, _ = self._projection
        rank = int((np.diag(factor) ** 2 > _DEPENDENT).sum())
        rows = self.rows.entries or self.rows.size
        return rows / max(rows - rank, 1)

    @cached_property
    def _details(self) -> Floats:
        return details(self.rows, self.cells)

    @cached_property
    def _detail_projection(self) -> tuple[Floats, tuple[Floats, bool]]:
        found = self._details
        if self.number:
            both = (self.functions * self.base[:, None]).T @ found
            found = found - self.functions @ cho_solve(self._projection, both)
        gram = (found * self.base[:, None]).T @ found
        return found, cho_factor(gram + _RIDGE * np.eye(found.shape[1]), lower=True)

    def without_measured(self, moves: Floats) -> tuple[Floats, Floats]:
        """Random changes of the weights, (rows, draws), that leave all measured means as they are; and those that
        leave everything inside the cells of single columns as it is, too."""
        held = moves - self.base @ moves
        if self.number:
            both = self.functions.T @ (self.base[:, None] * held)
            held = (held - self.functions @ cho_solve(self._projection, both)) * math.sqrt(self._by_chance)
        if not self._details.shape[1]:
            return held, held
        more, factor = self._detail_projection
        return held, held - more @ cho_solve(factor, more.T @ (self.base[:, None] * held))

    @cached_property
    def heavy(self) -> tuple[str, ...]:
        """Columns with a heavy-tailed distribution, by the rule of the mechanism, on the released rows."""
        return tuple(name for name in self.rows.measured if self._heavy(name))

    def _heavy(self, column: str) -> bool:
        known = self.cells.get(column)
        if known is None or known.counted:
            return False
        own, weights = self.rows.measured[column].astype(np.float64), self.base
        chosen = np.flatnonzero(own >= 0)
        order = chosen[np.argsort(own[chosen], kind="stable")]
        value, weight = own[order], weights[order] / weights[order].sum()
        scores = ndtri(np.clip(np.cumsum(weight) - weight / 2, 1e-9, 1 - 1e-9))
        centred = value - weight @ value
        spread = math.sqrt(weight @ centred**2) * math.sqrt(weight @ scores**2)
        return bool(spread > 0 and weight @ (centred * scores) / spread < _NORMAL)

    @property
    def kappa(self) -> float:
        """The allowance for single columns inside their cells."""
        return KAPPA_HEAVY if self.heavy else KAPPA_ONE

    def strained(self, weights: Floats) -> bool:
        """Whether calibrated weights change the variance of a column by more than a factor of two."""
        for own in self.rows.positions.values():
            before = _variance(own, self.rows.weights)
            if before > 0 and not 0.5 < _variance(own, weights) / before < 2:
                return True
        return False

    def drawn_gaps(self, number: int, random: np.random.Generator) -> Floats:
        """Gaps with noise drawn anew, one for each of `number` replicates."""
        noise = random.standard_normal((number, self.number)) * self.noise
        found: Floats = self.gap + noise + random.standard_normal((number, 1)) * self.common
        return found


def _chosen(raw: Evaluated, kept: object) -> list[str]:
    return [family for family, keep in zip(raw.families, np.asarray(kept).tolist(), strict=True) if keep]


def _variance(positions: object, weights: Floats) -> float:
    own = np.asarray(positions, dtype=np.float64)
    chosen = own >= 0
    total = weights[chosen].sum()
    if total <= 0:
        return 0.0
    mean = float(weights[chosen] @ own[chosen] / total)
    return float(weights[chosen] @ (own[chosen] - mean) ** 2 / total)
