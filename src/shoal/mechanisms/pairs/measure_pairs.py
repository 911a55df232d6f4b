"""Measurements of several columns in pairs-dp: tables of pairs and triples, mixtures, contrasts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs._kernels import exchange
from shoal.mechanisms.pairs.budget import OF_THREE, OF_TWO, ContrastGroup, Currency, MeasurementShape
from shoal.mechanisms.pairs.measure_one import ABSENT, Marginal
from shoal.noise import Source, exponential_choice
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Measurement, RecordSum

# The share of the pair budget for products of values.
SHARE = Fraction(1, 5)
# Number of steps in which values are measured within the reach of their attribute.
_PARTS = 1 << 10
# A distribution is heavy-tailed if its quantiles have a smaller correlation with normal ones than this.
_NORMAL = 0.9
# Candidate reaches, the widest first: quantiles of the distance from the mean.
_REACHES = (1.0, 0.998, 0.995, 0.99)
# Target noise on a correlation, and the maximum above which nothing is measured.
_WANTED, TOO_MUCH = 0.03, 0.06
_LEVELS = (np.arange(4096) + 0.5) / 4096
_SWEEPS = 20
# Values are exchanged in bins with more than this part of the within-bin variance of an attribute.
_WIDE = 0.1
# Number of records multiplied at a time; their sums are integers that floats represent exactly.
_RUN = 1 << 16


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Clipped:
    """The products to be measured, determined from earlier outputs.

    Attributes:
        columns: attributes that take part.
        moved: indices among them of those whose values are exchanged.
        middles, reaches: the values of each are clipped to middle ± reach.
        spreads: root mean square of the clipped values, under the released distribution.
        firsts, seconds: indices of the attributes of every pair.
        share: their cost.
        noise: standard deviation of a mean product.
    """

    columns: tuple[int, ...]
    moved: tuple[int, ...]
    middles: Floats
    reaches: Floats
    spreads: Floats
    firsts: Integers
    seconds: Integers
    share: Fraction
    noise: float

    @property
    def shape(self) -> MeasurementShape:
        return MeasurementShape(1, self.firsts.size, 1, unit=_PARTS**2)

    def values(self, positions: Floats | Integers, place: int) -> Floats:
        """Values from -1 to 1; missing ones are 0."""
        inside = np.clip((positions - self.middles[place]) / self.reaches[place], -1.0, 1.0)
        return np.where(positions == ABSENT, 0.0, inside)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Measured products: means over rows."""

    clipped: Clipped
    products: Floats


def tails_possible(currency: Currency, ordered: int, pairs: Fraction, rows: float) -> bool:
    """Whether products may be measured at all, from public facts: not if the noise is too large for any values."""
    if ordered < 2 or not pairs:
        return False
    # at least one pair, and a mean square of at most 1
    return currency.deviation(MeasurementShape(1, 1, 1), pairs * SHARE) <= TOO_MUCH * rows


