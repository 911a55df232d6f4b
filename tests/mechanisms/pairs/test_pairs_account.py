"""The account of pairs-dp: a run spends what its plan reserved, in every world, and nothing is drawn beyond that."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import shoal
from shoal.io import read
from shoal.mechanisms.pairs import measure_pairs as joint
from shoal.mechanisms.pairs import mechanism, model
from shoal.mechanisms.pairs.budget import OF_ALL, OF_ONE, OF_ROWS, OF_THREE, OF_TWO, OneWay, PureEpsilon
from shoal.noise import Seeded
from shoal.privacy import Accountant, Currency, OverspendError
from shoal.progress import silent
from shoal.release.protection import Preparation, prepare
from tests.conftest import examples

DELTA = "0.000001"
NAMES = {"c": 3, "n": 20, "o": 1}
NUMBERS = {"x": 1001, "p": 1001, "h": 99, "f": 6, "s": 2}
CLAIMS: list[dict[str, Any]] = [
    {**claim, **rows}
    for claim in ({}, {"delta": DELTA})
    for rows in ({}, {"rows": 50}, {"rows": 9_000}, {"neighbours": "replace-one"})
]


@pytest.fixture
def no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not drawn: they take most of the time, and cost nothing."""

    def draw_values(found: Any, described: Any, *_: Any) -> dict[str, NDArray[np.float64]]:
        return {column: np.zeros(1) for column in described.columns}

    monkeypatch.setattr(mechanism, "draw_pair_values", draw_values)


def world(
    columns: str, n: int, gaps: str = "", seed: int = 0, **settings: Any
) -> tuple[Preparation, Accountant]:
    """A prepared release, and the account of its run.

    Args:
        columns: a letter for each: x, h, f and s are numbers of many, 99, six and two values, p of many with two
            spikes; n, c and o are names, of which there are twenty, three and one.
        gaps: places of columns in which every third value is missing.
    """
    random = np.random.default_rng(seed)
    data: dict[str, Any] = {}
    entries: list[dict[str, Any]] = []
    for place, letter in enumerate(columns):
        entry: dict[str, Any] = {"name": f"{letter}{place}"}
        if letter in NUMBERS:
            values = random.integers(0, NUMBERS[letter], n).astype(float)
            entry |= {"lo": 0, "hi": NUMBERS[letter] - 1, "step": 1}
            entry |= {"spikes": [0, 500]} if letter == "p" else {}
            if str(place) in gaps:
                values[::3] = np.nan
                entry["missing"] = "category"
        else:
            domain = [f"name {number}" for number in range(NAMES[letter])]
            values = random.choice(domain, n)
            entry |= {"kind": "nominal", "values": domain}
        data[entry["name"]] = values
        entries.append(entry)
    schema = shoal.Schema.from_dict({"attribute": entries})
    prepared = prepare(read(pd.DataFrame(data)), schema, "pairs-dp", seed=seed, **settings)
    return prepared, prepared.account()


def run(prepared: Preparation, account: Accountant) -> None:
    prepared.method.run(prepared.described, prepared.plan, account, silent)


def assert_all_is_spent(prepared: Preparation, account: Accountant) -> None:
    """What is spent on each purpose is what was reserved for it, and all of it is the budget."""
    method, reserved = prepared.method, prepared.plan.spending
    total = method.rho or method.budget
    assert account.currency == (Currency.EPSILON if method.pure else Currency.RHO)
    assert account.unspent() == {}
    assert sum(reserved.values()) == total == account.spent()
    for purpose, amount in reserved.items():
        parts = [OF_ONE, OF_TWO, OF_THREE] if purpose == OF_ALL else [purpose]
        assert sum((account.spent(part) for part in parts), Fraction(0)) == amount
    assert (OF_ROWS in account.reserved) == (method.adjacency.hides_size and method.rows is None)


@pytest.mark.usefixtures("no_rows")
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize(
    ("columns", "gaps"),
    [("s", ""), ("xxss", ""), ("xfsx", "013"), ("sssss", ""), ("xscno", ""), ("so", "0"), ("phx", "1")],
)
def test_all_that_is_reserved_is_spent(columns: str, gaps: str, claim: dict[str, Any]) -> None:
    target = f"{columns[-1]}{len(columns) - 1}"
    sizes = ((1, "0.5"), (30, "20"))
    wanted: list[dict[str, Any]] = [{"triples": True}, {"target": target}]
    for (n, epsilon), wishes in itertools.product(sizes, wanted):
        settings = {"epsilon": epsilon, **wishes, **claim}
        prepared, account = world(columns, n, gaps, **settings)
        run(prepared, account)
        assert_all_is_spent(prepared, account)


