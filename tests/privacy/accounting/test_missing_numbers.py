"""Exact accounting of missing numbers: a place of their own in trees and pairs, a coin beside Laplace noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import shoal
import shoal.mechanisms.pairs.model as model
import shoal.noise.choice
from shoal.mechanisms.tree.intervals import Layout
from shoal.noise import round_up_scale
from shoal.privacy import OverspendError

from .accounting import Account, accounts, concentrated, total, unpaid
from .test_accounting import assert_the_same_release

SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "a", "lo": 0, "hi": 10, "step": 1, "missing": "category"},
            {"name": "b", "lo": 0, "hi": 1000, "step": 1, "missing": "category"},
        ]
    }
)
RECORDS: Mapping[str, list[Any]] = {"a": [None, 3, 7, None, 10], "b": [0, 1000, 40, 500, None]}


def neighbours(row: Mapping[str, Any], relation: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    before = pd.DataFrame({name: pd.array(values, dtype="Int64") for name, values in RECORDS.items()})
    after = before.copy()
    for name, value in row.items():
        after.loc[0, name] = pd.NA if value is None else value
    # the record is another one; or it is there, or not
    return (after, after.drop(index=0)) if relation == "add-remove" else (before, after)


def runner(method: str, names: list[str], **settings: Any) -> Callable[[pd.DataFrame], shoal.Release]:
    def run(data: pd.DataFrame) -> shoal.Release:
        return shoal.protect(data, SCHEMA, method, epsilon="1", columns=names, **settings)

    return run


def worst(method: str, row: Mapping[str, Any], columns: list[str] | None = None, **settings: Any) -> Account:
    """The account that loses most when the first record is replaced, at ε = 1."""
    before, after = neighbours(row, settings.get("neighbours"))
    run = runner(method, columns or list(RECORDS), **settings)
    found = max(accounts(run, before, after), key=lambda one: one.lost)
    assert_the_same_release(found)
    assert found.lost <= found.bound <= 1
    return found


def test_a_counted_place_for_gaps_loses_all_of_epsilon() -> None:
    assert worst("tree-dp", {"a": 10}, ["a"], cuts=4).lost == 1


@pytest.mark.parametrize("cuts", [0, *(pytest.param(cuts, marks=pytest.mark.slow) for cuts in (1, 2)), 3])
@pytest.mark.parametrize("rebuild", ["uniform", "centroid", "normal"])
@pytest.mark.parametrize("neighbours", [{}, {"neighbours": "add-remove", "rows": 5}])
def test_a_gap_of_a_tree_that_is_filled_or_left_costs_no_more_than_epsilon(
    cuts: int, rebuild: str, neighbours: dict[str, Any]
) -> None:
    settings = {"cuts": cuts, "rebuild": rebuild, **neighbours}
    for row in ({"a": 10, "b": 1000}, {"a": 0, "b": None}, {"b": None}):
        assert worst("tree-dp", row, **settings).lost > Fraction(1, 100)


def test_what_the_place_of_gaps_costs_by_itself() -> None:
    """Without cuts: two counts with a quarter of ε, and a sum that loses a term of half its range."""
    assert worst("tree-dp", {"b": None}, ["b"], cuts=0).lost == Fraction(1, 4) + Fraction(3, 4) / 2


@pytest.mark.parametrize(
    ("row", "lost"),
    [
        # the flag's half of the share, and half of the noise's: the middle of the domain stands for what is missing
        ({"a": 10}, Fraction(1, 2) + Fraction(1, 4)),
        ({"a": 5}, Fraction(1, 2)),
        ({"a": None}, Fraction(0)),
    ],
)
def test_what_randomised_response_and_noise_lose_together(row: Mapping[str, Any], lost: Fraction) -> None:
    assert abs(worst("laplace", row, ["a"]).lost - lost) < Fraction(1, 10**40)


def test_a_change_of_two_columns_costs_the_sum() -> None:
    assert abs(worst("laplace", {"a": 10, "b": None}).lost - Fraction(3, 4)) < Fraction(1, 10**40)


@pytest.mark.parametrize(
    "settings",
    [
        # so many declared rows that trees are cut; fewer, where thresholds are asked for
        {"rows": 3000, "target": "b"},
        pytest.param({"rows": 3000}, marks=pytest.mark.slow),
        pytest.param({"rows": 300}, marks=pytest.mark.slow),
        pytest.param({"rows": 5}, marks=pytest.mark.slow),
        pytest.param({"neighbours": "replace-one"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_gap_of_pairs_costs_no_more_than_epsilon(settings: dict[str, Any]) -> None:
    for row in ({"a": 10, "b": 1000}, {"a": 0, "b": None}, {"a": None, "b": None}):
        found = worst("pairs-dp", row, **{"neighbours": "add-remove", **settings})
        assert found.lost > Fraction(1, 100)


def test_a_gap_and_its_flag_lose_all_of_epsilon_together() -> None:
    settings = {"neighbours": "add-remove", "rows": 3000}
    assert worst("pairs-dp", {"a": 10}, ["a"], **settings).lost >= Fraction(99, 100)


def test_a_gap_of_pairs_costs_no_more_than_rho() -> None:
    settings = {"neighbours": "add-remove", "rows": 3000, "delta": "0.000001"}
    for row in ({"a": 10, "b": 1000}, {"a": None, "b": None}):
        before, after = neighbours({**row}, "add-remove")
        for found in accounts(runner("pairs-dp", list(RECORDS), **settings), before, after):
            assert_the_same_release(found)
            assert 0 < total(*found.draws, concentrated) <= found.results[0].statement.rho


def gaps_are_missing_from_the_diagonal(patch: pytest.MonkeyPatch) -> None:
    """A record without a value then adds what is no mean of sign products."""
    honest = model.sign_products

    def dishonest(counts: Any, signs: Any, levels: Any, n: int) -> Any:
        found = honest(counts, signs, levels, n)
        for place, number in enumerate(signs):
            found[place, place] = counts.table(number, signs[-1 if number != signs[-1] else -2]).sum()
        return found

    patch.setattr(model, "sign_products", dishonest)


@pytest.mark.parametrize("plant", [None, gaps_are_missing_from_the_diagonal])
def test_products_of_signs_with_gaps(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four columns and four flags: enough signs for noise fitted to their products."""
    names = ["a", "b", "c", "d"]
    facts = [{"name": name, "lo": 0, "hi": 1, "step": 1, "missing": "category"} for name in names]
    schema = shoal.Schema.from_dict({"attribute": facts})
    values = {
        "a": [None, 1, 0, 1, 1],
        "b": [1, 1, 0, None, 0],
        "c": [None, 0, 0, 1, 1],
        "d": [0, 1, 0, 1, None],
    }
    before = pd.DataFrame({name: pd.array(own, dtype="Int64") for name, own in values.items()})
    if plant is not None:
        plant(monkeypatch)

    def run(data: pd.DataFrame) -> shoal.Release:
        return shoal.protect(data, schema, "pairs-dp", epsilon="1", rows=2000)

    def bounds() -> list[Fraction]:
        return [found.bound for found in accounts(run, before, before.drop(index=0))]

    if plant is None:
        assert Fraction(99, 100) <= max(bounds()) <= 1
    else:
        with pytest.raises(AssertionError):
            bounds()


