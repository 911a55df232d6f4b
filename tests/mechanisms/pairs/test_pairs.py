"""pairs-dp, part by part: sizes, sums, what is made of noisy numbers, and whole releases of odd tables."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import shoal
from shoal import workers
from shoal.errors import OptionError
from shoal.mechanisms.pairs import model
from shoal.mechanisms.pairs.budget import (
    AttributeFacts,
    Concentrated,
    ContrastGroup,
    Currency,
    MeasurementShape,
    PureEpsilon,
    allot,
    halves,
    lay_out_oneway,
    lay_out_pairs,
    most_groups,
)
from shoal.mechanisms.pairs.distributions import (
    Fine,
    nearest_correlation,
    places,
    points,
    settled,
    shrunk,
    slopes_for,
    tetrachoric,
    with_tails,
)
from shoal.mechanisms.pairs.measure_one import Marginal, _of_counts, merged, with_flags
from shoal.mechanisms.pairs.measure_pairs import (
    PairCounts,
    fit,
    functions,
    group_sums,
    inside_order,
    sign_products,
)
from shoal.mechanisms.pairs.model import block_sizes, goals_of
from shoal.mechanisms.pairs.tables import (
    ContrastBlock,
    centred,
    clear_structure,
    inside_bins,
    of_parts,
    pair_tables,
)
from shoal.noise import Seeded
from shoal.privacy import Accountant, RecordSum, Spend
from shoal.taxonomy import Taxonomy

CURRENCIES: list[Currency] = [PureEpsilon(1), PureEpsilon(2), Concentrated(1), Concentrated(2)]
WHAT = RecordSum("contrast")
every_currency = pytest.mark.parametrize("currency", CURRENCIES, ids=str)


def spend(share: Fraction, seed: int) -> Spend:
    return Accountant.of({"sums": share}, share, Seeded(seed)).spend("sums", share)


class TestSizes:
    @every_currency
    @pytest.mark.parametrize("rows", [1, 30, 1_000, 30_000, 10**6])
    @pytest.mark.parametrize("budget", [Fraction(1, 50), Fraction(1), Fraction(20)])
    def test_shares_add_up_to_the_budget_exactly(
        self, currency: Currency, rows: int, budget: Fraction
    ) -> None:
        attributes = [
            AttributeFacts("x", 1001, True),
            AttributeFacts("y", 9, True),
            AttributeFacts("s", 2, True),
            AttributeFacts("one", 1, True),
        ]
        attributes += [AttributeFacts("z", 10**6, True), AttributeFacts("names", 12, False)]
        shared = halves(currency, attributes, budget, rows, None)
        assert shared.oneway + shared.pairs == budget
        oneway = lay_out_oneway(currency, attributes, shared.oneway, rows)
        spent = oneway.sign_share + oneway.each * len(oneway.counted) + sum(oneway.rounds)
        spent += (sum(oneway.cuts) + oneway.choices) * len(oneway.cut) + oneway.frequent
        spent += sum(oneway.counts) + oneway.sums
        assert spent == shared.oneway
        pairs = lay_out_pairs(currency, [3, 3, 1, 0, 4, 0], [0, 0, 0, 0, 0, 12], budget, rows, target=2)
        spent = pairs.sign_share + sum(group.share for group in pairs.groups)
        assert spent == budget or not pairs.measured

    @pytest.mark.parametrize("levels", [[4, 4, 4], [4, 3, 1, 1, 2, 4], [1, 1]])
    def test_every_contrast_of_every_pair_is_measured_once(self, levels: list[int]) -> None:
        found = lay_out_pairs(PureEpsilon(1), levels, [0] * len(levels), Fraction(10**6), 10**6)
        seen: list[tuple[int, int, int, int]] = []
        for group in found.groups:
            for b in group.partners:
                one = (group.pivot, group.level), (b, group.depth)
                seen.append((*min(one), *max(one)))
        wanted = [
            (a, i, b, j)
            for (a, of_a), (b, of_b) in itertools.combinations(enumerate(levels), 2)
            for i in range(of_a)
            for j in range(of_b)
            if i + j > 0
        ]
        assert sorted(seen) == sorted(wanted)
        assert found.signs == tuple(range(len(levels)))

    @pytest.mark.parametrize("groups", [[5, 9], [3, 40, 7, 7], [4] * 6])
    def test_every_pair_of_names_is_measured_once(self, groups: list[int]) -> None:
        levels = [0] * len(groups)
        found = lay_out_pairs(PureEpsilon(1), levels, groups, Fraction(10**6), 10**6)
        seen = [tuple(sorted((group.pivot, b))) for group in found.groups for b in group.partners]
        assert sorted(seen) == list(itertools.combinations(range(len(groups)), 2))
        for group in found.groups:
            assert group.shape.cells == groups[group.pivot] >= max(group.shape.block_sizes)
            assert group.shape.block_sizes == tuple(groups[b] for b in group.partners)

    def test_names_measured_together_have_less_noise_than_pair_by_pair(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for groups, less in (([6] * 8, 0.88), ([3, 3, 3, 30, 30, 30, 100, 2], 0.95), ([3] * 10, 0.76)):
            with monkeypatch.context() as patch:
                patch.setattr(PureEpsilon, "decline", 0.0)
                found = lay_out_pairs(PureEpsilon(1), [0] * len(groups), groups, Fraction(1), 10**6)
            alone = PureEpsilon(1).deviation(MeasurementShape(6, 1, 6), Fraction(1))
            alone *= len(groups) * (len(groups) - 1) // 2
            assert all(group.deviation < less * alone for group in found.groups)
            assert max(max(group.deviations) for group in found.groups) < 2 * alone

    @every_currency
    def test_large_tables_of_names_have_less_noise(self, currency: Currency) -> None:
        """So that the error of all tables together is least: its slope along shares is the same for each table."""
        groups = [4, 6, 9, 11, 12]
        found = lay_out_pairs(currency, [0] * 5, groups, Fraction(1), 10**6)
        each = [
            (groups[group.pivot] * size, noise)
            for group in found.groups
            for size, noise in zip(group.shape.block_sizes, group.deviations, strict=True)
        ]
        if isinstance(currency, Concentrated):
            # tables measured together have the same noise, and their mean number of sums counts
            slopes = [group.weight * group.deviation**3 for group in found.groups]
            assert max(slopes) == pytest.approx(min(slopes))
        largest, smallest = max(each), min(each)
        assert largest[1] < smallest[1]

    @every_currency
    def test_noise_of_an_allotment_follows_the_aims(self, currency: Currency) -> None:
        shapes = [MeasurementShape(1, 3, 1), MeasurementShape(4, 2, 2), MeasurementShape(1, 1, 30)]
        shares = allot(currency, shapes, [1.0, 2.0, 4.0], Fraction(3))
        noise = [currency.deviation(shape, share) for shape, share in zip(shapes, shares, strict=True)]
        assert sum(shares) == 3
        assert np.allclose(np.array(noise) / noise[0], [1, 2, 4])

    @every_currency
    @pytest.mark.parametrize(
        "shape",
        [MeasurementShape(3, 4, 2), MeasurementShape(1, 1, 5), MeasurementShape(2, 2, 3, unit=64)],
        ids=str,
    )
    def test_noise_is_as_large_as_is_said(self, currency: Currency, shape: MeasurementShape) -> None:
        exact = np.full((shape.cells, shape.blocks, shape.size), 1000)
        share = Fraction(1, 5)
        runs = range(2000 // exact.size)
        drawn = [currency.measure(exact, shape, spend(share, seed), WHAT) - 1000 for seed in runs]
        assert np.std(drawn) == pytest.approx(currency.deviation(shape, share), rel=0.1)

    @every_currency
    def test_noise_of_blocks_of_different_sizes_is_as_large_as_is_said(self, currency: Currency) -> None:
        shape, share = MeasurementShape(20, 3, 5, sizes=(5, 3, 1)), Fraction(1, 5)
        exact = np.full((20, 9), 1000)
        drawn = np.stack(
            [currency.measure(exact, shape, spend(share, seed), WHAT) - 1000 for seed in range(60)]
        )
        found = [float(block.std()) for block in np.split(drawn, [5, 8], axis=2)]
        said = currency.deviations(shape, share)
        assert found == pytest.approx(said, rel=0.1)
        assert np.mean(np.square(said)) == pytest.approx(currency.deviation(shape, share) ** 2)

    def test_noise_of_signs_is_as_large_as_is_said(self) -> None:
        currency = PureEpsilon(1)
        shape = currency.sign_shape(7)
        below, exact = np.tril_indices(7, -1), np.zeros((7, 7), dtype=np.int64)
        drawn = [
            currency.measure(exact, shape, spend(Fraction(1, 5), seed), WHAT)[below] for seed in range(150)
        ]
        assert np.std(drawn) == pytest.approx(currency.deviation(shape, Fraction(1, 5)), rel=0.1)


class TestSums:
    def records(self, seed: int = 0) -> tuple[list[NDArray[np.uint8]], list[int], list[int]]:
        random = np.random.default_rng(seed)
        levels, bins = [3, 2, 1, 0], [8, 4, 2, 5]
        return [random.integers(0, size, 60).astype(np.uint8) for size in bins], levels, bins

    @pytest.mark.parametrize(("pivot", "level", "b", "depth"), [(0, 2, 1, 1), (1, 1, 2, 0), (3, -1, 0, 2)])
    def test_contrasts_are_sums_over_records(self, pivot: int, level: int, b: int, depth: int) -> None:
        codes, levels, bins = self.records()
        group = ContrastGroup(pivot, level, (b,), depth, MeasurementShape(1, 1, 1))
        found = group_sums(PairCounts(codes, bins), group, levels, bins)
        own, other = functions(levels[pivot], level, bins[pivot]), functions(levels[b], depth, bins[b])
        slow = sum(
            np.outer(own[x], other[y]) for x, y in zip(codes[pivot].tolist(), codes[b].tolist(), strict=True)
        )
        assert (found == slow).all()

    def test_a_record_changes_one_sum_of_each_block_of_one_cell(self) -> None:
        codes, levels, bins = self.records()
        random = np.random.default_rng(1)
        # names of four columns, whose blocks differ in size, and a column with parts of its bins
        more = [3, 7, 4, 64]
        codes += [random.integers(0, size, 60).astype(np.uint8) for size in more]
        levels, bins = [*levels, 0, 0, 0, 6], [*bins, *more]
        layout = lay_out_pairs(PureEpsilon(1), levels, [0, 0, 0, *bins[3:7], 0], Fraction(10**6), 10**6)
        assert {(group.level, group.depth) for group in layout.groups} >= {
            (-1, -1),
            (-1, 4),
            (-1, 5),
            (1, 1),
            (3, 2),
        }
        # parts of bins for names only
        assert all(group.level < 4 and (group.depth < 4 or group.level < 0) for group in layout.groups)
        assert any(len(set(group.shape.block_sizes)) > 1 for group in layout.groups)
        for group in layout.groups:
            before = group_sums(PairCounts(codes, bins), group, levels, bins)
            sizes = group.shape.block_sizes
            assert before.shape == (group.shape.cells, sum(sizes))
            for row in range(10):
                fewer = [np.delete(column, row) for column in codes]
                change = np.abs(before - group_sums(PairCounts(fewer, bins), group, levels, bins))
                assert np.count_nonzero(change.sum(axis=1)) == 1
                for block in np.split(change, np.cumsum(sizes)[:-1], axis=1):
                    assert block.sum() == block.max() == 1

    def test_products_of_signs(self) -> None:
        codes, levels, bins = self.records()
        found = sign_products(PairCounts(codes, bins), (0, 1, 2), levels, 60)
        signs = np.stack([1 - 2 * (codes[a] >> (levels[a] - 1)).astype(np.int64) for a in range(3)], axis=1)
        assert (found == signs.T @ signs).all()


class TestCorrelations:
    def test_correlations_behind_signs_are_found(self) -> None:
        random = np.random.default_rng(1)
        wanted = np.array([[1, 0.9, -0.4], [0.9, 1, 0], [-0.4, 0, 1]])
        cuts = np.array([0.0, 0.5, -0.7])
        signs = np.where(random.multivariate_normal(np.zeros(3), wanted, 400_000) < cuts, 1, -1)
        found = tetrachoric(signs.T @ signs / len(signs), ndtr(cuts))
        assert np.abs(found - wanted).max() < 0.01

    def test_noise_is_shrunk_and_signal_is_kept(self) -> None:
        random = np.random.default_rng(2)
        loads = random.uniform(0.5, 0.9, 30)
        truth = np.outer(loads, loads)
        np.fill_diagonal(truth, 1)
        noise = random.normal(0, 0.1, truth.shape)
        noisy = truth + np.triu(noise, 1) + np.triu(noise, 1).T
        error = [
            np.abs(one - truth)[~np.eye(30, dtype=bool)].mean()
            for one in (noisy, shrunk(noisy, np.ones(30), 0.1))
        ]
        assert error[1] < error[0] / 2

    def test_the_nearest_correlation_matrix_is_one(self) -> None:
        random = np.random.default_rng(3)
        matrix = random.uniform(-1, 1, (12, 12))
        found = nearest_correlation((matrix + matrix.T) / 2, 0.01)
        assert np.allclose(np.diag(found), 1)
        assert np.linalg.eigvalsh(found).min() > 0.005


def marginal(levels: int) -> Marginal:
    size = 1 << levels
    return Marginal(points(np.full(size, 1 / size)), np.full(size, 1 / size), levels, np.arange(size + 1))


class TestTables:
    def test_exact_contrasts_give_the_table_back(self) -> None:
        random = np.random.default_rng(4)
        truth = random.gamma(2, 1, (8, 8))
        for _ in range(100):
            truth /= truth.sum(axis=1, keepdims=True) * 8
            truth /= truth.sum(axis=0, keepdims=True) * 8
        blocks = [
            ContrastBlock(0, 1, i, j, functions(3, i, 8).T @ truth @ functions(3, j, 8), 1e-7)
            for i in range(3)
            for j in range(3)
        ]
        found = pair_tables([marginal(3), marginal(3)], {(0, 1): 0.3}, blocks)[0, 1]
        assert np.abs(found - truth).max() < 1e-3

    def test_contrasts_of_names_add_up_to_those_of_the_column(self) -> None:
        """Centring takes the noise of the sums over names away, and nothing else."""
        random, marginals = (
            np.random.default_rng(0),
            [_of_counts(np.full(8, 1 / 8)), merged(np.full(5, 0.2), 0, 9, None)],
        )
        tables = {(0, 1): np.full((8, 5), 1 / 40)}
        noisy = random.normal(0, 0.01, (4, 5))
        (found,) = centred([ContrastBlock(0, 1, 2, -1, noisy, 0.01)], tables, marginals)
        assert np.allclose(found.noisy.sum(axis=1), 0)
        assert np.allclose(found.noisy, noisy - noisy.mean(axis=1, keepdims=True))
        assert found.noise == pytest.approx(0.01 * 0.8**0.5)
        (same,) = centred([ContrastBlock(0, 0, 1, 1, noisy, 0.01)], tables, marginals)
        assert same.noisy is noisy

    def test_structure_too_weak_for_single_contrasts_is_kept(self) -> None:
        """Every residual is below its noise, but all follow one product of a line and a column."""
        random = np.random.default_rng(1)
        names = [merged(np.full(40, 1 / 40), 0, 99, None) for _ in range(2)]
        tables = {(0, 1): np.full((40, 40), 1 / 1600)}
        truth = 0.0006 * np.outer(np.linspace(-1, 1, 40), np.linspace(-1, 1, 40))
        noise = 0.0005
        for scale in (1.0, 0.0):
            noisy = tables[0, 1] + scale * truth + random.normal(0, noise, truth.shape)
            found = clear_structure([ContrastBlock(0, 1, -1, -1, noisy, noise)], tables, names)[0, 1, -1, -1]
            error = np.sqrt(((found - scale * truth) ** 2).mean())
            assert error < 0.3 * noise

    def test_contrasts_that_are_noise_change_nothing(self) -> None:
        random = np.random.default_rng(5)
        blocks = [
            ContrastBlock(0, 1, i, j, random.normal(0, 0.05, (1 << i, 1 << j)), 0.05)
            for i in range(3)
            for j in range(3)
        ]
        found = pair_tables([marginal(3), marginal(3)], {}, blocks)[0, 1]
        assert np.abs(found - 1 / 64).max() < 0.01

    def test_a_mixture_fits_tables_of_a_chain(self) -> None:
        shares = [np.full(4, 0.25)] * 3
        table = np.full((4, 4), 0.02) + np.eye(4) * 0.17
        tables = {(0, 1): table, (1, 2): table, (0, 2): 4 * table @ table}
        found = fit(shares, tables, np.eye(3), (0, 1, 2), np.random.default_rng(0))
        model = found.bins.T @ (found.bins * found.weights[:, None])
        goals = goals_of(shares, tables, found.starts)
        apart = np.abs(model - goals)[np.kron(~np.eye(3, dtype=bool), np.ones((4, 4), dtype=bool))]
        assert apart.max() < 0.01

    def test_blocks_of_rows(self) -> None:
        assert block_sizes(65_536 * 2 + 5) == [65_536, 65_536, 5]
        assert block_sizes(3) == [3]


class TestMarginals:
    def test_few_answers_without_noise_give_a_distribution_function(self) -> None:
        asked = np.array([0.2, 0.25, 0.3, 0.35, 0.4])
        answers = ndtr((asked - 0.3) / 0.05)
        curve = settled(asked, answers, 1e-4)
        assert np.abs(curve - ndtr((places() - 0.3) / 0.05)).max() < 0.01
        assert (np.diff(curve) >= 0).all()

    def test_answers_that_are_noise_leave_a_broad_distribution(self) -> None:
        curve = settled(np.array([0.5, 0.6]), np.array([1.4, -0.3]), 5.0)
        assert np.interp(0.25, places(), curve) > 0.05
        assert np.interp(0.75, places(), curve) < 0.95

    @pytest.mark.parametrize("mean", [0.01, 0.2, 0.5, 0.9])
    def test_positions_inside_an_interval_have_its_mean(self, mean: float) -> None:
        fine = Fine(np.array([0]), np.array([9_999]), np.ones(1), slopes_for(np.array([mean])))
        drawn = fine.positions((np.arange(20_000) + 0.5) / 20_000)
        assert drawn.mean() / 10_000 == pytest.approx(mean, abs=0.002)
        assert (np.diff(drawn) >= 0).all()

    @pytest.mark.parametrize("noise", [1e-6, 1e6])
    def test_a_heavy_tail_goes_on_beyond_the_last_cut(self, noise: float) -> None:
        """As far as its mean says, or without a mean as the other cuts suggest, not evenly over the domain."""
        values = np.sort(np.exp(np.random.default_rng(0).normal(7, 1, 50_000))).astype(np.int64)
        edges = np.concatenate(([0], values[[6_250 * i for i in range(1, 8)]], [100_000]))
        means = np.array([part.mean() for part in np.split(values, np.searchsorted(values, edges[1:-1]))])
        fine = Fine(edges[:-1], edges[1:] - 1, np.full(8, 1 / 8), np.zeros(8))
        found = with_tails(fine, edges, means, np.full(8, noise))
        assert found.shares.sum() == pytest.approx(1)
        drawn = found.positions((np.arange(10_000) + 0.5) / 10_000)
        last = drawn[drawn >= edges[-2]]
        if noise < 1:
            assert last.mean() == pytest.approx(means[-1], rel=0.02)
        assert np.median(last) == pytest.approx(np.median(values[values >= edges[-2]]), rel=0.2)
        assert np.quantile(last, 0.95) < 0.3 * 100_000

    @pytest.mark.parametrize(("points", "parts"), [(16, 1), (30, 2), (90, 4)])
    def test_parts_of_bins_are_inside_them(self, points: int, parts: int) -> None:
        own = _of_counts(np.random.default_rng(3).dirichlet(np.full(points, 0.3)))
        assert own.all_levels == 4 + parts.bit_length() - 1
        if own.finer is None or own.parts is None:
            # sixteen values have no parts
            assert parts == 1
            return
        assert own.finer[::parts].tolist() == own.edges.tolist()
        positions = np.arange(points)
        codes = own.codes(positions, finer=True)
        assert (codes // parts == own.codes(positions)).all()
        shares = np.bincount(codes, own.fine.shares, minlength=16 * parts).reshape(16, parts)
        assert shares == pytest.approx(own.parts * own.shares[:, None], abs=1e-12)

    @pytest.mark.parametrize("noise", [1e-9, 0.02])
    @pytest.mark.parametrize("turned", [False, True])
    def test_where_values_lie_inside_bins_follows_names_as_far_as_it_is_clear(
        self, noise: float, turned: bool
    ) -> None:
        random = np.random.default_rng(1)
        own, names = _of_counts(np.full(64, 1 / 64)), merged(np.full(5, 0.2), 0.0, 9, None)
        parts, table = random.dirichlet(np.ones(4), (5, 16)), random.dirichlet(np.ones(80)).reshape(5, 16)
        joint = (table[:, :, None] * parts).reshape(5, 64)
        blocks = []
        for depth in (4, 5):
            exact = joint @ functions(6, depth, 64)
            block = ContrastBlock(0, 1, -1, depth, exact + random.normal(0, noise, exact.shape), noise)
            blocks.append(block if not turned else replace(block, first=1, second=0).turned)
        marginals = [own, names] if turned else [names, own]
        assert all(of_parts(block, marginals) for block in blocks)
        assert not of_parts(
            replace(blocks[0], level=3 if turned else -1, depth=-1 if turned else 3), marginals
        )
        # nor contrasts of two columns of which one has few levels
        two = [replace(own, shares=np.array([0.5, 0.5]), levels=1, parts=None), own]
        assert not of_parts(ContrastBlock(0, 1, 0, 3, np.zeros((1, 8)), 1.0), two)
        found = inside_bins(blocks, {(0, 1): table.T if turned else table}, marginals)
        assert list(found) == [0 if turned else 1]
        (inside,) = found.values()
        assert inside.parts.sum(axis=2) == pytest.approx(np.ones((5, 16)))
        if noise < 0.01:
            assert np.abs(inside.parts - parts).max() < 1e-4
        else:
            # noise larger than what it hides: nearer to the parts of all names
            assert np.abs(inside.parts - 0.25).mean() < 0.5 * np.abs(parts - 0.25).mean()

    def test_rows_of_a_name_are_in_the_parts_of_bins_that_it_asks_for(self) -> None:
        random = np.random.default_rng(2)
        bins, names = (random.integers(0, size, 20_000).astype(np.uint8) for size in (4, 3))
        values = random.normal(size=20_000)
        parts = random.dirichlet(np.ones(4), (3, 4))
        parts[0, 0] = [0, 1, 0, 0]
        alone = parts.mean(axis=0)
        found = inside_order(bins, values, names, parts, alone)
        assert (found.astype(np.uint8) == bins).all()
        for name, bin in np.ndindex(3, 4):
            here = (names == name) & (bins == bin)
            inside = found[here] - bin
            which = np.searchsorted(np.cumsum(alone[bin])[:-1], inside, side="right")
            assert np.bincount(which, minlength=4) / which.size == pytest.approx(parts[name, bin], abs=0.05)
            # in the order of the values
            assert (np.argsort(inside) == np.argsort(values[here])).all()
        # all names together fill the bins evenly
        assert np.quantile(found - bins, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.03)

    def test_rare_names_are_one_group_or_join_their_kin(self) -> None:
        shares = np.array([0.3, 0.04, 0.04, 0.3, 0.01, 0.31])
        assert merged(shares, 0.06, 9, None).groups.tolist() == [0, 3, 3, 1, 3, 2]
        kin = Taxonomy.from_dict({"*": {"a": list("uvw"), "b": list("xyz")}})
        # v and w are frequent together; y is not, and has no kin that is rare
        assert merged(shares, 0.06, 9, kin).groups.tolist() == [0, 3, 3, 1, 4, 2]

    def test_rare_names_join_the_lowest_concept_that_is_frequent(self) -> None:
        tree = Taxonomy.from_dict({"*": {"a": {"b": ["b1", "b2"], "c": ["c1", "c2"]}, "d": ["d1", "d2"]}})
        of = dict(zip(tree.values, range(6), strict=True))
        shares = np.empty(6)
        for name, share in {"b1": 0.04, "b2": 0.04, "c1": 0.02, "c2": 0.02, "d1": 0.85, "d2": 0.03}.items():
            shares[of[name]] = share

        def together(least: float) -> set[frozenset[str]]:
            groups = merged(shares, least, 9, tree).groups
            assert groups is not None
            return {frozenset(n for n in of if groups[of[n]] == g) for g in set(groups.tolist())}

        rest = frozenset({"d2"})
        assert together(0.03) == {frozenset(one) for one in ({"b1"}, {"b2"}, {"c1", "c2"}, {"d1"}, rest)}
        assert together(0.07) == {frozenset({"b1", "b2"}), frozenset({"c1", "c2", "d2"}), frozenset({"d1"})}
        assert together(0.11) == {frozenset({"b1", "b2", "c1", "c2"}), frozenset({"d1"}), rest}

    def test_hundreds_of_names_are_few_groups(self) -> None:
        shares = np.full(500, 1 / 500)
        for tree in (
            None,
            Taxonomy.from_dict({"*": {str(i): [f"{i}-{j}" for j in range(50)] for i in range(10)}}),
        ):
            groups = merged(shares, 1e-6, 32, tree).groups
            assert groups is not None
            assert len(set(groups.tolist())) == groups.max() + 1 <= 32

    @pytest.mark.parametrize("points", [[3], [900], [3, 900, 40], [900] * 5, [50] * 40, [900] * 40])
    def test_columns_of_names_share_the_groups(self, points: list[int]) -> None:
        found = most_groups([AttributeFacts(str(p), p, False) for p in points])
        assert all(found[place] <= min(own, 250) for place, own in enumerate(points))
        # as many as there are, or a fair part
        fair = max(600 // len(points), 32)
        assert all(found[place] >= min(own, fair, 250) for place, own in enumerate(points))
        assert sum(found.values()) <= max(600, 32 * len(points))


def schema(*entries: dict[str, Any]) -> shoal.Schema:
    return shoal.Schema.from_dict({"attribute": list(entries)})


class TestReleases:
    @pytest.mark.parametrize(
        "settings", [{}, {"neighbours": "replace-one"}, {"rows": 2_000}, {"delta": "0.000001"}]
    )
    def test_pairs_are_kept(self, settings: dict[str, Any]) -> None:
        random = np.random.default_rng(7)
        latent = random.multivariate_normal([50, 50], [[100, 80], [80, 100]], 2_000)
        name = np.where(latent[:, 0] + random.normal(0, 5, 2_000) > 50, "high", "low")
        table = pd.DataFrame({"x": latent[:, 0].round(1), "y": latent[:, 1].round(1), "name": name})
        declared = schema(
            {"name": "x", "lo": 0.0, "hi": 100.0},
            {"name": "y", "lo": 0.0, "hi": 100.0},
            {"name": "name", "kind": "nominal", "values": ["low", "high"]},
        )
        released = shoal.protect(table, declared, "pairs-dp", 5, outside="clip", seed=1, **settings).data
        assert np.corrcoef(released["x"], released["y"])[0, 1] == pytest.approx(0.8, abs=0.06)
        high = released[released["name"] == "high"]
        assert (high["x"].mean() - released["x"].mean()) == pytest.approx(
            table["x"][name == "high"].mean() - table["x"].mean(), abs=1.5
        )
        assert released["x"].quantile([0.1, 0.5, 0.9]).tolist() == pytest.approx(
            table["x"].quantile([0.1, 0.5, 0.9]).tolist(), abs=2.5
        )

    def test_means_by_a_column_of_many_names_are_kept(self) -> None:
        random = np.random.default_rng(5)
        towns = [f"town {i}" for i in range(120)]
        town = random.integers(0, 120, 20_000)
        income = np.clip(random.normal(30 + 0.4 * town, 8).round(), 0, 120).astype(int)
        table = pd.DataFrame({"town": np.array(towns)[town], "income": income})
        declared = schema(
            {"name": "town", "kind": "nominal", "values": towns}, {"name": "income", "lo": 0, "hi": 120}
        )
        made = shoal.protect(table, declared, "pairs-dp", 5, seed=1).data
        true, released = (one.groupby("town")["income"].mean() for one in (table, made))
        # the mean of all rows instead would be off by .75
        assert (released - true).abs().mean() / income.std() < 0.15

    def test_rows_are_the_same_for_any_number_of_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(model, "BLOCK", 64)
        random = np.random.default_rng(2)
        table = pd.DataFrame({"a": random.integers(0, 50, 1_000), "b": random.choice(list("uvw"), 1_000)})
        found = []
        for cores in (1, 2, 5):
            monkeypatch.setattr(workers, "available_cores", lambda cores=cores: cores)
            domains = {"a": (0, 50), "b": list("uvw")}
            found.append(shoal.protect(table, domains=domains, epsilon=8, seed=4).data)
        assert len(block_sizes(len(found[0]))) > 5
        assert found[0].equals(found[1])
        assert found[0].equals(found[2])

    @pytest.mark.parametrize("n", [1, 2, 30])
    @pytest.mark.parametrize(
        "settings", [{}, {"neighbours": "replace-one"}, {"delta": "0.001"}, {"target": "s"}]
    )
    def test_small_tables_of_all_kinds(self, n: int, settings: dict[str, Any]) -> None:
        random = np.random.default_rng(n)
        names = [f"n{i}" for i in range(40)]
        table = pd.DataFrame(
            {
                "x": random.random(n) * 10,
                "s": random.integers(0, 2, n),
                "level": random.choice(["low", "middle", "high"], n),
                "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D"),
                "many": random.choice(names, n),
                "only": ["one"] * n,
            }
        )
        declared = schema(
            {"name": "x", "lo": 0.0, "hi": 10.0},
            {"name": "s", "lo": 0, "hi": 1},
            {"name": "level", "ordered": ["low", "middle", "high"]},
            {"name": "day", "kind": "date", "lo": "2020-01-01", "hi": "2020-12-31"},
            {"name": "many", "kind": "nominal", "values": names},
            {"name": "only", "kind": "nominal", "values": ["one"]},
        )
        release = shoal.protect(table, declared, "pairs-dp", 1, seed=3, **settings)
        assert release.statement.model == ("approximate-dp" if "delta" in settings else "dp")
        assert list(release.data) == list(table)
        assert set(release.data["level"]) <= {"low", "middle", "high"}
        assert release.data["x"].between(0, 10).all()
        if settings.get("neighbours") == "replace-one":
            assert len(release.data) == n

    def test_one_column_and_sixty(self) -> None:
        random = np.random.default_rng(0)
        factor = random.normal(size=(1_500, 1))
        values = 50 + 10 * (factor + random.normal(size=(1_500, 60)))
        table = pd.DataFrame(values.round(), columns=[f"c{i}" for i in range(60)]).clip(0, 100)
        entries = [{"name": name, "lo": 0, "hi": 100} for name in table]
        released = shoal.protect(table, schema(*entries), "pairs-dp", 10, seed=1).data
        off = ~np.eye(60, dtype=bool)
        assert np.corrcoef(released.T)[off].mean() == pytest.approx(0.5, abs=0.1)
        one = shoal.protect(table[["c0"]], schema(entries[0]), "pairs-dp", 1, seed=1).data
        assert one["c0"].mean() == pytest.approx(table["c0"].mean(), abs=2)

    @pytest.mark.parametrize(
        ("n", "epsilon", "words"),
        [
            (40, "0.1", "Pairs of columns are not measured because noise would dominate them"),
            (
                2_000,
                "1",
                "Shares of rows below 10 adaptively chosen thresholds of x, y: standard error 0.0",
            ),
            (2_000, "20", "The finest tables of pairs distinguish "),
            (2_000, "20", "For pairs with name: a count has a standard error of about 0.0"),
        ],
    )
    def test_the_statement_says_what_is_measured_and_how_noisy_it_is(
        self, n: int, epsilon: str, words: str
    ) -> None:
        random = np.random.default_rng(0)
        table = pd.DataFrame(
            {"x": random.random(n), "y": random.random(n), "name": random.choice(list("abc"), n)}
        )
        declared = schema(
            {"name": "x", "lo": 0.0, "hi": 1.0},
            {"name": "y", "lo": 0.0, "hi": 1.0},
            {"name": "name", "kind": "nominal", "values": list("abc")},
        )
        stated = shoal.protect(table, declared, "pairs-dp", epsilon, rows=n, seed=1).statement
        assert any(condition.startswith(words) for condition in stated.conditions), stated.conditions

    def test_a_column_to_predict_must_be_released(self) -> None:
        table = pd.DataFrame({"a": [1, 2, 3], "b": [0, 1, 0]})
        with pytest.raises(OptionError, match="target names column 'c', which is not released"):
            shoal.protect(table, method="pairs-dp", epsilon=1, target="c", domains={"a": (0, 9), "b": (0, 1)})

    def test_a_budget_too_small_for_the_number_of_rows_is_refused(self) -> None:
        table = pd.DataFrame({"a": [1, 2, 3]})
        with pytest.raises(OptionError, match="declare a number of rows"):
            shoal.protect(table, method="pairs-dp", epsilon="0.00001", domains={"a": (0, 9)})


@pytest.fixture(scope="module")
def gappy() -> pd.DataFrame:
    random = np.random.default_rng(0)
    latent = random.normal(size=(3_000, 2)) @ np.array([[1, 0.8], [0, 0.6]])
    x, y = np.clip(np.rint(50 + 15 * latent), 0, 100).T
    gone = random.random(3_000) < 0.3
    other = gone ^ (random.random(3_000) < 0.05)
    return pd.DataFrame(
        {"x": np.where(gone, np.nan, x), "y": np.where(other, np.nan, y), "s": (x > 60) * 1.0}
    )


class TestGaps:
    """Whether a value is missing is an attribute of its own."""

    @pytest.mark.parametrize("settings", [{}, {"delta": "0.000001"}, {"target": "s"}], ids=str)
    def test_what_is_kept(self, gappy: pd.DataFrame, settings: dict[str, Any]) -> None:
        """Shares of gaps, of gaps that come together, distributions and relations of what is there."""
        entries = [
            {"name": name, "lo": 0, "hi": 100, "step": 1, "missing": "category"} for name in ("x", "y")
        ]
        schema = shoal.Schema.from_dict({"attribute": [*entries, {"name": "s", "lo": 0, "hi": 1, "step": 1}]})
        made = shoal.protect(gappy, schema, "pairs-dp", 10, seed=1, rows=3_000, **settings).data
        assert made.isna().mean().to_numpy() == pytest.approx(gappy.isna().mean().to_numpy(), abs=0.02)
        together, wanted = (len(one) - len(one.dropna(how="all", subset=["x", "y"])) for one in (made, gappy))
        assert together == pytest.approx(wanted, abs=90)
        assert made.corr().to_numpy() == pytest.approx(gappy.corr().to_numpy(), abs=0.06)
        assert made[["x", "y"]].quantile([0.1, 0.5, 0.9]).to_numpy() == pytest.approx(
            gappy[["x", "y"]].quantile([0.1, 0.5, 0.9]).to_numpy(), abs=3
        )

    def test_a_table_without_gaps_is_released_with_about_none(self, gappy: pd.DataFrame) -> None:
        whole = gappy.dropna()[["x"]]
        schema = shoal.Schema.from_dict(
            {"attribute": [{"name": "x", "lo": 0, "hi": 100, "step": 1, "missing": "category"}]}
        )
        made = shoal.protect(whole, schema, "pairs-dp", 1, seed=1).data
        assert made["x"].isna().mean() < 0.02
        assert made["x"].mean() == pytest.approx(whole["x"].mean(), abs=3)

    def test_nothing_but_gaps(self) -> None:
        nothing = pd.DataFrame({"x": np.full(200, np.nan), "s": np.arange(200) % 2})
        entries = [{"name": "x", "lo": 0, "hi": 100, "step": 1, "missing": "category"}]
        schema = shoal.Schema.from_dict({"attribute": [*entries, {"name": "s", "lo": 0, "hi": 1, "step": 1}]})
        made = shoal.protect(nothing, schema, "pairs-dp", 5, seed=1).data
        assert made["x"].isna().mean() > 0.9

    def test_an_attribute_and_its_flag_are_no_pair(self) -> None:
        attributes = with_flags([AttributeFacts("x", 1001, True)], ["x"])
        assert halves(PureEpsilon(1), attributes, Fraction(1), 10**6, None).pairs == 0
        found = lay_out_pairs(PureEpsilon(1), [4, 4, 1], [0] * 3, Fraction(10**6), 10**6, flags={0: 2})
        assert not any(group.pivot == 0 and 2 in group.partners for group in found.groups)
        assert any(group.pivot == 1 and 2 in group.partners for group in found.groups)