def lay_out_tails(
    marginals: Sequence[Marginal], flags: Mapping[int, int], currency: Currency, pairs: Fraction, rows: float
) -> Clipped | None:
    """The pairs of two attributes with many values and those with a heavy-tailed one; None if all would be too noisy.

    Products of ranks do not show how far values are apart: the correlation of two numbers is too large if they rise
    together except at the end of one. Rows can follow products only where bins leave values open.
    """
    gaps = set(flags.values())
    columns = tuple(number for number, own in enumerate(marginals) if own.levels and number not in gaps)
    drawn = [marginals[a].fine.positions(_LEVELS) for a in columns]
    wide = [not marginals[a].exact_bins for a in columns]
    heavy = [spread and _heavy(own) for spread, own in zip(wide, drawn, strict=True)]
    long = [marginals[a].levels > 1 for a in columns]

    every = [(i, j) for j in range(len(columns)) for i in range(j)]
    tails = [(i, j) for i, j in every if heavy[i] or heavy[j]]
    others = [
        (i, j) for i, j in every if (i, j) not in tails and long[i] and long[j] and (wide[i] or wide[j])
    ]
    share = pairs * SHARE
    if not share:
        return None
    middles = np.array([own.mean() for own in drawn])
    reaching = [_reaches(np.abs(own - middle)) for own, middle in zip(drawn, middles, strict=True)]
    # all pairs with a heavy-tailed attribute or none, and as many of the others as can be measured besides
    for needed in (tails, []) if tails else ([],):
        places = np.array([*needed, *others], dtype=np.int64).reshape(-1, 2)
        number = len(places)
        while number >= max(len(needed), 1):
            noise = currency.deviation(MeasurementShape(1, number, 1), share) / rows
            reaches, spreads = np.array([_reach(own, noise) for own in reaching]).T
            products = spreads[places].prod(axis=1)
            rest = np.argsort(-products[len(needed) :], kind="stable")[: number - len(needed)] + len(needed)
            chosen = np.concatenate((np.arange(len(needed)), rest))
            ruling = np.median(products[: len(needed)]) if needed else products[chosen].min()
            if noise <= TOO_MUCH * ruling:
                firsts, seconds = places[np.sort(chosen)].T
                moved = tuple(i for i in np.unique((firsts, seconds)).tolist() if wide[i])
                return Clipped(columns, moved, middles, reaches, spreads, firsts, seconds, share, noise)
            fewer = len(needed) + (number - len(needed)) * 9 // 10
            number = fewer if fewer < number else number - 1
    return None


def _heavy(positions: Floats) -> bool:
    from scipy.special import ndtri

    spread = float(positions.std())
    if not spread:
        return False
    scores = ndtri(_LEVELS)
    return float(np.mean((positions - positions.mean()) * scores)) / (spread * float(scores.std())) < _NORMAL


def _reaches(distances: Floats) -> list[tuple[float, float]]:
    """Possible reaches, the widest first, each with the root mean square of values within it."""
    found = []
    for level in _REACHES:
        reach = max(float(np.quantile(distances, level)), 1.0)
        square = float(np.mean(np.minimum(distances / reach, 1.0) ** 2))
        found.append((reach, max(square, 1e-18) ** 0.5))
    return found


def _reach(reaching: Sequence[tuple[float, float]], noise: float) -> tuple[float, float]:
    """The widest reach with small noise relative to the mean square, or else the narrowest."""
    return next((own for own in reaching if noise <= _WANTED * own[1] ** 2), reaching[-1])


def exact_products(positions: Sequence[Integers], clipped: Clipped) -> Integers:
    """Sums over records of products of two integers of at most `_PARTS` in size. Private."""
    size, number = positions[0].size, len(clipped.columns)
    found = np.zeros((number, number), dtype=np.int64)
    for first in range(0, size, _RUN):
        parts = np.stack(
            [
                np.rint(clipped.values(positions[a][first : first + _RUN], place) * _PARTS)
                for place, a in enumerate(clipped.columns)
            ]
        )
        # integers below 2^53: no rounding depends on the order of the records
        found += (parts @ parts.T).astype(np.int64)
    return found[clipped.firsts, clipped.seconds]


def measure_tails(
    exact: Integers, clipped: Clipped, currency: Currency, rows: float, account: Accountant
) -> Tails:
    """Spend the share on products.

    Guarantee:
        Pairs and reaches are functions of earlier measurements; given them, a record adds to every sum an
        integer of at most the unit.

    Reference:
        docs/proofs/trees.md#pairs, section 5.
    """
    spend = account.spend(OF_TWO, clipped.share, "products of values")
    what = RecordSum(
        "values",
        clipped.columns,
        {
            "pairs": np.stack((clipped.firsts, clipped.seconds), axis=1),
            "middles": clipped.middles,
            "reaches": clipped.reaches,
            "parts": _PARTS**2,
        },
    )
    noisy = currency.measure(exact, clipped.shape, spend, what)
    return Tails(clipped, noisy / (_PARTS**2 * rows))


