"""Sums in which each unit's own sum is clipped: values, sensitivity by brute force, and refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import OptionError
from shoal.query.facts import QueryTable, prepare
from shoal.query.spec import answer, cost, parse, preview


def schema_of(lo: str, hi: str, step: str, max_rows: int = 9) -> shoal.Schema:
    entries: list[dict[str, Any]] = [
        {"name": "who", "kind": "nominal", "role": "unit", "type": "text", "max_rows": max_rows},
        {"name": "x", "lo": lo, "hi": hi, "step": step},
        {"name": "on", "kind": "nominal", "values": ["a", "b"]},
    ]
    return shoal.Schema.from_dict({"attribute": entries})


def table_of(
    rows: list[tuple[str, float | None, str]], *domain: Any, adjacency: Any = "add-remove"
) -> QueryTable:
    columns = {
        "who": pa.array([row[0] for row in rows], pa.string()),
        "x": pa.array([row[1] for row in rows], pa.float64()),
        "on": pa.array([row[2] for row in rows], pa.string()),
    }
    return prepare(pa.table(columns), schema_of(*domain), adjacency)


def exact(table: QueryTable, most: Any, monkeypatch: pytest.MonkeyPatch, where: Any = None) -> float:
    """The answer without noise."""
    raw = {"kind": "sum", "column": "x", "epsilon": 1, "bound": {"sum": most}} | (
        {"where": where} if where else {}
    )
    with monkeypatch.context() as patch:
        patch.setattr("shoal.query.answers.AnswerNoise.draw", lambda self, size, *rest: [0] * size)
        found: float = answer(parse(raw, table.facts), table).value
    return found


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [
        (("0", "10", "0.5"), 0, 1),
        (("-4", "10", "0.5"), -1, 1),
        (("-9", "-1", "0.5"), -1, 0),
        (("-0.1", "5", "0.3"), -1, 1),
    ],
)
def test_each_units_sum_is_clipped(
    domain: tuple[str, str, str], low: int, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(3)
    lo, hi, step = map(float, domain)
    places = np.arange(0, round((hi - lo) / step)) * step + lo
    rows = [
        (
            f"p{random.integers(6)}",
            None if random.random() < 0.2 else float(random.choice(places)),
            str(random.choice(["a", "b"])),
        )
        for _ in range(40)
    ]
    table = table_of(rows, *domain, 40)
    for most, on in product((1.5, 6.0, 60.0), (None, "a")):
        wanted = 0.0
        for who in {row[0] for row in rows}:
            mine = sum(x for one, x, kind in rows if one == who and x is not None and on in (None, kind))
            wanted += min(max(mine, low * most), high * most)
        where = None if on is None else {"column": "on", "op": "==", "value": on}
        # rounded down to the lattice of the sums
        assert exact(table, most, monkeypatch, where) == pytest.approx(wanted, abs=6 * 0.1)


def test_no_unit_changes_the_sum_by_more_than_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brute force over all rows of one unit beside another: added or removed, and replaced."""
    domain = ("-2", "3", "1")
    others = [("b", 3.0, "a"), ("b", 2.0, "a")]
    tables = [
        [],
        *([("a", x, "a") for x in xs] for n in (1, 2) for xs in product((-2.0, 0.0, 3.0), repeat=n)),
    ]
    for most in (1, 4, 20):
        sums = [exact(table_of([*others, *own], *domain), most, monkeypatch) for own in tables]
        facts = table_of(others, *domain).facts
        raw = {"kind": "sum", "column": "x", "epsilon": 1, "bound": {"sum": most}}
        removed = parse(raw, facts).offer.sensitivity
        assert removed == most
        assert max(abs(one - sums[0]) for one in sums) == min(removed, 6)
        replaced = table_of(others, *domain, adjacency="replace-one").facts
        wide = parse(raw, replaced).offer.sensitivity
        assert wide == 2 * most
        assert max(sums) - min(sums) <= wide


def test_a_unit_pays_the_epsilon_of_the_query_whatever_its_rows() -> None:
    for rows in (1, 9):
        facts = table_of([("a", 1.0, "a")], "0", "10", "1", rows).facts
        query = parse({"kind": "sum", "column": "x", "epsilon": "1/6", "bound": {"sum": 25}}, facts)
        assert cost(query, facts) == Fraction(1, 6)
        assert "scale 150" in str(query.offer.noise)
        stated = preview(query, facts)["statement"]
        assert stated["sensitivity"] == "25"
        assert any("clipped to at most 25" in said for said in stated["conditions"])
        assert not any("divided by that number" in said for said in stated["conditions"])


def test_sums_of_wide_columns_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = ("0", str(2**52), "1")
    rows: list[Any] = [("a", float(2**52), "a")] * 9 + [("b", 5.0, "a")]
    assert exact(table_of(rows, *domain), 2**50, monkeypatch) == 2**50 + 5


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ({"sum": 0}, "at least one step"),
        ({"sum": "1e40"}, "digits before"),
        ({"rows": 3}, "rows"),
        (3, "object"),
    ],
)
def test_a_bound_that_is_none_is_refused(bound: Any, words: str) -> None:
    facts = table_of([("a", 1.0, "a")], "0", "10", "1").facts
    with pytest.raises(OptionError, match=words) as refused:
        parse({"kind": "sum", "column": "x", "epsilon": 1, "bound": bound}, facts)
    assert "\n" not in str(refused.value)


def test_it_needs_a_unit_and_is_not_carried_by_a_protocol() -> None:
    plain = shoal.Schema.from_dict({"attribute": [{"name": "x", "lo": 0, "hi": 9}]})
    facts = prepare(pa.table({"x": [1, 2]}), plain, "add-remove").facts
    with pytest.raises(OptionError, match="no unit column"):
        parse({"kind": "sum", "column": "x", "epsilon": 1, "bound": {"sum": 3}}, facts)
    carried = {"kind": "sum", "column": "x", "bound": {"sum": 3}}
    with pytest.raises(OptionError, match="bound"):
        parse({"kind": "protocol-1", "scale": 3, "query": carried}, facts)
