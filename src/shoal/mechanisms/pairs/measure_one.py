"""Measurements of single columns in pairs-dp: thresholds, tails and shares of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs.budget import (
    INSIDE_LEVELS,
    OF_ONE,
    PAIR_LEVELS,
    SUM_PARTS,
    AttributeFacts,
    Currency,
    MeasurementShape,
    OneWay,
    most_groups,
)
from shoal.mechanisms.tree.intervals import draw_edges, ends_of, nearest_counts, steadied
from shoal.mechanisms.tree.mechanism import halved
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant
from shoal.taxonomy import Taxonomy
from shoal.workers import threaded

# An exponential density this steep over its interval is in practice a point.
_STEEPEST_LOGIT = 500.0


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
    wanted = np.clip(means, 1 / _STEEPEST_LOGIT, 1 - 1 / _STEEPEST_LOGIT)
    low, high = np.full(wanted.size, -_STEEPEST_LOGIT), np.full(wanted.size, _STEEPEST_LOGIT)
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
        finer: edges of equally many parts of all bins, two or four each, if there are any finer than the bins.
        parts: for each bin, the share of each part in it, with `finer`.
    """

    fine: Fine
    shares: Floats
    levels: int
    edges: Integers | None
    groups: NDArray[np.uint8] | None = None
    finer: Integers | None = None
    parts: Floats | None = None

    @property
    def bins(self) -> int:
        return self.shares.size

    @property
    def names(self) -> bool:
        return self.groups is not None

    @property
    def all_levels(self) -> int:
        """The number of halvings that give the parts of bins, or the bins if these have none."""
        return self.levels if self.parts is None else self.levels + self.parts.shape[1].bit_length() - 1

    @property
    def exact_bins(self) -> bool:
        """Whether every bin contains at most one position, and so determines it."""
        if self.groups is not None:
            return False
        assert self.edges is not None
        return bool((np.diff(self.edges) <= 1).all())

    def codes(self, positions: Integers, *, finer: bool = False) -> NDArray[np.uint8]:
        """The bin of each position, or the part of a bin. Private for records' positions."""
        if self.groups is not None:
            return self.groups[positions]
        edges = self.finer if finer else self.edges
        assert edges is not None
        # a lookup table is faster than a search, as long as it is small
        if edges[-1] <= 1 << 16 and edges[-1] <= 4 * positions.size:
            table = np.searchsorted(edges[1:-1], np.arange(edges[-1]), side="right").astype(np.uint8)
            return table[positions]
        return np.searchsorted(edges[1:-1], positions, side="right").astype(np.uint8)


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
_LEAST_SHARE = 0.01


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
    shares = {a: max(float(marginals[flag].shares[0]), _LEAST_SHARE) for a, flag in flags.items()}
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
    return min(max(share, p + q - 1, p * q / 2, _LEAST_SHARE), p, q)


# Points in a domain from 0 to 1 at which curves are evaluated: evenly spaced, and denser towards its ends.
_EVEN, _NEAR_THRESHOLD = 256, 64
_CENTRES, _WIDTHS = 48, 24
_NARROWEST, _WIDEST = 0.003, 0.6
# Domains are often generous: curves that start at one end on another scale, whose zero lies this far beyond it.
_OFFSETS = (0.003, 0.03)
# Approximate distance of a real distribution function from the nearest curve.
MISFIT = 0.05


@lru_cache(maxsize=1)
def places() -> Floats:
    """The points at which curves are evaluated."""
    end = np.geomspace(1e-7, 1 / _EVEN, _NEAR_THRESHOLD)
    found: Floats = np.unique(np.concatenate((np.linspace(0, 1, _EVEN + 1), end, 1 - end)))
    return found