def _wide_bins(codes: NDArray[np.uint8], values: Floats) -> Integers:
    """The bins of rows, -1 where values are so similar that exchanging them changes ranks but no correlation."""
    sizes = np.maximum(np.bincount(codes), 1)
    means = np.bincount(codes, values) / sizes
    inside = np.bincount(codes, (values - means[codes]) ** 2)
    wide = inside > _WIDE * float(inside.sum())
    return np.where(wide[codes], codes.astype(np.int64), -1)


def exchanged(
    placed: Sequence[Floats],
    tails: Tails,
    marginals: Sequence[Marginal],
    flags: Mapping[int, int],
    source: Source,
) -> list[Floats]:
    """Positions of a block of rows, with values exchanged between rows of one bin until measured products are met."""
    clipped, found = tails.clipped, list(placed)
    rows, number = placed[0].size, len(clipped.columns)
    values, codes = np.zeros((rows, number)), np.zeros((rows, number), dtype=np.int64)
    for place, a in enumerate(clipped.columns):
        values[:, place] = clipped.values(placed[a], place) / clipped.spreads[place]
        codes[:, place] = _wide_bins(marginals[a].codes(placed[a].astype(np.int64)), values[:, place])
        if a in flags:
            missing = placed[flags[a]] > 0
            values[missing, place], codes[missing, place] = 0.0, -1
    firsts, seconds = clipped.firsts, clipped.seconds
    own = (values.T @ values / rows)[firsts, seconds]
    both = clipped.spreads[firsts] * clipped.spreads[seconds]
    missed = tails.products / both - own
    noise = clipped.noise / both
    variance = float(np.mean(missed**2))
    # deviations explained by noise are not targets
    trust = max(0.0, 1 - float(np.mean(noise**2)) / variance) if variance else 0.0
    wanted = np.zeros((number, number))
    weights = np.zeros((number, number))
    wanted[firsts, seconds] = wanted[seconds, firsts] = own + trust * missed
    weights[firsts, seconds] = weights[seconds, firsts] = 1.0
    moved = np.stack([placed[a] for a in clipped.columns], axis=1)
    exchange(
        values,
        moved,
        codes,
        np.array(clipped.moved, dtype=np.int64),
        wanted,
        weights,
        _SWEEPS,
        source.words(1)[0],
    )
    for place in clipped.moved:
        found[clipped.columns[place]] = moved[:, place].copy()
    return found


Pair = tuple[int, int]

