"""Audits of methods whose claim is about units of several rows: neighbours are whole units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.auditing import auditor, trial
from shoal.auditing.trial import World, release
from shoal.io import read
from shoal.noise import Source
from shoal.release.protection import Preparation, prepare
from tests.conftest import amount

ROWS = 3
BOUND: dict[str, Any] = {"bound": {"rows": ROWS}}
MOST: dict[str, Any] = {"max_rows": ROWS}
# every method that takes a unit of several rows under differential privacy, with a claim that an audit can test
METHODS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "laplace": ("laplace", {}, MOST, "original"),
    "ranking-dp": ("ranking-dp", {"k": 3, "columns": ["x"]}, MOST, "original"),
    "ranking-dp, given the partition": ("ranking-dp", {"k": 3}, MOST, "given-partition"),
    "mdav-dp": ("mdav-dp", {"k": 3}, MOST, "given-partition"),
    "insensitive-dp": ("insensitive-dp", {"k": 3}, MOST, "original"),
    "pram": ("pram", {"bands": 3}, MOST, "original"),
    "tree-dp": ("tree-dp", {}, MOST, "original"),
    "tree-dp, bound": ("tree-dp", {"neighbours": "add-remove"}, BOUND, "original"),
    "pairs-dp, bound": ("pairs-dp", {"rows": 12}, BOUND, "original"),
}
QUICK = ("laplace", "tree-dp, bound")


def prepared(method: str, options: dict[str, Any], unit: dict[str, Any]) -> Preparation:
    random = np.random.default_rng(1)
    table = pa.table(
        {
            "who": [f"p{row // (3 if unit is MOST else 4)}" for row in range(12)],
            "x": random.integers(0, 101, 12),
            "y": random.integers(0, 11, 12),
        }
    )
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {
                    "name": "who",
                    "kind": "nominal",
                    "role": "unit",
                    "type": "text",
                    "called": "patient",
                    **unit,
                },
                {"name": "x", "lo": 0, "hi": 100},
                {"name": "y", "lo": 0, "hi": 10},
            ]
        }
    )
    return prepare(read(table), schema, method, 2, bound_key=b"k" * 32, **options)


def audited(name: str, runs: int) -> shoal.auditing.Audit:
    method, options, unit, view = METHODS[name]
    return auditor.audit_prepared(prepared(method, options, unit), view, runs, 1 - 1e-6, seed=5, workers=1)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in METHODS]
)
def test_a_unit_loses_no_more_than_epsilon(name: str) -> None:
    # a model of pairs takes its time
    runs = 200 if name in QUICK else amount(100, 1000) if "pairs" in name else amount(1000, 10_000)
    found = audited(name, runs)
    assert found.epsilon == 2
    assert not found.refuted
    assert found.neighbours.startswith("3 records of one unit, all equal to record")


def of_the_unit(world: World, source: Source) -> trial.Released:
    """A planted fault: every row gets the ε of the unit."""
    method = replace(world.method, epsilon=world.method.unit_epsilon)
    whole = replace(world, method=method, plan=method.plan(world.described))
    return release(whole, source)


@pytest.mark.slow
def test_rows_with_the_budget_of_a_unit_are_refuted_by_units_and_not_by_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unit = {"name": "who", "kind": "nominal", "role": "unit", "type": "text", "max_rows": ROWS}
    schema = shoal.Schema.from_dict({"attribute": [unit, {"name": "x", "lo": 0, "hi": 100}]})
    # one unit alone: other rows would hide it
    one = prepare(read(pa.table({"who": ["a"] * ROWS, "x": [0, 50, 100]})), schema, "laplace", 1)

    def found() -> shoal.auditing.Audit:
        return auditor.audit_prepared(one, "original", 3000, 0.999, seed=5, workers=1, run=of_the_unit)

    assert found().refuted
    # control: neighbours that differ in one row see no fault
    monkeypatch.setattr(trial, "_others", lambda *asked: ())
    assert not found().refuted


def test_a_pair_differs_in_the_rows_of_one_unit_first() -> None:
    records = np.arange(12, dtype=np.float64).reshape(6, 2)
    units = np.array([0, 1, 0, 1, 0, 1])
    domain = trial.Domain((0.0, 0.0), (20.0, 20.0), (1.0, 1.0), (True, True))
    for removal in (False, True):
        pairs = trial.find_pairs(
            records, domain, [], individual=False, removal=removal, limit=9, units=units, rows=3
        )
        for pair in pairs:
            own = [pair.record, *pair.others]
            assert len(set(own)) == 3
            assert len(set(units[own])) == 1
            left, right = pair.sides(records)
            if removal:
                assert (left.shape[0], right.shape[0]) == (6, 3)
            else:
                assert int((left != right).any(axis=1).sum()) == 3
