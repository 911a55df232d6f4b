"""Definition 12 of the thesis: one record replaced, every cluster differs in at most one record. And what it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.partition import Partition, insensitive, mdav
from shoal.partition.multivariate import CornerAxis, insensitive_mixed, nominal_ends, numeric_ends
from tests.conftest import examples

WAYS = [{"order": "corners"}, {"order": "corners", "corners": "hamming"}, {"order": "single"}]
both_orders = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
Grouping = Callable[[NDArray[np.int64]], Partition]


def largest_change(before: NDArray[np.int64], after: NDArray[np.int64], group: Grouping) -> tuple[int, int]:
    """In how many records the most changed cluster differs, and how many clusters differ at all."""
    one, two = group(before), group(after)
    assert one.sizes.tolist() == two.sizes.tolist()
    changes = []
    for cluster in range(len(one)):
        mine = Counter(map(tuple, before[one.labels == cluster].tolist()))
        theirs = Counter(map(tuple, after[two.labels == cluster].tolist()))
        changes.append((mine - theirs).total())
    return max(changes), sum(change > 0 for change in changes)


@st.composite
def worlds(
    draw: st.DrawFn,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Callable[..., list[CornerAxis]], int]:
    """A mixed table, one with a record replaced, how to measure both, and a k."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    k = draw(st.integers(1, min(n, 9)))
    sizes = rng.choice([2, 3, 4, 20, 10_000], m)
    nominal = rng.random(m) < 0.4
    tables = [rng.integers(0, 5, (2, size)) / 5 for size in sizes]

    def measured(table: NDArray[np.int64]) -> list[CornerAxis]:
        return [
            nominal_ends(column, *tables[j], 0.6)
            if nominal[j]
            else numeric_ends(column, 0, int(sizes[j]) - 1)
            for j, column in enumerate(table.T)
        ]

    before = rng.integers(0, sizes, (n, m))
    after = before.copy()
    after[rng.integers(n)] = rng.integers(0, sizes)
    return before, after, measured, k


@both_orders
@settings(max_examples=examples(150))
@given(world=worlds(), shuffle=st.integers(0, 2**32))
def test_clusters_differ_in_at_most_one_record(
    way: dict[str, str],
    world: tuple[NDArray[np.int64], NDArray[np.int64], Callable[..., list[CornerAxis]], int],
    shuffle: int,
) -> None:
    before, after, measured, k = world
    # where the rows stand must not matter either
    after = np.random.default_rng(shuffle).permutation(after)
    change, _ = largest_change(before, after, lambda table: insensitive_mixed(measured(table), k, **way))
    assert change <= 1


def small_worlds() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """All tables of six records from a domain of 3 x 2, as collections, each with all its neighbours."""
    domain = list(product(range(3), range(2)))
    for records in combinations_with_replacement(domain, 6):
        for number in {records.index(record) for record in records}:
            for other in domain:
                if other != records[number]:
                    yield np.array(records), np.array((*records[:number], other, *records[number + 1 :]))


@both_orders
@pytest.mark.parametrize("k", [2, 3])
def test_all_neighbours_of_a_small_world(way: dict[str, str], k: int) -> None:
    """Every cluster sum moves by at most the width, several move at once, and together by more than one width."""
    cache: dict[bytes, Partition] = {}
    bounds = [(0, 2), (0, 1)]

    def group(table: NDArray[np.int64]) -> Partition:
        key = table.tobytes()
        if key not in cache:
            cache[key] = insensitive(table, k, bounds=bounds, **way)
        return cache[key]

    worst, together, clusters = np.zeros(2), np.zeros(2), 0
    for before, after in small_worlds():
        order = np.lexsort(after.T[::-1])
        after = after[order]
        moved = np.abs(group(before).sums(before) - group(after).sums(after))
        worst = np.maximum(worst, moved.max(axis=0))
        together = np.maximum(together, moved.sum(axis=0))
        clusters = max(clusters, int((moved > 0).any(axis=1).sum()))
    assert worst.tolist() == [2, 1]
    assert (together <= worst * (6 // k)).all()
    assert clusters == 6 // k
    assert (together > worst).any(), "one width for all clusters together would be enough"


def test_mdav_is_not_insensitive() -> None:
    """The test above can fail: with MDAV one replaced record changes half of a cluster."""
    rng = np.random.default_rng(0)
    changes = []
    for _ in range(50):
        before = rng.integers(0, 20, (30, 2))
        after = before.copy()
        after[0] = 19, 19
        changes.append(largest_change(before, after, lambda table: mdav(table, 5))[0])
    assert max(changes) > 1


def test_an_order_that_leaves_ties_open_is_not_insensitive() -> None:
    """Records at equal distance in an order of their own in either table: two clusters differ in two records.

    The total order of the library does not depend on where a record stands, so its clusters stay what they were.
    """
    before = np.array([(0, 1)] * 2 + [(1, 0)] * 2)
    after = np.array([(1, 0)] * 2 + [(0, 1)] * 2)

    def by_row(table: NDArray[np.int64]) -> Partition:
        return Partition.from_labels(np.argsort(np.argsort((table**2).sum(axis=1), kind="stable")) // 2)

    assert largest_change(before, after, by_row)[0] == 2
    group = partial(insensitive, k=2, bounds=[(0, 1)] * 2)
    for way in WAYS:
        assert largest_change(before, after, partial(group, **way)) == (0, 0)


def test_one_replaced_record_can_change_every_cluster() -> None:
    """Why noise for one changed cluster is not enough: the thesis adds noise as if only one centroid moved."""
    before = np.arange(40)[:, np.newaxis]
    after = before.copy()
    after[0] = 39
    change, clusters = largest_change(
        before, after, lambda table: insensitive(table, 4, bounds=[(0, 39)], order="single")
    )
    assert (change, clusters) == (1, 10)