@lru_cache(maxsize=1)
def _curves() -> Floats:
    """Distribution functions, a row for each point: normal ones, and those on scales stretched at either end."""
    from scipy.special import ndtr

    x = places()
    found = []
    for scale in (x, *(np.log1p(x / o) / np.log1p(1 / o) for o in _OFFSETS)):
        centres = np.linspace(-0.1, 1.1, _CENTRES)[:, None, None]
        widths = np.geomspace(_NARROWEST, _WIDEST, _WIDTHS)[:, None]
        below = ndtr((scale - centres) / widths).reshape(-1, x.size)
        found.append(below)
        if scale is not x:
            found.append(1 - below[:, ::-1])
    return np.ascontiguousarray(np.concatenate(found).T)


def likely(asked: Floats, answers: Floats, noise: float | Floats) -> Floats:
    """The mean distribution function at all points, given the answers; one row for each attribute.

    >>> nothing = np.zeros((1, 0))
    >>> round(float(np.interp(0.5, places(), likely(nothing, nothing, 1.0)[0])), 6)
    0.5
    """
    curves, x = _curves(), places()
    spread = np.broadcast_to(np.sqrt(np.asarray(noise) ** 2 + MISFIT**2), len(asked))
    scores = np.zeros((len(asked), curves.shape[1]))
    right = np.clip(np.searchsorted(x, asked), 1, x.size - 1)
    part = (asked - x[right - 1]) / (x[right] - x[right - 1])
    for number, turn in np.ndindex(asked.shape):
        place, share = right[number, turn], part[number, turn]
        here = curves[place - 1] * (1 - share) + curves[place] * share
        scores[number] -= ((answers[number, turn] - here) / spread[number]) ** 2 / 2
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mean: Floats = (weights / weights.sum(axis=1, keepdims=True)) @ curves.T
    return mean


def where(curve: Floats, level: float) -> float:
    """The point at which a distribution function reaches a level."""
    return float(np.interp(level, curve, places()))


def settled(asked: Floats, answers: Floats, noise: float) -> Floats:
    """A distribution function at all points: the likely one, adjusted to answers as far as they exceed the noise."""
    from scipy.special import ndtr, ndtri

    x = places()
    mean = likely(asked[None], answers[None], noise)[0]
    inner, which = np.unique(asked, return_inverse=True)
    times = np.bincount(which)
    expected = np.interp(inner, x, mean)
    trust = MISFIT**2 / (MISFIT**2 + noise**2 / times)
    level = isotonic(expected + trust * (np.bincount(which, answers) / times - expected), times / 1.0)
    # between thresholds the curve keeps its shape, in normal scores
    shift = ndtri(np.clip(level, _LEAST, 1 - _LEAST)) - ndtri(np.clip(expected, _LEAST, 1 - _LEAST))
    moved = ndtr(ndtri(np.clip(mean, 1e-9, 1 - 1e-9)) + np.interp(x, inner, shift))
    found: Floats = np.maximum.accumulate(moved)
    return found


def least_known(asked: Floats, answers: Floats, noise: float) -> float:
    """The middle of the interval between thresholds with the largest uncertain mass, by its share and width.

    Multimodal distributions have gaps that no simple curve represents; this finds them.

    >>> least_known(np.array([0.5, 0.2]), np.array([0.9, 0.1]), 0.001)
    0.35
    """
    ends = np.unique(np.concatenate(([0.0], asked, [1.0])))
    level = np.interp(ends, places(), settled(asked, answers, noise))
    level[0], level[-1] = 0.0, 1.0
    widest = int(np.argmax(np.diff(level) * np.diff(ends)))
    return float(ends[widest] + ends[widest + 1]) / 2


def isotonic(values: Floats, weights: Floats) -> Floats:
    """The nearest non-decreasing values by weighted squared distance: pool adjacent violators.

    >>> isotonic(np.array([1.0, 3.0, 2.0]), np.ones(3)).tolist()
    [1.0, 2.5, 2.5]
    """
    means: list[float] = []
    sizes: list[float] = []
    members: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        means.append(value)
        sizes.append(weight)
        members.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            last, size, count = means.pop(), sizes.pop(), members.pop()
            means[-1] = (means[-1] * sizes[-1] + last * size) / (sizes[-1] + size)
            sizes[-1] += size
            members[-1] += count
    return np.repeat(means, members)


