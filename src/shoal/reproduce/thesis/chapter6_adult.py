"""Chapter 6 of the thesis on Adult: two nominal attributes are masked again, semantic errors and linkages leave."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from shoal.reproduce.thesis.chapter6_census import DATA, EPSILONS, Runs
from shoal.evaluation.categorical import semantic_sse
from shoal.evaluation.columns import Nominal
from shoal.evaluation.mixed_linkage import mixed_linkage
from shoal.mechanisms.insensitive.published import drawn_rows
from shoal.noise import Seeded
from shoal.partition import Partition
from shoal.partition.insensitive import insensitive_mixed
from shoal.partition.mixed_distance import nominal_ends
from shoal.partition.mixed_mdav import mdav_mixed
from shoal.taxonomy import Taxonomy

ADULT_2 = {"occupation": "occupation.owl", "native_country": "native-country.owl"}
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Adult:
    """The records without missing values: codes of both attributes, and the trees they belong to."""

    codes: tuple[Codes, ...]
    trees: tuple[Taxonomy, ...]

    @property
    def n(self) -> int:
        return int(self.codes[0].size)


@cache
def adult() -> Adult:
    table = csv.read_csv(DATA / "adult.csv")
    complete = np.ones(table.num_rows, dtype=bool)
    for column in table.columns:
        complete &= np.array([value not in (None, "") for value in column.to_pylist()])
    codes, trees = [], []
    for name, file in ADULT_2.items():
        values = np.array(table[name].to_pylist(), dtype=object)[complete]
        tree = Taxonomy.load(DATA / "taxonomies" / file).minimal(sorted(set(values)))
        trees.append(tree)
        codes.append(tree.encode(values))
    return Adult(tuple(codes), tuple(trees))


@dataclass(frozen=True)
class Masked:
    """SSE with semantic distance, and record linkage in percent."""

    sse: float
    linkage: float


def measure(released: tuple[Codes, ...]) -> Masked:
    data = adult()
    columns = [
        Nominal(name, before, after, after, tree.size, tree)
        for name, before, after, tree in zip(ADULT_2, data.codes, released, data.trees, strict=True)
    ]
    linked = mixed_linkage(columns)
    assert linked is not None
    return Masked(sum(semantic_sse(column) for column in columns), linked.percent)


def microaggregated(made: Partition) -> Masked:
    """Clusters alone: every record gets the least marginal concepts of its cluster."""
    data = adult()
    return measure(
        tuple(
            tree.centroids(made.labels, codes, len(made))[made.labels]
            for codes, tree in zip(data.codes, data.trees, strict=True)
        )
    )


@cache
def insensitive_clusters(k: int) -> Partition:
    data = adult()
    ends = [
        nominal_ends(
            codes, tree.distances_to(tree.boundaries[0]), tree.distances_to(tree.boundaries[1]), tree.width
        )
        for codes, tree in zip(data.codes, data.trees, strict=True)
    ]
    return insensitive_mixed(ends, k)


def published(k: int, epsilon: str, seed: int) -> Masked:
    """One run as published: concepts drawn for every record by itself, ε for each attribute."""
    data, made, source = adult(), insensitive_clusters(k), Seeded(seed)
    return measure(
        tuple(
            drawn_rows(codes, made, tree, Fraction(epsilon), source)
            for codes, tree in zip(data.codes, data.trees, strict=True)
        )
    )


def repeated(k: int, epsilon: str, runs: int) -> tuple[Runs, Runs]:
    """SSE and linkage over runs with seeds settled by k and ε alone."""
    found = [published(k, epsilon, 1000 * (10 * k + EPSILONS.index(epsilon)) + run) for run in range(runs)]
    return Runs(np.array([one.sse for one in found])), Runs(np.array([one.linkage for one in found]))


@cache
def mdav_clusters(k: int) -> Partition:
    """MDAV with the distance of Eq. 6.7."""
    data = adult()
    return mdav_mixed(None, data.codes, data.trees, k)
