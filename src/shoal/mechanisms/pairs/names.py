"""Names in groups. In: noisy shares of the values of an attribute of names. Out: which values pairs tell apart.

The shares are paid for already, so the groups cost nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.mechanisms.pairs.marginal import Marginal, points
from shoal.mechanisms.pairs.plan import MOST_GROUPS
from shoal.taxonomy import Taxonomy

Floats = NDArray[np.float64]

# A value stands by itself where its share is this many times the noise on it.
_CLEAR = 3.0


def merged(shares: Floats, noise: float, taxonomy: Taxonomy | None) -> Marginal:
    """The attribute with its rare values in groups.

    With a taxonomy of several levels rare values join their neighbours in its order, which are their kin; without one
    all of them are one group.

    >>> merged(np.array([0.5, 0.01, 0.48, 0.01]), 0.02, None).groups.tolist()
    [0, 2, 1, 2]
    """
    kin = taxonomy is not None and taxonomy.levels > 2
    clear = shares >= _CLEAR * noise
    clear[np.argsort(-shares, kind="stable")[MOST_GROUPS - 1 :]] = False
    groups = _with_kin(shares, clear) if kin else _apart(clear)
    together: Floats = np.bincount(groups, shares).astype(np.float64)
    return Marginal(points(shares), together, 0, None, groups.astype(np.uint8))


def _apart(clear: NDArray[np.bool_]) -> NDArray[np.int64]:
    rest = int(clear.sum())
    return np.where(clear, np.cumsum(clear) - 1, rest)


def _with_kin(shares: Floats, clear: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Runs of rare values between clear ones, joined until there are few enough groups."""
    starts = clear.copy()
    starts[1:] |= clear[:-1]
    starts[0] = True
    groups = np.cumsum(starts) - 1
    while groups[-1] >= MOST_GROUPS:
        together = np.bincount(groups, shares)
        weakest = int(np.argmin(together[:-1] + together[1:]))
        groups = np.where(groups > weakest, groups - 1, groups)
    return groups