# Number of cuts the curve goes through, and its approximate tolerance.
_POINTS, _NOISE = 15, 0.01
# Tilts, as exponents per standard deviation of the interval.
_STEEPEST = 40.0


def with_tails(fine: Fine, edges: Integers, means: Floats, noise: Floats) -> Fine:
    """The distribution with its first and last interval divided into many pieces.

    Args:
        fine: one interval between any two edges.
        means: noisy mean position of each interval.
        noise: standard deviation of each.
    """
    size, filled = int(edges[-1]), np.flatnonzero(np.diff(edges) > 0)
    if filled.size < 3:
        return fine
    running = np.cumsum(fine.shares)[:-1]
    chosen = np.unique(np.linspace(0, running.size - 1, _POINTS).astype(np.int64))
    curve = likely(edges[None, 1:-1][:, chosen] / size, running[None, chosen], _NOISE)[0]
    parts = [
        tuple(part[here : here + 1] for part in (fine.lows, fine.highs, fine.shares, fine.slopes))
        for here in filled
    ]
    grid = np.rint(places() * size).astype(np.int64)
    for place in (0, -1):
        here = filled[place]
        inside = grid[(grid > edges[here]) & (grid < edges[here + 1])]
        cuts = np.unique(np.concatenate((edges[[here, here + 1]], inside)))
        weights = np.maximum(np.diff(np.interp(cuts / size, places(), curve)), 1e-12)
        middles = (cuts[:-1] + cuts[1:] - 1) / 2
        weights = towards_mean(weights / weights.sum(), middles, float(means[here]), float(noise[here]))
        parts[place] = (cuts[:-1], cuts[1:] - 1, fine.shares[here] * weights, np.zeros(weights.size))
    lows, highs, shares, slopes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Fine(lows, highs, shares, slopes)


def towards_mean(weights: Floats, middles: Floats, mean: float, noise: float) -> Floats:
    """Weights of pieces, tilted so that their mean approaches a measured one as far as it exceeds the noise.

    >>> found = towards_mean(np.full(3, 1 / 3), np.array([0.0, 1.0, 2.0]), 1.5, 1e-9)
    >>> found.round(3).tolist()
    [0.116, 0.268, 0.616]
    """
    if weights.size < 2:
        return weights
    expected = float(weights @ middles)
    spread = float(np.sqrt(weights @ (middles - expected) ** 2))
    # a curve knows the mean of a tail about as well as the tail is narrow
    trust = spread**2 / (spread**2 + noise**2)
    wanted = expected + trust * (mean - expected)
    steps = (middles - expected) / spread
    low, high, found = -_STEEPEST, _STEEPEST, weights
    for _ in range(50):
        slope = (low + high) / 2
        exponents = slope * steps
        found = weights * np.exp(exponents - exponents.max())
        found = found / float(found.sum())
        low, high = (slope, high) if float(found @ middles) < wanted else (low, slope)
    return found


# A value has a group of its own if its share is this many times the noise on it.
_CLEAR = 3.0
# Where there are too many groups, they need so much more.
_MORE = 1.2


def merged(shares: Floats, least: float, most: int, taxonomy: Taxonomy | None) -> Marginal:
    """The attribute with its rare values merged into groups.

    Rare values are merged within the lowest concept of the taxonomy in which they are frequent together; the rest, and
    all of them without a taxonomy, form one group.

    Args:
        least: minimum share of a group, except for the rest.
        most: maximum number of groups.

    >>> merged(np.array([0.5, 0.01, 0.48, 0.01]), 0.06, 9, None).groups.tolist()
    [0, 2, 1, 2]
    """
    clear = shares >= least
    clear[np.argsort(-shares, kind="stable")[most - 1 :]] = False
    groups = _pooled(shares, clear, least, taxonomy)
    while groups.max() >= most:
        least *= _MORE
        clear &= shares >= least
        groups = _pooled(shares, clear, least, taxonomy)
    together: Floats = np.bincount(groups, shares).astype(np.float64)
    return Marginal(points(shares), together, 0, None, groups.astype(np.uint8))


