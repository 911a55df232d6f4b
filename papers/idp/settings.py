"""The ranges of the iDP paper's experiments: tables, methods, ε, domains and k; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# the paper's names of our presets
METHODS = {"laplace": "DP", "ranking-dp": "DP-UM", "idp-ls": "iDP-LS", "idp-cbls": "iDP-CBLS"}
CLUSTERED = ("ranking-dp", "idp-ls", "idp-cbls")
EPSILONS = (0.01, 0.1, 1.0)
# "10-100 times larger ε values" of the paper's conclusions
LARGER = (10.0, 100.0)
# ends of the domains, as multiples of an attribute's maximum
NARROW, WIDE = 1.5, 3.0
# practically no noise, through the same code
NOISELESS = 1e6


@dataclass(frozen=True)
class DataSet:
    """A table of the paper: the attributes that are masked, what is to be learned, and the sizes k.

    Attributes:
        learning_ks: sizes at which forests are trained.
        wide_ks: those of them for which iDP-LS is also trained with the wide domain.
    """

    name: str
    file: str
    columns: tuple[str, ...]
    target: str
    class_names: tuple[str, str]
    ks: tuple[int, ...]
    learning_ks: tuple[int, ...]
    wide_ks: tuple[int, ...]

    def matrix(self, table: pa.Table) -> NDArray[np.float64]:
        return np.stack([table[name].to_numpy() for name in self.columns], axis=1).astype(np.float64)


CENSUS = DataSet(
    "Census",
    "census.csv",
    ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "FICA"),
    "ERNVAL>30000",
    ("≤30K", ">30K"),
    (3, 5, 10, 15, 25, 50, 75, 100),
    (3, 5, 10, 15, 25, 50, 75, 100),
    (25, 50, 75, 100),
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
    (3, 5, 10, 15, 50, 100, 400),
    (100, 400),
)
DATA_SETS = {data.name: data for data in (CENSUS, WINE)}


@dataclass(frozen=True)
class Cell:
    """One setting of the experiments; k is 0 for plain noise, which has none."""

    method: str
    alpha: float
    epsilon: float
    k: int
    partition: str = "ranking"

    def __str__(self) -> str:
        return f"{self.method} {self.partition} k={self.k} epsilon={self.epsilon:g} alpha={self.alpha:g}"


@dataclass(frozen=True)
class Effort:
    """How much to compute.

    Attributes:
        runs: releases of each setting whose error is averaged.
        known_runs: the same for the settings at which a prototype's figures are known.
        learning_runs: releases of each setting that forests learn from.
        every: of the records, one in so many is replaced where the clusters may follow.
    """

    runs: int
    known_runs: int
    learning_runs: int
    trees: int
    every: int
    sets: tuple[DataSet, ...]


FULL = Effort(10, 100, 10, 100, 10, (CENSUS, WINE))
QUICK = Effort(
    2,
    5,
    2,
    20,
    60,
    (
        replace(CENSUS, ks=(3, 15, 50, 100), learning_ks=(3, 15, 50, 100), wide_ks=(100,)),
        replace(WINE, ks=(3, 15, 400), learning_ks=(3, 15, 400), wide_ks=(400,)),
    ),
)


def error_cells(ks: tuple[int, ...]) -> Iterator[Cell]:
    """Figures 3 and 4."""
    for alpha in (NARROW, WIDE):
        for epsilon in EPSILONS:
            yield Cell("laplace", alpha, epsilon, 0)
            for method in CLUSTERED:
                for k in ks:
                    yield Cell(method, alpha, epsilon, k)


def learning_cells(data: DataSet) -> Iterator[Cell]:
    """Figures 5 and 6, and beside them plain noise, wide domains and clusters without noise."""
    for epsilon in EPSILONS:
        for method in ("idp-ls", "idp-cbls"):
            for k in data.learning_ks:
                yield Cell(method, NARROW, epsilon, k)
    for epsilon in EPSILONS[1:]:
        for k in data.wide_ks:
            yield Cell("idp-ls", WIDE, epsilon, k)
    for epsilon in (*EPSILONS, LARGER[0]):
        yield Cell("laplace", NARROW, epsilon, 0)
    for k in data.learning_ks:
        yield Cell("idp-cbls", NARROW, NOISELESS, k)
