"""Measurements of single columns in pairs-dp: thresholds, tails and shares of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.display import internal
from shoal.mechanisms.pairs.budget import (
    FREQUENT,
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
from shoal.mechanisms.pairs.distributions import (
    LEAST,
    Answers,
    Fine,
    Frequent,
    answers_of_values,
    denoised_counts,
    least_known,
    likely,
    places,
    points,
    settled,
    slopes_for,
    where,
    with_points,
    with_tails,
    without_points,
)
from shoal.mechanisms.tree.intervals import draw_edges, ends_of, halved, nearest_counts, steadied
from shoal.noise import exponential_choice
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Measurement, RecordSum, Spend
from shoal.taxonomy import Taxonomy
from shoal.workers import threaded

# Share of a piece of a bin whose distribution says that nobody is there.
_LEAST_PIECE = 1e-9


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
        answers: the noisy numbers of records it is made of.
        within: the measured bin of each bin, where rows are drawn in finer ones than those measured.
    """

    fine: Fine
    shares: Floats
    levels: int
    edges: Integers | None
    groups: NDArray[np.uint8] | None = None
    finer: Integers | None = None
    parts: Floats | None = None
    answers: tuple[Answers, ...] = ()
    within: Integers | None = None

    @property
    def bins(self) -> int:
        return self.shares.size

    @property
    def middle(self) -> int:
        """The first bin of the second half."""
        if self.within is None:
            return self.bins // 2
        return int(np.searchsorted(self.within, (int(self.within[-1]) + 1) // 2))

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

    def split(self, cuts: Integers) -> Marginal:
        """The same with bins that are split at these positions, in which rows can be drawn."""
        assert self.edges is not None
        pieces = [
            [low, *(cut for cut in cuts.tolist() if low < cut < high)]
            for low, high in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True)
        ]
        edges = np.array([*(cut for own in pieces for cut in own), self.edges[-1]], dtype=np.int64)
        within = np.repeat(np.arange(self.bins), [len(own) for own in pieces])
        parts = np.maximum(np.diff(self.fine.below(edges)), _LEAST_PIECE)
        shares = parts * (self.shares / np.bincount(within, parts))[within]
        return replace(self, shares=shares, edges=edges, within=within)

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


def constant() -> Marginal:
    """An attribute of one value."""
    return Marginal(points(np.ones(1)), np.ones(1), 0, np.array([0, 1], dtype=np.int64))


# Placeholder position for a record without a value of an attribute.
ABSENT = -1


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


# A declared spike counts if its share is this many times the noise on it.
_DECLARED = 2.0
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

    @cached_property
    def distinct(self) -> tuple[Integers, Integers]:
        """The distinct positions in ascending order, and the number of records at each.

        >>> [part.tolist() for part in Histogram(np.array([2, 0, 2])).distinct]
        [[0, 2], [1, 2]]
        """
        if self.counts is not None:
            return self.positions, self.counts
        values, counts = np.unique(self.positions, return_counts=True)
        return values, counts.astype(np.int64)

    def at(self, wanted: Integers) -> Integers:
        """Number of records at each of these positions.

        >>> Histogram(np.array([2, 0, 2])).at(np.array([2, 1, 0, 3])).tolist()
        [2, 0, 1, 0]
        """
        values, counts = self.distinct
        places = np.minimum(np.searchsorted(values, wanted), max(values.size - 1, 0))
        if not values.size:
            return np.zeros(wanted.size, dtype=np.int64)
        found: Integers = np.where(values[places] == wanted, counts[places], 0)
        return found

    def between(self, places: NDArray[np.intp]) -> Integers:
        """Number of records between consecutive places of `ordered`."""
        if self.counts is None:
            return np.diff(places).astype(np.int64)
        running = np.concatenate(([0], np.cumsum(self.counts)))
        return np.diff(running[places])


# A cut drawn near the median leaves about half on either side, except for ties: their frequency and deviation.
_TIED, _NEAR = 0.2, 0.02
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
        Two-valued attributes, each round of bisection, each level of contrasts, the sums and the counts of
        frequent values are one measurement each, in which a record changes one number per attribute by at most its
        unit; values counted one by one are one measurement per attribute, and so are heaps; cut points cost what
        `draw_edges` states, choices of frequent values what `choose_frequent` does. Adaptive composition adds them up.

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
        what = RecordSum("count", (number,))
        noisy = currency.measure(counts, MeasurementShape(1, 1, counts.size), spend, what)
        deviation = currency.deviation(MeasurementShape(1, 1, counts.size), layout.each)
        if attributes[number].ordered:
            made = _of_counts(_shares(denoised_counts(noisy, rows_of[number], deviation)))
        else:
            shares = _shares(nearest_counts(noisy, rows_of[number]))
            made = merged(shares, _CLEAR * deviation / rows, most[number], trees[number])
        named = f"number of records of a value of {attributes[number].name}"
        answers = answers_of_values(named, np.arange(counts.size), noisy, deviation)
        found[number] = replace(made, answers=(answers,))
    heaps = {
        number: _measure_heaps(
            positions[number], number, attributes[number], share, currency, rows_of[number], account
        )
        for number, share in layout.heaps
    }
    if layout.rounds:
        found |= _bisected(positions, attributes, layout, currency, rows_of, heaps, account)
    elif layout.cut:
        found |= _cut(positions, attributes, layout, currency, rows_of, heaps, account)
    for number, own in heaps.items():
        found[number] = replace(found[number], answers=(*found[number].answers, own.answers))
    return [found.get(number, constant()) for number in range(len(attributes))]


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class _Heaps:
    """Single values of an attribute with cut points, and the shares of the rows that they have more than others.

    Attributes:
        values: positions in ascending order.
        shares: of each, 0 where it cannot be told from the values around it.
        noise: standard deviation of the noise on a share.
        answers: the noisy counts.
    """

    values: Integers
    shares: Floats
    noise: float
    answers: Answers


def _measure_heaps(
    column: Histogram,
    number: int,
    facts: AttributeFacts,
    share: Fraction,
    currency: Currency,
    rows: float,
    account: Accountant,
) -> _Heaps:
    """Count declared spikes, or all values of a short domain."""
    values = np.array(facts.spikes or range(facts.points), dtype=np.int64)
    shape = MeasurementShape(1, 1, values.size)
    spend = account.spend(OF_ONE, share, f"heaps of {facts.name}", over="values")
    noisy = currency.measure(
        column.at(values), shape, spend, RecordSum("spike", (number,), {"values": values})
    )
    deviation = currency.deviation(shape, share)
    held, noise = noisy / rows, deviation / rows
    # a declared spike is no surprise
    least = _DECLARED * noise if facts.spikes else max(FREQUENT, currency.largest(values.size) * noise)
    shares = np.where(held - 1 / facts.points > least, held, 0.0)
    shares *= min(1.0, (1 - LEAST) / max(float(shares.sum()), LEAST))
    named = f"number of records of a value of {facts.name}"
    return _Heaps(values, shares, noise, answers_of_values(named, values, noisy, deviation))


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
    what = RecordSum("sign", layout.signs)
    noisy = currency.measure(exact, MeasurementShape(1, exact.size, 1), spend, what)
    first = np.clip((1 + noisy / rows) / 2, LEAST, 1 - LEAST)
    for a, flag in flags_of(attributes).items():
        if a in layout.signs:
            mean = noisy[layout.signs.index(a)] / (rows * first[layout.signs.index(flag)])
            first[layout.signs.index(a)] = np.clip((1 + mean) / 2, LEAST, 1 - LEAST)
    noise = currency.deviation(MeasurementShape(1, exact.size, 1), layout.sign_share)
    low, middle, high = np.arange(3).reshape(3, 1)
    return {
        a: replace(
            _of_counts(np.array([share, 1 - share])),
            answers=(
                Answers(f"the two values of {attributes[a].name}", low, middle, high, answer[None], noise),
            ),
        )
        for a, share, answer in zip(layout.signs, first, noisy, strict=True)
    }


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
    heaps: Mapping[int, _Heaps],
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
        what = RecordSum("below", layout.cut, {"cuts": asked[turn].copy()})
        noisy = currency.measure(exact, MeasurementShape(1, exact.size, 1), spend, what)
        answers[turn] = (1 + noisy / rows) / 2
    found = {}
    for place, a in enumerate(layout.cut):
        size, cuts, own = attributes[a].points, asked[:, place], answers[:, place]
        told = Answers(
            f"thresholds of {attributes[a].name}",
            np.zeros_like(cuts),
            cuts,
            np.full_like(cuts, size),
            (2 * own - 1) * rows[place],
            float(2 * noise[place] * rows[place]),
        )
        made = _of_thresholds(cuts, own, size, float(noise[place]), heaps.get(a))
        found[a] = replace(made, answers=(told,))
    return found


def _of_thresholds(
    asked: Integers, answers: Floats, size: int, noise: float, heaps: _Heaps | None = None
) -> Marginal:
    values = np.zeros(0, dtype=np.int64) if heaps is None else heaps.values[heaps.shares > 0]
    masses = np.zeros(0) if heaps is None else heaps.shares[heaps.shares > 0]
    # the curve is that of all other records
    below = np.concatenate(([0.0], np.cumsum(masses)))
    rest = 1 - float(masses.sum())
    others = (
        np.clip((answers - below[np.searchsorted(values, asked)]) / rest, 0.0, 1.0)
        if values.size
        else answers
    )
    curve = settled(asked / size, others, noise / rest)
    known = places()
    edges = np.unique(np.concatenate((np.rint(known * size).astype(np.int64), asked)))
    running = np.interp(edges / size, known, curve)
    running[0], running[-1] = 0.0, 1.0
    fine = Fine(edges[:-1], edges[1:] - 1, rest * np.diff(running), np.zeros(edges.size - 1))
    fine = with_points(fine, values, masses)
    running = rest * running + below[np.searchsorted(values, edges)]
    # pairs use a threshold that was asked for, whose share is known best
    level = np.interp(asked, edges, running)
    cut = int(np.argmin(np.abs(level - 0.5)))
    first = float(np.clip(level[cut], LEAST, 1 - LEAST))
    return Marginal(fine, np.array([first, 1 - first]), 1, np.array([0, asked[cut], size]))


def _cut(
    positions: Sequence[Histogram],
    attributes: Sequence[AttributeFacts],
    layout: OneWay,
    currency: Currency,
    rows_of: Sequence[float],
    heaps: Mapping[int, _Heaps],
    account: Accountant,
) -> dict[int, Marginal]:
    """Private cut points, then contrasts of all trees level by level, then sums inside the finest intervals."""
    levels, number = layout.levels, len(layout.cut)
    rows = np.array([rows_of[a] for a in layout.cut])[:, None]
    own = [positions[a] for a in layout.cut]
    # sorted once, in threads
    list(threaded(lambda found: found.ordered, own))
    edges = [
        _edges(found, a, attributes[a], layout, currency, account)
        for found, a in zip(own, layout.cut, strict=True)
    ]
    places = [np.searchsorted(found.ordered, cuts) for found, cuts in zip(own, edges, strict=True)]
    counts = np.stack([found.between(place) for found, place in zip(own, places, strict=True)])
    running = np.ones((number, 1))
    answers: list[list[Answers]] = [[] for _ in layout.cut]
    for level, share in enumerate(layout.counts):
        both = counts.reshape(number, 1 << level, 2, -1).sum(axis=3)
        shape = MeasurementShape(1, number, 1 << level)
        spend = account.spend(OF_ONE, share, f"halves of intervals, level {level + 1}", over="intervals")
        what = RecordSum("tree", layout.cut, {"level": level})
        answer = currency.measure(both[:, :, 0] - both[:, :, 1], shape, spend, what)
        for place, a in enumerate(layout.cut):
            ends = edges[place][:: edges[place].size >> (level + 1)]
            named = f"halves of intervals of {attributes[a].name}, level {level + 1}"
            noise = currency.deviation(shape, share)
            answers[place].append(Answers(named, ends[:-1:2], ends[1::2], ends[2::2], answer[place], noise))
        noisy = answer / rows
        # half a node is the error of a cut near the median, apart from ties
        doubt = _NEAR + 1 / (float(currency.rate(layout.cuts[level])) * np.maximum(rows / 2**level, 1.0))
        running = _refined(running, noisy, currency.deviation(shape, share) / rows, doubt, edges, level)
    names = [attributes[a].name for a in layout.cut]
    frequent = _frequent(own, edges, running, names, layout, currency, rows, account)
    # what was not needed for frequent values
    sums = layout.sums + (number - len(frequent)) * layout.choices
    sums += layout.frequent if not frequent else 0
    means = _means(own, places, edges, running, sums, layout.cut, currency, rows, account)
    found = {}
    for place, a in enumerate(layout.cut):
        made = _of_tree(
            edges[place], running[place], *means[place], levels, frequent.get(place), heaps.get(a)
        )
        if place in frequent:
            values, total = frequent[place], float(rows[place, 0])
            wide = np.diff(edges[place]) > 1
            named = f"frequent values of {attributes[a].name}"
            held, noise = values.shares[wide] * total, values.noise * total
            answers[place].append(answers_of_values(named, values.values[wide], held, noise))
        found[a] = replace(made, answers=tuple(answers[place]))
    return found


def _edges(
    found: Histogram, a: int, facts: AttributeFacts, layout: OneWay, currency: Currency, account: Accountant
) -> Integers:
    """Private cut points of one attribute; a record is in one interval of a level."""
    spends = [
        account.spend(OF_ONE, share, f"cut points of {facts.name}, level {level + 1}", over="intervals")
        for level, share in enumerate(layout.cuts)
    ]
    edges = draw_edges(found.ordered, [0, facts.points], spends, currency.rate, found.counts)
    rates = [currency.rate(share) for share in layout.cuts]
    what = RecordSum("cuts", (a,), {"edges": edges})
    spends[-1].record(Measurement.of(what, edges[:0], 0.0, name="exponential", rates=rates))
    return edges


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
    share: Fraction,
    columns: tuple[int, ...],
    currency: Currency,
    rows: Floats,
    account: Accountant,
) -> list[tuple[Floats, Floats]]:
    """Noisy offsets of the means of the finest intervals from their middles, and their noise."""

    def exact_of(number: int) -> Integers:
        column = positions[number]
        lows, highs = ends_of(edges[number])
        which = np.repeat(np.arange(lows.size), np.diff(places[number]))
        width = np.maximum(highs - lows, 1)[which]
        terms = np.rint((2 * column.ordered - (lows + highs)[which]) / width * SUM_PARTS)
        terms = np.clip(terms, -SUM_PARTS, SUM_PARTS)
        if column.counts is not None:
            terms = terms * column.counts
        return np.bincount(which, terms, minlength=lows.size).astype(np.int64)

    exact = list(threaded(exact_of, range(len(positions))))
    shape = MeasurementShape(1, len(exact), exact[0].size, unit=SUM_PARTS)
    spend = account.spend(OF_ONE, share, "sums inside intervals", over="intervals")
    what = RecordSum("inside", columns, {"parts": SUM_PARTS})
    noisy = currency.measure(np.stack(exact), shape, spend, what) / SUM_PARTS
    deviation = currency.deviation(shape, share) / SUM_PARTS
    found = []
    for own, sums, cuts, total in zip(shares, noisy, edges, rows, strict=True):
        weights = np.maximum(own * total, 1.0)
        lows, highs = ends_of(cuts)
        half = (highs - lows) / 2
        found.append((sums / weights * half, deviation / weights * half))
    return found


