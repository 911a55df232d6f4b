"""The layout of a private partition tree and the trees of single columns: budgets, noisy counts, cuts, when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.tree.method import TreeDP
from shoal.noise import Source, discrete_laplace, exponential_choice, round_up_scale
from shoal.numbers import Bools, Floats, Integers
from shoal.privacy import Accountant, Measurement, RecordSum, Spend


def scale_of(moves: Fraction | int, amount: Fraction) -> Fraction:
    """Scale of noise for a joint sensitivity and the amount spent."""
    return round_up_scale(Fraction(moves) / amount)


def noisy(
    values: NDArray[np.int64], moves: Fraction | int | Sequence[int], spend: Spend, what: RecordSum
) -> NDArray[np.float64]:
    """Values plus discrete Laplace noise, calibrated to the amount spent; the result is recorded as `what`.

    Args:
        moves: L1 sensitivity of all values together to one record; or, if a record's changes are bounded
            individually, a bound for each: the changes divided by their bounds add up to at most 1.

    Guarantee:
        Costs the amount of the spend.

    Reference:
        docs/proofs/noise.md#laplace, section 3.
    """
    amount, source = spend.take()
    scale = (
        [scale_of(each, amount) for each in moves] if isinstance(moves, Sequence) else scale_of(moves, amount)
    )
    found = values + discrete_laplace(scale, values.size, source)
    widest = float(max(scale, default=Fraction(0)) if isinstance(scale, list) else scale)
    law = {"name": "discrete-laplace", "scale": scale}
    # a discrete Laplace draw of scale s has a variance of at most 2s²
    spend.record(Measurement.of(what, found, math.sqrt(2) * widest, **law))
    return found.astype(np.float64)


STAGES = ("cuts", "intervals", "leaves", "means")
MOST_CUTS = 10
MOST_DEPTH = 16

# Weights of cut points, interval counts and leaf counts in what the means leave.
_WEIGHTS = {"cuts": Fraction(46, 100), "intervals": Fraction(22, 100), "leaves": Fraction(32, 100)}
# The means need most if intervals are wide: all of ε without cuts, less with every level, never nothing.
_MEANS_FIRST, _MEANS_RATIO, _MEANS_LEAST = Fraction(3, 10), Fraction(2, 5), Fraction(1, 25)
# Shares grow from level to level, because nodes get smaller.
_CUT_GROWTH, _LEAF_GROWTH = Fraction(8, 5), Fraction(5)
# A cut is worth drawing in a node of this many records times its ε; a leaf is worth counting likewise.
_CUT_WORTH, _LEAF_WORTH = Fraction(50), Fraction(4)
# Up to this many values are counted individually, if the noise of all counts is at most this part of the rows.
_FEW_NUMBERS, _LITTLE_NOISE = 32, Fraction(1, 4)
# Squares are measured in 2^20 parts of the largest possible one and centred, so that their sums fit into 64 bits.
_LARGEST_SQUARE = 1 << 19
_SQUARES_SHARE = Fraction(1, 4)
# Part of an attribute's ε for counting missing values if there are no levels of counts.
_GAP_SHARE = Fraction(1, 4)
_ROWS_SHARE = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class Layout:
    """The shape of the trees and the exact ε of each part.

    Attributes:
        cuts: ε of each level of cut points, of each attribute.
        intervals: ε of each level of interval counts, of each attribute.
        leaves: ε of each level of counts of the tree over all attributes.
        means: ε of the interval sums of each attribute.
        squares: ε of the interval sums of squares of each attribute; 0 unless rows are drawn from normals.
        adding: add-remove adjacency instead of replace-one.
        gap: ε of the count of missing values, for an attribute with a "missing" state.
    """

    cuts: tuple[Fraction, ...]
    intervals: tuple[Fraction, ...]
    leaves: tuple[Fraction, ...]
    means: Fraction
    squares: Fraction
    adding: bool
    gap: Fraction = Fraction(0)

    @property
    def attribute(self) -> Fraction:
        """ε of one attribute in total."""
        return sum((*self.cuts, *self.intervals, self.means, self.squares, self.gap), Fraction(0))

    def counts_values(self, points: int, rows: int, *, nominal: bool) -> bool:
        """Whether the values of an attribute are counted individually, instead of intervals between cuts.

        That is the case if cut points could not be more informative, or if the noise of all counts together is
        a small part of the rows. Names are drawn at random inside an interval, so more noise is acceptable for them;
        nearby numbers are similar, so they are counted only if there are few.
        """
        if points <= 1 << len(self.cuts):
            return True
        noise = points * self.count_scale(self.attribute) / max(rows, 1)
        if nominal:
            # without cuts the alternative is no information
            return noise <= 1 or not self.cuts
        return points <= _FEW_NUMBERS and noise <= _LITTLE_NOISE

    @property
    def for_names(self) -> Layout:
        """The layout of an unordered attribute: sums are meaningless there, and counts get their share."""
        spare = self.means + self.squares
        more = _levels(sum(self.intervals, spare), len(self.intervals), Fraction(1))
        return replace(self, intervals=more, means=Fraction(0), squares=Fraction(0))

    @property
    def for_gaps(self) -> Layout:
        """The layout of an attribute with a "missing" state: the public cut before it has counts of its own.

        Their share is that of one more level of counts, or comes from the sums if there are no levels.
        """
        if self.cuts:
            gap, *more = _levels(sum(self.intervals, Fraction(0)), len(self.intervals) + 1, Fraction(1))
            return replace(self, intervals=tuple(more), gap=gap)
        kept = 1 - _GAP_SHARE
        return replace(
            self,
            gap=(self.means + self.squares) * _GAP_SHARE,
            means=self.means * kept,
            squares=self.squares * kept,
        )

    @property
    def moved(self) -> int:
        """The change of a level's counts by one record: two under replace-one, one under add-remove."""
        return 1 if self.adding else 2

    def cut_rate(self, share: Fraction) -> Fraction:
        """Rate of the exponential mechanism of a level: a penalty changes by at most 2, or 1 under add-remove."""
        return share / (2 if self.adding else 4)

    def count_scale(self, share: Fraction) -> Fraction:
        """Scale of noise on the counts of a level."""
        return scale_of(self.moved, share)

    def check(self, steps: int | None) -> None:
        """Raise if noise of this layout cannot be drawn, for an attribute of so many steps (None: a nominal one)."""
        for share in (*self.intervals, *self.leaves, self.attribute, *([self.gap] if self.gap else [])):
            self.count_scale(share)
        if steps is not None:
            # an interval is at most as wide as the domain
            self.sum_scale(steps, self.means)
            if self.squares:
                self.sum_scale(_LARGEST_SQUARE, self.squares)

    def sum_scale(self, bound: int, share: Fraction) -> Fraction:
        """Scale of noise on a sum with terms of at most `bound` in size: two terms change, or one under add-remove."""
        return scale_of(self.moved * bound, share)


