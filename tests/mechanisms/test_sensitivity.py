"""Brute force over whole tiny worlds: no replacement of a record costs more than its ε (docs/proofs/clusters.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
import shoal.mechanisms.clusters
import shoal.noise.families
from shoal.mechanisms.sensitivity import cluster_sum_scale
from shoal.noise import round_up_scale
from shoal.partition import Partition, mdav, ranking
from shoal.privacy.accountant import split_budget

Data = tuple[int, ...]
REMAINDERS = ("middle", "last", "first")
# values 0..TOP on a lattice of TOP steps
TOP = 3


def every_table(records: int, top: int = TOP) -> Iterator[Data]:
    return product(range(top + 1), repeat=records)


def neighbours(data: Data, top: int = TOP) -> Iterator[Data]:
    """All tables that differ in one record."""
    for place, value in product(range(len(data)), range(top + 1)):
        if value != data[place]:
            yield (*data[:place], value, *data[place + 1 :])


def largest_change(records: int, sums: Callable[[np.ndarray], np.ndarray]) -> int:
    """Greatest L1 distance between the cluster sums of two neighbouring tables, over the whole world."""
    known = {data: sums(np.array(data)) for data in every_table(records)}
    return max(
        int(np.abs(before - known[other]).sum())
        for data, before in known.items()
        for other in neighbours(data)
    )


def rank_sums(k: int, remainder: str) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: ranking(values, k, remainder).sums(values)


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize(("records", "k"), [(5, 1), (5, 2), (5, 3), (5, 5), (6, 2), (6, 4)])
def test_rank_fixed_sums_move_by_the_width_and_no_more(records: int, k: int, remainder: str) -> None:
    assert largest_change(records, rank_sums(k, remainder)) == TOP


@pytest.mark.parametrize("labels", [(0, 0, 0, 0), (0, 1, 0, 1), (0, 0, 0, 1), (0, 1, 2, 3)])
def test_fixed_clusters_move_by_the_width_and_no_more(labels: Data) -> None:
    fixed = Partition.from_labels(labels)
    assert largest_change(len(labels), fixed.sums) == TOP


def test_clusters_that_follow_the_data_would_break_the_bound() -> None:
    """The brute force can fail: univariate MDAV starts at the farthest end, which depends on the values."""

    def farthest_first(values: np.ndarray) -> np.ndarray:
        made = mdav(values.astype(np.float64), 2)
        # in rank order, the friendliest way to match clusters of two tables
        return made.sums(values)[np.argsort(made.centroids(values.astype(np.float64)), kind="stable")]

    assert largest_change(5, farthest_first) > TOP


def test_a_middle_group_placed_by_the_data_would_break_the_bound() -> None:
    """Rank groups whose larger one sits at the wider gap: consecutive ranks, but not fixed in advance."""

    def wider_end(values: np.ndarray) -> np.ndarray:
        ordered = np.sort(values)
        remainder = "last" if ordered[-1] - ordered[2] > ordered[2] - ordered[0] else "first"
        return ranking(values, 2, remainder).sums(values)

    assert largest_change(5, wider_end) > TOP


@pytest.mark.parametrize("split", ["equal", "proportional", "optimal", {"a": "5", "b": "0.1"}])
@pytest.mark.parametrize("labels", [(0, 0, 1), (0, 1, 2)])
def test_attributes_together_cost_at_most_epsilon(split: Any, labels: Data) -> None:
    """Two attributes of different widths: the sum over attributes and clusters of |change| / scale."""
    widths, epsilon = (3, 2), Fraction(7, 10)
    shares = split_budget(epsilon, ["a", "b"], [Fraction(width) for width in widths], split)
    scales = [cluster_sum_scale(width, share) for width, share in zip(widths, shares, strict=True)]
    fixed = Partition.from_labels(labels)
    records = list(product(range(widths[0] + 1), range(widths[1] + 1)))
    worst = Fraction(0)
    # only the replaced record matters when clusters are fixed, so one background is enough
    for before, after, place in product(records, records, range(len(labels))):
        table = np.zeros((2, len(labels)), dtype=np.int64)
        other = table.copy()
        table[:, place], other[:, place] = before, after
        moved = [np.abs(fixed.sums(table[j]) - fixed.sums(other[j])).sum() for j in range(2)]
        worst = max(worst, sum(Fraction(int(m)) / s for m, s in zip(moved, scales, strict=True)))
    assert worst <= epsilon
    assert worst > epsilon * Fraction(999, 1000)


def test_scales_are_rounded_up_never_down() -> None:
    for steps, epsilon in product((1, 7, 12_000, 2**20), ("0.1", "0.3", "1", "7", "0.123456789")):
        exact = Fraction(steps) / Fraction(epsilon)
        assert exact <= cluster_sum_scale(steps, Fraction(epsilon)) <= exact * (1 + Fraction(1, 2**19))


class Watched:
    """Stands in for the noise: remembers the scales and draws zeros, so that the exact sums come through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scales: list[Fraction] = []
        self.sums: list[np.ndarray] = []
        monkeypatch.setattr(shoal.mechanisms.clusters, "discrete_laplace", self.draw)
        monkeypatch.setattr(shoal.noise.families, "discrete_laplace", self.draw)
        summed = Partition.sums

        def sums(partition: Partition, values: np.ndarray) -> np.ndarray:
            found = summed(partition, values)
            self.sums.append(found)
            return found

        monkeypatch.setattr(Partition, "sums", sums)

    def draw(self, scale: Any, size: int, source: Any) -> np.ndarray:
        self.scales.append(Fraction(scale))
        return np.zeros(size, dtype=np.int64)

    def run(self, table: pa.Table, **arguments: Any) -> shoal.Release:
        self.scales.clear()
        self.sums.clear()
        return shoal.protect(table, **arguments)


