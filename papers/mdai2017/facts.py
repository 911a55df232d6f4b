"""Facts about the clusters of Census and EIA: information loss, regrouping, groups, best sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from papers.cluster_errors import Setting, expected, settled
from papers.desk import Desk, read_table
from papers.mdai2017.curves import Point, setting
from papers.mdai2017.printed import CENSUS_4, EIA_11, REFERENCE_LOSS
from shoal.partition import Partition, best_k, expected_error, mdav, normalise, optimal, ranking
from shoal.privacy.accountant import split_budget

Floats = NDArray[np.float64]
# where replaced records and attribute groups are looked at
_K = 50


def matrix(file: Path, columns: Sequence[str] = CENSUS_4) -> Floats:
    table = read_table(file)
    return np.stack([table[name].to_numpy().astype(np.float64) for name in columns], axis=1)


def widths(values: Floats) -> Floats:
    """The papers' domain of each column: 0 to 1.5 times the maximum."""
    return np.asarray(1.5 * values.max(axis=0))


def information_loss(file: Path, columns: Sequence[str], k: int) -> float:
    """100·SSE/SST of MDAV on z-scores."""
    z = normalise(matrix(file, columns), "zscore")
    made = mdav(z, k)
    return float(100 * ((z - made.centroids(z)[made.labels]) ** 2).sum() / ((z - z.mean(axis=0)) ** 2).sum())


def information_losses(desk: Desk) -> dict[tuple[str, int], float]:
    columns = {"census.csv": desk.table("census.csv").column_names, "eia.csv": list(EIA_11)}
    found = desk.measure(
        "information loss of MDAV",
        {
            f"loss {file} k={k}": partial(information_loss, desk.file(file), columns[file], k)
            for file, k in REFERENCE_LOSS
        },
    )
    return {(file, k): found[f"loss {file} k={k}"] for file, k in REFERENCE_LOSS}


def noise_factor(file: Path, split: str) -> float:
    """Σ W²/ε² at ε = 1: half the noise variance of one row before clipping."""
    by_column = [Fraction(float(width)) for width in widths(matrix(file))]
    shares = split_budget(Fraction(1), CENSUS_4, by_column, split)
    return float(sum((width / share) ** 2 for width, share in zip(by_column, shares, strict=True)))


@dataclass(frozen=True)
class Regrouping:
    """How often one replaced record changes who of the others is grouped with whom, and how many clusters change."""

    tried: int
    changed: int
    clusters: float


def regrouping(file: Path, how: str, copied: bool, tried: int) -> dict[str, float]:
    """One record at a time is replaced: by a copy of another, or by one drawn evenly from the domain."""
    values = matrix(file)
    domain = widths(values)
    groups = _mdav_groups if how == "MDAV" else _ranking_groups
    before = groups(values, domain)
    rng = np.random.default_rng(0)
    changed, clusters = 0, 0
    for _ in range(tried):
        place = int(rng.integers(len(values)))
        other = values.copy()
        other[place] = (
            values[rng.integers(len(values))] if copied else rng.integers(0, domain.astype(np.int64) + 1)
        )
        moved = sum(
            _new_clusters(old.labels, new.labels, place)
            for old, new in zip(before, groups(other, domain), strict=True)
        )
        changed += moved > 0
        clusters += moved
    return {"tried": tried, "changed": changed, "clusters": clusters / tried}


def _mdav_groups(values: Floats, domain: Floats) -> list[Partition]:
    return [mdav(values / domain, _K)]


def _ranking_groups(values: Floats, domain: Floats) -> list[Partition]:
    return [ranking(column, _K) for column in values.T]


def _new_clusters(before: NDArray[np.int64], after: NDArray[np.int64], place: int) -> int:
    """Clusters that did not exist before, the replaced record left aside."""
    old, new = (
        {frozenset(rows.tolist()) for rows in _members(np.delete(labels, place))}
        for labels in (before, after)
    )
    return len(new - old)


