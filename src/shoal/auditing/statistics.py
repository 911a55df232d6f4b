"""Attack statistics: find what distinguishes two data sets, and compute the bound on ε it implies.

Every statistic is something an attacker can compute from a release: order statistics, counts of rows in a region,
numbers of distinct rows, equal values between rows, exact hits of a value, the order of rows, likelihood ratios,
and the statistics of clusters where they are published.

A statistic needs no proof: it is used as an attack, and the bound holds for whatever event is chosen. Linked
attribute groups may therefore be treated as independent, rounding ignored, and large tables approximated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.auditing.trial import Outputs, Point, World
from shoal.display import internal
from shoal.mechanisms import ClusterMethod, cluster_sum_scale
from shoal.numbers import Floats
from shoal.progress import silent
from shoal.text import Message

# All assignments of clusters to rows are summed up to this many clusters, 2^8 · 8 terms.
_ASSIGNED = 8
_LARGEST = 4_000

# In tables with more rows only some ranks and positions are examined, and not every pair.
_SMALL = 16
_PAIRWISE = 32
_RADII = (0.05, 0.25)
Computed = Mapping[str, Floats]
Relation = Literal[">=", "<=", "=="]

LEARNT = "learnt combination of the statistics"

# Standard errors by which counts are shifted against an event before events are compared: rare ones win by chance.
_CAUTION = 3.0
_FEW = 48
_TAILS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075)
_QUANTILES = np.array([*_TAILS, *np.arange(0.1, 0.91, 0.05), *(1 - np.array(_TAILS[::-1]))])


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The clusters of one attribute group: its columns, their means, their noise scales, their sizes."""

    columns: tuple[int, ...]
    means: Floats
    scales: Floats
    sizes: NDArray[np.int64]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodRatio:
    """log P(release | left) - log P(release | right), summed over attribute groups."""

    left: tuple[Blocks, ...]
    right: tuple[Blocks, ...]
    lo: Floats
    hi: Floats

    def __call__(self, outputs: Floats) -> Floats:
        total = np.zeros(outputs.shape[0])
        for left, right in zip(self.left, self.right, strict=True):
            total += _log_likelihood(outputs, left, self.lo, self.hi)
            total -= _log_likelihood(outputs, right, self.lo, self.hi)
        # ties that differ in the last digits would split an atom into many
        return np.round(total, 9)


def likelihood_ratio(left: World, right: World) -> LikelihoodRatio | None:
    """The ratio for two worlds, or None where their distribution is unknown or the tables are large."""
    if not isinstance(left.method, ClusterMethod) or not left.method.likelihood:
        return None
    if left.described.n != right.described.n:
        return None
    sides = _blocks(left), _blocks(right)
    if max(left.described.n * len(block.sizes) for side in sides for block in side) > _LARGEST:
        return None
    lattices = left.described.lattices.values()
    lo = np.array([float(lattice.lo) for lattice in lattices])
    hi = np.array([float(lattice.hi) for lattice in lattices])
    return LikelihoodRatio(*sides, lo=lo, hi=hi)


def _blocks(world: World) -> tuple[Blocks, ...]:
    described, method, clusters = world.described, world.method, world.frozen
    assert isinstance(method, ClusterMethod)
    if clusters is None:
        clusters = method.freeze(described, world.plan, silent)
    found = []
    sums_of = method.calibration.sums
    for made in clusters:
        partition = made.partition
        means, scales = [], []
        for number, column in enumerate(partition.columns):
            lattice = described.lattices[column]
            positions, _ = described.positions(column)
            if made.scales is None:
                steps = float(cluster_sum_scale(lattice.steps, world.plan.shares[column]))
            else:
                # a cluster without noise still needs a density: one far narrower than a lattice step
                steps = np.maximum(made.scales[number].astype(np.float64), 1e-3)
            means.append(lattice.values(sums_of(positions, partition) / partition.sizes))
            scales.append(steps * float(lattice.step) / partition.sizes)
        numbers = tuple(described.columns.index(column) for column in partition.columns)
        found.append(Blocks(numbers, np.stack(means, 1), np.stack(scales, 1), partition.sizes))
    return tuple(found)