def _pooled(
    shares: Floats, clear: NDArray[np.bool_], least: float, taxonomy: Taxonomy | None
) -> NDArray[np.int64]:
    """The group of each value: frequent values by themselves, then concepts of rare ones, then the rest."""
    found = np.where(clear, np.cumsum(clear) - 1, -1)
    number = int(clear.sum())
    rare = np.flatnonzero(~clear)
    if taxonomy is not None:
        below: dict[int, list[int]] = {}
        for place in rare.tolist():
            below.setdefault(taxonomy.domain[place], []).append(place)
        # children have larger codes than their parents
        for code in range(taxonomy.size - 1, 0, -1):
            members = below.pop(code, [])
            if len(members) > 1 and shares[members].sum() >= least:
                found[members] = number
                number += 1
            else:
                below.setdefault(taxonomy.parents[code], []).extend(members)
    found[found < 0] = number
    return found


@internal()
@dataclass(frozen=True, eq=False)
class Histogram:
    """Positions of the records of one attribute. Private.

    Attributes:
        positions: of all records, in any order; with `counts` distinct ones, in ascending order.
        counts: number of records at each position; None if every record is listed.
    """

    positions: Integers
    counts: Integers | None = None

    @cached_property
    def size(self) -> int:
        """Number of records."""
        return int(self.positions.size if self.counts is None else self.counts.sum())

    @cached_property
    def ordered(self) -> Integers:
        """The positions in ascending order."""
        return np.sort(self.positions) if self.counts is None else self.positions

    @cached_property
    def total(self) -> int:
        """Sum of the positions of all records."""
        return int((self.positions if self.counts is None else self.positions * self.counts).sum())

    def below(self, cut: int) -> int:
        """Number of records with a position below a cut."""
        if self.counts is None:
            return int(np.count_nonzero(self.positions < cut))
        return int(self.counts[: np.searchsorted(self.positions, cut)].sum())

    def of_each(self, points: int) -> Integers:
        """Number of records at each of the positions 0 .. points - 1.

        >>> Histogram(np.array([2, 0, 2])).of_each(3).tolist()
        [1, 0, 2]
        >>> Histogram(np.array([0, 2]), np.array([1, 2])).of_each(3).tolist()
        [1, 0, 2]
        """
        if self.counts is None:
            return np.bincount(self.positions, minlength=points).astype(np.int64)
        found = np.zeros(points, dtype=np.int64)
        found[self.positions] = self.counts
        return found

    def between(self, places: NDArray[np.intp]) -> Integers:
        """Number of records between consecutive places of `ordered`."""
        if self.counts is None:
            return np.diff(places).astype(np.int64)
        running = np.concatenate(([0], np.cumsum(self.counts)))
        return np.diff(running[places])


# A cut drawn near the median leaves about half on either side, except for ties: their frequency and deviation.
_TIED, _NEAR = 0.2, 0.02
# Bounds that keep every bin from being completely empty or full.
_LEAST = 1e-4
# Quantiles requested by the first rounds of joint bisection.
_QUANTILES = (0.5, 0.5, 0.2, 0.8)