def lay_out(method: TreeDP, attributes: int, rows: int, budget: Fraction, *, fitting: bool = False) -> Layout:
    """Determine depth and shares for `rows` records; fixed settings of the method are kept.

    `fitting`: the number of rows was drawn, and a depth that it does not allow is reduced to the largest it does.
    """
    cuts = method.cuts if method.cuts is not None else _choose_cuts(method, attributes, rows, budget)
    if cuts > MOST_CUTS:
        raise OptionError("too-many-cuts", option="cuts", most_cuts=MOST_CUTS, found=cuts)
    stages = _stage_shares(method, cuts)
    most = _most_depth(cuts, attributes)
    depth = method.depth
    if depth is None:
        depth = max(
            (d for d in range(1, most + 1) if _worth_counting(rows, d, stages["leaves"] * budget)), default=0
        )
    elif fitting and method.cuts is None:
        depth = min(depth, most)
    elif depth > most:
        raise OptionError("depth-too-large", depth=depth, attributes=attributes, cuts=cuts, most=most)
    if depth == 0:
        stages = _rescaled({**stages, "leaves": Fraction(0)})
    each = {stage: share * budget / attributes for stage, share in stages.items()}
    squares = each["means"] * _SQUARES_SHARE if method.rebuild == "normal" else Fraction(0)
    return Layout(
        cuts=_levels(each["cuts"], cuts, _CUT_GROWTH),
        intervals=_levels(each["intervals"], cuts, Fraction(1)),
        leaves=_levels(stages["leaves"] * budget, depth, _LEAF_GROWTH),
        means=each["means"] - squares,
        squares=squares,
        adding=method.adjacency.hides_size,
    )


