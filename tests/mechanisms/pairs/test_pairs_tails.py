"""Joint tails of pairs-dp: when products of values are measured, what they are, and what exchanging values does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
import shoal.mechanisms.pairs.measure_pairs as joint
from shoal.mechanisms.pairs.budget import Concentrated, Currency, PureEpsilon
from shoal.mechanisms.pairs.distributions import Fine
from shoal.mechanisms.pairs.measure_one import ABSENT, Marginal, _of_counts
from shoal.noise import Seeded


def marginal(lows: list[int], highs: list[int], shares: list[float], edges: list[int]) -> Marginal:
    fine = Fine(np.array(lows), np.array(highs), np.array(shares), np.zeros(len(lows)))
    return Marginal(fine, np.full(4, 0.25), 2, np.array(edges))


# most values are small, one in a hundred is far out; and as many everywhere
HEAVY = marginal([0, 100], [99, 999], [0.99, 0.01], [0, 25, 50, 75, 1000])
EVEN = marginal([0], [999], [1.0], [0, 250, 500, 750, 1000])
TWO, FOUR = _of_counts(np.full(2, 0.5)), _of_counts(np.full(4, 0.25))


def clipped(rows: float = 10**6) -> joint.Clipped:
    found = joint.lay_out_tails([HEAVY, EVEN, HEAVY], {}, PureEpsilon(1), Fraction(10), rows)
    assert found is not None
    return found


class TestRule:
    def test_pairs_with_a_heavy_column_are_measured(self) -> None:
        found = clipped()
        assert found.moved == (0, 1, 2)
        assert list(zip(found.firsts, found.seconds, strict=True)) == [(0, 1), (0, 2), (1, 2)]
        assert found.share == 2

    def test_pairs_of_columns_with_many_values_are_measured(self) -> None:
        found = joint.lay_out_tails([EVEN, TWO, FOUR, EVEN], {}, PureEpsilon(1), Fraction(10), 10**6)
        assert found is not None
        assert [
            (found.columns[i], found.columns[j]) for i, j in zip(found.firsts, found.seconds, strict=True)
        ] == [
            (0, 2),
            (0, 3),
            (2, 3),
        ]
        # bins of the third leave no value open
        assert [found.columns[place] for place in found.moved] == [0, 3]

    def test_pairs_with_too_much_noise_are_left_out(self) -> None:
        """The fewer, the less noise: those with a heavy column come all or not at all, others as they can."""
        marginals = [HEAVY, *[EVEN] * 11]
        numbers = []
        for rows in (2, 150, 1_000, 10**6):
            found = joint.lay_out_tails(marginals, {}, Concentrated(1), Fraction(1), rows)
            numbers.append(0 if found is None else found.firsts.size)
            if found is not None:
                heavy = (found.firsts == 0) | (found.seconds == 0)
                assert heavy.sum() in (0, 11)
                both = found.spreads[found.firsts] * found.spreads[found.seconds]
                assert found.noise <= joint.TOO_MUCH * (np.median(both[heavy]) if heavy.any() else both.min())
        assert numbers == sorted(numbers)
        assert numbers[0] < numbers[1] < numbers[-1] == 66

    @pytest.mark.parametrize("marginals", [[EVEN, TWO], [FOUR, FOUR], [HEAVY]])
    def test_without_such_a_pair_nothing_is(self, marginals: list[Marginal]) -> None:
        assert joint.lay_out_tails(marginals, {}, PureEpsilon(1), Fraction(10), 10**6) is None

    @pytest.mark.parametrize("currency", [PureEpsilon(1), PureEpsilon(2), Concentrated(1)], ids=str)
    def test_noise_decides(self, currency: Currency) -> None:
        """More rows, a larger budget: at some point it is measured, and public facts allowed it."""
        done = []
        for rows in (5, 1_000, 10_000, 10**6):
            found = joint.lay_out_tails([HEAVY, EVEN, HEAVY], {}, currency, Fraction(2), rows)
            assert found is None or joint.tails_possible(currency, 3, Fraction(2), rows)
            done.append(found is not None)
        assert done == sorted(done)
        assert done[-1]
        assert not done[0]


class TestProducts:
    def test_they_are_sums_over_records(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(joint, "_RUN", 7)
        random = np.random.default_rng(0)
        found, positions = clipped(), [random.integers(0, 1000, 30) for _ in range(3)]
        positions[1][:5] = ABSENT
        slow = [0, 0, 0]
        for row in zip(*positions, strict=True):
            values = [
                0
                if at == ABSENT
                else round(1024 * max(-1, min(1, (at - found.middles[i]) / found.reaches[i])))
                for i, at in enumerate(row)
            ]
            for k, (i, j) in enumerate(zip(found.firsts, found.seconds, strict=True)):
                slow[k] += values[i] * values[j]
        assert joint.exact_products(positions, found).tolist() == slow


class TestExchange:
    def placed(self) -> list[Any]:
        random = np.random.default_rng(1)
        levels = [(random.permutation(2_000) + 0.5) / 2_000 for _ in range(3)]
        return [own.fine.positions(level) for own, level in zip([HEAVY, EVEN, HEAVY], levels, strict=True)]

    def test_rows_get_the_products_and_keep_their_bins(self) -> None:
        found, placed = clipped(), self.placed()
        marginals = [HEAVY, EVEN, HEAVY]
        both = found.spreads[found.firsts] * found.spreads[found.seconds]
        tails = joint.Tails(found, np.array([0.0, 0.6, 0.0]) * both)
        after = joint.exchanged(placed, tails, marginals, {}, Seeded(2))
        assert all((now != before).any() for now, before in zip(after, placed, strict=True))
        values = [found.values(own, place) / found.spreads[place] for place, own in enumerate(after)]
        assert np.mean(values[0] * values[2]) == pytest.approx(0.6, abs=0.05)
        for own, before, now in zip(marginals, placed, after, strict=True):
            codes = [own.codes(part.astype(np.int64)) for part in (before, now)]
            assert (codes[0] == codes[1]).all()
            for code in range(own.bins):
                assert sorted(before[codes[0] == code]) == sorted(now[codes[1] == code])

    def test_what_noise_explains_is_no_aim(self) -> None:
        """Products as far from those of the rows as noise would put them leave the rows alone."""
        found, placed = clipped(), self.placed()
        own = [found.values(column, place) for place, column in enumerate(placed)]
        means = [np.mean(own[i] * own[j]) for i, j in zip(found.firsts, found.seconds, strict=True)]
        tails = joint.Tails(found, np.array(means) + found.noise * np.array([0.9, -0.9, 0.9]))
        after = joint.exchanged(placed, tails, [HEAVY, EVEN, HEAVY], {}, Seeded(2))
        assert all((before == now).all() for before, now in zip(placed, after, strict=True))


def test_tails_that_come_together_do_so_in_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large values stand beside each other in one row of 40, whatever the ranks of the others."""
    random = np.random.default_rng(3)
    size = np.where(random.random(4_000) < 0.025, 60.0, 1.0)
    data = pd.DataFrame({name: size * random.lognormal(1, 0.4, 4_000) for name in "abc"}).clip(0, 1000)
    schema = shoal.Schema.from_dict({"attribute": [{"name": name, "lo": 0.0, "hi": 1000.0} for name in data]})
    off = {}
    for limit in (0.0, joint.TOO_MUCH):
        monkeypatch.setattr(joint, "TOO_MUCH", limit)
        release = shoal.protect(data, schema, "pairs-dp", 100, rows=4_000, seed=1)
        off[limit] = np.abs(release.data.corr() - data.corr()).to_numpy().max()
    assert off[joint.TOO_MUCH] < 0.5 * off[0.0]
    assert any("products of the values" in words for words in release.statement.conditions)
