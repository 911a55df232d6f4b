"""One-way marginals of pairs-dp: intervals, their shares of rows, and missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs.budget import AttributeFacts
from shoal.numbers import Floats, Integers

# An exponential density this steep over its interval is in practice a point.
_STEEPEST = 500.0


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Fine:
    """A distribution over the positions of an attribute, interval by interval.

    Attributes:
        lows, highs: first and last position of each interval.
        shares: probability of each; they add up to one.
        slopes: growth of the density inside each interval, as an exponent per interval; 0 is uniform.
    """

    lows: Integers
    highs: Integers
    shares: Floats
    slopes: Floats

    def positions(self, levels: Floats) -> Floats:
        """Integer positions at these levels (0 to 1) of the distribution function."""
        ends = np.cumsum(self.shares)
        ends /= ends[-1]
        which = np.minimum(np.searchsorted(ends, levels, side="right"), ends.size - 1)
        starts = np.concatenate(([0.0], ends[:-1]))
        share = ends[which] - starts[which]
        inside = np.divide(levels - starts[which], share, out=np.full(levels.size, 0.5), where=share > 1e-15)
        inside = np.clip(inside, 0.0, 1.0)
        place = _exponential_quantile(inside, self.slopes[which])
        low, high = self.lows[which], self.highs[which]
        found: Floats = np.clip(np.floor(low + place * (high - low + 1)), low, high)
        return found


def _exponential_quantile(level: Floats, slope: Floats) -> Floats:
    """Quantiles of the density proportional to exp(slope·x) on [0, 1]."""
    steepness = np.maximum(np.abs(slope), 1e-6)
    # a decreasing density is an increasing one read from the other end
    grown = np.where(slope > 0, level, 1 - level)
    place = np.log1p(grown * np.expm1(steepness)) / steepness
    found: Floats = np.where(slope > 0, place, 1 - place)
    return found


def slopes_for(means: Floats) -> Floats:
    """Slopes of exponential densities on [0, 1] with these means: the maximum entropy distributions.

    >>> slopes_for(np.array([0.75, 0.25])).round(2).tolist()
    [3.59, -3.59]
    """
    wanted = np.clip(means, 1 / _STEEPEST, 1 - 1 / _STEEPEST)
    low, high = np.full(wanted.size, -_STEEPEST), np.full(wanted.size, _STEEPEST)
    for _ in range(60):
        middle = (low + high) / 2
        small = _exponential_mean(middle) < wanted
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    found: Floats = (low + high) / 2
    return found


def _exponential_mean(slope: Floats) -> Floats:
    flat = np.abs(slope) < 1e-4
    safe = np.where(flat, 1.0, slope)
    return np.where(flat, 0.5 + slope / 12, -1 / np.expm1(-safe) - 1 / safe)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """A measured attribute.

    Attributes:
        fine: the distribution of its positions.
        shares: probabilities of the bins that pairs use.
        levels: number of halvings that give the bins, 2^levels of them; 0 for names, and for attributes of one value.
        edges: bin i contains the positions edges[i] .. edges[i+1] - 1; None for names.
        groups: the bin of each position, for names.
    """

    fine: Fine
    shares: Floats
    levels: int
    edges: Integers | None
    groups: NDArray[np.uint8] | None = None

    @property
    def bins(self) -> int:
        return self.shares.size

    @property
    def names(self) -> bool:
        return self.groups is not None

    @property
    def exact_bins(self) -> bool:
        """Whether every bin contains at most one position, and so determines it."""
        if self.groups is not None:
            return False
        assert self.edges is not None
        return bool((np.diff(self.edges) <= 1).all())

    def codes(self, positions: Integers) -> NDArray[np.uint8]:
        """The bin of each position. Private for records' positions."""
        if self.groups is not None:
            return self.groups[positions]
        assert self.edges is not None
        # a lookup table is faster than a search, as long as it is small
        if self.edges[-1] <= 1 << 16 and self.edges[-1] <= 4 * positions.size:
            table = np.searchsorted(self.edges[1:-1], np.arange(self.edges[-1]), side="right").astype(
                np.uint8
            )
            return table[positions]
        return np.searchsorted(self.edges[1:-1], positions, side="right").astype(np.uint8)


def points(shares: Floats) -> Fine:
    """A distribution over single positions."""
    places = np.arange(shares.size, dtype=np.int64)
    return Fine(places, places, shares, np.zeros(shares.size))


