"""Accounting of pairs-dp where tiny worlds do not lead: many signs, deep trees, sums, names; and planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
import shoal.mechanisms.pairs.measure_one as oneway
import shoal.mechanisms.pairs.measure_pairs as joint
import shoal.mechanisms.pairs.mechanism as pairs
import shoal.mechanisms.pairs.model as model
from shoal.mechanisms.pairs.budget import Concentrated, OneWay, PureEpsilon
from shoal.noise import Source
from shoal.privacy import OverspendError, Spend

from .accounting import Account, accounts, concentrated, no_accountant, total
from .laws import Blocks, Elliptope, Gaussian, Laplace, Selection
from .test_accounting import ROOM, assert_the_same_release

NAMES = ["a", "b", "c", "d"]


def names_of(column: int) -> list[str]:
    """Columns of names differ in how many they have."""
    return NAMES[: 4 - column % 2]


def table(
    n: int, numbers: int, signs: int, names: int, seed: int = 0, spikes: tuple[int, ...] = ()
) -> tuple[pd.DataFrame, shoal.Schema]:
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{i}": random.integers(0, 1001, n) for i in range(numbers)}
    columns |= {f"s{i}": random.integers(0, 2, n) for i in range(signs)}
    columns |= {f"name{i}": random.choice(names_of(i), n) for i in range(names)}
    entries: list[dict[str, Any]] = [{"name": f"x{i}", "lo": 0, "hi": 1000} for i in range(numbers)]
    entries = [{**entry, "spikes": spikes} if spikes else entry for entry in entries]
    entries += [{"name": f"s{i}", "lo": 0, "hi": 1} for i in range(signs)]
    entries += [{"name": f"name{i}", "kind": "nominal", "values": names_of(i)} for i in range(names)]
    return pd.DataFrame(columns), shoal.Schema.from_dict({"attribute": entries})


def account(
    neighbours: str,
    numbers: int,
    signs: int,
    names: int,
    value: int = 0,
    spikes: tuple[int, ...] = (),
    **settings: Any,
) -> list[Account]:
    """Accounts of a record with this value removed, or replaced by one that differs in most."""
    before, schema = table(24, numbers, signs, names, spikes=spikes)
    first: list[Any] = [value] * numbers + [0] * signs + ["a"] * names
    # a product of signs changes where one of them does
    other: list[Any] = [1000] * numbers + [1 - i % 2 for i in range(signs)]
    other += [names_of(i)[-1] for i in range(names)]
    for name, value in zip(before, first, strict=True):
        before.loc[0, name] = value
    after = before.copy()
    if neighbours == "add-remove":
        after = after.iloc[1:].reset_index(drop=True)
    else:
        for name, value in zip(before, other, strict=True):
            after.loc[0, name] = value

    def run(data: pd.DataFrame) -> shoal.Release:
        return shoal.protect(data, schema, "pairs-dp", neighbours=neighbours, **settings)

    found = list(accounts(run, before, after, seed=3))
    for one in found:
        assert_the_same_release(one)
        assert one.lost <= one.bound + ROOM
    return found


def laws(found: Account) -> set[type]:
    return {type(draw.law) for draw in found.draws[0]}


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings", "used"),
    [
        # so many declared rows that trees are cut, although there are few records
        ("add-remove", (2, 1, 1), {"epsilon": 1, "rows": 9_000}, {Blocks, Laplace, Selection}),
        ("add-remove", (7, 0, 0), {"epsilon": 1, "rows": 2_000}, {Blocks, Elliptope}),
        ("add-remove", (7, 0, 0), {"epsilon": 5, "rows": 4_000}, {Blocks, Elliptope, Selection}),
        # bisection with several halvings for pairs
        ("add-remove", (2, 1, 1), {"epsilon": 1, "rows": 3_000}, {Blocks, Laplace}),
        ("add-remove", (1, 2, 3), {"epsilon": 2}, {Blocks, Laplace}),
        ("replace-one", (1, 6, 1), {"epsilon": 1_500}, {Blocks, Elliptope, Laplace, Selection}),
        ("replace-one", (1, 2, 0), {"epsilon": 20}, {Blocks}),
    ],
)
def test_nothing_loses_more_than_epsilon(
    neighbours: str, shape: tuple[int, int, int], settings: dict[str, Any], used: set[type]
) -> None:
    for found in account(neighbours, *shape, **settings):
        assert used <= laws(found)
        assert found.bound <= found.results[0].statement.epsilon


def of_names(found: Account) -> bool:
    """Whether pairs of names were measured together, in blocks of different sizes."""
    return any(isinstance(draw.law, Blocks) and len(set(draw.law.sizes)) > 1 for draw in found.draws[0])


@pytest.mark.parametrize(
    ("neighbours", "settings"),
    [("add-remove", {"epsilon": 60, "rows": 24}), ("replace-one", {"epsilon": 150})],
)
def test_pairs_of_names_measured_together_lose_no_more_than_epsilon(
    neighbours: str, settings: dict[str, Any]
) -> None:
    found = account(neighbours, 0, 0, 4, **settings)
    assert any(map(of_names, found))
    for one in found:
        assert one.bound <= one.results[0].statement.epsilon


def of_parts(found: Account) -> bool:
    """Whether names were multiplied with halves of the sixteen bins of two columns, in several cells."""
    sizes = {
        len(draw.private)
        for draw in found.draws[0]
        if isinstance(draw.law, Blocks) and tuple(draw.law.sizes) == (16, 16)
    }
    return max(sizes) > 32


@pytest.mark.parametrize(
    ("neighbours", "settings"),
    [("add-remove", {"epsilon": 20, "rows": 9_000}), ("replace-one", {"epsilon": 9_000})],
)
def test_parts_of_bins_by_names_lose_no_more_than_epsilon(neighbours: str, settings: dict[str, Any]) -> None:
    found = account(neighbours, 2, 0, 1, **settings)
    assert any(map(of_parts, found))
    for one in found:
        assert one.bound <= one.results[0].statement.epsilon


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings"),
    [
        ("add-remove", (0, 3, 0), {"epsilon": 5}),
        ("add-remove", (0, 7, 0), {"epsilon": 5, "rows": 24}),
        ("add-remove", (2, 2, 0), {"epsilon": 1, "rows": 400}),
        ("replace-one", (0, 3, 0), {"epsilon": 20}),
    ],
)
def test_all_of_epsilon_can_be_lost(
    neighbours: str, shape: tuple[int, int, int], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # of products of values only records at both ends of their reach can lose all
    monkeypatch.setattr(joint, "TOO_MUCH", 0.0)
    # nor does a look for structure of three columns show it
    found = account(neighbours, *shape, **{"triples": False, **settings})[-1]
    assert found.bound >= Fraction(99, 100) * found.results[0].statement.epsilon
    if Elliptope not in laws(found):
        assert found.lost >= Fraction(99, 100) * found.results[0].statement.epsilon


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings"),
    [
        ("add-remove", (2, 1, 1), {"epsilon": 2, "rows": 9_000}),
        ("add-remove", (2, 3, 2), {"epsilon": 20}),
        ("add-remove", (0, 0, 4), {"epsilon": 40, "rows": 24}),
        ("add-remove", (2, 0, 1), {"epsilon": 20, "rows": 9_000}),
        ("replace-one", (1, 6, 1), {"epsilon": 60}),
    ],
)
def test_with_a_delta_nothing_loses_more_than_rho(
    neighbours: str, shape: tuple[int, int, int], settings: dict[str, Any]
) -> None:
    for found in account(neighbours, *shape, delta="0.000001", **settings):
        statement = found.results[0].statement
        assert statement.model == "approximate-dp"
        assert Gaussian in laws(found)
        assert 0 < total(*found.draws, concentrated) <= statement.rho


@pytest.mark.parametrize(("neighbours", "signs"), [("add-remove", 3), ("replace-one", 1)])
def test_with_a_delta_all_of_rho_can_be_lost(neighbours: str, signs: int) -> None:
    found = account(neighbours, 0, signs, 0, epsilon=60, delta="0.000001")[0]
    assert total(*found.draws, concentrated) >= Fraction(99, 100) * found.results[0].statement.rho


class LessNoise(Spend):
    """A spend whose noise is that of so many times what is paid: a fault of calibration, which no account can see."""

    def __init__(self, spend: Spend, times: int) -> None:
        self._honest, self._times = spend, times

    def take(self) -> tuple[Fraction, Source]:
        amount, source = self._honest.take()
        return amount * self._times, source

    def record(self, found: Any) -> None:
        self._honest.record(found)


def half_the_noise_of_blocks(patch: pytest.MonkeyPatch) -> None:
    honest = PureEpsilon.measure

    def dishonest(self: PureEpsilon, exact: Any, shape: Any, spend: Spend, what: Any) -> Any:
        return honest(self, exact, shape, LessNoise(spend, 2 if shape.blocks > 1 else 1), what)

    patch.setattr(PureEpsilon, "measure", dishonest)


def half_the_noise_of_signs(patch: pytest.MonkeyPatch) -> None:
    honest = PureEpsilon.measure

    def dishonest(self: PureEpsilon, exact: Any, shape: Any, spend: Spend, what: Any) -> Any:
        return honest(self, exact, shape, LessNoise(spend, 2 if shape.signs else 1), what)

    patch.setattr(PureEpsilon, "measure", dishonest)


def cuts_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PureEpsilon, "rate", lambda self, share: 4 * share)


def groups_measured_twice(patch: pytest.MonkeyPatch) -> None:
    honest = model.group_sums

    def dishonest(*arguments: Any) -> Any:
        return 2 * honest(*arguments)

    patch.setattr(model, "group_sums", dishonest)


def replaced_as_if_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pairs, "_currency", lambda method: PureEpsilon(1))


@pytest.mark.parametrize(
    ("plant", "neighbours", "shape", "settings"),
    [
        (half_the_noise_of_blocks, "add-remove", (0, 3, 0), {"epsilon": 5}),
        (half_the_noise_of_signs, "add-remove", (0, 7, 0), {"epsilon": 5, "rows": 24}),
        (cuts_not_paid_for, "add-remove", (2, 0, 0), {"epsilon": 1, "rows": 9_000}),
        (groups_measured_twice, "add-remove", (2, 1, 1), {"epsilon": 1, "rows": 3_000}),
        (groups_measured_twice, "add-remove", (0, 0, 4), {"epsilon": 60, "rows": 24}),
        (replaced_as_if_added, "replace-one", (0, 3, 0), {"epsilon": 20}),
    ],
)
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    neighbours: str,
    shape: tuple[int, int, int],
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    found = account(neighbours, *shape, **settings)
    assert max(one.bound for one in found) > found[0].results[0].statement.epsilon


@pytest.mark.parametrize("where", ["polish", "marginals"])
def test_exact_counts_after_the_gate_are_found(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release comes out of the same transcript."""
    if where == "polish":
        honest = pairs.measure_pairs

        def with_exact_tables(sums: Any, *rest: Any) -> Any:
            found = honest(sums, *rest)
            for a, b in found.tables:
                found.tables[a, b] = (sums.counts.table(a, b) + 1e-9) / sums.counts.table(a, b).sum()
            return found

        monkeypatch.setattr(pairs, "measure_pairs", with_exact_tables)
    else:
        monkeypatch.setattr(oneway, "nearest_counts", lambda noisy, total: np.maximum(EXACT.pop(), 0.0))
        honest_bincount = np.bincount

        def remembered(values: Any, *rest: Any, **options: Any) -> Any:
            counts = honest_bincount(values, *rest, **options)
            EXACT.append(counts.astype(float))
            return counts

        EXACT: list[Any] = []
        monkeypatch.setattr(oneway.np, "bincount", remembered)
    with pytest.raises(AssertionError):
        account("add-remove", 0, 0 if where == "marginals" else 3, 1, epsilon=20, rows=24)


