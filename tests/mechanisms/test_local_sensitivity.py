"""Noise fitted to the actual records: every bound against brute force, and what breaks it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.attribute import Attribute
from shoal.errors import ClaimError, OptionError
from shoal.mechanisms.sensitivity import (
    CALIBRATIONS,
    changes_of_inner_sums,
    changes_of_sums,
    cluster_scales,
    clusterwise_maximum,
    inner_sums,
)
from shoal.partition import Partition, ranking

TOP = 12


def random_clusters(rng: np.random.Generator, number: int) -> tuple[np.ndarray, Partition]:
    """Clusters of 3 to 20 records in mixed order; narrow ranges make ties, and wide ones outliers."""
    sizes = rng.integers(3, 21, number)
    labels = np.repeat(np.arange(number), sizes)
    spread = rng.integers(0, TOP + 1, number)[labels]
    values = np.minimum(rng.integers(0, TOP + 1, labels.size), spread)
    shuffled = rng.permutation(labels.size)
    return values[shuffled], Partition.from_labels(labels[shuffled])


def sums_by_definition(clusters: np.ndarray, inner: bool) -> np.ndarray:
    """Sums of the rows of a matrix, by the words of the paper."""
    ordered = np.sort(clusters, axis=-1)
    if inner:
        ordered[..., 0] = ordered[..., 1]
        ordered[..., -1] = ordered[..., -2]
    return ordered.sum(axis=-1)


def brute_changes(cluster: np.ndarray, inner: bool, top: int = TOP) -> np.ndarray:
    """For each record the largest change of its cluster's sum over every value it could have."""
    n = cluster.size
    changed = np.broadcast_to(cluster, (n, top + 1, n)).copy()
    for record in range(n):
        changed[record, :, record] = np.arange(top + 1)
    before = sums_by_definition(cluster, inner)
    return np.abs(sums_by_definition(changed, inner) - before).max(axis=1)


@pytest.mark.parametrize("name", ["local", "cluster"])
def test_local_sensitivities_equal_brute_force_over_all_single_changes(name: str) -> None:
    values, made = random_clusters(np.random.default_rng(11), 10_500)
    calibration = CALIBRATIONS[name]
    assert calibration.changes is not None
    changes, sums = calibration.changes(values, TOP, made), calibration.sums(values, made)
    order = np.argsort(made.labels, kind="stable")
    for label, members in enumerate(np.split(order, np.cumsum(made.sizes)[:-1])):
        cluster = values[members]
        assert sums[label] == sums_by_definition(cluster, name == "cluster")
        assert changes[members].tolist() == brute_changes(cluster, name == "cluster").tolist()


def test_the_largest_change_is_the_closed_form_of_the_paper() -> None:
    values, made = random_clusters(np.random.default_rng(12), 10_500)
    largest = clusterwise_maximum(changes_of_inner_sums(values, TOP, made), made)
    order = np.lexsort((values, made.labels))
    for label, members in enumerate(np.split(order, np.cumsum(made.sizes)[:-1])):
        s = values[members]
        printed = max(
            (s[-1] - s[1]) + (s[2] - s[1]) + (s[-1] - s[-2]),
            (s[-2] - s[0]) + (s[-2] - s[-3]) + (s[1] - s[0]),
        )
        assert largest[label] == printed


def test_brute_force_would_notice_a_term_left_out() -> None:
    cluster = np.array([0, 5, 6, 12])
    made = Partition.from_labels(np.zeros(4, dtype=int))
    without_outer_gap = (12 - 5) + (6 - 5)
    assert clusterwise_maximum(changes_of_inner_sums(cluster, TOP, made), made)[0] > without_outer_gap
    assert brute_changes(cluster, True).max() > without_outer_gap


