"""Values of pairs-dp that many records share, or none: what a choice loses, what is counted, what is made of it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.mechanisms.pairs import measure_one
from shoal.mechanisms.pairs.budget import (
    AttributeFacts,
    Concentrated,
    Currency,
    OneWay,
    PureEpsilon,
    lay_out_oneway,
)
from shoal.mechanisms.pairs.distributions import (
    Fine,
    Frequent,
    answers_of_values,
    denoised_counts,
    with_points,
    without_points,
)
from shoal.mechanisms.pairs.measure_one import Histogram, choose_frequent
from shoal.noise import Seeded
from shoal.numbers import Floats, Integers
from shoal.privacy import Accountant, Spend

SHARE = Fraction(3, 4)
EDGES = np.array([0, 2, 2, 3, 6])
CURRENCIES: list[Currency] = [PureEpsilon(1), PureEpsilon(2), Concentrated(1), Concentrated(2)]
every_currency = pytest.mark.parametrize("currency", CURRENCIES, ids=str)


def spend(seed: int = 0, share: Fraction = SHARE) -> Spend:
    return Accountant.of({"choices": share}, share, Seeded(seed)).spend("choices", share)


def choices(table: tuple[int, ...], currency: Currency, patch: pytest.MonkeyPatch) -> list[Floats]:
    """Log-probabilities of the positions of every interval, as the code asks for them."""
    found = []

    def asked(lengths: Integers, penalties: Integers, rate: Fraction, source: Any) -> int:
        logs = np.repeat(-float(rate) * penalties, lengths)
        found.append(logs - math.log(np.exp(logs).sum()))
        return int(np.flatnonzero(lengths)[0])

    patch.setattr(measure_one, "exponential_choice", asked)
    choose_frequent(Histogram(np.array(table, dtype=np.int64)), EDGES, spend(), currency)
    return found


def worst_loss(currency: Currency, patch: pytest.MonkeyPatch) -> float:
    """The largest loss of any two neighbouring tables of up to three records, by enumeration of all of them."""
    tables = [
        table for n in range(4) for table in itertools.combinations_with_replacement(range(EDGES[-1]), n)
    ]
    known = {table: choices(table, currency, patch) for table in tables}
    worst = 0.0
    for table in tables:
        if currency.factor == 1:
            others = [tuple(np.delete(table, i).tolist()) for i in range(len(table))]
        else:
            others = [
                tuple(sorted((*np.delete(table, i).tolist(), x)))
                for i in range(len(table))
                for x in range(EDGES[-1])
            ]
        for other in others:
            moved = [a - b for a, b in zip(known[table], known[other], strict=True)]
            if isinstance(currency, PureEpsilon):
                lost = sum(float(np.abs(one).max()) for one in moved)
            else:
                lost = sum(float(np.ptp(one)) ** 2 / 8 for one in moved)
            worst = max(worst, lost)
    return worst


@every_currency
def test_a_choice_costs_its_share_for_all_neighbours(
    currency: Currency, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all of it in ρ; with three records, the greater part in ε."""
    lost = worst_loss(currency, monkeypatch)
    assert lost <= float(SHARE) * (1 + 1e-9)
    assert lost > (0.3 if isinstance(currency, PureEpsilon) else 0.99) * float(SHARE)


