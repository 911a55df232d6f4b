"""How far one record moves a moment: exact search over all small worlds, and search for violations in large ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from papers.cross_moment.printed_bounds import (
    coskewness_change_as_printed,
    eigenvector_changes_as_printed,
)
from shoal.mechanisms.moments.spectra import Spectrum
from shoal.mechanisms.moments.statistics import (
    coskewness_change,
    coskewness_factors,
    covariance_change,
    eigengaps,
    eigenvalues_change,
    eigenvector_changes,
    mean_change,
    spectral_change,
)

from . import exact_oracle as oracle

SIZES = range(3, 9)
Floats = NDArray[np.float64]


def widest(
    size: int, statistic: Callable[[Sequence[oracle.Row]], Fraction], values: list[Fraction], attributes: int
) -> Fraction:
    """The largest change of a statistic when one record is replaced, over all clusters with these values."""
    corners = list(product(values, repeat=attributes))
    largest = Fraction(0)
    for others in combinations_with_replacement(corners, size - 1):
        found = [statistic([*others, own]) for own in corners]
        largest = max(largest, max(found) - min(found))
    return largest


ENDS = [Fraction(0), Fraction(1)]


@pytest.mark.parametrize("size", range(2, 9))
def test_mean_and_covariance_by_exact_search(size: int) -> None:
    """Different attributes: affine in every coordinate, so that corners of the domain are enough."""
    assert widest(size, lambda rows: oracle.mean(rows, 0), ENDS, 1) == mean_change(size)
    if size <= 6:
        assert widest(size, lambda rows: oracle.covariance(rows, 0, 1), ENDS, 2) == covariance_change(size)


@pytest.mark.parametrize("size", range(2, 9))
def test_variance_by_exact_search(size: int) -> None:
    """i = j: quadratic, so that inner values are tried too."""
    inner = [Fraction(part, 4) for part in range(5)]
    assert widest(size, lambda rows: oracle.covariance(rows, 0, 0), inner, 1) == covariance_change(size)


@pytest.mark.parametrize("size", range(3, 6))
def test_coskewness_of_different_attributes_by_exact_search(size: int) -> None:
    """Affine in every coordinate: the exact answer, which clusters of 3 double."""
    assert widest(size, lambda rows: oracle.coskewness(rows, 0, 1, 2), ENDS, 3) == coskewness_change(size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 7])
def test_coskewness_of_different_attributes_by_exact_search_of_larger_clusters(size: int) -> None:
    assert widest(size, lambda rows: oracle.coskewness(rows, 0, 1, 2), ENDS, 3) == coskewness_change(size)


@pytest.mark.parametrize("size", SIZES)
def test_marginal_coskewness_by_exact_search(size: int) -> None:
    """i = j = l: cubic, so that inner values are tried too."""
    inner = [Fraction(part, 6) for part in range(7)] if size < 6 else [Fraction(part, 3) for part in range(4)]
    assert widest(size, lambda rows: oracle.coskewness(rows, 0, 0, 0), inner, 1) <= coskewness_change(size)


@pytest.mark.parametrize("size", [3, 4])
def test_coskewness_with_two_equal_attributes_by_exact_search(size: int) -> None:
    """i = j ≠ l."""
    inner = [Fraction(0), Fraction(1, 2), Fraction(1)]
    assert widest(size, lambda rows: oracle.coskewness(rows, 0, 0, 1), inner, 2) <= coskewness_change(size)


def test_the_printed_coskewness_bound_is_violated_by_three_records() -> None:
    """Two records at the two ends, the third moves from one end to the other."""
    low = oracle.coskewness([(0,), (1,), (0,)], 0, 0, 0)
    high = oracle.coskewness([(0,), (1,), (1,)], 0, 0, 0)
    assert abs(high - low) == Fraction(2, 3) == coskewness_change(3)
    assert abs(high - low) == 2 * coskewness_change_as_printed(3)
    assert coskewness_factors(np.array([3, 4, 5])).tolist() == [2, 1, 1]


# ------------------------------------------------------------------ random and hill-climbing search


def covariances(rows: Floats) -> Floats:
    """Unbiased covariance matrices of many clusters at once, shape (tries, records, attributes) in."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.einsum("tni,tnj->tij", centred, centred) / (rows.shape[1] - 1)


def coskewnesses(rows: Floats) -> Floats:
    size = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    return np.einsum("tni,tnj,tnl->tijl", centred, centred, centred) * size / ((size - 1) * (size - 2))