CLASSES = 128
MIXTURE_ROUNDS = 200
# Initial width of a class in each attribute, in standard deviations.
_WIDTH = 0.7
_LEAST = 1e-9


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Classes with their weights, and the probabilities of all bins of all attributes in each class.

    Attributes:
        weights: of the classes.
        bins: (classes, all bins) probabilities, adding up to one for every class and attribute.
        starts: where each attribute's bins begin; one more for the end.
    """

    weights: Floats
    bins: Floats
    starts: NDArray[np.int64]


def fit(
    shares: Sequence[Floats],
    tables: Mapping[Pair, Floats],
    correlations: Floats,
    latent: Sequence[int],
    random: np.random.Generator,
    rounds: int = MIXTURE_ROUNDS,
) -> Mixture:
    """Fit by expectation maximisation of the composite likelihood: the sum of the likelihoods of all pairs.

    Args:
        shares: probabilities of every attribute's bins.
        correlations, latent: latent normal correlations, and their attributes: the initialisation of the classes.
    """
    starts = np.concatenate(([0], np.cumsum([own.size for own in shares])))
    if not tables:
        return Mixture(np.ones(1), np.concatenate(shares)[None], starts)
    target = np.zeros((starts[-1], starts[-1]))
    for (a, b), table in tables.items():
        target[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = table
    target += target.T
    bins, weights = _start(shares, correlations, latent, random), np.full(CLASSES, 1 / CLASSES)
    owner = np.repeat(np.arange(len(shares)), np.diff(starts))
    # attributes in no table are unchanged
    taking = np.isin(owner, [number for pair in tables for number in pair])
    for _ in range(rounds):
        weighted = bins * weights[:, None]
        model = bins.T @ weighted
        ratio = np.divide(target, model, out=np.zeros_like(target), where=target > 0)
        # expected share of each bin in each class
        belonging = weighted * (bins @ ratio)
        own = np.add.reduceat(belonging, starts[:-1], axis=1)
        weights = own.sum(axis=1)
        weights /= weights.sum()
        scaled = belonging / np.maximum(own, 1e-300)[:, owner]
        bins = np.where(taking, np.maximum(scaled, _LEAST), bins)
    bins /= np.add.reduceat(bins, starts[:-1], axis=1)[:, owner]
    return Mixture(weights, bins, starts)


def _start(
    shares: Sequence[Floats], correlations: Floats, latent: Sequence[int], random: np.random.Generator
) -> Floats:
    """Classes around points of the latent normals; names slightly perturbed in every class."""
    from scipy.special import ndtri

    centres = random.standard_normal((CLASSES, len(latent))) @ np.linalg.cholesky(correlations).T
    parts = []
    for number, own in enumerate(shares):
        if number in latent:
            ends = np.concatenate(([0.0], np.cumsum(own))) / own.sum()
            middle = ndtri(np.clip((ends[:-1] + ends[1:]) / 2, 1e-6, 1 - 1e-6))
            centre = centres[:, list(latent).index(number)]
            part = own * np.exp(-((middle - centre[:, None]) ** 2) / (2 * _WIDTH**2))
        else:
            part = own * random.gamma(2.0, 0.5, (CLASSES, own.size))
        part = np.maximum(part, _LEAST)
        parts.append(part / part.sum(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)


# Number of sets of columns chosen on request, and the maximum share of the pair budget for that.
ROUNDS = 3
# The largest sets, if there are not more of all sizes than this.
LARGEST, _MOST_SETS = 5, 25_000
# An effect is the difference of a mean product of signs to its prediction by pairs, at most 2. Effects of this size
# should be found if that is affordable; if effects of the second size would not be, nothing is measured.
_WANTED, FOUND = 0.2, 0.4
# Without a request: one set with an effect of this size, if that takes this part of the pair budget at most.
_BY_ITSELF, _LITTLE = 0.3, Fraction(1, 20)
# Found: chosen before all sets without an effect, except for about one choice in e^3. Noise is this part of an
# effect.
_SURE, _NOISE = 3.0, 1 / 8
# Sets are used if their effect is this many times their noise, and as large as those that should be found: using
# further deviations from a model of pairs gains little (results/pairs-quality.md).
_CLEAR, LARGE = 3.0, _WANTED
# Larger than any number of records: scores are expressed as penalties, which are at least 0.
_CEILING = 1 << 40
_TRIPLE_PARTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples, and larger sets of columns, that can be measured, and their shares.

    Attributes:
        columns: attributes whose signs are multiplied.
        rounds: number of sets chosen.
        choice: share of one choice; 0 if there are no more sets than are measured.
        sums: share of the sums of the chosen sets, together.
        deviation: standard deviation of the noise on one sum.
        largest: number of columns of the largest sets.
    """

    columns: tuple[int, ...]
    rounds: int
    choice: Fraction
    sums: Fraction
    deviation: float
    largest: int = 3

    @property
    def share(self) -> Fraction:
        return self.rounds * self.choice + self.sums

    @property
    def places(self) -> Integers:
        """All sets, by the indices of their attributes in `columns`, the smaller ones filled up with -1."""
        return sets_of(len(self.columns), self.largest)


@lru_cache(maxsize=8)
def sets_of(columns: int, largest: int) -> Integers:
    """All sets of 3 to `largest` of so many columns, one in each row, filled up with -1; read-only.

    >>> sets_of(4, 4).tolist()
    [[0, 1, 2, -1], [0, 1, 3, -1], [0, 2, 3, -1], [1, 2, 3, -1], [0, 1, 2, 3]]
    """
    found = [
        (*own, *([-1] * (largest - size)))
        for size in range(3, largest + 1)
        for own in combinations(range(columns), size)
    ]
    made = np.array(found, dtype=np.int64).reshape(-1, largest)
    made.setflags(write=False)
    return made


