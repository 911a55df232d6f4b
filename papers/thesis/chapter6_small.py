"""Small tables for chapter 6: how far one record moves clusters, rows and probabilities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.partition import Partition, insensitive, mdav
from shoal.taxonomy import Taxonomy

Records = NDArray[np.int64]
Grouping = Callable[[Records], Partition]
Clusters = list[Counter[Any]]

# Figures 6.1 and 6.2 have 15 records of two attributes; the record at the top right moves to the bottom left
TOY_TOP = 10
TOY = np.array(
    [
        *((1, 7), (1, 9), (2, 5), (2, 8), (3, 7), (3, 10), (4, 10), (5, 2)),
        *((5, 5), (6, 4), (6, 9), (7, 2), (7, 9), (8, 10), (9, 7)),
    ]
)
# Proposition 6: 12 becomes 22, and MDAV with k = 3 takes its odd cluster from the other end
ONE_ORDER = ([0, 2, 7, 11, 12, 26, 28, 29], 4, 22, 3)


def contents(records: Records, made: Partition) -> Clusters:
    """Each cluster as a collection of records."""
    return [Counter(map(tuple, records[made.labels == cluster].tolist())) for cluster in range(len(made))]


def difference(one: Counter[Any], two: Counter[Any]) -> int:
    """In how many records two collections differ.

    >>> difference(Counter("aab"), Counter("abb")), difference(Counter("ab"), Counter("a"))
    (1, 1)
    """
    return max((one - two).total(), (two - one).total())


def definition_12(before: Clusters, after: Clusters) -> int:
    """The best that any bijection of the clusters does: in how many records its worst pair differs."""
    return min(
        max(difference(one, two) for one, two in zip(before, order, strict=True))
        for order in permutations(after)
    )


def worst_neighbour(tables: Iterator[tuple[Records, Records]], group: Grouping) -> int:
    """Definition 12 over pairs of neighbours: 1 or less is insensitive."""
    return max(
        definition_12(contents(before, group(before)), contents(after, group(after)))
        for before, after in tables
    )


def line_worlds(n: int, top: int) -> Iterator[tuple[Records, Records]]:
    """All tables of n records with one attribute from 0 to `top`, as collections, each with all its neighbours."""
    for values in combinations_with_replacement(range(top + 1), n):
        for number in {values.index(value) for value in values}:
            for other in range(top + 1):
                if other != values[number]:
                    after = sorted((*values[:number], other, *values[number + 1 :]))
                    yield np.array(values)[:, np.newaxis], np.array(after)[:, np.newaxis]


def one_order_example() -> tuple[Clusters, Clusters]:
    """MDAV on one attribute, whose distance is consistent with its order, before and after one record changes."""
    values, place, becomes, k = ONE_ORDER
    before = np.array(values)[:, np.newaxis]
    after = before.copy()
    after[place] = becomes
    return contents(before, mdav(before, k)), contents(after, mdav(after, k))


def by_a_data_dependent_order(records: Records) -> Partition:
    """Algorithm 6.1 with n = 2k on one attribute, upwards if the sum of all records is even, downwards if not."""
    order = np.argsort(records[:, 0], kind="stable")
    if records.sum() % 2:
        order = order[::-1]
    labels = np.empty(len(records), dtype=np.int64)
    labels[order] = np.repeat([0, 1], len(records) // 2)
    return Partition(labels, np.bincount(labels))


@cache
def insensitive_worst() -> int:
    """Definition 12 for insensitive clusters over all neighbours of a small world, both orders."""
    bounds = [(0, 3)]
    return max(
        worst_neighbour(line_worlds(7, 3), partial(insensitive, k=3, bounds=bounds, order=order))
        for order in ("single", "corners")
    )


def pairs_always_match() -> bool:
    """Whether any two partitions of six records into pairs satisfy Definition 12, whatever the algorithm."""
    every = {frozenset(frozenset(order[at : at + 2]) for at in (0, 2, 4)) for order in permutations(range(6))}
    as_clusters = [[Counter(pair) for pair in one] for one in every]
    return all(definition_12(one, two) <= 1 for one in as_clusters for two in as_clusters)


def toy(changed: bool) -> Records:
    """The records of Figures 6.1 and 6.2, left and right."""
    records = TOY.copy()
    if changed:
        records[records.sum(axis=1).argmax()] = 0
    return records


def toy_clusters(records: Records, name: str, k: int = 5) -> Partition:
    """MDAV, or the insensitive MDAV of one order from the low corner."""
    if name == "MDAV":
        return mdav(records, k)
    return insensitive(records, k, bounds=[(0, TOY_TOP)] * 2, order="single")


def spread_within(records: Records, made: Partition) -> float:
    """SSE of clusters."""
    return float(((records - made.centroids(records)[made.labels]) ** 2).sum())


def rows_moved(
    before: Records, after: Records, bounds: Sequence[tuple[float, float]], k: int
) -> NDArray[np.float64]:
    """How far the released row of each record moves, the farthest of its attributes, in units of W/k.

    The row of a record is its cluster's mean, the answer to I_r after M. Proposition 8 says: at most 1.

    >>> line = np.array([[0], [1], [2], [8], [9], [10]])
    >>> rows_moved(line, np.array([[10], [1], [2], [8], [9], [10]]), [(0, 10)], k=3).round(2).tolist()
    [2.6, 0.8, 0.8, 1.6, 0.2, 0.2]
    """
    widths = np.array([high - low for low, high in bounds])
    one, two = (insensitive(table, k, bounds=bounds) for table in (before, after))
    moved = np.abs(one.centroids(before)[one.labels] - two.centroids(after)[two.labels])
    farthest: NDArray[np.float64] = (moved / widths * k).max(axis=1)
    return farthest


def rows_loss(before: Records, after: Records, bounds: Sequence[tuple[float, float]], k: int) -> float:
    """The loss of the published noise between two neighbours in units of its ε: every row and attribute adds up.

    A row has noise of scale W/(k·ε) on its cluster's mean; the log-likelihood ratio of all rows is largest where
    every one of them lies on the side from which its mean moved away. Rows are listed cluster by cluster, so that the
    order of the records gives nothing away.
    """
    widths = np.array([high - low for low, high in bounds])
    one, two = (insensitive(table, k, bounds=bounds) for table in (before, after))
    return float((np.abs(one.sums(before) - two.sums(after)) / widths).sum() * k)


def plain_loss(attributes: int) -> float:
    """The loss of noise for all of ε in every attribute of every record, no clusters, in units of ε.

    Only the replaced record's row changes, by the whole width of each attribute at most.
    """
    before = np.zeros((3, attributes))
    after = before.copy()
    after[1] = 1
    return float(np.abs(before - after).sum())


def concept_loss(tree: Taxonomy, sensitivity: float, before: Sequence[str], after: Sequence[str]) -> float:
    """Exact loss of one draw of Algorithm 6.3 at ε = 1 with the given Δ."""
    logs = []
    for values in (before, after):
        scores = tree.marginalities(np.bincount(tree.encode(values), minlength=tree.size))
        powers = -scores / (2 * sensitivity)
        logs.append(powers - math.log(np.exp(powers - powers.max()).sum()) - powers.max())
    return float(np.abs(logs[0] - logs[1]).max())


def lopsided() -> Taxonomy:
    """A tree whose two boundaries are nearer to each other than its two farthest values."""
    tree = Taxonomy.from_dict({"*": {"a": {"b": ["c"]}, "d": {"e": ["f"]}, "g": [], "h": [], "i": []}})
    return tree.minimal(["b", "c", "e", "f", "g", "h", "i"])


def finer() -> tuple[float, float]:
    """The distance of two siblings below the root, and with one more concept between them and the root."""
    coarse = Taxonomy.from_dict({"*": ["a", "b"]})
    fine = Taxonomy.from_dict({"*": {"group": ["a", "b"]}})
    one, two = (tree.distance(tree.code("a"), tree.code("b")) for tree in (coarse, fine))
    return one, two
