"""Chapter 6 of the thesis on Adult: mask two nominal attributes again, and measure semantic errors and linkages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import Desk, Task, read_table
from papers.thesis.chapter6_effort import Effort
from papers.thesis.chapter6_print import KS
from papers.thesis.chapter6_runs import EPSILONS, Alone, Found, Noisy
from shoal.evaluation.linkage import mixed_linkage
from shoal.evaluation.pair import Nominal
from shoal.evaluation.utility import semantic_sse
from shoal.mechanisms.insensitive import drawn_rows
from shoal.noise import Seeded
from shoal.partition import Partition
from shoal.partition.multivariate import insensitive_mixed, mdav_mixed, nominal_ends
from shoal.taxonomy import Taxonomy

ADULT_2 = {"occupation": "occupation.csv", "native_country": "native-country.csv"}
FILE = "adult.csv"
CLUSTERS = ("MDAV", "insensitive", "single")
# at which the certainty of Algorithm 6.3 is looked at
CERTAIN = 1.0
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Adult:
    """The records without missing values: codes of both attributes, and the trees they belong to."""

    codes: tuple[Codes, ...]
    trees: tuple[Taxonomy, ...]

    @property
    def n(self) -> int:
        return int(self.codes[0].size)

    @property
    def pairs(self) -> int:
        """How many different records there are."""
        return int(np.unique(np.stack(self.codes), axis=1).shape[1])


@cache
def adult(folder: Path) -> Adult:
    table = read_table(folder / FILE)
    complete = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        complete &= np.array([value not in (None, "") for value in column.to_pylist()])
    codes, trees = [], []
    for name, file in ADULT_2.items():
        values = np.array(table[name].to_pylist(), dtype=object)[complete]
        tree = Taxonomy.load(folder / "taxonomies" / file).minimal(sorted(set(values)))
        trees.append(tree)
        codes.append(tree.encode(values))
    return Adult(tuple(codes), tuple(trees))


def _columns(data: Adult, released: tuple[Codes, ...]) -> list[Nominal]:
    return [
        Nominal(name, before, after, after, tree.size, tree)
        for name, before, after, tree in zip(ADULT_2, data.codes, released, data.trees, strict=True)
    ]


def _error(data: Adult, released: tuple[Codes, ...]) -> float:
    return sum(semantic_sse(column) for column in _columns(data, released))


def measured(data: Adult, released: tuple[Codes, ...]) -> dict[str, float]:
    """SSE with semantic distance, and record linkage in percent."""
    linked = mixed_linkage(_columns(data, released))
    assert linked is not None
    return {"sse": _error(data, released), "linkage": linked.percent}


@cache
def clusters(folder: Path, name: str, k: int) -> Partition:
    """MDAV with the distance of Eq. 6.7, or insensitive clusters from the boundaries, all corners or one order."""
    data = adult(folder)
    if name == "MDAV":
        return mdav_mixed(None, data.codes, data.trees, k)
    ends = [
        nominal_ends(
            codes, tree.distances_to(tree.boundaries[0]), tree.distances_to(tree.boundaries[1]), tree.width
        )
        for codes, tree in zip(data.codes, data.trees, strict=True)
    ]
    return insensitive_mixed(ends, k, order="single" if name == "single" else "corners")


def alone(folder: Path, name: str, k: int) -> dict[str, Any]:
    """Clusters without noise: every record gets the least marginal concepts of its cluster.

    Among `others` are the errors where only values may be centroids, and where the most frequent value is.
    """
    data, made = adult(folder), clusters(folder, name, k)

    def centroids(*, generalise: bool) -> tuple[Codes, ...]:
        return tuple(
            tree.centroids(made.labels, codes, len(made), generalise=generalise)[made.labels]
            for codes, tree in zip(data.codes, data.trees, strict=True)
        )

    modes = tuple(
        _modes(made, codes, tree.size)[made.labels]
        for codes, tree in zip(data.codes, data.trees, strict=True)
    )
    others = {"values": _error(data, centroids(generalise=False)), "mode": _error(data, modes)}
    return {
        **measured(data, centroids(generalise=True)),
        "others": {**others, "certainty": _certainty(data, made)},
    }


def _modes(made: Partition, codes: Codes, size: int) -> Codes:
    counts = np.zeros((len(made), size), dtype=np.int64)
    np.add.at(counts, (made.labels, codes), 1)
    most: Codes = counts.argmax(axis=1).astype(np.int64)
    return most


def _certainty(data: Adult, made: Partition) -> float:
    """Mean probability that Algorithm 6.3 at ε = 1 takes the best concept of a cluster."""
    found = []
    for codes, tree in zip(data.codes, data.trees, strict=True):
        counts = np.zeros((len(made), tree.size), dtype=np.int64)
        np.add.at(counts, (made.labels, codes), 1)
        scores = tree.marginalities(counts)
        weights = np.exp(-CERTAIN * (scores - scores.min(axis=1, keepdims=True)) / (2 * tree.diameter))
        found.append(float((1 / weights.sum(axis=1)).mean()))
    return sum(found) / len(found)


def published(folder: Path, k: int, epsilon: str, seed: int) -> dict[str, float]:
    """One run as published: concepts drawn for every record by itself, ε for each attribute."""
    data, made, source = adult(folder), clusters(folder, "insensitive", k), Seeded(seed)
    return measured(
        data,
        tuple(
            drawn_rows(codes, made, tree, Fraction(epsilon), source)
            for codes, tree in zip(data.codes, data.trees, strict=True)
        ),
    )


def repeated(folder: Path, k: int, epsilon: str, runs: int) -> dict[str, Any]:
    """SSE and linkage over runs with seeds settled by k and ε alone."""
    start = 1000 * (10 * k + EPSILONS.index(epsilon))
    found = [published(folder, k, epsilon, start + run) for run in range(runs)]
    return {name: [one[name] for one in found] for name in ("sse", "linkage")}


def measure(desk: Desk, effort: Effort) -> Found:
    """Everything of Tables 6.3 and 6.4 and of Figure 6.5."""
    folder = desk.file(FILE).parent
    ks = effort.adult_ks
    runs = {k: effort.adult_runs if k in (1, *KS) else effort.adult_figure_runs for k in ks}
    noisy: dict[str, Task] = {
        f"adult {k} {epsilon} {count}": partial(repeated, folder, k, epsilon, count)
        for k, count in runs.items()
        for epsilon in EPSILONS
    }
    still: dict[str, Task] = {
        f"adult {name} {k}": partial(alone, folder, name, k) for name in CLUSTERS for k in ks if k > 1
    }
    points = desk.measure("Adult, published method", noisy)
    without = desk.measure("Adult, clusters alone", still)
    return Found(
        {(int(key.split()[1]), key.split()[2]): Noisy.of(point) for key, point in points.items()},
        {name: {k: Alone.of(without[f"adult {name} {k}"]) for k in ks if k > 1} for name in CLUSTERS},
        Alone.of(alone(folder, "single", adult(folder).n)),
    )
