"""Rules between columns in a synthetic release: what is measured in their place, and rows that satisfy them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.text import Message

if TYPE_CHECKING:
    from shoal.columns import Described
    from shoal.noise import Source
    from shoal.numbers import Floats
    from shoal.privacy import Plan


def ruled_plan(described: Described, plan: Plan) -> Plan:
    """The plan of a method that keeps rules, with statement messages and the cost of a change in one column alone.

    Guarantee:
        A change in one column changes the coordinates of its rules at most, so it costs at most what these cost
        together, and never more than everything.
    """
    book = described.rules
    if not book:
        return plan
    costs = dict(plan.per_attribute or {})
    if costs:
        everything = sum(plan.spending.values(), Fraction(0))
        for names in book.groups:
            together = sum((costs[name] for name in names if name in costs), Fraction(0))
            costs |= dict.fromkeys(names, min(together, everything))
    per_attribute = None if plan.per_attribute is None else costs
    return replace(plan, conditions=(*plan.conditions, *rule_terms(described)), per_attribute=per_attribute)


def rule_terms(described: Described) -> tuple[Message, ...]:
    """Statement messages about rules that released rows satisfy, and about columns that are not measured."""
    book = described.rules
    if not book:
        return ()
    found = [Message.of("rows-keep-rules", count=len(book.numbered))]
    if book.derived:
        found.append(Message.of("columns-derived", columns=book.derived))
    if book.joint:
        together = tuple(Message.of("columns-together", columns=one.columns) for one in book.joint.values())
        found.append(Message.of("columns-measured-together", groups=together))
    if book.coordinates:
        found.append(Message.of("columns-as-distances", columns=tuple(book.coordinates)))
    return tuple(found)


def under_rules(described: Described, column: str) -> dict[str, Any]:
    """What a measured column is under the rules, as `measurements.json` states it."""
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return {}
    assert described.book is not None
    if column in described.book.joint:
        return {"together": list(described.book.joint[column].columns)}
    if column in described.book.coordinates:
        return {"above": [order.low for order in described.book.coordinates[column][0]]}
    return {}


def rules_withheld(described: Described) -> bool:
    """Whether a rule was read off the records, so that it is not published."""
    from shoal.columns import CodedByRules

    book = described.book if isinstance(described, CodedByRules) else described.rules
    return book is not None and any(rule.from_records for _, rule in book.numbered)


def keeping_rules(described: Described, drawn: dict[str, Floats], source: Source) -> dict[str, Floats]:
    """Rows of all columns that satisfy the rules, from rows in the coordinates that were measured.

    Guarantee:
        A function of drawn rows and fresh chance, so post-processing: docs/proofs/trees.md#rules.
    """
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return drawn
    random = np.random.Generator(np.random.Philox(int(source.child("rules").words(1)[0])))
    return described.decoded(drawn, random)


def broken_rules(described: Described) -> dict[str, Any]:
    """How many records break each rule: a private fact for the internal report."""
    from shoal.columns import CodedByRules

    if not isinstance(described, CodedByRules):
        return {}
    assert described.book is not None
    found = described.book.broken(described.values())
    return {"rules_broken": {rule.words: found[number] for number, rule in described.book.numbered}}
