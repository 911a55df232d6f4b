"""Zero-concentrated DP of pairs-dp by exact Rényi divergences: at most ρ·α at every order α, nearly so for some."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shoal
import shoal.mechanisms.pairs.measure_one as oneway
import shoal.mechanisms.pairs.mechanism as pairs
from shoal.mechanisms.pairs.budget import Concentrated
from shoal.noise import rho_from
from shoal.privacy import Spend

from .accounting import concentrated, total
from .renyi import _of_gaussians, divergence, enumerated, gaussian_masses, mixed, together
from .test_pairs import LessNoise, account, table
from .transcript import recording, replaying

ORDERS = tuple(map(Fraction, ("1.25", "2", "5", "20")))
# room for the last digits of 50
DIGITS = Decimal("1e-30")
DELTA = "0.000001"


def over_rho(found: Any) -> list[float]:
    """Divergences of both directions over α, in parts of the ρ that is stated."""
    mine, other = found.draws
    rho = found.results[0].statement.rho
    return [
        float(together(*sides, order) / (Decimal(order.numerator) / order.denominator) / Decimal(float(rho)))
        for order in ORDERS
        for sides in ((mine, other), (other, mine))
    ]


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings"),
    [
        ("add-remove", (0, 3, 0), {"epsilon": 60}),
        ("add-remove", (2, 0, 0), {"epsilon": 20, "rows": 400}),
        ("replace-one", (1, 1, 1), {"epsilon": 60}),
    ],
)
def test_divergences_along_a_transcript_are_within_rho(
    neighbours: str, shape: tuple[int, int, int], settings: dict[str, Any]
) -> None:
    for found in account(neighbours, *shape, delta=DELTA, **settings):
        assert max(over_rho(found)) <= 1 + 1e-12


@pytest.mark.parametrize("variance", ["7", "37/5", "1000/7"])
def test_wide_noise_is_added_up_as_term_by_term(variance: str) -> None:
    for shift in (1, 3, 40):
        for order in ORDERS:
            closed = _of_gaussians(shift, Fraction(variance), order)
            assert abs(closed - enumerated(shift, Fraction(variance), order)) < Decimal("1e-44") * closed
    # narrow noise is told apart: there the place of the centre matters
    narrow = enumerated(1, Fraction(1), ORDERS[0])
    assert abs(narrow - Decimal(float(ORDERS[0])) / 2) > Decimal("1e-9")


def test_nearly_all_of_rho_is_lost_at_every_order() -> None:
    for neighbours, signs in (("add-remove", 3), ("replace-one", 1)):
        for found in account(neighbours, 0, signs, 0, epsilon=20, delta=DELTA):
            assert 0.99 <= min(over_rho(found)) <= max(over_rho(found)) <= 1 + 1e-12


@pytest.mark.slow
def test_a_whole_release_with_its_private_number_of_rows() -> None:
    """What is measured follows from the noisy number of rows: all its outcomes, and all that comes after each."""
    before, schema = table(6, 0, 2, 0)
    after = before.iloc[1:].reset_index(drop=True)

    def run(data: Any) -> shoal.Release:
        return shoal.protect(data, schema, "pairs-dp", epsilon=60, delta=DELTA)

    # terms of order α are largest at a noise of 1 - α
    reach = 16
    sides: list[list[Decimal]] = [[], []]
    followed: dict[Fraction, list[Decimal]] = {order: [] for order in ORDERS if order <= 5}
    for noise in range(-reach, reach + 1):
        with recording(seed=1, wanted={0: np.array([noise])}) as mine:
            release = run(before)
        with replaying(mine.draws) as other:
            run(after)
        (variance,) = mine.draws[0].law.variances
        away = mine.draws[0].private[0] - other.draws[0].private[0]
        assert away == 1
        for side, place in zip(sides, (noise, noise + away), strict=True):
            side += gaussian_masses(variance, [place])
        for order, rest in followed.items():
            rest.append(together(mine.draws[1:], other.draws[1:], order))
    assert sum(sides[0]) > 1 - Decimal("1e-12")
    rho = release.statement.rho
    assert rho is not None
    for order, rest in followed.items():
        found = mixed(list(zip(*sides, strict=True)), rest, order)
        share = float(found / (Decimal(order.numerator) / order.denominator)) / float(rho)
        assert share <= 1 + 1e-9
        # noise narrower than a step reaches its bound at whole orders only
        assert share >= 0.97 or order.denominator > 1


def test_a_person_with_two_rows_costs_four_times_rho() -> None:
    before, schema = table(8, 0, 3, 0)
    before.loc[1] = before.loc[0]
    after = before.iloc[2:].reset_index(drop=True)
    with recording(seed=2) as mine:
        release = shoal.protect(before, schema, "pairs-dp", epsilon=20, delta=DELTA)
    with replaying(mine.draws) as other:
        shoal.protect(after, schema, "pairs-dp", epsilon=20, delta=DELTA)
    rho = release.statement.rho
    assert rho is not None
    assert Fraction(99, 100) * 4 * rho <= total(mine.draws, other.draws, concentrated) <= 4 * rho
    for order in ORDERS:
        lost = together(mine.draws, other.draws, order)
        assert 3.96 * float(order * rho) <= float(lost) <= 4 * float(order * rho) * (1 + 1e-12)


def test_the_statement_of_a_person_with_several_rows_is_converted_once() -> None:
    data, schema = table(30, 0, 2, 0)
    data["who"] = np.arange(30) // 3
    unit = {"name": "who", "role": "unit", "max_rows": 3}
    persons = shoal.Schema.from_dict({"attribute": [*schema.to_dict()["attribute"], unit]})
    stated = shoal.protect(data, persons, "pairs-dp", epsilon=1, delta=DELTA).statement
    assert stated.rho == rho_from(Fraction(1), Fraction(DELTA))
    assert stated.epsilon == 1
    assert "at most 3 rows" in stated.unit


def half_the_noise_of_pairs(patch: pytest.MonkeyPatch) -> None:
    honest = Concentrated.measure

    def dishonest(self: Concentrated, exact: Any, shape: Any, spend: Spend, what: Any) -> Any:
        return honest(self, exact, shape, LessNoise(spend, 4 if exact.size == 1 else 1), what)

    patch.setattr(Concentrated, "measure", dishonest)


def cuts_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    honest = oneway.draw_edges

    def dishonest(ordered: Any, ends: Any, spends: Any, rate_of: Any, counts: Any = None) -> Any:
        return honest(ordered, ends, spends, lambda share: 12 * rate_of(share), counts)

    patch.setattr(oneway, "draw_edges", dishonest)


def replaced_as_if_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pairs, "_currency", lambda method: Concentrated(1))


@pytest.mark.parametrize(
    ("plant", "neighbours", "shape", "settings"),
    [
        (half_the_noise_of_pairs, "add-remove", (0, 2, 0), {"epsilon": 20}),
        (cuts_not_paid_for, "add-remove", (1, 0, 0), {"epsilon": 20, "rows": 400}),
        (replaced_as_if_added, "replace-one", (0, 1, 0), {"epsilon": 20}),
    ],
)
def test_a_planted_fault_exceeds_rho(
    plant: Callable[[pytest.MonkeyPatch], None],
    neighbours: str,
    shape: tuple[int, int, int],
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    found = account(neighbours, *shape, delta=DELTA, **settings)
    rho = found[0].results[0].statement.rho
    lost = max(max(over_rho(one)) for one in found)
    # a choice between cut points loses all it can on few tables only: there the bound counts
    assert max(lost, float(max(total(*one.draws, concentrated) for one in found) / rho)) > 1.01


def test_exact_counts_in_the_polish_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pairs.measure_pairs

    def with_exact_tables(sums: Any, *rest: Any) -> Any:
        found = honest(sums, *rest)
        for a, b in found.tables:
            found.tables[a, b] = (sums.counts.table(a, b) + 1e-9) / sums.counts.table(a, b).sum()
        return found

    monkeypatch.setattr(pairs, "measure_pairs", with_exact_tables)
    with pytest.raises(AssertionError):
        account("add-remove", 0, 2, 1, epsilon=20, rows=24, delta=DELTA)


def test_divergences_are_those_of_the_papers() -> None:
    """For whole orders that of discrete Gaussian noise is ρ·α exactly; no order exceeds it."""
    before, schema = table(5, 0, 1, 0)
    with recording(seed=1) as mine:
        shoal.protect(before, schema, "pairs-dp", epsilon=20, delta=DELTA, rows=5)
    with replaying(mine.draws) as other:
        shoal.protect(before.iloc[1:], schema, "pairs-dp", epsilon=20, delta=DELTA, rows=5)
    (pair,) = [
        pair for pair in zip(mine.draws, other.draws, strict=True) if pair[0].private != pair[1].private
    ]
    rho = concentrated(*pair)
    for order in ORDERS:
        bound = Decimal((rho * order).numerator) / Decimal((rho * order).denominator)
        lost = divergence(*pair, order)
        assert lost <= bound + DIGITS
        if order.denominator == 1:
            assert abs(lost - bound) < DIGITS
