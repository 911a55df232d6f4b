"""Bucketization: buckets hold whole values, counts keep every ratio within t, groups hold what the counts say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import OptionError
from shoal.mechanisms.kanonymity.grouping_algorithms import (
    allot,
    bounds,
    bucket_distance,
    close_groups,
    compound_buckets,
    group_sizes,
    nominal_buckets,
    ordered_buckets,
)
from shoal.partition.groups import count_groups, ratio_distances
from tests.conftest import examples


def test_twelve_records_of_the_thesis() -> None:
    buckets = ordered_buckets(np.arange(12), 2)
    assert buckets.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    counts = allot(np.bincount(buckets), t=2, k=4).counts
    assert sorted(map(tuple, counts.tolist())) == [(1, 1, 2), (1, 2, 1), (2, 1, 1)]
    assert bucket_distance(counts, np.array([4, 4, 4])) == 1.5
    made = close_groups(np.random.default_rng(0).normal(size=(12, 2)), buckets, t=2, k=4)
    assert made.distance == 1.5
    assert ratio_distances(count_groups(made.partition.labels, buckets)).max() == pytest.approx(1.5)


def test_a_thousand_records_in_21_groups_where_the_printed_recipe_overdraws() -> None:
    bucket_sizes = np.bincount(ordered_buckets(np.arange(1000), 2))
    assert bucket_sizes.tolist() == [333, 334, 333]
    sizes = group_sizes(1000, 21)
    low, high = bounds(sizes, bucket_sizes, 2)
    # the recipe: the fewest records of all other buckets, the rest from the emphasised one
    emphasised = np.arange(21) % 3
    greedy = low.copy()
    rows = np.arange(21)
    greedy[rows, emphasised] = 0
    greedy[rows, emphasised] = sizes - greedy.sum(axis=1)
    assert (greedy.sum(axis=0) > bucket_sizes).any()
    found = allot(bucket_sizes, t=2, k=47)
    assert np.array_equal(np.sort(found.sizes), np.sort(sizes))
    assert np.array_equal(found.counts.sum(axis=0), bucket_sizes)
    assert (low <= found.counts).all()
    assert (found.counts <= high).all()
    assert bucket_distance(found.counts, bucket_sizes) <= 2
    # seven groups emphasise each bucket, nearly as much as they may
    assert np.bincount(found.emphasis).tolist() == [7, 7, 7]
    assert found.counts[rows, found.emphasis].mean() > 30.5


@settings(max_examples=examples(300))
@given(st.lists(st.integers(1, 400), min_size=1, max_size=6), st.integers(1, 5), st.data())
def test_distance_is_never_above_t(bucket_sizes: list[int], t: int, data: st.DataObject) -> None:
    sizes = np.array(bucket_sizes)
    k = data.draw(st.integers(1, int(sizes.sum())))
    found = allot(sizes, t, k)
    assert found.sizes.min() >= k
    assert np.array_equal(found.counts.sum(axis=0), sizes)
    # in whole numbers: n_ij N t >= k_i N_j and n_ij N <= t k_i N_j
    total, rows = int(sizes.sum()), found.sizes[:, None]
    assert (found.counts * total * t >= rows * sizes).all()
    assert (found.counts * total <= t * rows * sizes).all()
    assert bucket_distance(found.counts, sizes) <= t * (1 + 1e-12)


@settings(max_examples=60)
@given(
    st.integers(1, 60).flatmap(lambda n: st.lists(st.integers(-9, 9), min_size=n, max_size=n)),
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.data(),
)
def test_groups_of_any_attribute_are_close(values: list[int], t: int, seed: int, data: st.DataObject) -> None:
    n = len(values)
    k = data.draw(st.integers(1, n))
    X = np.random.default_rng(seed).normal(size=(n, 2))
    buckets = ordered_buckets(values, t)
    made = close_groups(X, buckets, t, k)
    assert np.array_equal(np.bincount(made.partition.labels), made.partition.sizes)
    assert made.partition.sizes.min() >= k
    measured = ratio_distances(count_groups(made.partition.labels, buckets)).max()
    assert measured == pytest.approx(made.distance)
    assert made.distance <= t * (1 + 1e-12)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(1, 6))
def test_buckets_are_intervals_of_whole_values(values: list[int], t: int) -> None:
    raw = np.array(values)
    buckets = ordered_buckets(raw, t)
    assert set(buckets.tolist()) == set(range(buckets.max() + 1))
    assert buckets.max() <= t
    order = np.argsort(raw, kind="stable")
    assert (np.diff(buckets[order]) >= 0).all()
    assert all(len(set(buckets[raw == value].tolist())) == 1 for value in set(values))


@given(st.integers(2, 300), st.integers(1, 6))
def test_without_ties_the_cuts_are_those_of_the_thesis(n: int, t: int) -> None:
    ends = [0, *(int(np.floor(i * n / (t + 1) + 0.5)) for i in range(1, t + 1)), n]
    sizes = [end - start for start, end in pairwise(ends) if end > start]
    values = np.random.default_rng(n).permutation(n)
    found = np.bincount(ordered_buckets(values, t))
    assert found.tolist() == sizes or n <= t + 1


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=60), st.integers(1, 4))
def test_nominal_values_stay_whole_and_frequent_ones_alone(values: list[str], t: int) -> None:
    buckets = nominal_buckets(values, t)
    kinds = set(values)
    assert buckets.max() + 1 == min(t + 1, len(kinds))
    assert all(
        len({b for v, b in zip(values, buckets.tolist(), strict=True) if v == kind}) == 1 for kind in kinds
    )


def test_nominal_buckets_follow_an_order_of_similar_values() -> None:
    values = list("aabbccdd")
    assert nominal_buckets(values, 1, order="abcd").tolist() == [0] * 4 + [1] * 4
    assert nominal_buckets(values, 1, order="acbd").tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    with pytest.raises(OptionError, match="does not contain the value 'd'"):
        nominal_buckets(values, 1, order="abc")


def test_compound_buckets_are_sets_of_combinations() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (500, 2)).astype(np.float64)
    buckets = compound_buckets(X, 3)
    assert set(buckets.tolist()) == {0, 1, 2, 3}
    assert all(len(set(buckets[(row == X).all(axis=1)].tolist())) == 1 for row in np.unique(X, axis=0))
    assert close_groups(rng.normal(size=(500, 1)), buckets, t=3, k=10).distance <= 3


def test_records_of_a_group_are_closer_in_the_quasi_identifiers_than_by_chance() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(600, 2))
    buckets = ordered_buckets(rng.normal(size=600), 2)
    made = close_groups(X, buckets, t=2, k=10)

    def within(labels: np.ndarray) -> float:
        return float(
            sum(((X[labels == g] - X[labels == g].mean(axis=0)) ** 2).sum() for g in set(labels.tolist()))
        )

    assert within(made.partition.labels) < 0.35 * within(rng.permutation(made.partition.labels))


def test_large_tables_are_halved_and_keep_every_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.mechanisms.kanonymity.grouping_algorithms._BLOCK", 100)
    rng = np.random.default_rng(9)
    X = rng.normal(size=(2_000, 3))
    buckets = ordered_buckets(rng.integers(0, 50, 2_000), 3)
    seen: list[int] = []
    made = close_groups(X, buckets, t=3, k=8, progress=lambda done, total: seen.append(done))
    assert seen[-1] == 2_000
    assert len(seen) > 10
    counted = np.zeros_like(made.allotment.counts)
    np.add.at(counted, (made.partition.labels, buckets), 1)
    assert np.array_equal(counted, made.allotment.counts)


@pytest.mark.parametrize(("t", "words"), [(0, "t must be"), (1.5, "t must be"), (True, "t must be")])
def test_t_is_a_whole_number(t: float, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        close_groups(np.arange(6.0), np.array([0, 0, 0, 1, 1, 1]), t, 2)  # type: ignore[arg-type]
