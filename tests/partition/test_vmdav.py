"""Variable-size MDAV against a literal reading of its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import OptionError
from shoal.partition import vmdav
from tests.conftest import examples

from .mdav_oracle import exact_mean, squared_distance

small_grid = st.tuples(st.integers(1, 30), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float))
)


def slow_vmdav(X: np.ndarray, k: int, gamma: float) -> list[int]:
    rows = [[float(value) for value in row] for row in X]
    centre = exact_mean(rows)
    free = list(range(len(rows)))
    clusters: list[list[int]] = []

    def square(a: int, b: int) -> float:
        return squared_distance(rows[a], rows[b])

    while len(free) >= k:
        pole = max(free, key=lambda i: (squared_distance(rows[i], centre), -i))
        free.remove(pole)
        members = [pole]
        for i in sorted(free, key=lambda i: (squared_distance(rows[i], rows[pole]), i))[: k - 1]:
            members.append(i)
            free.remove(i)
        while free and len(members) < 2 * k - 1:
            within, candidate = min((min(square(i, j) for j in members), i) for i in free)
            outside = min((square(candidate, i) for i in free if i != candidate), default=math.inf)
            if not math.sqrt(within) < gamma * math.sqrt(outside):
                break
            members.append(candidate)
            free.remove(candidate)
        clusters.append(members)
    means = [list(np.array([rows[i] for i in sorted(members)]).mean(axis=0)) for members in clusters]
    for i in free:
        nearest = min(range(len(clusters)), key=lambda c: (squared_distance(means[c], rows[i]), c))
        clusters[nearest].append(i)
    labels = [-1] * len(rows)
    for number, members in enumerate(clusters):
        for i in members:
            labels[i] = number
    return labels


@settings(max_examples=examples(300), deadline=None)
@given(X=small_grid, k=st.integers(1, 6), gamma=st.sampled_from([0.0, 0.2, 1.0, 1.1, 3.0]))
def test_equals_the_literal_definition_on_tied_grids(X, k, gamma):
    k = min(k, len(X))
    assert vmdav(X, k, gamma).labels.tolist() == slow_vmdav(X, k, gamma)


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), k=st.integers(1, 6))
def test_equals_the_literal_definition_on_floats(seed, n, k):
    X = np.random.default_rng(seed).normal(size=(n, 2)).round(1)
    k = min(k, n)
    assert vmdav(X, k, 1.1).labels.tolist() == slow_vmdav(X, k, 1.1)


def test_clusters_follow_natural_groups_that_fixed_sizes_would_split():
    X = np.concatenate([np.linspace(0, 1, 5), np.linspace(100, 101, 5), np.linspace(300, 301, 5)])
    labels = vmdav(X, 3, 1.1).labels
    assert sorted(set(map(tuple, labels.reshape(3, 5).tolist()))) == [(0,) * 5, (1,) * 5, (2,) * 5]


def test_gain_factor_0_keeps_clusters_at_k():
    sizes = vmdav(np.random.default_rng(3).normal(size=(60, 2)), 5, 0.0).sizes
    assert (sizes == 5).all()


@pytest.mark.parametrize("gamma", [-0.1, float("nan"), float("inf")])
def test_refuses_a_useless_gain_factor(gamma):
    with pytest.raises(OptionError, match="gamma"):
        vmdav([1.0, 2.0], 1, gamma)
