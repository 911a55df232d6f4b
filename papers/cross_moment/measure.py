"""Errors of cross-moment releases, as log2 of sums of squared errors by method, k and ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import Desk, Task, read_table
from shoal.io import read
from shoal.mechanisms.moments.methods import CrossMoment
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protection import Preparation, prepare

Floats = NDArray[np.float64]

EPSILONS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


@dataclass(frozen=True)
class Projection:
    """The first columns of a data set, as the paper names it."""

    name: str
    file: str
    columns: tuple[str, ...]


_CENSUS = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
_EIA = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES")
SETS: Mapping[str, Projection] = {
    f"{name} {number}": Projection(f"{name} {number}", file, columns[:number])
    for name, file, columns in (("Census", "census.csv", _CENSUS), ("EIA", "eia.csv", _EIA))
    for number in (2, 3, 4)
}
CENSUS, EIA = ("Census 2", "Census 3", "Census 4"), ("EIA 2", "EIA 3", "EIA 4")


@dataclass(frozen=True)
class Cell:
    """One point of a figure; the baselines have no ε."""

    data: str
    method: str
    k: int
    epsilon: float | None
    match: str = "rank"

    @property
    def key(self) -> str:
        epsilon = "" if self.epsilon is None else f", ε={self.epsilon:g}"
        return f"{self.data}, {self.method}, k={self.k}{epsilon}, match={self.match}"


def numbered(name: str) -> type[CrossMoment]:
    """The class of a method of the paper, by its name."""
    return CrossMoment.of(name.removeprefix("xm-"))


def cell(data: str, method: str, k: int, epsilon: float, match: str = "rank") -> Cell:
    """A point by what a figure asks for: without noise ε does not matter, without drawn rows matching does not."""
    cls = numbered(method)
    masked, drawn = cls.sensitivity != "none", cls.moments > 0
    return Cell(data, method, k, epsilon if masked else None, match if drawn else "none")


def cell_tasks(desk: Desk, wanted: Mapping[Cell, int]) -> dict[str, Task]:
    """Runs of cells, each so many times, seeds 0, 1, 2, ..."""
    return {
        _key(one, runs): partial(log_errors, desk.file(SETS[one.data].file), one, runs)
        for one, runs in wanted.items()
    }


def cell_results(found: Mapping[str, Any], wanted: Mapping[Cell, int]) -> dict[Cell, Floats]:
    """log2 SSE of all runs, from the results of `cell_tasks`."""
    return {one: np.array(found[_key(one, runs)]) for one, runs in wanted.items()}


def _key(one: Cell, runs: int) -> str:
    return f"{one.key}, runs={runs}"


def log_errors(file: Path, one: Cell, runs: int, first: int = 0) -> list[float]:
    """log2 SSE of releases with seeds from `first` on, the clusters made once, rows matched as the cell says."""
    options: dict[str, Any] = {} if one.epsilon is None else {"epsilon": one.epsilon}
    if numbered(one.method).moments:
        options["match"] = one.match
    ready = _ready(file, SETS[one.data].columns, one.method, k=one.k, **options)
    run = ready.method
    held = run.freeze(ready.described, ready.plan, silent)
    original = matrix(file, SETS[one.data].columns)
    found = []
    # without noise and without drawing, all runs are the same
    for seed in range(first, first + (runs if options else 1)):
        account = run.account(ready.plan, Seeded(seed))
        made = run.run_frozen(ready.described, ready.plan, account, silent, held)
        values = made.measured or made.values
        drawn = np.stack([values[name] for name in SETS[one.data].columns], axis=1)
        found.append(round(float(np.log2(((original - drawn) ** 2).sum())), 6))
    return found


def plain_noise(file: Path, columns: tuple[str, ...], epsilon: float, runs: int) -> list[float]:
    """SSE of Laplace noise of scale d·W/ε on every value, not clipped."""
    ready = _ready(file, columns, "laplace", epsilon=epsilon, clip=False)
    original = matrix(file, columns)
    found = []
    for seed in range(runs):
        account = ready.method.account(ready.plan, Seeded(seed))
        made = ready.method.run(ready.described, ready.plan, account, silent)
        drawn = np.stack([made.values[name] for name in columns], axis=1)
        found.append(float(((original - drawn) ** 2).sum()))
    return found


def expected_plain_noise(original: Floats, epsilon: float) -> float:
    """E[SSE] of the same without drawing: n·Σ 2·(d·W_j/ε)², W_j = 1.5·max."""
    records, number = original.shape
    scales = number * 1.5 * original.max(axis=0) / epsilon
    return float(records * 2 * (scales**2).sum())


def matrix(file: Path, columns: Sequence[str]) -> Floats:
    table = read_table(file)
    return np.stack([table[name].to_numpy() for name in columns], axis=1).astype(np.float64)


def _ready(file: Path, columns: tuple[str, ...], method: str, **options: Any) -> Preparation:
    """Domains from 0 to 1.5 times the maximum, as in the paper; negative values are clipped to 0."""
    return prepare(
        read(read_table(file)),
        method=method,
        columns=columns,
        domain_from_data=1.5,
        outside="clip",
        seed=0,
        **options,
    )


def overtakes(ks: Sequence[int], base: Floats, other: Floats) -> float:
    """The k from which `other` stays below `base`, between sizes by straight lines; infinite if it never does.

    >>> overtakes([100, 200, 300], np.array([5.0, 5.0, 5.0]), np.array([7.0, 6.0, 4.0]))
    250.0
    >>> overtakes([100, 200], np.array([5.0, 5.0]), np.array([4.0, 6.0]))
    inf
    """
    difference = other - base
    if difference[-1] >= 0:
        return float("inf")
    above = np.flatnonzero(difference >= 0)
    if not above.size:
        return float(ks[0])
    last = int(above[-1])
    share = difference[last] / (difference[last] - difference[last + 1])
    return float(ks[last] + share * (ks[last + 1] - ks[last]))
