"""Accounting of releases and answers with neighbours that are whole units, in ε and in ρ; planted faults."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
import shoal.columns.description as description
import shoal.privacy.accountant as accountant
import shoal.query.facts as query_facts
from shoal.io import read
from shoal.noise import rho_from
from shoal.privacy import Currency
from shoal.query.facts import prepare as prepare_queries
from shoal.query.spec import answer, cost, parse
from shoal.release.protection import carry_out, prepare

from .accounting import accounts, concentrated, total
from .test_accounting import ROOM
from .transcript import recording, replaying

KEY = bytes(range(32))
ROWS = 2
DELTA = "0.000001"


def schema_of(bound: int | None = ROWS) -> shoal.Schema:
    unit: dict[str, Any] = {"name": "who", "kind": "nominal", "role": "unit", "type": "integer"}
    unit |= {"max_rows": 4} if bound is None else {"bound": {"rows": bound}}
    columns = [{"name": f"s{i}", "lo": 0, "hi": 1} for i in range(3)]
    return shoal.Schema.from_dict({"attribute": [unit, *columns, {"name": "x", "lo": 0, "hi": 10}]})


def tables(alike: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table, and the same without one unit of four rows, which are alike or not."""
    random = np.random.default_rng(4)
    n = 24
    found = pd.DataFrame({"who": np.arange(n) // 4, **{f"s{i}": random.integers(0, 2, n) for i in range(3)}})
    found["x"] = random.integers(0, 11, n)
    if alike:
        found.loc[0:3, ["s0", "s1", "s2", "x"]] = [0, 0, 0, 10]
    return found, found.iloc[4:].reset_index(drop=True)


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("pairs-dp", {"epsilon": 20, "rows": 24}),
    ("tree-dp", {"epsilon": 3, "neighbours": "add-remove"}),
]


def release_losses(
    method: str, settings: dict[str, Any], bound: int | None = ROWS, alike: bool = True
) -> tuple[Fraction, Fraction]:
    """The largest loss of a release between the two tables over what it states, and the largest bound on it."""
    before, after = tables(alike)

    def run(data: pd.DataFrame) -> shoal.Release:
        return carry_out(prepare(read(data), schema_of(bound), method, bound_key=KEY, **settings))

    worst, most = Fraction(0), Fraction(0)
    for found in accounts(run, before, after, seed=3):
        stated = found.results[0].statement.epsilon
        assert stated == settings["epsilon"]
        worst, most = max(worst, found.lost / stated), max(most, found.bound / stated)
    return worst, most


@pytest.mark.parametrize(("method", "settings"), METHODS)
@pytest.mark.parametrize("bound", [ROWS, None])
def test_a_unit_loses_at_most_what_a_release_states(
    method: str, settings: dict[str, Any], bound: int | None
) -> None:
    lost, most = release_losses(method, settings, bound)
    assert lost <= 1 + ROOM
    assert most <= 1
    # rows that are alike reach it where all of ε is spent on signs
    if "rows" in settings:
        assert most >= Fraction(9, 10)


def test_a_unit_loses_at_most_rho() -> None:
    before, after = tables()

    def run(data: pd.DataFrame) -> shoal.Release:
        return carry_out(
            prepare(read(data), schema_of(), "pairs-dp", 20, delta=DELTA, rows=24, bound_key=KEY)
        )

    with recording(seed=2) as mine:
        release = run(before)
    with replaying(mine.draws) as other:
        run(after)
    rho = release.statement.rho
    assert rho is not None
    assert Fraction(9, 10) * rho <= total(mine.draws, other.draws, concentrated) <= rho


def not_bounded(table: Any, schema: Any, kept: Any, *rest: Any) -> Any:
    return kept


def test_a_bound_that_is_not_applied_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "bounded_rows", not_bounded)
    assert release_losses(*METHODS[0])[1] > 1


