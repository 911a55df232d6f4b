"""Columns in, their exact running sums out: records can leave again without any loss of precision.

Each value is cut into a few pieces, every piece a multiple of a power of two so coarse that n of them add up
without rounding. Sums of pieces are then exact whatever the order, and so a centroid is the same in every
algorithm, on any number of threads, and for any order of the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# 4 pieces hold 4 * (52 - log2 n) bits: at n = 1e6 exact for values that span 22 orders of magnitude.
PIECES = 4


def cutters(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The constants M, shape (d, PIECES), such that (x + M) - M is the leading piece of x.

    Args:
        columns: values, shape (d, n): the largest set of records that will ever be summed.
    """
    d, n = columns.shape
    headroom = int(n).bit_length() + 1
    result = np.zeros((d, PIECES))
    for j in range(d):
        exponent = int(np.frexp(np.abs(columns[j]).max())[1])
        for piece in range(PIECES):
            result[j, piece] = np.ldexp(1.5, exponent + headroom)
            exponent += headroom - 52
    return result


def pieces_sum(columns: NDArray[np.float64], cut: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exact sums of the pieces of each column, shape (d, PIECES)."""
    result = np.zeros(cut.shape)
    for j in range(columns.shape[0]):
        rest = columns[j]
        for piece in range(PIECES):
            lead = (rest + cut[j, piece]) - cut[j, piece]
            result[j, piece] = lead.sum()
            rest = rest - lead
    return result


def rounded(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the pieces of each column, rounded once to a double.

    >>> column = np.array([[1e16, 1.0, -1e16]])
    >>> rounded(pieces_sum(column, cutters(column))).tolist()
    [1.0]
    """
    total = sums[:, PIECES - 1]
    rest = np.zeros(sums.shape[0])
    for piece in range(PIECES - 2, -1, -1):
        lead = sums[:, piece]
        new = lead + total
        part = new - lead
        rest = ((lead - (new - part)) + (total - part)) + rest
        total = new
    result: NDArray[np.float64] = total + rest
    return result
