"""Answers to queries: offers with price and noise for counts, sums, means and histograms of a table.

An offer fixes price, noise and error before any record is read. Its `run` is the only place where records and
noise meet, and spends what the offer reserves. Proofs of all sensitivities: docs/proofs/queries.md#refinement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.columns import Attribute, Lattice
from shoal.errors import OptionError, closest
from shoal.noise import (
    LatticeStaircase,
    check_staircase,
    discrete_laplace,
    discrete_staircase,
    round_up_scale,
    shown,
    single_laplace,
)
from shoal.numbers import decimal_text
from shoal.privacy import Accountant
from shoal.query.facts import (
    EDGE,
    MISSING,
    DatasetFacts,
    Offer,
    QueryTable,
    Where,
    as_list,
    as_text,
    matching,
    place,
)
from shoal.text import Message

NOISES = ("laplace", "staircase")
CONFIDENCE = 0.95
_MOST_CELLS = 10_000
_CELL = Message.of("part-cell")


@dataclass(frozen=True, slots=True)
class AnswerNoise:
    """Noise for integers that one record changes by at most `sensitivity` in total (L1), in units of `unit`.

    Attributes:
        sensitivity: in whole units; 0 means that the numbers are public and get no noise.
        epsilon: its cost for one row; 0 if there is none.
        scale: of Laplace noise, in units; None for staircase noise.
        unit: the value of one unit.

    >>> str(AnswerNoise.laplace(1, Fraction(1), epsilon=Fraction(1, 2)).noise)
    'discrete Laplace noise of scale 2'
    """

    sensitivity: int
    epsilon: Fraction
    scale: Fraction | None
    unit: Fraction

    @classmethod
    def laplace(
        cls,
        sensitivity: int,
        unit: Fraction,
        *,
        epsilon: Fraction | None = None,
        scale: Fraction | None = None,
    ) -> AnswerNoise:
        """Laplace noise for a budget, or of a scale in the unit of the answer, which determines its cost.

        Guarantee:
            For integers with this L1 sensitivity between neighbouring data sets, the noisy numbers together are
            `epsilon`-DP. The scale drawn from is rounded up, never down: docs/proofs/noise.md#laplace, section 3.
        """
        if sensitivity == 0:
            return cls(0, Fraction(0), Fraction(0), unit)
        if scale is not None:
            steps = scale / unit
            return cls(sensitivity, sensitivity / steps, round_up_scale(steps), unit)
        assert epsilon is not None
        return cls(sensitivity, epsilon, round_up_scale(sensitivity / epsilon), unit)

    @classmethod
    def single(cls, noise: str, sensitivity: int, unit: Fraction, epsilon: Fraction) -> AnswerNoise:
        """Noise of either kind for a single integer.

        Guarantee:
            `epsilon`-DP for one number with this sensitivity. Staircase noise costs all of ε for a shift of a single
            unit, so it must not be used for several numbers that share an ε: docs/proofs/noise.md#staircase.
        """
        if noise not in NOISES:
            raise OptionError(
                "unknown-noise-of-query",
                option="noise",
                noise=noise,
                allowed=tuple(NOISES),
                hint=closest(noise, NOISES),
            )
        if noise == "laplace" or sensitivity == 0:
            return cls.laplace(sensitivity, unit, epsilon=epsilon)
        check_staircase(sensitivity, epsilon)
        return cls(sensitivity, epsilon, None, unit)

    def reserved(self, purpose: str) -> dict[str, Fraction]:
        """What a plan reserves for this noise."""
        return {purpose: self.epsilon} if self.sensitivity else {}

    def draw(self, size: int, account: Accountant, purpose: str, over: str = "") -> list[int]:
        """Independent draws, in units, charged together.

        Args:
            size: how many numbers get noise; one record changes them by at most `sensitivity` in total.
            account: charged for the noise.
            purpose: the reservation that is spent.
            over: what the numbers describe, where there are several.

        Raises:
            OverspendError: the account has less left than the noise costs.
        """
        if self.sensitivity == 0:
            return [0] * size
        epsilon, source = account.spend(purpose, self.epsilon, over=over).take()
        if self.scale is None:
            drawn: list[int] = discrete_staircase(self.sensitivity, epsilon, size, source).tolist()
            return drawn
        scale = round_up_scale(self.sensitivity / epsilon)
        if size == 1:
            # one number at a time: an array of one takes far longer
            return [single_laplace(scale.numerator, scale.denominator, source)]
        drawn = discrete_laplace(scale, size, source).tolist()
        return drawn

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise, in the unit of the answer."""
        if self.sensitivity == 0:
            return 0.0
        if self.scale is None:
            variance = LatticeStaircase.best(self.sensitivity, self.epsilon).variance
        else:
            rate = 1 / float(self.scale)
            variance = 2 * math.exp(-rate) / math.expm1(-rate) ** 2
        return math.sqrt(variance) * float(self.unit)

    @property
    def interval(self) -> float:
        """The least h for which the noise is within ±h with 95%, in the unit of the answer."""
        if self.sensitivity == 0:
            return 0.0
        if self.scale is None:
            steps = LatticeStaircase.best(self.sensitivity, self.epsilon).interval(CONFIDENCE)
        else:
            # P(|X| > h) = 2 p^(h+1) / (1 + p) with p = exp(-1/scale)
            rate = 1 / float(self.scale)
            tail = math.log((1 - CONFIDENCE) * (1 + math.exp(-rate)) / 2)
            steps = max(math.ceil(-tail / rate - 1 - 1e-9), 0)
        return steps * float(self.unit)

    @property
    def noise(self) -> Message:
        if self.sensitivity == 0:
            return Message.of("noise-none")
        if self.scale is None:
            return Message.of("noise-staircase", epsilon=decimal_text(self.epsilon))
        return Message.of("noise-laplace", scale=decimal_text(self.scale * self.unit))


