"""Prior distributions of an analyst and their support.

A prior comes from the analyst and never from the data: the guarantee does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Lattice
from shoal.display import internal
from shoal.errors import OptionError
from shoal.numbers import exact
from shoal.text import Message

# a query sorts all answers by their distance from the truth, so their number is limited
MAX_ANSWERS = 1 << 20
# Totals must fit into 63 bits for draws below them.
MAX_TOTAL = 1 << 62
# Floating-point masses are rounded to integer multiples of this.
_PARTS = 1 << 50
_MASS = Message.of("part-mass-of-prior")


class Support(Protocol):
    """Answers numbered 0 .. size - 1."""

    @property
    def size(self) -> int: ...

    def index(self, answer: Any) -> int | None:
        """The number of an answer (or of the nearest, where that is meaningful), or None if it is not possible."""

    def answer(self, index: int) -> Any:
        """The answer with a given number."""


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
    """All combinations of the answers of several parts; the last part varies fastest.

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


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Integer weights of all possible answers; the mass of an answer is its weight divided by their total.

    >>> uniform(Labels(("a", "b", "c"))).mass(1)
    Fraction(1, 3)
    """

    support: Support
    weights: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.weights.shape != (self.support.size,):
            raise OptionError(
                "prior-over-answers-needs-many-masses", size=self.support.size, found=self.weights.size
            )
        if self.weights.min() < 0 or not 0 < sum_exactly(self.weights) <= MAX_TOTAL:
            raise OptionError("masses-prior-least-0-them-above")
        self.weights.setflags(write=False)

    @property
    def total(self) -> int:
        return int(self.weights.sum())

    def mass(self, index: int) -> Fraction:
        """The exact prior probability of an answer."""
        return Fraction(int(self.weights[index]), self.total)


def uniform(support: Support) -> Prior:
    """Equal mass for every answer: no prior knowledge."""
    return Prior(support, np.ones(support.size, dtype=np.int64))


def normal(lattice: Lattice, mean: Fraction, deviation: Fraction) -> Prior:
    """A normal distribution truncated at the ends of the lattice; a point has the mass of the step around it.

    >>> prior = normal(Lattice(Fraction(0), Fraction(10), Fraction(1)), Fraction(5), Fraction(2))
    >>> round(float(prior.mass(5)), 4), prior.mass(4) == prior.mass(6)
    (0.1986, True)
    """
    if deviation <= 0:
        raise OptionError("standard-deviation-normal-prior-above-0", found=float(deviation))
    from scipy import stats

    return from_scipy(lattice, stats.norm(float(mean), float(deviation)))


def from_scipy(lattice: Lattice, distribution: Any) -> Prior:
    """Any frozen scipy distribution, truncated at the ends of the lattice; a point has the mass of the step around it.

    >>> from scipy import stats
    >>> coin = from_scipy(Lattice(Fraction(0), Fraction(2), Fraction(1)), stats.binom(2, 0.5))
    >>> [round(float(coin.mass(i)), 6) for i in range(3)]
    [0.25, 0.5, 0.25]
    """
    points = Points(lattice)
    edges = float(lattice.lo) + float(lattice.step) * (np.arange(points.size + 1) - 0.5)
    # from both ends, since a difference of numbers near 1 loses the precision of a small tail
    low, high = np.diff(distribution.cdf(edges)), -np.diff(distribution.sf(edges))
    masses = np.where(edges[1:] <= distribution.median(), low, high)
    return Prior(points, _parts(masses))


def histogram(lattice: Lattice, edges: Sequence[Fraction], weights: Sequence[object]) -> Prior:
    """Public counts of bins, spread evenly over the points of each bin. A bin starts at its lower edge.

    The last bin includes its upper edge; points outside all bins have no mass.

    >>> edges = [Fraction(0), Fraction(2), Fraction(3)]
    >>> prior = histogram(Lattice(Fraction(0), Fraction(3), Fraction(1)), edges, [1, 3])
    >>> [prior.mass(i) for i in range(4)]
    [Fraction(1, 8), Fraction(1, 8), Fraction(3, 8), Fraction(3, 8)]
    """
    if len(edges) != len(weights) + 1 or any(a >= b for a, b in pairwise(edges)):
        raise OptionError("histogram-prior-needs-growing-edges-more")
    points = Points(lattice)
    # the first point at or above each edge
    places = [min(max(math.ceil((edge - lattice.lo) / lattice.step), 0), points.size) for edge in edges]
    if points.answer(min(places[-1], points.size - 1)) == edges[-1]:
        places[-1] += 1
    sizes = [end - start for start, end in pairwise(places)]
    masses = [_mass(weight) for weight in weights]
    if any(mass and size <= 0 for mass, size in zip(masses, sizes, strict=True)):
        raise OptionError("bin-histogram-prior-holds-no-point")
    found = np.zeros(points.size, dtype=np.int64)
    # one number for each bin, whatever the number of its points
    found[places[0] : places[-1]] = np.repeat(_whole(masses, [max(size, 1) for size in sizes]), sizes)
    return Prior(points, found)


def categorical(masses: Mapping[str, object], order: Sequence[str] | None = None) -> Prior:
    """Masses of categories, as decimals or fractions; they need not add up to 1.

    >>> categorical({"0": "0.99", "1": "0.01"}).mass(1)
    Fraction(1, 100)
    """
    support = Labels(tuple(masses) if order is None else tuple(order))
    for label in masses:
        if support.index(label) is None:
            raise OptionError("prior-names-no-possible-answer", label=label)
    return Prior(support, _whole([_mass(masses.get(label, 0)) for label in support.labels]))


def joint(parts: Sequence[Support], masses: Mapping[tuple[Any, ...], object]) -> Prior:
    """Masses of whole vectors; vectors that are not listed have mass 0 and are never answered.

    >>> prior = joint([Labels(("n", "y"))] * 2, {("n", "n"): 2, ("n", "y"): 1, ("y", "n"): 1})
    >>> prior.mass(3), prior.mass(0)
    (Fraction(0, 1), Fraction(1, 2))
    """
    grid = Grid(tuple(parts))
    places: dict[int, Fraction] = {}
    for vector, mass in masses.items():
        place = grid.index(vector)
        if place is None:
            raise OptionError("joint-prior-names-no-possible-answer", vector=vector)
        places[place] = places.get(place, Fraction(0)) + _mass(mass)
    found = np.zeros(grid.size, dtype=np.int64)
    found[list(places)] = _whole(list(places.values()))
    return Prior(grid, found)


def product(*parts: Prior) -> Prior:
    """Independent parts of a vector. Exact as long as the product of all totals stays below 2^62.

    >>> prior = product(categorical({"a": 1, "b": 3}), uniform(Labels(("x", "y"))))
    >>> [prior.mass(i) for i in range(4)]
    [Fraction(1, 8), Fraction(1, 8), Fraction(3, 8), Fraction(3, 8)]
    """
    grid = Grid(tuple(part.support for part in parts))
    reduced = [_reduced(part.weights) for part in parts]
    if math.prod(int(weights.sum()) for weights in reduced) > MAX_TOTAL:
        reduced = [_coarser(weights, 61 // len(parts)) for weights in reduced]
    combined = reduced[0]
    for weights in reduced[1:]:
        combined = np.multiply.outer(combined, weights).ravel()
    return Prior(grid, combined)


def sum_exactly(weights: NDArray[np.int64]) -> int:
    """The sum of non-negative integers, also where it does not fit into 64 bits."""
    return (int((weights >> 32).sum()) << 32) + int((weights & 0xFFFFFFFF).sum())


def _mass(value: object) -> Fraction:
    mass = exact(value, _MASS)
    if mass < 0:
        raise OptionError("mass-prior-least-0", found=value)
    return mass


def _whole(masses: Sequence[Fraction], shared: Sequence[int] | None = None) -> NDArray[np.int64]:
    """Integers in the ratio of the masses; rounded to parts of 2^50 only where exact ones would be too large.

    Args:
        masses: decimal numbers, so that their common denominator is short.
        shared: the number of answers that share each mass evenly; the number for one of these is returned.
    """
    shares = [1] * len(masses) if shared is None else shared
    common = math.lcm(*{mass.denominator for mass in masses})
    whole = [mass.numerator * (common // mass.denominator) for mass in masses]
    total, split = sum(whole), 1
    for share in {share for share, one in zip(shares, whole, strict=True) if one}:
        split = math.lcm(split, share)
        if split > MAX_TOTAL:
            break
    divisor = math.gcd(*whole) or 1
    if split * total // divisor <= MAX_TOTAL:
        exactly = [one // divisor * (split // share) for one, share in zip(whole, shares, strict=True)]
        return _reduced(np.array(exactly, dtype=np.int64))
    rounded = [
        max((2 * one * _PARTS + share * total) // (2 * share * total), 1) if one else 0
        for one, share in zip(whole, shares, strict=True)
    ]
    return np.array(rounded, dtype=np.int64)


def _parts(masses: ArrayLike) -> NDArray[np.int64]:
    found = np.asarray(masses, dtype=np.float64)
    found = np.where(np.isfinite(found) & (found > 0), found, 0)
    if not found.any():
        raise OptionError("prior-no-mass-possible-answers")
    # an answer with positive mass keeps a positive weight
    return np.where(found > 0, np.maximum(np.rint(found / found.sum() * _PARTS), 1), 0).astype(np.int64)


def _reduced(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    divisor = int(np.gcd.reduce(weights))
    return weights // divisor if divisor > 1 else weights


def _coarser(weights: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Weights rounded so that their total stays below 2^bits; positive weights stay positive."""
    shrink = max(sum_exactly(weights).bit_length() - (bits - 1), 0)
    rounded = weights >> shrink
    return np.where((weights > 0) & (rounded == 0), 1, rounded)