# A value that is unlikely to be an interval of its own.
INSIDE = 437


@pytest.fixture
def every_frequent_value(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Frequent values are looked for in all intervals, whatever their shares."""
    monkeypatch.setattr(OneWay, "least_frequent", lambda self, currency, rows: -1.0)
    return monkeypatch


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings"),
    [
        ("add-remove", (2, 1, 0), {"epsilon": 1, "rows": 9_000}),
        ("replace-one", (2, 0, 0), {"epsilon": 1_000}),
        ("add-remove", (2, 1, 0), {"epsilon": 2, "rows": 9_000, "delta": "0.000001"}),
        pytest.param(
            "replace-one", (1, 1, 0), {"epsilon": 3_000, "delta": "0.000001"}, marks=pytest.mark.slow
        ),
    ],
    ids=str,
)
def test_frequent_values_lose_no_more_than_is_stated(
    neighbours: str,
    shape: tuple[int, int, int],
    settings: dict[str, Any],
    every_frequent_value: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    honest = oneway.choose_frequent
    every_frequent_value.setattr(oneway, "choose_frequent", lambda *rest: chosen.append(1) or honest(*rest))
    for found in account(neighbours, *shape, INSIDE, **settings):
        statement = found.results[0].statement
        if "delta" in settings:
            assert 0 < total(*found.draws, concentrated) <= statement.rho
        else:
            assert found.bound <= statement.epsilon
    assert chosen


def choices_at_more_than_their_rate(patch: pytest.MonkeyPatch) -> None:
    honest = oneway.choose_frequent

    def dishonest(column: Any, edges: Any, spend: Spend, currency: Any) -> Any:
        return honest(column, edges, LessNoise(spend, 10**6), currency)

    patch.setattr(oneway, "choose_frequent", dishonest)


def counts_of_the_intervals(patch: pytest.MonkeyPatch) -> None:
    """A count to which a record adds more than it may."""
    honest = oneway.Histogram.at
    patch.setattr(oneway.Histogram, "at", lambda self, wanted: 1_000 * honest(self, wanted))
    # among them the value of the record that is removed
    patch.setattr(
        oneway, "choose_frequent", lambda column, edges, *_: np.clip(INSIDE, edges[:-1], edges[1:] - 1)
    )


def frequent_values_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    honest = oneway._frequent

    def dishonest(positions: Any, edges: Any, shares: Any, names: Any, layout: Any, *rest: Any) -> Any:
        free = replace(layout, choices=400 * layout.choices, frequent=400 * layout.frequent)
        return honest(positions, edges, shares, names, free, *rest)

    patch.setattr(oneway, "_frequent", dishonest)


@pytest.mark.parametrize(
    "plant", [choices_at_more_than_their_rate, counts_of_the_intervals, frequent_values_not_paid_for]
)
@pytest.mark.parametrize("delta", [None, "0.000001"])
def test_a_fault_in_frequent_values_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], delta: str | None, every_frequent_value: pytest.MonkeyPatch
) -> None:
    plant(every_frequent_value)
    no_accountant(every_frequent_value)
    extra = {"delta": delta} if delta else {}
    found = account("add-remove", 2, 0, 0, INSIDE, epsilon=2, rows=9_000, **extra)
    statement = found[0].results[0].statement
    if delta is None:
        assert max(one.bound for one in found) > statement.epsilon
    else:
        assert max(total(*one.draws, concentrated) for one in found) > statement.rho


def test_frequent_values_that_are_not_paid_for_are_not_drawn(
    every_frequent_value: pytest.MonkeyPatch,
) -> None:
    frequent_values_not_paid_for(every_frequent_value)
    with pytest.raises(OverspendError, match="left of 'single attributes'"):
        account("add-remove", 2, 0, 0, epsilon=2, rows=9_000)


@pytest.fixture
def every_tail(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Products of values are measured whatever was measured before, of all columns of numbers."""
    monkeypatch.setattr(joint, "_NORMAL", 2.0)
    monkeypatch.setattr(joint, "TOO_MUCH", 10.0**9)
    return monkeypatch


def of_products(draw: Any) -> bool:
    """Sums of products of values have a unit of 2^20; those inside intervals one of 2^10."""
    if isinstance(draw.law, Gaussian):
        return max(draw.law.variances) > 2**36
    return isinstance(draw.law, Blocks) and 1 << 20 in draw.law.steps


def products(found: Account) -> list[int]:
    """By how much the removed or replaced record changes sums of products, in parts of the unit."""
    sums = [[draw.private for draw in side if of_products(draw)] for side in found.draws]
    assert sums[0]
    return [abs(a - b) for mine, other in zip(*sums, strict=True) for a, b in zip(mine, other, strict=True)]


@pytest.mark.parametrize(
    ("neighbours", "most", "settings"),
    [
        ("add-remove", 1, {"epsilon": 5, "rows": 1_500}),
        ("replace-one", 2, {"epsilon": 50}),
    ],
)
def test_products_of_values_lose_no_more_than_epsilon(
    neighbours: str, most: int, settings: dict[str, Any], every_tail: pytest.MonkeyPatch
) -> None:
    changes = []
    for found in account(neighbours, 3, 1, 0, **settings):
        assert found.bound <= found.results[0].statement.epsilon
        changes += products(found)
    # a record at the ends of its columns changes a sum by nearly all it may
    assert 0.9 * 2**20 < max(changes) <= most * 2**20


def test_products_of_values_lose_no_more_than_rho(every_tail: pytest.MonkeyPatch) -> None:
    for neighbours, settings in (
        ("add-remove", {"epsilon": 20, "rows": 1_500}),
        ("replace-one", {"epsilon": 60}),
    ):
        for found in account(neighbours, 3, 1, 0, delta="0.000001", **settings):
            assert any(of_products(draw) for draw in found.draws[0])
            assert 0 < total(*found.draws, concentrated) <= found.results[0].statement.rho


def not_clipped(patch: pytest.MonkeyPatch) -> None:
    def values(self: Any, positions: Any, place: int) -> Any:
        return 4 * (positions - self.middles[place]) / self.reaches[place]

    patch.setattr(joint.Clipped, "values", values)


def products_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    honest = replace

    def dishonest(shared: Any, **changes: Any) -> Any:
        # shares of pairs stay as they are
        return shared if "pairs" in changes else honest(shared, **changes)

    patch.setattr(pairs, "replace", dishonest)
    # and so much for them that this shows
    patch.setattr(joint, "SHARE", Fraction(1))


@pytest.mark.parametrize("plant", [not_clipped, products_not_paid_for])
@pytest.mark.parametrize("delta", [None, "0.000001"])
def test_a_fault_in_products_of_values_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], delta: str | None, every_tail: pytest.MonkeyPatch
) -> None:
    plant(every_tail)
    no_accountant(every_tail)
    found = account("add-remove", 3, 3, 0, epsilon=5, rows=1_500, **({"delta": delta} if delta else {}))
    statement = found[0].results[0].statement
    if delta is None:
        assert max(one.bound for one in found) > statement.epsilon
    else:
        assert max(total(*one.draws, concentrated) for one in found) > statement.rho


