"""Sums over records. In: public facts, a column, conditions. Out: what one record adds; the exact sum, a secret.

Proofs of the sensitivities: docs/proofs/refinement.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.columns.kinds import Lattice
from shoal.errors import OptionError
from shoal.query.facts import MISSING, Facts, QueryTable
from shoal.query.where import Where, matching


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum over records of whole numbers between `low` and `high`: what a record adds, and what is done to the sum.

    Attributes:
        unit: what one of these whole numbers is worth.
        base: added to the sum afterwards, in the unit of the answer.
        column: whose positions are added up; None for a count.
        offset, factor: a record at position p adds factor·p + offset.
        complete: whether every record takes part, a missing value with 0; otherwise only those that meet `where`.
    """

    unit: Fraction
    low: int
    high: int
    column: str | None = None
    offset: int = 0
    factor: int = 1
    base: Fraction = Fraction(0)
    where: Where | None = None
    complete: bool = False

    def sensitivity(self, facts: Facts) -> int:
        """How far one record moves the sum, in units.

        A record adds a number between low and high, or nothing (0). Replaced, it moves the sum by at most the
        distance of two such numbers; added or removed, by at most the largest of them in size.
        """
        if facts.replace_one:
            return 0 if self.fixed else max(self.high, 0) - min(self.low, 0)
        return max(abs(self.low), abs(self.high))

    @property
    def fixed(self) -> bool:
        """Every record adds the same, so that the sum is known from the number of records."""
        return self.column is None and self.where is None

    def total(self, table: QueryTable) -> int:
        """The exact sum, in units: private. The same work however many records take part."""
        chosen = matching(self.where, table)
        if self.column is None:
            return int(np.count_nonzero(chosen))
        positions = table.positions[self.column]
        chosen = chosen & (positions != MISSING)
        # those that do not take part are counted as 0, not left out, which would show in the time
        return self.factor * add_up(np.multiply(positions, chosen)) + self.offset * int(
            np.count_nonzero(chosen)
        )

    def answer(self, noisy: int) -> Fraction:
        return self.base + noisy * self.unit


def add_up(positions: NDArray[np.int64]) -> int:
    """The sum of positions below 2^53, however many there are."""
    return (int((positions >> 26).sum()) << 26) + int((positions & 0x3FFFFFF).sum())


def counting(facts: Facts, where: Where | None = None) -> Linear:
    """The number of records that meet the conditions."""
    return Linear(Fraction(1), 0, 1, where=where)


def summing(facts: Facts, column: str, where: Where | None = None) -> Linear:
    """The sum of a column, as whole numbers of the finest unit that its values have in common.

    Under replace-one without conditions every record takes part, so the sum of the distances from the middle of the
    domain is enough: it moves by the width of the domain, wherever the domain lies.
    """
    lattice = numeric_lattice(facts, column)
    if facts.replace_one and where is None:
        middle = lattice.steps // 2
        centre = lattice.lo + middle * lattice.step
        base = centre * (facts.rows or 0)
        return Linear(
            lattice.step, -middle, lattice.steps - middle, column, -middle, base=base, complete=True
        )
    ratio = lattice.lo / lattice.step
    factor, offset = ratio.denominator, ratio.numerator
    return Linear(
        lattice.step / factor, offset, offset + factor * lattice.steps, column, offset, factor, where=where
    )


def centred(facts: Facts, column: str, where: Where | None) -> tuple[Linear, Fraction]:
    """The sum of distances from the middle of the domain over the records that meet the conditions, and the middle."""
    lattice = numeric_lattice(facts, column)
    middle = lattice.steps // 2
    part = Linear(lattice.step, -middle, lattice.steps - middle, column, -middle, where=where)
    return part, lattice.lo + middle * lattice.step


def numeric_lattice(facts: Facts, column: str) -> Lattice:
    """The lattice of a column whose values can be added up."""
    if not facts.attribute(column).kind_facts.measured:
        raise OptionError("column-not-numeric", column=column, found=facts.attribute(column).kind)
    return facts.lattice(column)
