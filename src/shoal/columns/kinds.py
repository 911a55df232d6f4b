"""Column kinds and the operations each supports; public integer lattices; dates as day numbers.

A new kind is one entry here. Other modules never test for a kind by name; they use the facts of its record.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.errors import OptionError
from shoal.numbers import decimal_text, exact, named
from shoal.text import Message

if TYPE_CHECKING:
    from shoal.io import ColumnType


Kind = Literal["numeric", "ordinal", "nominal", "date"]
_NUMBERS: tuple[ColumnType, ...] = ("integer", "decimal")
_DAYS: tuple[ColumnType, ...] = ("date", "timestamp")
# what can be done with values outside the lattice
OUTSIDE = ("error", "clip")
DEFAULT_REAL_STEPS = 2**20
# Positions are computed in float64, so the lattice must not be finer than float64's exact integers.
MAX_STEPS = 2**52
_EPOCH = date(1970, 1, 1)
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class ColumnKind:
    """Properties of the values of a column kind.

    Attributes:
        about: short description of the kind.
        types: the types such a column can have; None for all, as for names.
        own_types: the types for which this kind is the most likely one.
        ordered: values lie on a lattice: they can be ranked, added and perturbed by noise. Otherwise they are
            names, and distances between them come from a taxonomy.
        ranged: the domain is a pair of ends, `lo` and `hi`.
        listed: the domain is an ordered list of names, and positions are places in it.
        days: values are days, shown as dates.
        measured: values are quantities, whose errors are stated in the column's units.
        middle: the representative of several values: their mean, the lower median, or the concept closest to all.
        cell: a word for the content of a cell.
    """

    about: str
    types: tuple[ColumnType, ...] | None
    own_types: tuple[ColumnType, ...] = ()
    ordered: bool = True
    ranged: bool = False
    listed: bool = False
    days: bool = False
    measured: bool = False
    middle: Literal["mean", "median", "concept"] = "mean"
    cell: str = "text"

    @property
    def axis(self) -> str:
        """The axis type for charts of such values."""
        return "date" if self.days else "linear"

    def takes(self, type: ColumnType | None) -> bool:
        """Whether such a column can have a type."""
        return type is not None if self.types is None else type in self.types


KIND_FACTS: Mapping[Kind, ColumnKind] = {
    "numeric": ColumnKind("numbers", _NUMBERS, _NUMBERS, ranged=True, measured=True, cell="number"),
    "ordinal": ColumnKind("names in an order", None, listed=True, middle="median"),
    "date": ColumnKind("days", (*_DAYS, "text"), _DAYS, ranged=True, days=True, cell="date"),
    "nominal": ColumnKind("names without an order", None, ordered=False, middle="concept"),
}
KINDS: tuple[Kind, ...] = tuple(KIND_FACTS)
ORDERED_KINDS: tuple[Kind, ...] = tuple(name for name, facts in KIND_FACTS.items() if facts.ordered)


def kind_of_type(type: ColumnType) -> Kind:
    """The kind of a column of which only the type is known.

    >>> kind_of_type("decimal"), kind_of_type("timestamp"), kind_of_type("text")
    ('numeric', 'date', 'nominal')
    """
    return next((name for name, facts in KIND_FACTS.items() if type in facts.own_types), "nominal")


@internal()
@dataclass(frozen=True, slots=True)
class Lattice:
    """value = lo + step · position, for positions 0 .. steps, all of it public.

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
        """Nearest lattice positions; values outside the domain map to its ends."""
        # in place: a column may be as large as memory allows
        scaled = values - float(self.lo)
        scaled /= float(self.step)
        np.rint(scaled, out=scaled)
        return np.clip(scaled, 0, self.steps, out=scaled).astype(np.int64)

    def values(self, positions: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Values at (possibly fractional) positions, not clipped."""
        return float(self.lo) + float(self.step) * np.asarray(positions, dtype=np.float64)


def outside(name: str, lattice: Lattice, codes: Message | None = None) -> Message:
    """The error for values outside a range, without count and position, which would answer a query about any range.

    >>> print(outside("age", Lattice(Fraction(0), Fraction(99), Fraction(1))))
    some values of column 'age' lie outside 0:99: widen the domain, or clip with outside="clip".
    """
    facts: dict[str, Any] = {"lo": float(lattice.lo), "hi": float(lattice.hi)}
    if codes is not None:
        facts["added"] = codes
    return Message.of("outside-domain", column=name, option="outside", **facts)


def day_number(value: object, what: str | Message) -> Fraction:
    """Days since 1970-01-01 for a date, or for text such as 1984-05-31; a number is already a number of days.

    >>> day_number("1970-02-01", "a bound")
    Fraction(31, 1)
    """
    if isinstance(value, Fraction | int | Decimal) and not isinstance(value, bool):
        return exact(value, what)
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, str) and ISO_DAY.match(value.strip()):
        try:
            value = date.fromisoformat(value.strip())
        except ValueError:
            raise OptionError("option-date-calendar", **named(what), found=value) from None
    if not isinstance(value, date):
        raise OptionError("option-date-such-1984-05-31", **named(what), found=value)
    return Fraction((value - _EPOCH).days)


def day_text(number: Fraction | int) -> str:
    """The date of a day number.

    >>> day_text(31)
    '1970-02-01'
    """
    return (_EPOCH + timedelta(days=round(number))).isoformat()


def is_day(number: Fraction) -> bool:
    """Whether a number is a whole day in the calendar, which `day_text` writes and `day_number` reads back."""
    first, last = ((end - _EPOCH).days for end in (date.min, date.max))
    return number.denominator == 1 and first <= number <= last