@pytest.mark.parametrize("method", ["laplace", "ranking-dp", "mdav-dp"])
@pytest.mark.parametrize("split", ["equal", "proportional", "optimal", {"whole": 3, "real": "0.2"}])
def test_protect_uses_width_over_share_in_lattice_steps(
    method: str, split: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"whole": rng.integers(0, 90, 20), "real": rng.uniform(-1, 2, 20)})
    domains = {"whole": (0, 90), "real": ("-1", "2.5")}
    watched = Watched(monkeypatch)
    k = {} if method == "laplace" else {"k": 4}
    release = watched.run(
        table, method=method, epsilon="0.3", split=split, domains=domains, types={"real": "decimal"}, **k
    )
    # integers have step 1, reals width / 2^20
    shares = split_budget(Fraction(3, 10), ["whole", "real"], [Fraction(90), Fraction(7, 2)], split)
    assert watched.scales == [round_up_scale(90 / shares[0]), round_up_scale(2**20 / shares[1])]
    assert list(release.statement.epsilon_per_attribute.values()) == list(shares)
    assert sum(shares) <= Fraction(3, 10)


def test_without_noise_released_values_are_the_cluster_means(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([3, 9, 1, 7, 5, 2, 8])
    watched = Watched(monkeypatch)
    release = watched.run(
        pa.table({"x": values}), method="ranking-dp", epsilon=1, k=2, remainder="last", domains={"x": (0, 10)}
    )
    (made,) = release.partition
    assert np.allclose(release.aligned["x"].to_numpy(), made.centroids(values)[made.labels])


@pytest.mark.parametrize(
    ("method", "options"),
    [("laplace", {}), ("mdav-dp", {"k": 1}), *(("ranking-dp", {"k": 2, "remainder": r}) for r in REMAINDERS)],
)
def test_every_replacement_in_a_tiny_world_costs_at_most_epsilon(
    method: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """End to end through protect: what the noise is added to, over every pair of neighbouring tables."""
    top, epsilon = 2, Fraction(1, 2)
    watched = Watched(monkeypatch)
    known: dict[Data, tuple[np.ndarray, Fraction]] = {}
    for data in every_table(4, top):
        release = watched.run(
            pa.table({"x": list(data)}), method=method, epsilon="0.5", domains={"x": (0, top)}, **options
        )
        assert release.statement.model == "dp"
        (scale,), (sums,) = watched.scales, watched.sums
        # clusters of one belong to their record, whatever their number
        per_record = release.partition[0].sizes.max() == 1
        known[data] = (sums[release.partition[0].labels] if per_record else sums, scale)
    costs = [
        Fraction(int(np.abs(sums - known[other][0]).sum())) / scale
        for data, (sums, scale) in known.items()
        for other in neighbours(data, top)
    ]
    assert max(costs) == epsilon