def answers_with_twice_the_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shoal.noise.choice, "_untruth", lambda epsilon: (4, round_up_scale(Fraction(2) / epsilon)))


def gaps_are_counted_for_nothing(patch: pytest.MonkeyPatch) -> None:
    honest = Layout.for_gaps.fget  # type: ignore[attr-defined]

    def dishonest(self: Layout) -> Layout:
        return replace(honest(self), intervals=self.intervals, means=self.means, gap=Fraction(1))

    patch.setattr(Layout, "for_gaps", property(dishonest))


@pytest.mark.parametrize(
    ("method", "plant", "settings"),
    [
        ("laplace", answers_with_twice_the_budget, {}),
        ("tree-dp", unpaid(gaps_are_counted_for_nothing), {"cuts": 1}),
        ("tree-dp", unpaid(gaps_are_counted_for_nothing), {"cuts": 0}),
    ],
)
def test_a_planted_fault_is_found(
    method: str, plant: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        worst(method, {"b": None}, ["b"], **settings)


@pytest.mark.parametrize("cuts", [0, 1])
def test_gaps_that_are_counted_for_nothing_are_not_counted(
    cuts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps_are_counted_for_nothing(monkeypatch)
    with pytest.raises(OverspendError, match="the plan reserves"):
        worst("tree-dp", {"b": None}, ["b"], cuts=cuts)
