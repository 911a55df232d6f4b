"""Noisy statistics become possible ones, eigen form and summaries included."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import OptionError
from shoal.mechanisms.moments.sampling import ClusterStatistics, make_possible, possible, variance_caps
from shoal.mechanisms.moments.spectra import Spectrum, entries_of_slices, slices, symmetric
from shoal.mechanisms.moments.statistics import MomentSummary
from shoal.noise import Seeded


def noisy(summary: MomentSummary, clusters: int = 300) -> ClusterStatistics:
    """Statistics full of impossible values."""
    rng = np.random.default_rng(summary.attributes)
    entries = rng.normal(0, 0.3, (clusters, summary.covariances))
    return ClusterStatistics(
        rng.normal(0.5, 1, (clusters, summary.attributes)),
        symmetric(entries, summary.covariance_entries, summary.attributes) if summary.order else None,
        rng.normal(0, 0.2, (clusters, summary.coskewnesses)) if summary.order == 2 else None,
    )


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("covariance", ["all", "variances"])
@pytest.mark.parametrize("attributes", [1, 2, 4])
def test_everything_impossible_is_repaired_and_counted(order: int, covariance: str, attributes: int) -> None:
    summary = MomentSummary(attributes, order, covariance)
    sizes = np.random.default_rng(1).integers(3, 9, 300)
    before = noisy(summary)
    found = make_possible(before, sizes, summary, clip=True)
    after = found.statistics
    assert after.means.min() >= 0
    assert after.means.max() <= 1
    assert found.repairs["means outside the domain"] == ((before.means < 0) | (before.means > 1)).sum()
    if order == 0:
        assert found.shape is None
        assert after.covariances is None
        return
    assert before.covariances is not None
    assert after.covariances is not None
    assert found.shape is not None
    raw = np.diagonal(before.covariances, axis1=1, axis2=2)
    caps = variance_caps(sizes)[:, np.newaxis]
    kept = np.diagonal(after.covariances, axis1=1, axis2=2)
    # variances are only clipped, whatever happens to correlations
    assert np.allclose(kept, np.clip(raw, 0, caps), atol=1e-12)
    assert found.repairs["variances below 0"] == (raw < 0).sum()
    assert found.repairs["variances above the largest possible"] == (raw > caps).sum()
    assert possible(after.covariances).all()
    assert ("covariance matrices that are none" in found.repairs) is (covariance == "all" and attributes > 1)
    if order == 2:
        assert found.shape.skewness is not None
        assert np.abs(found.shape.skewness).max() <= 0.995
        assert found.repairs["skewness beyond 0.995"] > 0
        # published ones are only held to what so many records can have
        assert before.coskewnesses is not None
        assert after.coskewnesses is not None
        largest = np.sqrt(sizes)[:, np.newaxis] * kept**1.5
        assert np.allclose(after.coskewnesses, np.clip(before.coskewnesses, -largest, largest), atol=1e-12)
        outside = np.abs(before.coskewnesses) > largest
        assert found.repairs["skewness above the largest possible"] == outside.sum() > 0
        assert (
            found.repairs["skewness beyond 0.995"] <= (np.abs(before.coskewnesses) > 0.99 * kept**1.5).sum()
        )


def test_possible_statistics_are_left_alone() -> None:
    summary = MomentSummary(2, 2)
    good = ClusterStatistics(
        np.array([[0.2, 0.9]]), np.array([[[0.04, 0.01], [0.01, 0.02]]]), np.array([[0.002, -0.001]])
    )
    found = make_possible(good, np.array([50]), summary, clip=True)
    assert set(found.repairs.values()) == {0}
    assert np.array_equal(found.statistics.means, good.means)
    assert found.statistics.covariances is not None
    assert good.covariances is not None
    assert np.allclose(found.statistics.covariances, good.covariances, atol=1e-15)
    assert found.statistics.coskewnesses is not None
    assert good.coskewnesses is not None
    assert np.allclose(found.statistics.coskewnesses, good.coskewnesses, atol=1e-15)


def test_without_clipping_means_stay_outside() -> None:
    found = make_possible(ClusterStatistics(np.array([[-3.0]])), np.array([5]), MomentSummary(1), clip=False)
    assert found.statistics.means.tolist() == [[-3.0]]
    assert found.repairs == {}


def test_a_spectrum_gives_its_matrix_back_whatever_the_signs() -> None:
    rng = np.random.default_rng(2)
    half = rng.normal(size=(50, 4, 4))
    matrices = half @ half.transpose(0, 2, 1)
    spectrum = Spectrum.of(matrices)
    assert (np.diff(spectrum.values, axis=1) <= 0).all()
    signed = spectrum.randomly_signed(Seeded(1))
    flipped = (signed.vectors * spectrum.vectors).sum(axis=1)
    assert np.allclose(np.abs(flipped), 1)
    # 200 fair coins: outside this range once in 10^9
    assert 55 <= (flipped < 0).sum() <= 145
    assert np.allclose(signed.matrices(), matrices)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_noisy_eigenvectors_become_the_nearest_orthogonal_ones(scale: float) -> None:
    """Against singular values, with vectors that are 0 or nearly the same among them."""
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(2_000, 4, 4)) * scale
    vectors[:20] = 0.0
    vectors[20:40, :, 0] = vectors[20:40, :, 1] * (1 + 1e-9)
    values = rng.random((2_000, 4))
    left, _, right = np.linalg.svd(vectors)
    orthogonal = left @ right
    expected = np.einsum("nik,nk,njk->nij", orthogonal, values, orthogonal)
    assert np.allclose(Spectrum(values, vectors).matrices(), expected, atol=1e-7)


def test_matrices_from_eigenvalues_keep_their_correlations_when_variances_are_capped() -> None:
    """Such a matrix is a covariance matrix already; as coefficients the same matrix is repaired."""
    whole = np.array([[[0.9, 0.3, 0.3], [0.3, 0.2, 0.02], [0.3, 0.02, 0.2]]])
    assert possible(whole).all()
    sizes, noisy_ones = np.array([50]), ClusterStatistics(np.array([[0.5, 0.5, 0.5]]), whole)
    found = make_possible(noisy_ones, sizes, MomentSummary(3, 1, form="eigen"), clip=True)
    assert found.shape is not None
    assert found.shape.correlation is not None
    assert np.allclose(found.shape.correlation[0, 0, 1], 0.3 / np.sqrt(0.9 * 0.2))
    assert found.repairs["variances above the largest possible"] == 1
    assert found.repairs["covariance matrices that are none"] == 0
    assert np.allclose(found.statistics.covariances[0, 0, 0], variance_caps(sizes)[0])  # type: ignore[index]
    coefficients = make_possible(noisy_ones, sizes, MomentSummary(3, 1), clip=True)
    assert coefficients.repairs["covariance matrices that are none"] == 1


def test_slices_of_a_coskewness_and_back() -> None:
    summary = MomentSummary(3, 2, coskewness="full")
    entries = np.random.default_rng(3).normal(size=(5, summary.coskewnesses))
    arrays = slices(entries, summary.coskewness_entries, 3)
    assert np.array_equal(arrays, arrays.transpose(0, 2, 1, 3))
    assert np.array_equal(arrays, arrays.transpose(0, 3, 2, 1))
    assert np.allclose(entries_of_slices(arrays, summary.coskewness_entries), entries)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 3}, "order must be 0, 1 or 2"),
        ({"covariance": "some"}, "covariance 'some' is not one of all, variances"),
        ({"form": "eigen", "covariance": "variances"}, "eigenvectors need all entries"),
    ],
)
def test_summaries_that_do_not_exist(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        MomentSummary(2, **options)  # type: ignore[arg-type]


def test_numbers_of_statistics() -> None:
    for d in range(1, 6):
        summary = MomentSummary(d, 2, coskewness="full")
        assert summary.covariances == d * (d + 1) // 2
        assert summary.coskewnesses == d * (d + 1) * (d + 2) // 6
        assert (
            MomentSummary(d, 2, "variances").covariances == MomentSummary(d, 2, "variances").coskewnesses == d
        )
