"""The gate: exact counts and sums come in, noisy ones leave. No other number about records passes, but cut points."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise import Source, discrete_laplace


def noisy(
    values: NDArray[np.int64], scale: Fraction | Sequence[Fraction], source: Source
) -> NDArray[np.float64]:
    """Values plus discrete Laplace noise, of one scale or of one each.

    Guarantee:
        Costs the sum over all values of how far one record can move them, each divided by its scale.

    Reference:
        docs/proofs/laplace.md, section 3.
    """
    return (values + discrete_laplace(scale, values.size, source)).astype(np.float64)
