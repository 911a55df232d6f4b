"""Answers by rank: quantiles and means of rank groups. In: public facts and options. Out: offers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import Lattice, day_text, is_day
from shoal.columns.schema import Attribute
from shoal.decimals import decimal_text
from shoal.errors import OptionError
from shoal.noise import exponential_choice
from shoal.privacy import Accountant
from shoal.query.answers import error_of
from shoal.query.blur import CONFIDENCE, Blur
from shoal.query.facts import MISSING, Facts, QueryTable
from shoal.query.linear import numeric_lattice
from shoal.query.offer import Offer
from shoal.query.order import Order
from shoal.query.refinement import fraction_of
from shoal.query.where import Where, matching
from shoal.text import Message

# penalties are whole numbers of parts of a record, and a table of weights has an entry for each
_FINEST_SHARE = 100


def quantile(
    facts: Facts, *, column: str, q: Fraction, epsilon: Fraction, where: Where | None = None
) -> Offer:
    """A value of the public domain that has about the share q of the records at or below it.

    Guarantee:
        The exponential mechanism over all points of the domain. The penalty of a point is how far q·m lies outside the
        ranks that the point covers, from the records below it to those at or below it, of m in all. A replaced record
        changes it by at most 1, one added or removed by max(q, 1 - q).

    Cost:
        Linear in the number of records, whoever meets the conditions.
    """
    lattice, attribute = facts.lattice(column), facts.attribute(column)
    if not 0 <= q <= 1 or q.denominator > _FINEST_SHARE:
        raise OptionError("q-between-0-1-most-two", option="q", found=decimal_text(q))
    above, whole = q.numerator, q.denominator
    # penalties are counted in parts of 1/whole of a record, so that they are whole numbers
    steps = whole if facts.replace_one else max(above, whole - above)

    def rate(spent: Fraction) -> Fraction:
        return spent / (2 * steps)

    def run(table: QueryTable, account: Accountant) -> Any:
        order, chosen = table.orders[column], matching(where, table)
        lengths, starts, penalties = ranked(order, chosen, lattice.steps, above, whole)
        spent, source = account.spend("quantile", epsilon).take()
        # the bound does not follow from who was chosen, and neither does the work
        number = exponential_choice(lengths, penalties, rate(spent), source, largest=whole * table.n)
        position = int(starts[number]) + fraction_of(int(lengths[number]), source)
        return written(attribute, lattice, position)

    # all points with a penalty above t weigh less than (steps + 1) exp(-rate t) of the best one
    within = math.log((lattice.steps + 1) / (1 - CONFIDENCE)) / float(rate(epsilon) * whole)
    return Offer(
        epsilon,
        {"quantile": epsilon},
        Fraction(steps, whole),
        Message.of("noise-exponential"),
        {"rank_error_95": within},
        run,
        conditions=(Message.of("without-value-left-out", column=column),),
    )


def ranked(
    order: Order, chosen: NDArray[np.bool_], steps: int, above: int, whole: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All points 0 .. steps in runs of equal penalty: how long each run is, where it starts, and its penalty.

    Where there are few points each is a run, otherwise there are two for each row: its own point, which only the last
    of several equal rows has, and the points up to the next. So there are as many runs whatever the rows hold.

    The penalty of a point with b records below it and a at or below it, of m, is the distance of q·m from b .. a in
    parts of 1/whole, where q = above/whole.

    >>> order = Order.of(np.array([2, 2, 5]), 7)
    >>> [part.tolist() for part in ranked(order, np.ones(3, dtype=bool), 6, 1, 2)]
    [[1, 1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5, 6], [3, 3, 0, 1, 1, 1, 3]]
    >>> order = Order.of(np.array([2, 2, 5]))
    >>> [part.tolist() for part in ranked(order, np.ones(3, dtype=bool), 6, 1, 2)]
    [[0, 2, 0, 0, 1, 2, 1, 1], [-1, 0, 2, 3, 2, 3, 5, 6], [3, 3, 1, 1, 0, 1, 1, 3]]
    """
    counted = order.upto(chosen)
    if order.ranks is not None:
        starts = np.arange(steps + 1, dtype=np.int64)
        lengths = np.ones(steps + 1, dtype=np.int64)
        counts = counted[order.ranks]
        below, at = counts[:-1], counts[1:]
    else:
        own = np.concatenate(([-1], order.values))
        gaps = np.diff(np.append(own, steps + 1))
        last = (gaps > 0) & (own >= 0)
        starts = np.column_stack((own, own + 1)).ravel()
        lengths = np.column_stack((last, np.maximum(gaps - 1, 0))).ravel()
        # where the rows of the same position begin
        places = np.arange(own.size)
        new = np.concatenate(([True], own[1:] > own[:-1]))
        first = np.maximum.accumulate(places * new)
        before = counted[np.maximum(first - 1, 0)]
        below = np.column_stack((before, counted)).ravel()
        at = np.column_stack((counted, counted)).ravel()
    target = above * int(counted[-1])
    penalties = np.maximum(np.maximum(whole * below - target, target - whole * at), 0)
    return lengths.astype(np.int64), starts.astype(np.int64), penalties.astype(np.int64)


