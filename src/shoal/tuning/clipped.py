"""Expected error of clipped Laplace noise: scales and distances to the ends of a domain come in, moments leave.

Everything is in lattice steps of a cluster sum. The noise Z has P(z) proportional to exp(-|z|/b) on the whole numbers;
what is released is moved by Z, but by no more than `below` down and `above` up, where the domain ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# From this scale on the noise is taken as continuous: the relative error is 1/(12 b²), below 1e-7.
_CONTINUOUS = 1024.0


def clipped_moments(scale: Floats, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Mean and mean square of the shift that clipped noise causes, element by element.

    Args:
        scale: of the noise, at least 0; 0 is no noise.
        below: distance to the lower end, at least 0, perhaps infinite.
        above: distance to the upper end.

    Guarantee:
        Exact up to rounding for scales below 1024, and up to a relative error of 1e-7 from there on.

    >>> mean, square = clipped_moments(np.array([1e6]), np.array([np.inf]), np.array([np.inf]))
    >>> float(mean[0]), round(float(square[0]) / 2e12, 6)
    (0.0, 1.0)
    """
    scale, below, above = np.broadcast_arrays(
        np.asarray(scale, dtype=np.float64),
        np.asarray(below, dtype=np.float64),
        np.asarray(above, np.float64),
    )
    mean, square = np.zeros(scale.shape), np.zeros(scale.shape)
    for which, one_side in (
        ((scale > 0) & (scale < _CONTINUOUS), _discrete_side),
        (scale >= _CONTINUOUS, _continuous_side),
    ):
        down, down_square = one_side(scale[which], below[which])
        up, up_square = one_side(scale[which], above[which])
        mean[which] = up - down
        square[which] = up_square + down_square
    return mean, square


def _discrete_side(scale: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """E[min(Z, r); Z > 0] and E[min(Z, r)²; Z > 0], r the reach, from P(Z >= i) = q^i/(1+q), q = exp(-1/b).

    min(Z, r) is the sum of 1 over i <= m with Z >= i, m the whole part of r, and of r - m if Z > m; its square is the
    sum of 2i - 1, and of r² - m².
    """
    q = np.exp(-1.0 / scale)
    rest = -np.expm1(-1.0 / scale)
    # so far out that nothing is left: infinite reaches become finite
    reach = np.minimum(reach, 800.0 * scale)
    whole = np.floor(reach)
    tail = np.exp(-(whole + 1.0) / scale)
    ones = q * -np.expm1(-whole / scale) / rest
    steps = (ones - whole * tail) / rest
    first = ones + (reach - whole) * tail
    second = 2.0 * steps - ones + (reach * reach - whole * whole) * tail
    return first / (1.0 + q), second / (1.0 + q)


def _continuous_side(scale: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The same for continuous noise: b(1 - e^-x)/2 and b²(1 - (1+x) e^-x), x = r/b."""
    from scipy.special import gammainc

    x = reach / scale
    first = -0.5 * scale * np.expm1(-x)
    # the incomplete gamma function keeps its digits where x is small
    second = scale * scale * gammainc(2.0, x)
    return first, second


def anywhere_square(scale: Floats) -> Floats:
    """Mean square of the shift by clipped continuous noise, averaged over places in a domain of width 1.

    >>> anywhere_square(np.array([1e-4, 1e6])).round(9).tolist()
    [2e-08, 0.333333167]
    """
    from scipy.special import gammainc

    x = 1.0 / scale
    return np.asarray(2.0 * scale**3 * (x * gammainc(2.0, x) - 2.0 * gammainc(3.0, x)))