def by_position(table: Any, schema: Any, kept: Any, most: int, *rest: Any) -> Any:
    """Every unit's rows are cut at a row number of the whole table, which the units before them move."""
    return (
        np.flatnonzero(np.arange(table.n) % 4 < most)
        if table.n % 8
        else np.flatnonzero(np.arange(table.n) % 4 >= most)
    )


def test_rows_chosen_by_their_position_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "bounded_rows", by_position)
    assert release_losses(*METHODS[0], alike=False)[1] > 1


QUERIES: list[dict[str, Any]] = [
    {"kind": "count", "where": {"column": "s0", "op": "==", "value": 0}},
    {"kind": "sum", "column": "x"},
    {"kind": "sum", "column": "x", "bound": {"sum": 7}},
    {"kind": "mean", "column": "x"},
    {"kind": "histogram", "column": "x", "edges": [0, 5, 10]},
    {"kind": "quantile", "column": "x", "q": "0.5"},
]


def answer_losses(raw: dict[str, Any], bound: int | None = ROWS) -> Fraction:
    before, after = tables()

    def run(data: pd.DataFrame) -> Any:
        table = prepare_queries(data, schema_of(bound), "add-remove", KEY)
        query = parse({**raw, "epsilon": 1}, table.facts)
        assert cost(query, table.facts) == 1
        return answer(query, table).value

    return max(found.bound for found in accounts(run, before, after, seed=3))


@pytest.mark.parametrize("raw", QUERIES, ids=lambda raw: "-".join(raw))
def test_a_unit_loses_at_most_the_price_of_an_answer(raw: dict[str, Any]) -> None:
    assert answer_losses(raw) <= 1
    assert answer_losses(raw, None) <= 1


def test_an_answer_from_all_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds for a release, and is forgotten for an answer."""
    monkeypatch.setattr(query_facts, "bounded_rows", not_bounded)
    assert release_losses(*METHODS[0])[1] <= 1
    assert answer_losses(QUERIES[0]) == 2


def row_budgets(epsilon: Fraction, bound: int) -> dict[str, Fraction]:
    """What a row may spend where a unit is guaranteed ε: in a release, in one with a δ (as ρ), and in an answer."""
    data = tables()[0]
    pure, concentrated_one = (
        prepare(read(data), schema_of(bound), "pairs-dp", epsilon, bound_key=KEY, rows=24, **more).method
        for more in ({}, {"delta": DELTA})
    )
    table = prepare_queries(data, schema_of(bound), "add-remove", KEY)
    query = parse({"kind": "count", "epsilon": str(epsilon)}, table.facts)
    assert cost(query, table.facts) == epsilon
    assert pure.epsilon is not None
    assert concentrated_one.rho is not None
    return {
        "release": pure.epsilon,
        "release, rho": concentrated_one.rho / rho_from(epsilon, Fraction(DELTA)),
        "answer": query.offer.epsilon,
    }


@pytest.mark.parametrize(("epsilon", "bound"), [(Fraction(1, 2), 2), (Fraction(3), 3), (Fraction(1, 7), 1)])
def test_releases_and_answers_give_a_row_the_same_budget(epsilon: Fraction, bound: int) -> None:
    found = row_budgets(epsilon, bound)
    assert found == {
        "release": epsilon / bound,
        "release, rho": Fraction(1, bound**2),
        "answer": epsilon / bound,
    }


def test_one_function_computes_the_price_of_a_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in it reaches releases, concentrated ones and answers alike: none of them has a price of its own."""
    honest, asked = accountant.unit_price, []

    def dearer(amount: Fraction, rows: int, currency: Currency = Currency.EPSILON) -> Fraction:
        asked.append(currency)
        return (2 if rows > 1 else 1) * honest(amount, rows, currency)

    before = row_budgets(Fraction(3), 3)
    for module in ("privacy.accountant", "privacy.statement", "mechanisms.method", "query.spec"):
        monkeypatch.setattr(f"shoal.{module}.unit_price", dearer)
    after = row_budgets(Fraction(3), 3)
    assert after == {name: amount / 2 for name, amount in before.items()}
    assert set(asked) == set(Currency)