def possible_layouts(method: TreeDP, attributes: int, budget: Fraction) -> list[Layout]:
    """A layout for every number of levels that can result from a drawn number of rows.

    One layout represents all depths that follow from the rows: the shares depend only on whether there is a tree at
    all, and a deeper one has levels that are each worth their share, with noise smaller than the number of rows.
    """
    levels = range(MOST_CUTS + 1) if method.cuts is None else (method.cuts,)
    depths = {0, method.depth or 1}
    every = [
        replace(method, cuts=cuts, depth=depth)
        for cuts in levels
        for depth in sorted(depths)
        if depth == 0 or (method.cuts is not None and method.depth) or _most_depth(cuts, attributes) >= depth
    ]
    return [lay_out(one, attributes, 1, budget) for one in every]


def _most_depth(cuts: int, attributes: int) -> int:
    """A table of one attribute has no tree over all attributes."""
    return min(cuts * attributes, MOST_DEPTH) if attributes > 1 else 0


def rows_share(method: TreeDP) -> Fraction:
    """The cost of the number of rows: zero if it is public or declared."""
    noisy = method.adjacency.hides_size and method.rows is None
    return method.budget * _ROWS_SHARE if noisy else Fraction(0)


def _choose_cuts(method: TreeDP, attributes: int, rows: int, budget: Fraction) -> int:
    """The maximum number of levels that are each worth their share."""
    found = 0
    for levels in range(1, MOST_CUTS + 1):
        share = _stage_shares(method, levels)["cuts"] * budget / attributes
        worth = [rows * each / 2**level for level, each in enumerate(_levels(share, levels, _CUT_GROWTH))]
        if min(worth) >= _CUT_WORTH:
            found = levels
    return found


def _worth_counting(rows: int, depth: int, share: Fraction) -> bool:
    worth: Fraction = rows * _levels(share, depth, _LEAF_GROWTH)[-1] / 2**depth
    return worth >= _LEAF_WORTH


def _stage_shares(method: TreeDP, cuts: int) -> dict[str, Fraction]:
    if cuts == 0:
        return dict.fromkeys(STAGES, Fraction(0)) | {"means": Fraction(1)}
    if method.shares is not None:
        return _rescaled(dict(method.shares))
    means = max(_MEANS_LEAST, _MEANS_FIRST * _MEANS_RATIO ** (cuts - 1))
    return {stage: weight * (1 - means) for stage, weight in _WEIGHTS.items()} | {"means": means}