def _frequent(
    positions: Sequence[Histogram],
    edges: Sequence[Integers],
    shares: Floats,
    names: Sequence[str],
    layout: OneWay,
    currency: Currency,
    rows: Floats,
    account: Accountant,
) -> dict[int, Frequent]:
    """A frequent value of every interval and its noisy share, of attributes with intervals large enough for one."""
    if not layout.choices:
        return {}
    least = [layout.least_frequent(currency, float(own)) for own in rows[:, 0]]
    wide = np.stack([np.diff(cuts) > 1 for cuts in edges])
    telling = [place for place, limit in enumerate(least) if (shares[place][wide[place]] > limit).any()]
    if not telling:
        return {}
    values, exact = [], []
    for place in telling:
        named = f"frequent values of {names[place]}"
        spend = account.spend(OF_ONE, layout.choices, named, over="intervals")
        values.append(choose_frequent(positions[place], edges[place], spend, currency))
        # single positions are counted with the intervals already
        exact.append(np.where(wide[place], positions[place].at(values[-1]), 0))
    shape = MeasurementShape(1, len(exact), exact[0].size)
    spend = account.spend(OF_ONE, layout.frequent, "counts of frequent values", over="intervals")
    what = RecordSum("value", tuple(layout.cut[place] for place in telling), {"values": np.stack(values)})
    noisy = currency.measure(np.stack(exact), shape, spend, what)
    noise = currency.deviation(shape, layout.frequent)
    return {
        place: Frequent(found, counts / rows[place], noise / float(rows[place, 0]), least[place])
        for place, found, counts in zip(telling, values, noisy, strict=True)
    }


