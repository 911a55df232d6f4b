"""Queries answered by knowledge refinement. In: public facts and options. Out: offers of one refined sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.columns.lattice import Lattice
from shoal.columns.schema import Attribute
from shoal.decimals import decimal_text
from shoal.errors import OptionError
from shoal.noise import Source
from shoal.query.answers import present_values
from shoal.query.facts import MISSING, Facts, QueryTable
from shoal.query.linear import add_up, numeric_lattice
from shoal.query.offer import Offer
from shoal.query.parsing import (
    as_delta,
    as_list,
    as_mapping,
    as_number,
    as_text,
    check_keys,
)
from shoal.query.ranges import PART_OPTIONS, Expected, of_column, of_lattice, together
from shoal.query.refinement import Factors, movable, refine, sample
from shoal.query.where import Where, matching, parse_where

# what is true of the records, in the terms of the possible answers, and whether it is: where there is nothing to tell,
# any other possible answer, so that the same is done with it
Truth = Callable[[QueryTable], tuple[Any, bool]]
_STATISTICS = ("count", "sum", "mean", "quantile")


def individual(facts: Facts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more values of one person: a sample of what is expected of them, refined towards the truth.

    Guarantee:
        A person of whom there is not exactly one record is answered from the prior. So ε for one record added or
        removed, 2ε for one replaced. With `delta`, (ε, δ) or (2ε, δ).

    Reference:
        Thesis, Proposition 3; docs/proofs/refinement.md.
    """
    key = as_mapping("key", options["key"])
    check_keys("key", key, ("column", "value"))
    who = facts.attribute(key["column"])
    if who.role not in ("identifier", "unit"):
        raise OptionError(
            f"column '{who.name}' does not identify persons: its role in the schema is {who.role}."
        )
    label = as_text("the value of key", key["value"])
    columns = _one_or_more("column", options)
    found: list[tuple[Attribute, Expected]] = []
    for given in columns:
        part = given if isinstance(given, dict) else {"column": given}
        check_keys("a column", part, ("column",), PART_OPTIONS)
        attribute = facts.attribute(part["column"])
        if attribute.role in ("identifier", "unit"):
            raise OptionError(f"column '{attribute.name}' identifies persons: it cannot be asked for.")
        found.append((attribute, of_column(facts, attribute, part)))

    def truth(table: QueryTable) -> tuple[Any, bool]:
        row, alone = table.only_row(who.name, label)
        # a row is looked up either way, and does not count if it is not that of the person
        values = [_value(table, attribute, row) for attribute, _ in found]
        return [value for value, _ in values], alone & all([there for _, there in values])

    delta = as_delta(options["delta"]) if "delta" in options else Fraction(0)
    moved = movable(epsilon, delta, individual=True, replace_one=facts.replace_one)
    words = ("A person of whom there is not exactly one record is answered from the prior.",)
    return _offer(
        [part for _, part in found],
        options,
        Factors.individual(epsilon),
        moved,
        truth,
        epsilon=2 * epsilon if facts.replace_one else epsilon,
        delta=delta,
        conditions=words,
        person=(who.name, label),
    )


def statistical(facts: Facts, options: dict[str, Any], epsilon: Fraction) -> Offer:
    """One or more statistics of many records, refined likewise.

    Guarantee:
        ε between any two data sets whatever, so under both relations; (ε, δ) with `delta`.

    Reference:
        Thesis, Proposition 2; docs/proofs/refinement.md.
    """
    found = [
        _statistic(facts, as_mapping("statistic", given)) for given in _one_or_more("statistic", options)
    ]

    def truth(table: QueryTable) -> tuple[Any, bool]:
        values = [one(table) for one, _ in found]
        return [value for value, _ in values], all([there for _, there in values])

    delta = as_delta(options["delta"]) if "delta" in options else Fraction(0)
    lift = as_number("lift", options["lift"]) if "lift" in options else Fraction(1, 2)
    if not Fraction(1, 100) <= lift <= Fraction(99, 100):
        raise OptionError(f"lift must be between 0.01 and 0.99, got {decimal_text(lift)}.")
    moved = movable(epsilon, delta, individual=False, replace_one=facts.replace_one)
    return _offer(
        [part for _, part in found],
        options,
        Factors.statistical(epsilon, lift),
        moved,
        truth,
        epsilon=epsilon,
        delta=delta,
    )


def _one_or_more(what: str, options: dict[str, Any]) -> list[Any]:
    """The parts of a query; what is said about one part at the top of the query belongs to that part."""
    several = what + "s"
    if (what in options) == (several in options):
        raise OptionError(f"the query needs either '{what}' or '{several}'.")
    if several in options:
        for key in ("range", "values"):
            if key in options:
                raise OptionError(f"'{key}' belongs into the parts of a query with several.")
        return as_list(several, options[several], 100)
    own = {key: options[key] for key in PART_OPTIONS if key in options}
    one = options[what]
    part = one if isinstance(one, dict) else {what: one}
    for key in own:
        if key in part:
            raise OptionError(f"'{key}' is given twice.")
    return [part | own]


