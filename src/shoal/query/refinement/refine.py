"""Refine an answer: probabilities, distances, and a draw from the refined distribution.

The truth and its distances are private, so the work must not depend on them. Nothing is sorted: the distances at
which the probability changes are found by bisection over all possible distances, and every step of it is
a pass over all answers.

The guarantee does not depend on a distance: it only determines which answers are raised. Floating point suffices.

exp(ε) is irrational. The factors are rational numbers rounded inwards, so that every ratio of probabilities is an exact
fraction of at most exp(ε); the loss of 2^-80 is negligible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.columns import Lattice
from shoal.display import internal
from shoal.errors import OptionError
from shoal.noise import Source, enclose_exp
from shoal.numbers import Bools, decimal_text, exact
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


_BITS = 80
# from here on the factors stop growing: smaller factors are always allowed, and larger ones have no practical use
_LARGEST_EXPONENT = 40
Distance = Callable[[Support, int], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Factors:
    """Multipliers of the prior mass of answers near the truth (`up`) and far from it (`down`).

    >>> Factors(Fraction(2), Fraction(1, 2)).mass_up
    Fraction(1, 3)
    """

    up: Fraction
    down: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.down <= 1 <= self.up:
            raise OptionError("factors-need-0-down-1-up", up=self.up, down=self.down)

    @classmethod
    def individual(cls, epsilon: Fraction) -> Factors:
        """Factors within exp(-ε) .. exp(ε) of the prior, for a query about one person.

        Guarantee:
            For a person who is not in the data the prior answers. So it is ε-DP for one record added or removed,
            and 2ε-DP for one record replaced.

        Reference:
            Thesis, Proposition 3 and Table 5.2; docs/proofs/queries.md#refinement.

        >>> float(Factors.individual(Fraction(1)).up)
        2.718281828459045
        """
        _check_positive("epsilon", epsilon)
        return cls(_exp_below(epsilon), _exp_minus_above(epsilon))

    @classmethod
    def statistical(cls, epsilon: Fraction, lift: Fraction = Fraction(1, 2)) -> Factors:
        """Factors with up / down at most exp(ε), for a query about many persons.

        Args:
            epsilon: the budget.
            lift: the share of ε that raises near answers; the rest lowers far ones.

        Guarantee:
            ε-DP between any two data sets, so under every adjacency.

        Reference:
            Thesis, Proposition 2 and Table 5.2; docs/proofs/queries.md#refinement.

        >>> factors = Factors.statistical(Fraction(2))
        >>> float(factors.up), float(factors.down)
        (2.718281828459045, 0.36787944117144233)
        """
        _check_positive("epsilon", epsilon)
        if not 0 < lift < 1:
            raise OptionError("lift-lie-between-0-1", option="lift", found=decimal_text(lift))
        return cls(_exp_below(lift * epsilon), _exp_minus_above((1 - lift) * epsilon))

    @property
    def mass_up(self) -> Fraction:
        """The prior mass p_u that can be raised: up·p_u + down·(1 - p_u) = 1."""
        return (1 - self.down) / (self.up - self.down) if self.up > self.down else Fraction(0)

    @property
    def chance_up(self) -> Fraction:
        """The probability of the answers that held the mass p_u before."""
        return self.up * self.mass_up


def movable(epsilon: Fraction, delta: Fraction, *, individual: bool, replace_one: bool) -> Fraction:
    """The probability that may be moved from the farthest answers to the truth for an additional δ.

    Guarantee:
        With factors of `Factors.individual(ε)`: (ε, δ)-DP for one record added or removed at δ·exp(-ε), and (2ε, δ)-DP
        for one replaced at δ/(1 + exp(2ε)). With factors of `Factors.statistical(ε)`: (ε, δ)-DP at δ/(1 + exp(ε)).
        Rounded down.

    Reference:
        Thesis, section 5.2, where the shares are larger, too large: docs/proofs/queries.md#refinement.

    >>> round(float(movable(Fraction(1), Fraction(1, 10), individual=True, replace_one=False)), 6)
    0.036788
    """
    if not 0 <= delta < 1:
        raise OptionError("delta-least-0-below-1", option="delta", found=decimal_text(delta))
    if individual and not replace_one:
        return delta * _exp_minus_below(epsilon)
    odds = _exp_minus_below(2 * epsilon if individual else epsilon)
    # exp(-x) / (1 + exp(-x)) grows with exp(-x), so a lower bound stays one
    return delta * odds / (1 + odds)


def _exp_below(x: Fraction) -> Fraction:
    """A fraction of at least 1 and at most exp(x)."""
    bits = 3 * _BITS
    _, above = enclose_exp(min(x, Fraction(_LARGEST_EXPONENT)), bits)
    return Fraction((1 << bits + _BITS) // above, 1 << _BITS)


def _exp_minus_above(x: Fraction) -> Fraction:
    """A fraction of at least exp(-x) and at most 1."""
    _, above = enclose_exp(min(x, Fraction(_LARGEST_EXPONENT)), 2 * _BITS)
    return Fraction(-(-above >> _BITS), 1 << _BITS)


def _exp_minus_below(x: Fraction) -> Fraction:
    below, _ = enclose_exp(x, 2 * _BITS)
    return Fraction(below >> _BITS, 1 << _BITS)


def _check_positive(name: str, value: Fraction) -> None:
    if value <= 0:
        raise OptionError("option-above-0", option=name, found=decimal_text(value))


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """The distribution of the answer. It is secret: only one draw from it may be published.

    Attributes:
        groups: the group of each answer; inside a group probabilities are in the ratio of the prior.
        chances: the probability of each group, in units of `common`; they add up to it.
        common: an integer that follows from public facts alone.
    """

    prior: Prior
    groups: NDArray[np.int8]
    chances: tuple[int, ...]
    common: int

    def probabilities(self) -> list[Fraction]:
        """The exact probability of every answer, in the order of the support."""
        masses = [int((self.prior.weights * (self.groups == number)).sum()) for number in range(self.size)]
        return [
            Fraction(self.chances[group] * weight, self.common * masses[group]) if weight else Fraction(0)
            for group, weight in zip(self.groups.tolist(), self.prior.weights.tolist(), strict=True)
        ]

    @property
    def size(self) -> int:
        return len(self.chances)


def refine(
    prior: Prior, distances: NDArray[Any] | None, factors: Factors, moved: Fraction = Fraction(0)
) -> Refined:
    """Raise the prior near the truth and lower it far from it, as far as the factors allow.

    The nearest answers that hold at most the mass p_u together are multiplied by `up`, the farthest ones that hold at
    most 1 - p_u by `down`; answers at the distance in between, if any, share the remaining mass, which is between
    the two. Answers at one distance have one factor.

    Args:
        prior: the analyst's prior of the answer.
        distances: from the truth, for every answer; None if there is no truth (the person is not in the data): the
            distribution is then the prior itself.
        factors: see `Factors.individual` and `Factors.statistical`.
        moved: probability taken from the farthest answers and given to the nearest, see `movable`.

    Guarantee:
        Without `moved`, the probability of every answer is within `down` .. `up` times its prior mass, exactly. With
        it, the probability of every set of answers differs from that of such a distribution by at most `moved`.

    Cost:
        A pass over the answers for every bit of a distance, whatever the distances are.

    Reference:
        Thesis, Algorithm 5.1, with p_u and p_d in their places and the sets' own masses in α_ud;
        docs/proofs/queries.md#refinement.

    >>> from shoal.query.refinement.refine import nominal
    >>> from shoal.query.refinement.refine import categorical
    >>> prior = categorical({"0": "0.99", "1": "0.01"})
    >>> law = refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(1)))
    >>> [round(float(p), 6) for p in law.probabilities()]
    [0.972817, 0.027183]
    """
    if distances is None:
        return Refined(prior, np.zeros(prior.support.size, dtype=np.int8), (1,), 1)
    keys, total = _keys(np.asarray(distances)), prior.total
    # every probability below is an integer multiple of the reciprocal of this
    parts = lcm(factors.up.denominator, factors.down.denominator, moved.denominator)
    up, down = int(factors.up * parts), int(factors.down * parts)
    raised = factors.mass_up * total
    least = -(-raised.numerator // raised.denominator)

    def within(mask: Bools) -> int:
        return int(np.multiply(prior.weights, mask).sum())

    border = _first(keys, lambda key: within(keys <= key) >= least)
    # the sphere at the border belongs to the raised answers only if it fits as a whole
    fits = within(keys <= border) == raised
    near = border - (not fits)
    groups = (keys > near).astype(np.int8) + (keys > border)
    rates = (up, 0, down)
    masses = [within(groups == number) for number in range(3)]
    high, low = up * masses[0], down * masses[2]
    chances = (high, parts * total - high - low, low)
    if not moved:
        return Refined(prior, groups, chances, parts * total)
    return _moved(prior, keys, groups, rates, chances, int(moved * parts) * total, parts * total)


def _moved(
    prior: Prior,
    keys: NDArray[np.int64],
    groups: NDArray[np.int8],
    rates: tuple[int, int, int],
    chances: tuple[int, int, int],
    amount: int,
    common: int,
) -> Refined:
    """Take `amount` from the farthest answers, one distance after another, and add it to the nearest ones."""
    # answers of prior mass 0 are never the nearest
    nearest = keys == np.maximum(keys, (prior.weights == 0) * np.iinfo(np.int64).max).min()
    weights = [np.multiply(prior.weights, (groups == number) & ~nearest) for number in range(3)]

    def chance(mask: Bools) -> int:
        """The probability of these answers except the nearest; the middle group is at one distance, so all or none."""
        inner, middle, outer = (int(np.multiply(one, mask).sum()) for one in weights)
        return rates[0] * inner + chances[1] * (middle > 0) + rates[2] * outer

    border = _first(keys, lambda key: chance(keys > key) <= amount)
    at, beyond = (keys == border) & ~nearest, (keys > border) & ~nearest
    kept = ~(nearest | at | beyond)
    # 0 nearest, 1 to 3 unchanged, 4 at the border, 5 beyond it
    final = (groups + 1) * kept + 4 * at + 5 * beyond
    spared = max(chance(keys >= border) - amount, 0)
    untouched = [chance(kept & (groups == number)) for number in range(3)]
    return Refined(
        prior,
        final.astype(np.int8),
        (common - sum(untouched) - spared, *untouched, spared, 0),
        common,
    )


def _keys(distances: NDArray[Any]) -> NDArray[np.int64]:
    """Distances as integers in the same order, so that one can be found by its bits.

    >>> _keys(np.array([0.5, -0.0, 0.0, -2.0, np.inf])).argsort(kind="stable").tolist()
    [3, 1, 2, 0, 4]
    """
    if distances.dtype.kind != "f":
        return distances
    # 0.0 is added to merge the two zeros
    bits = (distances.astype(np.float64) + 0.0).view(np.int64)
    keys: NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return keys


def _first(keys: NDArray[np.int64], holds: Callable[[Any], bool]) -> int:
    """Smallest number for which a monotone predicate holds: as many steps as a key has bits."""
    ends = np.iinfo(keys.dtype)
    low, high = int(ends.min), int(ends.max)
    for _ in range(ends.bits):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(keys.dtype.type(middle)) else (middle + 1, high)
    return high


def absolute(support: Support, truth: int) -> NDArray[Any]:
    """Steps between two points of a lattice, or positions between two labels of an order.

    >>> from shoal.query.refinement.refine import Labels
    >>> absolute(Labels(("low", "middle", "high")), 2).tolist()
    [2, 1, 0]
    """
    # short integers: `refine` passes over them once for every bit
    return np.asarray(np.abs(np.arange(support.size, dtype=np.int32) - np.int32(truth)))


def nominal(support: Support, truth: int) -> NDArray[Any]:
    """0 for the truth, 1 for everything else.

    >>> from shoal.query.refinement.refine import Labels
    >>> nominal(Labels(("a", "b", "c")), 1).tolist()
    [1, 0, 1]
    """
    return np.asarray(np.arange(support.size) != truth, dtype=np.int8)


def from_table(table: ArrayLike) -> Distance:
    """Distances from a square table, such as that of a taxonomy, with one row for each true answer.

    >>> from shoal.query.refinement.refine import Labels
    >>> from_table([[0, 2], [2, 0]])(Labels(("a", "b")), 1).tolist()
    [2.0, 0.0]
    """
    square = np.array(table, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or not (square >= 0).all():
        raise OptionError("table-distances-square-numbers-least-0")
    square.setflags(write=False)

    def looked_up(support: Support, truth: int) -> NDArray[Any]:
        if support.size != square.shape[0]:
            raise OptionError(
                "table-distances-rows-but-there-answers", shape=square.shape[0], size=support.size
            )
        return np.asarray(square[truth])

    return looked_up


def from_function(function: Callable[[Any, Any], float]) -> Distance:
    """The caller's own distance between two answers, such as that of a taxonomy. NaN counts as far.

    >>> from shoal.query.refinement.refine import Labels
    >>> from_function(lambda a, b: abs(len(a) - len(b)))(Labels(("a", "bb", "cccc")), 0).tolist()
    [0.0, 1.0, 3.0]
    """

    def computed(support: Support, truth: int) -> NDArray[Any]:
        true = support.answer(truth)
        found = [float(function(true, support.answer(number))) for number in range(support.size)]
        return np.asarray(np.nan_to_num(np.array(found), nan=np.inf, posinf=np.inf))

    return computed


class TaxonomyDistances(Protocol):
    """What a taxonomy must provide: the number of a concept, and its distances from all others."""

    def code(self, name: Any) -> int: ...

    def distances_to(self, code: int) -> NDArray[np.float64]: ...


def from_taxonomy(taxonomy: TaxonomyDistances) -> Distance:
    """Semantic distances between labels that are concepts of a taxonomy.

    >>> from shoal.query.refinement.refine import Labels
    >>> from shoal.taxonomy import Taxonomy
    >>> beings = Taxonomy.from_dict({"being": {"plant": ["oak"], "animal": ["cat", "dog"]}})
    >>> from_taxonomy(beings)(Labels(("oak", "cat", "dog")), 1).round(3).tolist()
    [0.848, 0.0, 0.585]
    """

    def looked_up(support: Support, truth: int) -> NDArray[Any]:
        codes = [taxonomy.code(support.answer(number)) for number in range(support.size)]
        return np.asarray(taxonomy.distances_to(codes[truth])[codes])

    return looked_up


def combined(parts: Sequence[Distance], how: str = "sum", scales: Sequence[float] | None = None) -> Distance:
    """A distance of vectors from distances of their parts, each divided by its scale.

    Args:
        parts: one distance for each part of the grid.
        how: "sum" or "max".
        scales: by default the number of answers of the part minus one, so that the unit of measurement has no effect.

    >>> from shoal.query.refinement.refine import Labels
    >>> grid = Grid((Labels(("a", "b")), Labels(("x", "y", "z"))))
    >>> combined([nominal, absolute])(grid, 0).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.5, 2.0]
    """
    if how not in ("sum", "max"):
        raise OptionError("distances-combined-sum-max", found=how)

    def of_grid(support: Support, truth: int) -> NDArray[Any]:
        if not isinstance(support, Grid) or len(support.parts) != len(parts):
            raise OptionError("distances-need-vector-many-parts", number_of_parts=len(parts))
        sizes = [part.size for part in support.parts]
        places = np.unravel_index(truth, sizes)
        dividers = [max(size - 1, 1) for size in sizes] if scales is None else scales
        total = np.zeros(sizes)
        for axis, (part, distance) in enumerate(zip(support.parts, parts, strict=True)):
            # a nominal distance is 0 or 1 whatever the number of answers
            divider = 1 if distance is nominal and scales is None else dividers[axis]
            along = distance(part, int(places[axis])) / divider
            along = along.reshape([-1 if other == axis else 1 for other in range(len(sizes))])
            total = total + along if how == "sum" else np.maximum(total, along)
        return total.ravel()

    return of_grid


def sample(refined: Refined, source: Source, *, known: bool = True) -> int:
    """The number of one answer, drawn with exactly the probabilities of the distribution.

    A group is drawn by integers over the common denominator of all chances, an answer inside it by the
    integer weights of the prior: no probability is ever rounded.

    Args:
        refined: the distribution.
        source: the source of the random bits.
        known: whether there is a truth at all; if not, the answer is drawn from the prior, with the same work.

    >>> from fractions import Fraction
    >>> from shoal.noise import Seeded
    >>> from shoal.query.refinement import Factors, Labels, nominal, refine, uniform
    >>> prior = uniform(Labels(("a", "b")))
    >>> sample(refine(prior, nominal(prior.support, 1), Factors.individual(Fraction(30))), Seeded(1))
    1
    """
    drawn, below, group = whole_below(refined.common, source), 0, 0
    for chance in refined.chances[:-1]:
        below += chance
        group += drawn >= below
    members = (refined.groups == group) | (not known)
    sums = np.cumsum(np.multiply(refined.prior.weights, members))
    place = fraction_of(int(sums[-1]), source)
    return int(np.count_nonzero(sums <= place))


def fraction_of(bound: int, source: Source) -> int:
    """A uniform integer below a bound: the integer part of the bound times a uniform real number.

    Unlike `whole_below` it draws the same number of words whatever the bound, except once in 2^66 draws where it is at
    most 2^62: there more digits of the real number are needed.

    >>> from shoal.noise import Seeded
    >>> fraction_of(1, Seeded(1)), fraction_of(2**62, Seeded(1)) < 2**62
    (0, True)
    """
    digits, bits = 0, 0
    while True:
        for word in source.words(2 if not bits else 1).tolist():
            digits, bits = digits << 64 | word, bits + 64
        low, high = digits * bound >> bits, ((digits + 1) * bound - 1) >> bits
        if low == high:
            return low


def whole_below(bound: int, source: Source) -> int:
    """A uniform integer below a public bound of any size, without bias: numbers that are too large are redrawn.

    >>> from shoal.noise import Seeded
    >>> whole_below(1, Seeded(1)), whole_below(10**30, Seeded(1)) < 10**30
    (0, True)
    """
    bits = (bound - 1).bit_length()
    words = -(-bits // 64)
    while True:
        drawn = 0
        for word in source.words(words).tolist():
            drawn = drawn << 64 | word
        drawn >>= 64 * words - bits
        if drawn < bound:
            return drawn