@pytest.mark.parametrize("delta", [None, DELTA])
def test_every_measurement_is_in_the_account(delta: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_NORMAL", 2.0)
    monkeypatch.setattr(joint, "TOO_MUCH", 10.0**9)
    monkeypatch.setattr(OneWay, "least_frequent", lambda *_: -1.0)
    worlds: dict[str, dict[str, Any]] = {
        "xxssfc": {"epsilon": 5, "rows": 9_000, "triples": True},
        "xps": {"epsilon": 1, "rows": 100},
        "s": {"epsilon": 1},
    }
    seen = set()
    for columns, settings in worlds.items():
        prepared, account = world(columns, 24, delta=delta, **settings)
        run(prepared, account)
        assert_all_is_spent(prepared, account)
        seen |= {(charge.purpose, re.sub(r",.*| \d$| \(.*", "", charge.what)) for charge in account.charges}
    assert {(purpose, re.sub(r" of( attribute)? [a-z]?\d$", "", what)) for purpose, what in seen} == {
        (OF_ROWS, OF_ROWS),
        (OF_ONE, "two-valued attributes"),
        (OF_ONE, "values"),
        (OF_ONE, "heaps"),
        (OF_ONE, "thresholds"),
        (OF_ONE, "cut points"),
        (OF_ONE, "halves of intervals"),
        (OF_ONE, "frequent values"),
        (OF_ONE, "counts of frequent values"),
        (OF_ONE, "sums inside intervals"),
        (OF_TWO, "products of values"),
        (OF_TWO, "products of signs"),
        (OF_TWO, "contrasts"),
        (OF_THREE, "choice of triple"),
        (OF_THREE, "products of three signs"),
    }


@pytest.mark.parametrize(
    ("columns", "settings", "left"),
    [
        # nothing can be measured of columns of one value
        ("o", {"rows": 5}, {OF_ONE: 1}),
        ("oo", {"neighbours": "replace-one", "delta": DELTA}, {OF_ONE: 1}),
        # names are one group, or drown: then there is no pair, which shows only once the names are counted
        ("fn", {"rows": 5}, {OF_TWO: Fraction(1, 2)}),
        ("nc", {"rows": 5, "delta": DELTA}, {OF_TWO: Fraction(7, 10)}),
        ("cs", {"rows": 5, "target": "c0"}, {OF_TWO: Fraction(2, 3)}),
    ],
)
def test_what_cannot_be_measured_is_reserved_and_not_spent(
    columns: str, settings: dict[str, Any], left: dict[str, Fraction]
) -> None:
    prepared, account = world(columns, 5, epsilon=1, **settings)
    run(prepared, account)
    total = prepared.method.rho or prepared.method.budget
    assert account.unspent() == {purpose: part * total for purpose, part in left.items()}


@pytest.mark.usefixtures("no_rows")
def test_nothing_else_is_left_in_any_world() -> None:
    """Random columns and settings: all is spent, but for columns of one value and for pairs that need drowned names."""
    random = np.random.default_rng(5)

    def some(choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    exact = 0
    for seed in range(examples(240)):
        columns = "".join(random.choice(list("xphfscno"), random.integers(1, 6)))
        settings = dict(some(CLAIMS))
        settings |= {"epsilon": some(["0.05", "1", "20"]), "triples": some([False, True])}
        if random.random() < 0.4:
            place = int(random.integers(len(columns)))
            settings["target"] = f"{columns[place]}{place}"
        gaps = "".join(str(place) for place in range(len(columns)) if random.random() < 0.3)
        prepared, account = world(columns, some([1, 2, 5, 30, 200]), gaps, seed, **settings)
        run(prepared, account)
        if set(columns) == {"o"}:
            assert set(account.unspent()) == {OF_ONE}
        elif sum(map(columns.count, NUMBERS)) < 2:
            assert set(account.unspent()) <= {OF_TWO}
        else:
            assert_all_is_spent(prepared, account)
            exact += 1
    assert exact > examples(240) / 3


def test_a_trial_spends_what_a_run_does() -> None:
    spent = []
    for function in ("run", "trial"):
        prepared, account = world("xxss", 24, epsilon=5, rows=9_000, triples=True)
        getattr(prepared.method, function)(prepared.described, prepared.plan, account, silent)
        assert_all_is_spent(prepared, account)
        spent.append(account.charges)
    assert spent[0] == spent[1]


@pytest.mark.parametrize(
    "settings", [{}, {"delta": DELTA, "rows": 900}, {"neighbours": "replace-one"}], ids=str
)
def test_an_engine_spends_what_a_run_in_memory_does(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Accountant] = []
    opened = Preparation.account

    def account(prepared: Preparation) -> Accountant:
        kept.append(opened(prepared))
        return kept[-1]

    monkeypatch.setattr(Preparation, "account", account)
    random = np.random.default_rng(1)
    x = random.integers(0, 1001, 900).astype(float)
    x[::7] = np.nan
    columns = {"x": x, "y": random.integers(0, 1001, 900), "z": random.integers(0, 2, 900)}
    table = pa.table({**columns, "a": random.integers(0, 2, 900), "b": random.integers(0, 2, 900)})
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=200)
    entries = [
        {"name": "x", "lo": 0, "hi": 1000, "step": 1, "missing": "category"},
        {"name": "y", "lo": 0, "hi": 1000},
        *({"name": name, "lo": 0, "hi": 1} for name in "zab"),
    ]
    schema = shoal.Schema.from_dict({"attribute": entries})
    for engine in ("memory", "local"):
        asked: dict[str, Any] = {"epsilon": 40, "seed": 1, "triples": True, "engine": engine, **settings}
        shoal.publish(tmp_path / "table.parquet", schema, out=tmp_path / engine, **asked)
    in_memory, in_parts = kept
    assert in_parts.unspent() == in_memory.unspent() == {}
    assert in_parts.charges == in_memory.charges
    assert {charge.purpose for charge in in_parts.charges} >= {OF_ONE, OF_TWO, OF_THREE}


class Counted(Seeded):
    """A source that knows how much was drawn from it."""

    drawn = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        self.drawn += n
        return super().words(n)


def twice(place: Any, name: str) -> Callable[[pytest.MonkeyPatch, Counted], list[int]]:
    """A fault: what a function of a module measures is measured once more. What was drawn by then is noted down."""

    def plant(patch: pytest.MonkeyPatch, source: Counted) -> list[int]:
        honest, drawn = getattr(place, name), []

        def dishonest(*arguments: Any) -> Any:
            honest(*arguments)
            drawn.append(source.drawn)
            return honest(*arguments)

        patch.setattr(place, name, dishonest)
        return drawn

    return plant


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (twice(mechanism, "measure_oneway"), "0 is left of 'single attributes'"),
        (twice(mechanism, "measure_pairs"), "0 is left of 'pairs of attributes'"),
        (twice(model, "_measure_contrasts"), "0 is left of 'pairs of attributes'"),
        (twice(model, "measure_triples"), "0 is left of 'triples of attributes'"),
        (twice(mechanism, "measure_attributes"), "0 is left of 'number of rows'"),
        (twice(PureEpsilon, "measure"), "paid for once and drawn twice"),
    ],
    ids=["single attributes", "pairs", "contrasts", "triples", "rows", "one spend"],
)
def test_what_is_measured_twice_is_refused_before_it_is_drawn(
    plant: Callable[[pytest.MonkeyPatch, Counted], list[int]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, _ = world("ssssx", 3_000, epsilon=5, triples=True)
    source = Counted(1)
    account = prepared.method.account(prepared.plan, source)
    drawn = plant(monkeypatch, source)
    with pytest.raises(OverspendError, match=words):
        run(prepared, account)
    assert source.drawn == drawn[0] > 0
    assert account.spent() <= prepared.method.budget


def test_more_for_a_measurement_than_is_left_is_refused_before_it_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Products of values that pairs do not make room for: the last of the other pairs is one too many."""
    monkeypatch.setattr(joint, "_NORMAL", 2.0)
    monkeypatch.setattr(joint, "TOO_MUCH", 10.0**9)
    monkeypatch.setattr(mechanism, "replace", lambda shared, pairs: shared)
    prepared, account = world("xxx", 24, epsilon=5, rows=1_500, triples=False)
    with pytest.raises(OverspendError, match="is left of 'pairs of attributes'"):
        run(prepared, account)
    assert account.spent() <= prepared.method.budget
