"""A question takes the same work whether it is about nobody, one person or everybody: counted, not timed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.noise import Seeded
from shoal.query.facts import QueryTable, prepare
from shoal.query.spec import answer, parse

ROWS = 400


def people() -> QueryTable:
    """Nobody is older than 99, nobody lives in 'Z', and person 'p9999' is not there."""
    pick = np.random.default_rng(5)
    schema = Schema(
        (
            Attribute("id", "nominal", "identifier"),
            Attribute("age", lo=Fraction(0), hi=Fraction(150), step=Fraction(1)),
            Attribute("income", lo=Fraction(0), hi=Fraction(1000), step=Fraction(1)),
            Attribute("town", "nominal", "other", type="text"),
            Attribute("size", "ordinal", ordered=("S", "M", "L")),
        )
    )
    incomes = [None if i % 50 == 3 else int(value) for i, value in enumerate(pick.integers(0, 1001, ROWS))]
    data = pa.table(
        {
            "id": [f"p{i}" for i in range(ROWS)],
            "age": pick.integers(18, 100, ROWS),
            "income": incomes,
            "town": [None if i % 40 == 7 else "ABC"[int(v)] for i, v in enumerate(pick.integers(0, 3, ROWS))],
            "size": ["SML"[int(v)] for v in pick.integers(0, 3, ROWS)],
        }
    )
    return prepare(data, schema)


PEOPLE = people()
Log = list[tuple[Any, ...]]


class Counted(np.ndarray):
    """An array that notes every operation on it and on what is made from it, with the sizes that took part."""

    log: Log

    def __array_finalize__(self, other: Any) -> None:
        self.log = getattr(other, "log", [])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        self.log.append((ufunc.__name__, method, *(np.size(one) for one in inputs)))
        plain = [one.view(np.ndarray) if isinstance(one, Counted) else one for one in inputs]
        if "out" in options:
            options["out"] = tuple(
                o.view(np.ndarray) if isinstance(o, Counted) else o for o in options["out"]
            )
        return self._wrap(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        self.log.append((function.__name__, *_sizes(inputs)))
        return self._wrap(function(*_plain(inputs), **_plain(options)))

    def __getitem__(self, key: Any) -> Any:
        found = self._wrap(self.view(np.ndarray)[_plain(key)])
        if np.size(found) > 1:
            self.log.append(("take", self.size, np.size(found)))
        return found

    def _wrap(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(self._wrap(one) for one in found)
        if isinstance(found, np.ndarray) and found.ndim:
            made = found.view(Counted)
            made.log = self.log
            return made
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, Counted):
        return value.view(np.ndarray)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return type(value)(map(_plain, value)) if isinstance(value, tuple | list) else value


def _sizes(value: Any) -> list[int]:
    if isinstance(value, np.ndarray):
        return [value.size]
    return [size for one in value for size in _sizes(one)] if isinstance(value, tuple | list) else []


def counted(table: QueryTable, log: Log) -> QueryTable:
    def of(array: Any) -> Any:
        made = array.view(Counted)
        made.log = log
        return made

    return dataclasses.replace(
        table,
        positions={name: of(array) for name, array in table.positions.items()},
        codes={name: of(array) for name, array in table.codes.items()},
        orders={
            name: dataclasses.replace(
                order,
                rows=of(order.rows),
                values=of(order.values),
                ranks=None if order.ranks is None else of(order.ranks),
            )
            for name, order in table.orders.items()
        },
    )


def work(raw: dict[str, Any], table: QueryTable = PEOPLE) -> tuple[Log, list[str]]:
    """What is done to arrays for one answer, and which functions of the package are called."""
    log: Log = []
    calls: list[str] = []
    query, watched = parse(raw, table.facts), counted(table, log)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # what the noise does follows from its bits, and the up to three segments of a law from the truth
        if (
            event == "call"
            and "/shoal/query/" in code.co_filename
            and not code.co_qualname.startswith(("refine.", "sample.", "_move."))
        ):
            calls.append(code.co_qualname)

    sys.setprofile(note)
    try:
        answer(query, watched, Seeded(3))
    finally:
        sys.setprofile(None)
    return log, calls


def older_than(age: int) -> dict[str, Any]:
    return {"column": "age", "op": ">", "value": age}


NOBODY, SOME, ALL = older_than(120), older_than(60), older_than(1)
TOWNS = [{"column": "town", "op": "in", "values": values} for values in (["Z", "Y"], ["A", "B"], ["A", "Z"])]
AGES = [{"column": "age", "op": "in", "values": values} for values in ([130, 131], [40, 41], [40, 131])]
ASKED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "count": lambda where: {"kind": "count", "where": where},
    "sum": lambda where: {"kind": "sum", "column": "income", "where": where},
    "mean": lambda where: {"kind": "mean", "column": "income", "where": where},
    "histogram": lambda where: {
        "kind": "histogram",
        "column": "income",
        "edges": [0, 10, 500, 1000],
        "where": where,
    },
    "cells": lambda where: {
        "kind": "histogram",
        "column": "town",
        "cells": ["A", "B", "Q"],
        "where": where,
    },
    "quantile": lambda where: {"kind": "quantile", "column": "income", "q": "0.5", "where": where},
    "statistical mean": lambda where: {
        "kind": "statistical",
        "statistic": {"kind": "mean", "column": "income", "where": where},
    },
    "statistical count": lambda where: {
        "kind": "statistical",
        "statistic": {"kind": "count", "where": where},
    },
    "statistical quantile": lambda where: {
        "kind": "statistical",
        "statistic": {"kind": "quantile", "column": "income", "q": "0.25", "where": where},
    },
    "statistical several": lambda where: {
        "kind": "statistical",
        "statistics": [
            {
                "kind": "mean",
                "column": "income",
                "where": where,
                "range": {"lo": 0, "hi": 1000, "step": 100},
            },
            {"kind": "quantile", "column": "size", "q": "0.5", "where": where},
        ],
    },
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("wheres", [[NOBODY, SOME, ALL], TOWNS, AGES], ids=["order", "labels", "list"])
def test_a_filter_that_nobody_meets_takes_the_same_work(name: str, wheres: list[Any]) -> None:
    found = [work({**ASKED[name](where), "epsilon": "0.5"}) for where in wheres]
    assert found[0][0], "the instrument saw nothing"
    for log, calls in found[1:]:
        assert log == found[0][0]
        assert calls == found[0][1]


@pytest.mark.parametrize(
    "more",
    [
        {"column": "income"},
        {"column": "town", "values": ["A", "B", "C"]},
        {"column": "size"},
        {"columns": ["size", {"column": "age", "range": {"lo": 0, "hi": 150, "step": 10}}]},
        {"column": "income", "prior": {"kind": "normal", "mean": 300, "sd": 50}, "delta": "0.001"},
    ],
)
def test_a_person_who_is_not_there_takes_the_same_work(more: dict[str, Any]) -> None:
    def about(person: str) -> tuple[Log, list[str]]:
        key = {"column": "id", "value": person}
        return work({"kind": "individual", "epsilon": "0.5", "key": key, **more})

    there, missing, absent = about("p5"), about("p3"), about("p9999")
    assert there == absent
    # a person whose value is missing is answered from the prior, too
    assert missing[0] == absent[0]


def test_the_instrument_sees_rows_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way sums were computed before: only over the rows that meet the conditions."""
    from shoal.query import answers
    from shoal.query.facts import matching

    def shortened(self: answers.Linear, table: QueryTable) -> int:
        positions = table.positions[self.column or ""]
        positions = positions[matching(self.where, table) & (positions >= 0)]
        return self.factor * answers.add_up(positions) + self.offset * int(positions.size)

    monkeypatch.setattr(answers.Linear, "total", shortened)
    asked = [{**ASKED["sum"](where), "epsilon": "0.5"} for where in (NOBODY, SOME)]
    assert work(asked[0])[0] != work(asked[1])[0]
