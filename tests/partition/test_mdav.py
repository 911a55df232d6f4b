"""MDAV: the definition, its ties, and the reference figures of the field."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import InputError, OptionError
from shoal.partition import mdav, normalise
from tests.conftest import examples

from .mdav_oracle import EIA_COLUMNS, naive_mean, real_table, textbook_mdav

small_grid = st.tuples(st.integers(1, 40), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-3, 3).map(float))
)


@settings(max_examples=examples(300), deadline=None)
@given(X=small_grid, k=st.integers(1, 9))
def test_equals_the_textbook_on_tied_integer_grids(X, k):
    k = min(k, len(X))
    assert mdav(X, k).labels.tolist() == textbook_mdav(X, k, naive_mean)


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), d=st.integers(1, 5), k=st.integers(1, 8))
def test_equals_the_textbook_on_floats_of_very_different_size(seed, n, d, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((n, d)) * 10.0 ** rng.integers(-6, 7, (n, d))
    k = min(k, n)
    assert mdav(X, k).labels.tolist() == textbook_mdav(X, k)


@settings(max_examples=examples(100), deadline=None)
@given(X=small_grid, k=st.integers(1, 9))
def test_covers_every_record_with_k_to_2k_minus_1_each_numbered_by_creation(X, k):
    k = min(k, len(X))
    partition = mdav(X, k)
    assert partition.n == len(X)
    assert np.bincount(partition.labels).tolist() == partition.sizes.tolist()
    assert (partition.sizes[:-1] == k).all()
    assert k <= partition.sizes[-1] < 2 * k


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 80), k=st.integers(2, 8))
def test_order_of_rows_does_not_matter_without_ties(seed, n, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    order = rng.permutation(n)
    k = min(k, n)
    assert mdav(X[order], k).labels.tolist() == mdav(X, k).labels[order].tolist()


def test_pole_stays_in_its_own_cluster_among_duplicates():
    # Record 3 repeats 0, 1 and 2; the far pair is found first, then the lowest index leads.
    assert mdav([[0.0]] * 6, 2).labels.tolist() == textbook_mdav(np.zeros((6, 1)), 2) == [0, 0, 1, 1, 2, 2]


def test_second_pole_is_sought_after_the_first_cluster_left():
    X = np.ones((9, 2))
    assert mdav(X, 3).labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("n", "sizes"), [(5, [5]), (6, [3, 3]), (8, [3, 5]), (14, [3, 3, 3, 5])])
def test_number_of_clusters_at_the_borders(n, sizes):
    assert mdav(np.arange(n) ** 2.0, 3).sizes.tolist() == sizes


def test_k_1_leaves_everyone_alone():
    assert (mdav(np.arange(12.0) % 4, 1).sizes == 1).all()


@pytest.mark.parametrize("table", ["census", "eia"])
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_information_loss_of_the_reference_tables(table, k):
    printed = {
        "census": {3: 5.6922, 4: 7.4947, 5: 9.0884, 10: 14.1559},
        "eia": {3: 0.4829, 4: 0.6713, 5: 1.6667, 10: 3.8397},
    }
    X = real_table("census.csv") if table == "census" else real_table("eia.csv", EIA_COLUMNS)
    Z = normalise(X, "zscore")
    partition = mdav(Z, k)
    within = ((Z - partition.centroids(Z)[partition.labels]) ** 2).sum()
    total = ((Z - Z.mean(axis=0)) ** 2).sum()
    assert round(100 * within / total, 4) == printed[table][k]


def test_input_is_not_changed():
    X = np.random.default_rng(1).normal(size=(50, 3))
    before = X.copy()
    mdav(X, 3)
    assert np.array_equal(X, before)


def test_progress_counts_up_to_all_records():
    calls: list[tuple[int, int]] = []
    mdav(np.arange(50.0), 5, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1] == (50, 50)


@pytest.mark.parametrize("k", [0, -1, 1.5, 11, True])
def test_refuses_a_useless_k(k):
    with pytest.raises(OptionError, match="k"):
        mdav(np.arange(10.0), k)


def test_refuses_an_unknown_algorithm_and_hints_at_a_known_one():
    with pytest.raises(OptionError, match="Did you mean 'numpy'"):
        mdav(np.arange(10.0), 2, algorithm="numpi")


@pytest.mark.parametrize("bad", [[[1.0, np.nan]], [[np.inf, 1.0]], [[1e151]], [[]], [], np.zeros((2, 2, 2))])
def test_refuses_tables_without_numbers(bad):
    with pytest.raises(InputError):
        mdav(bad, 1)
