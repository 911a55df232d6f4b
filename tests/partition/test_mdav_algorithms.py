"""Every way to compute MDAV gives the clusters of the numpy reference, to the last record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.errors import OptionError
from shoal.partition import mdav, nearest, normalise
from tests.conftest import examples

from .mdav_oracle import ADULT_COLUMNS, EIA_COLUMNS, real_table, textbook_mdav

COMPILED = ["brute", "tree"]

tied_grid = st.tuples(st.integers(1, 90), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2).map(float))
)


def random_case(seed: int) -> tuple[np.ndarray, int]:
    """A table of one of many shapes, most of them full of ties."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 1, 2, 3, 4, 5, 7, 10, 13]))
    k = int(rng.choice([1, 2, 3, 5, 10, 40]))
    n = int(rng.choice([k, 2 * k - 1, 2 * k, 3 * k - 1, 3 * k, 5 * k, int(rng.integers(k, 40 * k + 200))]))
    shape = seed % 8
    if shape == 0:
        X = rng.integers(0, 2, (n, d)).astype(float)
    elif shape == 1:
        X = rng.integers(-5, 6, (n, d)) * 0.1
    elif shape == 2:
        X = rng.normal(size=(n, d))[rng.integers(0, max(1, n // 4), n)]
    elif shape == 3:
        X = np.full((n, d), rng.normal())
    elif shape == 4:
        X = rng.standard_cauchy((n, d))
    elif shape == 5:
        X = rng.normal(size=(n, d)) * (rng.random(d) < 0.5)
    elif shape == 6:
        X = 1e9 + rng.integers(0, 4, (n, d)).astype(float)
    else:
        angles = 2 * np.pi * rng.integers(0, 12, n) / 12
        X = np.column_stack([np.round(np.cos(angles), 3), np.round(np.sin(angles), 3)])
    return X, k


def assert_all_equal_the_reference(X, k, case=""):
    expected = mdav(X, k, algorithm="numpy").labels
    for algorithm in COMPILED:
        assert np.array_equal(mdav(X, k, algorithm=algorithm).labels, expected), f"{algorithm} {case}"


@pytest.mark.parametrize("block", range(examples(12)))
def test_sweep_of_tied_tables(block):
    for seed in range(200 * block, 200 * (block + 1)):
        assert_all_equal_the_reference(*random_case(seed), f"case {seed}")


@settings(max_examples=examples(200), deadline=None)
@given(X=tied_grid, k=st.integers(1, 12))
def test_equals_the_textbook_on_tied_grids(X, k):
    k = min(k, len(X))
    expected = textbook_mdav(X, k)
    for algorithm in COMPILED:
        assert mdav(X, k, algorithm=algorithm).labels.tolist() == expected, algorithm


@pytest.mark.parametrize("table", ["census", "eia", "adult"])
def test_real_tables(table):
    X, k = {
        "census": lambda: (real_table("census.csv"), 3),
        "eia": lambda: (real_table("eia.csv", EIA_COLUMNS), 5),
        "adult": lambda: (real_table("adult.csv", ADULT_COLUMNS), 25),
    }[table]()
    assert_all_equal_the_reference(normalise(X, "zscore"), k)


@pytest.mark.parametrize("d", [1, 2, 4, 5, 11])
def test_tables_of_several_tree_levels(d):
    rng = np.random.default_rng(d)
    X = np.round(rng.standard_t(3, size=(9000, d)), 1)
    assert_all_equal_the_reference(X, 20)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_number_of_threads_does_not_matter(threads, monkeypatch):
    monkeypatch.setattr(nearest, "VALUES_PER_THREAD", 1)
    for seed in range(40):
        X, k = random_case(seed)
        expected = mdav(X, k, algorithm="numpy").labels
        assert np.array_equal(mdav(X, k, algorithm="brute", threads=threads).labels, expected)


def test_tree_that_gives_up_continues_with_the_same_clusters(monkeypatch):
    handed_over = []
    scanning = nearest.mdav_brute

    def spy(X, k, threads, progress, labels):
        handed_over.append(int((labels < 0).sum()))
        return scanning(X, k, threads, progress, labels)

    monkeypatch.setattr(nearest, "mdav_brute", spy)
    X = np.random.default_rng(5).normal(size=(6000, 30))
    labels = nearest.mdav_tree(X, 10, scan_threads=1)
    assert 0 < handed_over[0] < 6000
    assert np.array_equal(labels, mdav(X, 10, algorithm="numpy").labels)


def test_automatic_choice_starts_small_tables_in_numpy_and_high_dimension_by_scanning():
    from shoal.partition.multivariate import _choice

    assert _choice(500, 4, 5) == "numpy"
    assert _choice(100_000, 4, 5) == "tree"
    assert _choice(100_000, 60, 5) == "brute"


@pytest.mark.parametrize("algorithm", ["numpy", *COMPILED])
def test_progress_is_called_between_bounded_pieces_of_work_and_may_stop_it(algorithm, monkeypatch):
    monkeypatch.setattr(nearest, "BREATH", 1e-4)
    X = np.random.default_rng(1).normal(size=(5000, 3))
    calls: list[tuple[int, int]] = []
    mdav(X, 5, algorithm=algorithm, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) > 10
    assert calls == sorted(calls)
    assert calls[-1] == (5000, 5000)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdav(X, 5, algorithm=algorithm, progress=interrupt)


def test_wrong_ties_would_be_noticed():
    """The sweep can fail: labels of a table whose rows are reversed are not the reversed labels."""
    differing = 0
    for seed in range(40):
        X, k = random_case(seed)
        reverse = mdav(X[::-1], k, algorithm="tree").labels[::-1]
        differing += not np.array_equal(reverse, mdav(X, k, algorithm="numpy").labels)
    assert differing > 10


def test_refuses_no_threads():
    with pytest.raises(OptionError, match="threads"):
        mdav([1.0, 2.0], 1, threads=0)
