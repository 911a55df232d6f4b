"""Chapter 6 of the thesis on Census: run the published method again, and measure its errors and linkages."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import shoal
from papers.desk import Desk, Task, read_table
from papers.thesis.chapter6_effort import Effort
from papers.thesis.chapter6_print import KS
from papers.thesis.chapter6_runs import EPSILONS, Alone, Found, Noisy, Runs
from shoal.evaluation.linkage import record_linkage
from shoal.mechanisms.insensitive import noisy_rows
from shoal.noise import Seeded
from shoal.partition import Partition, insensitive, mdav
from shoal.partition.multivariate import corner_sequence

CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
FILE = "census.csv"
CLUSTERS = ("MDAV", "insensitive", "single", "hamming", "wide", "text")
STRICT_EPSILONS = ("1", "10", "100")
Matrix = NDArray[np.float64]


@cache
def census(folder: Path) -> NDArray[np.int64]:
    table = read_table(folder / FILE)
    return np.stack([table[name].to_numpy() for name in CENSUS_4], axis=1)


def widths(folder: Path) -> Matrix:
    """The thesis' domain: 0 to 1.5 times the largest value of each attribute."""
    found: Matrix = 1.5 * census(folder).max(axis=0)
    return found


@cache
def clusters(folder: Path, name: str, k: int) -> Partition:
    """MDAV, or insensitive clusters by `insensitive_from`."""
    records = census(folder)
    if name == "MDAV":
        return mdav(records / widths(folder), k)
    return insensitive_from(records, name, k, records.max(axis=0))


def insensitive_from(records: NDArray[np.int64], name: str, k: int, largest: NDArray[np.int64]) -> Partition:
    """Insensitive clusters.

    `insensitive` starts from the corners {0, largest value}, in the sequence that the printed figures need; `single`
    has one order, `hamming` the sequence of section 6.3.3, `wide` corners at 1.5 times the largest value, and `text`
    both.
    """
    tops = 1.5 * largest if name in ("wide", "text") else largest
    return insensitive(
        records,
        k,
        bounds=[(0, top) for top in tops],
        order="single" if name == "single" else "corners",
        corners="hamming" if name in ("hamming", "text") else "alternate",
    )


def from_corners(folder: Path, k: int, count: int) -> float:
    """SSE of insensitive clusters that use only the first corners of the sequence, in turn."""
    records = census(folder)
    tops = records.max(axis=0)
    left, error, number = records / tops, 0.0, 0
    corners = list(islice(corner_sequence(records.shape[1]), count))
    while len(left):
        corner = [corners[number % count] >> (3 - j) & 1 for j in range(records.shape[1])]
        order = np.argsort(((left - corner) ** 2).sum(axis=1), kind="stable")
        taken = order[:k] if len(left) >= 2 * k else order
        error += float((((left[taken] - left[taken].mean(axis=0)) * tops) ** 2).sum())
        left, number = np.delete(left, taken, axis=0), number + 1
    return error


def measured(folder: Path, masked: Matrix) -> dict[str, Any]:
    """SSE, record linkage in percent, and the variation of each attribute's mean and variance."""
    records = census(folder).astype(np.float64)
    means = masked.mean(axis=0) / records.mean(axis=0) - 1
    variances = masked.var(axis=0) / records.var(axis=0) - 1
    return {
        "sse": float(((masked - records) ** 2).sum()),
        "linkage": record_linkage(records, masked, widths(folder)).percent,
        "variations": [*means.tolist(), *variances.tolist()],
    }


def alone(folder: Path, name: str, k: int) -> dict[str, Any]:
    """Clusters without noise."""
    made = clusters(folder, name, k)
    return measured(folder, made.centroids(census(folder))[made.labels])


