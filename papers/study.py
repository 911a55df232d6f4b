"""The elements of a reproduction: published and recomputed numbers with verdicts. Nothing is measured here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

NumberVerdict = Literal["equal", "within Monte Carlo error", "differs"]
ClaimVerdict = Literal["holds", "holds partly", "fails", "not tested"]

# a difference of more than this many standard errors is one
_ERRORS = 3.0


@dataclass(frozen=True)
class Number:
    """A printed number beside Shoal's.

    Attributes:
        where: Table, figure or section of the paper.
        what: Which number of it, such as "Census 2, ε = 1".
        printed: The number with the digits as printed.
        found: What Shoal computes; infinite where a point that print has is never reached.
        error: Standard error of the difference; 0 where nothing is drawn, on either side.
        why: The explanation of a difference. A number that differs without one says so on the page.
        logarithm: The number is a logarithm already: differences are not shown in per cent.

    >>> Number("Table 1", "k = 3", ".018", 0.0182).verdict
    'equal'
    >>> Number("Table 1", "k = 3", ".018", 0.0192, error=0.0005).verdict
    'within Monte Carlo error'
    >>> Number("Table 1", "k = 3", ".018", 0.0192).verdict
    'differs'
    """

    where: str
    what: str
    printed: str
    found: float
    error: float = 0.0
    why: str = ""
    logarithm: bool = False

    @property
    def value(self) -> float:
        return float(Decimal(self.printed))

    @property
    def difference(self) -> float:
        return self.found - self.value

    @property
    def verdict(self) -> NumberVerdict:
        # half a unit of the last printed digit, with room for the binary form of a number that ends in 5
        half = 0.5 * 10.0 ** int(Decimal(self.printed).as_tuple().exponent) * (1 + 1e-9)
        if abs(self.difference) <= half and not self.error:
            return "equal"
        if self.error and abs(self.difference) <= _ERRORS * self.error + half:
            return "within Monte Carlo error"
        return "differs"

    @property
    def found_words(self) -> str:
        """One digit more than printed, and how uncertain it is."""
        if math.isinf(self.found):
            return "∞"
        digits = max(2, len(Decimal(self.printed).as_tuple().digits) + 1)
        shown = f"{self.found:.{digits}g}"
        # one digit, and no power of ten for a plain number such as 10
        return f"{shown} ± {float(f'{self.error:.1g}'):g}" if self.error else shown

    @property
    def difference_words(self) -> str:
        if math.isinf(self.found):
            return "∞"
        if self.logarithm or not self.value:
            return f"{self.difference:+.2g}" if self.difference else "0"
        return f"{self.difference / abs(self.value):+.1%}"

    @property
    def verdict_words(self) -> str:
        if self.verdict != "differs":
            return self.verdict
        return f"differs: {self.why or 'no explanation found'}"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper's text, in our words, and what was measured."""

    where: str
    said: str
    found: str
    verdict: ClaimVerdict


@dataclass(frozen=True)
class Erratum:
    """A printed error: what stands there, what is right, and what shows it (a test, a number on the page)."""

    where: str
    printed: str
    right: str
    shown: str


@dataclass(frozen=True)
class Series:
    """A table of everything measured for a figure: it becomes a CSV file of this name."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Figure:
    """A drawing: it becomes an SVG file of this name."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """A part of the page, in this order: text, numbers, further markdown (tables of other shapes), figures, claims."""

    title: str
    text: str = ""
    numbers: Sequence[Number] = ()
    more: str = ""
    figures: Sequence[Figure] = ()
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Study:
    """One paper recomputed."""

    title: str
    about: str
    sections: Sequence[Section]
    errata: Sequence[Erratum] = ()
    series: Sequence[Series] = field(default=())

    @property
    def numbers(self) -> list[Number]:
        return [number for section in self.sections for number in section.numbers]

    @property
    def claims(self) -> list[Claim]:
        return [claim for section in self.sections for claim in section.claims]

    @property
    def figures(self) -> list[Figure]:
        return [figure for section in self.sections for figure in section.figures]


def tally(verdicts: Iterable[str]) -> str:
    """How often each verdict was given, in words.

    >>> tally(["equal", "differs", "equal"])
    '2 equal, 1 differs'
    """
    counts = Counter(verdicts)
    order = ("equal", "within Monte Carlo error", "differs", "holds", "holds partly", "fails", "not tested")
    return ", ".join(f"{counts[name]} {name}" for name in order if counts[name])


def judged(hits: Iterable[bool]) -> ClaimVerdict:
    """The verdict on a statement about several cases: true of all, some or none of them.

    >>> judged([True, True]), judged([True, False]), judged([False])
    ('holds', 'holds partly', 'fails')
    """
    known = list(hits)
    return "holds" if all(known) else "holds partly" if any(known) else "fails"


def counted(hits: Iterable[bool]) -> str:
    """How many cases, in words.

    >>> counted([True, False])
    '1 of 2'
    """
    known = list(hits)
    return f"{sum(known)} of {len(known)}"