def _log_likelihood(outputs: Floats, blocks: Blocks, lo: Floats, hi: Floats) -> Floats:
    rows = outputs[:, :, list(blocks.columns)]
    size = int(blocks.sizes[0])
    if len(blocks.sizes) <= _ASSIGNED and (blocks.sizes == size).all():
        # equal sizes: every size-th of the sorted rows is one cluster, even when two clusters share a value
        order = np.lexsort(tuple(rows[:, :, j] for j in range(rows.shape[2])), axis=1)
        distinct = np.take_along_axis(rows, order[:, :, None], axis=1)[:, ::size]
        return _log_permanent(_log_densities(distinct, blocks, lo, hi))
    densities = _log_densities(rows, blocks, lo, hi) + np.log(blocks.sizes)
    peak = densities.max(axis=2, keepdims=True)
    mixed = np.log(np.exp(densities - peak).sum(axis=2)) + peak[:, :, 0]
    total: Floats = mixed.sum(axis=1) / blocks.sizes.mean()
    return total


def _log_densities(rows: Floats, blocks: Blocks, lo: Floats, hi: Floats) -> Floats:
    """Log density of each row under each cluster, (runs, rows, clusters); the ends of a domain are atoms."""
    total = np.zeros((rows.shape[0], rows.shape[1], len(blocks.sizes)))
    for j, column in enumerate(blocks.columns):
        value = rows[:, :, j, None]
        mean, scale = blocks.means[:, j], blocks.scales[:, j]
        inside = -np.abs(value - mean) / scale - np.log(2 * scale)
        at_lo = np.log(0.5) - (mean - lo[column]) / scale
        at_hi = np.log(0.5) - (hi[column] - mean) / scale
        total += np.where(value <= lo[column], at_lo, np.where(value >= hi[column], at_hi, inside))
    return total


