"""l-diversity and earth mover's closeness by joining groups, and two linked tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import InputError, OptionError, Partition
from shoal.mechanisms.kanonymity.grouping_algorithms import bring_close, diversify, squared_error
from shoal.mechanisms.kanonymity.swap_algorithms import dissect
from shoal.noise import Seeded
from shoal.partition import mdav
from shoal.partition.groups import count_groups, equal_distances, ordered_distances


def distinct(partition: Partition, values: np.ndarray) -> list[int]:
    return [len(set(values[partition.labels == group].tolist())) for group in range(len(partition))]


def is_coarser(coarse: Partition, fine: Partition) -> bool:
    return all(len(set(coarse.labels[fine.labels == group].tolist())) == 1 for group in range(len(fine)))


@given(
    st.integers(2, 60).flatmap(lambda n: st.lists(st.integers(0, 4), min_size=n, max_size=n)),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_joined_groups_are_diverse_and_no_smaller(values: list[int], k: int, l: int, seed: int) -> None:  # noqa: E741
    secret = np.array(values)
    X = np.random.default_rng(seed).integers(0, 4, (secret.size, 2)).astype(np.float64)
    before = mdav(X, min(k, secret.size))
    l = min(l, len(set(values)))  # noqa: E741
    made = diversify(before, X, [secret], l)
    assert min(distinct(made.partition, secret)) >= l
    assert is_coarser(made.partition, before)
    assert made.partition.sizes.min() >= before.sizes.min()
    assert made.cost["groups_before"] == len(before)
    assert made.sse_before == pytest.approx(squared_error(before, X))
    assert made.sse >= made.sse_before - 1e-9


def test_groups_that_lack_nothing_stay_as_they_are() -> None:
    partition = Partition.from_labels([0, 0, 1, 1, 2, 2])
    made = diversify(partition, np.arange(6.0), [["a", "b", "a", "b", "b", "a"]], 2)
    assert np.array_equal(made.partition.labels, partition.labels)
    assert made.sse == made.sse_before


def test_a_group_joins_the_nearest_one() -> None:
    X = np.array([0.0, 0.0, 10.0, 10.0, 100.0, 100.0])
    made = diversify(Partition.from_labels([0, 0, 1, 1, 2, 2]), X, [["a", "a", "a", "b", "c", "d"]], 2)
    assert [set(np.flatnonzero(made.partition.labels == g)) for g in range(2)] == [{0, 1, 2, 3}, {4, 5}]


def test_every_confidential_attribute_counts() -> None:
    partition = Partition.from_labels([0, 0, 1, 1, 2, 2])
    first, second = ["a", "b"] * 3, ["x", "x", "x", "y", "x", "y"]
    made = diversify(partition, np.arange(6.0), [first, second], 2)
    assert min(distinct(made.partition, np.array(second))) == 2


def test_equal_means_do_not_make_a_group_join_itself() -> None:
    made = diversify(Partition.from_labels([0, 0, 1, 1, 2, 2]), np.zeros(6), [list("aabbcc")], 3)
    assert len(made.partition) == 1


def test_out_of_reach_or_misshapen_is_refused() -> None:
    partition = Partition.from_labels([0, 0, 1, 1])
    with pytest.raises(OptionError, match="l = 3 cannot be reached: sensitive attribute 1 has 2 different"):
        diversify(partition, np.arange(4.0), [list("aabb")], 3)
    with pytest.raises(OptionError, match="l must be at least 1"):
        diversify(partition, np.arange(4.0), [list("aabb")], 0)
    with pytest.raises(InputError, match="one value per record, 4"):
        diversify(partition, np.arange(4.0), [list("aab")], 1)
    with pytest.raises(OptionError, match="t must be from 0 to 1"):
        bring_close(partition, np.arange(4.0), [list("aabb")], 1.5)
    with pytest.raises(OptionError, match="ground 'round' is not one of ordered, equal"):
        bring_close(partition, np.arange(4.0), [list("aabb")], 0.5, "round")


@pytest.mark.parametrize("ground", ["ordered", "equal"])
@pytest.mark.parametrize("t", [0.0, 0.05, 0.2, 1.0])
def test_joined_groups_are_within_the_earth_movers_distance(ground: str, t: float) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    income = np.round(X[:, 0] * 3 + rng.normal(size=300))
    before = mdav(X, 5)
    made = bring_close(before, X, [income], t, ground)
    distance = {"ordered": ordered_distances, "equal": equal_distances}[ground]
    coded = np.unique(income, return_inverse=True)[1]
    assert distance(count_groups(made.partition.labels, coded)).max() <= t + 1e-12
    assert is_coarser(made.partition, before)
    assert len(made.partition) == {0.0: 1, 1.0: len(before)}.get(t, len(made.partition))


def test_anatomy_keeps_what_each_group_holds_and_links_nothing_else() -> None:
    rng = np.random.default_rng(5)
    age, illness = rng.permutation(60), rng.choice(["a", "b", "c"], 60)
    partition = mdav(age.astype(np.float64), 6)
    made = dissect({"age": age}, {"illness": illness}, partition, Seeded(1))
    number = dict(zip(made.quasi["age"].tolist(), made.quasi["group"].tolist(), strict=True))
    assert sorted(number) == sorted(age.tolist())
    of_cluster: dict[int, set[int]] = {}
    for record, cluster in enumerate(partition.labels.tolist()):
        of_cluster.setdefault(cluster, set()).add(number[int(age[record])])
    assert all(len(numbers) == 1 for numbers in of_cluster.values())
    for cluster, (group,) in of_cluster.items():
        rows = made.confidential["group"] == group
        listed = dict(
            zip(
                made.confidential["illness"][rows].tolist(),
                made.confidential["count"][rows].tolist(),
                strict=True,
            )
        )
        own, counts = np.unique(illness[partition.labels == cluster], return_counts=True)
        assert listed == dict(zip(own.tolist(), counts.tolist(), strict=True))
    assert made.confidential["count"].sum() == 60
    # rows and numbers follow neither the input nor the order of creation
    assert made.quasi["age"].tolist() != age.tolist()
    assert [group for (group,) in (of_cluster[c] for c in range(10))] != list(range(1, 11))


def test_anatomy_of_several_attributes_lists_combinations_and_finds_free_names() -> None:
    made = dissect(
        {"group": [1, 2, 3]}, {"a": ["x", "x", "y"], "count": [1, 1, 1]}, Partition.from_labels([0, 0, 0])
    )
    assert list(made.quasi) == ["group", "group_"]
    assert list(made.confidential) == ["group_", "a", "count", "count_"]
    assert made.confidential["count_"].tolist() == [2, 1]
    with pytest.raises(InputError, match="column 'a' must have one value per record, 3"):
        dissect({"q": [1, 2, 3]}, {"a": ["x"]}, Partition.from_labels([0, 0, 0]))
    with pytest.raises(InputError, match="at least one quasi-identifier"):
        dissect({}, {"a": ["x"]}, Partition.from_labels([0]))