def measure_oneway(
    positions: Sequence[Histogram],
    attributes: Sequence[AttributeFacts],
    trees: Sequence[Taxonomy | None],
    layout: OneWay,
    currency: Currency,
    rows: float,
    account: Accountant,
) -> list[Marginal]:
    """Spend the shares of single attributes.

    Guarantee:
        Two-valued attributes, each round of bisection, each level of contrasts and the sums are one measurement
        each, in which a record changes one number per attribute by at most its unit; values counted one by one are one
        measurement per attribute; cut points cost what `draw_edges` states. Adaptive composition adds them up.

    Reference:
        docs/proofs/trees.md#pairs, section 4.
    """
    found: dict[int, Marginal] = {}
    if layout.signs:
        found |= _two_valued(positions, attributes, layout, currency, rows, account)
    flags, most = flags_of(attributes), most_groups(attributes)
    # for an attribute that can be missing, only the records with a value are measured
    rows_of = [
        max(rows * float(found[flags[a]].shares[0]), 1.0) if a in flags else float(rows)
        for a in range(len(attributes))
    ]
    for number in layout.counted:
        counts = positions[number].of_each(attributes[number].points)
        spend = account.spend(OF_ONE, layout.each, f"values of {attributes[number].name}", over="values")
        noisy = currency.measure(counts, MeasurementShape(1, 1, counts.size), spend)
        shares = _shares(nearest_counts(noisy, rows_of[number]))
        deviation = currency.deviation(MeasurementShape(1, 1, counts.size), layout.each)
        if attributes[number].ordered:
            found[number] = _of_counts(shares)
        else:
            found[number] = merged(shares, _CLEAR * deviation / rows, most[number], trees[number])
    if layout.rounds:
        found |= _bisected(positions, attributes, layout, currency, rows_of, account)
    elif layout.cut:
        found |= _cut(positions, attributes, layout, currency, rows_of, account)
    return [found.get(number, constant()) for number in range(len(attributes))]


def _two_valued(
    positions: Sequence[Histogram],
    attributes: Sequence[AttributeFacts],
    layout: OneWay,
    currency: Currency,
    rows: float,
    account: Accountant,
) -> dict[int, Marginal]:
    """Differences of the two counts, of all attributes at once; flags among them give the number with a value."""
    exact = np.array([positions[a].size - 2 * positions[a].total for a in layout.signs], dtype=np.int64)
    spend = account.spend(OF_ONE, layout.sign_share, "two-valued attributes")
    noisy = currency.measure(exact, MeasurementShape(1, exact.size, 1), spend)
    first = np.clip((1 + noisy / rows) / 2, _LEAST, 1 - _LEAST)
    for a, flag in flags_of(attributes).items():
        if a in layout.signs:
            mean = noisy[layout.signs.index(a)] / (rows * first[layout.signs.index(flag)])
            first[layout.signs.index(a)] = np.clip((1 + mean) / 2, _LEAST, 1 - _LEAST)
    return {a: _of_counts(np.array([share, 1 - share])) for a, share in zip(layout.signs, first, strict=True)}


def _of_counts(shares: Floats) -> Marginal:
    """An ordered attribute whose values were counted."""
    levels = min(PAIR_LEVELS, int(shares.size - 1).bit_length())
    edges = halved(shares, levels, [0, shares.size])
    running = np.concatenate(([0.0], np.cumsum(shares)))
    found = Marginal(points(shares), np.diff(running[edges]), levels, edges)
    more = min(int(shares.size - 1).bit_length() - levels, INSIDE_LEVELS)
    finer = halved(shares, more, edges.tolist())
    return _with_parts(found, finer, np.diff(running[finer]))


def _with_parts(found: Marginal, finer: Integers, shares: Floats) -> Marginal:
    """The attribute with parts of its bins, given their edges and shares, if there are more parts than bins."""
    if finer.size == found.bins + 1:
        return found
    parts = np.maximum(shares.reshape(found.bins, -1), 1e-300)
    return replace(found, finer=finer, parts=parts / parts.sum(axis=1, keepdims=True))


