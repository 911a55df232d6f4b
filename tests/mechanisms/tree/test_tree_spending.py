"""The spending of a tree: all that its plan reserves, in many worlds, and nothing for a planted fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms.tree import intervals, mechanism
from shoal.mechanisms.tree import intervals as cuts
from shoal.mechanisms.tree import intervals as gate
from shoal.mechanisms.tree.intervals import BY_ROWS, ROWS, Layout
from shoal.noise import Seeded, discrete_laplace, exponential_choice
from shoal.privacy import Accountant, OverspendError, Spend
from shoal.progress import silent
from shoal.release.protection import Preparation, carry_out, prepare

LEVELS = ["none", "primary", "degree"]
# what is declared, and values with both ends among them
COLUMNS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "number": ({"lo": 0, "hi": 1000, "step": 1}, [0, 3, 40, 40, 999, 1000]),
    "few": ({"lo": 0, "hi": 5, "step": 1}, [0, 1, 5, 5, 2, 0]),
    "wide": ({"lo": 0, "hi": 10**6, "step": 1}, [0, 10**6, 500, 10, 10**5, 2000]),
    "gap": ({"lo": 0, "hi": 1000, "step": 1, "missing": "category"}, [None, 1, 1000, None, 7, 500]),
    "few_gap": ({"lo": 0, "hi": 3, "step": 1, "missing": "category"}, [None, 1, 3, 3, None, 0]),
    "name": ({"kind": "nominal", "taxonomy": {"*": list("abcdefgh")}}, ["a", "b", "h", "a", "c", "h"]),
    "many_names": (
        {"kind": "nominal", "taxonomy": {"*": [f"n{i}" for i in range(300)]}},
        ["n0", "n299", "n7", "n7", "n8", "n0"],
    ),
    "level": (
        {"kind": "ordinal", "ordered": LEVELS},
        ["none", "degree", "primary", "none", "none", "degree"],
    ),
}


def prepared(names: list[str], records: int, **options: Any) -> Preparation:
    schema = shoal.Schema.from_dict({"attribute": [{"name": name, **COLUMNS[name][0]} for name in names]})
    values = {name: (COLUMNS[name][1] * records)[:records] for name in names}
    # one value that is missing says nothing about the type of its column
    types = {name: "Int64" if "lo" in COLUMNS[name][0] else "object" for name in names}
    table = pd.DataFrame({name: pd.Series(values[name], dtype=types[name]) for name in names})
    return prepare(read(table), schema, "tree-dp", **{"epsilon": 1, **options})


def account_of(ready: Preparation, seed: int = 1) -> Accountant:
    return ready.method.account(ready.plan, Seeded(seed))


def run(ready: Preparation, account: Accountant) -> Accountant:
    ready.method.run(ready.described, ready.plan, account, silent)
    return account


RELATIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    "replaced": lambda records: {},
    "noisy rows": lambda records: {"neighbours": "add-remove"},
    "declared rows": lambda records: {"neighbours": "add-remove", "rows": 2 * records},
}
WEIGHTS = st.fixed_dictionaries(
    {part: st.integers(1, 5) for part in ("cuts", "intervals", "leaves", "means")}
)
OPTIONS = st.fixed_dictionaries(
    {
        "epsilon": st.sampled_from(["0.1", "1", "2.5", "20", "400"]),
        "cuts": st.none() | st.integers(0, 5),
        "depth": st.none() | st.integers(0, 6),
        "shares": st.none() | WEIGHTS,
        "rebuild": st.sampled_from(["uniform", "centroid", "normal"]),
    }
)


@pytest.mark.parametrize("relation", RELATIONS)
@given(
    st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=4, unique=True),
    st.sampled_from([1, 2, 6, 60, 600]),
    OPTIONS,
    st.integers(0, 100),
)
def test_a_run_spends_all_that_was_reserved(
    relation: str, names: list[str], records: int, options: dict[str, Any], seed: int
) -> None:
    try:
        ready = prepared(names, records, **options, **RELATIONS[relation](records))
    except OptionError:
        # a depth that these cuts do not allow, or sums too wide for this little
        return
    account = run(ready, account_of(ready, seed))
    assert account.unspent() == {}
    assert account.spent() == ready.method.budget == sum(ready.plan.spending.values())
    assert account.uses == ["rows drawn from noisy counts"]
    if relation != "noisy rows":
        assert account.reserved == ready.plan.spending
        return
    # what is one purpose in the plan was divided once the number of rows was known
    first, *parts = account.reserved
    assert (first, BY_ROWS in parts) == (ROWS, False)
    assert sum(account.reserved[part] for part in parts) == ready.plan.spending[BY_ROWS]


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_way_to_measure_an_attribute_is_among_the_worlds(relation: str) -> None:
    options = {"epsilon": 1, "cuts": 2, "rebuild": "normal", **RELATIONS[relation](600)}
    ready = prepared(["number", "few", "gap", "few_gap", "many_names", "level"], 600, **options)
    account = run(ready, account_of(ready))
    ways = (
        "value counts",
        "cut points",
        "missing values",
        "interval counts",
        "counts of the tree",
        "interval sums",
    )
    for way in (*ways, "interval sums of squares"):
        assert any(purpose.startswith(way) for purpose in account.reserved), way
    of_one = [charge.what for charge in account.charges if charge.purpose.startswith("cut points")]
    assert {what.rsplit(", ")[-1] for what in of_one} >= {"number", "gap", "many_names"}


def leaves_counted_twice(patch: pytest.MonkeyPatch) -> None:
    honest = mechanism.noisy_leaves

    def dishonest(*arguments: Any) -> Any:
        honest(*arguments)
        return honest(*arguments)

    patch.setattr(mechanism, "noisy_leaves", dishonest)


def a_layout_with(change: Callable[[Layout], Layout]) -> Callable[[pytest.MonkeyPatch], None]:
    """Attributes are measured with more than is reserved for them."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        honest = mechanism.own_layout
        patch.setattr(mechanism, "own_layout", lambda *known: change(honest(*known)))

    return plant


