"""The layout of a private partition tree, and how its privacy budget is spent."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Described
from shoal.display import internal
from shoal.errors import OptionError
from shoal.mechanisms.tree.method import TreeDP
from shoal.noise import discrete_laplace, round_up_scale
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
