"""The eigen form: symmetric matrices come in, eigenvalues and randomly signed eigenvectors with their bounds leave."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.moments.statistics.sensitivity import (
    eigenvalues_change,
    eigenvector_changes,
    spectral_change,
)
from shoal.mechanisms.moments.statistics.summary import Index
from shoal.noise import Source

Floats = NDArray[np.float64]

# Below this ratio of eigenvalues the square of a matrix has lost half of the digits.
_FLAT = 1e-8


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenvalues in descending order and their eigenvectors, of one matrix per cluster.

    Attributes:
        values: shape (clusters, d).
        vectors: shape (clusters, d, d), an eigenvector in each column.
    """

    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, matrices: Floats) -> Spectrum:
        found = np.linalg.eigh(matrices)
        return cls(found.eigenvalues[:, ::-1], found.eigenvectors[:, :, ::-1])

    def randomly_signed(self, source: Source) -> Spectrum:
        """Every eigenvector times an independent uniform sign, which is what makes its bound hold."""
        shape = self.values.shape
        signs = 1.0 - 2.0 * source.digits(1, self.values.size).reshape(shape).astype(np.float64)
        return Spectrum(self.values, self.vectors * signs[:, np.newaxis, :])

    def matrices(self) -> Floats:
        """The symmetric matrices with the nearest orthogonal eigenvectors to these, and these eigenvalues."""
        orthogonal = _nearest_orthogonal(self.vectors)
        scaled = orthogonal * self.values[:, np.newaxis, :]
        return np.asarray(scaled @ orthogonal.transpose(0, 2, 1))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class SpectralBounds:
    """How far one record can move a spectrum away from that of the actual matrices: private figures.

    Attributes:
        value: each single eigenvalue, shape (clusters,).
        values: all eigenvalues together, in L1 norm, shape (clusters,).
        vectors: each eigenvector in L1 norm, up to sign, shape (clusters, d).
    """

    value: Floats
    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, spectrum: Spectrum, entry_change: Floats) -> SpectralBounds:
        """Bounds at these matrices, whose entries one record moves by at most `entry_change`."""
        number = spectrum.values.shape[1]
        return cls(
            spectral_change(number, entry_change),
            eigenvalues_change(number, entry_change),
            eigenvector_changes(spectrum.values, entry_change),
        )

    @property
    def total(self) -> Floats:
        """Everything together, in L1 norm."""
        return np.asarray(self.values + self.vectors.sum(axis=1))


def _nearest_orthogonal(vectors: Floats) -> Floats:
    """The polar factor V·(VᵀV)^(-1/2); by singular values where VᵀV is too close to singular for that."""
    found = np.linalg.eigh(vectors.transpose(0, 2, 1) @ vectors)
    values, axes = found.eigenvalues, found.eigenvectors
    flat = values[:, 0] <= _FLAT * values[:, -1]
    roots = np.sqrt(np.where(flat[:, np.newaxis], 1.0, values))
    nearest = vectors @ ((axes / roots[:, np.newaxis, :]) @ axes.transpose(0, 2, 1))
    if flat.any():
        left, _, right = np.linalg.svd(vectors[flat])
        nearest[flat] = left @ right
    return np.asarray(nearest)


def symmetric(entries: Floats, indices: tuple[Index, ...], attributes: int) -> Floats:
    """Symmetric matrices, shape (clusters, d, d), from their upper triangles."""
    result = np.zeros((entries.shape[0], attributes, attributes))
    for place, (i, j) in enumerate(indices):
        result[:, i, j] = result[:, j, i] = entries[:, place]
    return result


def slices(entries: Floats, indices: tuple[Index, ...], attributes: int) -> Floats:
    """The d symmetric slices of a full coskewness, shape (clusters, d, d, d)."""
    result = np.zeros((entries.shape[0], *[attributes] * 3))
    for place, index in enumerate(indices):
        for a, b, c in permutations(index):
            result[:, a, b, c] = entries[:, place]
    return result


def entries_of_slices(arrays: Floats, indices: tuple[Index, ...]) -> Floats:
    """The entries of a coskewness from slices that noise has made disagree: their mean over all orders."""
    found = [np.mean([arrays[:, a, b, c] for a, b, c in permutations(index)], axis=0) for index in indices]
    return np.stack(found, axis=1)
