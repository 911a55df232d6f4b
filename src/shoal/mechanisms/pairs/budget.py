"""The plan of pairs-dp: which quantities are measured, and the share of the privacy budget each one gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from shoal.noise import (
    block_noise,
    choice_rate,
    discrete_gaussian,
    discrete_laplace,
    elliptope_noise,
    round_up_scale,
)
from shoal.numbers import Floats, Integers
from shoal.privacy import Measurement, RecordSum, Spend

# Shares are rounded down to this precision, and the first takes the rest, so that they add up to the budget.
_PARTS = 1 << 40
# With fewer signs than these, independent blocks are as good as noise shaped to products of signs.
FEWEST_SIGNS = 6


@dataclass(frozen=True, slots=True)
class MeasurementShape:
    """The shape of one measurement.

    Attributes:
        cells: a record is in at most one of them.
        blocks: in its cell, a record changes at most one sum of every block.
        size: number of sums of a block.
        unit: maximum change of a sum by one record.
        signs: instead of blocks, the matrix of products of this many signs.
        sizes: numbers of sums of the blocks, where they differ; `size` is then the largest.
    """

    cells: int
    blocks: int
    size: int
    unit: int = 1
    signs: int = 0
    sizes: tuple[int, ...] = ()

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The number of sums of each block."""
        return self.sizes or (self.size,) * self.blocks


