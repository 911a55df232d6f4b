"""Swapping permutes uniformly inside groups and nowhere else, in the order and with the groups of the thesis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from shoal import OptionError, Partition
from shoal.errors import InputError
from shoal.mechanisms.kanonymity.swap_algorithms import permute_within, swap, swap_mdav, swap_ranking
from shoal.noise import Seeded, Source, SystemEntropy
from shoal.partition import mdav, ranking

# two groups whose members are interleaved
LABELS = [0, 1, 0, 1, 1, 0, 1]


def p_value(draw: Callable[[Partition, Source], np.ndarray], rounds: int = 20_000) -> float:
    """Chi-square test of all 3! · 4! joint outcomes of one call: uniform, and independent between groups."""
    partition = Partition.from_labels(LABELS)
    source = Seeded(11)
    seen = Counter(tuple(draw(partition, source).tolist()) for _ in range(rounds))
    first, second = ([i for i, g in enumerate(LABELS) if g == group] for group in (0, 1))
    outcomes = []
    for one in permutations(first):
        for two in permutations(second):
            order = np.empty(7, dtype=int)
            order[first], order[second] = one, two
            outcomes.append(tuple(order.tolist()))
    assert set(seen) <= set(outcomes)
    expected = rounds / len(outcomes)
    statistic = sum((seen[outcome] - expected) ** 2 / expected for outcome in outcomes)
    return float(chi2.sf(statistic, math.factorial(3) * math.factorial(4) - 1))


def keys_of_three_bits(partition: Partition, source: Source) -> np.ndarray:
    """A broken shuffle: records sorted by short random keys, ties in input order."""
    keys = source.below(8, partition.n)
    order = np.empty(partition.n, dtype=np.int64)
    order[np.argsort(partition.labels, kind="stable")] = np.lexsort((keys, partition.labels))
    return order


def same_for_all_groups(partition: Partition, source: Source) -> np.ndarray:
    """A broken shuffle: the smaller group follows the order drawn for the larger one."""
    drawn = source.permutation(4)
    order = np.empty(partition.n, dtype=np.int64)
    for group in range(len(partition)):
        own = np.flatnonzero(partition.labels == group)
        order[own] = own[[place for place in drawn if place < own.size]]
    return order


def test_every_joint_permutation_is_equally_likely() -> None:
    assert p_value(permute_within) > 1e-9


@pytest.mark.parametrize("broken", [keys_of_three_bits, same_for_all_groups])
def test_the_test_of_uniformity_rejects_a_broken_shuffle(broken: Callable[..., np.ndarray]) -> None:
    assert p_value(broken) < 1e-9


def test_a_record_keeps_its_value_one_time_in_k_even_in_a_large_table() -> None:
    partition = Partition.from_labels(np.arange(200_000) % 20_000)
    kept = int((permute_within(partition, SystemEntropy()) == np.arange(200_000)).sum())
    # about Poisson(20,000)
    assert abs(kept - 20_000) < 7 * math.sqrt(20_000)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(0, 2**32))
def test_values_stay_inside_their_group(labels: list[int], seed: int) -> None:
    partition = Partition.from_labels(labels)
    order = permute_within(partition, Seeded(seed))
    assert sorted(order.tolist()) == list(range(len(labels)))
    assert np.array_equal(partition.labels[order], partition.labels)


def test_rows_of_a_table_are_swapped_whole() -> None:
    rows = np.arange(20).reshape(10, 2)
    swapped = swap(rows, Partition.from_labels([0] * 10), Seeded(1))
    assert sorted(map(tuple, swapped.tolist())) == list(map(tuple, rows.tolist()))
    assert not np.array_equal(swapped, rows)
    with pytest.raises(InputError, match="one value per record, 2"):
        swap(rows, Partition.from_labels([0, 0]))


def people(n: int = 90) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    age = rng.permutation(n).astype(np.float64)
    return [age, age + rng.normal(0, 5, n), rng.normal(0, 30, n)]


@pytest.mark.parametrize("k", [3, [3, 7, 20]])
def test_ranking_swaps_each_attribute_among_its_own_neighbours(k: int | list[int]) -> None:
    attributes = people()
    made = swap_ranking(attributes, k, source=Seeded(2))
    for j, values in enumerate(attributes):
        expected = ranking(values, k if isinstance(k, int) else k[j])
        assert np.array_equal(made.groups[j].labels, expected.labels)
        assert np.array_equal(expected.labels[made.owners[j]], expected.labels)
        assert sorted(values[made.owners[j]].tolist()) == sorted(values.tolist())


def test_informed_swapping_is_sequential_on_all_other_columns_as_they_are_by_then() -> None:
    attributes = people()
    made = swap_mdav(attributes, [4, 9], confidential=[1, 2], source=Seeded(5))
    assert made.swaps == [(1,), (2,)]
    first = mdav(np.column_stack([attributes[0], attributes[2]]), 4)
    assert np.array_equal(made.groups[0].labels, first.labels)
    second = mdav(np.column_stack([attributes[0], attributes[1][made.owners[1]]]), 9)
    assert np.array_equal(made.groups[1].labels, second.labels)
    for own, groups in zip((1, 2), made.groups, strict=True):
        assert np.array_equal(groups.labels[made.owners[own]], groups.labels)


def test_uninformed_swapping_keeps_confidential_attributes_together() -> None:
    attributes = people()
    made = swap_mdav(attributes, 5, confidential=[1, 2], intruder="uninformed", source=Seeded(6))
    assert made.swaps == [(1, 2)]
    assert np.array_equal(made.owners[1], made.owners[2])
    assert np.array_equal(made.groups[0].labels, mdav(attributes[0], 5).labels)
    by_k = swap_mdav(attributes, [5, 8], confidential=[1, 2], intruder="uninformed", source=Seeded(6))
    assert by_k.swaps == [(1,), (2,)]
    assert [int(groups.sizes.min()) for groups in by_k.groups] == [5, 8]


def test_an_attribute_of_several_coordinates_moves_as_one() -> None:
    town = np.eye(3)[np.arange(90) % 3]
    made = swap_mdav([people()[0], town], 6, confidential=[1], source=Seeded(7))
    assert made.groups[0].sizes.min() == 6
    assert sorted(map(tuple, town[made.owners[1]].tolist())) == sorted(map(tuple, town.tolist()))


def test_wrong_arguments_are_named() -> None:
    attributes = people(10)
    with pytest.raises(OptionError, match="one for each of 3 attributes"):
        swap_ranking(attributes, [3, 3])
    with pytest.raises(OptionError, match="k = 11 is larger"):
        swap_ranking(attributes, 11)
    with pytest.raises(OptionError, match="attributes from 0 to 2"):
        swap_mdav(attributes, 3, confidential=[3])
    with pytest.raises(OptionError, match="each at most once"):
        swap_mdav(attributes, 3, confidential=[1, 1])
    with pytest.raises(OptionError, match="intruder 'alien' is not one of informed, uninformed"):
        swap_mdav(attributes, 3, confidential=[1], intruder="alien")
    with pytest.raises(OptionError, match="other than the swapped one"):
        swap_mdav(attributes[:1], 3, confidential=[0])
