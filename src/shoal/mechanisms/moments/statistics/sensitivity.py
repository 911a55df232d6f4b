"""How far one record can move a moment of its cluster: cluster sizes come in, bounds leave.

Every attribute is divided by its public width, so that values lie in an interval of length 1. Each function is pure;
each bound is proved in docs/proofs/moments.md and searched for violations in tests/moments/test_moment_sensitivity.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Eigenvalues and eigenvectors that numpy finds are exact for a matrix this close to the given one, in spectral norm.
# Entries are at most 1/2 in size here, so this is a thousand times what a stable algorithm needs for 100 attributes.
ROUNDING = 2.0**-30


def mean_change(size: int) -> Fraction:
    """The most that one mean moves.

    Reference:
        the cross-moment paper, Proposition 5.

    >>> mean_change(4)
    Fraction(1, 4)
    """
    return Fraction(1, size)


def covariance_change(size: int) -> Fraction:
    """The most that one entry of the unbiased covariance matrix moves, variances included.

    Guarantee:
        Exact for every size of at least 2: attained when all other records sit in one corner of the domain.

    Reference:
        the cross-moment paper, Proposition 6; docs/proofs/moments.md, section 2.

    >>> covariance_change(4)
    Fraction(1, 4)
    """
    return Fraction(1, size)


def coskewness_change(size: int) -> Fraction:
    """The most that one entry of Fisher's coskewness moves, whichever of its attributes coincide.

    Guarantee:
        Exact for every size of at least 3. The printed 1/|C| is half of the truth for clusters of 3.

    Reference:
        the cross-moment paper, Proposition 8, corrected; docs/proofs/moments.md, section 3.

    >>> coskewness_change(3), coskewness_change(4)
    (Fraction(2, 3), Fraction(1, 4))
    """
    return Fraction(2 if size == 3 else 1, size)


def coskewness_factors(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """`coskewness_change` in units of 1/|C|, for many clusters: 2 for clusters of 3, else 1."""
    return np.where(sizes == 3, 2, 1)


def coskewness_change_as_printed(size: int) -> Fraction:
    """The bound of the cross-moment paper, for comparison only: violated by clusters of 3.

    >>> coskewness_change_as_printed(3)
    Fraction(1, 3)
    """
    return Fraction(1, size)


def spectral_change(attributes: int, entry_change: Floats) -> Floats:
    """The most that a symmetric matrix moves in spectral norm, when each of its entries moves by `entry_change`.

    Bounds each single eigenvalue too.

    Reference:
        the cross-moment paper, sections 4.2 and 5.2; docs/proofs/moments.md, section 4.
    """
    return attributes * entry_change + 2 * ROUNDING


def eigenvalues_change(attributes: int, entry_change: Floats) -> Floats:
    """The most that all eigenvalues together move, in L1 norm.

    Reference:
        the cross-moment paper, Propositions 9 and 10; docs/proofs/moments.md, section 4.
    """
    return np.asarray(np.sqrt(attributes) * spectral_change(attributes, entry_change))


def eigenvector_changes(eigenvalues: Floats, entry_change: Floats) -> Floats:
    """The most that each eigenvector moves in L1 norm, up to its sign, away from the matrix with these eigenvalues.

    Args:
        eigenvalues: of the actual matrices, in descending order, shape (clusters, attributes).
        entry_change: how far an entry of each matrix can move, shape (clusters,).

    Guarantee:
        For any matrix whose entries differ from the actual ones by at most `entry_change`, and with the sign of
        its eigenvector chosen so that the two do not point apart. Multiply every eigenvector by an independent uniform
        sign before masking: the distribution is then the same whatever sign was found, and the bound holds. It
        is local: it uses the gaps of the actual matrix, and may steer noise but not be published.

    Reference:
        Yu, Wang and Samworth, "A useful variant of the Davis-Kahan theorem", Corollary 1, instead of the bound
        printed in the cross-moment paper (Propositions 9 and 10), which is violated; docs/proofs/moments.md, section 5.

    >>> eigenvector_changes(np.array([[0.25, 0.05]]), np.array([0.001])).round(6).tolist()
    [[0.04, 0.04]]
    """
    attributes = eigenvalues.shape[1]
    if attributes == 1:
        # a number is its own eigenvalue, and its eigenvector is a sign
        return np.zeros_like(eigenvalues)
    reach = 2**1.5 * spectral_change(attributes, entry_change)[:, np.newaxis]
    gaps = eigengaps(eigenvalues)
    # two unit vectors that do not point apart are at most √2 away from each other
    moved = np.sqrt(2.0) * np.ones_like(gaps)
    np.divide(reach, gaps, out=moved, where=gaps > reach / np.sqrt(2.0))
    return np.asarray(np.sqrt(attributes) * moved)


def eigengaps(eigenvalues: Floats) -> Floats:
    """Distance of each eigenvalue, in descending order, to the nearest other one."""
    between = eigenvalues[:, :-1] - eigenvalues[:, 1:]
    infinite = np.full((eigenvalues.shape[0], 1), np.inf)
    above, below = (np.concatenate(pair, axis=1) for pair in ([infinite, between], [between, infinite]))
    return np.asarray(np.minimum(above, below))


def eigenvector_changes_as_printed(eigenvalues: Floats, entry_change: Floats) -> Floats:
    """The bound of the cross-moment paper, for comparison only: violated whatever convention fixes the sign."""
    attributes = eigenvalues.shape[1]
    with np.errstate(divide="ignore"):
        return np.asarray(attributes**1.5 * entry_change[:, np.newaxis] / eigengaps(eigenvalues))