@every_currency
def test_a_choice_at_twice_the_rate_is_found(currency: Currency, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = type(currency).rate
    monkeypatch.setattr(type(currency), "rate", lambda self, share: 4 * honest(self, share))
    assert worst_loss(currency, monkeypatch) > 1.1 * float(SHARE)


def test_positions_are_drawn_with_their_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([0, 1, 1, 4, 4, 4])
    with monkeypatch.context() as patch:
        first, last = (np.exp(logs) for logs in choices(tuple(table.tolist()), PureEpsilon(1), patch))
    runs = 1_500
    drawn = np.array(
        [choose_frequent(Histogram(table), EDGES, spend(seed), PureEpsilon(1)) for seed in range(runs)]
    )
    assert (drawn[:, 1] == 2).all()
    assert (drawn[:, 2] == 2).all()
    for place, low, odds in ((0, 0, first), (3, 3, last)):
        counts = np.bincount(drawn[:, place] - low, minlength=odds.size)
        assert ((counts - runs * odds) ** 2 / (runs * odds)).sum() < 45
    # an even choice would be found
    counts = np.bincount(drawn[:, 3] - 3, minlength=3)
    assert ((counts - runs / 3) ** 2 / (runs / 3)).sum() > 45


def test_a_table_of_counts_is_chosen_from_as_its_records_are() -> None:
    records = np.array([5, 0, 1, 1, 4, 4, 4])
    values, counts = np.unique(records, return_counts=True)
    for seed in range(20):
        found = [
            choose_frequent(own, EDGES, spend(seed), PureEpsilon(1)).tolist()
            for own in (Histogram(records), Histogram(values, counts.astype(np.int64)))
        ]
        assert found[0] == found[1]


def test_a_record_is_counted_at_one_frequent_value_of_its_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Integers] = []
    honest = PureEpsilon.measure

    def measured(self: Any, exact: Integers, shape: Any, spend: Spend, what: Any) -> Floats:
        if spend.charge.what == "counts of frequent values":
            assert (shape.cells, shape.blocks, shape.size) == (1, *exact.shape)
            seen.append(exact)
        return honest(self, exact, shape, spend, what)

    monkeypatch.setattr(PureEpsilon, "measure", measured)
    monkeypatch.setattr(OneWay, "least_frequent", lambda *_: -1.0)
    random = np.random.default_rng(0)
    records = np.where(random.random((40, 2)) < 0.5, 0, random.integers(0, 1000, (40, 2)))
    facts = [AttributeFacts(name, 1000, True) for name in "xy"]
    layout = lay_out_oneway(PureEpsilon(1), facts, Fraction(2), 20_000)
    assert len(layout.cuts) > 3
    fixed = measure_one._edges(Histogram(records[:, 0]), 0, facts[0], layout, PureEpsilon(1), account())
    monkeypatch.setattr(measure_one, "_edges", lambda *_: fixed)
    monkeypatch.setattr(measure_one, "choose_frequent", lambda column, edges, *_: edges[:-1])
    for table in (records, *(np.delete(records, row, axis=0) for row in range(4))):
        columns = [Histogram(table[:, 0]), Histogram(table[:, 1])]
        measure_one.measure_oneway(columns, facts, [None, None], layout, PureEpsilon(1), 20_000, account())
    assert seen[0].sum() > 0
    for one in seen[1:]:
        assert set((seen[0] - one).ravel().tolist()) <= {0, 1}
        assert ((seen[0] - one).sum(axis=1) <= 1).all()


def account() -> Accountant:
    return Accountant.of({"single attributes": Fraction(2)}, Fraction(2), Seeded(3))


def slowly(noisy: Floats, total: float, noise: float) -> list[float]:
    """The reference: one interval after the other."""
    size = noisy.size
    if size == 1:
        return [total]
    left = (size + 1) // 2
    first = noisy[:left].sum() + (total - noisy.sum()) * left / size
    doubt = noise * math.sqrt(left * (size - left) / size)
    low, high = first < doubt, total - first < doubt
    first = 0.0 if low and not high else total if high and not low else min(max(first, 0.0), total)
    return slowly(noisy[:left], first, noise) + slowly(noisy[left:], total - first, noise)


class TestCounts:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 99])
    def test_they_are_those_of_the_reference(self, size: int) -> None:
        for seed in range(20):
            random = np.random.default_rng([size, seed])
            noisy = random.integers(0, 30, size) * (random.random(size) < 0.5) + random.normal(0, 8, size)
            found = denoised_counts(noisy, 500.0, 8.0)
            assert found.tolist() == pytest.approx(slowly(noisy, 500.0, 8.0), abs=1e-6)
            assert found.sum() == pytest.approx(500)
            assert found.min() >= 0

    def test_without_noise_they_are_exact(self) -> None:
        exact = np.random.default_rng(0).integers(0, 50, 99).astype(float)
        assert denoised_counts(exact, exact.sum(), 1e-9).tolist() == pytest.approx(exact.tolist(), abs=1e-6)

    def test_values_that_nobody_has_get_no_tail(self) -> None:
        """The mean keeps within its noise; noise of empty values that is cut off at 0 moves it by more than that."""
        exact = np.zeros(100)
        exact[:20] = 500
        moved = []
        for seed in range(40):
            noisy = exact + np.random.default_rng(seed).laplace(0, 20, 100)
            found = denoised_counts(noisy, exact.sum(), 20 * math.sqrt(2))
            moved.append(found @ np.arange(100) / exact.sum() - 9.5)
        assert abs(np.mean(moved)) < 0.4
        cut_off = np.mean(np.maximum(np.random.default_rng(0).laplace(0, 20, (40, 80)), 0).sum(axis=1))
        assert cut_off * 50 / exact.sum() > 2


