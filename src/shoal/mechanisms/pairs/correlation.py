"""Noisy products of signs come in, a correlation matrix of latent normals leaves.

Every attribute with halves is read as a normal number that was cut; the correlation behind two such signs is their
tetrachoric correlation. All of it is post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_LARGEST = 0.995
# Directions in which latent normals hardly vary: how little is told by the noise, within these bounds.
_LEAST_VARIANCE, _MOST_LEAST, _PER_NOISE = 0.002, 0.03, 0.6
# Eigenvalues of noise that are too small for spectral shrinkage to help.
_LITTLE_EDGE = 0.5


def both_below(h: Floats, k: Floats, r: Floats) -> Floats:
    """Probability that two standard normals of correlation r are below h and k.

    >>> both_below(np.zeros(2), np.zeros(2), np.array([0.0, 0.5])).round(6).tolist()
    [0.25, 0.333333]
    """
    # the derivative by r, in the angle whose sine is r, is smooth
    angle = np.arcsin(r)[..., None] * (_NODES + 1) / 2
    sine, cosine = np.sin(angle), np.maximum(np.cos(angle), 1e-9)
    h, k = h[..., None], k[..., None]
    density = np.exp(-(h * h + k * k - 2 * h * k * sine) / (2 * cosine * cosine))
    area = (density * _WEIGHTS).sum(axis=-1) * np.arcsin(r) / 2
    found: Floats = ndtr(h[..., 0]) * ndtr(k[..., 0]) + area / (2 * np.pi)
    return found


def tetrachoric(products: Floats, left: Floats) -> Floats:
    """Latent correlations for mean products of signs.

    Args:
        products: (d, d) means of the products of two signs.
        left: share of +1 of each sign.
    """
    cut = ndtri(left)
    rows, columns = np.tril_indices(left.size, -1)
    p, q = left[rows], left[columns]
    wanted = (products[rows, columns] + 2 * p + 2 * q - 1) / 4
    low, high = np.full(p.size, -_LARGEST), np.full(p.size, _LARGEST)
    for _ in range(40):
        middle = (low + high) / 2
        small = both_below(cut[rows], cut[columns], middle) < wanted
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    found = np.eye(left.size)
    found[rows, columns] = found[columns, rows] = (low + high) / 2
    return found


def shrunk(correlations: Floats, scale: Floats, noise: float) -> Floats:
    """Correlations without most of their noise.

    In the scale of the products (correlation times `scale` of both attributes) all entries have about the same noise.
    Its eigenvalues are at most 2·noise·√d in size: what is beyond them is signal and is shrunk by what noise adds to
    it; the rest is shrunk as a whole, by how much of its variance noise explains. Where noise makes eigenvalues of a
    half at most, shrinking costs more than it gains and is left out: a rule that knows the noise and d only.

    Reference:
        Gavish and Donoho, "Optimal Shrinkage of Singular Values".
    """
    size = len(correlations)
    if size < 2:
        return correlations
    least = min(max(_PER_NOISE * noise, _LEAST_VARIANCE), _MOST_LEAST)
    edge = 2 * noise * np.sqrt(size)
    if edge <= _LITTLE_EDGE:
        return nearest_correlation(correlations, least)
    both = np.outer(scale, scale)
    scaled = correlations * both
    np.fill_diagonal(scaled, 0.0)
    values, vectors = np.linalg.eigh(scaled)
    clear = np.abs(values) > edge
    kept = (vectors[:, clear] * values[clear]) @ vectors[:, clear].T
    less = np.sign(values[clear]) * np.sqrt(values[clear] ** 2 - edge**2)
    signal = (vectors[:, clear] * less) @ vectors[:, clear].T
    rest = scaled - kept
    off = ~np.eye(size, dtype=np.bool_)
    variance = float((rest[off] ** 2).mean())
    trust = max(0.0, 1 - noise**2 / variance) if variance > 0 else 0.0
    return nearest_correlation((signal + trust * rest) / both, least)


def nearest_correlation(matrix: Floats, least: float, rounds: int = 100) -> Floats:
    """A correlation matrix near a symmetric one, of this variance at least in all directions: projections in turn.

    Reference:
        Higham, "Computing the nearest correlation matrix: a problem from finance".
    """
    found = matrix.copy()
    np.fill_diagonal(found, 1.0)
    correction = np.zeros_like(found)
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(found - correction)
        positive = (vectors * np.maximum(values, least)) @ vectors.T
        correction = positive - (found - correction)
        before, found = found, positive.copy()
        np.fill_diagonal(found, 1.0)
        if np.abs(found - before).max() < 1e-9:
            break
    values, vectors = np.linalg.eigh(found)
    positive = (vectors * np.maximum(values, least)) @ vectors.T
    spread = np.sqrt(np.diag(positive))
    nearest: Floats = positive / np.outer(spread, spread)
    return nearest


def copula_table(rows: Floats, columns: Floats, r: float) -> Floats:
    """Probabilities of the bins of two attributes whose latent normals have correlation r.

    >>> copula_table(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.5).round(4).tolist()
    [[0.3333, 0.1667], [0.1667, 0.3333]]
    """
    nodes, weights = _SHORT
    ends = np.concatenate(([0.0], np.cumsum(rows)))
    ends /= ends[-1]
    level = ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2
    latent = ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    inner = np.cumsum(columns)[:-1] / columns.sum()
    cuts = np.concatenate(([-np.inf], ndtri(np.clip(inner, 1e-12, 1 - 1e-12)), [np.inf]))
    spread = np.sqrt(1 - r * r)
    below = ndtr((cuts - r * latent[..., None]) / spread)
    table: Floats = (np.diff(below, axis=2) * weights[None, :, None]).sum(axis=1) / 2 * rows[:, None]
    return np.maximum(table, 1e-12)


_SHORT = np.polynomial.legendre.leggauss(12)
