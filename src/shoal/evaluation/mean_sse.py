"""Mean SSE of the iDP paper: two matrices with rows in the same order come in, one number leaves.

Missing values are NaN (infinite ones count as missing too); a measure that does not exist for the data is NaN.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError

Metric = Literal["corrected", "paper"]
# power of the standard deviation that divides an error before it is squared
_POWERS = {"corrected": 1, "paper": 2}


def mean_sse(
    original: NDArray[np.float64], released: NDArray[np.float64], metric: Metric = "corrected"
) -> float:
    """Mean over the records of the squared distance (1/m²) Σ_j (d_j / σ_j)².

    m is the number of attributes and σ_j² the sample variance of the original. `metric="paper"` divides by the
    variance inside the square, (d_j / σ_j²)², as equation (5) prints it: an error of units, which lets the
    attributes with the smallest numbers decide. Attributes that are constant in the original do not count.

    Reference:
        The iDP paper, equations (4) and (5).

    >>> x, y = np.array([[0.0, 0.0], [2.0, 20.0]]), np.array([[1.0, 0.0], [2.0, 10.0]])
    >>> round(mean_sse(x, y), 6), round(mean_sse(x, y, "paper"), 6)
    (0.125, 0.031562)
    """
    if metric not in _POWERS:
        raise OptionError("unknown-metric", option="metric", metric=metric, allowed=tuple(_POWERS))
    parts = []
    for truth, found in zip(original.T, released.T, strict=True):
        present = truth[np.isfinite(truth)]
        both = np.isfinite(truth) & np.isfinite(found)
        if present.size < 2 or present.min() == present.max() or not both.any():
            continue
        scale = float(present.std(ddof=1)) ** _POWERS[metric]
        parts.append(float(np.mean(((found[both] - truth[both]) / scale) ** 2)))
    return math.fsum(parts) / len(parts) ** 2 if parts else math.nan
