"""Prices of queries: composition, joint cost of several queries, and their computing time.

All rules hold for queries chosen adaptively, each after seeing the answers before it.

One record cannot meet every filter at once and lie at both ends of every column, so answers to several queries often
cost less jointly than separately. The worst records are found among finitely many: inside a box in which no condition
changes, a record's contribution is linear in its values, so that a corner of the box is worst.

Nothing here reads a record, so nothing computed here depends on one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OptionError
from shoal.privacy import unit_price
from shoal.query.answers import HistogramCells, Linear, cells_of, counting, summing
from shoal.query.facts import (
    MISSING,
    Condition,
    DatasetFacts,
    as_number,
    as_scale,
    conditions,
    meets,
    parse_where,
)
from shoal.query.spec import Query, cost, delta

# a label that no condition names
_OTHER = object()
_MOST_TRIALS = 1 << 17
_MOST_PAIRS = 1 << 10
_SAFE = 1 << 61
_FINEST = 10**15

Record = dict[str, Any]
# for every condition, whether it holds for each value of its column
Truths = dict[Condition, dict[Any, bool]]
# CPU seconds of one core, above the worst measured over tables and answers built for that purpose, with up to a million
# records. A question of any kind is also read, charged, stored and sent.
_QUESTION = 1.2e-3
_VALUE = 1.5e-5
_CHARACTER = 1e-7
_ROW = 3e-9
_CONDITION = 3e-5
_COMPARED = 4e-9
_LISTED = 1.5e-8
_ADDED = 1.5e-8
_COUNTED = 3e-8
_SAMPLE = 5e-3
_CELL = 8e-6
_RUN = 2.5e-7
_POWER = 4e-6
_GROUP = 5e-6
_REFINED = 1.5e-3
_ANSWER = 4e-7
_MOVED = 6e-7
_NORMAL = 4e-7
_PAIR = 3e-7


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One number of an answer with Laplace noise of this scale, in the unit of the answer; perhaps one cell of many."""

    linear: Linear
    scale: Fraction
    cells: HistogramCells | None = None
    cell: int = 0

    def added(self, record: Record, truths: Truths) -> int:
        """A record's contribution, in units."""
        where, cells = self.linear.where, self.cells
        if where is not None and not meets(where, lambda one: truths[one][record[one.column]]):
            return 0
        if cells is not None:
            value = record[cells.column]
            if cells.labels:
                return int(value == cells.labels[self.cell])
            low, high = cells.bounds[self.cell]
            return int(low <= value <= high)
        if self.linear.column is None:
            return 1
        position = record[self.linear.column]
        return 0 if position == MISSING else self.linear.factor * position + self.linear.offset


def countable(parts: Sequence[AnswerPart], facts: DatasetFacts) -> bool:
    """Whether the candidate records are few enough to enumerate."""
    points = _points(parts, facts)
    return math.prod(len(found) for found in points.values()) * len(parts) <= _MOST_TRIALS


def joint_cost(parts: Sequence[AnswerPart], facts: DatasetFacts) -> Fraction:
    """The largest Σ |change of a number| / scale that one record can cause; check `countable` first.

    Guarantee:
        Laplace noise of these scales on all numbers together costs one row at most this, also if each query was chosen
        after seeing the answers before it. Proof: docs/proofs/queries.md#refinement, section 7.

    Reference:
        Thesis, Protocol 1.
    """
    points = _points(parts, facts)
    records = [dict(zip(points, values, strict=True)) for values in product(*points.values())]
    truths = {
        condition: {value: _holds(condition, value, facts) for value in points[condition.column]}
        for part in parts
        for condition in conditions(part.linear.where)
    }
    rates = [part.linear.unit / part.scale for part in parts]
    # rates whose common denominator is too long are rounded up: the price only grows, and very little
    common = min(math.lcm(*(rate.denominator for rate in rates)), _FINEST)
    whole = [math.ceil(rate * common) for rate in rates]
    rows = {
        tuple(part.added(record, truths) * rate for part, rate in zip(parts, whole, strict=True))
        for record in records
    }
    largest = max(sum(map(abs, row)) for row in rows)
    if not facts.replace_one:
        return Fraction(largest, common)
    if len(rows) > _MOST_PAIRS:
        # no two records are farther apart than the sum of their distances from zero
        return Fraction(2 * largest, common)
    table: NDArray[Any] = np.array(list(rows), dtype=np.int64 if largest < _SAFE else object)
    widest = max(int(np.abs(table - row).sum(axis=1).max()) for row in table)
    return Fraction(widest, common)


def _holds(condition: Condition, value: Any, facts: DatasetFacts) -> bool:
    if facts.has_lattice(facts.attribute(condition.column)):
        return any(low <= value <= high for low, high in condition.spans)
    return value != MISSING and (value in condition.values) != (condition.op == "!=")