def clusters(rng: np.random.Generator, tries: int, size: int, attributes: int) -> Floats:
    """Clusters of all sorts: spread out, at the ends, close together, on a line."""
    kind = rng.integers(0, 4, (tries, 1, 1))
    spread = rng.random((tries, size, attributes))
    ends = rng.integers(0, 2, (tries, size, attributes)).astype(np.float64)
    close = np.clip(rng.random((tries, 1, attributes)) + rng.normal(0, 0.02, (tries, size, attributes)), 0, 1)
    line = np.clip(rng.random((tries, size, 1)) + rng.normal(0, 0.01, (tries, size, attributes)), 0, 1)
    return np.choose(kind, [spread, ends, close, line])


def neighbours(rng: np.random.Generator, rows: Floats) -> Floats:
    """One record replaced, by a corner of the domain or by anything."""
    tries, _, attributes = rows.shape
    corner = rng.integers(0, 2, (tries, attributes)).astype(np.float64)
    own = np.where(rng.random((tries, 1)) < 0.6, corner, rng.random((tries, attributes)))
    changed = rows.copy()
    changed[:, 0] = own
    return changed


def climbed(
    rng: np.random.Generator,
    size: int,
    attributes: int,
    change: Callable[[Floats, Floats], Floats],
    tries: int = 64,
) -> float:
    """The largest change that hill climbing finds from many random pairs."""
    pair = np.stack([clusters(rng, tries, size, attributes)] * 2)
    pair[1] = neighbours(rng, pair[0])
    best = change(*pair)
    width = 0.5
    for _ in range(400):
        moved = pair + rng.normal(0, width, pair.shape) * (rng.random(pair.shape) < 0.3)
        moved = np.clip(moved, 0, 1)
        moved[1][:, 1:] = moved[0][:, 1:]
        found = change(*moved)
        better = found > best
        pair[:, better], best = moved[:, better], np.maximum(best, found)
        width = max(width * 0.99, 0.01)
    return float(best.max())


@pytest.mark.parametrize("size", SIZES)
def test_hill_climbing_finds_no_larger_change(size: int) -> None:
    """All entries at once, i = j and i = j = l among them; what it finds is close to the bound, so it can find."""
    rng = np.random.default_rng(size)
    second = climbed(rng, size, 2, lambda x, y: np.abs(covariances(x) - covariances(y)).max(axis=(1, 2)))
    third = climbed(rng, size, 3, lambda x, y: np.abs(coskewnesses(x) - coskewnesses(y)).max(axis=(1, 2, 3)))
    assert 0.95 * float(covariance_change(size)) < second <= float(covariance_change(size)) + 1e-12
    assert 0.9 * float(coskewness_change(size)) < third <= float(coskewness_change(size)) + 1e-12