def _members(labels: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


def regroupings(desk: Desk) -> dict[tuple[str, bool], Regrouping]:
    """By how clusters are made, and whether the new record is a copy of another."""
    tried = 60 if desk.quick else 600
    asked = [(how, copied) for how in ("MDAV", "individual ranking") for copied in (False, True)]
    keys = {one: f"regrouping {one[0]} copied={one[1]} tried={tried}" for one in asked}
    file = desk.file("census.csv")
    found = desk.measure(
        "replaced records",
        {keys[how, copied]: partial(regrouping, file, how, copied, tried) for how, copied in asked},
    )
    return {
        one: Regrouping(int(found[key]["tried"]), int(found[key]["changed"]), found[key]["clusters"])
        for one, key in keys.items()
    }


def attribute_groupings(names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Every way to split attributes into groups.

    >>> [len(groups) for groups in attribute_groupings("abc")]
    [1, 2, 2, 2, 3]
    """
    if not names:
        yield ()
        return
    first, rest = names[0], names[1:]
    found = []
    for groups in attribute_groupings(rest):
        found.append(((first,), *groups))
        for place, group in enumerate(groups):
            found.append(((first, *group), *groups[:place], *groups[place + 1 :]))
    yield from sorted(found, key=len)


def grouped_errors(desk: Desk) -> dict[tuple[tuple[str, ...], ...], Point]:
    """Algorithm 2 on every way to group the four attributes: ε = 1, k = 50, ε_i in proportion to the widths."""
    file = desk.file("census.csv")
    settings = {groups: _grouped(file, groups) for groups in attribute_groupings(CENSUS_4)}
    found = desk.measure("attribute groups", {one.key: partial(expected, one) for one in settings.values()})
    return {groups: found[one.key] for groups, one in settings.items()}


def _grouped(file: Path, groups: tuple[tuple[str, ...], ...]) -> Setting:
    return setting(file, "mdav-dp", epsilon=1, k=_K, split="proportional", groups=groups)


def spends_all(file: Path, groups: tuple[tuple[str, ...], ...]) -> bool:
    """The shares of ε add up to it, neither more nor less."""
    return sum(settled(_grouped(file, groups))[0].plan.shares.values()) == 1


@dataclass(frozen=True)
class BestSizes:
    """One attribute at ε = 1: expected errors, before clipping, of three ways to size clusters, and the best sizes."""

    attribute: str
    fixed_k: int
    fixed: float
    fifty: float
    best: float
    smallest: int
    largest: int

    @property
    def gain(self) -> float:
        return 1 - self.best / self.fixed

    @property
    def gain_over_fifty(self) -> float:
        return 1 - self.best / self.fifty


def best_sizes(file: Path, attribute: str) -> list[float]:
    """Best fixed k with its error, error of k = 50, the least error of all partitions, their smallest and largest
    cluster. Groups of fixed size leave their remainder last.
    """
    x = read_table(file)[attribute].to_numpy()
    width = Fraction(int(x.max())) * 3 / 2
    k = best_k(x, width, 1, "last")
    made = optimal(x, width, 1, k=1)
    fixed, fifty = (expected_error(x, ranking(x, size, "last"), width, 1) for size in (k, 50))
    own = expected_error(x, made, width, 1)
    return [k, fixed, fifty, own, int(made.sizes.min()), int(made.sizes.max())]


def all_best_sizes(desk: Desk) -> list[BestSizes]:
    file = desk.file("census.csv")
    names = desk.table("census.csv").column_names
    found = desk.measure(
        "best sizes", {f"best sizes {name}": partial(best_sizes, file, name) for name in names}
    )
    return [
        BestSizes(name, int(k), fixed, fifty, own, int(low), int(high))
        for name in names
        for k, fixed, fifty, own, low, high in [found[f"best sizes {name}"]]
    ]


def optimal_errors(desk: Desk) -> dict[tuple[str, int], Point]:
    """Expected errors of `optimal-dp` on Census-4 without a minimum size, by split and ε."""
    file = desk.file("census.csv")
    settings = {
        (split, epsilon): setting(file, "optimal-dp", epsilon=epsilon, k=1, split=split)
        for split in ("equal", "proportional", "optimal")
        for epsilon in (1, 2)
    }
    found = desk.measure(
        "clusters of varying size", {one.key: partial(expected, one) for one in settings.values()}
    )
    return {place: found[one.key] for place, one in settings.items()}


def univariate_mdav_errors(desk: Desk) -> Mapping[int, tuple[float, float]]:
    """SSE of both readings of IR_MDAV without noise, by k: MDAV on each attribute, and groups at fixed ranks."""
    values = matrix(desk.file("census.csv"))
    return {
        k: (
            sum(squared_error(mdav(column, k), column) for column in values.T),
            sum(squared_error(ranking(column, k), column) for column in values.T),
        )
        for k in (2, 5, 10, 25, 50, 100, 200)
    }


def squared_error(made: Partition, values: Floats) -> float:
    return float(((values - made.centroids(values)[made.labels]) ** 2).sum())


def increases(values: Sequence[float]) -> list[bool]:
    return [after > before for before, after in pairwise(values)]