def largest_sets(columns: int) -> tuple[int, int]:
    """The size of the largest sets of columns among which one can be chosen, and the number of sets."""
    found, number = 3, math.comb(columns, 3)
    for size in range(4, min(LARGEST, columns) + 1):
        if number + math.comb(columns, size) > _MOST_SETS:
            break
        found, number = size, number + math.comb(columns, size)
    return found, number


@dataclass(frozen=True, slots=True)
class Triple:
    """Three attributes or more, and the target mean product of their signs."""

    attributes: tuple[int, ...]
    mean: float


def lay_out_triples(
    currency: Currency, columns: Sequence[int], budget: Fraction, rows: float, *, asked: bool = True
) -> Triples | None:
    """The part of the pair budget needed to find effects, within limits; None if that is not enough.

    Without a request (`asked`) one set is measured where a large effect is found for a small part of that budget.
    """
    largest, number = largest_sets(len(columns))
    if not number or not budget:
        return None
    rounds = min(ROUNDS, number) if asked else 1
    shape = MeasurementShape(1, rounds, 1)

    def needs(effect: float) -> tuple[float, float]:
        rate = (math.log(number) + _SURE) / (effect * rows)
        choices = rounds * currency.needed_for(rate) if number > rounds else 0.0
        return choices, currency.needed(shape, effect * _NOISE * rows)

    if asked:
        wanted, least, most = _WANTED, FOUND, SHARE
    else:
        wanted, least, most = _BY_ITSELF, _BY_ITSELF, _LITTLE
    if sum(needs(least)) > float(budget * most):
        return None
    choices, sums = needs(wanted)
    part = min(choices + sums, float(budget * most)) / float(budget)
    share = budget * min(Fraction(math.ceil(part * _TRIPLE_PARTS), _TRIPLE_PARTS), most)
    choice = share * Fraction(round(choices / (choices + sums) * _TRIPLE_PARTS), _TRIPLE_PARTS) / rounds
    sums_share = share - rounds * choice
    deviation = currency.deviation(shape, sums_share)
    return Triples(tuple(columns), rounds, choice, sums_share, deviation, largest)


def exact_triples(
    codes: Sequence[NDArray[np.uint8]], marginals: Sequence[Marginal], layout: Triples
) -> Integers:
    """Sums over records of products of signs, for all sets. Private.

    Guarantee:
        A record adds +1 or -1 to each of them.
    """
    size = codes[0].size
    found = np.zeros(len(layout.places), dtype=np.int64)
    for start in range(0, size, _RUN * 16):
        # a bit for each record with the sign -1: the product of signs is their sum modulo 2
        packed = [
            np.packbits(codes[a][start : start + _RUN * 16] >> (marginals[a].levels - 1))
            for a in layout.columns
        ]
        found += min(size - start, _RUN * 16) - 2 * _odd_bits(np.stack(packed), layout.largest)
    return found


