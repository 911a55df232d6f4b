"""Distributions in pairs-dp, made of noisy numbers: of single columns, and of pairs of latent normals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs.budget import FREQUENT
from shoal.numbers import Bools, Floats, Integers

if TYPE_CHECKING:
    from shoal.mechanisms.pairs.measure_one import Marginal

# Bounds that keep every bin from being completely empty or full.
LEAST = 1e-4
# An exponential density this steep over its interval is in practice a point.
_STEEPEST_LOGIT = 500.0
# A density less steep than this is flat.
_FLAT = 1e-6
# Halvings that find the level of a position.
_HALVINGS = 48


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

    def below(self, cuts: Integers) -> Floats:
        """Shares of the positions below each cut: the levels at which `positions` reaches it.

        >>> points(np.array([0.25, 0.75])).below(np.array([0, 1, 2])).round(6).tolist()
        [0.0, 0.25, 1.0]
        """
        low, high = np.zeros(cuts.size), np.ones(cuts.size)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            before = self.positions(middle) < cuts
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        found: Floats = (low + high) / 2
        return found


def _exponential_quantile(level: Floats, slope: Floats) -> Floats:
    """Quantiles of the density proportional to exp(slope·x) on [0, 1]."""
    steepness = np.maximum(np.abs(slope), _FLAT)
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


def points(shares: Floats) -> Fine:
    """A distribution over single positions."""
    places = np.arange(shares.size, dtype=np.int64)
    return Fine(places, places, shares, np.zeros(shares.size))


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
    shift = ndtri(np.clip(level, LEAST, 1 - LEAST)) - ndtri(np.clip(expected, LEAST, 1 - LEAST))
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
    # values that many records have tell nothing about the others
    smooth = np.where((np.diff(edges) == 1) & (fine.shares > FREQUENT), 0.0, fine.shares)
    running = np.cumsum(smooth / max(float(smooth.sum()), LEAST))[:-1]
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


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Noisy numbers about one attribute, each that of records in one run of positions less that in the next run.

    Attributes:
        what: the measurement.
        lows, middles, highs: the runs low .. middle - 1 and middle .. high - 1; the second counts only if `signed`.
        noisy: the numbers.
        deviation: standard deviation of their noise.
    """

    what: str
    lows: Integers
    middles: Integers
    highs: Integers
    noisy: Floats
    deviation: float
    signed: bool = True

    def of(self, positions: Integers) -> Floats:
        """The same numbers of other positions."""
        ordered = np.sort(positions)
        low, middle, high = (np.searchsorted(ordered, ends) for ends in (self.lows, self.middles, self.highs))
        first, second = middle - low, high - middle
        found: Floats = (first - second if self.signed else first).astype(np.float64)
        return found


def answers_of_values(what: str, values: Integers, noisy: Floats, deviation: float) -> Answers:
    return Answers(what, values, values + 1, values + 1, noisy, deviation, signed=False)


# A half whose count is below this many standard deviations of its noise counts as empty.
_EMPTY = 1.0


