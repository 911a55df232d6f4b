"""Individual ranking: rank-fixed groups, and the sensitivity that follows from them."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import InputError, OptionError
from shoal.partition import ranking
from tests.conftest import examples

REMAINDERS = ["middle", "last", "first"]


def slow_sizes(n: int, k: int, remainder: str) -> list[int]:
    if n < 2 * k:
        return [n]
    if remainder == "last":
        return [k] * (n // k - 1) + [k + n % k]
    if remainder == "first":
        return [k + n % k] + [k] * (n // k - 1)
    low, high = [], []
    while n >= 3 * k:
        low.append(k)
        high.append(k)
        n -= 2 * k
    if n >= 2 * k:
        low.append(k)
        n -= k
    return [*low, n, *high]


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_groups_follow_the_definition(remainder):
    for n in range(1, 60):
        for k in range(1, n + 1):
            assert ranking(np.arange(n), k, remainder).sizes.tolist() == slow_sizes(n, k, remainder)


@settings(max_examples=examples(200), deadline=None)
@given(
    values=st.lists(st.integers(-4, 4), min_size=1, max_size=50),
    k=st.integers(1, 10),
    remainder=st.sampled_from(REMAINDERS),
)
def test_clusters_are_runs_of_ranks_with_ties_by_index(values, k, remainder):
    k = min(k, len(values))
    partition = ranking(values, k, remainder)
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    assert (np.diff(partition.labels[order]) >= 0).all()
    assert np.bincount(partition.labels).tolist() == partition.sizes.tolist()
    assert partition.sizes.min() >= k
    assert ranking(np.array(values, dtype=float), k, remainder).labels.tolist() == partition.labels.tolist()


def largest_change(n: int, k: int, width: int, groups) -> int:
    """Largest L1 change of the vector of cluster sums over all data sets and all replaced values."""
    worst = 0
    for values in combinations_with_replacement(range(width + 1), n):
        before = groups(np.array(values), k)
        for i in range(n):
            for other in range(width + 1):
                replaced = np.array(values)
                replaced[i] = other
                after = groups(replaced, k)
                worst = max(worst, int(np.abs(after - before).sum()))
    return worst


def cluster_sums(remainder: str):
    def groups(x, k):
        return ranking(x, k, remainder).sums(x)

    return groups


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize(
    ("n", "k", "width"),
    [(2, 1, 4), (3, 1, 3), (5, 1, 2), (4, 2, 3), (5, 2, 3), (6, 2, 2), (7, 2, 2), (7, 3, 2), (8, 3, 2)],
)
def test_one_replaced_value_moves_all_sums_by_at_most_the_width(remainder, n, k, width):
    assert largest_change(n, k, width, cluster_sums(remainder)) == width


def test_groups_cut_at_the_farther_end_first_would_break_the_bound():
    """The check above can fail: taking groups from whichever end is farther from the mean violates it."""

    def farther_end_first(x, k):
        left = sorted(x.tolist())
        sums = []
        while len(left) >= 2 * k:
            mean = sum(left) / len(left)
            low = mean - left[0] >= left[-1] - mean
            sums.append(sum(left[:k] if low else left[-k:]))
            left = left[k:] if low else left[:-k]
        return np.array([*sums, sum(left)])

    assert largest_change(7, 2, 2, farther_end_first) > 2


def test_integers_beyond_the_reach_of_floats_keep_their_order():
    assert ranking([2**60 + 1, 2**60, 2**60 + 3, 2**60 + 2], 2).labels.tolist() == [0, 0, 1, 1]


def test_refuses_what_it_cannot_rank():
    with pytest.raises(OptionError, match="Did you mean 'middle'"):
        ranking([1, 2, 3], 1, "midle")
    with pytest.raises(InputError, match="row 2"):
        ranking([1.0, np.nan], 1)
    with pytest.raises(InputError, match="numbers"):
        ranking(["a", "b"], 1)
    with pytest.raises(InputError, match="one attribute"):
        ranking([[1, 2]], 1)
    with pytest.raises(OptionError, match="k = 3"):
        ranking([1, 2], 3)
