"""Chapter 6 of the thesis on Census: the published method is run again, its errors and linkages leave."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

import shoal
from shoal.evaluation.linkage import record_linkage
from shoal.mechanisms.insensitive.published import noisy_rows
from shoal.noise import Seeded
from shoal.partition import Partition, insensitive, mdav

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
EPSILONS = ("0.01", "0.1", "1", "10")
Matrix = NDArray[np.float64]


@cache
def census() -> NDArray[np.int64]:
    table = csv.read_csv(DATA / "census.csv")
    return np.stack([table[name].to_numpy() for name in CENSUS_4], axis=1)


def widths() -> Matrix:
    """The thesis' domain: 0 to 1.5 times the largest value of each attribute."""
    return 1.5 * census().max(axis=0)


@cache
def insensitive_clusters(k: int) -> Partition:
    """Clusters from the corners {0, largest value}, which the printed figures need."""
    records = census()
    return insensitive(records, k, bounds=[(0, top) for top in records.max(axis=0)])


@cache
def mdav_clusters(k: int) -> Partition:
    return mdav(census() / widths(), k)


@dataclass(frozen=True)
class Masked:
    """What one masked table lost: SSE, record linkage, and the variation of each attribute's mean and variance.

    Variations have a sign: the thesis' figures are those of means over its runs, so that noise of either sign cancels.
    """

    sse: float
    linkage: float
    means: tuple[float, ...]
    variances: tuple[float, ...]


def measure(masked: Matrix) -> Masked:
    records = census().astype(np.float64)
    return Masked(
        float(((masked - records) ** 2).sum()),
        record_linkage(records, masked, widths()).percent,
        tuple(masked.mean(axis=0) / records.mean(axis=0) - 1),
        tuple(masked.var(axis=0) / records.var(axis=0) - 1),
    )


def microaggregated(made: Partition) -> Masked:
    """Clusters alone, no noise."""
    return measure(made.centroids(census())[made.labels])


def published(k: int, epsilon: str, runs: int, seed: int) -> list[Masked]:
    """The method as published: noise of scale W/(k·ε) in every row, clipped to the domain; several runs at once.

    W is a multiple of 1/2, so the lattice has steps of 1/2.
    """
    made, source = insensitive_clusters(k), Seeded(seed)
    n, clusters = made.n, len(made)
    # every run is a copy of the table with clusters of its own
    labels = (made.labels + clusters * np.arange(runs)[:, np.newaxis]).ravel()
    copies = Partition(labels, np.tile(made.sizes, runs))
    columns = [
        noisy_rows(np.tile(2 * x, runs), 3 * int(x.max()), copies, k, Fraction(epsilon), source) / 2
        for x in census().T
    ]
    tables = np.clip(np.stack(columns, axis=1), 0, widths()).reshape(runs, n, len(columns))
    return [measure(masked) for masked in tables]


@dataclass(frozen=True)
class Runs:
    """A number measured in several runs."""

    values: NDArray[np.float64]

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def error(self, runs: int | None = None) -> float:
        """Standard error of a mean over as many runs."""
        return float(self.values.std(ddof=1)) / np.sqrt(runs or self.values.size)


@dataclass(frozen=True)
class Measured:
    """The measures of `Masked`, each over all runs."""

    sse: Runs
    linkage: Runs
    means: tuple[Runs, ...]
    variances: tuple[Runs, ...]


def repeated(k: int, epsilon: str, runs: int) -> Measured:
    """One seed per setting, settled by k and ε alone: nothing is picked."""
    found = published(k, epsilon, runs, seed=10 * k + EPSILONS.index(epsilon))
    return Measured(
        Runs(np.array([one.sse for one in found])),
        Runs(np.array([one.linkage for one in found])),
        tuple(Runs(np.array(column)) for column in zip(*(one.means for one in found), strict=True)),
        tuple(Runs(np.array(column)) for column in zip(*(one.variances for one in found), strict=True)),
    )


def released(runs: int, **options: object) -> Runs:
    """SSE of releases by `shoal.protect`, with the thesis' domain; seeds 0, 1, 2, ..."""
    table = csv.read_csv(DATA / "census.csv")
    records = census()
    errors = []
    for seed in range(runs):
        made = shoal.protect(table, columns=CENSUS_4, domain_from_data=1.5, seed=seed, **options)
        masked = np.stack([made.aligned[name].to_numpy() for name in CENSUS_4], axis=1)
        errors.append(float(((masked - records) ** 2).sum()))
    return Runs(np.array(errors))


def changed_clusters(k: int, records: Sequence[int]) -> tuple[int, int]:
    """The most clusters that change when one of the records becomes a corner of the domain, and how many there are."""
    table = census()
    tops = table.max(axis=0)
    bounds = [(0, top) for top in tops]
    before = insensitive_clusters(k)
    most = 0
    for number in records:
        for corner in (np.zeros(4, dtype=np.int64), tops):
            other = table.copy()
            other[number] = corner
            after = insensitive(other, k, bounds=bounds)
            moved = before.sums(table) != after.sums(other)
            most = max(most, int(moved.any(axis=1).sum()))
    return most, len(before)
