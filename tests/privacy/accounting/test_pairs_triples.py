"""Accounting of triples of pairs-dp, in ε and in ρ: losses of choices and sums, and planted faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import shoal.mechanisms.pairs.mechanism as mechanism
import shoal.mechanisms.pairs.model as drawing
from shoal.privacy import OverspendError

from .accounting import Account, concentrated, no_accountant, total
from .laws import Selection
from .test_pairs import account
from .test_renyi import over_rho

DELTA = "0.000001"
# so many declared rows that triples are measured, although there are few records
MANY = 5_000


def choices(found: Account) -> list[Any]:
    return [draw for draw in found.draws[0] if isinstance(draw.law, Selection)]


@pytest.mark.parametrize(
    ("neighbours", "shape", "settings", "chosen"),
    [
        ("add-remove", (0, 5, 0), {"epsilon": 2, "rows": MANY}, 3),
        # one triple: nothing to choose
        ("add-remove", (0, 3, 1), {"epsilon": 2, "rows": MANY}, 0),
        ("add-remove", (0, 5, 0), {"epsilon": 400}, 3),
        ("replace-one", (0, 4, 0), {"epsilon": 400}, 3),
        pytest.param("add-remove", (6, 1, 1), {"epsilon": 2, "rows": MANY}, 3, marks=pytest.mark.slow),
        pytest.param("replace-one", (2, 6, 1), {"epsilon": 1_500}, 3, marks=pytest.mark.slow),
    ],
)
def test_triples_lose_no_more_than_epsilon(
    neighbours: str, shape: tuple[int, int, int], settings: dict[str, Any], chosen: int
) -> None:
    for found in account(neighbours, *shape, triples=True, **settings):
        assert chosen <= len(choices(found))
        assert found.bound <= found.results[0].statement.epsilon


@pytest.mark.parametrize(
    ("neighbours", "settings"),
    [("add-remove", {"epsilon": 2, "rows": MANY}), ("replace-one", {"epsilon": 400})],
)
def test_all_of_epsilon_can_be_lost_with_triples(neighbours: str, settings: dict[str, Any]) -> None:
    """Every sum changes by all it may, some scores rise and others fall."""
    found = max(account(neighbours, 0, 5, 0, triples=True, **settings), key=lambda one: one.bound)
    assert found.bound >= Fraction(99, 100) * found.results[0].statement.epsilon


@pytest.mark.parametrize(
    ("neighbours", "signs", "settings"),
    [
        ("add-remove", 4, {"epsilon": 4, "rows": MANY}),
        pytest.param("add-remove", 6, {"epsilon": 60}, marks=pytest.mark.slow),
        pytest.param("replace-one", 5, {"epsilon": 200}, marks=pytest.mark.slow),
    ],
)
def test_with_a_delta_triples_lose_no_more_than_rho(
    neighbours: str, signs: int, settings: dict[str, Any]
) -> None:
    for found in account(neighbours, 0, signs, 0, triples=True, delta=DELTA, **settings):
        assert len(choices(found)) == 3
        rho = found.results[0].statement.rho
        assert Fraction(1, 2) * rho <= total(*found.draws, concentrated) <= rho


@pytest.mark.slow
def test_divergences_with_triples_are_within_rho() -> None:
    for neighbours, signs, epsilon in (("add-remove", 4, 60), ("replace-one", 4, 200)):
        for found in account(neighbours, 0, signs, 0, triples=True, delta=DELTA, epsilon=epsilon):
            assert choices(found)
            assert max(over_rho(found)) <= 1 + 1e-12


def test_what_is_expected_of_triples_is_not_private() -> None:
    """The scores of both tables are distances of their sums from the same numbers."""
    for found in account("add-remove", 0, 5, 0, triples=True, epsilon=2, rows=MANY):
        mine, other = ([d for d in side if isinstance(d.law, Selection)] for side in found.draws)
        for a, b in zip(mine, other, strict=True):
            assert a.private.lengths == b.private.lengths
            moves = {x - y for x, y in zip(a.private.exponents, b.private.exponents, strict=True)}
            assert len({abs(move) for move in moves}) == 1


def choice_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    honest = drawing.measure_triples

    def dishonest(exact: Any, expected: Any, layout: Any, *more: Any) -> Any:
        return honest(exact, expected, replace(layout, choice=8 * layout.choice), *more)

    patch.setattr(drawing, "measure_triples", dishonest)


def triples_not_paid_for(patch: pytest.MonkeyPatch) -> None:
    honest = replace

    def dishonest(shared: Any, **changes: Any) -> Any:
        # shares of pairs stay as they are
        return shared if "pairs" in changes else honest(shared, **changes)

    patch.setattr(mechanism, "replace", dishonest)


def expected_from_records(patch: pytest.MonkeyPatch) -> None:
    """Distances from what the records have, not from what was measured of them."""
    honest = drawing.measure_triples

    def dishonest(exact: Any, expected: Any, *rest: Any) -> Any:
        return honest(exact, expected * (exact.sum() / 10), *rest)

    patch.setattr(drawing, "measure_triples", dishonest)


def sums_without_noise(patch: pytest.MonkeyPatch) -> None:
    honest = drawing.measure_triples

    def dishonest(exact: Any, expected: Any, layout: Any, currency: Any, rows: Any, account: Any) -> Any:
        numbers, _ = honest(exact, expected, layout, currency, rows, account)
        # in halves of a row, so that one record shows
        return numbers, exact[numbers] / 2

    patch.setattr(drawing, "measure_triples", dishonest)


@pytest.mark.parametrize("delta", [None, pytest.param(DELTA, marks=pytest.mark.slow)])
@pytest.mark.parametrize("plant", [choice_not_paid_for, triples_not_paid_for, expected_from_records])
def test_a_fault_in_triples_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], delta: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    no_accountant(monkeypatch)
    extra = {"delta": delta} if delta else {}
    found = account("add-remove", 0, 5, 0, triples=True, epsilon=2, rows=MANY, **extra)
    statement = found[0].results[0].statement
    if delta is None:
        assert max(one.bound for one in found) > statement.epsilon
    else:
        assert max(total(*one.draws, concentrated) for one in found) > statement.rho


@pytest.mark.parametrize("delta", [None, DELTA])
def test_triples_that_are_not_paid_for_are_not_drawn(
    delta: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    triples_not_paid_for(monkeypatch)
    extra = {"delta": delta} if delta else {}
    with pytest.raises(OverspendError, match="the plan reserves"):
        account("add-remove", 0, 5, 0, triples=True, epsilon=2, rows=MANY, **extra)


def test_exact_sums_of_triples_after_the_gate_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release comes out of the same transcript."""
    sums_without_noise(monkeypatch)
    with pytest.raises(AssertionError):
        account("add-remove", 0, 5, 0, triples=True, epsilon=400, rows=24)