def _log_permanent(densities: Floats) -> Floats:
    """log of the sum over all assignments of rows to clusters, (runs, g, g) -> (runs,)."""
    g = densities.shape[1]
    peak = densities.max(axis=2)
    weights = np.exp(densities - peak[:, :, None])
    partial = {0: np.ones(densities.shape[0])}
    for row in range(g):
        following: dict[int, Floats] = {}
        for used, weight in partial.items():
            for cluster in range(g):
                if not used >> cluster & 1:
                    key = used | 1 << cluster
                    following[key] = following.get(key, 0.0) + weight * weights[:, row, cluster]
        partial = following
    total: Floats = np.log(np.maximum(partial[(1 << g) - 1], 1e-300)) + peak.sum(axis=1)
    return total


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class PairStatistics:
    """What to compute, given the pair of data sets to distinguish.

    Attributes:
        columns, lo, hi: the released columns and their public domains.
        rows: number of rows of a release that are examined; the number of rows itself is always used.
        record: position of the record that differs.
        targets: the value of that record on the left and on the right (absent ones left out).
        likelihood: the likelihood ratio of left against right, where the distribution of a release is known.
    """

    columns: tuple[str, ...]
    lo: Point
    hi: Point
    rows: int
    record: int
    targets: tuple[Point, ...]
    likelihood: LikelihoodRatio | None

    def compute(self, outputs: Outputs) -> dict[str, Floats]:
        """Every statistic of every release."""
        found: dict[str, Floats] = {
            "number of rows": (~np.isnan(outputs.tables[:, :, 0])).sum(axis=1).astype(np.float64)
        }
        tables = _with_rows(outputs.tables, self.rows)
        for part in (self._values, self._regions, self._sharing, self._order, self._likelihood):
            for name, numbers in part(tables):
                found[name] = np.asarray(numbers, dtype=np.float64)
        return found | _published(outputs)

    def _values(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        rows = outputs.shape[1]
        for j, name in enumerate(self.columns):
            ordered = np.sort(outputs[:, :, j], axis=1)
            for rank in _some(rows):
                yield f"value of rank {rank + 1} in {name}", ordered[:, rank]
            yield f"sum of {name}", np.nansum(ordered, axis=1)
            yield f"rows exactly at the low end of {name}", (ordered == self.lo[j]).sum(axis=1)
            yield f"rows exactly at the high end of {name}", (ordered == self.hi[j]).sum(axis=1)
            lowest, highest = ordered[:, :1], np.nanmax(ordered, axis=1, keepdims=True)
            yield f"rows that share the smallest value of {name}", (ordered == lowest).sum(axis=1)
            yield f"rows that share the largest value of {name}", (ordered == highest).sum(axis=1)

    def _regions(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        lo, hi = np.asarray(self.lo), np.asarray(self.hi)
        width = hi - lo
        middle = (lo + hi) / 2
        for side, target in zip(("left", "right"), self.targets, strict=False):
            distance = (np.abs(outputs - np.asarray(target)) / width).max(axis=2)
            yield f"distance of the nearest row to the {side} record", np.nanmin(distance, axis=1)
            yield f"rows exactly equal to the {side} record", (distance == 0).sum(axis=1)
            for radius in _RADII:
                yield f"rows within {radius:g} of the {side} record", (distance <= radius).sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            pair = f"{self.columns[j]} and {self.columns[other]}"
            first, second = outputs[:, :, j], outputs[:, :, other]
            yield (
                f"rows above the middle in {pair}",
                ((first > middle[j]) & (second > middle[other])).sum(axis=1),
            )
            yield (
                f"rows below the middle in {pair}",
                ((first < middle[j]) & (second < middle[other])).sum(axis=1),
            )
            moved = (first - middle[j]) * (second - middle[other])
            yield f"product of {pair}", np.nansum(moved, axis=1) / (width[j] * width[other])

    def _sharing(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        ordered = sort_rows(outputs)
        changes = (ordered[:, 1:] != ordered[:, :-1]) & ~np.isnan(ordered[:, 1:])
        yield "number of distinct rows", 1 + changes.any(axis=2).sum(axis=1)
        for j, name in enumerate(self.columns):
            values = np.sort(outputs[:, :, j], axis=1)
            steps = (values[:, 1:] != values[:, :-1]) & ~np.isnan(values[:, 1:])
            yield f"number of distinct values of {name}", 1 + steps.sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            first, second = outputs[:, :, j], outputs[:, :, other]
            pair = f"{self.columns[j]} and {self.columns[other]}"
            ends = {"smallest": np.nanmin, "largest": np.nanmax}
            for one, end in ends.items():
                for two, other_end in ends.items():
                    both = (first == end(first, axis=1, keepdims=True)) & (
                        second == other_end(second, axis=1, keepdims=True)
                    )
                    yield f"rows with the {one} and the {two} value of {pair}", both.sum(axis=1)
        if outputs.shape[1] <= _PAIRWISE:
            yield from self._pairwise(outputs)

    def _pairwise(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        upper = np.triu_indices(outputs.shape[1], 1)
        same = [outputs[:, upper[0], j] == outputs[:, upper[1], j] for j in range(len(self.columns))]
        for j, name in enumerate(self.columns):
            yield f"pairs of rows that share {name}", same[j].sum(axis=1)
        for j, other in combinations(range(len(self.columns)), 2):
            together = (same[j] & same[other]).sum(axis=1)
            yield f"pairs of rows that share {self.columns[j]} and {self.columns[other]}", together

    def _order(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        rows = outputs.shape[1]
        for j, name in enumerate(self.columns):
            for row in dict.fromkeys((0, min(self.record, rows - 1), rows - 1)):
                yield f"{name} in row {row + 1}", outputs[:, row, j]
            if self.record >= rows:
                continue
            own = outputs[:, self.record, j]
            for row in _some(rows):
                if row != self.record:
                    shared = own == outputs[:, row, j]
                    yield f"rows {self.record + 1} and {row + 1} share {name}", shared

    def _likelihood(self, outputs: Floats) -> Iterator[tuple[str, Floats]]:
        if self.likelihood is not None:
            yield "likelihood ratio", self.likelihood(outputs)


def _published(outputs: Outputs) -> dict[str, Floats]:
    """The statistics of clusters, where they are published, and their sums."""
    found = {}
    for name, values in outputs.statistics.items():
        found["number of published clusters"] = np.full(values.shape[0], float(values.shape[1]))
        for cluster in _some(values.shape[1]):
            found[f"{name} in published cluster {cluster + 1}"] = values[:, cluster]
        found[f"sum of {name} over published clusters"] = np.nansum(values, axis=1)
    return found


def _with_rows(outputs: Floats, rows: int) -> Floats:
    """Sample the given number of rows, or pad with rows of NaN."""
    runs, present, columns = outputs.shape
    if present >= rows:
        return outputs[:, :rows]
    return np.concatenate([outputs, np.full((runs, rows - present, columns), np.nan)], axis=1)


def sort_rows(outputs: Floats) -> Floats:
    """Rows of every table in lexicographic order."""
    order = np.lexsort(tuple(outputs[:, :, j] for j in reversed(range(outputs.shape[2]))), axis=1)
    return np.take_along_axis(outputs, order[:, :, None], axis=1)


def _some(rows: int) -> list[int]:
    """All positions of a small table, a selection for a large one, always including both ends."""
    if rows <= _SMALL:
        return list(range(rows))
    spread = np.linspace(0, rows - 1, _SMALL - 4).round().astype(int)
    return sorted({0, 1, 2, rows - 3, rows - 2, rows - 1, *spread.tolist()})


@dataclass(frozen=True, slots=True)
class Event:
    """An event observable in a release, more likely on one side of a pair than on the other."""

    statistic: str
    relation: Relation
    value: float
    likelier: Literal["left", "right"]

    def count(self, computed: Computed) -> int:
        """Number of runs in which it occurred."""
        numbers = _defined(computed[self.statistic])
        if self.relation == "==":
            return int((numbers == self.value).sum())
        return int((numbers >= self.value).sum() if self.relation == ">=" else (numbers <= self.value).sum())

    def words(self) -> str:
        code = {">=": "event-at-least", "<=": "event-at-most", "==": "event-exactly"}[self.relation]
        return str(Message.of(code, statistic=self.statistic, value=self.value))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A linear combination of statistics that separates the two sides (Fisher's discriminant, on search runs)."""

    names: tuple[str, ...]
    centre: Floats
    weights: Floats

    def __call__(self, computed: Computed) -> Floats:
        stacked = np.column_stack([_finite(computed[name]) for name in self.names])
        # the last digits of a product depend on how many rows are multiplied at once; an atom must stay one
        combined: Floats = np.round((stacked - self.centre) @ self.weights, 9)
        return combined


def learn(left: Computed, right: Computed) -> Learnt | None:
    """Fit the combination; None when no statistic varies."""
    names = tuple(
        name
        for name in _of_both(left, right)
        if np.ptp(_finite(np.concatenate([left[name], right[name]]))) > 0
    )
    if not names:
        return None
    sides = [np.column_stack([_finite(side[name]) for name in names]) for side in (left, right)]
    pooled = np.concatenate(sides)
    centre, spread = pooled.mean(axis=0), pooled.std(axis=0)
    scaled = [(side - centre) / spread for side in sides]
    within = sum(np.cov(side, rowvar=False).reshape(len(names), len(names)) for side in scaled) / 2
    ridge = 1e-3 * np.eye(len(names))
    direction = np.linalg.solve(within + ridge, scaled[0].mean(axis=0) - scaled[1].mean(axis=0))
    return Learnt(names, centre, direction / spread)


def best_events(left: Computed, right: Computed, limit: int, delta: float = 0.0) -> list[tuple[float, Event]]:
    """The most informative event of each statistic, best first, with a conservative estimate of its log ratio.

    The part of its probability that δ allows is not counted.
    """
    best: list[tuple[float, Event]] = []
    for name in _of_both(left, right):
        found = _best_event(name, np.sort(_defined(left[name])), np.sort(_defined(right[name])), delta)
        if found is not None:
            best.append(found)
    # equivalent statistics have the same score: one of them is enough
    distinct = {score: (score, event) for score, event in reversed(best)}
    return sorted(distinct.values(), key=lambda scored: -scored[0])[:limit]


def _best_event(name: str, left: Floats, right: Floats, delta: float) -> tuple[float, Event] | None:
    pooled = np.concatenate([left, right])
    values, frequency = np.unique(pooled, return_counts=True)
    if values.size < 2:
        return None
    thresholds = (
        values if values.size <= _FEW else np.unique(np.quantile(pooled, _QUANTILES, method="nearest"))
    )
    atoms = values[np.argsort(-frequency, kind="stable")[:_FEW]]
    below = [side.searchsorted(thresholds, "left") for side in (left, right)]
    up_to = [side.searchsorted(thresholds, "right") for side in (left, right)]
    at_atom = [side.searchsorted(atoms, "right") - side.searchsorted(atoms, "left") for side in (left, right)]
    counted: list[tuple[Relation, Floats, NDArray[np.intp], NDArray[np.intp]]] = [
        (">=", thresholds, left.size - below[0], right.size - below[1]),
        ("<=", thresholds, up_to[0], up_to[1]),
        ("==", atoms, at_atom[0], at_atom[1]),
    ]
    best: tuple[float, Event] | None = None
    side: Literal["left", "right"]
    for relation, at, on_left, on_right in counted:
        for side, here, there in (("left", on_left, on_right), ("right", on_right, on_left)):
            score = _cautious_log_ratio(here, there, delta * left.size)
            place = int(np.argmax(score))
            if best is None or score[place] > best[0]:
                best = float(score[place]), Event(name, relation, float(at[place]), side)
    return best


def _cautious_log_ratio(here: NDArray[np.intp], there: NDArray[np.intp], allowed: float) -> Floats:
    """A quick substitute for the exact bound, by square roots of counts: both sides have equally many runs."""
    low = np.maximum(np.sqrt(here) - _CAUTION / 2, 0.01)
    low = np.sqrt(np.maximum(low**2 - allowed, 0.0001))
    high = np.sqrt(there + 1) + _CAUTION / 2
    ratio: Floats = 2 * np.log(low / high)
    return ratio


def _of_both(left: Computed, right: Computed) -> list[str]:
    """Names present on both sides: one may have published more clusters than the other."""
    return [name for name in left if name in right]


def _defined(numbers: Floats) -> Floats:
    """A row that does not exist is below every value."""
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _finite(numbers: Floats) -> Floats:
    return np.nan_to_num(numbers, nan=0.0, posinf=0.0, neginf=0.0)


def clopper_pearson_lower(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    """The largest p0 such that a probability below p0 shows this many successes with chance at most alpha.

    >>> round(float(clopper_pearson_lower(10, 10, 0.05)), 4)
    0.7411
    """
    from scipy.special import betaincinv

    found = np.asarray(successes, dtype=np.float64)
    return np.where(found <= 0, 0.0, betaincinv(np.maximum(found, 1), runs - found + 1, alpha))


def clopper_pearson_upper(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    """The smallest p1 such that a probability above p1 shows this few successes with chance at most alpha.

    >>> round(float(clopper_pearson_upper(0, 10, 0.05)), 4)
    0.2589
    """
    return 1.0 - clopper_pearson_lower(runs - np.asarray(successes, dtype=np.float64), runs, alpha)


def epsilon_bounds(
    hits: Any, hit_runs: int, false_hits: Any, other_runs: int, alpha: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """Lower bounds on ε from one event each: how often it occurred here, and how often on the neighbouring data set.

    Under (ε, δ)-DP, P(event here) <= e^ε · P(event there) + δ. Each probability gets half of alpha, so for one event
    fixed before the runs the bound exceeds the true ε with probability at most alpha.

    Reference:
        Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial".

    >>> round(float(epsilon_bounds(5000, 10000, 1840, 10000, 0.01)), 2)
    0.92
    """
    low = clopper_pearson_lower(hits, hit_runs, alpha / 2)
    high = clopper_pearson_upper(false_hits, other_runs, alpha / 2)
    with np.errstate(divide="ignore"):
        ratio: NDArray[np.float64] = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.asarray(np.maximum(ratio, 0.0))