@dataclass(frozen=True, slots=True)
class HistogramCells:
    """Disjoint cells of a histogram.

    Attributes:
        names: of the cells in the answer.
        bounds: for a column on a lattice, the first and last position of each cell, both included.
        labels: for other columns, the label of each cell.
    """

    column: str
    names: tuple[str, ...]
    bounds: tuple[tuple[int, int], ...] = ()
    labels: tuple[str, ...] = ()

    def counts(self, table: QueryTable, where: Where | None) -> list[int]:
        """The exact counts: private. The work does not depend on how many records are counted."""
        chosen = matching(where, table)
        if self.labels:
            codes = [table.code(self.column, label) for label in self.labels]
            # no row has a code beyond the largest, which is used for a label that does not occur
            unknown = len(table.labels[self.column])
            edges = np.array([[code if code >= 0 else unknown] * 2 for code in codes], dtype=np.int64)
        else:
            edges = np.array(self.bounds, dtype=np.int64).reshape(-1, 2)
        found: list[int] = table.orders[self.column].between(chosen, edges[:, 0], edges[:, 1]).tolist()
        return found


def cells_of(facts: DatasetFacts, options: dict[str, Any]) -> HistogramCells:
    """The cells that a query names: edges of bins, single values, or by default all values of an ordered column."""
    attribute = facts.attribute(options["column"])
    if attribute.role in ("identifier", "unit"):
        raise OptionError("column-identifies-persons", column=attribute.name)
    if "edges" in options and "cells" in options:
        raise OptionError("histogram-either-edges-cells")
    if "edges" in options:
        return _bins(facts, attribute, options["edges"])
    if "cells" in options:
        labels = tuple(as_text(_CELL, cell) for cell in as_list("cells", options["cells"], _MOST_CELLS))
    else:
        labels = facts.labels(attribute)
    if not labels:
        raise OptionError("histogram-column-needs-edges-cells", column=attribute.name)
    if len(set(labels)) < len(labels):
        raise OptionError("cells-names-value-twice", option="cells")
    if not facts.has_lattice(attribute):
        return HistogramCells(attribute.name, labels, labels=labels)
    lattice = facts.lattice(attribute.name)
    points = [place(attribute, lattice, label) for label in labels]
    if len(set(points)) < len(points):
        raise OptionError("cells-names-value-twice", option="cells")
    if any(point.denominator != 1 or not 0 <= point <= lattice.steps for point in points):
        raise OptionError("cells-values-domain", option="cells")
    return HistogramCells(attribute.name, labels, tuple((int(point), int(point)) for point in points))