class TestMasses:
    edges = np.array([0, 4, 5, 5, 10])
    intervals = np.array([0.5, 0.2, 0.0, 0.3])

    def found(self, shares: list[float], noise: float = 0.01) -> Floats:
        return Frequent(np.array([1, 4, 5, 7]), np.array(shares), noise, 0.05).masses(
            self.edges, self.intervals
        )

    def test_only_what_noise_cannot_explain_is_frequent(self) -> None:
        assert self.found([0.3, 0.2, 0.2, 0.1]).tolist() == [0.3, 0, 0, 0]
        # the rest of an interval that cannot be told from nothing is nothing
        assert self.found([0.495, 0.2, 0.0, 0.9]).tolist() == [0.5, 0, 0, 0.3]

    def test_the_rest_has_the_rest_of_the_mean(self) -> None:
        frequent = Frequent(np.array([1, 4, 5, 7]), np.array([0.25, 0, 0, 0]), 0.01, 0.05)
        masses = frequent.masses(self.edges, self.intervals)
        means = np.array([1.5, 4.0, 5.0, 7.0])
        there = masses > 0
        rest, moved, noise = without_points(
            self.edges,
            self.intervals,
            means,
            np.array([0.1, 0, 0, 0.1]),
            frequent.values[there],
            masses[there],
            0.01,
        )
        assert rest.tolist() == [0.25, 0.2, 0.0, 0.3]
        assert moved.tolist() == [2.0, 4.0, 5.0, 7.0]
        assert noise[0] > 0.2
        assert noise[3] == 0.1

    @pytest.mark.parametrize("slope", [0.0, 3.0, -400.0])
    def test_other_positions_keep_their_shares(self, slope: float) -> None:
        fine = Fine(np.array([0, 4]), np.array([3, 9]), np.array([0.3, 0.2]), np.array([slope, 0.0]))
        found = with_points(fine, np.array([0, 2, 9]), np.array([0.1, 0.2, 0.2]))
        levels = (np.arange(100_000) + 0.5) / 100_000
        before, after = (
            np.bincount(own.positions(levels).astype(int), minlength=10) / 100_000 for own in (fine, found)
        )
        added = np.zeros(10)
        added[[0, 2, 9]] = [0.1, 0.2, 0.2]
        assert (after - added).tolist() == pytest.approx((before / 2).tolist(), abs=1e-4)
        assert found.shares.sum() == pytest.approx(1)


def gains(n: int, seed: int = 0) -> pa.Table:
    """Mostly nothing, otherwise something of any size, of a round amount, or the most there is."""
    random = np.random.default_rng(seed)
    gain = np.where(random.random(n) < 0.25, np.exp(random.normal(8, 1, n)).astype(int), 5_000)
    gain = np.where(random.random(n) < 0.85, 0, np.minimum(gain, 60_000))
    return pa.table({"gain": gain, "age": random.integers(17, 90, n), "sex": random.integers(0, 2, n)})


ENTRIES = [
    {"name": "gain", "lo": 0, "hi": 60_000, "step": 1},
    {"name": "age", "lo": 17, "hi": 90, "step": 1},
    {"name": "sex", "lo": 0, "hi": 1},
]
SCHEMA = shoal.Schema.from_dict({"attribute": ENTRIES})


@pytest.mark.parametrize("settings", [{}, {"delta": "0.000001"}, {"neighbours": "replace-one"}], ids=str)
def test_frequent_values_of_a_release(settings: dict[str, Any]) -> None:
    table = gains(20_000)
    exact = table["gain"].to_numpy()
    for seed in range(2):
        release = shoal.protect(table, SCHEMA, "pairs-dp", epsilon=2, seed=seed, **settings)
        found = release.data["gain"].to_numpy()
        for value in (0, 5_000):
            assert (found == value).mean() == pytest.approx((exact == value).mean(), abs=0.04)
        assert any("frequent value is chosen privately" in one for one in release.statement.conditions) or (
            "neighbours" not in settings
        )


def test_a_column_without_frequent_values_spends_their_share_on_sums() -> None:
    random = np.random.default_rng(1)
    facts = [AttributeFacts("x", 10_001, True)]
    layout = lay_out_oneway(PureEpsilon(1), facts, Fraction(1, 2), 20_000)
    charged = {}
    for name, values in (
        ("smooth", np.clip(random.normal(5_000, 900, 20_000), 0, 10_000).astype(np.int64)),
        ("zeros", np.where(random.random(20_000) < 0.5, 0, random.integers(5_000, 10_001, 20_000))),
    ):
        account = Accountant.of({"single attributes": Fraction(1, 2)}, Fraction(1, 2), Seeded(0))
        measure_one.measure_oneway(
            [Histogram(values)], facts, [None], layout, PureEpsilon(1), 20_000, account
        )
        assert account.unspent() == {}
        charged[name] = {charge.what: charge.amount for charge in account.charges}
    assert charged["zeros"]["sums inside intervals"] == layout.sums
    assert charged["zeros"]["frequent values of x"] == layout.choices
    assert "frequent values of x" not in charged["smooth"]
    assert charged["smooth"]["sums inside intervals"] == layout.sums + layout.choices + layout.frequent


