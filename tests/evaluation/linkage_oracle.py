"""Record linkage by comparing every released row with every original, straight from the definition."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

# distances this many roundings apart are the same distance
ROUNDINGS = 8.0


def brute_force_credits(
    original: NDArray[np.float64], released: NDArray[np.float64], widths: NDArray[np.float64]
) -> list[float]:
    used = [j for j in range(len(widths)) if widths[j] > 0]
    largest = [max(abs(float(x)) for x in original[:, j]) for j in range(len(widths))]
    credits = []
    for own, row in enumerate(released):
        found = []
        for record in original:
            total = 0.0
            for j in used:
                step = (float(record[j]) - float(row[j])) / float(widths[j])
                total += step * step
            found.append(math.sqrt(total))
        size = 0.0
        for j in used:
            size += max(abs(float(row[j])), largest[j]) / float(widths[j])
        reach = min(found) + ROUNDINGS * sys.float_info.epsilon * size
        nearest = [i for i, distance in enumerate(found) if distance <= reach]
        credits.append(1.0 / len(nearest) if own in nearest else 0.0)
    return credits