def _bins(facts: DatasetFacts, attribute: Attribute, raw: Any) -> HistogramCells:
    """A bin starts at its lower edge; the last one includes its upper edge."""
    if not facts.has_lattice(attribute):
        raise OptionError("column-labels-without-order", column=attribute.name)
    lattice = facts.lattice(attribute.name)
    texts = [as_text(EDGE, edge) for edge in as_list("edges", raw, _MOST_CELLS + 1)]
    places = [place(attribute, lattice, text) for text in texts]
    if len(texts) < 2 or any(a >= b for a, b in pairwise(places)):
        raise OptionError("edges-grow-inside-domain-there-least", option="edges")
    starts = [max(math.ceil(one), 0) for one in places]
    stops = [start - 1 for start in starts[1:-1]] + [math.floor(places[-1])]
    names = [f"[{a}, {b})" for a, b in pairwise(texts)]
    names[-1] = names[-1][:-1] + "]"
    # an empty bin ends right before its start
    bounds = [(start, max(stop, start - 1)) for start, stop in zip(starts, stops, strict=False)]
    return HistogramCells(attribute.name, tuple(names), tuple(bounds))


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum over records of integers between `low` and `high`: what a record adds, and how the sum is converted.

    Attributes:
        unit: the value of one of these units.
        base: added to the sum afterwards, in the unit of the answer.
        column: whose positions are summed; None for a count.
        offset, factor: a record at position p adds factor·p + offset.
        complete: whether every record takes part, a missing value as 0; otherwise only those that meet `where`.
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

    def sensitivity(self, facts: DatasetFacts) -> int:
        """How much one record can change the sum, in units.

        A record adds a number between low and high, or nothing (0). If replaced, it changes the sum by at most the
        difference of two such numbers; if added or removed, by at most the largest of them in absolute value.
        """
        if facts.replace_one:
            return 0 if self.fixed else max(self.high, 0) - min(self.low, 0)
        return max(abs(self.low), abs(self.high))

    @property
    def fixed(self) -> bool:
        """Whether every record adds the same, so that the sum is known from the number of records."""
        return self.column is None and self.where is None

    def total(self, table: QueryTable) -> int:
        """The exact sum, in units: private. The work does not depend on how many records take part."""
        chosen = matching(self.where, table)
        if self.column is None:
            return int(np.count_nonzero(chosen))
        positions = table.positions[self.column]
        chosen = chosen & (positions != MISSING)
        # records that do not take part are counted as 0, not left out, which would show in the time
        return self.factor * add_up(np.multiply(positions, chosen)) + self.offset * int(
            np.count_nonzero(chosen)
        )

    def answer(self, noisy: int) -> Fraction:
        return self.base + noisy * self.unit


def add_up(positions: NDArray[np.int64]) -> int:
    """The sum of integers below 2^58 in absolute value, however many there are."""
    return (int((positions >> 26).sum()) << 26) + int((positions & 0x3FFFFFF).sum())


def counting(facts: DatasetFacts, where: Where | None = None) -> Linear:
    """The number of records that meet the conditions."""
    return Linear(Fraction(1), 0, 1, where=where)