def _rescaled(weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    total = sum(weights.values())
    return {stage: weight / total for stage, weight in weights.items()}


def _levels(share: Fraction, levels: int, growth: Fraction) -> tuple[Fraction, ...]:
    weights: Sequence[Fraction] = [growth**level for level in range(levels)]
    return tuple(share * weight / sum(weights) for weight in weights)


ROWS = "number of rows"
# one reservation for the budget that is divided once the noisy number of rows has determined the levels
BY_ROWS = "cut points, counts and sums, level by level as the number of rows allows"


@dataclass(frozen=True, slots=True)
class Purposes:
    """The purposes of a layout's parts in a statement, and the amount reserved for each.

    Attributes:
        attributes: number of attributes.
        counted: number of those whose values are counted individually.
        names: number of unordered attributes among the others.
        gaps: number of attributes with a "missing" state among the others.
    """

    layout: Layout
    attributes: int
    counted: int = 0
    names: int = 0
    gaps: int = 0

    @classmethod
    def of(cls, layout: Layout, described: Described, counted: Collection[str]) -> Purposes:
        cut = [column for column in described.columns if column not in counted]
        names = sum(column in described.nominal for column in cut)
        gaps = sum(column in described.flagged for column in cut)
        return cls(layout, len(described.columns), len(counted), names, gaps)

    @property
    def cut(self) -> int:
        """Number of attributes with cut points, or only a sum."""
        return self.attributes - self.counted

    @property
    def numbers(self) -> int:
        """Number of these that have sums."""
        return self.cut - self.names

    @property
    def values(self) -> str:
        return f"value counts {self._of(self.counted)}"

    @property
    def missing(self) -> str:
        return f"missing values {self._of(self.gaps)}"

    @property
    def sums(self) -> str:
        return f"interval sums {self._of(self.numbers)}"

    @property
    def squares(self) -> str:
        return f"interval sums of squares {self._of(self.numbers)}"

    def cut_points(self, level: int) -> str:
        return f"cut points {self._of(self.cut)}, level {level + 1} of {len(self.layout.cuts)}"

    def interval_counts(self, level: int) -> str:
        return f"interval counts {self._of(self.cut)}, level {level + 1} of {len(self.layout.cuts)}"

    def tree_counts(self, level: int) -> str:
        return f"counts of the tree, level {level + 1} of {len(self.layout.leaves)}"

    def _of(self, number: int) -> str:
        if number == self.attributes:
            return "of all attributes"
        return f"of {number} attribute{'s' if number > 1 else ''}"

    def reserved(self) -> dict[str, Fraction]:
        """The whole budget of the layout, by purpose, in the order in which it is listed."""
        layout, gaps = self.layout, self.layout.for_gaps
        levels = range(len(layout.cuts) if self.cut else 0)
        whole = self.numbers - self.gaps
        parts: dict[str, Fraction] = {}
        if self.counted:
            parts[self.values] = layout.attribute * self.counted
        for level in levels:
            parts[self.cut_points(level)] = layout.cuts[level] * self.cut
        if self.gaps:
            parts[self.missing] = gaps.gap * self.gaps
        for level in levels:
            share = layout.intervals[level] * whole + gaps.intervals[level] * self.gaps
            parts[self.interval_counts(level)] = share + layout.for_names.intervals[level] * self.names
        for level, share in enumerate(layout.leaves):
            parts[self.tree_counts(level)] = share
        if self.numbers:
            parts[self.sums] = layout.means * whole + gaps.means * self.gaps
        if self.numbers and layout.squares:
            parts[self.squares] = layout.squares * whole + gaps.squares * self.gaps
        return parts


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Purse:
    """The account of a release, together with the attribute to which charges apply."""

    account: Accountant
    purposes: Purposes
    column: str
    number: int

    def spend(self, purpose: str, amount: Fraction, over: str) -> Spend:
        """Charge a measurement of the attribute; `over` are the parts of its domain, a record is in one of them."""
        return self.account.spend(purpose, amount, f"{purpose}, {self.column}", over=over)

    def sums(self, kind: str, **where: Any) -> RecordSum:
        """What is summed of the attribute."""
        return RecordSum(kind, (self.number,), where)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level of noisy counts.

    Attributes:
        noisy: two children per node of the level above, left and right in turn.
        variance: variance of the noise on each of them.
        expected: expected share of each parent's left child, given only the levels above.
        doubt: standard deviation of that share.
        possible: which of them can have records; None if all can.
    """

    noisy: Floats
    variance: float
    expected: Floats
    doubt: float
    possible: Bools | None = None


def consistent_counts(total: float, levels: Sequence[Level]) -> list[Floats]:
    """Non-negative counts of every level, children adding up to their parents and the root to `total`.

    Upwards, every node combines its own noisy count with the sum of its children, weighted by their variances
    (least squares). Downwards, the children share the parent's count: their noisy difference is weighted against the
    expected share, so that a small node drowned in noise falls back to its expectation.

    Reference:
        Hay, Rastogi, Miklau and Suciu, "Boosting the Accuracy of Differentially Private Histograms Through
        Consistency", section 4.

    >>> level = Level(np.array([40.0, 80.0]), 1.0, np.array([0.5]), 10.0)
    >>> [round(count, 2) for count in consistent_counts(100, [level])[1].tolist()]
    [30.0, 70.0]
    """
    gathered: list[tuple[Floats, float]] = []
    for level in reversed(levels):
        if not gathered:
            gathered.append((level.noisy, level.variance))
            continue
        below, variance = gathered[-1]
        sums, spread = below.reshape(-1, 2).sum(axis=1), 2 * variance
        own = spread / (spread + level.variance)
        gathered.append((own * level.noisy + (1 - own) * sums, own * level.variance))
    counts = [np.array([float(total)])]
    for level, (estimate, variance) in zip(levels, reversed(gathered), strict=True):
        parent = counts[-1]
        pairs = estimate.reshape(-1, 2)
        measured = (parent + pairs[:, 0] - pairs[:, 1]) / 2
        prior = (level.doubt * parent) ** 2
        trust = prior / (prior + variance / 2)
        left = np.clip(trust * measured + (1 - trust) * level.expected * parent, 0, parent)
        if level.possible is not None:
            # known without noise: all of the parent's count belongs to the other child
            left = np.where(level.possible[::2], np.where(level.possible[1::2], left, parent), 0.0)
        counts.append(np.column_stack((left, parent - left)).ravel())
    return counts


def rake(
    cells: Floats, groupings: Sequence[NDArray[np.int64]], targets: Sequence[Floats], rounds: int = 5
) -> Floats:
    """Cells scaled in turn so that every grouping of them approaches its target sums.

    >>> rake(np.array([1.0, 1.0, 2.0]), [np.array([0, 0, 1])], [np.array([3.0, 1.0])]).tolist()
    [1.5, 1.5, 1.0]
    """
    for _ in range(rounds):
        for group, target in zip(groupings, targets, strict=True):
            sums = np.bincount(group, cells, minlength=target.size)
            # a group whose cells are all zero cannot be scaled and is left to the others
            factor = np.divide(target, sums, out=np.ones_like(target), where=sums > 1e-9)
            cells = cells * factor[group]
    return cells


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """The non-negative counts with sum `total` that are nearest to the noisy ones, by squared distance.

    >>> nearest_counts(np.array([7.0, 4.0, -2.0]), 10.0).tolist()
    [6.5, 3.5, 0.0]
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    # all counts are reduced equally, until those that would be negative are zero
    last = int(np.flatnonzero(falling >= excess)[-1])
    nearest: Floats = np.maximum(noisy - excess[last], 0.0)
    return nearest


def whole_counts(counts: Floats, total: int) -> NDArray[np.int64]:
    """Integers with sum `total`; the error of every run of consecutive counts is below one.

    >>> whole_counts(np.array([0.5, 0.5, 0.5, 0.5]), 2).tolist()
    [1, 0, 1, 0]
    """
    weight = counts.sum()
    shares = counts / weight if weight > 0 else np.full(counts.size, 1 / counts.size)
    ends = np.floor(np.cumsum(shares) * total + 0.5).astype(np.int64)
    ends = np.minimum(ends, total)
    ends[-1] = total
    return np.diff(ends, prepend=0)


def rank_intervals(
    ordered: NDArray[np.int64], lo: int, hi: int, counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All cuts of the box lo..hi by rank: the number of cuts of each rank, and its distance from the median.

    A cut s in lo+1 .. hi leaves lo .. s-1 to its left; its rank is the number of records there. The penalty
    |2·rank - size| is twice the distance from the median rank, so that it is an integer. With `counts` the positions
    are distinct, each with that many records: the same except for ranks without a cut.

    Guarantee:
        A record replaced inside the box changes every penalty by at most 2, a record gained or lost by at most 1.

    >>> [part.tolist() for part in rank_intervals(np.array([2, 2, 7]), 0, 9)]
    [[2, 0, 5, 2], [3, 1, 1, 3]]
    >>> [part.tolist() for part in rank_intervals(np.array([2, 7]), 0, 9, np.array([2, 1]))]
    [[2, 5, 2], [3, 1, 3]]
    """
    # the cuts of rank r lie above the r-th record and not above the next one
    edges = np.empty(ordered.size + 2, dtype=np.int64)
    edges[0], edges[1:-1], edges[-1] = lo, ordered, hi
    if counts is None:
        penalties = np.arange(-ordered.size, ordered.size + 1, 2)
    else:
        penalties = 2 * np.concatenate(([0], np.cumsum(counts)))
        penalties -= penalties[-1] // 2
    return np.diff(edges), np.abs(penalties, out=penalties)


def draw_cut(
    ordered: NDArray[np.int64],
    lo: int,
    hi: int,
    rate: Fraction,
    source: Source,
    counts: NDArray[np.int64] | None = None,
) -> int:
    """One cut of the box lo..hi near the median of its records, by the exponential mechanism.

    Guarantee:
        Weights exp(-rate · penalty): costs 4·rate for a record replaced inside the box and 2·rate for one added
        or removed. A box of at most one point is public and is left whole at no cost.

    Cost:
        Linear in the number of records of the box.

    Reference:
        docs/proofs/trees.md#tree, section 2.
    """
    if hi <= lo:
        return hi + 1
    lengths, penalties = rank_intervals(ordered, lo, hi, counts)
    rank = exponential_choice(lengths, penalties, rate, source)
    below = lo if rank == 0 else int(ordered[rank - 1])
    return below + 1 + int(source.below(int(lengths[rank]), 1)[0])


def draw_edges(
    ordered: NDArray[np.int64],
    first: Sequence[int],
    levels: Sequence[Spend],
    rate_of: Callable[[Fraction], Fraction],
    counts: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Edges e of intervals e[i] .. e[i+1]-1: every level halves every interval, starting from those of `first`.

    Args:
        ordered: the records' positions, or, with `counts`, the distinct ones and the number of records at each.
        levels: the budget of each level.
        rate_of: the rate of a level, from its budget.

    Guarantee:
        A level costs what one cut of its rate costs under replace-one (4·rate) and add-remove (2·rate): a
        record is in one interval of a level, and a replaced record is either replaced inside one or moves between two.

    >>> from shoal.noise import Seeded
    >>> from shoal.privacy import Accountant
    >>> account = Accountant.of({"cut points": Fraction(4)}, Fraction(4), Seeded(1))
    >>> levels = [account.spend("cut points", Fraction(2)) for _ in range(2)]
    >>> draw_edges(np.array([1, 1, 8, 8]), [0, 10], levels, lambda amount: 25 * amount).size
    5
    """
    edges = np.array(first, dtype=np.int64)
    for level in levels:
        amount, source = level.take()
        rate = rate_of(amount)
        places = np.searchsorted(ordered, edges)
        cuts = []
        for i in range(edges.size - 1):
            inside = slice(places[i], places[i + 1])
            box = (ordered[inside], int(edges[i]), int(edges[i + 1]) - 1, rate, source)
            cuts.append(draw_cut(*box) if counts is None else draw_cut(*box, counts[inside]))
        refined = np.empty(2 * edges.size - 1, dtype=np.int64)
        refined[::2], refined[1::2] = edges, cuts
        edges = refined
    return edges


# Squares are measured in units of this part of the largest possible one, so that their sums fit into 64 bits.
_SQUARE_PARTS = 1 << 20
# Deviation of a cut near the median from half of the records, besides the noise of the cut itself (caused by ties).
_TIES = 0.02
# Prior standard deviation of an interval's mean around its centre, in widths.
_CENTRED = 0.15
# Prior share of the values that are present, and its standard deviation.
_PRESENT, _PRESENT_DOUBT = 0.95, 0.25
# A lookup table from position to interval is faster than a search, as long as it is small.
_LARGEST_TABLE = 1 << 22


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class CutIntervals:
    """The measured intervals of one attribute.

    Attributes:
        edges: interval i contains the positions edges[i] .. edges[i+1] - 1 (none if the edges are equal).
        counts: consistent counts for each number of halvings, the last for the intervals themselves.
        means: mean position of each interval; None if positions are names.
        deviations: standard deviation of each interval; None unless measured.
        points: consistent counts of the single positions, if these were counted.
        gap: the last position is that of missing values; the second half of the intervals is reserved for it.
    """

    edges: Integers
    counts: list[Floats]
    means: Floats | None
    deviations: Floats | None
    points: Floats | None = None
    gap: bool = False

    @property
    def lows(self) -> Integers:
        """First position of each interval; an empty one is represented by the adjacent position in the domain."""
        return ends_of(self.edges, gap=self.gap)[0]

    @property
    def highs(self) -> Integers:
        """Last position of each interval."""
        return ends_of(self.edges, gap=self.gap)[1]


def ends_of(edges: Integers, *, gap: bool = False) -> tuple[Integers, Integers]:
    """First and last positions of the intervals; an empty one gets the position where it would be.

    An empty interval at the end gets the last position. If the position of missing values follows the last value
    (`gap`), no interval of values gets it.

    >>> [ends.tolist() for ends in ends_of(np.array([0, 3, 3, 5, 5]))]
    [[0, 3, 3, 4], [2, 3, 4, 4]]
    >>> [ends.tolist() for ends in ends_of(np.array([0, 5, 5, 6, 6]), gap=True)]
    [[0, 4, 5, 5], [4, 4, 5, 5]]
    """
    if gap:
        middle = edges.size // 2
        values, missing = ends_of(edges[: middle + 1]), ends_of(edges[middle:])
        return np.concatenate((values[0], missing[0])), np.concatenate((values[1], missing[1]))
    lows = np.minimum(edges[:-1], edges[-1] - 1)
    return lows, np.maximum(edges[1:] - 1, lows)


def measure_intervals(
    positions: Integers, steps: int, total: float, layout: Layout, purse: Purse
) -> tuple[CutIntervals, NDArray[np.uint16]]:
    """Spend one attribute's share: cut points, then counts and sums of the intervals between them.

    Positions are 0 .. steps. If the layout has a share for a gap, the last of them is the position of missing
    values, and the first cut, a public one, separates it.

    Returns:
        The intervals, and for every record the number of its interval (private).

    Guarantee:
        Level by level: cut points cost their share by `draw_cut`; given the edges, a record is in one interval,
        so counts cost their share with noise of scale 2/share (1/share when adding), and sums of 2·position -
        low - high, at most the interval's width in size, theirs with noise of 2·width/share (width/share when
        adding), whatever the width of each interval. Adaptive composition adds the shares up.

    Cost:
        One sort of the positions and one pass per level.

    Reference:
        docs/proofs/trees.md#tree, sections 2 to 4.
    """
    found = intervals_of(np.sort(positions), None, steps, total, layout, purse)
    return found, codes_of(positions, found.edges, steps)


def intervals_of(
    ordered: Integers, of_each: Integers | None, steps: int, total: float, layout: Layout, purse: Purse
) -> CutIntervals:
    """`measure_intervals` of sorted positions, or of distinct positions with `of_each` records at each."""
    gap, purposes = layout.gap > 0, purse.purposes
    first = [0, *([steps] if gap else []), steps + 1]
    spends = [
        purse.spend(purposes.cut_points(level), share, over="intervals")
        for level, share in enumerate(layout.cuts)
    ]
    edges = draw_edges(ordered, first, spends, layout.cut_rate, of_each)
    if spends:
        rates = [layout.cut_rate(share) for share in layout.cuts]
        cuts = purse.sums("cuts", edges=edges, gap=gap)
        spends[-1].record(Measurement.of(cuts, edges[:0], 0.0, name="exponential", rates=rates))
    places = np.searchsorted(ordered, edges)
    exact = np.diff(places).astype(np.int64) if of_each is None else _sums(of_each, places)
    # per level: the budget of its counts, the expected share of the left halves and its standard deviation
    measured = [(purposes.missing, layout.gap, _PRESENT, _PRESENT_DOUBT)] if gap else []
    for level, (share, cut) in enumerate(zip(layout.intervals, layout.cuts, strict=True)):
        # a cut misses the median by about 1/rate records
        doubt = _TIES + float(1 / layout.cut_rate(cut)) / max(total / 2**level, 1.0)
        measured.append((purposes.interval_counts(level), share, 0.5, doubt))
    levels = []
    for level, (purpose, share, expected, doubt) in enumerate(measured):
        counts = exact.reshape(2 << level, -1).sum(axis=1)
        spend = purse.spend(purpose, share, over="intervals")
        found = noisy(counts, layout.moved, spend, purse.sums("cells", level=level))
        variance = 2 * float(layout.count_scale(share)) ** 2
        levels.append(Level(found, variance, np.full(1 << level, expected), doubt))
    counts_by_level = _without_empty(consistent_counts(total, levels), edges)
    if not layout.means:
        return CutIntervals(edges, counts_by_level, None, None, gap=gap)
    lows, highs = ends_of(edges, gap=gap)
    # integer sums, exact even if an intermediate result wraps around
    sums, ends = (
        _sums(ordered if of_each is None else ordered * of_each, places),
        (lows + highs).astype(np.int64),
    )
    twice = 2 * sums - exact * ends
    widths = highs - lows
    moves = [layout.moved * int(width) for width in widths]
    weights = np.maximum(counts_by_level[-1], 1.0)
    spend = purse.spend(purposes.sums, layout.means, over="intervals")
    offsets = noisy(twice, moves, spend, purse.sums("offsets")) / (2 * weights)
    scales = [layout.sum_scale(int(width), layout.means) for width in widths]
    spreads = np.array([float(scale) for scale in scales]) / (np.sqrt(2) * weights)
    values = edges.size // 2 if gap else edges.size - 1
    offsets[:values] = steadied(offsets[:values], spreads[:values], edges[: values + 1])
    means = offsets + (lows + highs) / 2
    means = np.clip(means, lows, highs)
    deviations = None
    if layout.squares:
        deviations = _deviations(ordered, of_each, places, lows, highs, means, weights, layout, purse)
    return CutIntervals(edges, counts_by_level, means, deviations, gap=gap)


def _sums(values: Integers, places: NDArray[np.intp]) -> Integers:
    """Exact sums of the runs between consecutive places."""
    running = np.concatenate(([0], np.cumsum(values)))
    return np.diff(running[places])


def codes_of(positions: Integers, edges: Integers, steps: int) -> NDArray[np.uint16]:
    """The number of each record's interval."""
    inner = edges[1:-1]
    if steps > _LARGEST_TABLE or steps > 4 * positions.size:
        return np.searchsorted(inner, positions, side="right").astype(np.uint16)
    table = np.searchsorted(inner, np.arange(steps + 1), side="right").astype(np.uint16)
    return table[positions]


def _without_empty(counts: list[Floats], edges: Integers) -> list[Floats]:
    """An interval without positions is empty: its sibling has everything of the parent."""
    cuts = len(counts) - 1
    found = counts[:1]
    for level in range(1, cuts + 1):
        empty = np.diff(edges[:: 1 << (cuts - level)]) == 0
        before, parent = counts[level].reshape(-1, 2), found[-1]
        above = before.sum(axis=1)
        share = np.divide(before[:, 0], above, out=np.full(above.size, 0.5), where=above > 0)
        share = np.where(empty[1::2], 1.0, np.where(empty[::2], 0.0, share))
        found.append(np.column_stack((share * parent, (1 - share) * parent)).ravel())
    return found


def steadied(offsets: Floats, spreads: Floats, edges: Integers) -> Floats:
    """Offsets of the means from the centres, weighted against their prior if their noise is large.

    For inner intervals, the mean is near the centre. The first and the last interval extend to the ends of the
    domain and are mostly empty: their mean is likely as far from the nearest cut as the neighbouring interval is wide.
    """
    widths = np.maximum(np.diff(edges) - 1, 0).astype(np.float64)
    likely, doubt = np.zeros(widths.size), _CENTRED * widths
    filled = np.flatnonzero(np.diff(edges) > 0)
    if filled.size == 1:
        return offsets
    for outer, neighbour, side in ((filled[0], filled[1], 1), (filled[-1], filled[-2], -1)):
        reach = min(widths[outer] / 2, widths[neighbour] + 1)
        likely[outer] = side * (widths[outer] / 2 - reach)
        doubt[outer] = min(doubt[outer], reach)
    prior, noise = doubt**2, spreads**2
    trust = np.divide(prior, prior + noise, out=np.zeros_like(prior), where=prior > 0)
    steadied: Floats = trust * offsets + (1 - trust) * likely
    return steadied


def _deviations(
    ordered: Integers,
    of_each: Integers | None,
    places: NDArray[np.intp],
    lows: Integers,
    highs: Integers,
    means: Floats,
    weights: Floats,
    layout: Layout,
    purse: Purse,
) -> Floats:
    """Noisy standard deviations from sums of squares around the centres, in 2^20 parts of the largest square."""
    half = np.maximum((highs - lows) / 2, 0.5)
    centres = (lows + highs) / 2
    codes = np.repeat(np.arange(lows.size), np.diff(places))
    parts = np.rint(((ordered - centres[codes]) / half[codes]) ** 2 * _SQUARE_PARTS).astype(np.int64)
    # centred: a term is at most half the range in size, for any rounding
    bound = _SQUARE_PARTS // 2
    parts = np.clip(parts, 0, _SQUARE_PARTS) - bound
    if of_each is not None:
        parts = parts * of_each
    spend = purse.spend(purse.purposes.squares, layout.squares, over="intervals")
    what = purse.sums("squares", parts=_SQUARE_PARTS)
    sums = noisy(_sums(parts, places), layout.moved * bound, spend, what)
    squares = (sums / weights + bound) / _SQUARE_PARTS * half**2
    deviations: Floats = np.sqrt(np.clip(squares - (means - centres) ** 2, 0, half**2))
    return deviations


def halved(counts: Floats, cuts: int, first: Sequence[int]) -> Integers:
    """Edges of intervals of the values; every level cuts every interval where its counts are closest to halves.

    An interval of one value stays whole: its second half is empty. `first` are the edges before the first level.

    >>> halved(np.array([8.0, 1.0, 1.0]), 2, [0, 3]).tolist()
    [0, 1, 1, 2, 3]
    """
    running = np.concatenate(([0.0], np.cumsum(counts)))
    edges = np.array(first, dtype=np.int64)
    for _ in range(cuts):
        refined = np.empty(2 * edges.size - 1, dtype=np.int64)
        refined[::2] = edges
        for place, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            inner = running[low + 1 : high]
            middle = (running[low] + running[high]) / 2
            refined[2 * place + 1] = low + 1 + int(np.argmin(np.abs(inner - middle))) if inner.size else high
        edges = refined
    return edges
