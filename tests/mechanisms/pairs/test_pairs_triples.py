"""Triples of pairs-dp: what they cost, what one record can do by brute force, and that they find what is there."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

import shoal
from shoal.errors import OptionError
from shoal.io import read
from shoal.mechanisms.pairs.budget import Concentrated, Currency, PureEpsilon
from shoal.mechanisms.pairs.distributions import Fine, points
from shoal.mechanisms.pairs.measure_one import Marginal
from shoal.mechanisms.pairs.measure_pairs import (
    SHARE,
    Mixture,
    Triples,
    exact_triples,
    largest_sets,
    lay_out_triples,
    measure_triples,
    predicted,
    sets_of,
    to_follow,
)
from shoal.mechanisms.pairs.model import positions_of
from shoal.mechanisms.registry import method_class, names
from shoal.noise import Seeded
from shoal.noise.discrete import rho_from
from shoal.privacy import Accountant
from shoal.release.protection import prepare

CURRENCIES: list[Currency] = [PureEpsilon(1), PureEpsilon(2), Concentrated(1), Concentrated(2)]
every_currency = pytest.mark.parametrize("currency", CURRENCIES, ids=str)
LEVELS = (2, 1, 1, 3, 1)


def marginal(levels: int) -> Marginal:
    bins = 1 << levels
    return Marginal(points(np.full(bins, 1 / bins)), np.full(bins, 1 / bins), levels, np.arange(bins + 1))


def layout(columns: int, rounds: int = 3, largest: int = 3) -> Triples:
    return Triples(tuple(range(columns)), rounds, Fraction(1), Fraction(1), 1.0, min(largest, columns))


def account(found: Triples, seed: int) -> Accountant:
    """An account with the share of triples, and nothing else."""
    return Accountant.of({"triples of attributes": found.share}, found.share, Seeded(seed))


@lru_cache(maxsize=1000)
def of_signs(records: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    return sums(records, (1, 1, 1, 1))


def sums(records: Any, levels: tuple[int, ...] = LEVELS) -> NDArray[np.int64]:
    codes = [np.array(column, dtype=np.uint8) for column in np.array(records).reshape(-1, len(levels)).T]
    return exact_triples(codes, [marginal(one) for one in levels], layout(len(levels), largest=5))


class TestSizes:
    @pytest.mark.parametrize(
        ("currency", "budget", "fewest"),
        [
            (PureEpsilon(1), Fraction(1), 1_930),
            (Concentrated(1), rho_from(Fraction(1), Fraction("1e-6")), 700),
        ],
        ids=str,
    )
    def test_figures_of_the_guide(self, currency: Currency, budget: Fraction, fewest: int) -> None:
        pairs = budget * (1 - currency.oneway)
        assert lay_out_triples(currency, range(10), pairs, 0.95 * fewest) is None
        assert lay_out_triples(currency, range(10), pairs, 1.05 * fewest) is not None
        found = lay_out_triples(currency, range(10), pairs, 10_000)
        assert found is not None
        assert not isinstance(currency, PureEpsilon) or round(float(100 * found.share / pairs)) == 8
        by_itself = [lay_out_triples(currency, range(10), pairs, rows, asked=False) for rows in (5_000, 900)]
        assert by_itself[0] is not None
        assert by_itself[0].rounds == 1
        assert by_itself[0].share <= pairs / 20
        assert by_itself[1] is None

    @every_currency
    @pytest.mark.parametrize("columns", [3, 4, 10, 40])
    @pytest.mark.parametrize("rows", [100, 5_000, 10**6])
    def test_shares_are_a_part_of_that_of_pairs(self, currency: Currency, columns: int, rows: int) -> None:
        budget = Fraction(1, 2)
        found = lay_out_triples(currency, range(columns), budget, rows)
        if found is None:
            assert rows < 10**6
            return
        assert found.share == found.rounds * found.choice + found.sums
        assert 0 < found.sums <= found.share <= budget * SHARE
        assert found.rounds == min(3, math.comb(columns, 3))
        # with one candidate there is nothing to choose
        assert (found.choice > 0) == (columns > 3)
        assert found.largest == (min(columns, 5) if columns < 40 else 3)
        assert found.deviation < rows / 10

    @every_currency
    def test_what_would_not_be_found_is_not_paid_for(self, currency: Currency) -> None:
        assert lay_out_triples(currency, range(10), Fraction(1, 1000), 1_000) is None
        assert lay_out_triples(currency, range(2), Fraction(1), 10**6) is None
        assert lay_out_triples(currency, range(10), Fraction(0), 10**6) is None

    @every_currency
    def test_a_rate_costs_what_is_said(self, currency: Currency) -> None:
        assert currency.needed_for(float(currency.rate(Fraction(1, 3)))) == pytest.approx(1 / 3)

    @every_currency
    def test_an_effect_of_the_size_that_is_wanted_is_found(self, currency: Currency) -> None:
        """One of 582 sets has it: it is chosen first in nearly all of 80 runs, as the sizes say."""
        rows, missed = 20_000, 0
        found = lay_out_triples(currency, range(10), Fraction(2), rows)
        assert found is not None
        exact = np.zeros(582, dtype=np.int64)
        exact[77] = -rows // 5
        for seed in range(80):
            paid = account(found, seed)
            numbers, means = measure_triples(exact, np.zeros(582), found, currency, rows, paid)
            assert paid.unspent() == {}
            missed += numbers[0] != 77
            assert numbers[0] != 77 or abs(means[0] + 0.2) < 0.2
        # one in e^3 at most, and as chance has it
        assert missed <= 10


class TestOneRecord:
    def test_sums_are_those_of_products_of_signs(self) -> None:
        random = np.random.default_rng(1)
        records = np.stack([random.integers(0, 1 << one, 70) for one in LEVELS], axis=1)
        signs = np.array([[1 if code < 1 << (one - 1) else -1 for code, one in zip(row, LEVELS, strict=True)] for row in records.tolist()])  # fmt: skip # noqa: E501
        slow = [
            int(signs[:, list(own)].prod(axis=1).sum())
            for size in (3, 4, 5)
            for own in itertools.combinations(range(5), size)
        ]
        assert sums(records).tolist() == slow
        assert len(slow) == largest_sets(5)[1] == len(sets_of(5, 5))

    def test_bits_are_counted_with_an_older_numpy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        records = np.random.default_rng(3).integers(0, 2, (70, 5))
        whole = sums(records, (1,) * 5)
        monkeypatch.delattr(np, "bitwise_count", raising=False)
        assert (sums(records, (1,) * 5) == whole).all()

    def test_runs_of_records_add_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        random = np.random.default_rng(2)
        records = np.stack([random.integers(0, 1 << one, 50) for one in LEVELS], axis=1)
        whole = sums(records)
        monkeypatch.setattr("shoal.mechanisms.pairs.measure_pairs._RUN", 1)
        assert (sums(records) == whole).all()

    def test_every_record_moves_every_sum_by_one_and_scores_by_no_more(self) -> None:
        """All records of four two-valued columns, added to and replaced in all tables of two records."""
        kinds = list(itertools.product((0, 1), repeat=4))
        centres = np.array([-1, 0, 1, 2, 0])
        most = 0
        for table in itertools.product(kinds, repeat=2):
            scores = [np.abs(of_signs(one) - centres) for one in (table, table[:1])]
            assert (np.abs(of_signs(table) - of_signs(table[:1])) == 1).all()
            assert np.abs(scores[0] - scores[1]).max() <= 1
            for other in kinds:
                replaced = np.abs(np.abs(of_signs((table[0], other)) - centres) - scores[0])
                most = max(most, int(replaced.max()))
        assert most == 2

    @pytest.mark.parametrize("factor", [1, 2])
    def test_no_choice_is_likelier_than_its_share_allows(self, factor: int) -> None:
        """Exact probabilities of all choices, over all tables of two records and all their neighbours."""
        centres, share = np.array([-1, 0, 1, 2, 0]), Fraction(3, 2)
        kinds = list(itertools.product((0, 1), repeat=4))
        rate = float(PureEpsilon(factor).rate(share))

        def logs(table: Any) -> NDArray[np.float64]:
            weights = rate * np.abs(of_signs(table) - centres)
            return np.asarray(weights - np.log(np.exp(weights).sum()))

        worst = 0.0
        for table in itertools.product(kinds, repeat=2):
            others = [table[:1]] if factor == 1 else [(table[0], other) for other in kinds]
            worst = max(worst, *(float(np.abs(logs(table) - logs(other)).max()) for other in others))
        assert float(share) / 3 < worst <= float(share)


class TestChoices:
    def test_triples_with_two_columns_in_common_are_chosen_last(self) -> None:
        found = Triples(tuple(range(6)), 3, Fraction(10**6), Fraction(10**6), 1e-3)
        places = found.places.tolist()
        exact = np.zeros(20, dtype=np.int64)
        for three, size in (((0, 1, 2), 900), ((0, 1, 3), 800), ((2, 3, 4), 700), ((0, 3, 5), 600)):
            exact[places.index(list(three))] = size
        numbers, _ = measure_triples(exact, np.zeros(20), found, PureEpsilon(1), 1_000, account(found, 1))
        assert [places[number] for number in numbers] == [[0, 1, 2], [2, 3, 4], [0, 3, 5]]

    def test_where_all_have_two_columns_in_common_others_are_chosen_all_the_same(self) -> None:
        found = Triples(tuple(range(4)), 3, Fraction(1), Fraction(1), 1.0)
        numbers, means = measure_triples(
            np.array([9, 3, 5, 7]), np.zeros(4), found, PureEpsilon(1), 10, account(found, 1)
        )
        assert len(set(numbers.tolist())) == means.size == 3

    def test_effects_that_are_small_or_not_clear_of_noise_are_not_followed(self) -> None:
        found = layout(5)
        expected, numbers = np.full(10, 0.1), np.array([0, 4, 9])
        means = np.array([0.5, 0.25, -0.4])
        clear = to_follow(expected, found, numbers, means, 1_000)
        assert [one.attributes for one in clear] == [(0, 1, 2), (2, 3, 4)]
        assert clear[0].mean == pytest.approx(0.5, abs=1e-4)
        assert to_follow(expected, found, numbers, means, 4) == ()

    def test_what_a_model_says_of_a_triple(self) -> None:
        random = np.random.default_rng(3)
        starts = np.array([0, 4, 6, 8])
        bins = np.concatenate([random.dirichlet(np.ones(size), 3) for size in (4, 2, 2)], axis=1)
        weights = random.dirichlet(np.ones(3))
        slow = 0.0
        for k, (i, a), (j, b), (m, c) in itertools.product(
            range(3), enumerate((1, 1, -1, -1)), enumerate((1, -1)), enumerate((1, -1))
        ):
            slow += weights[k] * bins[k, i] * bins[k, 4 + j] * bins[k, 6 + m] * a * b * c
        assert predicted(Mixture(weights, bins, starts), layout(3, 1), np.array([2, 1, 1])) == pytest.approx(
            [slow]
        )


def exclusive(rows: int = 3_000, seed: int = 4) -> tuple[pd.DataFrame, shoal.Schema]:
    """Two numbers, and a third column that says whether exactly one of them is above 50, in nine rows of ten."""
    random = np.random.default_rng(seed)
    found = {f"x{number}": random.integers(0, 101, rows) for number in range(4)}
    odd = (found["x0"] > 50) ^ (found["x2"] > 50) ^ (random.random(rows) < 0.1)
    entries: list[dict[str, Any]] = [{"name": name, "lo": 0, "hi": 100} for name in found]
    entries += [{"name": "odd", "kind": "nominal", "values": ["no", "yes"]}]
    entries += [{"name": "colour", "kind": "nominal", "values": ["red", "green", "blue"]}]
    table = pd.DataFrame({**found, "odd": np.where(odd, "yes", "no")})
    table["colour"] = random.choice(["red", "green", "blue"], rows)
    return table, shoal.Schema.from_dict({"attribute": entries})


def seen(table: pd.DataFrame) -> float:
    """How often the third column says what it should, of -1 to 1."""
    odd = (table["x0"] > 50) ^ (table["x2"] > 50)
    return float(2 * (odd == (table["odd"] == "yes")).mean() - 1)


class TestReleases:
    @pytest.mark.parametrize("options", [{}, {"delta": "0.000001"}, {"neighbours": "replace-one"}])
    def test_an_exclusive_or_is_kept(self, options: dict[str, Any]) -> None:
        table, schema = exclusive()
        kept = [
            seen(shoal.protect(table, schema, "pairs-dp", 4, seed=1, triples=triples, **options).data)
            for triples in (False, True)
        ]
        assert abs(kept[0]) < 0.2
        assert kept[1] > 0.6

    def test_the_statement_says_what_can_be_measured(self) -> None:
        table, schema = exclusive(300)
        said = shoal.protect(table, schema, "pairs-dp", 40, seed=1, triples=True, rows=300).statement
        assert any(
            "Up to 3 sets of 3 to 5 columns among x0, x1, x2, x3, odd are chosen privately" in one
            for one in said.conditions
        )
        assert said.spending["triples of attributes"] > 0
        assert sum(said.spending.values()) == said.epsilon
        hopeless = shoal.protect(table, schema, "pairs-dp", 1, seed=1, triples=True, rows=300).statement
        assert any("Triples of columns are not measured" in one for one in hopeless.conditions)

    def test_large_effects_are_looked_for_where_that_costs_little(self) -> None:
        """Without a request: an exclusive or of four columns with 5,000 rows at ε = 1, and nothing with 500."""
        random = np.random.default_rng(8)
        table = pd.DataFrame({f"x{i}": random.integers(0, 2, 5_000) for i in range(5)})
        table["odd"] = (table.x0 ^ table.x2 ^ table.x4 ^ (random.random(5_000) < 0.1)).astype(int)
        entries = [{"name": name, "lo": 0, "hi": 1} for name in table]
        schema = shoal.Schema.from_dict({"attribute": entries})
        kept, said = [], []
        for rows in (5_000, 500):
            made = shoal.protect(table.head(rows), schema, "pairs-dp", 1, seed=2, rows=rows)
            kept.append(float(((made.data.x0 ^ made.data.x2 ^ made.data.x4) == made.data.odd).mean()))
            said.append(" ".join(made.statement.conditions))
        assert kept[0] > 0.8
        assert "One set of 3 to 5 columns" in said[0]
        assert "is not measured: finding a large effect" in said[1]
        off = shoal.protect(table, schema, "pairs-dp", 1, seed=2, rows=5_000, triples=False)
        assert "triples of attributes" not in off.statement.spending

    def test_where_there_are_many_columns_the_statement_says_which_sets_are_left_out(self) -> None:
        table = pd.DataFrame(
            np.random.default_rng(1).integers(0, 2, (100, 40)), columns=[f"x{i}" for i in range(40)]
        )
        schema = shoal.Schema.from_dict({"attribute": [{"name": name, "lo": 0, "hi": 1} for name in table]})
        prepared = prepare(read(table), schema, "pairs-dp", epsilon=1, rows=10**6)
        assert any("only more than 3 columns" in str(one) for one in prepared.plan.conditions)

    def test_an_engine_releases_the_same_rows(self, tmp_path: Path) -> None:
        table, schema = exclusive(1_000)
        table.to_parquet(tmp_path / "table.parquet", row_group_size=300)
        rows = []
        for engine in ("memory", "local"):
            out = tmp_path / engine
            asked = {"schema": schema, "epsilon": 20, "seed": 1, "triples": True, "engine": engine}
            shoal.publish(tmp_path / "table.parquet", out=out, **asked)
            made = pd.read_parquet(out / "data.parquet")
            rows.append(sorted(map(tuple, made.to_numpy().tolist())))
            assert seen(made) > 0.6
        assert rows[0] == rows[1]

    def test_latent_normals_are_exchanged_inside_bins(self) -> None:
        """Positions go together as the correlations say, and stay in their bins."""
        random = np.random.default_rng(6)
        wanted = np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.0]])
        edges = np.array([0, 500, 1000])
        fine = Fine(np.array([0]), np.array([999]), np.ones(1), np.zeros(1))
        marginals = [Marginal(fine, np.array([0.5, 0.5]), 1, edges)] * 3
        drawn = random.multivariate_normal(np.zeros(3), wanted, 400)
        # as many rows in either half, so that the ranks of a column do not leave the bins
        codes = drawn > np.median(drawn, axis=0)
        off = []
        for exactly in (False, True):
            placed = positions_of(
                codes.astype(np.uint8), marginals, (0, 1, 2), wanted, Seeded(3), exactly=exactly
            )
            places = np.stack(list(placed), axis=1)
            assert ((places >= 500) == codes).all()
            normal = ndtri((places + 0.5) / 1000)
            off.append(float(np.abs(np.corrcoef(normal.T) - wanted).max()))
        assert off[1] < min(off[0] / 2, 0.02)

    def test_without_effects_only_the_share_is_lost(self) -> None:
        """Columns that go together in pairs only: nothing is followed, and the pairs stay as good."""
        random = np.random.default_rng(5)
        factor = random.normal(size=(4_000, 1))
        values = np.clip(50 + 10 * (factor + random.normal(size=(4_000, 5))), 0, 100).astype(int)
        table = pd.DataFrame(values, columns=[f"x{i}" for i in range(5)])
        schema = shoal.Schema.from_dict({"attribute": [{"name": c, "lo": 0, "hi": 100} for c in table]})
        made = shoal.protect(table, schema, "pairs-dp", 4, seed=1, triples=True).data
        assert np.abs(made.corr().to_numpy() - table.corr().to_numpy()).max() < 0.06

    def test_columns_with_gaps_take_no_part(self) -> None:
        table, _ = exclusive(400)
        entries: list[dict[str, Any]] = [
            {"name": f"x{i}", "lo": 0, "hi": 100, "step": 1, "missing": "category"} for i in range(4)
        ]
        schema = shoal.Schema.from_dict({"attribute": entries})
        gappy = table[[f"x{i}" for i in range(4)]].astype("float64")
        gappy.iloc[::7, 0] = np.nan
        made = shoal.protect(gappy, schema, "pairs-dp", 400, seed=1, triples=True)
        assert any("Triples of columns are not measured" in one for one in made.statement.conditions)

    def test_every_other_method_refuses_them_in_one_line(self) -> None:
        for name in names():
            if name == "pairs-dp":
                continue
            with pytest.raises(OptionError, match="has no option 'triples'") as found:
                method_class(name).configure(triples=True)
            assert "\n" not in str(found.value)
