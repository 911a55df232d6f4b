"""Facts about data sets and small worlds, for claims in the text of chapter 3 besides its tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from papers.thesis.chapter3_print import FIRST_PROTECTED, SIZES
from papers.thesis.chapter3_runs import (
    Experiment,
    Matrix,
    experiment,
    identical,
    swapped_mdav,
    swapped_ranking,
)
from shoal.mechanisms.kanonymity.swap_algorithms import permute_within, swap_mdav, swap_ranking
from shoal.noise import Seeded
from shoal.partition import Partition, mdav, normalise, ranking, vmdav

# the size of tables 3.7 to 3.9
K = 12
# a selection of the sizes of tables 3.10 and 3.11
SPREAD_SIZES = (5, 9, 25, 100, 300)
Groups = Sequence[tuple[int, ...]]


def census_facts(folder: Path) -> dict[str, Any]:
    """Facts about groups and swaps of Census."""
    made = experiment(folder, "Census")
    values, known = made.values, made.values[:, :FIRST_PROTECTED]
    scaled = normalise(values, "zscore")
    swaps = {"MDAV-SWAP": swapped_mdav(made, K, Seeded(0)), "IR-SWAP": swapped_ranking(made, K, Seeded(0))}
    return {
        "constant": {str(k): _constant_groups(made, mdav(known, k)) for k in (2, 3, 5)},
        "loss": [_loss(scaled[:, :d], mdav(scaled[:, :d], 5)) for d in range(1, values.shape[1] + 1)],
        "kept": [bool((np.sort(one, axis=0) == np.sort(values, axis=0)).all()) for one in swaps.values()],
        "guessed": {str(k): _guessed(made, k) for k in SIZES},
        "rank_groups_seen": [
            float((ranking(values[:, j], K).labels == ranking(swaps["IR-SWAP"][:, j], K).labels).mean())
            for j in made.protected
        ],
        "rescaled": all(
            np.array_equal(ranking(values[:, j], K).labels, ranking(1000 * values[:, j] + 7, K).labels)
            for j in made.protected
        ),
        "spread": {str(k): _spreads(made, k) for k in SPREAD_SIZES},
        "intruders": _by_intruder(made),
        "sizes": _sizes([mdav(values, k) for k in SIZES]),
        "least": int(np.unique(identical(made, K), axis=0, return_counts=True)[1].min()),
        "own_k": _own_k(made),
        "either_side": _either_side(made),
        "singled_out": _singled_out(made, mdav(known, 5)),
        "presence": all(np.array_equal(one[:, :FIRST_PROTECTED], known) for one in swaps.values()),
        "again": _again(made),
    }


def _again(made: Experiment) -> dict[str, bool]:
    """Whether another run of each method releases something else."""
    return {
        "MDAV-ID": not np.array_equal(identical(made, K), identical(made, K)),
        **{
            name: not np.array_equal(swap(made, K, Seeded(0)), swap(made, K, Seeded(1)))
            for name, swap in (("MDAV-SWAP", swapped_mdav), ("IR-SWAP", swapped_ranking))
        },
    }


def variable_sizes(folder: Path, k: int) -> list[float]:
    """Information loss (100·SSE/SST) of MDAV and of its variant with sizes that vary, on EIA, z-scored."""
    scaled = normalise(experiment(folder, "EIA").values, "zscore")
    return [_loss(scaled, mdav(scaled, k)), _loss(scaled, vmdav(scaled, k, gamma=1.1))]


def _loss(X: Matrix, clusters: Partition) -> float:
    error = X - clusters.centroids(X)[clusters.labels]
    return float(100 * (error**2).sum() / ((X - X.mean(axis=0)) ** 2).sum())


def _constant_groups(made: Experiment, clusters: Partition) -> list[int]:
    """Groups whose members share a protected value, and groups in all."""
    found = 0
    for group in range(len(clusters)):
        members = made.values[clusters.labels == group][:, made.protected]
        found += bool((members == members[0]).all(axis=0).any())
    return [found, len(clusters)]


def _singled_out(made: Experiment, clusters: Partition) -> float:
    """Share of records that one protected value singles out inside their group, over all protected attributes."""
    alone = 0
    for j in made.protected:
        pairs = np.stack([clusters.labels.astype(np.float64), made.values[:, j]], axis=1)
        alone += int((np.unique(pairs, axis=0, return_counts=True)[1] == 1).sum())
    return float(alone / (len(made.protected) * made.values.shape[0]))


def _guessed(made: Experiment, k: int) -> float:
    """Share of protected values that IR-SWAP leaves open to a guess that is right more often than 1 in k."""
    hits = total = 0
    for j in made.protected:
        x = made.values[:, j]
        clusters = ranking(x, k)
        for group in range(len(clusters)):
            members = x[clusters.labels == group]
            most = np.unique(members, return_counts=True)[1].max()
            hits += members.size if most * k > members.size else 0
            total += members.size
    return hits / total


def _spreads(made: Experiment, k: int) -> dict[str, float]:
    """Mean standard deviation of protected attributes inside groups, as a share of that of the whole table."""
    random = Partition.from_labels(Seeded(k).permutation(made.values.shape[0]) // k)
    found: dict[str, list[float]] = {"ranking": [], "mdav": [], "random": []}
    for j in made.protected:
        x = made.values[:, j]
        others = np.delete(made.values, j, axis=1)
        for name, clusters in (("ranking", ranking(x, k)), ("mdav", mdav(others, k)), ("random", random)):
            found[name].append(math.sqrt(_loss(x[:, np.newaxis], clusters) / 100))
    return {name: float(np.mean(shares)) for name, shares in found.items()}


def _by_intruder(made: Experiment) -> dict[str, float]:
    """Mean |change| of correlations: values dealt out at random, and MDAV groups of 12 against two intruders."""
    shuffled = made.values.copy()
    for j in made.protected:
        shuffled[:, j] = shuffled[Seeded(j).permutation(shuffled.shape[0]), j]
    found = {"random": float(made.differences(shuffled).mean())}
    for intruder in ("uninformed", "informed"):
        swap = swap_mdav(list(made.values.T), K, made.protected, intruder=intruder, source=Seeded(1))
        masked = made.values.copy()
        for j, owners in swap.owners.items():
            masked[:, j] = made.values[owners, j]
        found[intruder] = float(made.differences(masked).mean())
    return found


def _sizes(partitions: Sequence[Partition]) -> list[list[int]]:
    """k, how many groups have another size, and the largest of those."""
    found = []
    for k, clusters in zip(SIZES, partitions, strict=True):
        others = clusters.sizes[clusters.sizes != k]
        found.append([k, int(others.size), int(others.max(initial=k))])
    return found


def _own_k(made: Experiment) -> bool:
    """Whether every attribute can have groups of its own size."""
    wanted = [5, 12, 25, 50, 100, 200, 300]
    swap = swap_ranking([made.values[:, j] for j in made.protected], wanted, source=Seeded(0))
    return [int(groups.sizes.min()) for groups in swap.groups] == wanted


def _either_side(made: Experiment) -> bool:
    """Whether moving quasi-identifiers one way gives the records that moving the protected values back does."""
    order = permute_within(mdav(made.values[:, :FIRST_PROTECTED], K), Seeded(0))
    one, other = made.values.copy(), made.values.copy()
    one[:, :FIRST_PROTECTED] = one[order, :FIRST_PROTECTED]
    other[:, FIRST_PROTECTED:] = other[np.argsort(order), FIRST_PROTECTED:]
    return bool(np.array_equal(np.unique(one, axis=0), np.unique(other, axis=0)))


def swap_chances(partitions: Iterable[Groups]) -> list[Fraction]:
    """Chance of record 0 to get the value of each record, all partitions and all permutations inside being alike.

    >>> swap_chances([[(0, 1), (2, 3)]])
    [Fraction(1, 2), Fraction(1, 2), Fraction(0, 1), Fraction(0, 1)]
    """
    counts: Counter[int] = Counter()
    n = 0
    for groups in partitions:
        n = sum(map(len, groups))
        counts.update(order[0] for order in _orders(groups))
    return [Fraction(counts[record], counts.total()) for record in range(n)]


def random_groups(n: int, k: int) -> Iterator[Groups]:
    """All partitions of n records into groups of k."""
    return _partitions(tuple(range(n)), k)


def _partitions(records: tuple[int, ...], k: int) -> Iterator[Groups]:
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for mates in combinations(rest, k - 1):
        left = tuple(record for record in rest if record not in mates)
        for others in _partitions(left, k):
            yield [(first, *mates), *others]


def _orders(groups: Groups) -> Iterator[dict[int, int]]:
    if not groups:
        yield {}
        return
    for chosen in permutations(groups[0]):
        for others in _orders(groups[1:]):
            yield {**dict(zip(groups[0], chosen, strict=True)), **others}


def known_members(values: Sequence[int], known: int) -> Fraction:
    """The best guess of record 0's value in a swapped group by somebody who knows the values of the next `known`."""
    left = Counter(values)
    left.subtract(values[1 : known + 1])
    return Fraction(max(left.values()), sum(left.values()))


def linked(chances: Sequence[Sequence[Fraction]]) -> Fraction:
    """The chance that released record 0 is about identity 0, by Bayes' rule over all ways to assign identities.

    Args:
        chances: chance of each released record (columns) to come from each identity (rows), as the mechanism says.

    Which identities were released, and as which records, is equally likely beforehand: examples 1 to 3.

    >>> linked([[Fraction(3, 4)], [Fraction(1, 4)]])
    Fraction(3, 4)
    """
    hit, everything = Fraction(0), Fraction(0)
    for identities in permutations(range(len(chances)), len(chances[0])):
        weight = math.prod((chances[who][record] for record, who in enumerate(identities)), start=Fraction(1))
        everything += weight
        hit += weight if identities[0] == 0 else 0
    return hit / everything
