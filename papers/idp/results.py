"""All measurements of one table: errors and F-measures by setting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import Desk, Task
from papers.idp import clusters, releases
from papers.idp.expectation import expected, level
from papers.idp.settings import (
    CLUSTERED,
    EPSILONS,
    LARGER,
    NARROW,
    Cell,
    DataSet,
    Effort,
    error_cells,
    learning_cells,
)
from papers.texts import rows

# method, k, ε -> log10 mean SSE as printed and, where noted, corrected
PROTOTYPE: Mapping[tuple[str, int, float], Sequence[str]] = {
    (method, k, epsilon): known for method, k, epsilon, *known in rows("idp/printed")["prototype"]
}
PROTOTYPE_F: Mapping[str, str] = rows("idp/printed")["prototype_f"]
# clusters of all attributes together, where the paper's proposals need their data to be grouped jointly
TOGETHER = Cell("idp-cbls", NARROW, 1.0, 15, "mdav")
APART = Cell("idp-cbls", NARROW, 1.0, 15)


@dataclass(frozen=True, eq=False)
class Measured:
    """Everything about one data set.

    Attributes:
        values: the masked attributes of the original.
        errors: of every run, mean SSE in the corrected metric and as printed.
        scores: of every setting, F-measures of the two classes with intervals over the runs.
        bounds: the same for the original and the majority class.
        clusters: by k, how the sensitivities of the clusters compare.
        without_noise: by k, clusters that a release left without noise, and all clusters.
        facts: what was measured once: brute force, re-clustering, rows that are alike.
    """

    data: DataSet
    effort: Effort
    values: NDArray[np.float64]
    errors: Mapping[Cell, NDArray[np.float64]]
    scores: Mapping[Cell, Mapping[str, Any]]
    bounds: Mapping[str, Any]
    clusters: Mapping[int, Mapping[str, Any]]
    without_noise: Mapping[int, tuple[int, int]]
    facts: Mapping[str, Any]
    expected: Mapping[Cell, tuple[float, float]]

    def level(self, cell: Cell, metric: int) -> float:
        """log10 of the mean SSE over the runs."""
        return level(float(self.errors[cell][:, metric].mean()))

    def level_error(self, cell: Cell, metric: int) -> float:
        """Standard error of `level`."""
        found = self.errors[cell][:, metric]
        return float(found.std(ddof=1) / found.mean() / math.sqrt(found.size) / math.log(10))

    def one_run(self, cell: Cell, metric: int) -> float:
        """Standard deviation of log10 of the mean SSE from run to run."""
        return float(np.log10(self.errors[cell][:, metric]).std(ddof=1))

    def expected_level(self, cell: Cell, metric: int) -> float:
        """The same in closed form: what infinitely many runs would average."""
        return level(self.expected[cell][metric])

    def best(self, method: str, epsilon: float, metric: int, alpha: float = NARROW) -> tuple[float, int]:
        """Least expected level over all k, and the k."""
        return min((self.expected_level(Cell(method, alpha, epsilon, k), metric), k) for k in self.data.ks)


def known_cells(data: DataSet) -> list[Cell]:
    """Settings at which a prototype's figures are known."""
    if data.name != "Census":
        return []
    return [Cell(method, NARROW, epsilon, k) for method, k, epsilon in PROTOTYPE]


def gather(desk: Desk, data: DataSet, effort: Effort) -> Measured:
    """Measure one table; the closed forms are computed here, all else by the desk's workers."""
    path, name = str(desk.file(data.file)), data.name
    values = data.matrix(desk.table(data.file))
    found_errors = _measure_errors(desk, path, data, effort)
    cells = list(learning_cells(data))
    runs, trees = effort.learning_runs, effort.trees
    found_scores = desk.measure(
        f"{name}: forests",
        {
            f"{name} forests {cell} {runs} runs {trees} trees": partial(
                releases.scores, path, name, cell, runs, trees
            )
            for cell in cells
        }
        | {
            f"{name} forests original {runs} runs {trees} trees": partial(
                releases.bounds, path, name, runs, trees
            )
        },
    )
    *scores, bounds = found_scores.values()
    facts = _measure_facts(desk, path, data, effort)
    closed = dict.fromkeys(error_cells(data.ks))
    closed |= dict.fromkeys(Cell("laplace", NARROW, epsilon, 0) for epsilon in LARGER)
    closed |= dict.fromkeys(Cell("ranking-dp", NARROW, epsilon, k) for epsilon in LARGER for k in data.ks)
    closed |= dict.fromkeys(Cell(method, NARROW, math.inf, k) for method in CLUSTERED for k in data.ks)
    return Measured(
        data,
        effort,
        values,
        found_errors,
        dict(zip(cells, scores, strict=True)),
        bounds,
        {k: facts.pop(f"sensitivities {k}") for k in data.ks},
        {k: facts.pop(f"without noise {k}") for k in data.ks},
        facts,
        {cell: expected(values, cell) for cell in closed},
    )


def _measure_errors(desk: Desk, path: str, data: DataSet, effort: Effort) -> dict[Cell, NDArray[np.float64]]:
    together = [Cell("idp-cbls", NARROW, epsilon, 15, "mdav") for epsilon in EPSILONS]
    runs = dict.fromkeys([*error_cells(data.ks), *together], effort.runs)
    runs |= dict.fromkeys(known_cells(data), effort.known_runs)
    tasks: dict[str, Task] = {
        f"{data.name} errors {cell} {number} runs": partial(releases.errors, path, data.name, cell, number)
        for cell, number in runs.items()
    }
    found = desk.measure(f"{data.name}: errors", tasks)
    return {cell: np.array(value) for cell, value in zip(runs, found.values(), strict=True)}


def _measure_facts(desk: Desk, path: str, data: DataSet, effort: Effort) -> dict[str, Any]:
    """What does not depend on drawn noise, by a short name."""
    name = data.name
    tasks: dict[str, Task] = {
        f"sensitivities {k}": partial(clusters.sensitivities, path, name, k) for k in data.ks
    }
    tasks |= {f"without noise {k}": partial(releases.without_noise, path, name, k) for k in data.ks}
    tasks["rows apart"] = partial(releases.rows_alike, path, name, APART)
    tasks["rows together"] = partial(releases.rows_alike, path, name, TOGETHER)
    if name == "Wine":
        tasks["balanced"] = partial(releases.balanced, path, name, effort.learning_runs, effort.trees)
    if name == "Census":
        for k in (3, 15):
            tasks[f"brute force {k}"] = partial(clusters.brute_force, path, name, k)
            tasks[f"reclustered {k}"] = partial(clusters.reclustered, path, name, k, effort.every)
    drawn = f"every {effort.every}, {effort.learning_runs} runs, {effort.trees} trees"
    keys = {key: f"{name} {key} {drawn}" for key in tasks}
    found = desk.measure(f"{name}: clusters", {keys[key]: task for key, task in tasks.items()})
    return {key: found[keys[key]] for key in tasks}
