"""The experiments of the iDP paper: a data set and settings come in, errors and F-measures of releases leave."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import shoal
from shoal.evaluation import Settings, learn, mean_sse
from shoal.partition import ranking

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))
# the paper's names of our presets
METHODS = {"laplace": "DP", "ranking-dp": "DP-UM", "idp-ls": "iDP-LS", "idp-cbls": "iDP-CBLS"}
EPSILONS = (0.01, 0.1, 1.0, 10.0)
NARROW, WIDE = 1.5, 3.0
# places of the two metrics in a pair
CORRECTED, PRINTED = 0, 1


@dataclass(frozen=True)
class DataSet:
    """A table of the paper: the attributes that are masked, what is to be learned, and the sizes k."""

    name: str
    file: str
    columns: tuple[str, ...]
    target: str
    class_names: tuple[str, str]
    ks: tuple[int, ...]

    def table(self) -> pa.Table:
        return csv.read_csv(DATA / self.file)

    def matrix(self, table: pa.Table) -> NDArray[np.float64]:
        return np.stack([table[name].to_numpy() for name in self.columns], axis=1).astype(np.float64)


CENSUS = DataSet(
    "Census",
    "census.csv",
    ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "FICA"),
    "ERNVAL>30000",
    ("≤30K", ">30K"),
    (3, 5, 10, 15, 25, 50, 75, 100),
)
WINE = DataSet(
    "Wine",
    "wine_white.csv",
    (
        "fixed_acidity",
        "volatile_acidity",
        "citric_acid",
        "residual_sugar",
        "chlorides",
        "free_sulfur_dioxide",
        "total_sulfur_dioxide",
        "density",
        "ph",
        "sulphates",
        "alcohol",
    ),
    "quality>6",
    ("Not Excellent", "Excellent"),
    (3, 5, 10, 15, 25, 50, 100, 200, 400),
)


@dataclass(frozen=True)
class Cell:
    """One setting of the experiments; k is 0 for plain noise, which has none."""

    method: str
    alpha: float
    epsilon: float
    k: int


# of every run: mean SSE in the corrected metric and as printed
Errors = Mapping[Cell, NDArray[np.float64]]
# of every setting: the `released` part of what `learn` returns
Scores = Mapping[Cell, Mapping[str, Any]]


def release(data: DataSet, table: pa.Table, cell: Cell, seed: int) -> shoal.Release:
    size = {"k": cell.k} if cell.k else {}
    return shoal.protect(
        table,
        method=cell.method,
        epsilon=cell.epsilon,
        seed=seed,
        columns=data.columns,
        domain_from_data=cell.alpha,
        **size,
    )


def error_cells(ks: tuple[int, ...]) -> Iterator[Cell]:
    for alpha in (NARROW, WIDE):
        for epsilon in EPSILONS:
            yield Cell("laplace", alpha, epsilon, 0)
            for method in ("ranking-dp", "idp-ls", "idp-cbls"):
                for k in ks:
                    yield Cell(method, alpha, epsilon, k)


def errors(data: DataSet, table: pa.Table, cell: Cell, runs: int) -> NDArray[np.float64]:
    """Mean SSE of every run, corrected and as printed; seeds are 0, 1, 2, ..."""
    before = data.matrix(table)
    found = []
    for seed in range(runs):
        after = data.matrix(release(data, table, cell, seed).aligned)
        found.append((mean_sse(before, after), mean_sse(before, after, "paper")))
    return np.array(found)


def learning_cells(ks: tuple[int, ...], wide_k: int) -> Iterator[Cell]:
    """All k with the narrow domain, one of them with the wide one."""
    for epsilon in EPSILONS:
        for method in ("idp-ls", "idp-cbls"):
            for k in ks:
                yield Cell(method, NARROW, epsilon, k)
            yield Cell(method, WIDE, epsilon, wide_k)


def scores(data: DataSet, table: pa.Table, cell: Cell, runs: int, trees: int) -> dict[str, Any]:
    """F-measures of forests that learned from releases, a release of its own for every run."""
    releases = [release(data, table, cell, seed) for seed in range(runs)]
    settings = Settings("first-66%", runs=runs, trees=trees)
    found: dict[str, Any] = learn(table, releases, data.target, settings, bounds=False)["released"]
    return found


def bounds(data: DataSet, table: pa.Table, runs: int, trees: int) -> dict[str, Any]:
    """The same for the original, with the majority class and the number of rows of each class."""
    own = Cell("idp-cbls", NARROW, 1.0, 3)
    settings = Settings("first-66%", runs=runs, trees=trees)
    return learn(table, release(data, table, own, 0), data.target, settings)


def expected(values: NDArray[np.float64], cell: Cell) -> tuple[float, float]:
    """Expected mean SSE in closed form, corrected and as printed: what infinitely many runs would average.

    Laplace noise of scale b on a value that is `low` above the lower and `high` below the upper end of its
    domain is clipped to [-low, high]; its moments are elementary.
    """
    n, m = values.shape
    total = np.zeros(m)
    for j, x in enumerate(values.T):
        top = cell.alpha * x.max()
        unit = m / cell.epsilon
        if not cell.k:
            total[j] = np.sum(_clipped_moments(top * unit, x, top - x)[1])
            continue
        for group in _groups(x, cell.k):
            centre, spread = _local(np.sort(group), cell.method, top)
            first, second = _clipped_moments(spread * unit / group.size, centre, top - centre)
            total[j] += np.sum((centre - group) ** 2 + 2 * (centre - group) * first + second)
    spread_of_column = values.std(axis=0, ddof=1)
    corrected, printed = (float(np.sum(total / n / spread_of_column**power)) / m**2 for power in (2, 4))
    return corrected, printed


def _groups(x: NDArray[np.float64], k: int) -> list[NDArray[np.float64]]:
    labels = ranking(x, k).labels
    return [x[labels == label] for label in range(int(labels.max()) + 1)]


def _local(s: NDArray[np.float64], method: str, top: float) -> tuple[float, float]:
    """Centre of a sorted cluster and how far one record can move its sum, by method."""
    if method == "ranking-dp":
        return float(s.mean()), top
    if method == "idp-ls":
        return float(s.mean()), max(top - s[0], s[-1])
    up = (s[-1] - s[1]) + (s[2] - s[1]) + (s[-1] - s[-2])
    down = (s[-2] - s[0]) + (s[-2] - s[-3]) + (s[1] - s[0])
    inner = np.r_[s[1], s[1:-1], s[-2]]
    return float(inner.mean()), max(up, down)


def _clipped_moments(b: float, low: Any, high: Any) -> tuple[Any, Any]:
    """Mean and mean square of Laplace noise of scale b, clipped to [-low, high]; numbers or arrays of them."""
    if b == 0:
        return 0.0, 0.0
    below, above = np.exp(-low / b), np.exp(-high / b)
    first = b / 2 * (below - above)
    second = b * b * (2 - above * (1 + high / b) - below * (1 + low / b))
    return first, second