@pytest.mark.parametrize("delta", [None, "0.000001"])
def test_products_that_are_not_paid_for_are_not_drawn(
    delta: str | None, every_tail: pytest.MonkeyPatch
) -> None:
    products_not_paid_for(every_tail)
    with pytest.raises(OverspendError, match=r"left of 'pairs of attributes'|the plan reserves"):
        account("add-remove", 3, 3, 0, epsilon=5, rows=1_500, **({"delta": delta} if delta else {}))


@pytest.mark.parametrize(
    ("neighbours", "settings"),
    [
        ("add-remove", {"epsilon": 1, "rows": 400}),
        ("add-remove", {"epsilon": 1, "rows": 9_000}),
        ("replace-one", {"epsilon": 20}),
        ("add-remove", {"epsilon": 2, "rows": 9_000, "delta": "0.000001"}),
    ],
)
def test_counts_of_spikes_are_paid_for(
    neighbours: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that is removed or replaced has the spike 0."""
    honest = [account(neighbours, 2, 1, 0, spikes=(0, 1000), **settings)[-1]]
    kept = Concentrated.measure if "delta" in settings else PureEpsilon.measure

    def dishonest(self: Any, exact: Any, shape: Any, spend: Spend, what: Any) -> Any:
        return kept(self, exact, shape, LessNoise(spend, 40) if what.kind == "spike" else spend, what)

    monkeypatch.setattr(Concentrated if "delta" in settings else PureEpsilon, "measure", dishonest)
    faulty = account(neighbours, 2, 1, 0, spikes=(0, 1000), **settings)[-1]
    if "delta" in settings:
        lost = [total(*one.draws, concentrated) for one in (*honest, faulty)]
        budget = honest[0].results[0].statement.rho
    else:
        lost = [one.bound for one in (*honest, faulty)]
        budget = honest[0].results[0].statement.epsilon
    assert lost[0] <= budget < lost[1]
