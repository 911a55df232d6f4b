"""Answers by rank: quantiles and means of rank groups. In: public facts and options. Out: offers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns.dates import day_text, is_day
from shoal.columns.lattice import Lattice
from shoal.columns.schema import Attribute
from shoal.decimals import decimal_text
from shoal.errors import OptionError
from shoal.noise import Source, exponential_choice
from shoal.query.answers import error_of
from shoal.query.blur import CONFIDENCE, Blur
from shoal.query.facts import MISSING, Facts, QueryTable
from shoal.query.linear import numeric_lattice
from shoal.query.offer import Offer
from shoal.query.order import Order
from shoal.query.where import Where, matching

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
        raise OptionError(f"q must be between 0 and 1 with at most two decimals, got {decimal_text(q)}.")
    above, whole = q.numerator, q.denominator
    # penalties are counted in parts of 1/whole of a record, so that they are whole numbers
    steps = whole if facts.replace_one else max(above, whole - above)
    rate = epsilon / (2 * steps)

    def run(table: QueryTable, source: Source) -> Any:
        order, chosen = table.orders[column], matching(where, table)
        lengths, starts, penalties = ranked(order, chosen, lattice.steps, above, whole)
        # the bound does not follow from who was chosen, and neither does the work
        number = exponential_choice(lengths, penalties, rate, source, largest=whole * table.n)
        position = int(starts[number]) + int(source.below(int(lengths[number]), 1)[0])
        return written(attribute, lattice, position)

    # all points with a penalty above t weigh less than (steps + 1) exp(-rate t) of the best one
    within = math.log((lattice.steps + 1) / (1 - CONFIDENCE)) / float(rate * whole)
    return Offer(
        epsilon,
        Fraction(steps, whole),
        "exponential mechanism over the public domain",
        {"rank_error_95": within},
        run,
        conditions=(f"Records without a value of '{column}' are left out.",),
    )


def ranked(
    order: Order, chosen: NDArray[np.bool_], steps: int, above: int, whole: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All points 0 .. steps in runs of equal penalty: how long each run is, where it starts, and its penalty.

    The runs follow from the values of all records, chosen or not, so that there are always as many.

    The penalty of a point with b records below it and a at or below it, of m, is the distance of q·m from b .. a in
    parts of 1/whole, where q = above/whole.

    >>> order = Order.of(np.array([2, 2, 5]))
    >>> [part.tolist() for part in ranked(order, np.ones(3, dtype=bool), 6, 1, 2)]
    [[2, 1, 2, 1, 1], [0, 2, 3, 5, 6], [3, 0, 1, 1, 3]]
    """
    values, counted = order.values, order.upto(chosen)
    upto, before = counted[1:], counted[:-1]
    # every value is a run of one point, between runs of points without records
    starts = np.concatenate(([0], np.column_stack((values, values + 1)).ravel()))
    lengths = np.diff(np.append(starts, steps + 1))
    below = np.concatenate(([0], np.column_stack((before, upto)).ravel()))
    at = np.concatenate(([0], np.column_stack((upto, upto)).ravel()))
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
        raise OptionError("ranking-means needs a public number of records: the data set is under add-remove.")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= facts.rows:
        raise OptionError(f"k must be a whole number from 1 to the number of records, {facts.rows}, got {k}.")
    blur = Blur.laplace(lattice.steps, lattice.step, epsilon=epsilon)
    middle = lattice.steps // 2

    def run(table: QueryTable, source: Source) -> list[float]:
        positions = np.where(table.positions[column] == MISSING, middle, table.positions[column])
        sums, sizes = group_sums(np.sort(positions), k)
        noisy = [one + other for one, other in zip(sums, blur.draw(len(sums), source), strict=True)]
        means = [
            lattice.lo + lattice.step * Fraction(one, size) for one, size in zip(noisy, sizes, strict=True)
        ]
        return [float(min(max(value, lattice.lo), lattice.hi)) for value in means]

    return Offer(
        blur.epsilon,
        blur.sensitivity * blur.unit,
        f"{blur.words} on the sum of each group",
        {name: value / k for name, value in error_of(blur).items()},
        run,
        conditions=(f"A missing value of '{column}' counts as the middle of its domain.",),
    )


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