def _odd_bits(packed: NDArray[np.uint8], largest: int) -> Integers:
    """Numbers of records with an odd number of bits, for all sets of columns in the order of `sets_of`."""
    words = np.zeros((len(packed), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    bits = words.view(np.uint64)
    found = []
    for size in range(3, largest + 1):
        for first in combinations(range(len(bits)), size - 1):
            last = bits[first[-1] + 1 :]
            if len(last):
                together = np.bitwise_xor.reduce(bits[list(first)], axis=0)
                found.append(_ones(last ^ together).sum(axis=1, dtype=np.int64))
    return np.concatenate(found)


def _ones(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Number of bits of words; numpy has a function for it since 2.0."""
    counted = getattr(np, "bitwise_count", None)
    return counted(words) if counted is not None else _BITS[words.view(np.uint8)]


_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def predicted(mixture: Mixture, layout: Triples, middles: Integers) -> Floats:
    """Mean products of signs of all sets, as predicted by a model of pairs.

    Args:
        middles: the first bin of the second half of each attribute.
    """
    means = []
    for a in layout.columns:
        own = mixture.bins[:, mixture.starts[a] : mixture.starts[a + 1]]
        half = middles[a]
        means.append(own[:, :half].sum(axis=1) - own[:, half:].sum(axis=1))
    # sets are filled up with the last one
    every = np.stack([*means, np.ones(mixture.weights.size)])
    product = np.ones((len(layout.places), mixture.weights.size))
    for place in range(layout.largest):
        product *= every[layout.places[:, place]]
    found: Floats = product @ mixture.weights
    return found


def measure_triples(
    exact: Integers, expected: Floats, layout: Triples, currency: Currency, rows: float, account: Accountant
) -> tuple[Integers, Floats]:
    """Choose sets, one after the other, and measure them: returns their indices, and their mean products.

    Guarantee:
        The predictions are a function of earlier measurements. An added record changes every score by at most
        one, a replaced one by two, so each choice costs its share; given the choices, a record adds +1 or -1 to each
        sum.

    Reference:
        docs/proofs/trees.md#pairs, section 5.
    """
    places = layout.places
    scores = np.abs(exact - np.rint(rows * expected).astype(np.int64))
    chosen: list[int] = []
    while len(chosen) < layout.rounds:
        open_ = _open(places, chosen)
        if layout.choice:
            spend = account.spend(OF_THREE, layout.choice, f"choice of triple {len(chosen) + 1}")
            share, source = spend.take()
            rate = currency.rate(share)
            chosen.append(exponential_choice(open_.astype(np.int64), _CEILING - scores, rate, source))
            drawn = RecordSum("chosen", layout.columns, {"triple": _members(places[chosen[-1]])})
            spend.record(Measurement.of(drawn, exact[:0], 0.0, name="exponential", rates=[rate]))
        else:
            chosen.append(int(np.flatnonzero(open_)[0]))
    numbers = np.array(chosen, dtype=np.int64)
    spend = account.spend(OF_THREE, layout.sums, "products of three signs")
    widest = max(_members(places[number]).size for number in chosen)
    what = RecordSum("triple", layout.columns, {"triples": places[numbers, :widest]})
    noisy = currency.measure(exact[numbers], MeasurementShape(1, layout.rounds, 1), spend, what)
    return numbers, noisy / rows


def _members(places: Integers) -> Integers:
    return places[places >= 0]


def _open(places: Integers, chosen: Sequence[int]) -> NDArray[np.bool_]:
    """Sets that can be chosen next: those with at most one attribute in common with each chosen one, if any.

    If some attributes show an effect, others that correlate with one of them show it, too.
    """
    left = np.ones(len(places), dtype=np.bool_)
    apart = left.copy()
    for number in chosen:
        left[number] = False
        apart &= np.isin(places, _members(places[number])).sum(axis=1) <= 1
    return apart if apart.any() else left


def to_follow(
    expected: Floats, layout: Triples, numbers: Integers, measured: Floats, rows: float
) -> tuple[Triple, ...]:
    """The sets with a clear and large effect missed by a model of pairs, with the expected noise removed."""
    noise = layout.deviation / rows
    found = []
    for number, mean in zip(numbers.tolist(), measured.tolist(), strict=True):
        effect = mean - float(expected[number])
        if abs(effect) >= max(_CLEAR * noise, LARGE):
            own = tuple(layout.columns[place] for place in _members(layout.places[number]).tolist())
            found.append(Triple(own, mean - noise**2 / effect))
    return tuple(found)


def half_functions(levels: int, level: int) -> Integers:
    """The functions of one level, one column for each node: +1 on its left half, -1 on its right, 0 elsewhere.

    >>> half_functions(2, 1).T.tolist()
    [[1, -1, 0, 0], [0, 0, 1, -1]]
    """
    bins = np.arange(1 << levels)
    found = np.zeros((bins.size, 1 << level), dtype=np.int64)
    found[bins, bins >> (levels - level)] = 1 - 2 * (bins >> (levels - level - 1) & 1)
    return found


@lru_cache(maxsize=256)
def functions(levels: int, level: int, bins: int) -> Integers:
    """Functions of a level, or for names (level -1) the indicators of their groups; read-only."""
    found = half_functions(levels, level) if level >= 0 else np.eye(bins, dtype=np.int64)
    found.setflags(write=False)
    return found


class PairCounts:
    """Counts of the records by the bins of two attributes, computed on demand. Private.

    A record without a value of an attribute has the code after its last bin, and is in no cell. `tables` are counts
    computed earlier, by the indices of the two attributes, the smaller one first.
    """

    def __init__(
        self,
        codes: Sequence[NDArray[np.uint8]],
        bins: Sequence[int],
        tables: Mapping[tuple[int, int], Integers] | None = None,
    ) -> None:
        self._codes, self._bins = codes, bins
        self._tables: dict[tuple[int, int], Integers] = dict(tables or {})

    def table(self, a: int, b: int) -> Integers:
        """Rows are the bins of attribute a, columns those of b."""
        if a > b:
            return self.table(b, a).T
        if (a, b) not in self._tables:
            first, second = self._bins[a], self._bins[b]
            both = self._codes[a].astype(np.uint16) * np.uint16(second + 1) + self._codes[b]
            counts = np.bincount(both, minlength=(first + 1) * (second + 1)).astype(np.int64)
            self._tables[a, b] = counts.reshape(first + 1, second + 1)[:first, :second]
        return self._tables[a, b]


def sign_products(counts: PairCounts, signs: Sequence[int], levels: Sequence[int], n: int) -> Integers:
    """The matrix of sums over records of products of signs, n on its diagonal.

    Guarantee:
        A record adds the outer product of a vector of signs with itself; where it has no value the products are
        0, which is the mean of both signs.
    """
    found = np.full((len(signs), len(signs)), n, dtype=np.int64)
    for i, a in enumerate(signs):
        for j in range(i):
            b = signs[j]
            left, right = half_functions(levels[a], 0), half_functions(levels[b], 0)
            found[i, j] = found[j, i] = (left.T @ counts.table(a, b) @ right)[0, 0]
    return found


def group_sums(
    counts: PairCounts, group: ContrastGroup, levels: Sequence[int], bins: Sequence[int]
) -> Integers:
    """The sums of a group: cells of the pivot, and for each partner in turn its functions.

    Guarantee:
        A record is in one cell of the pivot, and there it changes one sum of each partner by one.
    """
    own = functions(levels[group.pivot], group.level, bins[group.pivot])
    parts = [
        own.T @ counts.table(group.pivot, b) @ functions(levels[b], group.depth, bins[b])
        for b in group.partners
    ]
    return np.concatenate(parts, axis=1)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class InsideBins:
    """Where values lie inside their bins, by the name in another column.

    Attributes:
        names: the attribute of names.
        parts: share of each part of a bin, among the rows with a name and in that bin.
    """

    names: int
    parts: Floats


def inside_order(
    bins: NDArray[np.uint8], values: Floats, names: NDArray[np.uint8], parts: Floats, alone: Floats
) -> Floats:
    """Bins and places from 0 to 1 inside them: in the order of the values, but in the parts that names ask for.

    Args:
        parts: shares of the parts of a bin, by name and bin.
        alone: the same for all names.
    """
    order = np.lexsort((values, bins))
    sizes = np.bincount(bins, minlength=len(alone))
    starts = np.cumsum(sizes) - sizes
    place = np.empty(bins.size)
    place[order] = (np.arange(bins.size) - starts[bins[order]] + 0.5) / sizes[bins[order]]
    # ends of the parts, among the rows of the name and among all
    own, all_ = (
        np.concatenate((np.zeros((*x.shape[:-1], 1)), np.cumsum(x, axis=-1)), axis=-1) for x in (parts, alone)
    )
    own, all_ = own[names, bins], all_[bins]
    part = np.minimum((place[:, None] >= own[:, 1:]).sum(axis=1), alone.shape[1] - 1)
    rows = np.arange(bins.size)
    low, width = own[rows, part], own[rows, part + 1] - own[rows, part]
    inside = np.clip((place - low) / np.maximum(width, 1e-300), 0.0, 1.0)
    begin, end = all_[rows, part], all_[rows, part + 1]
    found: Floats = bins + begin + np.minimum(inside, 1 - 1e-9) * (end - begin)
    return found
