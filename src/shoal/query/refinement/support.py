"""What an answer can be: a finite public list. In: a lattice, labels, or several of these. Out: numbered answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from shoal.columns.kinds import Lattice
from shoal.errors import OptionError

# a query sorts all answers by their distance from the truth, so there must not be too many of them
MAX_ANSWERS = 1 << 20


class Support(Protocol):
    """Answers numbered 0 .. size - 1."""

    @property
    def size(self) -> int: ...

    def index(self, answer: Any) -> int | None:
        """The number of the answer (of the nearest one, where that has a meaning), or None if it is no answer."""

    def answer(self, index: int) -> Any:
        """The answer of a number."""


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a lattice.

    >>> points = Points(Lattice(Fraction(0), Fraction(1), Fraction(1, 4)))
    >>> points.size, points.index(Fraction(3, 5)), points.answer(2), points.index(99)
    (5, 2, Fraction(1, 2), 4)
    """

    lattice: Lattice

    def __post_init__(self) -> None:
        _check_size(self.size)

    @property
    def size(self) -> int:
        return self.lattice.steps + 1

    def index(self, answer: Fraction | int) -> int:
        nearest = math.floor((Fraction(answer) - self.lattice.lo) / self.lattice.step + Fraction(1, 2))
        return min(max(nearest, 0), self.lattice.steps)

    def answer(self, index: int) -> Fraction:
        return min(self.lattice.lo + index * self.lattice.step, self.lattice.hi)


@dataclass(frozen=True, slots=True)
class Labels:
    """Categories, in the order of an ordinal attribute or in any order.

    >>> Labels(("no", "yes")).index("yes"), Labels(("no", "yes")).index("perhaps")
    (1, None)
    """

    labels: tuple[str, ...]
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_size(len(self.labels))
        if not self.labels or len(set(self.labels)) < len(self.labels):
            raise OptionError("categories-listed-once-each-there-least", option="categories")
        object.__setattr__(self, "_places", {label: place for place, label in enumerate(self.labels)})

    @property
    def size(self) -> int:
        return len(self.labels)

    def index(self, answer: object) -> int | None:
        return self._places.get(str(answer))

    def answer(self, index: int) -> str:
        return self.labels[index]


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of the answers of several parts; the last part moves fastest.

    >>> grid = Grid((Labels(("a", "b")), Labels(("x", "y", "z"))))
    >>> grid.size, grid.index(("b", "x")), grid.answer(5)
    (6, 3, ('b', 'z'))
    """

    parts: tuple[Support, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise OptionError("vector-answers-needs-least-part")
        _check_size(self.size)

    @property
    def size(self) -> int:
        return math.prod(part.size for part in self.parts)

    def index(self, answer: Sequence[Any]) -> int | None:
        if len(answer) != len(self.parts):
            return None
        number = 0
        for part, value in zip(self.parts, answer, strict=True):
            place = None if value is None else part.index(value)
            if place is None:
                return None
            number = number * part.size + place
        return number

    def answer(self, index: int) -> tuple[Any, ...]:
        found = []
        for part in reversed(self.parts):
            index, place = divmod(index, part.size)
            found.append(part.answer(place))
        return tuple(reversed(found))


def _check_size(size: int) -> None:
    if size > MAX_ANSWERS:
        raise OptionError("there-possible-answers-most-can-refined", size=size, max_answers=MAX_ANSWERS)
