"""Planted faults: mechanisms that promise more than they keep, each of which the accounting must find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import shoal
import shoal.mechanisms.insensitive.mechanism as insensitive
import shoal.mechanisms.promises
import shoal.mechanisms.tree.mechanism as tree
import shoal.noise.families
import shoal.release.protect
from shoal.mechanisms.tree.layout import Layout
from shoal.method.budget import Plan
from shoal.noise import categorical
from shoal.noise.scale import round_up_scale

from .accounting import accounts
from .test_accounting import Claiming, largest_loss, largest_part, lost

Plant = Callable[[pytest.MonkeyPatch], None]


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        shoal.noise.families,
        "laplace_scale",
        lambda steps, epsilon: round_up_scale(steps / (2 * epsilon)),
    )


def half_the_noise_of_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Layout, "count_scale", lambda self, share: round_up_scale((1 if self.adding else 2) / (2 * share))
    )


def twice_the_rate_of_cuts(patch: pytest.MonkeyPatch) -> None:
    honest = Layout.cut_rates.fget  # type: ignore[attr-defined]
    patch.setattr(Layout, "cut_rates", property(lambda self: tuple(2 * rate for rate in honest(self))))


def half_the_sensitivity_of_scores(patch: pytest.MonkeyPatch) -> None:
    honest = categorical.score_by

    def dishonest(*arguments: Any, **options: Any) -> Any:
        found = honest(*arguments, **options)
        return found if found.scale is None else replace(found, scale=max(found.scale / 2, Fraction(1)))

    patch.setattr(categorical, "score_by", dishonest)


def every_cluster_gets_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(insensitive, "_per_cluster", lambda method, described, plan: plan)


def every_attribute_gets_everything(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.mechanisms.clusters.plan

    def dishonest(method: Any, described: Any) -> Plan:
        return replace(honest(method, described), shares=dict.fromkeys(described.columns, method.budget))

    patch.setattr(
        shoal.mechanisms.clusters, "CLUSTERS", replace(shoal.mechanisms.clusters.CLUSTERS, plan=dishonest)
    )


def leaves_counted_twice(patch: pytest.MonkeyPatch) -> None:
    honest = tree._leaf_counts

    def dishonest(*arguments: Any) -> Any:
        honest(*arguments)
        return honest(*arguments)

    patch.setattr(tree, "_leaf_counts", dishonest)


def staircase_on_rank_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shoal.release.protect, "noise_allowed", lambda method, attributes: None)


def names_ranked_as_numbers(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.mechanisms.promises.promise_of
    patch.setattr(
        shoal.release.protect,
        "promise_of",
        lambda method, attributes, nominal=0: honest(method, attributes),
    )


def rows_in_order(patch: pytest.MonkeyPatch) -> None:
    import numpy as np

    patch.setattr(
        "accounting.transcript._row_orders",
        lambda method, rebuilt, source: {
            column: np.arange(values.size) for column, values in rebuilt.values.items()
        },
    )


@pytest.mark.parametrize(
    ("preset", "plant"),
    [
        ("laplace", half_the_noise),
        ("ranking-dp", half_the_noise),
        ("insensitive-dp", half_the_noise),
        ("tree-dp", half_the_noise_of_counts),
        ("tree-dp", twice_the_rate_of_cuts),
        ("laplace", half_the_sensitivity_of_scores),
        ("insensitive-dp", half_the_sensitivity_of_scores),
        ("laplace", every_attribute_gets_everything),
        ("ranking-dp", every_attribute_gets_everything),
        ("tree-dp", leaves_counted_twice),
        ("laplace", rows_in_order),
    ],
)
def test_a_planted_fault_is_found(preset: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"can be lost|not random"):
        largest_loss(Claiming(preset), 200)


@pytest.mark.parametrize(
    ("method", "plant"),
    [("insensitive-dp", every_cluster_gets_everything), ("ranking-dp", staircase_on_rank_groups)],
)
def test_a_fault_that_takes_many_clusters_is_found(
    method: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    most, found = lost(method, {"a": [0, 3, 3, 7, 7, 8]}, {"a": 10}, k=2, noise="staircase")
    assert found.results[0].statement.model == "dp"
    assert most == found.bound == 3 * found.results[0].statement.epsilon


def test_names_that_are_ranked_as_numbers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the old value and the new one every cluster chooses among other records."""
    names_ranked_as_numbers(monkeypatch)
    names = ["a", "b", "c", "d"]
    table = pd.DataFrame({"name": ["a", "a", "b", "b", "c", "c", "d", "d"]})
    other = pd.DataFrame({"name": ["d", "a", "b", "b", "c", "c", "d", "d"]})

    def run(data: pd.DataFrame) -> shoal.Release:
        return shoal.protect(data, method="ranking-dp", epsilon=1, k=2, domains={"name": names})

    found = max(accounts(run, table, other), key=lambda one: one.lost)
    assert found.results[0].statement.model == "dp"
    assert found.lost > 1


@pytest.mark.parametrize("preset", ["tree-dp", "insensitive-dp"])
def test_an_equal_part_of_epsilon_for_every_column_is_found_to_be_too_little(
    preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "stated", property(lambda self: self.shares))
    with pytest.raises(AssertionError, match="can be lost"):
        largest_part(Claiming(preset), 200)
