"""The gate: exact counts and sums come in, noisy ones leave. No other number about records passes, but cut points."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.noise import discrete_laplace, round_up_scale
from shoal.privacy import Spend


def scale_of(moves: Fraction | int, amount: Fraction) -> Fraction:
    """Scale of noise on values that one record moves by so much together, for what is spent on them."""
    return round_up_scale(Fraction(moves) / amount)


def noisy(
    values: NDArray[np.int64], moves: Fraction | int | Sequence[int], spend: Spend
) -> NDArray[np.float64]:
    """Values plus discrete Laplace noise, calibrated to what is spent.

    Args:
        moves: how far one record can move all values together; or, where a record's move of each is bounded by itself,
            a bound for each: the moves divided by their bounds add up to at most 1.

    Guarantee:
        Costs the amount of the spend.

    Reference:
        docs/proofs/laplace.md, section 3.
    """
    amount, source = spend.take()
    scale = (
        [scale_of(each, amount) for each in moves] if isinstance(moves, Sequence) else scale_of(moves, amount)
    )
    return (values + discrete_laplace(scale, values.size, source)).astype(np.float64)
