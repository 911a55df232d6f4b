"""The measurements of chapter 6 on a data set: means and standard errors of errors and linkages over runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers.thesis.chapter6_print import RUNS

EPSILONS = ("0.01", "0.1", "1", "10")
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Runs:
    """A number measured in several runs."""

    values: NDArray[np.float64]

    @classmethod
    def of(cls, values: Sequence[float]) -> Runs:
        return cls(np.array(values, dtype=np.float64))

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def error(self, runs: int | None = None) -> float:
        """Standard error of a mean over as many runs.

        >>> round(Runs.of([1, 2, 3, 4]).error(), 4), round(Runs.of([1, 2, 3, 4]).error(16), 4)
        (0.6455, 0.3227)
        """
        if self.values.size < 2:
            return 0.0
        return float(self.values.std(ddof=1)) / math.sqrt(runs or self.values.size)

    @property
    def spread(self) -> float:
        """Standard error of the difference between our mean and one of the thesis' ten runs."""
        return math.hypot(self.error(RUNS), self.error())


@dataclass(frozen=True)
class Noisy:
    """A setting (k, ε): SSE, record linkage in percent, and variations of means and variances with their sign.

    The thesis' variations are those of means over its runs, so that noise of either sign cancels.
    """

    sse: Runs
    linkage: Runs
    variations: tuple[Runs, ...] = ()

    @classmethod
    def of(cls, point: Mapping[str, Any]) -> Noisy:
        return cls(
            Runs.of(point["sse"]),
            Runs.of(point["linkage"]),
            tuple(Runs.of(values) for values in point.get("variations", ())),
        )


@dataclass(frozen=True)
class Alone:
    """Clusters without noise. `others` are SSE with other centroids."""

    sse: float
    linkage: float
    variations: tuple[float, ...] = ()
    others: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, point: Mapping[str, Any]) -> Alone:
        return cls(
            point["sse"], point["linkage"], tuple(point.get("variations", ())), dict(point.get("others", {}))
        )


@dataclass(frozen=True)
class Found:
    """A data set: all settings with noise, by (k, ε), and clusters alone, by name and k. `nothing` is k = n."""

    noisy: Mapping[tuple[int, str], Noisy]
    alone: Mapping[str, Mapping[int, Alone]]
    nothing: Alone

    @property
    def ks(self) -> list[int]:
        return sorted({k for k, _ in self.noisy})

    def sse(self, k: int, epsilon: str) -> float:
        return self.noisy[k, epsilon].sse.mean

    def linkage(self, k: int, epsilon: str) -> float:
        return self.noisy[k, epsilon].linkage.mean


@dataclass(frozen=True)
class Factor:
    """SSE_f, RL_f or Score, and the standard error of its difference from print."""

    value: float
    error: float


def factors(base: Noisy | Alone, found: Noisy) -> tuple[Factor, Factor, Factor]:
    """SSE_f = √SSE₀/√SSE, RL_f = RL₀/RL and Score = SSE_f · RL_f, of means over runs.

    A quotient of few chance linkages is skewed: its error is that of ten runs drawn again and again from ours.

    >>> [round(f.value, 3) for f in factors(Alone(4.0, 10.0), Noisy(Runs.of([16, 16]), Runs.of([2, 2])))]
    [0.5, 5.0, 2.5]
    """
    generator = np.random.default_rng(0)

    def again(one: Noisy | Alone) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if isinstance(one, Alone):
            return np.array(one.sse), np.array(one.linkage)
        places = generator.integers(one.sse.values.size, size=(_RESAMPLES, RUNS))
        return one.sse.values[places].mean(axis=1), one.linkage.values[places].mean(axis=1)

    (sse0, linkage0), (sse, linkage) = again(base), again(found)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors, links = np.sqrt(sse0 / sse), linkage0 / linkage
    ours = math.sqrt(1 + RUNS / found.sse.values.size)
    first = math.sqrt(_mean(base.sse) / found.sse.mean)
    second = _mean(base.linkage) / found.linkage.mean if found.linkage.mean else math.inf
    drawn = zip((first, second, first * second), (errors, links, errors * links), strict=True)
    one, two, three = (
        Factor(value, float(np.std(many[np.isfinite(many)], ddof=1)) * ours) for value, many in drawn
    )
    return one, two, three


def _mean(one: Runs | float) -> float:
    return one.mean if isinstance(one, Runs) else one