def twice(shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(2 * share for share in shares)


def sums_drawn_twice(patch: pytest.MonkeyPatch) -> None:
    """One payment, two draws: their mean would be nearer to the truth."""

    honest = intervals.noisy

    def dishonest(values: Any, moves: Any, spend: Spend, what: Any) -> Any:
        drawn = [honest(values, moves, spend, what) for _ in range(2 if isinstance(moves, list) else 1)]
        return np.mean(drawn, axis=0)

    patch.setattr(intervals, "noisy", dishonest)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was drawn: noise and cut points."""
    found: list[str] = []
    noise, cut = discrete_laplace, exponential_choice

    def counted_noise(*arguments: Any) -> Any:
        found.append("noise")
        return noise(*arguments)

    def counted_cut(*arguments: Any) -> Any:
        found.append("cut")
        return cut(*arguments)

    monkeypatch.setattr(gate, "discrete_laplace", counted_noise)
    monkeypatch.setattr(cuts, "exponential_choice", counted_cut)
    return found


# of two attributes with two levels of cut points, three cuts, two levels of counts and sums each, and two of leaves
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("plant", "words", "cut", "noise"),
    [
        (leaves_counted_twice, "'counts of the tree, level 1 of 2' costs", 6, 8),
        (a_layout_with(lambda own: replace(own, cuts=twice(own.cuts))), "'cut points", 3, 3),
        (a_layout_with(lambda own: replace(own, intervals=twice(own.intervals))), "'interval counts", 6, 3),
        (a_layout_with(lambda own: replace(own, means=3 * own.means)), "'interval sums", 3, 2),
        (sums_drawn_twice, "'interval sums of all attributes, number' was paid for once", 3, 3),
    ],
    ids=["leaves", "cuts", "counts", "sums", "twice"],
)
def test_a_planted_fault_is_stopped_before_its_draw(
    relation: str,
    plant: Callable[[pytest.MonkeyPatch], None],
    words: str,
    cut: int,
    noise: int,
    draws: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready = prepared(["number", "wide"], 600, cuts=2, depth=2, epsilon=20, **RELATIONS[relation](600))
    plant(monkeypatch)
    with pytest.raises(OverspendError, match=words):
        run(ready, account_of(ready))
    of_rows = relation == "noisy rows"
    assert Counter(draws) == {"cut": cut, "noise": noise + of_rows}


def test_what_the_plan_does_not_reserve_is_not_drawn(draws: list[str]) -> None:
    ready = prepared(["few"], 600)
    (purpose,) = ready.plan.spending
    assert purpose == "value counts of all attributes"
    nothing = replace(ready, plan=replace(ready.plan, spending={}))
    with pytest.raises(OverspendError, match="nothing is reserved for 'value counts"):
        run(nothing, account_of(nothing))
    assert draws == []


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_engine_spends_the_same(relation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["number", "few", "gap", "few_gap", "name", "level"]
    options = {"epsilon": 2, "cuts": 2, "rebuild": "normal", "seed": 1, **RELATIONS[relation](60)}
    accounts: list[Accountant] = []
    honest = Preparation.account

    def kept(self: Preparation) -> Accountant:
        accounts.append(honest(self))
        return accounts[-1]

    monkeypatch.setattr(Preparation, "account", kept)
    ready = prepared(names, 60, **options)
    carry_out(ready)
    table = ready.described.table.frame.to_native()
    table.to_parquet(tmp_path / "table.parquet")
    schema = shoal.Schema.from_dict({"attribute": [{"name": name, **COLUMNS[name][0]} for name in names]})
    shoal.publish(
        tmp_path / "table.parquet",
        schema=schema,
        method="tree-dp",
        engine="local",
        out=tmp_path / "out",
        **options,
    )
    here, there = accounts
    assert there.unspent() == {}
    assert there.charges == here.charges