def _offer(
    parts: list[Expected],
    options: dict[str, Any],
    factors: Factors,
    moved: Fraction,
    truth: Truth,
    *,
    epsilon: Fraction,
    delta: Fraction,
    conditions: tuple[str, ...] = (),
    person: tuple[str, str] | None = None,
) -> Offer:
    several = "columns" in options or "statistics" in options
    expected = together(parts, options) if several else parts[0]
    support = expected.support

    def run(table: QueryTable, source: Source) -> Any:
        found, there = truth(table)
        place = support.index(found if several else found[0])
        counts = there and place is not None
        # with a truth or without, both laws are made and sampled: the time does not tell which of them counts
        laws = [
            refine(expected.prior, expected.distance(support, place or 0), factors, moved),
            refine(expected.prior, None, factors),
        ]
        drawn, _ = (sample(law, source) for law in (laws if counts else laws[::-1]))
        answer = support.answer(drawn)
        if not several:
            return parts[0].written(answer)
        return [part.written(value) for part, value in zip(parts, answer, strict=True)]

    error = {
        "possible_answers": support.size,
        "prior_mass_raised": float(factors.mass_up),
        "its_probability": float(factors.chance_up),
    }
    return Offer(
        epsilon,
        None,
        "one sample of the refined prior",
        error,
        run,
        conditions=(*conditions, "The promise holds whatever the prior and the distance are."),
        delta=delta,
        person=person,
    )


def _value(table: QueryTable, attribute: Attribute, row: int) -> tuple[Any, bool]:
    """The true value of one record, and whether it has one."""
    if attribute.name in table.positions:
        position = int(table.positions[attribute.name][row]) if table.n else MISSING
        return _at(table.facts, attribute, max(position, 0)), position != MISSING
    code = int(table.codes[attribute.name][row]) if table.n else MISSING
    names = table.names[attribute.name] or ("",)
    return names[max(code, 0)], code != MISSING


def _at(facts: Facts, attribute: Attribute, position: int) -> Any:
    """The value of a column at a position of its lattice."""
    if attribute.kind_facts.listed:
        return attribute.ordered[position]
    lattice = facts.lattice(attribute.name)
    return lattice.lo + position * lattice.step


def _statistic(facts: Facts, part: dict[str, Any]) -> tuple[Truth, Expected]:
    kind = part.get("kind")
    if kind not in _STATISTICS:
        raise OptionError(f"a statistic is one of {', '.join(_STATISTICS)}, got '{kind}'.")
    needed = {"count": (), "quantile": ("column", "q")}.get(kind, ("column",))
    check_keys(f"the statistic {kind}", part, ("kind", *needed), ("where", *PART_OPTIONS))
    where = parse_where(part["where"], facts) if "where" in part else None
    if kind == "count":
        usual = None if facts.rows is None else Lattice(Fraction(0), Fraction(facts.rows), Fraction(1))
        return _counted(where), of_lattice(usual, part, None)
    attribute = facts.attribute(part["column"])
    if kind == "quantile":
        q = as_number("q", part["q"])
        if not 0 <= q <= 1:
            raise OptionError(f"q must be between 0 and 1, got {decimal_text(q)}.")
        lattice = facts.lattice(attribute.name)
        if attribute.kind_facts.listed:
            return _ranked(facts, attribute, q, where), of_column(facts, attribute, part)
        return _ranked(facts, attribute, q, where), of_lattice(lattice, part, attribute)
    lattice = numeric_lattice(facts, attribute.name)
    if kind == "mean":
        return _added(attribute.name, lattice, where, mean=True), of_lattice(lattice, part, None)
    usual = None
    if facts.rows is not None:
        ends = (facts.rows * min(lattice.lo, Fraction(0)), facts.rows * max(lattice.hi, Fraction(0)))
        usual = Lattice(*ends, (ends[1] - ends[0]) / (1 << 12))
    return _added(attribute.name, lattice, where, mean=False), of_lattice(usual, part, None)


def _counted(where: Where | None) -> Truth:
    return lambda table: (Fraction(int(np.count_nonzero(matching(where, table)))), True)


def _added(column: str, lattice: Lattice, where: Where | None, *, mean: bool) -> Truth:
    """The exact sum or mean of the records that have a value; there is no mean of nothing."""

    def truth(table: QueryTable) -> tuple[Fraction, bool]:
        positions, chosen = table.positions[column], present_values(table, column, where)
        number = int(np.count_nonzero(chosen))
        total = lattice.lo * number + lattice.step * add_up(np.multiply(positions, chosen))
        return (total / max(number, 1), number > 0) if mean else (total, True)

    return truth


def _ranked(facts: Facts, attribute: Attribute, q: Fraction, where: Where | None) -> Truth:
    def truth(table: QueryTable) -> tuple[Any, bool]:
        order = table.orders[attribute.name]
        upto = order.upto(matching(where, table))
        number = int(upto[-1])
        place = int(np.searchsorted(upto[1:], max(math.ceil(q * number), 1), side="left"))
        position = int(order.values[min(place, order.values.size - 1)]) if order.values.size else 0
        return _at(facts, attribute, position), number > 0

    return truth
