"""Confidence intervals as values, with the parts of their width and what to be careful about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from scipy.special import ndtri

from shoal._version import __version__
from shoal.display import DisplaySummary, displayed
from shoal.errors import OptionError
from shoal.inference.calibration import KAPPA_MORE
from shoal.text import Message

ABOUT = ("population", "records")


def _one(found: Interval) -> DisplaySummary:
    return DisplaySummary(
        f"{found.name}: {found.estimate:.6g} [{found.low:.6g}, {found.high:.6g}]", found.flags
    )


@displayed(_one)
@dataclass(frozen=True, slots=True)
class Interval:
    """A number about the population, with its confidence interval.

    Attributes:
        name: what it is.
        estimate: the estimate, corrected by the published measurements.
        low, high: ends of the interval.
        release: the same number computed from the released rows as they are.
        sampling, noise, unmeasured: parts of the squared width, from 0 to 1: which people were asked, privacy noise,
            and what the release did not measure.
        carried: the part of the number that measured functions explain, from 0 to 1; NaN if unknown.
        flags: reasons for care: `not-carried`, `bounds`, `tail`, `noise`, `no-rows`.
    """

    name: str
    estimate: float
    low: float
    high: float
    release: float
    sampling: float
    noise: float
    unmeasured: float
    carried: float
    flags: tuple[str, ...] = ()
    level: float = 0.95
    about: str = "population"

    @property
    def flag(self) -> str:
        """The first reason for care, or an empty text."""
        return self.flags[0] if self.flags else ""

    @property
    def meaning(self) -> str:
        """What the interval means; empty if there is none."""
        return "" if "no-rows" in self.flags else str(Message(f"interval-of-{self.about}", self._facts))

    @property
    def sentence(self) -> str:
        """What the interval means, and every reason for care."""
        return " ".join(filter(None, [self.meaning, *map(self.words_of, self.flags)]))

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "percent": 100 * self.level,
            "left": 100 * (1 - self.carried) if math.isfinite(self.carried) else 0.0,
            "kappa": KAPPA_MORE,
            "name": self.name,
        }

    def words_of(self, flag: str) -> str:
        """What one reason for care means."""
        return str(Message(f"interval-{flag}", self._facts))

    def to_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _FIELDS}
        plain = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in found.items()
        }
        return {**plain, "flags": list(self.flags), "sentence": self.sentence}


_FIELDS = (
    "name",
    "estimate",
    "low",
    "high",
    "release",
    "sampling",
    "noise",
    "unmeasured",
    "carried",
    "level",
    "about",
)


def _shown(found: Intervals) -> DisplaySummary:
    lines = tuple(
        f"{one.name}: {one.estimate:.6g} [{one.low:.6g}, {one.high:.6g}]{' *' if one.flags else ''}"
        for one in found
    )
    return DisplaySummary(f"{100 * found.level:g}% intervals", lines)


@displayed(_shown)
@dataclass(frozen=True, slots=True, eq=False)
class Intervals(Sequence[Interval]):
    """Intervals in the order in which they were asked for; `found["mean(age)"]` finds one by name.

    Attributes:
        engine: `calibration` to the published measurements, or `re-runs` of the public recipe.
        level: the confidence level of each interval.
    """

    each: tuple[Interval, ...]
    engine: str
    level: float
    seed: int | None = None

    def __len__(self) -> int:
        return len(self.each)

    @overload
    def __getitem__(self, which: int | str) -> Interval: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Interval]: ...
    def __getitem__(self, which: int | str | slice) -> Interval | Sequence[Interval]:
        if isinstance(which, str):
            return next(one for one in self.each if one.name == which)
        return self.each[which]

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.each)

    @property
    def estimate(self) -> float:
        return self._only.estimate

    @property
    def low(self) -> float:
        return self._only.low

    @property
    def high(self) -> float:
        return self._only.high

    @property
    def _only(self) -> Interval:
        if len(self.each) != 1:
            raise OptionError("several-intervals", number=len(self.each))
        return self.each[0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "level": self.level,
            "seed": self.seed,
            "version": __version__,
            "intervals": [one.to_dict() for one in self.each],
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """How intervals are computed.

    Attributes:
        level: confidence level.
        about: the population the records are a sample of, or these records.
        deff: design effect, by which the variance of sampling is multiplied.
    """

    level: float = 0.95
    about: str = "population"
    deff: float = 1.0

    def __post_init__(self) -> None:
        if not 0.5 <= self.level < 1:
            raise OptionError("interval-level", option="level", found=self.level)
        if self.about not in ABOUT:
            raise OptionError("unknown-option", option="about", found=self.about, allowed=ABOUT, hint=None)
        if not (math.isfinite(self.deff) and self.deff > 0):
            raise OptionError("interval-deff", option="deff", found=self.deff)

    @property
    def records(self) -> bool:
        return self.about == "records"

    @property
    def z(self) -> float:
        """The normal quantile."""
        return float(ndtri((1 + self.level) / 2))

    def of_noise(self, currency: str) -> float:
        """The quantile of noise: Laplace noise has heavier tails than normal noise, unless many draws are added up."""
        return self.z if currency == "rho" else max(self.z, -math.log(1 - self.level) / math.sqrt(2))