def _points(parts: Sequence[AnswerPart], facts: DatasetFacts) -> dict[str, set[Any]]:
    """By column, the values at which something changes: the worst records are among their combinations."""
    points: dict[str, set[Any]] = {}
    for part in parts:
        for condition in conditions(part.linear.where):
            if facts.has_lattice(facts.attribute(condition.column)):
                _add(points, condition.column, facts, condition.spans)
            else:
                points.setdefault(condition.column, {_OTHER, MISSING}).update(condition.values)
        cells = part.cells
        if cells is not None and cells.labels:
            points.setdefault(cells.column, {_OTHER, MISSING}).update(cells.labels)
        elif cells is not None:
            _add(points, cells.column, facts, [cells.bounds[part.cell]])
        if part.linear.column is not None:
            _add(points, part.linear.column, facts, [])
    return points


def _add(
    points: dict[str, set[Any]], column: str, facts: DatasetFacts, intervals: Sequence[tuple[int, int]]
) -> None:
    """Both sides of every border of an interval, and both ends of the domain."""
    steps = facts.lattice(column).steps
    found = points.setdefault(column, {MISSING, 0, steps})
    for low, high in intervals:
        found.update(min(max(point, 0), steps) for point in (low - 1, low, high, high + 1))


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """What one answer costs a person.

    Attributes:
        person: for a query about one person, the column and the value that identify the person.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; fractions as text, exact."""
        found: dict[str, Any] = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return found if self.person is None else {**found, "person": list(self.person)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> AnswerCost:
        person = raw.get("person")
        return cls(
            Fraction(raw["epsilon"]),
            Fraction(raw["delta"]),
            None if person is None else (str(person[0]), str(person[1])),
        )


def charge(query: Query, facts: DatasetFacts) -> AnswerCost:
    """The charge of a query."""
    return AnswerCost(cost(query, facts), delta(query, facts), query.offer.person)


def total(charges: Sequence[AnswerCost]) -> Fraction:
    """The ε of all charges together.

    Charges add up, except that of queries about single persons only the most expensive person counts: a record is about
    one person, so it affects the answers about one person only. Persons named by different columns may be the same
    ones, so the charges of different columns add up again.

    Guarantee:
        The answers together are `total`-DP if each is what its charge says. Under replace-one a record may change from
        one person to another and affects the answers about both by half of their charges each: at most the larger.

    Reference:
        Thesis, Proposition 4 and Tables 5.3, 5.4; docs/proofs/queries.md#refinement, section 5.

    >>> about = [AnswerCost(Fraction(1), person=("id", name)) for name in ("1", "2", "2")]
    >>> total([*about, AnswerCost(Fraction(1, 2))])
    Fraction(5, 2)
    """
    whole = sum((one.epsilon for one in charges if one.person is None), Fraction(0))
    spent: dict[tuple[str, str], Fraction] = {}
    for one in charges:
        if one.person is not None:
            spent[one.person] = spent.get(one.person, Fraction(0)) + one.epsilon
    largest: dict[str, Fraction] = {}
    for (column, _), epsilon in spent.items():
        largest[column] = max(largest.get(column, Fraction(0)), epsilon)
    return whole + sum(largest.values(), Fraction(0))


def extra(one: AnswerCost, person_spent: Fraction, column_largest: Fraction) -> Fraction:
    """What one more charge adds to the total.

    Args:
        one: the new charge.
        person_spent: the sum of the charges about the same person so far.
        column_largest: the largest such sum of any person named by the same column.

    >>> extra(AnswerCost(Fraction(1), person=("id", "7")), Fraction(1, 2), Fraction(1))
    Fraction(1, 2)
    """
    if one.person is None:
        return one.epsilon
    return max(person_spent + one.epsilon - column_largest, Fraction(0))


def protocol_1_total(queries: Sequence[Query], facts: DatasetFacts) -> Fraction:
    """The ε of several queries of kind protocol-1 together: by joint sensitivity, never above the sum.

    Where there are too many conditions to try all combinations, queries are combined in blocks, in their order.

    Guarantee:
        Valid for queries chosen one after the other; see `joint_cost`.

    Reference:
        Thesis, Protocol 1, condition Δ(f_1, ..., f_i)/λ ≤ ε, with a λ of its own for every query.
    """
    blocks: list[list[Query]] = []
    parts: list[list[AnswerPart]] = []
    for query in queries:
        own = _parts(query, facts)
        if blocks and countable([*parts[-1], *own], facts):
            blocks[-1].append(query)
            parts[-1] += own
        else:
            blocks.append([query])
            parts.append(own)
    found = Fraction(0)
    for block, numbers in zip(blocks, parts, strict=True):
        apart = sum((cost(query, facts) for query in block), Fraction(0))
        together = joint_cost(numbers, facts) if countable(numbers, facts) else None
        found += apart if together is None else min(apart, unit_price(together, facts.rows_per_unit))
    return found


def _parts(query: Query, facts: DatasetFacts) -> list[AnswerPart]:
    """The numbers to which a query of kind protocol-1 adds noise."""
    if query.kind != "protocol-1":
        raise OptionError("joint-sensitivity-queries-kind-protocol-1", found=query.kind)
    inner, scale = query.options["query"], as_scale(query.options["scale"])
    where = parse_where(inner["where"], facts) if "where" in inner else None
    match inner["kind"]:
        case "count":
            return [AnswerPart(counting(facts, where), scale)]
        case "sum":
            return [AnswerPart(summing(facts, inner["column"], where), scale)]
        case _:
            cells = cells_of(facts, inner)
            return [
                AnswerPart(counting(facts, where), scale, cells, number) for number in range(len(cells.names))
            ]


def computing_cost(query: Query, rows: int) -> float:
    """Upper bound on the CPU seconds for a question on a table of this size, whatever its records hold.

    Args:
        query: the question.
        rows: the number of records where it is public, otherwise a public upper bound.

    >>> from shoal.query.facts import DatasetFacts
    >>> from shoal.query.spec import parse
    >>> from shoal.columns.schema import Schema
    >>> facts = DatasetFacts(Schema(()), rows=1000)
    >>> 0 < computing_cost(parse({"kind": "count", "epsilon": 1}, facts), 1000) < 0.002
    True
    """
    options, kind = query.options, query.kind
    while kind in ("protocol-1", "protocol-2"):
        inner: Mapping[str, Any] = options["query"]
        kind, options = inner["kind"], dict(inner)
    values, characters = _written(options)
    return _QUESTION + values * _VALUE + characters * _CHARACTER + _of_kind(kind, options, query, rows)


def _written(given: Any) -> tuple[int, int]:
    """The number of values and characters of a question: the work to read, store and send it."""
    if isinstance(given, Mapping):
        parts = [_written(part) for part in given.values()]
        named = sum(map(len, given))
    elif isinstance(given, list):
        parts, named = [_written(part) for part in given], 0
    else:
        return 1, len(given)
    return 1 + sum(one for one, _ in parts), named + sum(other for _, other in parts)


def _of_kind(kind: str, options: Mapping[str, Any], query: Query, rows: int) -> float:
    matched = rows * _ROW + _conditions(options.get("where"), rows)
    match kind:
        case "count":
            return matched
        case "sum" | "mean":
            return 2 * matched + rows * (_ADDED + (2 * _COUNTED if "bound" in options else 0))
        case "histogram":
            cells = len(cells_of(query.facts, dict(options)).names)
            return matched + rows * _COUNTED + _SAMPLE + cells * _CELL
        case "quantile":
            return matched + rows * _COUNTED + _chosen_by_rank(options, query, rows)
        case "ranking-means":
            groups = rows // max(int(as_number("k", options["k"])), 1) + 1
            return rows * 2 * _COUNTED + _SAMPLE + groups * _GROUP
    return _by_refinement(options, query, rows)


def _by_refinement(options: Mapping[str, Any], query: Query, rows: int) -> float:
    answers = int(query.offer.error.get("possible_answers", 0))
    parts = options.get("statistics") or options.get("columns") or [options.get("statistic", options)]
    parts = [part if isinstance(part, Mapping) else {"column": part} for part in parts]
    looked = sum(
        rows * (_ROW + 3 * _ADDED) + 2 * _conditions(part.get("where"), rows) + _distances(query.facts, part)
        for part in parts
    )
    moved = _MOVED if "delta" in options else 0.0
    return _REFINED + looked + answers * (_ANSWER + _NORMAL + moved)


def _chosen_by_rank(options: Mapping[str, Any], query: Query, rows: int) -> float:
    """Runs of equal penalty, and powers of the factor by which a penalty lowers a probability."""
    share = as_number("q", options["q"]).denominator
    runs = query.facts.ranked(options["column"]) or 2 * rows + 2
    # penalties further than 89 / rate are never looked up: shoal.noise.choice
    furthest = min(89 * 2 * share / float(query.offer.epsilon), share * rows)
    return runs * _RUN + (256 + 2 * furthest / 256) * _POWER


def _distances(facts: DatasetFacts, part: Mapping[str, Any]) -> float:
    """The work of computing the distances between all labels of a taxonomy."""
    tree = facts.attribute(part["column"]).tree if "column" in part else None
    return 0.0 if tree is None else min(len(tree.values), 1000) ** 2 * _PAIR


def _conditions(where: Any, rows: int) -> float:
    """The work of evaluating conditions."""
    if not isinstance(where, Mapping):
        return 0.0
    for how in ("and", "or"):
        if how in where:
            return sum(_conditions(part, rows) for part in where[how])
    return _CONDITION + rows * (_LISTED if where.get("op") == "in" else _COMPARED)
