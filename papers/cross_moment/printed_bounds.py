"""Bounds of the cross-moment paper as published, for comparison only: both are violated."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from papers.cross_moment.measure import Floats
from shoal.mechanisms.moments.statistics import eigengaps


def coskewness_change_as_printed(size: int) -> Fraction:
    """The most that one entry of the coskewness moves, by Proposition 8: violated by clusters of 3.

    >>> coskewness_change_as_printed(3)
    Fraction(1, 3)
    """
    return Fraction(1, size)


def eigenvector_changes_as_printed(eigenvalues: Floats, entry_change: Floats) -> Floats:
    """The most that eigenvectors move, by Propositions 9 and 10: violated whatever convention fixes the sign."""
    attributes = eigenvalues.shape[1]
    with np.errstate(divide="ignore"):
        return np.asarray(attributes**1.5 * entry_change[:, np.newaxis] / eigengaps(eigenvalues))