def choose_frequent(column: Histogram, edges: Integers, spend: Spend, currency: Currency) -> Integers:
    """One position of every interval edges[i] .. edges[i+1] - 1, preferably one that many records have.

    Guarantee:
        A position is drawn with probability proportional to exp(rate · its number of records). One added record
        raises one count by one: that costs `rate`. A record replaced inside an interval raises one and lowers another,
        and one that moves between intervals changes one choice each: that costs 2 · rate. Intervals of at most
        one position are left out at no cost.

    Reference:
        docs/proofs/trees.md#pairs, section 4.
    """
    share, source = spend.take()
    # counts only rise with an added record, so the choice costs half of what penalties of any direction would
    rate = 2 * currency.rate(share)
    values, counts = column.distinct
    places = np.searchsorted(values, edges)
    chosen: Integers = np.minimum(edges[:-1], edges[-1] - 1)
    for i in np.flatnonzero(np.diff(edges) > 1).tolist():
        own, each = values[places[i] : places[i + 1]], counts[places[i] : places[i + 1]]
        # runs of positions with equal counts, in their order: those that nobody has, and single ones
        starts = np.empty(2 * own.size + 1, dtype=np.int64)
        starts[0], starts[1::2], starts[2::2] = edges[i], own, own + 1
        records = np.zeros(starts.size, dtype=np.int64)
        records[1::2] = each
        lengths = np.diff(starts, append=edges[i + 1])
        run = exponential_choice(lengths, records.max() - records, rate, source)
        chosen[i] = int(starts[run]) + int(source.below(int(lengths[run]), 1)[0])
    return chosen