def denoised_counts(noisy: Floats, total: float, noise: float) -> Floats:
    """Non-negative counts of consecutive values with this sum, denoised from the whole range to single values.

    Every interval is halved, and its halves get the least-squares counts given its own. A half that cannot be told
    from an empty one is empty, unless that holds for both: so values that no record has keep no noise, and the noise
    of many such values does not add up to a tail.

    >>> noisy = np.array([60.0, 39.0, 2.0, -3.0, 2.0, 1.0, -1.0, 0.0])
    >>> denoised_counts(noisy, 100.0, 2.0).round(1).tolist()
    [60.5, 39.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    running = np.concatenate(([0.0], np.cumsum(noisy)))
    edges, counts = np.array([0, noisy.size]), np.array([float(total)])
    while edges.size <= noisy.size:
        sizes = np.diff(edges)
        middles = edges[:-1] + (sizes + 1) // 2
        left, right = middles - edges[:-1], edges[1:] - middles
        first, both = running[middles] - running[edges[:-1]], running[edges[1:]] - running[edges[:-1]]
        found = first + (counts - both) * left / sizes
        doubt = _EMPTY * noise * np.sqrt(left * right / sizes)
        low, high = found < doubt, counts - found < doubt
        found = np.where(low & ~high, 0.0, np.where(high & ~low, counts, np.clip(found, 0.0, counts)))
        split = right > 0
        found = np.where(split, found, counts)
        edges = np.unique(np.concatenate((edges, middles)))
        counts = np.column_stack((found, counts - found)).ravel()[np.column_stack((sizes > 0, split)).ravel()]
    return counts


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Frequent:
    """A chosen value of every interval of an attribute.

    Attributes:
        values: the positions.
        shares: noisy share of the rows of each.
        noise: standard deviation of each.
        least: the least share by which a frequent value exceeds the others.
    """

    values: Integers
    shares: Floats
    noise: float
    least: float

    def masses(self, edges: Integers, intervals: Floats) -> Floats:
        """The shares of the frequent ones among them, 0 for the others; `intervals` are the shares of the intervals."""
        widths = np.diff(edges)
        apart = self.shares - intervals / np.maximum(widths, 1)
        frequent = (widths > 1) & (apart > self.least)
        # an interval whose rest cannot be told from nothing has no other value
        whole = intervals - self.shares < self.noise
        return np.where(frequent, np.where(whole, intervals, self.shares), 0.0)


def without_points(
    edges: Integers,
    intervals: Floats,
    means: Floats,
    noise: Floats,
    values: Integers,
    masses: Floats,
    doubt: float,
) -> tuple[Floats, Floats, Floats]:
    """Shares and mean positions of intervals without some of their values, and the standard deviation of these means.

    Args:
        intervals: share of each interval, at least that of its values.
        means, noise: noisy mean position of each, and its standard deviation.
        masses: shares of the values, with a standard deviation of `doubt`.

    >>> found = without_points(
    ...     np.array([0, 10]), np.ones(1), np.array([3.0]), np.zeros(1), np.array([0, 9]), np.array([0.5, 0.1]), 0.0
    ... )
    >>> [part.round(3).tolist() for part in found]
    [[0.4], [5.25], [0.0]]
    """
    lows, highs = edges[:-1].astype(np.float64), np.maximum(edges[1:] - 1, edges[:-1]).astype(np.float64)
    which = np.searchsorted(edges, values, side="right") - 1
    size = intervals.size
    rest = intervals - np.bincount(which, masses, minlength=size)
    left = np.maximum(rest, LEAST / 100)
    moved = (means * intervals - np.bincount(which, values * masses, minlength=size)) / left
    distances = (values - np.clip(means, lows, highs)[which]) ** 2
    spread = (
        np.hypot(noise * intervals, doubt * np.sqrt(np.bincount(which, distances, minlength=size))) / left
    )
    some = np.bincount(which, minlength=size) > 0
    return rest, np.where(some, np.clip(moved, lows, highs), means), np.where(some, spread, noise)


def with_points(fine: Fine, values: Integers, masses: Floats) -> Fine:
    """The distribution with masses added at single positions; the pieces that contain them are divided.

    >>> evenly = Fine(np.array([0]), np.array([3]), np.array([0.4]), np.zeros(1))
    >>> found = with_points(evenly, np.array([1]), np.array([0.6]))
    >>> found.lows.tolist(), found.highs.tolist(), found.shares.round(2).tolist()
    ([0, 1, 2], [0, 1, 3], [0.1, 0.7, 0.2])
    """
    parts: list[NDArray[Any]] = [fine.lows, fine.highs, fine.shares, fine.slopes]
    for value, mass in zip(values.tolist(), masses.tolist(), strict=True):
        lows, highs, shares, slopes = parts
        # of empty pieces at the same place none is divided
        here = np.flatnonzero((lows <= value) & (highs >= value))
        place = int(here[np.argmax(shares[here])])
        low, width = int(lows[place]), int(highs[place] - lows[place]) + 1
        ends = np.unique(np.array([low, value, value + 1, low + width]))
        inside = (ends - low) / width
        slope = float(slopes[place])
        level = np.expm1(slope * inside) / np.expm1(slope) if abs(slope) > _FLAT else inside
        own = np.diff(level) * shares[place]
        own[np.flatnonzero(ends == value)[0]] += mass
        divided = (ends[:-1], ends[1:] - 1, own, slope * np.diff(inside))
        parts = [
            np.concatenate((part[:place], new, part[place + 1 :]))
            for part, new in zip(parts, divided, strict=True)
        ]
    return Fine(*parts)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_SHORT = np.polynomial.legendre.leggauss(12)
_LARGEST = 0.995
# Bounds of the minimum variance of latent normals in any direction, which depends on the noise.
_LEAST_VARIANCE, _MOST_LEAST, _PER_NOISE = 0.002, 0.03, 0.6
# Noise eigenvalues below this are too small for spectral shrinkage to help.
_LITTLE_EDGE = 0.5


def both_below(h: Floats, k: Floats, r: Floats) -> Floats:
    """Probability that two standard normals with correlation r are below h and k.

    >>> both_below(np.zeros(2), np.zeros(2), np.array([0.0, 0.5])).round(6).tolist()
    [0.25, 0.333333]
    """
    from scipy.special import ndtr

    # the derivative by r is smooth in the angle whose sine is r
    angle = np.arcsin(r)[..., None] * (_NODES + 1) / 2
    sine, cosine = np.sin(angle), np.maximum(np.cos(angle), 1e-9)
    h, k = h[..., None], k[..., None]
    density = np.exp(-(h * h + k * k - 2 * h * k * sine) / (2 * cosine * cosine))
    area = (density * _WEIGHTS).sum(axis=-1) * np.arcsin(r) / 2
    found: Floats = ndtr(h[..., 0]) * ndtr(k[..., 0]) + area / (2 * np.pi)
    return found


def tetrachoric(products: Floats, left: Floats) -> Floats:
    """Latent correlations for mean products of signs.

    Args:
        products: (d, d) means of the products of two signs.
        left: share of +1 of each sign.
    """
    from scipy.special import ndtri

    cut = ndtri(left)
    rows, columns = np.tril_indices(left.size, -1)
    p, q = left[rows], left[columns]
    wanted = (products[rows, columns] + 2 * p + 2 * q - 1) / 4
    low, high = np.full(p.size, -_LARGEST), np.full(p.size, _LARGEST)
    for _ in range(40):
        middle = (low + high) / 2
        small = both_below(cut[rows], cut[columns], middle) < wanted
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    found = np.eye(left.size)
    found[rows, columns] = found[columns, rows] = (low + high) / 2
    return found


def shrunk(correlations: Floats, scale: Floats, noise: float) -> Floats:
    """Correlations with most of their noise removed.

    In the scale of the products (correlation times `scale` of both attributes) all entries have about the same
    noise. Its eigenvalues are at most 2·noise·√d in size: what exceeds them is signal and is shrunk by what noise adds
    to it; the rest is shrunk as a whole, by the part of its variance that noise explains. If noise makes eigenvalues of
    at most a half, shrinking costs more than it gains and is omitted: a rule that depends on the noise and d only.

    Reference:
        Gavish and Donoho, "Optimal Shrinkage of Singular Values".
    """
    size = len(correlations)
    if size < 2:
        return correlations
    least = min(max(_PER_NOISE * noise, _LEAST_VARIANCE), _MOST_LEAST)
    edge = 2 * noise * np.sqrt(size)
    if edge <= _LITTLE_EDGE:
        return nearest_correlation(correlations, least)
    both = np.outer(scale, scale)
    scaled = correlations * both
    np.fill_diagonal(scaled, 0.0)
    values, vectors = np.linalg.eigh(scaled)
    clear = np.abs(values) > edge
    kept = (vectors[:, clear] * values[clear]) @ vectors[:, clear].T
    less = np.sign(values[clear]) * np.sqrt(values[clear] ** 2 - edge**2)
    signal = (vectors[:, clear] * less) @ vectors[:, clear].T
    rest = scaled - kept
    off = ~np.eye(size, dtype=np.bool_)
    variance = float((rest[off] ** 2).mean())
    trust = max(0.0, 1 - noise**2 / variance) if variance > 0 else 0.0
    return nearest_correlation((signal + trust * rest) / both, least)


def without_noise(matrix: Floats) -> Floats:
    """The signal of few dimensions in a matrix with independent noise of variance 1.

    >>> noise = np.random.default_rng(0).standard_normal((20, 30))
    >>> float(np.linalg.norm(without_noise(noise))) < float(np.linalg.norm(noise)) / 5
    True
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    first, second = matrix.shape
    clear = values > first**0.5 + second**0.5
    less = np.sqrt(np.maximum((values**2 - first - second) ** 2 - 4 * first * second, 0.0))
    kept = np.where(clear, less / np.maximum(values, 1.0), 0.0)
    found: Floats = (left * kept) @ right
    return found