def published(folder: Path, k: int, epsilon: str, runs: int, seed: int) -> dict[str, Any]:
    """The method as published: noise of scale W/(k·ε) in every row, clipped to the domain; several runs at once.

    W is a multiple of 1/2, so the lattice has steps of 1/2.
    """
    made, source, tops = clusters(folder, "insensitive", k), Seeded(seed), widths(folder)
    # every run is a copy of the table with clusters of its own
    labels = (made.labels + len(made) * np.arange(runs)[:, np.newaxis]).ravel()
    copies = Partition(labels, np.tile(made.sizes, runs))
    columns = [
        noisy_rows(np.tile(2 * x, runs), 3 * int(x.max()), copies, k, Fraction(epsilon), source) / 2
        for x in census(folder).T
    ]
    tables = np.clip(np.stack(columns, axis=1), 0, tops).reshape(runs, made.n, len(columns))
    found = [measured(folder, masked) for masked in tables]
    return {
        "sse": [one["sse"] for one in found],
        "linkage": [one["linkage"] for one in found],
        "variations": np.array([one["variations"] for one in found]).T.tolist(),
    }


def repeated(folder: Path, k: int, epsilon: str, runs: int) -> dict[str, Any]:
    """One seed per setting, settled by k and ε alone: nothing is picked."""
    return published(folder, k, epsilon, runs, seed=10 * k + EPSILONS.index(epsilon))


def released(folder: Path, runs: int, epsilon: str, method: str, k: int | None) -> list[float]:
    """SSE of releases by `shoal.protect`, with the thesis' domain; seeds 0, 1, 2, ..."""
    table, records = read_table(folder / FILE), census(folder)
    options: dict[str, Any] = {"split": "equal"} if k is None else {"k": k}
    errors = []
    for seed in range(runs):
        made = shoal.protect(
            table,
            method=method,
            columns=CENSUS_4,
            epsilon=epsilon,
            domain_from_data=1.5,
            seed=seed,
            **options,
        )
        assert made.aligned is not None
        masked = np.stack([made.aligned[name].to_numpy() for name in CENSUS_4], axis=1)
        errors.append(float(((masked - records) ** 2).sum()))
    return errors


def measure(desk: Desk, effort: Effort) -> Found:
    """Everything of Tables 6.1, 6.2 and 6.5 and of Figure 6.4."""
    folder = desk.file(FILE).parent
    runs = {k: effort.table_runs if k in (1, *KS) else effort.figure_runs for k in effort.figure_ks}
    noisy: dict[str, Task] = {
        f"census {k} {epsilon} {count}": partial(repeated, folder, k, epsilon, count)
        for k, count in runs.items()
        for epsilon in EPSILONS
    }
    still: dict[str, Task] = {
        f"census {name} {k}": partial(alone, folder, name, k)
        for name in CLUSTERS
        for k in effort.figure_ks
        if k > 1
    }
    points = desk.measure("Census, published method", noisy)
    without = desk.measure("Census, clusters alone", still)
    return Found(
        {(int(key.split()[1]), key.split()[2]): Noisy.of(point) for key, point in points.items()},
        {
            name: {k: Alone.of(without[f"census {name} {k}"]) for k in effort.figure_ks if k > 1}
            for name in CLUSTERS
        },
        Alone.of(alone(folder, "MDAV", len(census(folder)))),
    )


def measure_strict(desk: Desk, effort: Effort) -> dict[tuple[str, int | None, str], Runs]:
    """SSE of plain Laplace noise and of the strict composition, by method, k and ε."""
    folder = desk.file(FILE).parent
    settings: list[tuple[str, int | None]] = [("laplace", None)]
    settings += [("insensitive-dp", k) for k in effort.strict_ks]
    places = [(method, k, epsilon) for method, k in settings for epsilon in STRICT_EPSILONS]
    tasks: dict[str, Task] = {
        f"census {method} {k} {epsilon} {effort.strict_runs}": partial(
            released, folder, effort.strict_runs, epsilon, method, k
        )
        for method, k, epsilon in places
    }
    found = desk.measure("Census, corrected method", tasks)
    return dict(zip(places, (Runs.of(values) for values in found.values()), strict=True))