def _of_tree(
    edges: Integers,
    shares: Floats,
    offsets: Floats,
    noise: Floats,
    levels: int,
    frequent: Frequent | None = None,
    heaps: _Heaps | None = None,
) -> Marginal:
    """An attribute from its intervals: their shares, noisy offsets of means from middles, frequent values and heaps."""
    lows, highs = ends_of(edges)
    shares = shares / shares.sum()
    means, rest = (lows + highs) / 2 + offsets, shares
    values, masses, doubt = _single_values(edges, shares, frequent, heaps)
    if values.size:
        rest, means, noise = without_points(edges, shares, means, noise, values, masses, doubt)
    steady = steadied(means - (lows + highs) / 2, noise, edges) / np.maximum(highs - lows, 1)
    fine = Fine(lows, highs, rest, slopes_for(0.5 + np.clip(steady, -0.5, 0.5)))
    kept = min(levels, PAIR_LEVELS)
    span = 1 << (levels - kept)
    fine = with_points(with_tails(fine, edges, means, noise), values, masses)
    found = Marginal(fine, shares.reshape(-1, span).sum(axis=1), kept, edges[::span])
    part = span >> min(levels - kept, INSIDE_LEVELS)
    return _with_parts(found, edges[::part], shares.reshape(-1, part).sum(axis=1))