def ranking_means(facts: Facts, *, column: str, k: int, epsilon: Fraction) -> Offer:
    """The means of k consecutive values in sorted order: single-attribute ranking, then its centroids.

    Guarantee:
        Groups fixed by rank: replacing one record moves all group sums together by at most the width of the domain
        (docs/proofs/sums.md, section 3). Laplace noise of that scale on every sum costs ε for all of them.

    Reference:
        Thesis, section 6.2 (a query of microaggregated data); PSD-2014, Lemma 1.
    """
    lattice = numeric_lattice(facts, column)
    if not facts.replace_one or facts.rows is None:
        raise OptionError("ranking-means-needs-public-number-records")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= facts.rows:
        raise OptionError("k-whole-number-from-1-number", option="k", rows=facts.rows, found=k)
    blur = Blur.laplace(lattice.steps, lattice.step, epsilon=epsilon)
    middle = lattice.steps // 2
    common = math.lcm(lattice.lo.denominator, lattice.hi.denominator, lattice.step.denominator)
    lowest, highest, step = (int(value * common) for value in (lattice.lo, lattice.hi, lattice.step))

    def run(table: QueryTable, account: Accountant) -> list[float]:
        sums, sizes = group_sums(_filled(table.orders[column].values, middle), k)
        drawn = blur.draw(len(sums), account, "sums", "rank groups")
        noisy = [one + other for one, other in zip(sums, drawn, strict=True)]
        # whole numbers divide with correct rounding, and without a common divisor to be found
        return [
            min(max(lowest * size + step * one, lowest * size), highest * size) / (common * size)
            for one, size in zip(noisy, sizes, strict=True)
        ]

    return Offer(
        blur.epsilon,
        blur.reserved("sums"),
        blur.sensitivity * blur.unit,
        Message.of("noise-on-sum-of-each-group", noise=blur.noise),
        {name: value / k for name, value in error_of(blur).items()},
        run,
        conditions=(Message.of("counts-as-middle", column=column),),
    )


def _filled(ordered: NDArray[np.int64], middle: int) -> NDArray[np.int64]:
    """Sorted positions with the missing ones, which come first, moved to the middle of the domain.

    >>> _filled(np.array([-1, -1, 2, 5, 9]), 5).tolist()
    [2, 5, 5, 5, 9]
    """
    missing = int(np.count_nonzero(ordered == MISSING))
    lower = int(np.count_nonzero(ordered < middle)) - missing
    places = np.arange(ordered.size)
    shifted = ordered[np.minimum(places + missing, ordered.size - 1)]
    below, above = places < lower, places >= lower + missing
    filled: NDArray[np.int64] = shifted * below + ordered * above + middle * ~(below | above)
    return filled


def group_sums(ordered: NDArray[np.int64], k: int) -> tuple[list[int], list[int]]:
    """Sums and sizes of k consecutive sorted positions each; the last group takes the remainder.

    >>> group_sums(np.array([1, 2, 3, 4, 5]), 2)
    ([3, 12], [2, 3])
    """
    starts = np.arange(0, ordered.size // k * k, k)
    # in two parts, since a sum of positions may not fit into 64 bits
    high, low = np.add.reduceat(ordered >> 26, starts), np.add.reduceat(ordered & 0x3FFFFFF, starts)
    sums = [(one << 26) + other for one, other in zip(high.tolist(), low.tolist(), strict=True)]
    return sums, np.diff(np.append(starts, ordered.size)).tolist()


def written(attribute: Attribute, lattice: Lattice, position: int) -> Any:
    """The value at a position as the column has it: a number, a date or a label."""
    value = min(lattice.lo + position * lattice.step, lattice.hi)
    if attribute.kind_facts.listed:
        return attribute.ordered[int(value)]
    return day_text(value) if attribute.kind_facts.days and is_day(value) else float(value)
