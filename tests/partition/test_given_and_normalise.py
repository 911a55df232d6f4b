"""Labels from the caller, and the scalings before distances."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InputError, OptionError
from shoal.partition import given, normalise


def test_given_accepts_clusters_of_at_least_k():
    assert given([4, 4, 2, 2, 2], k=2).sizes.tolist() == [3, 2]


def test_given_names_the_cluster_that_is_too_small():
    with pytest.raises(InputError, match=r"cluster 4 has 1 records, fewer than k = 2"):
        given([4, 2, 2], k=2)
    with pytest.raises(InputError, match="missing"):
        given([1.0, np.nan])


def test_zscore_has_mean_0_and_population_deviation_1():
    Z = normalise(np.random.default_rng(1).exponential(size=(500, 3)) * [1, 10, 1e6], "zscore")
    assert np.allclose(Z.mean(axis=0), 0)
    assert np.allclose(Z.std(axis=0), 1)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e150 / 7, 5e-324])
def test_zscore_of_a_constant_attribute_is_zero(constant):
    Z = normalise(np.column_stack([np.full(7, constant), np.arange(7)]), "zscore")
    assert (Z[:, 0] == 0).all()


def test_domain_divides_by_public_widths_only():
    X = np.array([[1.0, 50.0], [2.0, 100.0]])
    assert normalise(X, "domain", [4, 200]).tolist() == [[0.25, 0.25], [0.5, 0.5]]
    assert np.array_equal(normalise(X[:1], "domain", [4, 200])[0], normalise(X, "domain", [4, 200])[0])
    assert normalise(X, "none").tolist() == X.tolist()


@pytest.mark.parametrize("widths", [None, [1], [1, 0], [1, -2], [1, np.nan], [[1, 1]]])
def test_domain_refuses_unusable_widths(widths):
    with pytest.raises(OptionError, match="width"):
        normalise([[1.0, 2.0]], "domain", widths)


def test_unknown_scaling_is_refused_with_a_hint():
    with pytest.raises(OptionError, match="Did you mean 'zscore'"):
        normalise([[1.0]], "z-score")