def _bisected(
    positions: Sequence[Histogram],
    attributes: Sequence[AttributeFacts],
    layout: OneWay,
    currency: Currency,
    rows_of: Sequence[float],
    account: Accountant,
) -> dict[int, Marginal]:
    """Thresholds found by joint bisection: all attributes are asked at once how many records are below and above.

    The first rounds ask at the estimated position of a quantile, later ones halve the most uncertain interval; the
    answers together give a distribution function.
    """
    sizes = [attributes[a].points for a in layout.cut]
    rows = np.array([rows_of[a] for a in layout.cut])
    noise = currency.deviation(MeasurementShape(1, len(sizes), 1), layout.rounds[0]) / (2 * rows)
    asked = np.zeros((len(layout.rounds), len(sizes)), dtype=np.int64)
    answers = np.zeros(asked.shape)
    for turn, share in enumerate(layout.rounds):
        if turn < len(_QUANTILES):
            curves = likely((asked[:turn] / sizes).T, answers[:turn].T, noise)
            wanted = [where(curve, _QUANTILES[turn]) for curve in curves]
        else:
            wanted = [
                least_known(asked[:turn, place] / size, answers[:turn, place], float(noise[place]))
                for place, size in enumerate(sizes)
            ]
        for place, size in enumerate(sizes):
            asked[turn, place] = min(max(round(wanted[place] * size), 1), size - 1)
        exact = np.array(
            [
                2 * positions[a].below(cut) - positions[a].size
                for a, cut in zip(layout.cut, asked[turn].tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        spend = account.spend(OF_ONE, share, f"thresholds, round {turn + 1}")
        noisy = currency.measure(exact, MeasurementShape(1, exact.size, 1), spend)
        answers[turn] = (1 + noisy / rows) / 2
    return {
        a: _of_thresholds(asked[:, place], answers[:, place], attributes[a].points, float(noise[place]))
        for place, a in enumerate(layout.cut)
    }


def _of_thresholds(asked: Integers, answers: Floats, size: int, noise: float) -> Marginal:
    curve = settled(asked / size, answers, noise)
    known = places()
    edges = np.unique(np.concatenate((np.rint(known * size).astype(np.int64), asked)))
    running = np.interp(edges / size, known, curve)
    running[0], running[-1] = 0.0, 1.0
    fine = Fine(edges[:-1], edges[1:] - 1, np.diff(running), np.zeros(edges.size - 1))
    # pairs use a threshold that was asked for, whose share is known best
    level = np.interp(asked, edges, running)
    cut = int(np.argmin(np.abs(level - 0.5)))
    first = float(np.clip(level[cut], _LEAST, 1 - _LEAST))
    return Marginal(fine, np.array([first, 1 - first]), 1, np.array([0, asked[cut], size]))


def _cut(
    positions: Sequence[Histogram],
    attributes: Sequence[AttributeFacts],
    layout: OneWay,
    currency: Currency,
    rows_of: Sequence[float],
    account: Accountant,
) -> dict[int, Marginal]:
    """Private cut points, then contrasts of all trees level by level, then sums inside the finest intervals."""
    levels, number = layout.levels, len(layout.cut)
    rows = np.array([rows_of[a] for a in layout.cut])[:, None]
    own = [positions[a] for a in layout.cut]
    # sorted once, in threads
    list(threaded(lambda found: found.ordered, own))
    edges = [
        _edges(found, attributes[a], layout, currency, account)
        for found, a in zip(own, layout.cut, strict=True)
    ]
    places = [np.searchsorted(found.ordered, cuts) for found, cuts in zip(own, edges, strict=True)]
    counts = np.stack([found.between(place) for found, place in zip(own, places, strict=True)])
    running = np.ones((number, 1))
    for level, share in enumerate(layout.counts):
        both = counts.reshape(number, 1 << level, 2, -1).sum(axis=3)
        shape = MeasurementShape(1, number, 1 << level)
        spend = account.spend(OF_ONE, share, f"halves of intervals, level {level + 1}", over="intervals")
        noisy = currency.measure(both[:, :, 0] - both[:, :, 1], shape, spend) / rows
        # half a node is the error of a cut near the median, apart from ties
        doubt = _NEAR + 1 / (float(currency.rate(layout.cuts[level])) * np.maximum(rows / 2**level, 1.0))
        running = _refined(running, noisy, currency.deviation(shape, share) / rows, doubt, edges, level)
    means = _means(own, places, edges, running, layout, currency, rows, account)
    return {
        a: _of_tree(edges[place], running[place], *means[place], levels) for place, a in enumerate(layout.cut)
    }


def _edges(
    found: Histogram, facts: AttributeFacts, layout: OneWay, currency: Currency, account: Accountant
) -> Integers:
    """Private cut points of one attribute; a record is in one interval of a level."""
    spends = [
        account.spend(OF_ONE, share, f"cut points of {facts.name}, level {level + 1}", over="intervals")
        for level, share in enumerate(layout.cuts)
    ]
    return draw_edges(found.ordered, [0, facts.points], spends, currency.rate, found.counts)


def _refined(
    parents: Floats, contrasts: Floats, noise: Floats, doubt: Floats, edges: Sequence[Integers], level: int
) -> Floats:
    """Shares of the halves of all nodes: mostly about even, as a cut near the median leaves them, sometimes not."""
    near = (doubt * parents) ** 2
    spread = near + noise**2
    even = np.exp(-(contrasts**2) / (2 * spread)) / np.sqrt(2 * np.pi * spread) * (1 - _TIED)
    tied = _TIED / (2 * np.maximum(parents, noise))
    steady = contrasts * (even * near / spread + tied) / (even + tied)
    left = np.clip((parents + steady) / 2, 0.0, parents)
    for place, own in enumerate(edges):
        # a half without positions is empty
        sizes = np.diff(own[:: own.size >> (level + 1)]).reshape(-1, 2)
        left[place] = np.where(sizes[:, 1] == 0, parents[place], np.where(sizes[:, 0] == 0, 0.0, left[place]))
    return np.stack((left, parents - left), axis=2).reshape(len(parents), -1)


def _means(
    positions: Sequence[Histogram],
    places: Sequence[NDArray[np.intp]],
    edges: Sequence[Integers],
    shares: Floats,
    layout: OneWay,
    currency: Currency,
    rows: Floats,
    account: Accountant,
) -> list[tuple[Floats, Floats]]:
    """Noisy offsets of the means of the finest intervals from their middles, and their noise."""
    exact = []
    for column, place, cuts in zip(positions, places, edges, strict=True):
        lows, highs = ends_of(cuts)
        which = np.repeat(np.arange(lows.size), np.diff(place))
        width = np.maximum(highs - lows, 1)[which]
        terms = np.rint((2 * column.ordered - (lows + highs)[which]) / width * SUM_PARTS)
        terms = np.clip(terms, -SUM_PARTS, SUM_PARTS)
        if column.counts is not None:
            terms = terms * column.counts
        exact.append(np.bincount(which, terms, minlength=lows.size).astype(np.int64))
    shape = MeasurementShape(1, len(exact), exact[0].size, unit=SUM_PARTS)
    spend = account.spend(OF_ONE, layout.sums, "sums inside intervals", over="intervals")
    noisy = currency.measure(np.stack(exact), shape, spend) / SUM_PARTS
    deviation = currency.deviation(shape, layout.sums) / SUM_PARTS
    found = []
    for own, sums, cuts, total in zip(shares, noisy, edges, rows, strict=True):
        weights = np.maximum(own * total, 1.0)
        lows, highs = ends_of(cuts)
        half = (highs - lows) / 2
        found.append((sums / weights * half, deviation / weights * half))
    return found


def _of_tree(edges: Integers, shares: Floats, offsets: Floats, noise: Floats, levels: int) -> Marginal:
    """An attribute from the shares of its intervals and noisy offsets of their means from their middles."""
    lows, highs = ends_of(edges)
    shares = shares / shares.sum()
    steady = steadied(offsets, noise, edges) / np.maximum(highs - lows, 1)
    fine = Fine(lows, highs, shares, slopes_for(0.5 + np.clip(steady, -0.5, 0.5)))
    kept = min(levels, PAIR_LEVELS)
    span = 1 << (levels - kept)
    tails = with_tails(fine, edges, (lows + highs) / 2 + offsets, noise)
    found = Marginal(tails, shares.reshape(-1, span).sum(axis=1), kept, edges[::span])
    part = span >> min(levels - kept, INSIDE_LEVELS)
    return _with_parts(found, edges[::part], shares.reshape(-1, part).sum(axis=1))


def _shares(counts: Floats) -> Floats:
    lifted: Floats = counts + _LEAST
    return lifted / float(lifted.sum())