# per proposition, cluster size and number of attributes; the slow runs are the thorough ones
FEW, MANY = 4_000, 100_000
some_and_many = pytest.mark.parametrize("tries", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
# a bound that is reached is missed by rounding
ONE = 1 + 1e-9


@some_and_many
@pytest.mark.parametrize("size", [*SIZES, 20])
@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_search_finds_no_entry_that_moves_further(size: int, attributes: int, tries: int) -> None:
    """Propositions 5, 6 and 8, the last one corrected."""
    rng = np.random.default_rng(100 * size + attributes)
    x = clusters(rng, tries, size, attributes)
    y = neighbours(rng, x)
    slack = 1e-12
    assert np.abs(x.mean(axis=1) - y.mean(axis=1)).max() <= float(mean_change(size)) + slack
    assert np.abs(covariances(x) - covariances(y)).max() <= float(covariance_change(size)) + slack
    assert np.abs(coskewnesses(x) - coskewnesses(y)).max() <= float(coskewness_change(size)) + slack


# ------------------------------------------------------------------ eigenvalues and eigenvectors


def worst_ratios(
    x: Floats, y: Floats, entry_change: Floats, bounds: Callable[[Floats, Floats], Floats]
) -> tuple[float, float, float]:
    """Largest found change over bound: all eigenvalues together, one eigenvalue, an eigenvector with coupled sign."""
    attributes = x.shape[1]
    before, after = Spectrum.of(x), Spectrum.of(y)
    moved = np.abs(before.values - after.values)
    aligned = np.where((before.vectors * after.vectors).sum(axis=1) < 0, -1.0, 1.0)
    vectors = np.abs(before.vectors - after.vectors * aligned[:, np.newaxis, :]).sum(axis=1)
    allowed = bounds(before.values, entry_change)
    some = allowed > 0
    return (
        float((moved.sum(axis=1) / eigenvalues_change(attributes, entry_change)).max()),
        float((moved.max(axis=1) / spectral_change(attributes, entry_change)).max()),
        float((vectors[some] / allowed[some]).max()) if some.any() else 0.0,
    )


@some_and_many
@pytest.mark.parametrize("size", [*SIZES, 20])
@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
def test_search_finds_no_spectrum_of_a_covariance_that_moves_further(
    size: int, attributes: int, tries: int
) -> None:
    """Proposition 9 with the corrected bound on eigenvectors."""
    rng = np.random.default_rng(1000 * size + attributes)
    x = clusters(rng, tries, size, attributes)
    entry = np.full(tries, 1.0 / size)
    assert (
        max(worst_ratios(covariances(x), covariances(neighbours(rng, x)), entry, eigenvector_changes)) <= ONE
    )


@pytest.mark.parametrize("attributes", [2, 4])
def test_search_finds_no_spectrum_of_a_large_cluster_that_moves_further(attributes: int) -> None:
    """200 records: the gaps matter, since one record moves little."""
    rng = np.random.default_rng(attributes)
    x = clusters(rng, 1_000, 200, attributes)
    entry = np.full(1_000, 1.0 / 200)
    assert (
        max(worst_ratios(covariances(x), covariances(neighbours(rng, x)), entry, eigenvector_changes)) <= ONE
    )


@some_and_many
@pytest.mark.parametrize("size", [*SIZES, 20])
@pytest.mark.parametrize("attributes", [2, 3])
def test_search_finds_no_spectrum_of_a_coskewness_slice_that_moves_further(
    size: int, attributes: int, tries: int
) -> None:
    """Proposition 10 with the corrected bounds."""
    rng = np.random.default_rng(2000 * size + attributes)
    x = clusters(rng, tries, size, attributes)
    before, after = coskewnesses(x), coskewnesses(neighbours(rng, x))
    entry = np.full(tries, float(coskewness_change(size)))
    for place in range(attributes):
        assert max(worst_ratios(before[:, place], after[:, place], entry, eigenvector_changes)) <= ONE


def test_search_would_find_the_printed_bound_of_clusters_of_three() -> None:
    """The search is not blind: it exceeds the printed 1/3 (Proposition 8) within a few thousand tries."""
    rng = np.random.default_rng(4)
    x = clusters(rng, FEW, 3, 1)
    moved = np.abs(coskewnesses(x) - coskewnesses(neighbours(rng, x))).max()
    assert moved > 1.9 * float(coskewness_change_as_printed(3))


def test_the_printed_eigenvector_bound_is_violated_with_the_best_of_all_signs() -> None:
    """One record moves from one axis to the other and takes the largest eigenvalue with it."""
    size = 1000
    before = np.zeros((1, size, 2))
    before[0, 1] = 0.95, 0.0
    after = before.copy()
    before[0, 0], after[0, 0] = (1.0, 0.0), (0.0, 1.0)
    entry = np.array([1.0 / size])
    assert (
        worst_ratios(covariances(before), covariances(after), entry, eigenvector_changes_as_printed)[2] > 1.3
    )
    # the corrected bound holds, and is nearly reached
    assert 0.99 < worst_ratios(covariances(before), covariances(after), entry, eigenvector_changes)[2] <= ONE


def as_found(vectors: Floats) -> Floats:
    return vectors


def largest_positive(vectors: Floats) -> Floats:
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, np.newaxis], axis=1)
    return vectors * np.sign(largest)


@pytest.mark.parametrize("convention", [as_found, largest_positive])
def test_no_convention_of_signs_saves_the_printed_bound(convention: Callable[[Floats], Floats]) -> None:
    """A small change turns the whole vector around."""
    rng = np.random.default_rng(3)
    size = 200
    x = clusters(rng, 2_000, size, 2)
    before, after = Spectrum.of(covariances(x)), Spectrum.of(covariances(neighbours(rng, x)))
    moved = np.abs(convention(before.vectors) - convention(after.vectors)).sum(axis=1)
    allowed = eigenvector_changes_as_printed(before.values, np.full(2_000, 1.0 / size))
    assert float((moved / allowed).max()) > 5.0


def test_gaps_and_degenerate_matrices() -> None:
    assert eigengaps(np.array([[0.5, 0.3, 0.2]])).round(12).tolist() == [[0.2, 0.1, 0.1]]
    equal = eigenvector_changes(np.array([[0.2, 0.2]]), np.array([1e-6]))
    assert equal.round(12).tolist() == [[2.0, 2.0]]
    assert eigenvector_changes(np.array([[0.2]]), np.array([0.1])).tolist() == [[0.0]]


@pytest.mark.parametrize("attributes", [1, 2, 5])
def test_entries_that_hardly_move_hardly_move_the_eigenvalues(attributes: int) -> None:
    """The bound of all eigenvalues is tight in its units: in proportion to that of one entry, up to rounding."""
    small, large = (float(eigenvalues_change(attributes, np.array([change]))[0]) for change in (1e-3, 1.0))
    assert large == pytest.approx(attributes**1.5, rel=1e-6)
    assert small == pytest.approx(large / 1000, rel=1e-3)
