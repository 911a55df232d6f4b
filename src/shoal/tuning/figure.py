"""What repeated runs say: numbers of several seeds come in, a mean with its interval leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.display import internal

CONFIDENCE = 0.95


@internal()
@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of a setting.

    Attributes:
        low, high: ends of the interval for the mean over all seeds there could be; equal to it where it is exact, and
            None where a single run says nothing about that.
        exact: the expectation itself, from a closed form or by definition; not from runs.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    exact: bool = False

    @property
    def at_least(self) -> float:
        return self.mean if self.low is None else self.low

    @property
    def at_most(self) -> float:
        return self.mean if self.high is None else self.high

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "exact": self.exact}

    def __str__(self) -> str:
        if self.exact:
            return f"{self.mean:.4g}"
        if self.low is None or self.high is None:
            return f"{self.mean:.3g} (one run)"
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g})"


def exactly(value: float) -> Figure:
    """A figure that is no estimate.

    >>> str(exactly(0.25)), exactly(0.25).low
    ('0.25', 0.25)
    """
    return Figure(value, value, value, exact=True)


def over_seeds(values: Sequence[float], least: float = 0.0, most: float = math.inf) -> Figure:
    """The mean of several runs with its Student interval, inside the range a measure can have.

    >>> str(over_seeds([1.0, 2.0, 3.0])), over_seeds([1.0]).low
    ('2 (0 to 4.48)', None)
    """
    found = np.asarray(values, dtype=np.float64)
    mean = float(found.mean())
    if found.size == 1:
        return Figure(mean)
    from scipy.special import stdtrit

    half = float(stdtrit(found.size - 1, 0.5 + CONFIDENCE / 2) * found.std(ddof=1) / math.sqrt(found.size))
    return Figure(mean, max(least, mean - half), min(most, mean + half))
