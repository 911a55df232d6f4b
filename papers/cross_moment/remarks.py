"""Facts about clusters and releases, for claims in the text besides figures and propositions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np

import shoal
from papers.cross_moment.measure import SETS, Cell, Floats, log_errors, matrix
from papers.desk import Desk, Task, read_table
from papers.textbook import histogram_cells
from shoal.mechanisms.moments.spectra import Spectrum
from shoal.mechanisms.moments.statistics import eigenvector_changes
from shoal.partition import Partition, insensitive, mdav, ranking

# a skew-normal variable stays below this skewness
SKEWEST = (4 - math.pi) / 2 * (2 / (math.pi - 2)) ** 1.5
_KEY = "remarks, Census"
_SIZES = (50, 100, 200, 300, 500)
_CLUSTER_SIZES = (5, 15, 50, 100, 300)
_HIGHER_NOISE = ("xm-14", "xm-15", "xm-18")
_RUNS, _QUICK_RUNS = 10, 3


def tasks(desk: Desk) -> dict[str, Task]:
    """Facts about Census and EIA, and some eigen methods at ε = 1 and 2."""
    found: dict[str, Task] = {_KEY: partial(facts, desk.data)}
    for one in _eigen_cells():
        found[_eigen_key(one, desk)] = partial(
            log_errors, desk.file(SETS[one.data].file), one, _number_of_runs(desk)
        )
    return found


def facts_of(found: Mapping[str, Any]) -> dict[str, Any]:
    return dict(found[_KEY])


def eigen_errors(desk: Desk, found: Mapping[str, Any]) -> dict[tuple[str, int, float], float]:
    """Median log2 SSE on Census 4 by method, k and ε."""
    return {
        (one.method, one.k, one.epsilon or 0.0): float(np.median(found[_eigen_key(one, desk)]))
        for one in _eigen_cells()
    }


def _eigen_cells() -> list[Cell]:
    return [
        Cell("Census 4", name, k, epsilon)
        for name in _HIGHER_NOISE
        for k in (100, 300, 500)
        for epsilon in (1.0, 2.0)
    ]


def _eigen_key(one: Cell, desk: Desk) -> str:
    return f"remarks, {one.key}, runs={_number_of_runs(desk)}"


def _number_of_runs(desk: Desk) -> int:
    return _QUICK_RUNS if desk.quick else _RUNS


def facts(folder: Path) -> dict[str, Any]:
    """All that is counted; every list is in the order of `SETS` or of `_SIZES`."""
    data = {name: matrix(folder / one.file, one.columns) for name, one in SETS.items()}
    census = data["Census 4"]
    return {
        "equal rows": {
            name: least_equal_rows(folder, name, k) for name, k in (("xm-b1", 100), ("xm-6", 390))
        },
        "deviations": {name: deviations(folder, name) for name in ("xm-b1", "xm-b3", "xm-1", "xm-3")},
        "first two columns": {name: first_two_columns(values, 100) for name, values in data.items()},
        "repaired": repaired(folder),
        "beyond": beyond_skew_normal(census, 100),
        "drawn": {str(k): drawn_moments(folder, k) for k in _SIZES},
        "at the cap": {
            name: at_the_cap(values, 100 if name.startswith("Census") else 400)
            for name, values in data.items()
        },
        "homogeneity": {str(k): homogeneity(census, k) for k in _CLUSTER_SIZES},
        "cells": histogram_cells(census),
    }


def _clusters(values: Floats, k: int) -> Partition:
    """As the methods make them: columns divided by their widths, values below the domain clipped."""
    return mdav(np.clip(values, 0, None) / (1.5 * values.max(axis=0)), k)


def _released(folder: Path, name: str, data: str, k: int, match: str = "none") -> tuple[Any, Floats]:
    """A release and its rows in the order of the records."""
    options: dict[str, Any] = {} if name.startswith("xm-b") else {"epsilon": 2}
    if name not in ("xm-1", "xm-b1"):
        options["match"] = match
    columns = SETS[data].columns
    release = shoal.protect(
        read_table(folder / SETS[data].file),
        method=name,
        k=k,
        seed=0,
        columns=columns,
        domain_from_data=1.5,
        **options,
    )
    rows = np.stack([release.aligned[column].to_numpy() for column in columns], axis=1)
    return release, rows.astype(np.float64)


def least_equal_rows(folder: Path, name: str, k: int) -> int:
    """How many records share the rarest row of a release of Census 2."""
    rows = _released(folder, name, "Census 2", k)[1]
    return int(np.unique(rows, axis=0, return_counts=True)[1].min())


def deviations(folder: Path, name: str) -> list[float]:
    """Standard deviations of the columns of a release of Census 4 over those of the original, k = 200, ε = 2."""
    rows = _released(folder, name, "Census 4", 200)[1]
    original = matrix(folder / "census.csv", SETS["Census 4"].columns)
    return [float(value) for value in rows.std(axis=0) / original.std(axis=0)]


def first_two_columns(values: Floats, k: int) -> float:
    """What clusters of all columns lose of the first two, as a share of their variation."""
    clusters, two = _clusters(values, k), values[:, :2]
    lost = ((two - clusters.centroids(two)[clusters.labels]) ** 2).sum(axis=0)
    return float((lost / ((two - two.mean(axis=0)) ** 2).sum(axis=0)).mean())


def repaired(folder: Path) -> list[int]:
    """Clusters of Census 4 whose noisy covariances belong to no data, k = 50 and ε = 2, and all clusters."""
    release, _ = _released(folder, "xm-2", "Census 4", 50)
    return [
        int(release.internal["repairs"]["covariance matrices that are none"]),
        int(_clusters(matrix(folder / "census.csv", SETS["Census 4"].columns), 50).sizes.size),
    ]


def beyond_skew_normal(values: Floats, k: int) -> float:
    """Share of clusters and columns that are more skewed than any skew-normal variable."""
    clusters = _clusters(values, k)
    skew = np.concatenate([_skewness(values[clusters.labels == c]) for c in range(len(clusters))])
    return float((np.abs(skew) > SKEWEST).mean())


def _skewness(rows: Floats) -> Floats:
    centred = rows - rows.mean(axis=0)
    spread = np.sqrt((centred**2).mean(axis=0))
    known = spread > 0
    return np.asarray((centred[:, known] ** 3).mean(axis=0) / spread[known] ** 3)


def drawn_moments(folder: Path, k: int) -> float:
    """How far the means of drawn rows are from those of their clusters, in standard deviations of the cluster."""
    rows = _released(folder, "xm-b3", "Census 4", k)[1]
    original = matrix(folder / "census.csv", SETS["Census 4"].columns)
    clusters = _clusters(original, k)
    apart = []
    for cluster in range(len(clusters)):
        inside = clusters.labels == cluster
        spread = original[inside].std(axis=0)
        moved = np.abs(rows[inside].mean(axis=0) - original[inside].mean(axis=0))
        apart += (moved[spread > 0] / spread[spread > 0]).tolist()
    return float(np.median(apart))


def at_the_cap(values: Floats, k: int) -> float:
    """Share of eigenvectors of covariances whose local bound is as large as the global one."""
    scaled = np.clip(values, 0, None) / (1.5 * values.max(axis=0))
    clusters = mdav(scaled, k)
    covariances = np.stack([np.cov(scaled[clusters.labels == c].T) for c in range(len(clusters))])
    bounds = eigenvector_changes(Spectrum.of(covariances).values, 1 / clusters.sizes)
    return float((bounds >= math.sqrt(2 * values.shape[1]) - 1e-12).mean())


def homogeneity(values: Floats, k: int) -> float:
    """SSE inside insensitive clusters over that inside clusters of MDAV, columns divided by their widths."""
    scaled = values / (1.5 * values.max(axis=0))
    made = insensitive(values, k, bounds=[(0, math.ceil(1.5 * top)) for top in values.max(axis=0)])
    errors = [
        float(((scaled - clusters.centroids(scaled)[clusters.labels]) ** 2).sum())
        for clusters in (made, mdav(scaled, k))
    ]
    return errors[0] / errors[1]


def unbiased(size: int) -> list[float]:
    """How far the mean of Expressions (1) and (2) over all samples is from the moments that they estimate.

    Samples of this size from values 0, 1 and 3 with weights 1/2, 1/3 and 1/6.

    >>> max(map(abs, unbiased(3))) < 1e-12
    True
    """
    values, weights = np.array([0.0, 1.0, 3.0]), np.array([1 / 2, 1 / 3, 1 / 6])
    centre = float(values @ weights)
    true = [float(((values - centre) ** power) @ weights) for power in (2, 3)]
    mean = np.zeros(2)
    for chosen in product(range(3), repeat=size):
        sample = values[list(chosen)]
        centred = sample - sample.mean()
        chance = float(np.prod(weights[list(chosen)]))
        mean += chance * np.array(
            [(centred**2).sum() / (size - 1), size / ((size - 1) * (size - 2)) * (centred**3).sum()]
        )
    return [float(found - wanted) for found, wanted in zip(mean, true, strict=True)]


@cache
def ranked_change(n: int, k: int) -> float:
    """The most that the centroids of k consecutive values move together, in units of W/k, for n values from 0 to 3.

    >>> ranked_change(5, 2)
    1.0
    """
    worst = 0.0
    for values in combinations_with_replacement(range(4), n):
        for place, other in product(range(n), range(4)):
            after = (*values[:place], other, *values[place + 1 :])
            one, two = (
                ranking(np.array(x), k).centroids(np.array(x)[:, np.newaxis]) for x in (values, sorted(after))
            )
            worst = max(worst, float(np.abs(one - two).sum()))
    return worst * k / 3
