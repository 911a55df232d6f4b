"""Exact accounting of private choices of k and of queries."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
import shoal.release.protection
from shoal.errors import OptionError
from shoal.io import read
from shoal.privacy import Accountant
from shoal.query.facts import prepare as prepare_queries
from shoal.query.spec import KINDS, answer, cost, parse
from shoal.release.protection import prepare
from shoal.tuning.grid import Setting
from shoal.tuning.private import choose_privately

from .accounting import accounts
from .worlds import COLUMNS

ROOM = Fraction(1, 10**45)
NAMES = ("whole", "half", "level", "day", "colour")


def schema_of(names: tuple[str, ...]) -> shoal.Schema:
    return shoal.Schema.from_dict({"attribute": [{"name": name, **COLUMNS[name].declared} for name in names]})


def table_of(random: np.random.Generator, n: int, names: tuple[str, ...], gaps: float = 0.0) -> pd.DataFrame:
    found = {}
    for name in names:
        values = [COLUMNS[name].values[int(random.integers(len(COLUMNS[name].values)))] for _ in range(n)]
        if gaps and COLUMNS[name].dtype != "int64":
            # the first value stays, so that a column of texts is one of texts
            values = [values[0], *(None if random.random() < gaps else value for value in values[1:])]
        found[name] = pd.Series(values, dtype=COLUMNS[name].dtype)
    return pd.DataFrame(found)


def replaced(table: pd.DataFrame, random: np.random.Generator, gaps: float = 0.0) -> pd.DataFrame:
    row = int(random.integers(len(table)))
    other = table_of(random, 1, tuple(table), gaps)
    return pd.concat([table.iloc[:row], other, table.iloc[row + 1 :]], ignore_index=True)


def choose(table: pd.DataFrame, ks: tuple[int, ...], epsilon: Fraction) -> Setting:
    declared = schema_of(tuple(table))
    candidates = {
        Setting("ranking-dp", k): prepare(read(table), declared, "ranking-dp", 1, k, link=False) for k in ks
    }
    account = Accountant.of({"choice": epsilon}, epsilon, shoal.release.protection.noise_source(None))
    return choose_privately(candidates, account.spend("choice", epsilon))


def private_choices(pairs: int) -> Fraction:
    largest = Fraction(0)
    for seed in range(pairs):
        random = np.random.default_rng([seed, 15])
        n = int(random.integers(3, 9))
        names = ("whole",) if random.random() < 0.5 else ("whole", "half")
        table, ks = table_of(random, n, names), (1, 2, n)
        epsilon = Fraction(int(random.integers(1, 200)), 10)
        for found in accounts(lambda data: choose(data, ks, epsilon), table, replaced(table, random), seed):  # noqa: B023
            assert found.results[0] == found.results[1]
            assert found.bound <= epsilon
            assert found.lost <= found.bound + ROOM
            largest = max(largest, found.lost / epsilon)
    return largest


def test_a_private_choice_of_k_loses_no_more_than_its_budget() -> None:
    assert private_choices(12) > 0


SCHEMA = schema_of(NAMES)
CONDITIONS: tuple[Any, ...] = (
    {"column": "whole", "op": ">", "value": 4},
    {"column": "level", "op": "==", "value": "low"},
    {"column": "colour", "op": "!=", "value": "red"},
)
# those with expected answers draw from a distribution of their own, which tests/query/refinement enumerates
ENUMERATED = {"individual", "statistical", "protocol-2"}


def queries(random: np.random.Generator, kind: str, n: int) -> dict[str, Any]:
    """A query of a kind with all that it needs, at random."""
    column = str(random.choice(["whole", "half"]))
    found: dict[str, Any] = {"kind": kind, "epsilon": str(random.choice(["0.1", "1", "3"]))}
    if kind == "protocol-1":
        inner = str(random.choice([name for name, one in KINDS.items() if one.protocol == kind]))
        query = queries(random, inner, n)
        query.pop("epsilon"), query.pop("noise", None)
        return {"kind": kind, "scale": 3, "query": query}
    if kind == "histogram":
        column = str(random.choice(["colour", "level", "whole"]))
        found |= {"edges": [0, 3, 7, 10]} if column == "whole" else {}
    if kind == "quantile":
        column = str(random.choice(["whole", "half", "level", "day"]))
        found["q"] = str(random.choice(["0", "0.25", "0.5", "1"]))
    if kind == "ranking-means":
        found["k"] = int(random.integers(1, n + 1))
    if kind != "count":
        found["column"] = column
    if "where" in KINDS[kind].optional and random.random() < 0.6:
        found["where"] = CONDITIONS[int(random.integers(len(CONDITIONS)))]
    if "noise" in KINDS[kind].optional and random.random() < 0.5:
        found["noise"] = "staircase"
    return found


def answers(kind: str, pairs: int) -> Fraction:
    largest = Fraction(0)
    for seed in range(pairs):
        random = np.random.default_rng([seed, *kind.encode()])
        n = int(random.integers(2, 9))
        relation = "replace-one" if kind == "ranking-means" or random.random() < 0.5 else "add-remove"
        table = table_of(random, n, NAMES, gaps=0.2)
        other = (
            replaced(table, random, gaps=0.2)
            if relation == "replace-one"
            else table.iloc[1:].reset_index(drop=True)
        )
        raw = queries(random, kind, n)
        # what is public is settled once for either table, as a server does
        prepared = {id(data): prepare_queries(data, SCHEMA, relation) for data in (table, other)}  # type: ignore[arg-type]

        def run(data: pd.DataFrame) -> Any:
            known = prepared[id(data)]  # noqa: B023
            query = parse(raw, known.facts)  # noqa: B023
            return cost(query, known.facts), answer(query, known).value

        for found in accounts(run, table, other, seed):
            assert found.results[0] == found.results[1]
            price = found.results[0][0]
            assert found.bound <= price, raw
            assert found.lost <= found.bound + ROOM
            largest = max(largest, found.lost / price if price else largest)
    return largest


every_kind = pytest.mark.parametrize("kind", sorted(set(KINDS) - ENUMERATED))


@every_kind
def test_an_answer_loses_no_more_than_its_price(kind: str) -> None:
    assert 0 < answers(kind, 8) <= 1


@pytest.mark.slow
@every_kind
def test_hundreds_of_answers_lose_no_more_than_their_price(kind: str) -> None:
    largest = answers(kind, 150)
    assert largest == 1 or kind in ("quantile", "protocol-1")


@pytest.mark.slow
def test_hundreds_of_private_choices_lose_no_more_than_their_budget() -> None:
    assert 0 < private_choices(100) <= 1


def test_a_query_that_is_answered_beyond_its_price_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.query.answers.Linear.sensitivity", lambda self, facts: 1)
    with pytest.raises(AssertionError):
        answers("sum", 12)
    with pytest.raises(OptionError):
        parse({"kind": "sum"}, prepare_queries(table_of(np.random.default_rng(1), 3, NAMES), SCHEMA).facts)
