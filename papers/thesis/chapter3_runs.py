"""Runs of chapter 3 of the thesis: the change of correlations by method and k."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import read_table
from papers.thesis.chapter3_print import ATTRIBUTES, FIRST_PROTECTED
from shoal.mechanisms.kanonymity.swap_algorithms import swap_mdav, swap_ranking
from shoal.noise import Seeded, Source
from shoal.partition import mdav

Matrix = NDArray[np.float64]
FILES: Mapping[str, str] = {"Census": "census.csv", "EIA": "eia.csv"}
_EIA_ATTRIBUTES = 10


@dataclass(frozen=True)
class Experiment:
    """A data set, which attributes are protected, and which correlations count.

    Attributes:
        counted: marks the pairs of attributes whose correlations the printed tables are about.
        divisor: number of pairs that the printed means are taken over; those not counted are 0.
    """

    name: str
    values: Matrix
    protected: tuple[int, ...]
    counted: NDArray[np.bool_]
    divisor: int

    def differences(self, masked: Matrix) -> Matrix:
        """|change| of the counted correlations, filled up with zeros."""
        changed = np.abs(np.corrcoef(masked.T) - np.corrcoef(self.values.T))[self.counted]
        return np.concatenate((changed, np.zeros(self.divisor - changed.size)))

    @property
    def total_loss(self) -> float:
        """What the mean change would be if no correlation were left, that of an attribute with itself aside."""
        strength = np.abs(np.corrcoef(self.values.T))
        np.fill_diagonal(strength, 0.0)
        return float(strength[self.counted].sum() / self.divisor)


def experiment(folder: Path, name: str, *, backwards: bool = False) -> Experiment:
    """Census: A1 to A6 are kept, A7 to A13 protected; the pairs that touch one of these, over all 78 pairs.

    EIA: the ten revenue and sales columns, all protected; all pairs, each attribute with itself included.

    Args:
        folder: where the data sets are.
        name: Census or EIA.
        backwards: the file read from its end, which turns the order of equal values.
    """
    columns = read_table(folder / FILES[name]).columns
    if name == "EIA":
        columns = columns[-_EIA_ATTRIBUTES:]
    values = np.stack([column.to_numpy() for column in columns], axis=1).astype(np.float64)
    values = values[::-1].copy() if backwards else values
    if name == "EIA":
        pairs = np.triu(np.ones((_EIA_ATTRIBUTES, _EIA_ATTRIBUTES), dtype=bool))
        return Experiment(name, values, tuple(range(_EIA_ATTRIBUTES)), pairs, int(pairs.sum()))
    pairs = np.triu(np.ones((ATTRIBUTES, ATTRIBUTES), dtype=bool), 1)
    touched = pairs & (np.arange(ATTRIBUTES) >= FIRST_PROTECTED)
    return Experiment(name, values, tuple(range(FIRST_PROTECTED, ATTRIBUTES)), touched, int(pairs.sum()))


def identical(made: Experiment, k: int, source: Source | None = None) -> Matrix:
    """MDAV-ID: every record replaced by the mean of its cluster, all attributes together, unscaled."""
    clusters = mdav(made.values, k)
    return np.asarray(clusters.centroids(made.values)[clusters.labels])


def swapped_mdav(made: Experiment, k: int, source: Source) -> Matrix:
    """MDAV-SWAP: one protected attribute after the other, against intruders who know all others."""
    masked = made.values.copy()
    for j, owners in swap_mdav(list(made.values.T), k, made.protected, source=source).owners.items():
        masked[:, j] = made.values[owners, j]
    return masked


def swapped_ranking(made: Experiment, k: int, source: Source) -> Matrix:
    """IR-SWAP: every protected attribute among its neighbours in rank."""
    masked = made.values.copy()
    swap = swap_ranking([made.values[:, j] for j in made.protected], k, source=source)
    for number, j in enumerate(made.protected):
        masked[:, j] = made.values[swap.owners[number], j]
    return masked


MASKS: Mapping[str, Callable[[Experiment, int, Source], Matrix]] = {
    "MDAV-ID": identical,
    "MDAV-SWAP": swapped_mdav,
    "IR-SWAP": swapped_ranking,
}


def changes(
    folder: Path, name: str, method: str, k: int, runs: int, *, backwards: bool = False
) -> list[list[float]]:
    """Mean and population standard deviation of |change| of each run; MDAV-ID draws nothing and runs once."""
    made = experiment(folder, name, backwards=backwards)
    found = [
        made.differences(MASKS[method](made, k, Seeded(seed)))
        for seed in range(1 if method == "MDAV-ID" else runs)
    ]
    return [[float(one.mean()), float(one.std())] for one in found]


def single_runs(folder: Path, method: str, k: int, runs: int) -> dict[str, Any]:
    """Correlations of Census after each run: their mean and standard deviation, and the mean |change| of each run."""
    made = experiment(folder, "Census")
    masked = [MASKS[method](made, k, Seeded(seed)) for seed in range(1 if method == "MDAV-ID" else runs)]
    drawn = np.stack([np.corrcoef(one.T) for one in masked])
    spread = drawn.std(axis=0, ddof=1) if len(masked) > 1 else np.zeros_like(drawn[0])
    return {
        "mean": drawn.mean(axis=0).tolist(),
        "deviation": spread.tolist(),
        "changes": [float(made.differences(one).mean()) for one in masked],
    }
