"""What many answers cost together. In: charges of single answers. Out: exact totals. Pure functions, no state.

All rules hold for queries that are chosen one after the other, each after seeing the answers before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shoal.errors import OptionError
from shoal.query.cells import cells_of
from shoal.query.facts import Facts
from shoal.query.joint import Part, countable, joint_cost
from shoal.query.linear import counting, summing
from shoal.query.parsing import as_scale
from shoal.query.spec import Query, cost, delta
from shoal.query.where import parse_where


@dataclass(frozen=True, slots=True)
class Charge:
    """What one answer costs a person.

    Attributes:
        person: for a query about one person, the column and the value that name the person.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    person: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; fractions as text, exact."""
        found: dict[str, Any] = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return found if self.person is None else {**found, "person": list(self.person)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Charge:
        person = raw.get("person")
        return cls(
            Fraction(raw["epsilon"]),
            Fraction(raw["delta"]),
            None if person is None else (str(person[0]), str(person[1])),
        )


def charge(query: Query, facts: Facts) -> Charge:
    """The charge of a query."""
    return Charge(cost(query, facts), delta(query, facts), query.offer.person)


def total(charges: Sequence[Charge]) -> Fraction:
    """The ε of all charges together.

    Charges add up, except that of queries about single persons only the dearest person counts: a record is about one
    person, so it moves the answers about one person only. Persons named by different columns may be the same ones,
    so those of different columns add up again.

    Guarantee:
        The answers together are `total`-DP if each is what its charge says. Under replace-one a record may change from
        one person to another and moves the answers about both by half of their charges each: no more than the dearer.

    Reference:
        Thesis, Proposition 4 and Tables 5.3, 5.4; docs/proofs/refinement.md, section 5.

    >>> about = [Charge(Fraction(1), person=("id", name)) for name in ("1", "2", "2")]
    >>> total([*about, Charge(Fraction(1, 2))])
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


def total_delta(charges: Sequence[Charge]) -> Fraction:
    """The δ of all charges together: the sum.

    >>> total_delta([Charge(Fraction(1), Fraction(1, 10))] * 2)
    Fraction(1, 5)
    """
    return sum((one.delta for one in charges), Fraction(0))


def extra(one: Charge, person_spent: Fraction, column_largest: Fraction) -> Fraction:
    """What one more charge adds to the total.

    Args:
        one: the new charge.
        person_spent: the sum of the charges about the same person so far.
        column_largest: the largest such sum of any person named by the same column.

    >>> extra(Charge(Fraction(1), person=("id", "7")), Fraction(1, 2), Fraction(1))
    Fraction(1, 2)
    """
    if one.person is None:
        return one.epsilon
    return max(person_spent + one.epsilon - column_largest, Fraction(0))


def protocol_1_total(queries: Sequence[Query], facts: Facts) -> Fraction:
    """The ε of several queries of kind protocol-1 together: by joint sensitivity, never above the sum.

    Where there are too many conditions to try all combinations, queries are taken together in blocks, in their order.

    Guarantee:
        Valid for queries chosen one after the other; see `joint_cost`.

    Reference:
        Thesis, Protocol 1, condition Δ(f_1, ..., f_i)/λ ≤ ε, with a λ of its own for every query.
    """
    blocks: list[list[Query]] = []
    parts: list[list[Part]] = []
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
        found += apart if together is None else min(apart, together * facts.rows_per_unit)
    return found


def _parts(query: Query, facts: Facts) -> list[Part]:
    """The numbers that a query of kind protocol-1 adds noise to."""
    if query.kind != "protocol-1":
        raise OptionError("joint-sensitivity-queries-kind-protocol-1", found=query.kind)
    inner, scale = query.options["query"], as_scale(query.options["scale"])
    where = parse_where(inner["where"], facts) if "where" in inner else None
    match inner["kind"]:
        case "count":
            return [Part(counting(facts, where), scale)]
        case "sum":
            return [Part(summing(facts, inner["column"], where), scale)]
        case _:
            cells = cells_of(facts, inner)
            return [Part(counting(facts, where), scale, cells, number) for number in range(len(cells.names))]