def summing(facts: DatasetFacts, column: str, where: Where | None = None) -> Linear:
    """The sum of a column, as integers in the largest unit common to its values.

    Under replace-one without conditions every record takes part, so the sum of the distances from the middle of the
    domain is enough: it changes by the width of the domain, wherever the domain lies.
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


def centred(facts: DatasetFacts, column: str, where: Where | None) -> tuple[Linear, Fraction]:
    """The sum of distances from the middle of the domain over the records that meet the conditions, and the middle."""
    lattice = numeric_lattice(facts, column)
    middle = lattice.steps // 2
    part = Linear(lattice.step, -middle, lattice.steps - middle, column, -middle, where=where)
    return part, lattice.lo + middle * lattice.step


def numeric_lattice(facts: DatasetFacts, column: str) -> Lattice:
    """The lattice of a column whose values can be summed."""
    if not facts.attribute(column).kind_facts.measured:
        raise OptionError("column-not-numeric", column=column, found=facts.attribute(column).kind)
    return facts.lattice(column)


def count(
    facts: DatasetFacts,
    *,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
    noise: str = "laplace",
) -> Offer:
    """The number of records that meet the conditions.

    Guarantee:
        One record changes a count by at most 1 under either relation. Without conditions it is the public number of
        records under replace-one, and free.
    """
    return _noisy_sum(facts, counting(facts, where), "count", epsilon, scale, noise, whole=True)


def total(
    facts: DatasetFacts,
    *,
    column: str,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
    noise: str = "laplace",
) -> Offer:
    """The sum of a column over the records that meet the conditions.

    Guarantee:
        With a domain lo .. hi of width W: replaced, a record changes the sum by at most W; with conditions (it may stop
        meeting them) by max(hi, 0) - min(lo, 0); added or removed, by max(\\|lo\\|, \\|hi\\|).
    """
    linear = summing(facts, column, where)
    conditions: tuple[Message, ...] = ()
    if linear.complete:
        conditions = (Message.of("counts-as-middle", column=column),)
    elif where is None:
        conditions = (Message.of("counts-as-0", column=column),)
    return _noisy_sum(facts, linear, "sum", epsilon, scale, noise, conditions)


# clipped sums of units, in steps, stay far below 2^63
_LARGEST_SUM = 1 << 58


def clipped_total(
    facts: DatasetFacts,
    *,
    column: str,
    epsilon: Fraction,
    most: Fraction,
    where: Where | None = None,
    noise: str = "laplace",
) -> Offer:
    """The sum over units of a column's sum within the unit, each clipped to at most `most` in absolute value.

    Args:
        facts: of the data set, which has a unit.
        column: whose values are added up.
        epsilon: the budget of a unit, not of a row.
        most: the largest contribution of a unit, in the unit of the column.
        where: only rows that meet it contribute.
        noise: as for a sum.

    Guarantee:
        However many rows a unit has, its clipped sum lies in an interval that contains 0. Added or removed, a unit
        changes the total by at most the larger end in absolute value; with its rows replaced, by at most the width.
        The offer is priced per unit. Proof: docs/proofs/units.md#3-clipped-sums.
    """
    unit = facts.schema.unit
    if unit is None:
        raise OptionError("bound-needs-unit", option="bound")
    lattice = numeric_lattice(facts, column)
    ratio = lattice.lo / lattice.step
    factor, offset = ratio.denominator, ratio.numerator
    step = lattice.step / factor
    steps = math.floor(most / step)
    low = -steps if offset < 0 else 0
    high = steps if offset + factor * lattice.steps > 0 else 0
    if not 1 <= steps <= _LARGEST_SUM:
        raise OptionError("bound-of-sums-out-of-range", found=shown(str(most)), column=column)
    part = Linear(step, low, high, column, offset, factor, where=where)
    added = noise_of_answer(facts, part, epsilon, None, noise)

    def run(table: QueryTable, account: Accountant) -> float:
        exact = add_up(unit_sums(table, part, unit.name, low, high))
        return float(part.answer(exact + added.draw(1, account, "sum")[0]))

    return Offer(
        added.epsilon,
        added.reserved("sum"),
        added.sensitivity * added.unit,
        added.noise,
        error_of(added),
        run,
        conditions=(
            Message.of("counts-as-0", column=column),
            Message.of("sums-of-units-clipped", most=decimal_text(most)),
        ),
        of_unit=True,
    )


def unit_sums(table: QueryTable, part: Linear, unit: str, low: int, high: int) -> NDArray[np.int64]:
    """The clipped sum of each unit, in steps: private. The work does not depend on how many units there are."""
    positions, who = table.positions[str(part.column)], table.codes[unit]
    chosen = matching(part.where, table) & (positions != MISSING)
    values = np.where(chosen, part.factor * positions + part.offset, 0)
    # two parts of a number, so that no sum overflows before it is clipped
    upper, lower = (np.zeros(max(table.n, len(table.names[unit])), dtype=np.int64) for _ in range(2))
    np.add.at(upper, who, values >> 26)
    np.add.at(lower, who, values & 0x3FFFFFF)
    sums = (np.clip(upper, -(1 << 36), 1 << 36) << 26) + lower
    clipped: NDArray[np.int64] = np.clip(sums, low, high)
    return clipped


def _noisy_sum(
    facts: DatasetFacts,
    linear: Linear,
    purpose: str,
    epsilon: Fraction | None,
    scale: Fraction | None,
    noise: str,
    conditions: tuple[Message, ...] = (),
    whole: bool = False,
) -> Offer:
    answer_noise = noise_of_answer(facts, linear, epsilon, scale, noise)

    def run(table: QueryTable, account: Accountant) -> Any:
        noisy = linear.answer(linear.total(table) + answer_noise.draw(1, account, purpose)[0])
        return int(noisy) if whole else float(noisy)

    return Offer(
        answer_noise.epsilon,
        answer_noise.reserved(purpose),
        answer_noise.sensitivity * answer_noise.unit,
        answer_noise.noise,
        error_of(answer_noise),
        run,
        conditions=conditions,
    )


def noise_of_answer(
    facts: DatasetFacts, linear: Linear, epsilon: Fraction | None, scale: Fraction | None, noise: str
) -> AnswerNoise:
    """The noise for one sum: for a budget, or Laplace noise of a given scale."""
    sensitivity = linear.sensitivity(facts)
    if scale is not None:
        return AnswerNoise.laplace(sensitivity, linear.unit, scale=scale)
    assert epsilon is not None
    return AnswerNoise.single(noise, sensitivity, linear.unit, epsilon)


def error_of(answer_noise: AnswerNoise) -> dict[str, float]:
    return {"standard_deviation": answer_noise.deviation, "interval_95": answer_noise.interval}


def mean(
    facts: DatasetFacts, *, column: str, epsilon: Fraction, where: Where | None = None, noise: str = "laplace"
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
        answer_noise = noise_of_answer(facts, linear, epsilon, None, noise)
        per_row = answer_noise.sensitivity * answer_noise.unit / rows

        def run(table: QueryTable, account: Accountant) -> float:
            return clipped(
                linear.answer(linear.total(table) + answer_noise.draw(1, account, "sum")[0]) / rows
            )

        conditions = (Message.of("counts-as-middle", column=column),)
        added = Message.of("noise-on-sum", noise=answer_noise.noise)
        error = {name: value / rows for name, value in error_of(answer_noise).items()}
        return Offer(
            answer_noise.epsilon,
            answer_noise.reserved("sum"),
            per_row,
            added,
            error,
            run,
            conditions=conditions,
        )

    part, middle = centred(facts, column, where)
    sums = noise_of_answer(facts, part, epsilon / 2, None, noise)
    # only records with a value count, so this is private even where the number of records is not
    counts = AnswerNoise.single(noise, 1, Fraction(1), epsilon / 2)

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
    """The records that meet the conditions and have a value: private."""
    present: NDArray[np.bool_] = matching(where, table) & (table.positions[column] != MISSING)
    return present


def histogram(
    facts: DatasetFacts,
    *,
    cells: HistogramCells,
    epsilon: Fraction | None = None,
    scale: Fraction | None = None,
    where: Where | None = None,
) -> Offer:
    """The number of records in each of several disjoint cells.

    Guarantee:
        A replaced record leaves one cell and enters another: the counts change by 2 in total; added or removed, by 1.
        Only Laplace noise may share an ε over all cells.
    """
    answer_noise = AnswerNoise.laplace(
        2 if facts.replace_one else 1, Fraction(1), epsilon=epsilon, scale=scale
    )

    def run(table: QueryTable, account: Accountant) -> dict[str, int]:
        counts = cells.counts(table, where)
        drawn = answer_noise.draw(len(counts), account, "counts", "cells")
        noisy = [one + other for one, other in zip(counts, drawn, strict=True)]
        return dict(zip(cells.names, noisy, strict=True))

    added = Message.of("noise-on-each-count", noise=answer_noise.noise)
    reserved = answer_noise.reserved("counts")
    return Offer(
        answer_noise.epsilon, reserved, Fraction(answer_noise.sensitivity), added, error_of(answer_noise), run
    )
