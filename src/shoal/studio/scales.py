"""The scale of a range: public ends, and the values of a column once they were looked at, come in; places leave.

Nothing is read off the records before somebody asked to see them: until then a scale surrounds what was declared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shoal.columns.kinds import day_text
from shoal.decimals import decimal_text

PLACES = 1000
# room beside the ends, as a share of the width: next to values that are shown, and to a range alone
_BESIDE_VALUES, _BESIDE_RANGE = 0.08, 0.5


@dataclass(frozen=True, slots=True)
class Scale:
    """A line with round numbers on it.

    Attributes:
        step: the smallest difference that a place makes.
        days: values are days, written as dates.
    """

    low: float
    high: float
    step: Fraction
    days: bool = False

    def place(self, value: float) -> int:
        """Where a value stands on a scale of a thousand.

        >>> around((0, 100), whole=True, room=0).place(25)
        250
        """
        share = (value - self.low) / (self.high - self.low)
        return round(PLACES * min(max(share, 0.0), 1.0))

    def text(self, place: int) -> str:
        """The round value at a place, as a form writes it.

        >>> around((0, 100_000), whole=True, room=0).text(333), around((0, 1), room=0).text(333)
        ('33000', '0.33')
        """
        value = self.low + (self.high - self.low) * min(max(place, 0), PLACES) / PLACES
        rounded = round(Fraction(value) / self.step) * self.step
        return day_text(int(rounded)) if self.days else decimal_text(rounded)

    def holds(self, low: float, high: float) -> bool:
        return self.low <= low and high <= self.high


def around(
    ends: tuple[float, float],
    *,
    shown: bool = False,
    whole: bool = False,
    days: bool = False,
    room: float | None = None,
) -> Scale:
    """A scale with some room beside the ends; what is never negative stays so.

    Args:
        shown: values are drawn on it.
        whole: values are whole numbers.

    >>> around((18, 90), shown=True, whole=True)
    Scale(low=12.0, high=96.0, step=Fraction(1, 1), days=False)
    """
    low, high = sorted(ends)
    width = (high - low) or max(abs(high), 1.0)
    beside = (_BESIDE_VALUES if shown else _BESIDE_RANGE) if room is None else room
    step = Fraction(10) ** math.floor(math.log10(width / 50))
    if whole or days:
        step = max(step, Fraction(1)) if not days else Fraction(1)
    lowest = math.floor((low - beside * width) / float(step)) * step
    highest = math.ceil((high + beside * width) / float(step)) * step
    if low >= 0 and not days:
        lowest = max(lowest, Fraction(0))
    return Scale(float(lowest), float(highest), step, days)
