"""The running total is the total of the composition rules, whatever the order of the charges."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.ledger import (
    Account,
    Balance,
    Charge,
    LedgerEntry,
    OverdrawnError,
    Register,
    Terms,
    open_ledger,
)
from shoal.query.facts import DatasetFacts, prepare
from shoal.query.price import AnswerCost as Cost
from shoal.query.price import extra, protocol_1_total, total
from shoal.query.server.answers import understand
from shoal.query.server.folder import DatasetSettings, Served
from shoal.query.spec import parse
from shoal.survey import survey, survey_schema

# on the grid of the ledger, so that nothing is rounded
amounts = st.integers(0, 150).map(lambda number: Fraction(number, 50))
persons = st.none() | st.tuples(st.sampled_from(["id", "phone"]), st.sampled_from(["1", "2", "3"]))
costs = st.lists(st.builds(Cost, epsilon=amounts, person=persons), max_size=25)


def entry_of(charge: Charge, added: Fraction) -> LedgerEntry:
    names = {field.name: None for field in dataclasses.fields(LedgerEntry)}
    made = {name: getattr(charge, name, None) for name in names}
    return LedgerEntry(**{**made, "added": added, "added_analyst": added})  # type: ignore[arg-type]


def booked(charges: list[Cost]) -> Balance:
    balance = Balance()
    for cost in charges:
        charge = Charge("d", "a", "{}", cost.epsilon, person=cost.person)
        added = balance.adds(charge)
        if cost.person is not None:
            spent = balance.persons.get(cost.person, Fraction(0))
            assert added == extra(cost, spent, balance.largest.get(cost.person[0], Fraction(0)))
        balance.book(entry_of(charge, added), added)
    return balance


@given(costs, st.randoms(use_true_random=False))
def test_the_running_total_is_the_total(charges: list[Cost], random: object) -> None:
    assert booked(charges).epsilon == total(charges)
    shuffled = list(charges)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert booked(shuffled).epsilon == total(charges)


@given(costs, st.fractions(0, 5, max_denominator=20))
def test_what_is_granted_never_exceeds_the_ceiling(charges: list[Cost], ceiling: Fraction) -> None:
    """The rule of permission by itself: grant exactly what keeps the total of all granted within the ceiling."""
    account = Account("d", terms=Terms("replace-one", ceiling, Fraction(0), {}, None, ""))
    granted: list[Cost] = []
    for cost in charges:
        charge = Charge("d", "a", "{}", cost.epsilon, person=cost.person)
        fits = total([*granted, cost]) <= ceiling
        try:
            added, own = account.permit(charge)
        except OverdrawnError:
            assert not fits
            continue
        assert fits or added == 0
        granted.append(cost)
        account.total.book(entry_of(charge, added), added)
        account.analysts.setdefault("a", Balance()).book(entry_of(charge, own), own)
    assert total(granted) <= ceiling


@pytest.fixture(scope="module")
def served() -> Served:
    return Served("survey", DatasetSettings(Fraction(1)), prepare(survey(200), survey_schema()), "")


def test_protocol_1_in_the_ledger_is_the_joint_total(tmp_path: Path, served: Served) -> None:
    """Charged one after the other, the ledger's total is the price of all of them together."""
    facts: DatasetFacts = served.table.facts
    asked = [
        {"kind": "count", "where": {"column": "age", "op": "between", "lo": lo, "hi": hi}}
        for lo, hi in ((20, 29), (30, 39), (25, 44), (18, 99), (60, 80))
    ]
    asked.append({"kind": "sum", "column": "hours per week"})
    questions = [
        {"kind": "protocol-1", "scale": str(4 + i % 2), "query": query} for i, query in enumerate(asked)
    ]
    ledger = open_ledger(tmp_path / "ledger.sqlite")
    ledger.register(Register("survey", "replace-one", None))
    for number, question in enumerate(questions, start=1):
        ledger.charge(understand(json.dumps(question).encode(), served, "ada", "").charge)
        together = protocol_1_total([parse(one, facts) for one in questions[:number]], facts)
        assert ledger.standing("survey").spent == together
    apart = sum(parse(one, facts).offer.epsilon for one in questions)
    assert together < apart
    ledger.close()