@pytest.mark.parametrize("name", ["local", "cluster"])
@pytest.mark.parametrize("shares", [(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 10), Fraction(9, 10))])
def test_several_attributes_together_lose_no_more_than_their_budget(
    name: str, shares: tuple[Fraction, ...]
) -> None:
    """All replacements of all records of a cluster by all pairs of values."""
    rng = np.random.default_rng(5)
    tops = (5, 9)
    calibration = CALIBRATIONS[name]
    assert calibration.changes is not None
    reached = []
    for _ in range(60):
        n = int(rng.integers(3, 6))
        made = Partition.from_labels(np.zeros(n, dtype=int))
        columns = [rng.integers(0, top + 1, n) for top in tops]
        changes = [calibration.changes(x, top, made) for x, top in zip(columns, tops, strict=True)]
        scales = cluster_scales(changes, tops, shares, made, (Fraction(0), Fraction(0)))
        worst = Fraction(0)
        for record in range(n):
            moves = []
            for x, top in zip(columns, tops, strict=True):
                before = sums_by_definition(x, name == "cluster")
                after = []
                for value in range(top + 1):
                    changed = x.copy()
                    changed[record] = value
                    after.append(abs(int(sums_by_definition(changed, name == "cluster")) - int(before)))
                moves.append(after)
            for pair in product(*moves):
                loss = sum(
                    (
                        Fraction(move) / scale[0]
                        for move, scale in zip(pair, scales, strict=True)
                        if move or scale[0]
                    ),
                    Fraction(0),
                )
                worst = max(worst, loss)
        assert worst <= sum(shares)
        reached.append(worst)
    # no more noise than needed: the scales are the least of this form
    assert max(reached) > sum(shares) * Fraction(999, 1000)


def test_one_attribute_gets_the_scale_of_the_paper() -> None:
    made = Partition.from_labels([0, 0, 0, 1, 1, 1])
    values = np.array([0, 4, 10, 5, 5, 5])
    for name, expected in (("local", [10 / 0.5, 5 / 0.5]), ("cluster", [18 / 0.5, 0])):
        changes = CALIBRATIONS[name].changes
        assert changes is not None
        (scales,) = cluster_scales([changes(values, 10, made)], [10], [Fraction(1, 2)], made, [Fraction(0)])
        assert scales.tolist() == expected


def loss_after_reclustering(name: str, before: np.ndarray, after: np.ndarray, top: int, k: int) -> Fraction:
    """Loss, in units of ε, with the scales of the first table but the clusters of each."""
    calibration = CALIBRATIONS[name]
    assert calibration.changes is not None
    made, moved = ranking(before, k), ranking(after, k)
    (scales,) = cluster_scales(
        [calibration.changes(before, top, made)], [top], [Fraction(1)], made, [Fraction(0)]
    )
    difference = np.abs(calibration.sums(before, made) - calibration.sums(after, moved))
    return sum(
        (Fraction(int(d)) / scale for d, scale in zip(difference, scales, strict=True) if scale), Fraction(0)
    )


def test_clusters_that_move_with_the_record_break_both_bounds() -> None:
    """The claim ends where the partition is not held fixed: nobody may claim more."""
    before = np.array([0, 50, 50, 50, 50, 50])
    after = np.array([100, 50, 50, 50, 50, 50])
    assert loss_after_reclustering("local", before, after, 100, 3) == Fraction(3, 2)
    spread = np.array([55, 65, 69, 28, 39, 26, 3, 17, 34])
    moved = np.array([55, 65, 2, 28, 39, 26, 3, 17, 34])
    assert loss_after_reclustering("cluster", spread, moved, 100, 3) == 3
    # with the clusters held fixed the same replacements cost at most ε
    for name, x, y in (("local", before, after), ("cluster", spread, moved)):
        made = ranking(x, 3)
        changes = CALIBRATIONS[name].changes
        assert changes is not None
        (scales,) = cluster_scales([changes(x, 100, made)], [100], [Fraction(1)], made, [Fraction(0)])
        difference = np.abs(CALIBRATIONS[name].sums(x, made) - CALIBRATIONS[name].sums(y, made))
        assert max(Fraction(int(d)) / s for d, s in zip(difference, scales, strict=True) if s) <= 1


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def test_a_cluster_without_spread_is_released_exactly_and_only_the_custodian_learns_how_often() -> None:
    data = table(x=[7] * 5 + [10, 20, 40, 60, 80, 100])
    release = shoal.protect(data, method="idp-cbls", epsilon="1", k=5, domains={"x": (0, 100)})
    assert release.data["x"].to_pylist().count(7) >= 5
    assert release.internal["clusters_without_noise"] == {"x": 1}
    text = release.statement.to_markdown()
    assert "can be released exactly" in text
    assert text.splitlines()[2].startswith("Individual differential privacy")
    assert "clusters_without_noise" not in text
    assert release.statement.model == "idp-given-partition"


def test_a_floor_leaves_no_cluster_without_noise() -> None:
    data = table(x=[7] * 2000)
    release = shoal.protect(
        data, method="idp-cbls", epsilon="1", k=5, domains={"x": (0, 100)}, floor={"x": 2}, seed=4
    )
    assert release.internal["clusters_without_noise"] == {"x": 0}
    values = release.data["x"].to_numpy()[::1]
    assert np.unique(values).size > 5
    # Laplace noise of scale 2 on the mean: E|noise| = 2
    noise = np.abs(np.asarray(release.aligned["x"])[::1] - 7)
    assert noise.mean() == pytest.approx(2, rel=0.2)
    assert "never below the public floor" in release.statement.to_markdown()
    assert "can be released exactly" not in release.statement.to_markdown()
    same = shoal.protect(data, method="idp-cbls", epsilon="1", k=5, domains={"x": (0, 100)}, floor=2, seed=4)
    assert same.data.equals(release.data)


