"""Runs of chapter 7 of the thesis on its examples and Census: counts and distances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.desk import read_table
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    allot,
    bounds,
    close_groups,
    group_sizes,
    ordered_buckets,
)
from shoal.mechanisms.kanonymity.swap_algorithms import permute_within
from shoal.noise import Seeded, discrete_laplace
from shoal.partition import Partition, mdav, normalise, optimal, ranking
from shoal.partition.groups import count_groups, ratio_distances

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

# Table 7.2: ethnicity, date of birth, sex, problem; Table 7.4 numbers the groups by ethnicity
MEDICAL = (
    ("asian", "09/27/64", "female", "hypertension"),
    ("asian", "05/08/61", "female", "obesity"),
    ("asian", "04/18/64", "male", "chest pain"),
    ("black", "03/13/63", "male", "hypertension"),
    ("black", "03/18/63", "male", "shortness of breath"),
    ("black", "09/07/64", "female", "obesity"),
    ("white", "05/14/61", "male", "chest pain"),
    ("white", "05/08/63", "male", "obesity"),
    ("white", "09/15/61", "female", "shortness of breath"),
)
# Table 7.5: the group of each of the twelve records, in the order of the confidential value
GROUPS = (2, 1, 1, 3, 2, 3, 1, 2, 3, 3, 1, 2)
# what Laplace noise for ε = ln 2 and swapping for t = 2 are compared at
_K = 12
_QUASI = 6


def distance(groups: Sequence[int], buckets: Sequence[int]) -> float:
    """Definition 15 between the groups and the table, by Proposition 10: the largest over all groups."""
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)
    values = np.unique(np.asarray(buckets), return_inverse=True)[1].astype(np.int64)
    return float(ratio_distances(count_groups(labels, values)).max())


def ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """Definition 15 over all sets of values, by trying them."""
    worst = 0.0
    for size in range(1, len(one) + 1):
        for chosen in combinations(range(len(one)), size):
            a, b = sum(one[i] for i in chosen), sum(other[i] for i in chosen)
            worst = max(worst, a / b, b / a)
    return worst


def random_distributions(count: int, size: int = 6) -> Iterator[tuple[list[float], list[float]]]:
    """Pairs of distributions over a few values."""
    source = Seeded(7)
    for _ in range(count):
        pair = [(source.below(100, size) + 1).astype(np.float64) for _ in range(2)]
        yield tuple((one / one.sum()).tolist() for one in pair)


def greedy(n: int, t: int, emphasised: int) -> tuple[Counts, Counts]:
    """The recipe of section 7.2.2 for N records: sizes of the buckets, and what its groups take from each of them.

    Args:
        n: number of records, all of different value.
        t: the ratio.
        emphasised: l, the number of groups that emphasise each bucket.
    """
    bucket_sizes = np.bincount(ordered_buckets(np.arange(n), t))
    groups = (t + 1) * emphasised
    sizes = group_sizes(n, groups)
    least, _ = bounds(sizes, bucket_sizes, t)
    rows, own = np.arange(groups), np.arange(groups) % (t + 1)
    # the fewest records of all other buckets, the rest from its own
    least[rows, own] = 0
    least[rows, own] = sizes - least.sum(axis=1)
    return bucket_sizes, least


def overdrawn(n: int, t: int, emphasised: int) -> int:
    """How many records the recipe takes from a bucket that it does not have."""
    bucket_sizes, taken = greedy(n, t, emphasised)
    return int(np.maximum(taken.sum(axis=0) - bucket_sizes, 0).max())


def solvable(n: int, t: int, emphasised: int) -> bool:
    """Whether the transportation problem makes at least as many groups of the size that the recipe asks for."""
    bucket_sizes, taken = greedy(n, t, emphasised)
    found = allot(bucket_sizes, t, n // taken.shape[0])
    low, high = bounds(found.sizes, bucket_sizes, t)
    inside = (low <= found.counts).all() and (found.counts <= high).all()
    exact = np.array_equal(found.counts.sum(axis=0), bucket_sizes)
    return bool(inside and exact and found.sizes.size >= taken.shape[0])


def theoretical(t: int) -> Floats:
    """Table 7.6: rows are the groups, columns the buckets."""
    shares = np.full((t + 1, t + 1), 1 / (t * (t + 1)))
    np.fill_diagonal(shares, t / (t + 1))
    return shares


def supports_of_neighbours() -> tuple[int, int, int]:
    """Swapped releases of six records, and of their neighbour with one confidential value changed: how many releases
    each can have, and how many both can have."""
    values = [10, 20, 30, 40, 50, 60]
    changed = [10, 20, 30, 40, 50, 25]
    first, second = (_releases(one) for one in (values, changed))
    return len(first), len(second), len(first & second)


def _releases(values: Sequence[int]) -> set[tuple[int, ...]]:
    """All tables that swapping inside 2-close groups of three can release, records in the order of their identity."""
    made = close_groups(np.arange(6.0), ordered_buckets(values, 2), t=2, k=3)
    groups = [np.flatnonzero(made.partition.labels == g).tolist() for g in range(len(made.partition))]
    found = set()
    for orders in product(*(permutations(members) for members in groups)):
        released = list(values)
        for members, order in zip(groups, orders, strict=True):
            for place, owner in zip(members, order, strict=True):
                released[place] = values[owner]
        found.add(tuple(released))
    return found


def generalisations() -> list[tuple[int, int, int]]:
    """Levels of Q1 and Q2 and the smallest group of the 16 records of Figure 7.1; level 1 joins pairs, 2 everything."""
    found = []
    for one, two in product(range(3), repeat=2):
        cells: dict[tuple[int, int], int] = {}
        for q1, q2 in product(range(4), repeat=2):
            place = q1 >> one, q2 >> two
            cells[place] = cells.get(place, 0) + 1
        found.append((one, two, min(cells.values())))
    return found


def census_facts(folder: Path, runs: int) -> dict[str, Any]:
    """Groups by quasi-identifiers and by confidential values, buckets and swaps on Census."""
    columns = read_table(folder / "census.csv").columns
    values = np.stack([column.to_numpy() for column in columns], axis=1).astype(np.float64)
    quasi = normalise(values[:, :_QUASI], "zscore")
    tenth = values.shape[0] // 10
    return {
        "optimal": {
            columns_name: [_gap(values[:, j], k) for k in (5, _K)]
            for j, columns_name in ((7, "POTHVAL"), (10, "FICA"), (12, "ERNVAL"))
        },
        "rank_ranges": {
            str(k): {
                "quasi": _rank_ranges(values[:, 10], mdav(quasi, k)),
                "confidential": _rank_ranges(values[:, 10], ranking(values[:, 10], k)),
            }
            for k in (5, tenth)
        },
        "tenth": int(ranking(values[:, 10], tenth).sizes.min()),
        "unbucketised": _unbucketised(values[:, 10], mdav(quasi, _K)),
        "homogeneous": {
            name: [_loss(quasi, values[:, j], t) for t in (1, 2)] for j, name in ((6, "A7"), (7, "A8"))
        },
        "closeness": [
            close_groups(quasi, ordered_buckets(values[:, j], t), t, _K).distance
            for j in range(6, 13)
            for t in (2, 3, 5)
        ],
        "quasi_loss": {
            "confidential": _quasi_loss(quasi, ranking(values[:, 10], _K)),
            "quasi": _quasi_loss(quasi, mdav(quasi, _K)),
        },
        "bucket_loss": {
            str(t + 1): _bucket_loss(values[:, 7], ordered_buckets(values[:, 7], t)) for t in (1, 2, 5, 9)
        },
        "whole": [
            _correlation_change(values, values[Seeded(seed).permutation(len(values)), 7])
            for seed in range(runs)
        ],
        "truthful": _truthful(values, quasi),
        "swap": [_change(values, quasi, seed) for seed in range(runs)],
        "laplace": [_noise_change(values, seed) for seed in range(runs)],
    }


def _gap(x: Floats, k: int) -> float:
    """SSE of Algorithm 7.1 over that of the best partition into groups of k or more."""
    errors = []
    for clusters in (ranking(x, k), optimal(x, width=1, epsilon=10**6, k=k)):
        centres = clusters.centroids(x[:, np.newaxis])[clusters.labels, 0]
        errors.append(float(((x - centres) ** 2).sum()))
    return errors[0] / errors[1]


def _rank_ranges(x: Floats, clusters: Partition) -> list[float]:
    """Least and largest share of the ranks of x that a group spans."""
    ranks = np.argsort(np.argsort(x, kind="stable"), kind="stable")
    spans = [np.ptp(ranks[clusters.labels == g]) + 1 for g in range(len(clusters))]
    return [float(min(spans) / x.size), float(max(spans) / x.size)]


def _unbucketised(x: Floats, clusters: Partition) -> float:
    """Share of groups at infinite distance from the table if values are taken as they are."""
    numbers = np.unique(x, return_inverse=True)[1].astype(np.int64)
    return float(np.isinf(ratio_distances(count_groups(clusters.labels, numbers))).mean())


def _loss(quasi: Floats, x: Floats, t: int) -> float:
    """Information loss of the quasi-identifiers inside t-close groups of 12 over three buckets, in per cent."""
    made = close_groups(quasi, ordered_buckets(x, 2), t, _K).partition
    return _quasi_loss(quasi, made)


def _quasi_loss(quasi: Floats, groups: Partition) -> float:
    """Information loss of the quasi-identifiers if those of a group are replaced by their mean, in per cent."""
    return float(100 * ((quasi - groups.centroids(quasi)[groups.labels]) ** 2).sum() / (quasi**2).sum())


def _bucket_loss(x: Floats, buckets: Counts) -> float:
    """Information loss of an attribute of which only the bucket is told, in per cent."""
    means = np.bincount(buckets, x) / np.bincount(buckets)
    return float(100 * ((x - means[buckets]) ** 2).sum() / ((x - x.mean()) ** 2).sum())


def _truthful(values: Floats, quasi: Floats) -> bool:
    """Whether swapping inside 2-close groups leaves every group the values that its members have."""
    x = values[:, 7]
    made = close_groups(quasi, ordered_buckets(x, 2), 2, _K).partition
    swapped = x[permute_within(made, Seeded(0))]
    return all(
        np.array_equal(np.sort(x[made.labels == g]), np.sort(swapped[made.labels == g]))
        for g in range(len(made))
    )


def _change(values: Floats, quasi: Floats, seed: int) -> float:
    """Mean change of the correlations of A8 with A1 to A6 after swapping inside 2-close groups."""
    x = values[:, 7]
    made = close_groups(quasi, ordered_buckets(x, 2), 2, _K)
    return _correlation_change(values, x[permute_within(made.partition, Seeded(seed))])


def _noise_change(values: Floats, seed: int) -> list[float]:
    """The same after Laplace noise of ε = ln 2 on every record, domain up to 1.5 times the largest value; and the share
    of values that leave it."""
    x = values[:, 7]
    width = math.ceil(1.5 * x.max())
    noisy = x + discrete_laplace(math.ceil(width / math.log(2)), x.size, source=Seeded(seed))
    outside = float(((noisy < 0) | (noisy > width)).mean())
    return [_correlation_change(values, np.clip(noisy, 0, width)), outside]


def _correlation_change(values: Floats, x: Floats) -> float:
    known = values[:, :_QUASI].T
    before, after = (np.asarray(np.corrcoef(np.vstack([known, one])))[-1, :-1] for one in (values[:, 7], x))
    return float(np.abs(after - before).mean())
