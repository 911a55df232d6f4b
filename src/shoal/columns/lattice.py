"""The public integer lattice of an attribute: values come in, integer positions go on, values come back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.decimals import decimal_text
from shoal.display import internal
from shoal.errors import OptionError
from shoal.text import Message

# what can be done with values that lie outside the lattice
OUTSIDE = ("error", "clip")
DEFAULT_REAL_STEPS = 2**20
# Positions are computed in float64, so the lattice must not be finer than its integers.
MAX_STEPS = 2**52


@internal()
@dataclass(frozen=True, slots=True)
class Lattice:
    """value = lo + step · position, positions 0 .. steps, all of it public.

    `steps` is the width in lattice units, rounded up, so sensitivities are never understated.

    >>> Lattice(Fraction(0), Fraction(10), Fraction(3)).steps
    4
    """

    lo: Fraction
    hi: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        if self.lo >= self.hi:
            raise OptionError("domain-needs-lo-hi", lo=decimal_text(self.lo), hi=decimal_text(self.hi))
        if self.step <= 0:
            raise OptionError("lattice-step-above-0", found=decimal_text(self.step))
        if self.steps > MAX_STEPS or max(abs(self.lo), abs(self.hi)) / self.step > MAX_STEPS:
            raise OptionError(
                "step-too-fine-domain",
                step=decimal_text(self.step),
                lo=decimal_text(self.lo),
                hi=decimal_text(self.hi),
            )

    @property
    def steps(self) -> int:
        return math.ceil((self.hi - self.lo) / self.step)

    @property
    def width(self) -> Fraction:
        return self.hi - self.lo

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Nearest lattice positions; values outside the domain land on its ends."""
        # in place: a column may be as large as the memory allows
        scaled = values - float(self.lo)
        scaled /= float(self.step)
        np.rint(scaled, out=scaled)
        return np.clip(scaled, 0, self.steps, out=scaled).astype(np.int64)

    def values(self, positions: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Values at (possibly fractional) positions, not clipped."""
        return float(self.lo) + float(self.step) * np.asarray(positions, dtype=np.float64)


def outside(name: str, lattice: Lattice, codes: Message | None = None) -> Message:
    """The refusal of values outside a range, without how many and where: an answer for any range would be a query.

    >>> print(outside("age", Lattice(Fraction(0), Fraction(99), Fraction(1))))
    some values of column 'age' lie outside 0:99: widen the domain, or clip with outside="clip".
    """
    facts: dict[str, Any] = {"lo": float(lattice.lo), "hi": float(lattice.hi)}
    if codes is not None:
        facts["added"] = codes
    return Message.of("outside-domain", column=name, option="outside", **facts)
