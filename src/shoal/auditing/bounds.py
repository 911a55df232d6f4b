"""Counts of an event on two neighbouring data sets come in, a lower bound on ε with its confidence leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def clopper_pearson_lower(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    """The largest p0 such that a probability below p0 shows this many successes with chance at most alpha.

    >>> round(float(clopper_pearson_lower(10, 10, 0.05)), 4)
    0.7411
    """
    from scipy.special import betaincinv

    found = np.asarray(successes, dtype=np.float64)
    return np.where(found <= 0, 0.0, betaincinv(np.maximum(found, 1), runs - found + 1, alpha))


def clopper_pearson_upper(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    """The smallest p1 such that a probability above p1 shows this few successes with chance at most alpha.

    >>> round(float(clopper_pearson_upper(0, 10, 0.05)), 4)
    0.2589
    """
    return 1.0 - clopper_pearson_lower(runs - np.asarray(successes, dtype=np.float64), runs, alpha)


def epsilon_bounds(
    hits: Any, hit_runs: int, false_hits: Any, other_runs: int, alpha: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """Lower bounds on ε from one event each: how often it happened here, and how often on the neighbour.

    Under (ε, δ)-DP, P(event here) <= e^ε · P(event there) + δ. Each probability gets half of alpha, so for one event
    fixed before the runs the bound exceeds the true ε with probability at most alpha.

    Reference:
        Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial".

    >>> round(float(epsilon_bounds(5000, 10000, 1840, 10000, 0.01)), 2)
    0.92
    """
    low = clopper_pearson_lower(hits, hit_runs, alpha / 2)
    high = clopper_pearson_upper(false_hits, other_runs, alpha / 2)
    with np.errstate(divide="ignore"):
        ratio: NDArray[np.float64] = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.asarray(np.maximum(ratio, 0.0))