def test_an_engine_finds_the_values_that_a_run_in_memory_does(tmp_path: Path) -> None:
    parquet.write_table(gains(4_000), tmp_path / "table.parquet", row_group_size=1_000)
    found = []
    for engine in ("memory", "local"):
        out = tmp_path / engine
        shoal.publish(
            tmp_path / "table.parquet", SCHEMA, out=out, epsilon=20, rows=4_000, seed=1, engine=engine
        )
        (data,) = out.glob("data*")
        values = parquet.read_table(data)["gain"].to_numpy()
        found.append(np.sort(values))
        assert (values == 0).mean() == pytest.approx(0.85, abs=0.02)
    assert found[0].tolist() == found[1].tolist()


def people(n: int) -> pa.Table:
    """Hours with a heap at 40, and amounts of which most are 0."""
    random = np.random.default_rng(4)
    hours = np.where(random.random(n) < 0.5, 40, np.clip(random.normal(38, 12, n), 0, 98)).astype(int)
    amount = np.where(random.random(n) < 0.9, 0, np.clip(random.lognormal(8, 1, n), 0, 100_000)).astype(int)
    return pa.table({"hours": hours, "amount": amount})


def schema_of(**spikes: list[int]) -> shoal.Schema:
    ends = {"hours": 98, "amount": 100_000}
    entries = [
        {"name": name, "lo": 0, "hi": hi, "source": "law"}
        | ({"spikes": spikes[name]} if name in spikes else {})
        for name, hi in ends.items()
    ]
    return shoal.Schema.from_dict({"attribute": entries})


class TestHeaps:
    @pytest.mark.parametrize("n", [1_500, 20_000])
    def test_declared_spikes_are_kept(self, n: int) -> None:
        table = people(n)
        release = shoal.protect(
            table, schema_of(hours=[40], amount=[0]), "pairs-dp", epsilon=1, rows=n, seed=1
        )
        for name, spike in (("hours", 40), ("amount", 0)):
            before, after = (np.mean(own[name].to_numpy() == spike) for own in (table, release.data))
            assert after == pytest.approx(before, abs=0.04)

    def test_heaps_of_a_short_column_are_found_by_bisection(self) -> None:
        table = people(1_500)
        release = shoal.protect(table, schema_of(), "pairs-dp", epsilon=1, rows=1_500, seed=1)
        before, after = (np.mean(own["hours"].to_numpy() == 40) for own in (table, release.data))
        assert after == pytest.approx(before, abs=0.04)
        assert any("single values" in words for words in release.statement.conditions)

    def test_spikes_that_nobody_has_change_nothing(self) -> None:
        table = people(1_500)
        release = shoal.protect(table, schema_of(amount=[77_777]), "pairs-dp", epsilon=1, rows=1_500, seed=1)
        assert np.mean(release.data["amount"].to_numpy() == 77_777) < 0.01

    def test_a_record_changes_one_count_by_one(self) -> None:
        """All tables of up to three records on five positions, any of which are counted."""
        for values in itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in (1, 2, 5)):
            wanted = np.array(values)
            for records in itertools.combinations_with_replacement(range(5), 3):
                counts = Histogram(np.array(records)).at(wanted)
                for left in range(3):
                    fewer = Histogram(np.delete(np.array(records), left)).at(wanted)
                    assert np.abs(counts - fewer).sum() == (records[left] in values)

    def test_thresholds_are_those_of_the_rest(self) -> None:
        """Known exactly, thresholds and heaps give the distribution back that they were taken from."""
        shares = np.full(100, 0.5 / 100)
        shares[40] += 0.5
        running = np.concatenate(([0.0], np.cumsum(shares)))
        asked = np.array([20, 40, 41, 60, 80])
        told = answers_of_values("", np.array([40]), np.zeros(1), 1.0)
        heaps = measure_one._Heaps(np.array([40]), np.array([0.5]), 1e-6, told)
        found = measure_one._of_thresholds(asked, running[asked], 100, 1e-6, heaps)
        levels = (np.arange(20_000) + 0.5) / 20_000
        made = np.bincount(found.fine.positions(levels).astype(int), minlength=100) / 20_000
        assert np.abs(np.cumsum(made)[asked - 1] - running[asked]).max() < 0.005
        assert made[40] == pytest.approx(0.505, abs=0.01)
