"""Counts, sums, means, histograms. In: public facts and options. Out: offers, which draw noisy answers.

An offer settles price, noise and error before any record is looked at. Its `run` is the only place where records and
noise meet, and spends what the offer reserves. Proofs of all sensitivities: docs/proofs/refinement.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.privacy import Accountant
from shoal.query.blur import Blur
from shoal.query.cells import Cells
from shoal.query.facts import MISSING, Facts, QueryTable
from shoal.query.linear import Linear, centred, counting, numeric_lattice, summing
from shoal.query.offer import Offer
from shoal.query.where import Where, matching
from shoal.text import Message


def count(
    facts: Facts,
    *,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
    noise: str = "laplace",
) -> Offer:
    """How many records meet the conditions.

    Guarantee:
        One record changes a count by at most 1 under either relation. Without conditions it is the public number of
        records under replace-one, and free.
    """
    return _noisy_sum(facts, counting(facts, where), "count", epsilon, scale, noise, whole=True)


def total(
    facts: Facts,
    *,
    column: str,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
    noise: str = "laplace",
) -> Offer:
    """The sum of a column over the records that meet the conditions.

    Guarantee:
        With a domain lo .. hi of width W: replaced, a record moves the sum by at most W; with conditions (it may stop
        meeting them) by max(hi, 0) - min(lo, 0); added or removed, by max(\\|lo\\|, \\|hi\\|).
    """
    linear = summing(facts, column, where)
    conditions: tuple[Message, ...] = ()
    if linear.complete:
        conditions = (Message.of("counts-as-middle", column=column),)
    elif where is None:
        conditions = (Message.of("counts-as-0", column=column),)
    return _noisy_sum(facts, linear, "sum", epsilon, scale, noise, conditions)


def _noisy_sum(
    facts: Facts,
    linear: Linear,
    purpose: str,
    epsilon: Fraction | None,
    scale: Fraction | None,
    noise: str,
    conditions: tuple[Message, ...] = (),
    whole: bool = False,
) -> Offer:
    blur = settle_blur(facts, linear, epsilon, scale, noise)

    def run(table: QueryTable, account: Accountant) -> Any:
        noisy = linear.answer(linear.total(table) + blur.draw(1, account, purpose)[0])
        return int(noisy) if whole else float(noisy)

    return Offer(
        blur.epsilon,
        blur.reserved(purpose),
        blur.sensitivity * blur.unit,
        blur.noise,
        error_of(blur),
        run,
        conditions=conditions,
    )


def settle_blur(
    facts: Facts, linear: Linear, epsilon: Fraction | None, scale: Fraction | None, noise: str
) -> Blur:
    """The noise for one sum: for a budget, or Laplace noise of a given scale."""
    sensitivity = linear.sensitivity(facts)
    if scale is not None:
        return Blur.laplace(sensitivity, linear.unit, scale=scale)
    assert epsilon is not None
    return Blur.single(noise, sensitivity, linear.unit, epsilon)


def error_of(blur: Blur) -> dict[str, float]:
    return {"standard_deviation": blur.deviation, "interval_95": blur.interval}


def mean(
    facts: Facts, *, column: str, epsilon: Fraction, where: Where | None = None, noise: str = "laplace"
) -> Offer:
    """The mean of a column, clipped to its domain.

    Guarantee:
        Under replace-one without conditions it is the noisy sum over the public number of records. Otherwise a noisy
        sum of distances from the middle of the domain (sensitivity W replaced, W/2 added or removed) at half the budget
        is divided by a noisy count at the other half.
    """
    lattice = numeric_lattice(facts, column)
    lo, hi = lattice.lo, lattice.hi

    def clipped(value: Fraction) -> float:
        return float(min(max(value, lo), hi))

    if facts.replace_one and where is None:
        linear, rows = summing(facts, column), facts.rows or 1
        blur = settle_blur(facts, linear, epsilon, None, noise)
        per_row = blur.sensitivity * blur.unit / rows

        def run(table: QueryTable, account: Accountant) -> float:
            return clipped(linear.answer(linear.total(table) + blur.draw(1, account, "sum")[0]) / rows)

        conditions = (Message.of("counts-as-middle", column=column),)
        added = Message.of("noise-on-sum", noise=blur.noise)
        error = {name: value / rows for name, value in error_of(blur).items()}
        return Offer(blur.epsilon, blur.reserved("sum"), per_row, added, error, run, conditions=conditions)

    part, middle = centred(facts, column, where)
    sums = settle_blur(facts, part, epsilon / 2, None, noise)
    # only records with a value count, so that this is private even where the number of records is not
    counts = Blur.single(noise, 1, Fraction(1), epsilon / 2)

    def ratio(table: QueryTable, account: Accountant) -> float:
        present = int(np.count_nonzero(present_values(table, column, where)))
        number = present + counts.draw(1, account, "count")[0]
        distances = part.total(table) + sums.draw(1, account, "sum")[0]
        return clipped(middle + part.answer(distances) / max(number, 1))

    errors: dict[str, Any] = {
        "of_the_sum": error_of(sums),
        "of_the_count": error_of(counts),
        "share_of_the_sum": "1/2",
    }
    conditions = (Message.of("without-value-left-out", column=column),)
    added = Message.of("noise-on-sum-and-count", sums=sums.noise, counts=counts.noise)
    reserved = {**counts.reserved("count"), **sums.reserved("sum")}
    return Offer(epsilon, reserved, sums.sensitivity * sums.unit, added, errors, ratio, conditions=conditions)


def present_values(table: QueryTable, column: str, where: Where | None) -> NDArray[np.bool_]:
    """Which records meet the conditions and have a value: private."""
    present: NDArray[np.bool_] = matching(where, table) & (table.positions[column] != MISSING)
    return present


def histogram(
    facts: Facts,
    *,
    cells: Cells,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
) -> Offer:
    """How many records are in each of several cells that have none in common.

    Guarantee:
        A replaced record leaves one cell and enters another: the counts together move by 2; added or removed, by 1.
        Only Laplace noise may share an ε over all cells.
    """
    blur = Blur.laplace(2 if facts.replace_one else 1, Fraction(1), epsilon=epsilon, scale=scale)

    def run(table: QueryTable, account: Accountant) -> dict[str, int]:
        counts = cells.counts(table, where)
        drawn = blur.draw(len(counts), account, "counts", "cells")
        noisy = [one + other for one, other in zip(counts, drawn, strict=True)]
        return dict(zip(cells.names, noisy, strict=True))

    added = Message.of("noise-on-each-count", noise=blur.noise)
    reserved = blur.reserved("counts")
    return Offer(blur.epsilon, reserved, Fraction(blur.sensitivity), added, error_of(blur), run)
