"""Verdicts on claims, from comparisons of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.special import stdtrit

from papers.study import ClaimVerdict, judged
from shoal.evaluation.learning import CONFIDENCE

Answer = Literal["yes", "no", "unclear"]
# a difference of more than this many standard errors is one
ERRORS = 3.0


def tally(answers: Sequence[Answer]) -> ClaimVerdict:
    """True of all, some or none of several cases; where runs can never tell, nothing was tested.

    >>> tally(["yes", "unclear"]), tally(["no", "unclear"]), tally(["unclear"])
    ('holds partly', 'fails', 'not tested')
    """
    if set(answers) == {"unclear"}:
        return "not tested"
    return judged([answer == "yes" for answer in answers])


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


@dataclass(frozen=True)
class Loss:
    """A share of the F-measure of the original that is lost, with its standard error over the runs (0 for one run)."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.1%} ± {self.error:.1%}"


def loss_of(found: Mapping[str, Any], upper: Mapping[str, float], runs: int) -> Loss:
    """Mean over both classes of 1 - F / F of the original."""
    # classes move together from run to run, so their errors are averaged and not combined by squares
    return Loss(
        mean(1 - (found["f"][name] or 0.0) / upper[name] for name in upper),
        mean(standard_error(found, name, runs) / upper[name] for name in upper),
    )


def standard_error(found: Mapping[str, Any], name: str, runs: int) -> float:
    """Of the F-measure of a class, from its Student interval; one of its ends may be cut at 0 or 1."""
    interval = found["f_interval"][name]
    if interval is None:
        return 0.0
    half = max(found["f"][name] - interval[0], interval[1] - found["f"][name])
    return float(half / stdtrit(runs - 1, 0.5 + CONFIDENCE / 2))


def less(a: Loss, b: Loss) -> Answer:
    """Whether one loss is lower than another, as far as the runs can tell."""
    if abs(a.value - b.value) <= ERRORS * math.hypot(a.error, b.error):
        return "unclear"
    return "yes" if a.value < b.value else "no"


def average(losses: Sequence[Loss]) -> Loss:
    """Mean of independent losses."""
    return Loss(
        mean(item.value for item in losses), math.hypot(*(item.error for item in losses)) / len(losses)
    )
