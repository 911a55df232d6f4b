"""The propositions of MDAI-2017, checked on small worlds and on Census-4."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from papers.cluster_errors import Setting, expected, groups_of, settled
from papers.desk import Desk
from papers.mdai2017.curves import setting
from papers.mdai2017.facts import Floats, squared_error
from shoal.partition import Partition, mdav

# five records, k = 2: one attribute at a time loses more than both together
COUNTEREXAMPLE = ((0, 9, 3, 3, 9), (6, 0, 7, 5, 2))
_TOP = 3


def fixed_centroid_move() -> float:
    """Proposition 2 on all tables of five records with values 0..3, clusters of 3 and 2 held fixed.

    The largest change of a centroid when one record is replaced, times |C| and over the width: 1 if it is tight.
    """
    fixed = Partition.from_labels([0, 0, 0, 1, 1])
    worst = 0.0
    for table in product(range(_TOP + 1), repeat=5):
        before = fixed.centroids(np.array(table))
        for place, value in product(range(5), range(_TOP + 1)):
            other = np.array(table)
            other[place] = value
            moved = np.abs(fixed.centroids(other) - before)
            worst = max(worst, float((moved * fixed.sizes).max()) / _TOP)
    return worst


def joint_and_separate(values: Floats, k: int) -> tuple[float, float]:
    """SSE of MDAV on whole records, and of MDAV on each attribute by itself."""
    return squared_error(mdav(values, k), values), sum(squared_error(mdav(x, k), x) for x in values.T)


def separate_loses(n: int, k: int, tables: int) -> int:
    """In how many of some random tables with two attributes MDAV on each by itself has the larger error."""
    rng = np.random.default_rng(0)
    count = 0
    for _ in range(tables):
        together, separate = joint_and_separate(rng.integers(0, 11, (n, 2)).astype(np.float64), k)
        count += separate > together + 1e-9
    return count


def noise_variance(one: Setting) -> dict[str, float]:
    """Σ 2 (W/ε_j)²/|C| over clusters, by attribute: the expected squared noise of a release before clipping."""
    prepared, frozen = settled(one)
    found = {}
    for group, clusters in zip(groups_of(prepared), frozen, strict=True):
        for name in group:
            scale = float(prepared.described.lattices[name].width / prepared.plan.shares[name])
            found[name] = float((2 * scale**2 / clusters.partition.sizes).sum())
    return found


def noise_variances(desk: Desk, ks: tuple[int, ...]) -> dict[int, tuple[dict[str, float], dict[str, float]]]:
    """Of MDAV+DP and IR_MDAV+DP_2 at ε = 1, by k and attribute."""
    file = desk.file("census.csv")
    settings = {
        (k, method): setting(file, method, epsilon=1, k=k, split="proportional")
        for k in ks
        for method in ("mdav-dp", "ranking-dp")
    }
    found = desk.measure(
        "noise before clipping",
        {f"noise {one.key}": partial(noise_variance, one) for one in settings.values()},
    )
    by_place = {place: found[f"noise {one.key}"] for place, one in settings.items()}
    return {k: (by_place[k, "mdav-dp"], by_place[k, "ranking-dp"]) for k in ks}


def other_partitions(desk: Desk) -> dict[str, tuple[float, str]]:
    """Expected SSE and claim of the same noise on other clusters: ε = 1, k = 50, split in proportion to the widths."""
    file = desk.file("census.csv")
    settings = {
        "MDAV": setting(file, "mdav-dp", epsilon=1, k=50, split="proportional"),
        "V-MDAV": setting(
            file, "mdav-dp", epsilon=1, k=50, split="proportional", partition="vmdav", gamma="0.2"
        ),
        "MDAV on z-scores": setting(
            file, "mdav-dp", epsilon=1, k=50, split="proportional", normalise="zscore"
        ),
        "individual ranking": setting(file, "ranking-dp", epsilon=1, k=50, split="proportional"),
        "best sizes": setting(file, "optimal-dp", epsilon=1, k=1, split="proportional"),
    }
    found = desk.measure("other clusters", {one.key: partial(expected, one) for one in settings.values()})
    return {name: (found[one.key]["sse"], settled(one)[0].statement.model) for name, one in settings.items()}
