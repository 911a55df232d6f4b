"""MDAV labels by a second, slow and literal implementation of the definition, and the real tables."""

from __future__ import annotations

import csv
import math

import numpy as np
from numpy.typing import NDArray

from papers.mdai2017.printed import EIA_11
from tests.conftest import data_file

EIA_COLUMNS = list(EIA_11)
ADULT_COLUMNS = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


def real_table(name: str, columns: list[str] | None = None) -> NDArray[np.float64]:
    with data_file(name).open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = columns or list(rows[0])
    return np.array([[float(row[name]) for name in names] for row in rows])


def squared_distance(a: list[float], b: list[float]) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def exact_mean(rows: list[list[float]]) -> list[float]:
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def naive_mean(rows: list[list[float]]) -> list[float]:
    return list(np.array(rows).mean(axis=0))


def textbook_mdav(X: NDArray[np.float64], k: int, mean=exact_mean) -> list[int]:
    rows = [[float(value) for value in row] for row in X]
    labels = [-1] * len(rows)
    left = list(range(len(rows)))
    cluster = 0

    def farthest(point: list[float]) -> int:
        return max(left, key=lambda i: (squared_distance(rows[i], point), -i))

    def cut_off(pole: int) -> None:
        nonlocal cluster
        others = sorted(
            (i for i in left if i != pole), key=lambda i: (squared_distance(rows[i], rows[pole]), i)
        )
        for i in [pole, *others[: k - 1]]:
            labels[i] = cluster
            left.remove(i)
        cluster += 1

    while len(left) >= 3 * k:
        first = farthest(mean([rows[i] for i in left]))
        cut_off(first)
        cut_off(farthest(rows[first]))
    if len(left) >= 2 * k:
        cut_off(farthest(mean([rows[i] for i in left])))
    for i in left:
        labels[i] = cluster
    return labels