@dataclass(frozen=True, slots=True)
class PureEpsilon:
    """Measurements charged in ε of pure differential privacy.

    Attributes:
        factor: 1 under add-remove, 2 under replace-one, where a replaced record is one record removed and one added.
    """

    factor: int

    # growth of the noise with the depth of a contrast, and its decline with the number of cells of a table of names
    growth, decline = 1.1, 1 / 2
    # share of single attributes, the same where none has cut points, and how cut points split theirs among levels
    oneway, oneway_counted = Fraction(1, 2), Fraction(1, 3)
    cut_growth = Fraction(6, 5)
    count_growth = Fraction(7, 5)
    # minimum ratio of a node to its noise for a contrast to be measured; noise above which pairs are hopeless
    worth = 6.0
    hopeless = 0.12
    rows = Fraction(1, 20)

    def largest(self, number: int) -> float:
        """What the largest of so many noises exceeds once in a hundred times, in standard deviations."""
        return math.log(50 * number) / math.sqrt(2)

    def sign_shape(self, signs: int) -> MeasurementShape:
        """The shape in which all products of this many signs are measured."""
        if signs >= FEWEST_SIGNS:
            return MeasurementShape(1, 1, 1, signs=signs)
        return MeasurementShape(1, signs * (signs - 1) // 2, 1)

    def deviation(self, shape: MeasurementShape, share: Fraction) -> float:
        """Standard deviation of the noise on one sum; the root mean square over blocks of different sizes."""
        return self.factor * shape.unit * _pure_factor(shape) / float(share)

    def deviations(self, shape: MeasurementShape, share: Fraction) -> tuple[float, ...]:
        """Standard deviation of the noise on one sum of each block."""
        factors = _block_factors(shape.block_sizes)
        return tuple(self.factor * shape.unit * factor / float(share) for factor in factors)

    def needed(self, shape: MeasurementShape, deviation: float) -> float:
        """The share that reduces the noise to a standard deviation."""
        return self.factor * shape.unit * _pure_factor(shape) / deviation

    def rate(self, share: Fraction) -> Fraction:
        """Rate of an exponential mechanism whose penalties change by at most one with one added record."""
        return share / (2 * self.factor)

    def needed_for(self, rate: float) -> float:
        """The share of a choice at this rate."""
        return 2 * self.factor * rate

    def measure(self, exact: Integers, shape: MeasurementShape, spend: Spend, what: RecordSum) -> Floats:
        """Exact sums of this shape plus noise calibrated to the spend; the result is recorded as `what`.

        Guarantee:
            The noise has density proportional to exp(-e · Σ over cells of the largest L1 norm of a block),
            or that of differences of sign products: one added record changes the sums by a vector of norm at most
            `unit`, which costs e · unit = share / factor.

        Reference:
            docs/proofs/trees.md#pairs, sections 2 and 3.
        """
        share, source = spend.take()
        epsilon = share / self.factor
        law: dict[str, Any]
        if shape.signs:
            noise = elliptope_noise(shape.signs, epsilon, source)
            law = {"name": "elliptope", "signs": shape.signs, "epsilon": epsilon}
        elif shape.blocks == 1:
            scale = round_up_scale(shape.unit / epsilon)
            noise = discrete_laplace(scale, exact.size, source)
            law = {"name": "discrete-laplace", "scale": scale}
        else:
            steps = [shape.unit] * shape.blocks
            sizes = list(shape.block_sizes)
            noise = block_noise(sizes, epsilon, source, steps=steps, draws=shape.cells)
            law = {
                "name": "blocks",
                "cells": shape.cells,
                "sizes": sizes,
                "unit": shape.unit,
                "epsilon": epsilon,
            }
        return _recorded(
            exact + noise.reshape(exact.shape), shape, spend, what, self.deviation(shape, share), law
        )


@dataclass(frozen=True, slots=True)
class Concentrated:
    """Measurements charged in ρ of zero-concentrated differential privacy, for a claim with a δ.

    Attributes:
        factor: as above; a change twice as large costs four times the ρ.
    """

    factor: int

    growth, decline = 0.375, 1 / 3
    oneway, oneway_counted = Fraction(2, 5), Fraction(3, 10)
    cut_growth = Fraction(6, 5) ** 2
    count_growth = Fraction(7, 5) ** 2
    worth = 8.0
    hopeless = 0.2
    rows = Fraction(1, 100)

    def largest(self, number: int) -> float:
        """What the largest of so many noises exceeds at most once in a hundred times, in standard deviations."""
        return math.sqrt(2 * math.log(50 * number))

    def sign_shape(self, signs: int) -> MeasurementShape:
        """The shape in which all products of this many signs are measured."""
        return MeasurementShape(1, signs * (signs - 1) // 2, 1)

    def deviation(self, shape: MeasurementShape, share: Fraction) -> float:
        """Standard deviation of the noise on one sum."""
        return self.factor * shape.unit * math.sqrt(shape.blocks / (2 * float(share)))

    def deviations(self, shape: MeasurementShape, share: Fraction) -> tuple[float, ...]:
        """The same for each block."""
        return (self.deviation(shape, share),) * shape.blocks

    def needed(self, shape: MeasurementShape, deviation: float) -> float:
        """The share that reduces the noise to a standard deviation."""
        return (self.factor * shape.unit / deviation) ** 2 * shape.blocks / 2

    def rate(self, share: Fraction) -> Fraction:
        """Rate of an exponential mechanism whose penalties change by at most one with one added record."""
        return choice_rate(share, self.factor)

    def needed_for(self, rate: float) -> float:
        """The share of a choice at this rate."""
        return (rate * self.factor) ** 2 / 2

    def measure(self, exact: Integers, shape: MeasurementShape, spend: Spend, what: RecordSum) -> Floats:
        """Exact sums of this shape plus discrete Gaussian noise calibrated to the spend; recorded as `what`.

        Guarantee:
            One added record changes one sum of each block by at most `unit`, so the sum of (change/σ)² is at most
            blocks · unit² / σ² = 2 · share / factor².

        Reference:
            docs/proofs/trees.md#pairs, section 6.
        """
        share, source = spend.take()
        variance = (self.factor * shape.unit) ** 2 * shape.blocks / (2 * share)
        noise = discrete_gaussian(variance, exact.size, source)
        law = {"name": "discrete-gaussian", "variance": variance}
        return _recorded(
            exact + noise.reshape(exact.shape), shape, spend, what, self.deviation(shape, share), law
        )


Currency = PureEpsilon | Concentrated


def _recorded(
    noisy: Integers,
    shape: MeasurementShape,
    spend: Spend,
    what: RecordSum,
    deviation: float,
    law: Mapping[str, Any],
) -> Floats:
    """The noisy sums, recorded; of a symmetric matrix of products those below the diagonal, row by row."""
    sums = noisy[np.tril_indices(shape.signs, -1)] if shape.signs else noisy
    spend.record(Measurement.of(what, sums, deviation, **law))
    return noisy.astype(np.float64)


def _pure_factor(shape: MeasurementShape) -> float:
    """Standard deviation of the noise at ε = 1."""
    if shape.signs:
        pairs = shape.signs * (shape.signs - 1) // 2
        return math.sqrt(2 * (pairs + 1) * (pairs + 2) / (shape.signs + 1))
    factors = _block_factors(shape.block_sizes)
    return math.sqrt(math.fsum(factor**2 for factor in factors) / len(factors))


@cache
def _block_factors(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Standard deviations of the noise on a sum of each block at ε = 1."""
    spread = 2 * (sum(sizes) + 1) * (sum(sizes) + 2)
    return tuple(math.sqrt(spread / ((size + 1) * (size + 2))) for size in sizes)


def allot(
    currency: Currency, shapes: Sequence[MeasurementShape], aims: Sequence[float], total: Fraction
) -> tuple[Fraction, ...]:
    """Shares of a total with which the noise of all shapes is proportional to their targets.

    >>> shape = MeasurementShape(1, 1, 4)
    >>> [float(share) for share in allot(PureEpsilon(1), [shape, shape], [1, 3], Fraction(1))]
    [0.75, 0.25]
    """
    needs = [currency.needed(shape, aim) for shape, aim in zip(shapes, aims, strict=True)]
    together = math.fsum(needs)
    shares = [total * Fraction(math.floor(need / together * _PARTS), _PARTS) for need in needs[1:]]
    return (total - sum(shares, Fraction(0)), *shares)


# Purposes of the reservations; with a noisy number of rows the three parts are fixed once it is drawn.
OF_ROWS = "number of rows"
OF_ONE, OF_TWO, OF_THREE = "single attributes", "pairs of attributes", "triples of attributes"
OF_ALL = "single attributes and pairs, as finely as the number of rows allows"
# Levels of an attribute's tree, and number of them used by pairs of attributes: 16 bins.
MOST_LEVELS, PAIR_LEVELS = 10, 4
# Levels of parts of these bins, which names tell apart; worthwhile where a name is so many times its noise.
INSIDE_LEVELS = 2
_INSIDE_WORTH = 4.0
# Pairs of names are measured together if none has more noise than this many times that by itself.
_TOGETHER = 2.0
# A cut is worth drawing if the median's rank is known to about a sixth of a node.
_CUT_WORTH = 6.0
# Up to this many levels thresholds are found by joint bisection of all attributes, and pairs use one of them.
_SHALLOW = 3
_CUTS, _COUNTS, _SUMS = Fraction(35, 100), Fraction(50, 100), Fraction(15, 100)
# Frequent values in intervals of trees get at most this part of an attribute's share, in steps: as much as finds values
# that this part of the rows have, with this noise on their share.
_MOST_FREQUENT, _FREQUENT_STEPS, _FOUND_FREQUENT, _FREQUENT_NOISE = Fraction(1, 10), 16, 0.05, 0.003
# Parts of the share with which declared spikes are counted: the first with little noise. Under bisection all values of
# a short domain are counted with the last, where a value that this part of the rows have is found among them.
_HEAPS, _FOUND_HEAP = (Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)), 0.1
# The least share of the rows that makes a value frequent.
FREQUENT = 0.01
_MOST_COUNTED, _LITTLE_NOISE = 128, 0.25
# Rounds of joint bisection: as many as keep their answers above this much noise, as a share of the rows.
_FEWEST_ROUNDS, _MOST_ROUNDS, _MUCH_NOISE = 4, 10, 0.3
# Pairs of names are omitted above this noise, as a share of the rows.
_NAMES_NOISE = 0.1
# Sums inside intervals are measured in this many parts of half their width.
SUM_PARTS = 1 << 10
# Number of groups of values that pairs distinguish for a nominal attribute, and for all of them together, as far as
# that leaves each of them the third.
_MOST_GROUPS, _ALL_GROUPS, _FAIR_GROUPS = 250, 600, 32
# Tables with names are measured the better the more sums they have, from the first number to the second: the error of
# all tables, Σ c·σ for c sums with noise σ, is least for noise proportional to c^-1/2 in ε and c^-1/3 in ρ. Where most
# sums are noise, further precision would be wasted.
_FEW_SUMS, _MANY_SUMS = 10, 160
# Share of the pair budget for a prediction target, and share of everything if its pairs are the only ones.
_TARGET, _TARGET_ONLY = Fraction(1, 5), Fraction(2, 5)
NO_FLAGS: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AttributeFacts:
    """The public facts about an attribute: number of values, and whether they are ordered.

    Attributes:
        flag_of: the attribute for which this one is the missing-value flag.
        spikes: positions that many records are declared to share.
    """

    name: str
    points: int
    ordered: bool
    flag_of: int | None = None
    spikes: tuple[int, ...] = ()

    @property
    def two_valued(self) -> bool:
        return self.points == 2

    @property
    def many_names(self) -> bool:
        return not self.ordered and self.points > 2


@dataclass(frozen=True, slots=True)
class OneWay:
    """The measurement plan of single attributes; attributes by index.

    Attributes:
        signs, counted, cut: two-valued attributes; those whose values are counted; those with private cuts.
        each: share of one counted attribute.
        sign_share: share of all two-valued attributes together.
        rounds: shares of the rounds of joint bisection; empty if trees are cut.
        cuts: shares of the levels of cut points, for each attribute.
        counts: shares of the levels of contrasts, for all cut attributes together.
        sums: share of the sums inside intervals, for all cut attributes together.
        choices: share of the choices of frequent values, for each cut attribute; 0 if none are looked for.
        frequent: share of the counts of frequent values, for all cut attributes together. Attributes whose intervals
            all turn out too small for frequent values leave both to the sums.
        heaps: cut attributes of which single values are counted besides, each with its share: declared spikes, or, if
            thresholds are found by bisection, all values of a short domain.
    """

    signs: tuple[int, ...]
    counted: tuple[int, ...]
    cut: tuple[int, ...]
    each: Fraction
    sign_share: Fraction
    rounds: tuple[Fraction, ...]
    cuts: tuple[Fraction, ...]
    counts: tuple[Fraction, ...]
    sums: Fraction
    choices: Fraction = Fraction(0)
    frequent: Fraction = Fraction(0)
    heaps: tuple[tuple[int, Fraction], ...] = ()

    def least_frequent(self, currency: Currency, rows: float) -> float:
        """The least share of a value that the noise of the counts of frequent values cannot simulate."""
        intervals = len(self.cut) << self.levels
        noise = currency.deviation(MeasurementShape(1, len(self.cut), 1 << self.levels), self.frequent)
        return max(FREQUENT, currency.largest(intervals) * noise / rows)

    @property
    def levels(self) -> int:
        """Levels of the trees of attributes with cut points; 1 after bisection, which finds one cut for pairs."""
        return len(self.cuts) or 1

    def cost(self, *numbers: int) -> Fraction:
        """The cost of a change in these attributes alone, with the full cost of measurements shared with others."""
        found = Fraction(0)
        if any(number in self.signs for number in numbers):
            found += self.sign_share
        if any(number in self.counted for number in numbers):
            found += self.each
        if any(number in self.cut for number in numbers):
            shares = (*self.rounds, *self.cuts, *self.counts, self.sums, self.choices, self.frequent)
            found += sum(shares, Fraction(0))
        return found + sum((share for number, share in self.heaps if number in numbers), Fraction(0))


@dataclass(frozen=True, slots=True)
class ContrastGroup:
    """Contrasts measured together: a pivot attribute's nodes (or values) are the cells, its partners the blocks.

    Attributes:
        pivot, level: the attribute and its level; level -1 if its values are names.
        partners, depth: the other attributes, and the level of their functions; -1 for names.
        deviation: standard deviation of the noise on a contrast; the root mean square over partners.
        deviations: the same for each partner.
    """

    pivot: int
    level: int
    partners: tuple[int, ...]
    depth: int
    shape: MeasurementShape
    share: Fraction = Fraction(0)
    deviation: float = 0.0
    deviations: tuple[float, ...] = ()

    @property
    def fineness(self) -> int:
        return max(self.level, 0) + max(self.depth, 0)

    @property
    def weight(self) -> float:
        """The number of sums of a table with names, relative to few, within limits; 1 for others."""
        sums = self.shape.cells * sum(self.shape.block_sizes) / self.shape.blocks
        return min(max(sums, _FEW_SUMS), _MANY_SUMS) / _FEW_SUMS if self.level < 0 else 1.0


@dataclass(frozen=True, slots=True)
class PairMeasurements:
    """The measurement plan of pairs.

    Attributes:
        signs: attributes whose first functions are multiplied with each other, all at once.
        sign_share: its cost; 0 if nothing is measured.
        groups: all other contrasts.
    """

    signs: tuple[int, ...] = ()
    sign_share: Fraction = Fraction(0)
    sign_deviation: float = 0.0
    groups: tuple[ContrastGroup, ...] = ()

    @property
    def measured(self) -> bool:
        return self.sign_share > 0 or bool(self.groups)


@dataclass(frozen=True, slots=True)
class Halves:
    """Budget shares of single attributes and of pairs.

    Attributes:
        only_target: only pairs with the prediction target are measured.
    """

    oneway: Fraction
    pairs: Fraction
    only_target: bool = False


def halves(
    currency: Currency,
    attributes: Sequence[AttributeFacts],
    budget: Fraction,
    rows: float,
    target: int | None,
) -> Halves:
    """Split the budget; single attributes get everything if pairs would be mere noise.

    That is the case if the noise on products of signs would drown the correlations of d attributes. Pairs with a
    prediction target are few, and are measured regardless.
    """
    telling = [facts for facts in attributes if facts.points > 1]
    signs = [facts for facts in telling if not facts.many_names]
    # an attribute and its own missing-value flag are not a pair
    owners = {
        number if facts.flag_of is None else facts.flag_of
        for number, facts in enumerate(attributes)
        if facts.points > 1
    }
    if len(owners) < 2:
        return Halves(budget, Fraction(0))
    counted = not lay_out_oneway(currency, attributes, budget * currency.oneway_counted, rows).cut
    pairs = budget * (1 - (currency.oneway_counted if counted else currency.oneway))
    if len(signs) > 1:
        noise = currency.deviation(currency.sign_shape(len(signs)), pairs)
        if math.pi / 2 * noise / rows > currency.hopeless * math.sqrt(len(signs)):
            part = Fraction(0) if target is None else budget * _TARGET_ONLY
            return Halves(budget - part, part, target is not None)
    return Halves(budget - pairs, pairs)


def lay_out_oneway(
    currency: Currency, attributes: Sequence[AttributeFacts], budget: Fraction, rows: float
) -> OneWay:
    """Split the budget of single attributes equally, and decide how each of them is measured."""
    telling = [number for number, facts in enumerate(attributes) if facts.points > 1]
    each = budget / max(len(telling), 1)
    levels = _depth(currency, each, rows)
    signs = tuple(number for number in telling if attributes[number].two_valued)
    noise = currency.deviation(MeasurementShape(1, 1, 3), each)
    counted, cut = [], []
    for number in telling:
        facts = attributes[number]
        if facts.two_valued:
            continue
        few = facts.points <= _MOST_COUNTED and facts.points * noise / rows <= _LITTLE_NOISE
        if not facts.ordered or facts.points <= 1 << levels or few:
            counted.append(number)
        else:
            cut.append(number)
    whole = each
    heaps = _heaps(currency, attributes, cut, each, rows, bisected=levels <= _SHALLOW)
    # what heaps cost is missing for all attributes alike, which are measured together
    together = each * len(cut) - sum((share for _, share in heaps), Fraction(0))
    each = together / max(len(cut), 1)
    choices = frequent = Fraction(0)
    rounds: tuple[Fraction, ...] = ()
    cuts: tuple[Fraction, ...] = ()
    counts: tuple[Fraction, ...] = ()
    sums = Fraction(0)
    if cut and levels <= _SHALLOW:
        shape = MeasurementShape(1, len(cut), 1)
        number = max(
            n
            for n in range(_FEWEST_ROUNDS, _MOST_ROUNDS + 1)
            if n == _FEWEST_ROUNDS or currency.deviation(shape, together / n) <= _MUCH_NOISE * rows
        )
        rounds = (together / number,) * number
    elif cut:
        points = max(attributes[number].points for number in cut)
        choices = _frequent_share(currency, each, len(cut), points, rows) / 2
        each, frequent = each - 2 * choices, choices * len(cut)
        together = each * len(cut)
        cuts = _levels(each * _CUTS, levels, currency.cut_growth)
        counts = _levels(together * _COUNTS, levels, currency.count_growth)
        sums = together * _SUMS
    sign_share = whole * len(signs)
    return OneWay(
        signs,
        tuple(counted),
        tuple(cut),
        whole,
        sign_share,
        rounds,
        cuts,
        counts,
        sums,
        choices,
        frequent,
        heaps,
    )


def _heaps(
    currency: Currency,
    attributes: Sequence[AttributeFacts],
    cut: Sequence[int],
    each: Fraction,
    rows: float,
    *,
    bisected: bool,
) -> tuple[tuple[int, Fraction], ...]:
    """The attributes of which single values are counted besides thresholds or trees, and what that costs."""
    found = []
    for number in cut:
        facts = attributes[number]
        if facts.spikes:
            shape = MeasurementShape(1, 1, len(facts.spikes))
            precise = [
                part for part in _HEAPS if currency.deviation(shape, each * part) <= _FREQUENT_NOISE * rows
            ]
            found.append((number, each * (precise or _HEAPS[-1:])[0]))
        elif bisected and facts.points <= _MOST_COUNTED:
            share = each * _HEAPS[-1]
            noise = currency.deviation(MeasurementShape(1, 1, facts.points), share)
            if currency.largest(facts.points) * noise <= _FOUND_HEAP * rows:
                found.append((number, share))
    return tuple(found)


def _frequent_share(
    currency: Currency, each: Fraction, attributes: int, points: int, rows: float
) -> Fraction:
    """What an attribute with cut points spends on frequent values: what finds a twentieth of the rows, within limits.

    A choice among all points prefers such a value by e³, and its share has little noise.
    """
    most = each * _MOST_FREQUENT
    for part in range(1, _FREQUENT_STEPS + 1):
        share = most * Fraction(part, _FREQUENT_STEPS)
        preferred = 2 * float(currency.rate(share / 2)) * rows * _FOUND_FREQUENT
        noise = currency.deviation(MeasurementShape(1, attributes, 8), share / 2 * attributes)
        if preferred >= math.log(points) + 3 and noise <= _FREQUENT_NOISE * rows:
            return share
    return most


def most_groups(attributes: Sequence[AttributeFacts]) -> dict[int, int]:
    """Maximum number of groups of every nominal attribute: what those of few values leave is shared by the others.

    >>> facts = [AttributeFacts("a", 4, False), AttributeFacts("b", 900, False), AttributeFacts("x", 900, True)]
    >>> most_groups(facts), most_groups([facts[1]] * 4)
    ({0: 4, 1: 250}, {0: 150, 1: 150, 2: 150, 3: 150})
    """
    found: dict[int, int] = {}
    left = _ALL_GROUPS
    names = sorted((facts.points, number) for number, facts in enumerate(attributes) if facts.many_names)
    for place, (points, number) in enumerate(names):
        fair = max(left // (len(names) - place), _FAIR_GROUPS)
        found[number] = min(points, fair, _MOST_GROUPS)
        left -= found[number]
    return found


def _depth(currency: Currency, each: Fraction, rows: float) -> int:
    """The maximum number of levels of cut points for which the median of every node is found accurately enough."""
    found = 0
    for levels in range(1, MOST_LEVELS + 1):
        shares = _levels(each * _CUTS, levels, currency.cut_growth)
        worth = [float(currency.rate(share)) * rows / 2**level for level, share in enumerate(shares)]
        if min(worth) >= _CUT_WORTH:
            found = levels
    return found


def lay_out_pairs(
    currency: Currency,
    levels: Sequence[int],
    groups: Sequence[int],
    budget: Fraction,
    rows: float,
    target: int | None = None,
    *,
    only_target: bool = False,
    flags: Mapping[int, int] = NO_FLAGS,
) -> PairMeasurements:
    """Decide which contrasts of pairs are measured, and their shares.

    Args:
        levels: number of halvings of each attribute available to pairs; 0 for names and attributes of one value.
        groups: number of values (or groups of them) of nominal attributes; 0 for all others.
        target: an attribute whose pairs are measured once more, or exclusively.
        flags: missing-value flags; a flag and its attribute are a pair for products of signs only.

    Deeper contrasts belong to smaller nodes and may be noisier. The depth is the largest for which nodes are still
    `worth` times the noise; attributes of many names take part if their noise is small enough.
    """
    if not budget:
        return PairMeasurements()
    signs = tuple(number for number, own in enumerate(levels) if own)
    names = tuple(number for number, own in enumerate(groups) if own)
    if len(signs) + len(names) < 2:
        return PairMeasurements()
    if target is not None and (levels[target] or groups[target]):
        part = budget if only_target else budget * _TARGET
        again = _target_groups(currency, signs, names, levels, groups, target, part, rows, flags)
        if only_target:
            return PairMeasurements(groups=again)
        if again:
            found = lay_out_pairs(currency, levels, groups, budget - part, rows, flags=flags)
            return replace(found, groups=(*found.groups, *again))
    for parts in range(INSIDE_LEVELS, -1, -1) if names else (0,):
        found = _finest(currency, signs, names, levels, groups, budget, rows, flags, parts)
        fine = [group for group in found.groups if group.depth >= PAIR_LEVELS]
        if all(rows >= _INSIDE_WORTH * group.deviation * groups[group.pivot] for group in fine):
            break
    return found


def _finest(
    currency: Currency,
    signs: Sequence[int],
    names: Sequence[int],
    levels: Sequence[int],
    groups: Sequence[int],
    budget: Fraction,
    rows: float,
    flags: Mapping[int, int],
    parts: int,
) -> PairMeasurements:
    """The deepest contrasts that are worthwhile, with so many levels of parts of bins for names."""
    for with_names in (True, False) if names else (False,):
        for finest in range(2 * (PAIR_LEVELS - 1), -1, -1):
            wanted = _groups(signs, names if with_names else (), levels, groups, finest, flags, parts)
            found = _allotted(currency, signs, wanted, budget)
            if finest and not any(group.fineness == finest for group in wanted):
                continue
            deepest = max((g.deviation for g in found.groups if g.fineness == finest), default=0.0)
            if finest and rows / 2**finest < currency.worth * deepest:
                continue
            if with_names and max(g.deviation for g in found.groups if g.level < 0) > _NAMES_NOISE * rows:
                continue
            return found
    return PairMeasurements()


def _target_groups(
    currency: Currency,
    signs: Sequence[int],
    names: Sequence[int],
    levels: Sequence[int],
    groups: Sequence[int],
    target: int,
    budget: Fraction,
    rows: float,
    flags: Mapping[int, int],
) -> tuple[ContrastGroup, ...]:
    """Contrasts of one attribute's first halves (or of its names) with all others, as deep as is worthwhile."""
    level, cells = (0, 1) if levels[target] else (-1, groups[target])
    found: tuple[ContrastGroup, ...] = ()
    for finest in range(PAIR_LEVELS):
        wanted = []
        for depth in range(finest + 1):
            partners = tuple(b for b in signs if b not in (target, flags.get(target)) and levels[b] > depth)
            if partners:
                wanted.append(_group(target, level, partners, depth, cells, 1 << depth))
        wanted += [
            _group(other, -1, (target,), level, groups[other], max(cells, 1))
            for other in names
            if other != target
        ]
        made = _allotted(currency, (), wanted, budget).groups
        deepest = max((g.deviation for g in made if g.fineness == finest), default=0.0)
        if finest and (rows / 2**finest < currency.worth * deepest or not deepest):
            break
        found = made
    return found


def _allotted(
    currency: Currency, signs: Sequence[int], wanted: Sequence[ContrastGroup], budget: Fraction
) -> PairMeasurements:
    shapes = [group.shape for group in wanted]
    aims = [2 ** (currency.growth * group.fineness) / group.weight**currency.decline for group in wanted]
    if len(signs) > 1:
        shapes, aims = [currency.sign_shape(len(signs)), *shapes], [1.0, *aims]
    if not shapes:
        return PairMeasurements()
    shares = allot(currency, shapes, aims, budget)
    skip = int(len(signs) > 1)
    groups = tuple(
        replace(
            group,
            share=share,
            deviation=currency.deviation(group.shape, share),
            deviations=currency.deviations(group.shape, share),
        )
        for group, share in zip(wanted, shares[skip:], strict=True)
    )
    if not skip:
        return PairMeasurements(groups=groups)
    return PairMeasurements(tuple(signs), shares[0], currency.deviation(shapes[0], shares[0]), groups)


def _groups(
    signs: Sequence[int],
    names: Sequence[int],
    levels: Sequence[int],
    groups: Sequence[int],
    finest: int,
    flags: Mapping[int, int],
    parts: int,
) -> list[ContrastGroup]:
    """All contrasts up to a fineness. The deeper attribute of a pair is the pivot: its nodes are disjoint cells."""
    found: list[ContrastGroup] = []
    for level in range(1, min(PAIR_LEVELS, finest + 1)):
        for depth in range(min(level, finest - level + 1)):
            for pivot in signs:
                partners = tuple(b for b in signs if b not in (pivot, flags.get(pivot)) and levels[b] > depth)
                if levels[pivot] > level and partners:
                    found.append(_group(pivot, level, partners, depth, 1 << level, 1 << depth))
        deep = [a for a in signs if levels[a] > level]
        if 2 * level <= finest and len(deep) > 1:
            # equally deep ones in a ring, so that every pivot has about as many partners
            for place, pivot in enumerate(deep):
                partners = _half_ring(deep, place)
                if partners:
                    found.append(_group(pivot, level, partners, level, 1 << level, 1 << level))
    for pivot in names:
        # more levels than for others: parts of bins
        for depth in range(min(PAIR_LEVELS + parts, finest + 1)):
            partners = tuple(b for b in signs if levels[b] > depth)
            if partners:
                found.append(_group(pivot, -1, partners, depth, groups[pivot], 1 << depth))
    # the more names, the more cells and the smaller the blocks
    ordered = sorted(names, key=lambda number: -groups[number])
    for place, pivot in enumerate(ordered[:-1]):
        for partners in _together(ordered[place + 1 :], groups):
            sizes = tuple(groups[b] for b in partners)
            shape = MeasurementShape(groups[pivot], len(partners), max(sizes), sizes=sizes)
            found.append(ContrastGroup(pivot, -1, partners, -1, shape))
    return found


def _together(partners: Sequence[int], groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Partners measured at once: as many in a row as leave none with too much noise, for the same share.

    The largest tables gain, which have most of the error; the smallest have more noise than by themselves.

    >>> _together([0, 1, 2, 3], [20, 20, 9, 2])
    [(0, 1, 2), (3,)]
    """
    found = [tuple(partners[:1])]
    for b in partners[1:]:
        longer = (*found[-1], b)
        most = max(_block_factors(tuple(groups[own] for own in longer)))
        if most <= _TOGETHER * math.sqrt(2) * len(longer):
            found[-1] = longer
        else:
            found.append((b,))
    return found


def _half_ring(deep: Sequence[int], place: int) -> tuple[int, ...]:
    """Half of the others, such that every pair belongs to exactly one of its two members.

    >>> [_half_ring([0, 1, 2, 3], place) for place in range(4)]
    [(1, 2), (2, 3), (3,), (0,)]
    """
    size = len(deep)
    steps = range(1, size // 2 + 1)
    return tuple(deep[(place + step) % size] for step in steps if 2 * step < size or place < size // 2)


def _group(
    pivot: int, level: int, partners: tuple[int, ...], depth: int, cells: int, size: int
) -> ContrastGroup:
    return ContrastGroup(pivot, level, partners, depth, MeasurementShape(cells, len(partners), size))


def _levels(share: Fraction, levels: int, growth: Fraction) -> tuple[Fraction, ...]:
    return tuple(share * weight for weight in _weights(levels, growth))


@cache
def _weights(levels: int, growth: Fraction) -> tuple[Fraction, ...]:
    """Fractions of 1 that grow from level to level."""
    weights = [growth**level for level in range(levels)]
    return tuple(weight / sum(weights) for weight in weights)
