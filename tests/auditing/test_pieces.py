"""Neighbours, statistics, likelihood ratios and events, each by itself."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditing.statistics import LEARNT, Event, PairStatistics, best_events, learn, likelihood_ratio
from shoal.auditing.trial import AuditSetup, Domain, Outputs, find_pairs, make_stage
from shoal.io import read
from shoal.noise.entropy import Seeded
from shoal.partition import Partition
from shoal.release.protection import prepare
from shoal.release.publication import protect

RECORDS = np.array([[0.0, 0.0], [10.0, 100.0], [50.0, 45.0], [90.0, 10.0], [90.0, 10.0], [100.0, 90.0]])
DOMAIN = Domain((0.0, 0.0), (100.0, 100.0), (1.0, 1.0), (True, True))
CLUSTERS = [Partition.from_labels([0, 0, 0, 1, 1, 1])]


def stage(columns: dict[str, list[int]], view: str = "original", **settings: object) -> AuditSetup:
    prepared = prepare(
        read(pa.table(columns)),
        **{"method": "ranking-dp", "epsilon": "1", "domains": dict.fromkeys(columns, (0, 100)), **settings},
    )
    return make_stage(prepared.method, prepared.described, view)


@pytest.mark.parametrize("individual", [False, True])
def test_every_pair_differs_in_one_record_inside_the_domain(individual: bool) -> None:
    pairs = find_pairs(RECORDS, DOMAIN, CLUSTERS, individual=individual, removal=False, limit=100)
    assert len(pairs) > 20
    for pair in pairs:
        left, right = pair.sides(RECORDS)
        differing = (left != right).any(axis=1)
        assert differing.sum() == 1
        assert differing[pair.record]
        assert ((left >= 0) & (left <= 100) & (right >= 0) & (right <= 100)).all()
        if individual:
            assert (left == RECORDS).all()


def test_the_search_covers_corners_borders_duplicates_and_outliers() -> None:
    pairs = find_pairs(RECORDS, DOMAIN, CLUSTERS, individual=False, removal=False, limit=100)
    words = " ".join(pair.words() for pair in pairs)
    for kind in (
        "from one corner to the opposite corner",
        "cluster border",
        "equal records",
        "outlier",
        "onto another record",
        "step",
    ):
        assert kind in words
    assert any(pair.left == (0.0, 0.0) and pair.right == (100.0, 100.0) for pair in pairs)


def test_neighbours_by_removal_lack_one_record() -> None:
    pairs = find_pairs(RECORDS, DOMAIN, [], individual=False, removal=True, limit=9)
    for pair in pairs:
        left, right = pair.sides(RECORDS)
        assert (left.shape[0], right.shape[0]) == (6, 5)


def test_whole_number_columns_get_whole_numbers() -> None:
    domain = Domain((0.5,), (9.5,), (0.5,), (True,))
    assert domain.fit([0.0]) == (1.0,)
    assert domain.fit([9.4]) == (9.0,)


def test_a_run_of_a_world_is_a_run_of_protect() -> None:
    columns = {"x": [0, 10, 90, 100, 55], "y": [0, 100, 10, 90, 40]}
    for method in ("laplace", "ranking-dp", "mdav-dp"):
        k = None if method == "laplace" else 2
        made = stage(columns, method=method, k=k)
        ours = made.world(made.records).outputs(1, Seeded(5)).tables[0]
        released = protect(
            pa.table(columns),
            method=method,
            epsilon="1",
            k=k,
            seed=5,
            domains=dict.fromkeys(columns, (0, 100)),
        ).data
        assert ours.tolist() == np.column_stack([released["x"], released["y"]]).tolist()


def test_frozen_clusters_stay_when_records_move() -> None:
    made = stage({"x": [0, 1, 99, 100]}, "given-partition", method="mdav-dp", k=2)
    moved = made.records.copy()
    moved[0] = 100.0
    (frozen,) = made.world(moved).frozen
    labels = frozen.partition.labels
    assert labels[0] == labels[1] != labels[2]
    assert stage({"x": [0, 1, 99, 100]}, method="mdav-dp", k=2).frozen is None


def test_individual_scales_are_frozen_with_the_clusters() -> None:
    made = stage({"x": [50, 50, 50]}, "individual", method="idp-cbls", k=3)
    moved = made.records.copy()
    moved[0] = 100.0
    (frozen,) = made.world(moved).frozen
    assert [list(scales) for scales in frozen.scales] == [[0]]
    (anew,) = stage({"x": moved[:, 0].tolist()}, "individual", method="idp-cbls", k=3).frozen
    assert anew.scales[0][0] > 0


def test_the_likelihood_of_shuffled_rows_sums_over_all_assignments() -> None:
    made = stage({"x": [0, 40, 100]}, method="laplace")
    changed = made.records.copy()
    changed[1] = 70.0
    ratio = likelihood_ratio(made.world(made.records), made.world(changed))
    assert ratio is not None
    outputs = np.array([[[20.0], [60.0], [30.0]], [[0.0], [100.0], [50.0]]])

    def density(value: float, mean: float) -> float:
        distance = abs(value - mean) / 100
        return float(np.exp(-distance) / (2 if value in (0, 100) else 200))

    def likelihood(rows: list[float], means: list[float]) -> float:
        return sum(
            np.prod([density(v, m) for v, m in zip(order, means, strict=True)])
            for order in itertools.permutations(rows)
        )

    expected = [
        np.log(likelihood(rows, [0, 40, 100]) / likelihood(rows, [0, 70, 100]))
        for rows in outputs[:, :, 0].tolist()
    ]
    assert ratio(outputs).tolist() == pytest.approx(expected, abs=1e-8)


def test_statistics_of_a_release_by_hand() -> None:
    statistics = PairStatistics(
        ("x", "y"), (0.0, 0.0), (100.0, 100.0), 4, 1, ((0.0, 0.0), (100.0, 50.0)), None
    )
    tables = np.array([[[0.0, 7.0], [100.0, 50.0], [0.0, 7.0], [0.0, 50.0]]])
    outputs = Outputs(tables, {"mean of x": np.array([[3.0, 5.0]])})
    found = {name: numbers[0] for name, numbers in statistics.compute(outputs).items()}
    assert found["number of rows"] == 4
    assert found["number of distinct rows"] == 3
    assert found["number of published clusters"] == 2
    assert found["mean of x in published cluster 2"] == 5
    assert found["sum of mean of x over published clusters"] == 8
    assert found["value of rank 4 in x"] == 100
    assert found["rows exactly at the low end of x"] == 3
    assert found["rows exactly at the high end of y"] == 0
    assert found["rows exactly equal to the right record"] == 1
    assert found["pairs of rows that share x"] == 3
    assert found["pairs of rows that share x and y"] == 1
    assert found["rows with the smallest and the largest value of x and y"] == 1
    assert found["x in row 2"] == 100
    assert found["rows 2 and 4 share y"] == 1
    assert found["rows within 0.25 of the left record"] == 2


def test_the_best_event_is_found_and_counted() -> None:
    rng = np.random.default_rng(1)
    left = {
        "noise": rng.normal(size=4000),
        "atom": np.where(rng.random(4000) < 0.3, 0.5, rng.normal(size=4000)),
    }
    right = {"noise": rng.normal(size=4000), "atom": rng.normal(size=4000)}
    (score, event), *_ = best_events(left, right, 2)
    assert (event.statistic, event.relation, event.value, event.likelier) == ("atom", "==", 0.5, "left")
    assert score > 2
    assert event.count(left) == int((left["atom"] == 0.5).sum())
    assert event.count(right) == 0
    assert event.words() == "atom: exactly 0.5"


def test_chance_differences_do_not_look_like_attacks() -> None:
    rng = np.random.default_rng(2)
    left, right = ({str(i): rng.normal(size=500) for i in range(100)} for _ in range(2))
    assert best_events(left, right, 1)[0][0] < 0.5


def test_a_combination_tells_more_than_its_parts() -> None:
    rng = np.random.default_rng(3)
    common = rng.normal(size=(2, 4000)) * 10
    sides = [
        {"a": shared + shift, "b": shared + rng.normal(size=4000) * 0.1}
        for shared, shift in zip(common, (0.3, -0.3), strict=True)
    ]
    learnt = learn(*sides)
    assert learnt is not None
    combined = best_events({LEARNT: learnt(sides[0])}, {LEARNT: learnt(sides[1])}, 1)[0][0]
    assert combined > best_events(*sides, 1)[0][0] + 1


def test_a_missing_row_is_below_every_value() -> None:
    numbers = {"v": np.array([np.nan, 1.0, 2.0])}
    assert Event("v", "<=", 1.0, "left").count(numbers) == 2
    assert Event("v", ">=", 1.0, "left").count(numbers) == 2


def test_a_release_with_statistics_is_seen_with_them() -> None:
    """Rows are drawn from the noisy statistics: whoever publishes those tells more than the rows do."""
    columns = {"x": [0, 10, 90, 100, 55, 20], "y": [0, 100, 10, 90, 40, 30]}
    made = stage(columns, method="xm-3", k=3)
    seen = made.world(made.records).outputs(2, Seeded(5))
    released = protect(
        pa.table(columns), method="xm-3", epsilon="1", k=3, seed=5, domains=dict.fromkeys(columns, (0, 100))
    )
    assert set(seen.statistics) == {"mean of x", "mean of y", "variance of x", "variance of y"}
    for name, values in seen.statistics.items():
        assert values.shape == (2, 2)
        assert values[0].tolist() == released.statistics[name].to_pylist()


def test_sides_with_different_numbers_of_clusters_are_compared_by_what_both_have() -> None:
    left, right = {"a": np.arange(100.0), "b": np.zeros(100)}, {"a": np.arange(100.0) + 50}
    assert {event.statistic for _, event in best_events(left, right, 5)} == {"a"}
    learnt = learn(left, right)
    assert learnt is not None
    assert learnt.names == ("a",)