def nearest_correlation(matrix: Floats, least: float, rounds: int = 100) -> Floats:
    """A nearby correlation matrix with at least this variance in all directions, by alternating projections.

    Reference:
        Higham, "Computing the nearest correlation matrix: a problem from finance".
    """
    found = matrix.copy()
    np.fill_diagonal(found, 1.0)
    correction = np.zeros_like(found)
    for _ in range(rounds):
        values, vectors = np.linalg.eigh(found - correction)
        positive = (vectors * np.maximum(values, least)) @ vectors.T
        correction = positive - (found - correction)
        before, found = found, positive.copy()
        np.fill_diagonal(found, 1.0)
        if np.abs(found - before).max() < 1e-9:
            break
    values, vectors = np.linalg.eigh(found)
    positive = (vectors * np.maximum(values, least)) @ vectors.T
    spread = np.sqrt(np.diag(positive))
    nearest: Floats = positive / np.outer(spread, spread)
    return nearest


def copula_table(rows: Floats, columns: Floats, r: float) -> Floats:
    """Probabilities of the bins of two attributes whose latent normals have correlation r.

    >>> copula_table(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.5).round(4).tolist()
    [[0.3333, 0.1667], [0.1667, 0.3333]]
    """
    from scipy.special import ndtr, ndtri

    nodes, weights = _SHORT
    ends = np.concatenate(([0.0], np.cumsum(rows)))
    ends /= ends[-1]
    level = ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2
    latent = ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    inner = np.cumsum(columns)[:-1] / columns.sum()
    cuts = np.concatenate(([-np.inf], ndtri(np.clip(inner, 1e-12, 1 - 1e-12)), [np.inf]))
    spread = np.sqrt(1 - r * r)
    below = ndtr((cuts - r * latent[..., None]) / spread)
    table: Floats = (np.diff(below, axis=2) * weights[None, :, None]).sum(axis=1) / 2 * rows[:, None]
    return np.maximum(table, 1e-12)