def test_idp_ls_never_releases_exactly() -> None:
    release = shoal.protect(table(x=[50] * 60), method="idp-ls", epsilon="1", k=5, domains={"x": (0, 100)})
    assert release.internal["clusters_without_noise"] == {"x": 0}
    assert "can be released exactly" not in release.statement.to_markdown()


def test_groups_are_clustered_together() -> None:
    rng = np.random.default_rng(0)
    data = table(a=rng.integers(0, 100, 90), b=rng.integers(0, 9, 90), c=rng.integers(0, 50, 90))
    domains = {"a": (0, 100), "b": (0, 9), "c": (0, 50)}
    release = shoal.protect(
        data, method="idp-cbls", epsilon="1", k=9, domains=domains, groups=[["a", "b"], ["c"]], seed=1
    )
    assert [made.columns for made in release.partition] == [("a", "b"), ("c",)]
    assert release.method.partition == "mdav"
    together = shoal.protect(
        data, method="idp-ls", epsilon="1", k=9, domains=domains, partition="mdav", seed=1
    )
    assert [made.columns for made in together.partition] == [("a", "b", "c")]
    assert together.statement.model == "idp-given-partition"


def test_local_changes_do_not_need_clusters_of_three_but_inner_ones_do() -> None:
    pairs = Partition.from_labels([0, 0, 1, 1])
    values = np.array([0, 1, 2, 3])
    assert changes_of_sums(values, 3, pairs).tolist() == [3, 2, 2, 3]
    with pytest.raises(OptionError, match="at least 3"):
        inner_sums(values, pairs)
    with pytest.raises(OptionError, match="k of at least 3, got 2"):
        shoal.protect(table(x=[1, 2, 3]), method="idp-cbls", epsilon="1", k=2, domains={"x": (0, 9)})


@pytest.mark.parametrize(
    ("floor", "words"),
    [(-1, "at least 0"), ({"y": 1}, "floor names column 'y'"), ({"x": -1}, "floor of column 'x'")],
)
def test_bad_floors_are_named(floor: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        shoal.protect(
            table(x=[1, 2, 3]), method="idp-cbls", epsilon="1", k=3, domains={"x": (0, 9)}, floor=floor
        )


def test_persons_with_several_rows_are_covered_only_where_changes_add_up() -> None:
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"name": "who", "role": "unit", "max_rows": 2},
                {"name": "x", "lo": 0, "hi": 9},
            ]
        }
    )
    data = table(who=[1, 1, 2, 3, 4, 5], x=[1, 2, 3, 4, 5, 6])
    release = shoal.protect(data, schema, "idp-ls", epsilon="1", k=3)
    assert (release.statement.epsilon, release.method.epsilon) == (1, Fraction(1, 2))
    with pytest.raises(ClaimError, match="one row at a time"):
        shoal.protect(data, schema, "idp-cbls", epsilon="1", k=3)


def test_two_records_replaced_break_the_inner_bound_but_not_the_plain_one() -> None:
    """Why several rows per person are refused: the second record opens what the first was held by."""
    before, after = np.array([50, 50, 50, 50]), np.array([50, 50, 100, 100])
    made = Partition.from_labels([0, 0, 0, 0])
    largest = int(changes_of_inner_sums(before, 100, made).max())
    assert abs(int(inner_sums(after, made)[0] - inner_sums(before, made)[0])) > 2 * largest
    assert abs(int(after.sum() - before.sum())) <= 2 * int(changes_of_sums(before, 100, made).max())


@pytest.mark.parametrize("step", ["1", "0.25"])
def test_a_floor_is_in_the_units_of_its_column_whatever_the_lattice(step: str) -> None:
    schema = shoal.Schema(
        (Attribute("x", "numeric", "other", lo=Fraction(0), hi=Fraction(100), step=Fraction(step)),)
    )
    release = shoal.protect(
        table(x=[50] * 2000), schema, method="idp-cbls", epsilon="1", k=5, floor={"x": 2}, seed=4
    )
    noise = np.abs(np.asarray(release.aligned["x"]) - 50)
    assert noise.mean() == pytest.approx(2, rel=0.2)
