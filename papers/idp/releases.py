"""Releases of the iDP paper's tables: errors and F-measures by setting, as JSON values.

Every function is one task of a reproduction; seeds are 0, 1, 2, ...
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from papers.desk import read_table
from papers.idp.settings import DATA_SETS, NARROW, Cell, DataSet
from shoal.evaluation import LearningSettings, learn, mean_sse


def release(data: DataSet, table: pa.Table, cell: Cell, seed: int) -> shoal.Release:
    options: dict[str, Any] = {"k": cell.k} if cell.k else {}
    if cell.partition != "ranking":
        options["partition"] = cell.partition
    return shoal.protect(
        table,
        method=cell.method,
        epsilon=str(cell.epsilon),
        seed=seed,
        columns=data.columns,
        domain_from_data=cell.alpha,
        **options,
    )


def errors(path: str, name: str, cell: Cell, runs: int) -> list[tuple[float, float]]:
    """Mean SSE of every run, corrected and as printed."""
    data, table = DATA_SETS[name], read_table(Path(path))
    before = data.matrix(table)
    found = []
    for seed in range(runs):
        after = data.matrix(release(data, table, cell, seed).aligned)
        found.append((mean_sse(before, after), mean_sse(before, after, "paper")))
    return found


def scores(path: str, name: str, cell: Cell, runs: int, trees: int) -> dict[str, Any]:
    """F-measures of forests that learned from releases, a release of its own for every run."""
    data, table = DATA_SETS[name], read_table(Path(path))
    releases = [release(data, table, cell, seed) for seed in range(runs)]
    settings = LearningSettings("first-66%", runs=runs, trees=trees)
    found: dict[str, Any] = learn(table, releases, data.target, settings, bounds=False)["released"]
    return found


def bounds(path: str, name: str, runs: int, trees: int) -> dict[str, Any]:
    """The same for the original, with the majority class and the number of rows of each class."""
    data, table = DATA_SETS[name], read_table(Path(path))
    any_release = release(data, table, Cell("idp-cbls", NARROW, 1.0, 50), 0)
    return learn(table, any_release, data.target, LearningSettings("first-66%", runs=runs, trees=trees))


def balanced(path: str, name: str, runs: int, trees: int) -> dict[str, Any]:
    """F-measures of forests on the original with as many rows of either class, those of the larger evenly spaced."""
    data, table = DATA_SETS[name], read_table(Path(path))
    column, threshold = data.target.split(">")
    upper = table[column].to_numpy() > float(threshold)
    small, large = sorted((np.flatnonzero(upper), np.flatnonzero(~upper)), key=len)
    picked = large[np.linspace(0, len(large) - 1, len(small)).round().astype(np.int64)]
    even = table.take(np.sort(np.concatenate([small, picked])))
    any_release = release(data, even, Cell("idp-cbls", NARROW, 1.0, 50), 0)
    settings = LearningSettings("first-66%", runs=runs, trees=trees)
    found: dict[str, Any] = learn(even, any_release, data.target, settings)["original"]
    return found


def without_noise(path: str, name: str, k: int) -> tuple[int, int]:
    """Of a cluster-based release: how many clusters got no noise, and how many there are."""
    data, table = DATA_SETS[name], read_table(Path(path))
    made = release(data, table, Cell("idp-cbls", NARROW, 1.0, k), 0)
    return sum(made.internal["clusters_without_noise"].values()), sum(len(part) for part in made.partition)


def rows_alike(path: str, name: str, cell: Cell) -> dict[str, int]:
    """Rows of a release that are the only ones of their kind, and the smallest groups of rows and of values alike."""
    data, table = DATA_SETS[name], read_table(Path(path))
    released = data.matrix(release(data, table, cell, 0).data)
    _, counts = np.unique(released, axis=0, return_counts=True)
    in_column = min(int(np.unique(column, return_counts=True)[1].min()) for column in released.T)
    return {
        "rows": len(released),
        "alone": int((counts == 1).sum()),
        "least": int(counts.min()),
        "least_in_column": in_column,
    }
