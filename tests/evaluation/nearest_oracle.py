"""The released rows nearest to each target, from all distances at once."""

from __future__ import annotations

import numpy as np

from shoal.evaluation.attacks.run import distances
from shoal.evaluation.attacks.singling import Space
from shoal.numbers import Floats, Integers


def nearest_by_scan(rows: Floats, points: Floats, space: Space, slack: Floats) -> list[Integers]:
    """For every point the rows that are, up to its slack, as near as the nearest one."""
    gaps = distances(points, rows, space)
    near = gaps <= (gaps.min(axis=1) + slack)[:, np.newaxis]
    return [np.flatnonzero(one).astype(np.int64) for one in near]