Pair = tuple[int, int]

# Share of records assumed independent in all attributes.
ODD = 0.02
# Rounds that split a table, and rakes in each.
_PASSES, _RAKES = 20, 3


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Zeros:
    """Cells of pairs of attributes that rules forbid, and the bins that show them.

    Attributes:
        drawn: the attributes, in bins that are split where what rules allow changes.
        cells: by pair, the measured cells that can hold rows.
        drawn_cells: the same by the bins of `drawn`.
    """

    drawn: tuple[Marginal, ...]
    cells: Mapping[Pair, Bools]
    drawn_cells: Mapping[Pair, Bools]


def drawn_tables(
    tables: Mapping[Pair, Floats], correlations: Mapping[Pair, float], zeros: Zeros
) -> dict[Pair, Floats]:
    """Tables by the bins that rows are drawn in: sums over measured bins stay, and forbidden cells are 0.

    Pieces of a bin differ as latent normals with these correlations would.
    """
    # compiled: loaded only when rows are made
    from shoal.mechanisms.pairs._kernels import rake_table

    found = {}
    for (a, b), table in tables.items():
        first, second = zeros.drawn[a], zeros.drawn[b]
        if first.within is None and second.within is None:
            found[a, b] = table
            continue
        rows, columns = (np.arange(own.bins) if own.within is None else own.within for own in (first, second))
        both = np.ix_(rows, columns)
        fine = np.outer(first.shares, second.shares)
        if (a, b) in correlations:
            fine = (1 - ODD) * copula_table(first.shares, second.shares, correlations[a, b]) + ODD * fine
        if (a, b) in zeros.drawn_cells:
            fine *= zeros.drawn_cells[a, b]
        for _ in range(_PASSES):
            sums = np.zeros(table.shape)
            np.add.at(sums, both, fine)
            fine *= np.divide(table, sums, out=np.ones_like(table), where=sums > 0)[both]
            rake_table(fine, first.shares, second.shares, _RAKES)
        found[a, b] = fine
    return found