def _single_values(
    edges: Integers, shares: Floats, frequent: Frequent | None, heaps: _Heaps | None
) -> tuple[Integers, Floats, float]:
    """Values of intervals that have a share of their own, this share, and the standard deviation of its noise."""
    values, masses, doubt = np.zeros(0, dtype=np.int64), np.zeros(0), 0.0
    if frequent is not None:
        own = frequent.masses(edges, shares)
        values, masses, doubt = frequent.values[own > 0], own[own > 0], frequent.noise
    if heaps is not None:
        # single positions are known from their intervals already
        wide = np.diff(edges)[np.searchsorted(edges, heaps.values, side="right") - 1] > 1
        held = heaps.shares[(heaps.shares > 0) & wide]
        known = heaps.values[(heaps.shares > 0) & wide]
        apart = ~np.isin(values, heaps.values)
        values, masses = np.concatenate((values[apart], known)), np.concatenate((masses[apart], held))
        doubt = max(doubt, heaps.noise)
    which = np.searchsorted(edges, values, side="right") - 1
    together = np.bincount(which, masses, minlength=shares.size)
    masses = masses * np.minimum(1.0, shares / np.maximum(together, 1e-300))[which]
    return values, masses, doubt


def _shares(counts: Floats) -> Floats:
    lifted: Floats = counts + LEAST
    return lifted / float(lifted.sum())
