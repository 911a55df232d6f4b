"""Noisy statistics become possible ones: means, variances and correlations come in, the nearest valid ones leave.

Post-processing: no record is looked at. How often each repair was needed does depend on the records, by way of the
noisy statistics, and is for the internal report.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Eigenvalues above this are zero up to rounding.
NEGATIVE = -1e-9
_TOLERANCE = 1e-8
_MOST_ROUNDS = 60
_LINE_SEARCH = 12


def variance_caps(sizes: Whole) -> Floats:
    """The largest unbiased variance that values in an interval of length 1 can have, for each cluster size.

    Half of the values sit at each end: |C|/(4·(|C|-1)) for an even number of them, (|C|+1)/(4·|C|) for an odd one.

    >>> variance_caps(np.array([2, 3, 4])).tolist()
    [0.5, 0.3333333333333333, 0.3333333333333333]
    """
    return np.where(sizes % 2 == 0, sizes / (4.0 * np.maximum(sizes - 1, 1)), (sizes + 1) / (4.0 * sizes))


def skewness_caps(sizes: Whole) -> Floats:
    """The largest skewness that so many records can have: Fisher's third moment over the cube of the deviation is √|C|.

    Attained by one record apart from all others. In terms of moments with divisor |C| the bound is the well-known
    (|C|-2)/√(|C|-1).

    >>> skewness_caps(np.array([4, 100])).tolist()
    [2.0, 10.0]
    """
    return np.asarray(np.sqrt(sizes))


def correlations(covariances: Floats) -> Floats:
    """Correlation matrices of noisy covariance matrices: entries in [-1, 1], 0 beside a variance of 0."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    outer = deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :]
    found = np.zeros_like(covariances)
    np.divide(covariances, outer, out=found, where=outer > 0)
    np.clip(found, -1.0, 1.0, out=found)
    diagonal = np.arange(covariances.shape[1])
    found[:, diagonal, diagonal] = 1.0
    return found


def possible(matrices: Floats) -> NDArray[np.bool_]:
    """Whether each symmetric matrix has no negative eigenvalue, up to rounding."""
    return np.linalg.eigvalsh(matrices)[:, 0] >= NEGATIVE


def nearest_correlations(matrices: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The nearest correlation matrices, in Frobenius norm, to symmetric ones with unit diagonal; and which were moved.

    Newton's method on the dual problem, all matrices at once: find y such that the positive part of A + diag(y) has
    a unit diagonal. It needs a handful of rounds where alternating projections need hundreds.

    Cost:
        A few eigendecompositions of each matrix that is not a correlation matrix already.

    Reference:
        Qi and Sun, "A quadratically convergent Newton method for computing the nearest correlation matrix"; named
        by the cross-moment paper, section 5.2.

    >>> far = np.array([[[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]])
    >>> near, moved = nearest_correlations(far)
    >>> moved.tolist(), near[0].round(6).tolist()
    ([True], [[1.0, 0.5, -0.5], [0.5, 1.0, 0.5], [-0.5, 0.5, 1.0]])
    """
    found = np.linalg.eigh(matrices)
    moved = found.eigenvalues[:, 0] < NEGATIVE
    repaired = matrices.copy()
    if moved.any():
        repaired[moved] = _newton(matrices[moved], found.eigenvalues[moved], found.eigenvectors[moved])
    return repaired, moved


def _newton(matrices: Floats, values: Floats, vectors: Floats) -> Floats:
    """The repaired matrices; `values` and `vectors` are eigenvalues and eigenvectors of the given ones."""
    shift = np.zeros(values.shape)
    residual = _diagonal(values, vectors) - 1.0
    active = np.arange(len(matrices))
    for _ in range(_MOST_ROUNDS):
        active = active[np.abs(residual[active]).max(axis=1) > _TOLERANCE]
        if not active.size:
            break
        step = _newton_step(values[active], vectors[active], residual[active])
        value = _dual(values[active], shift[active])
        slope = (residual[active] * step).sum(axis=1)
        length = np.ones(active.size)
        pending = np.arange(active.size)
        for _ in range(_LINE_SEARCH):
            tried = shift[active[pending]] + length[pending, np.newaxis] * step[pending]
            found_values, found_vectors = _decomposed(matrices[active[pending]], tried)
            lower = (
                _dual(found_values, tried) <= value[pending] + 1e-4 * length[pending] * slope[pending] + 1e-12
            )
            places = active[pending[lower]]
            shift[places], values[places], vectors[places] = (
                tried[lower],
                found_values[lower],
                found_vectors[lower],
            )
            pending = pending[~lower]
            if not pending.size:
                break
            length[pending] /= 2
        residual[active] = _diagonal(values[active], vectors[active]) - 1.0
    return _unit_diagonal(values, vectors)


def _decomposed(matrices: Floats, shift: Floats) -> tuple[Floats, Floats]:
    shifted = matrices.copy()
    diagonal = np.arange(shift.shape[1])
    shifted[:, diagonal, diagonal] += shift
    found = np.linalg.eigh(shifted)
    return found.eigenvalues, found.eigenvectors


def _dual(values: Floats, shift: Floats) -> Floats:
    """The convex function whose gradient is the diagonal of the positive part minus 1."""
    return np.asarray(0.5 * (np.maximum(values, 0.0) ** 2).sum(axis=1) - shift.sum(axis=1))


def _diagonal(values: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.einsum("nik,nk->ni", vectors**2, np.maximum(values, 0.0)))


def _newton_step(values: Floats, vectors: Floats, residual: Floats) -> Floats:
    """Solve the generalised Jacobian of the diagonal of the positive part, which is formed: matrices are small."""
    positive = np.maximum(values, 0.0)
    size = values.shape[1]
    # the sum over all pairs of eigenvectors is symmetric: every pair once, two different ones count twice
    one, two = np.triu_indices(size)
    apart = values[:, one] - values[:, two]
    same = np.abs(apart) < 1e-14
    quotient = (positive[:, one] - positive[:, two]) / np.where(same, 1.0, apart)
    weights = np.where(same, (values[:, one] > 0) & (values[:, two] > 0), quotient) * np.where(
        one == two, 1.0, 2.0
    )
    products = vectors[:, :, one] * vectors[:, :, two]
    jacobian = (products * weights[:, np.newaxis, :]) @ products.transpose(0, 2, 1)
    diagonal = np.arange(size)
    # a singular Jacobian gets a push that vanishes with the residual
    jacobian[:, diagonal, diagonal] += (
        np.minimum(1e-3, np.abs(residual).max(axis=1) * 1e-3)[:, np.newaxis] + 1e-12
    )
    return np.asarray(-np.linalg.solve(jacobian, residual[:, :, np.newaxis])[:, :, 0], dtype=np.float64)


def _unit_diagonal(values: Floats, vectors: Floats) -> Floats:
    """The positive part, scaled so that its diagonal is 1 to the last digit."""
    positive = np.einsum("nik,nk,njk->nij", vectors, np.maximum(values, 0.0), vectors)
    deviations = np.sqrt(np.maximum(np.diagonal(positive, axis1=1, axis2=2), 1e-300))
    scaled = positive / (deviations[:, :, np.newaxis] * deviations[:, np.newaxis, :])
    diagonal = np.arange(scaled.shape[1])
    scaled[:, diagonal, diagonal] = 1.0
    return np.asarray((scaled + scaled.transpose(0, 2, 1)) / 2)
