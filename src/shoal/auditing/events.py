"""Search runs come in, the events that tell two data sets apart best leave, to be tested on fresh runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.text import Message

Numbers = NDArray[np.float64]
Computed = Mapping[str, Numbers]
Relation = Literal[">=", "<=", "=="]

LEARNT = "learnt combination of the statistics"

# Standard errors by which counts are moved against an event before events are compared: rare ones look best by luck.
_CAUTION = 3.0
_FEW = 48
_TAILS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075)
_QUANTILES = np.array([*_TAILS, *np.arange(0.1, 0.91, 0.05), *(1 - np.array(_TAILS[::-1]))])


@dataclass(frozen=True, slots=True)
class Event:
    """Something that can be seen in a release, more likely on one side of a pair than on the other."""

    statistic: str
    relation: Relation
    value: float
    likelier: Literal["left", "right"]

    def count(self, computed: Computed) -> int:
        """In how many runs it happened."""
        numbers = _defined(computed[self.statistic])
        if self.relation == "==":
            return int((numbers == self.value).sum())
        return int((numbers >= self.value).sum() if self.relation == ">=" else (numbers <= self.value).sum())

    def words(self) -> str:
        code = {">=": "event-at-least", "<=": "event-at-most", "==": "event-exactly"}[self.relation]
        return str(Message.of(code, statistic=self.statistic, value=self.value))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A linear combination of statistics that separates the two sides (Fisher's discriminant, on search runs)."""

    names: tuple[str, ...]
    centre: Numbers
    weights: Numbers

    def __call__(self, computed: Computed) -> Numbers:
        stacked = np.column_stack([_finite(computed[name]) for name in self.names])
        # the last digits of a product depend on how many rows are multiplied at once; an atom must stay one
        combined: Numbers = np.round((stacked - self.centre) @ self.weights, 9)
        return combined


def learn(left: Computed, right: Computed) -> Learnt | None:
    """Fit the combination; None when no statistic varies."""
    names = tuple(
        name
        for name in _of_both(left, right)
        if np.ptp(_finite(np.concatenate([left[name], right[name]]))) > 0
    )
    if not names:
        return None
    sides = [np.column_stack([_finite(side[name]) for name in names]) for side in (left, right)]
    pooled = np.concatenate(sides)
    centre, spread = pooled.mean(axis=0), pooled.std(axis=0)
    scaled = [(side - centre) / spread for side in sides]
    within = sum(np.cov(side, rowvar=False).reshape(len(names), len(names)) for side in scaled) / 2
    ridge = 1e-3 * np.eye(len(names))
    direction = np.linalg.solve(within + ridge, scaled[0].mean(axis=0) - scaled[1].mean(axis=0))
    return Learnt(names, centre, direction / spread)


def best_events(left: Computed, right: Computed, limit: int, delta: float = 0.0) -> list[tuple[float, Event]]:
    """The most telling event of each statistic, best first, with a cautious estimate of its log ratio.

    So much of its probability as δ allows tells nothing.
    """
    best: list[tuple[float, Event]] = []
    for name in _of_both(left, right):
        found = _best_event(name, np.sort(_defined(left[name])), np.sort(_defined(right[name])), delta)
        if found is not None:
            best.append(found)
    # statistics that say the same in other words have the same score: one of them is enough
    distinct = {score: (score, event) for score, event in reversed(best)}
    return sorted(distinct.values(), key=lambda scored: -scored[0])[:limit]


def _best_event(name: str, left: Numbers, right: Numbers, delta: float) -> tuple[float, Event] | None:
    pooled = np.concatenate([left, right])
    values, frequency = np.unique(pooled, return_counts=True)
    if values.size < 2:
        return None
    thresholds = (
        values if values.size <= _FEW else np.unique(np.quantile(pooled, _QUANTILES, method="nearest"))
    )
    atoms = values[np.argsort(-frequency, kind="stable")[:_FEW]]
    below = [side.searchsorted(thresholds, "left") for side in (left, right)]
    up_to = [side.searchsorted(thresholds, "right") for side in (left, right)]
    at_atom = [side.searchsorted(atoms, "right") - side.searchsorted(atoms, "left") for side in (left, right)]
    counted: list[tuple[Relation, Numbers, NDArray[np.intp], NDArray[np.intp]]] = [
        (">=", thresholds, left.size - below[0], right.size - below[1]),
        ("<=", thresholds, up_to[0], up_to[1]),
        ("==", atoms, at_atom[0], at_atom[1]),
    ]
    best: tuple[float, Event] | None = None
    side: Literal["left", "right"]
    for relation, at, on_left, on_right in counted:
        for side, here, there in (("left", on_left, on_right), ("right", on_right, on_left)):
            score = _cautious_log_ratio(here, there, delta * left.size)
            place = int(np.argmax(score))
            if best is None or score[place] > best[0]:
                best = float(score[place]), Event(name, relation, float(at[place]), side)
    return best


def _cautious_log_ratio(here: NDArray[np.intp], there: NDArray[np.intp], allowed: float) -> Numbers:
    """A quick stand-in for the exact bound, by square roots of counts: both sides have equally many runs."""
    low = np.maximum(np.sqrt(here) - _CAUTION / 2, 0.01)
    low = np.sqrt(np.maximum(low**2 - allowed, 0.0001))
    high = np.sqrt(there + 1) + _CAUTION / 2
    ratio: Numbers = 2 * np.log(low / high)
    return ratio


def _of_both(left: Computed, right: Computed) -> list[str]:
    """Names that both sides have: one may have published more clusters than the other."""
    return [name for name in left if name in right]


def _defined(numbers: Numbers) -> Numbers:
    """A row that does not exist is below every value."""
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _finite(numbers: Numbers) -> Numbers:
    return np.nan_to_num(numbers, nan=0.0, posinf=0.0, neginf=0.0)
