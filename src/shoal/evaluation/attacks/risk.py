"""What an attack achieved: the credit of each attempt comes in, a rate with interval, and its excess, leave."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.evaluation.interval import Interval, wilson
from shoal.text import Message


@internal()
@dataclass(frozen=True, slots=True)
class Rate:
    """Share of attempts that succeeded, 0 to 1.

    Attributes:
        interval: 95% Wilson interval; a single point where the rate was computed and not sampled.
        attempts: number of attempts; 0 where the rate was computed.
    """

    value: float
    interval: Interval
    attempts: int


@internal()
@dataclass(frozen=True, slots=True)
class Risk:
    """One attack on one table.

    Attributes:
        attack: its name.
        known: what the attacker knows or looks at.
        success: on the records that were released.
        baseline: by guessing at random.
        control: the same attack on records that were not released; None without a control group.
        excess: (success - control) / (1 - control), 0 for no risk and 1 for the largest, below 0 by chance;
            None without a control group or if the attack always succeeds on it.
        secret: the column whose values are guessed; None where it is about whose a row is.
    """

    attack: str
    known: Message
    success: Rate
    baseline: Rate
    control: Rate | None = None
    excess: float | None = None
    excess_interval: Interval | None = None
    secret: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = asdict(self)
        del found["secret"]
        return {**found, "known": str(self.known)}


def sampled(credits: NDArray[np.float64]) -> Rate:
    """The rate of attempts whose credits, 0 to 1 each, are given.

    >>> sampled(np.array([1.0, 0.0, 0.5, 0.5])).value
    0.5
    """
    value = float(credits.mean())
    return Rate(value, wilson(value, credits.size), int(credits.size))


def computed(value: float) -> Rate:
    """A rate known without sampling."""
    return Rate(value, (value, value), 0)


def risk(
    attack: str,
    known: Message,
    success: Rate,
    baseline: Rate,
    control: Rate | None,
    secret: str | None = None,
) -> Risk:
    """Put the rates together and compare with the control group, if there is one."""
    if control is None or control.value >= 1.0:
        return Risk(attack, known, success, baseline, control, secret=secret)
    value, interval = excess(success, control)
    return Risk(attack, known, success, baseline, control, value, interval, secret)


def excess(success: Rate, control: Rate) -> tuple[float, Interval]:
    """Success above that of the control group, as a share of what was left to gain.

    The limits combine the two Wilson intervals by the method of variance estimates recovery: from the point
    estimate, the square root of the sum of squares of what each limit alone would move it. Valid for
    independent samples, and too wide rather than too narrow when successes go together.

    Reference:
        Zou and Donner, Statistics in Medicine 27, 2008; Giomi et al., PoPETs 2023, for the excess itself.

    >>> success, control = sampled(np.repeat([1.0, 0.0], 50)), sampled(np.repeat([1.0, 0.0], [20, 80]))
    >>> value, (low, high) = excess(success, control)
    >>> round(value, 3), round(low, 2), round(high, 2)
    (0.375, 0.23, 0.5)
    """
    r, c = success.value, control.value
    value = _gain(r, c)
    # the excess grows with the success and falls with the control
    low = value - math.hypot(value - _gain(success.interval[0], c), value - _gain(r, control.interval[1]))
    high = value + math.hypot(_gain(success.interval[1], c) - value, _gain(r, control.interval[0]) - value)
    return value, (low, min(high, 1.0))


def _gain(success: float, control: float) -> float:
    # where the control may succeed always, nothing is left to gain
    if control >= 1.0:
        return 0.0 if success >= 1.0 else -math.inf
    return (success - control) / (1.0 - control)
