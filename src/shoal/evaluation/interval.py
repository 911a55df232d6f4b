"""A measured proportion comes in, the interval that goes with it leaves."""

from __future__ import annotations

import math
from statistics import NormalDist

Interval = tuple[float, float]

CONFIDENCE = 0.95


def wilson(proportion: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson score interval of a mean of n values in [0, 1].

    Such values vary at most as much as a yes/no answer of the same mean, p(1-p), so the interval is never
    too narrow for fractional credits.

    >>> tuple(round(bound, 4) for bound in wilson(0.5, 100))
    (0.4038, 0.5962)
    >>> wilson(0.0, 10)[0]
    0.0
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    shrink = 1.0 + z * z / n
    middle = (proportion + z * z / (2.0 * n)) / shrink
    half = z * math.sqrt(proportion * (1.0 - proportion) / n + z * z / (4.0 * n * n)) / shrink
    low = 0.0 if proportion <= 0.0 else max(0.0, middle - half)
    high = 1.0 if proportion >= 1.0 else min(1.0, middle + half)
    return low, high
