"""Curves over k: medians of measured points, and the sizes at which curves cross."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.cross_moment.measure import EPSILONS, SETS, Cell, Floats, cell, cell_results, overtakes
from papers.desk import Desk
from papers.study import ClaimVerdict, Series

# by construction the same noise on the same statistics: the same seed gives the same rows
SAME: Mapping[str, str] = {"xm-6": "xm-3", "xm-22": "xm-21"}

_SIZES: Mapping[str, tuple[int, ...]] = {
    "Census": (50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 540),
    "EIA": (100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200),
}
_QUICK_SIZES: Mapping[str, tuple[int, ...]] = {"Census": (100, 200, 350, 500), "EIA": (200, 500, 800, 1200)}
_QUICK_EPSILONS = (1.0, 1.4, 2.0)
_RUNS, _QUICK_RUNS = 30, 5
_RESAMPLED = 200


def names(numbers: Sequence[int], prefix: str = "xm-") -> tuple[str, ...]:
    """Presets by the paper's numbers, each of a kind once.

    >>> names((2, 3, 6))
    ('xm-2', 'xm-3')
    """
    return tuple(dict.fromkeys(SAME.get(f"{prefix}{number}", f"{prefix}{number}") for number in numbers))


COEFFICIENTS = names(range(1, 14))
FIRST_ORDER, SECOND_ORDER = names(range(2, 8)), names(range(8, 14))
RANKED = names(range(20, 27))
EIGEN = names(range(14, 20))
MDAV_BASELINES, RANKED_BASELINES = names(range(1, 6), "xm-b"), names(range(6, 9), "xm-b")
# the same statistics of the same clusters without noise
BASELINES: Mapping[str, str] = {
    method: f"xm-b{number}"
    for number, methods in enumerate(((1,), (2, 4, 5), (3, 7), (8, 10, 11), (9, 12, 13)), start=1)
    for method in names(methods)
}


@dataclass(frozen=True)
class Curves:
    """log2 SSE of all runs at all points.

    Attributes:
        sizes: the k at which each file's projections were measured.
        epsilons: the ε at which methods 1 and 3 were measured, for Figure 11.
        runs: at every point.
    """

    sizes: Mapping[str, tuple[int, ...]]
    epsilons: tuple[float, ...]
    runs: int
    found: Mapping[Cell, Floats]

    def ks(self, data: str) -> tuple[int, ...]:
        return self.sizes[data.split()[0]]

    def values(self, data: str, method: str, epsilon: float) -> list[Floats]:
        """Runs at every k."""
        one = SAME.get(method, method)
        return [self.found[cell(data, one, k, epsilon)] for k in self.ks(data)]

    def medians(self, data: str, method: str, epsilon: float) -> Floats:
        return np.array([np.median(runs) for runs in self.values(data, method, epsilon)])

    def k_min(self, data: str, method: str, epsilon: float, base: str = "xm-1") -> float:
        """The k from which the median of a method stays below that of another; infinite if it never does."""
        return overtakes(
            self.ks(data), self.medians(data, base, epsilon), self.medians(data, method, epsilon)
        )

    def k_min_error(self, data: str, method: str, epsilon: float, base: str = "xm-1") -> float:
        """Its standard error, from resampled runs; a size beyond those measured counts as the largest of them."""
        ks, rng = self.ks(data), np.random.default_rng(0)
        drawn = [
            np.stack([_resampled(runs, rng) for runs in self.values(data, name, epsilon)], axis=1)
            for name in (base, method)
        ]
        found = [min(overtakes(ks, below, above), float(ks[-1])) for below, above in zip(*drawn, strict=True)]
        return float(np.std(found))

    def each(
        self, sets: Sequence[str], epsilons: Sequence[float], methods: Sequence[str]
    ) -> list[dict[str, float]]:
        """Medians by method at every point of these data sets and ε."""
        points = []
        for data in sets:
            for epsilon in epsilons:
                columns = {method: self.medians(data, method, epsilon) for method in methods}
                points += [
                    {method: float(values[place]) for method, values in columns.items()}
                    for place in range(len(self.ks(data)))
                ]
        return points

    def series(self) -> Series:
        rows = [
            (
                one.data,
                one.method.removeprefix("xm-"),
                one.k,
                "" if one.epsilon is None else f"{one.epsilon:g}",
                one.match,
                runs.size,
                f"{np.median(runs):.4f}",
                f"{np.quantile(runs, 0.25):.4f}",
                f"{np.quantile(runs, 0.75):.4f}",
                f"{runs.mean():.4f}",
            )
            for one, runs in self.found.items()
        ]
        columns = (
            "data",
            "method",
            "k",
            "epsilon",
            "match",
            "runs",
            "median_log2_sse",
            "lower_quartile",
            "upper_quartile",
            "mean_log2_sse",
        )
        return Series("curves", columns, rows)


def wanted(desk: Desk) -> dict[Cell, int]:
    """Every point of Figures 7 to 14, and how often it is measured."""
    found: dict[Cell, int] = {}
    sizes, runs = (_QUICK_SIZES, _QUICK_RUNS) if desk.quick else (_SIZES, _RUNS)

    def add(sets: Sequence[str], methods: Sequence[str], each: Sequence[float]) -> None:
        for data in sets:
            for k in sizes[data.split()[0]]:
                found.update((cell(data, name, k, epsilon), runs) for epsilon in each for name in methods)

    add(tuple(SETS), (*COEFFICIENTS, *MDAV_BASELINES), (1.0, 2.0))
    add(tuple(SETS), ("xm-1", "xm-3"), _epsilons(desk))
    add(("Census 4", "EIA 4"), (*RANKED, *RANKED_BASELINES), (1.0, 2.0))
    add(tuple(SETS), EIGEN, (2.0,))
    return found


def curves_of(desk: Desk, found: Mapping[str, Any]) -> Curves:
    """The curves from what was measured."""
    sizes, runs = (_QUICK_SIZES, _QUICK_RUNS) if desk.quick else (_SIZES, _RUNS)
    return Curves(sizes, _epsilons(desk), runs, cell_results(found, wanted(desk)))


def _epsilons(desk: Desk) -> tuple[float, ...]:
    return _QUICK_EPSILONS if desk.quick else EPSILONS


def median_error(values: Floats) -> float:
    """Standard error of the median of some runs, by resampling them."""
    return float(np.std(_resampled(values, np.random.default_rng(0))))


def _resampled(values: Floats, rng: np.random.Generator) -> Floats:
    """Medians of as many runs, drawn from these with replacement, many times."""
    places = rng.integers(0, values.size, (_RESAMPLED, values.size))
    return np.asarray(np.median(values[places], axis=1))


def nearly(hits: Iterable[bool]) -> ClaimVerdict:
    """The verdict on a statement about nearly all cases: nine of ten must agree, or disagree.

    >>> nearly([True] * 9 + [False]), nearly([False] * 9 + [True]), nearly([True, False])
    ('holds', 'fails', 'holds partly')
    """
    known = list(hits)
    if sum(known) >= 0.9 * len(known):
        return "holds"
    return "fails" if sum(known) <= 0.1 * len(known) else "holds partly"
