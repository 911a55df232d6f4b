"""Nearest correlation matrices against statsmodels and against optimality, and the largest possible variances."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.mechanisms.moments.sampling import (
    correlations,
    nearest_correlations,
    possible,
    skewness_caps,
    variance_caps,
)

from . import exact_oracle as oracle

Floats = NDArray[np.float64]


def symmetric(rng: np.random.Generator, count: int, size: int, spread: float) -> Floats:
    """Matrices with unit diagonal and entries in [-1, 1], most of them no correlation matrices."""
    upper = np.triu(np.clip(rng.normal(0, spread, (count, size, size)), -1, 1), 1)
    return upper + upper.transpose(0, 2, 1) + np.eye(size)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 12])
@pytest.mark.parametrize("spread", [0.3, 1.0, 100.0])
def test_repaired_matrices_are_correlation_matrices(size: int, spread: float) -> None:
    """Entries of ±1 only (spread 100) are the hardest: whole blocks want to be singular."""
    matrices = symmetric(np.random.default_rng(size), 200, size, spread)
    repaired, moved = nearest_correlations(matrices)
    assert possible(repaired).all()
    assert np.array_equal(np.diagonal(repaired, axis1=1, axis2=2), np.ones((200, size)))
    assert np.array_equal(repaired, repaired.transpose(0, 2, 1))
    assert np.array_equal(repaired[~moved], matrices[~moved])
    assert np.array_equal(moved, ~possible(matrices))


@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("spread", [0.6, 100.0])
def test_no_correlation_matrix_is_nearer(size: int, spread: float) -> None:
    """Optimality: the gradient A - X makes an obtuse angle with every direction to another correlation matrix."""
    rng = np.random.default_rng(10 + size)
    matrices = symmetric(rng, 100, size, spread)
    repaired, _ = nearest_correlations(matrices)
    factors = rng.normal(size=(400, size, rng.integers(1, size + 1)))
    factors /= np.linalg.norm(factors, axis=2, keepdims=True)
    others = factors @ factors.transpose(0, 2, 1)
    slopes = np.einsum("aij,abij->ab", matrices - repaired, others[np.newaxis] - repaired[:, np.newaxis])
    assert slopes.max() <= 1e-6


@pytest.mark.parametrize("size", [3, 4, 6])
def test_statsmodels_finds_the_same(size: int) -> None:
    from statsmodels.stats.correlation_tools import corr_nearest

    matrices = symmetric(np.random.default_rng(size), 15, size, 0.8)
    repaired, moved = nearest_correlations(matrices)
    assert moved.sum() >= 5
    for found, matrix in zip(repaired[moved], matrices[moved], strict=True):
        with warnings.catch_warnings():
            # it goes on until the last digit no longer changes
            warnings.simplefilter("ignore")
            expected = corr_nearest(matrix, threshold=0, n_fact=100)
        assert np.abs(found - expected).max() <= 1e-6


def test_correlations_of_covariances() -> None:
    covariances = np.array([[[4.0, 3.0, 9.0], [3.0, 9.0, 1.0], [9.0, 1.0, 0.0]]])
    assert correlations(covariances).tolist() == [[[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]]
    outside = np.array([[[1.0, -7.0], [-7.0, 1.0]]])
    assert correlations(outside).tolist() == [[[1.0, -1.0], [-1.0, 1.0]]]


@pytest.mark.parametrize("size", range(2, 9))
def test_no_variance_is_larger_than_the_cap(size: int) -> None:
    """Variance is convex: values at the ends of the domain are enough."""
    largest = max(
        oracle.covariance([(value,) for value in values], 0, 0)
        for values in combinations_with_replacement([Fraction(0), Fraction(1)], size)
    )
    assert variance_caps(np.array([size]))[0] == pytest.approx(float(largest), abs=1e-15)


@pytest.mark.parametrize("size", range(3, 9))
def test_no_skewness_is_larger_than_the_cap(size: int) -> None:
    """One record apart attains it exactly; all clusters on a grid of five values stay below."""
    apart = [(Fraction(0),)] * (size - 1) + [(Fraction(1),)]
    third, second = oracle.coskewness(apart, 0, 0, 0), oracle.covariance(apart, 0, 0)
    assert third**2 == size * second**3
    assert skewness_caps(np.array([size]))[0] == pytest.approx(np.sqrt(size), abs=1e-15)
    grid = [Fraction(part, 4) for part in range(5)]
    for values in combinations_with_replacement(grid, size):
        rows = [(value,) for value in values]
        assert oracle.coskewness(rows, 0, 0, 0) ** 2 <= size * oracle.covariance(rows, 0, 0) ** 3