def constant() -> Marginal:
    """An attribute of one value."""
    return Marginal(points(np.ones(1)), np.ones(1), 0, np.array([0, 1], dtype=np.int64))


# Placeholder position for a record without a value of an attribute.
ABSENT = -1
# Lower bound of the share of records with a value.
_LEAST = 0.01


def with_flags(attributes: Sequence[AttributeFacts], flagged: Sequence[str]) -> tuple[AttributeFacts, ...]:
    """The attributes, followed by a missing-value flag for each one with a "missing" state.

    >>> [facts.name for facts in with_flags([AttributeFacts("age", 80, True), AttributeFacts("sex", 2, True)], ["age"])]
    ['age', 'sex', 'whether age is missing']
    """
    numbers = [number for number, facts in enumerate(attributes) if facts.name in flagged]
    flags = [AttributeFacts(f"whether {attributes[a].name} is missing", 2, True, flag_of=a) for a in numbers]
    return (*attributes, *flags)


def flags_of(attributes: Sequence[AttributeFacts]) -> dict[int, int]:
    """The index of the missing-value flag of each attribute that has one."""
    return {facts.flag_of: number for number, facts in enumerate(attributes) if facts.flag_of is not None}


def present_positions(positions: Sequence[Integers], flags: Mapping[int, int]) -> list[Integers]:
    """The positions of the records that have a value, for each attribute. Private, and so is their number."""
    return [own[own != ABSENT] if number in flags else own for number, own in enumerate(positions)]


@dataclass(frozen=True, slots=True)
class Presence:
    """Shares of the records that have a value.

    Attributes:
        flags: the missing-value flag of each attribute that has one.
        shares: of records with a value, by these attributes.
        both: share of records with a value of both attributes; other pairs are assumed independent.
    """

    flags: Mapping[int, int]
    shares: Mapping[int, float]
    both: Mapping[tuple[int, int], float]

    def of(self, a: int, b: int) -> float:
        """The share of records that can change a sum over attributes a and b."""
        apart = self.shares.get(a, 1.0) * self.shares.get(b, 1.0)
        return self.both.get((min(a, b), max(a, b)), apart)


def presence(marginals: Sequence[Marginal], flags: Mapping[int, int]) -> Presence:
    """Presence as estimated from single attributes."""
    shares = {a: max(float(marginals[flag].shares[0]), _LEAST) for a, flag in flags.items()}
    return Presence(flags, shares, {})


def of_present(
    products: Floats, signs: Sequence[int], marginals: Sequence[Marginal], known: Presence
) -> tuple[Floats, Presence]:
    """Mean products of signs as they would be without gaps, and the joint shares of gaps they imply.

    A mean product with the sign of a value is over the records that have it. If these differ from others, the other
    sign has another mean among them, which follows from its product with the flag: that contribution is removed. A
    value and its own flag are unrelated.
    """
    if not known.flags:
        return products, known
    place = {number: i for i, number in enumerate(signs)}
    means = {a: float(2 * marginals[a].shares[: marginals[a].bins // 2].sum() - 1) for a in signs}
    values = [a for a in known.flags if a in place]
    both = {
        (a, b): _together(products, place, means, known, a, b)
        for a in known.flags
        for b in known.flags
        if a < b
    }
    known = replace(known, both=both)
    found = products.copy()
    for a in values:
        flag = known.flags[a]
        for b in signs:
            i, j = place[a], place[b]
            if b == a:
                continue
            if b == flag:
                mean = means[a] * means[b]
            elif b in known.flags:
                mean = float(products[i, j]) / known.of(a, b)
            else:
                among = (means[b] + float(products[place[flag], j])) / (2 * known.shares[a])
                mean = float(products[i, j]) / known.shares[a] - means[a] * (
                    min(max(among, -1), 1) - means[b]
                )
            found[i, j] = found[j, i] = min(max(mean, -1.0), 1.0)
    return found, known


def _together(
    products: Floats,
    place: Mapping[int, int],
    means: Mapping[int, float],
    known: Presence,
    a: int,
    b: int,
) -> float:
    """Share of the records with a value of both, by the product of their flags."""
    first, second = known.flags[a], known.flags[b]
    share = (1 + means[first] + means[second] + float(products[place[first], place[second]])) / 4
    p, q = known.shares[a], known.shares[b]
    return min(max(share, p + q - 1, p * q / 2, _LEAST), p, q)
