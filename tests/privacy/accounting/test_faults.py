"""Planted faults: mechanisms and answers that claim more than they keep.

Each of them the accounting must find, by itself. Those of sharing the accountant stops before the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import shoal
import shoal.mechanisms.insensitive as insensitive
import shoal.mechanisms.tree.intervals as gate
import shoal.mechanisms.tree.intervals as intervals
import shoal.mechanisms.tree.mechanism as tree
import shoal.mechanisms.tree.mechanism as values
import shoal.noise.families
import shoal.query.answers
import shoal.query.rank
import shoal.query.spec
from shoal.columns.attribute import Attribute
from shoal.mechanisms.cluster_methods import PartitionMethod
from shoal.mechanisms.method import Method
from shoal.mechanisms.tree.intervals import Layout
from shoal.noise import choice
from shoal.noise.exact import round_up_scale
from shoal.privacy import OverspendError
from shoal.privacy.accountant import Plan
from shoal.query.answers import AnswerNoise, Linear
from shoal.query.facts import Neighbours
from shoal.query.facts import prepare as prepare_queries
from shoal.query.refinement import Factors, Refined
from shoal.query.spec import answer, cost, delta, parse
from tests.query.refinement.test_refine import excess, exp_bounds, largest_ratio

from .accounting import accounts, unpaid
from .test_accounting import Claiming, largest_loss, largest_part, lost
from .test_choices_and_queries import answers

Plant = Callable[[pytest.MonkeyPatch], None]


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        shoal.noise.families,
        "laplace_scale",
        lambda steps, epsilon: round_up_scale(steps / (2 * epsilon)),
    )


def half_the_noise_of_counts(patch: pytest.MonkeyPatch) -> None:
    honest = gate.noisy

    def dishonest(counts: Any, moves: Any, spend: Any, what: Any) -> Any:
        # sums have a bound for each of them
        return honest(counts, moves if isinstance(moves, Sequence) else Fraction(moves, 2), spend, what)

    for module in (tree, intervals, values):
        patch.setattr(module, "noisy", dishonest)


def twice_the_rate_of_cuts(patch: pytest.MonkeyPatch) -> None:
    honest = Layout.cut_rate
    patch.setattr(Layout, "cut_rate", lambda self, share: 2 * honest(self, share))


def half_the_sensitivity_of_scores(patch: pytest.MonkeyPatch) -> None:
    honest = choice.score_by

    def dishonest(*arguments: Any, **options: Any) -> Any:
        found = honest(*arguments, **options)
        return found if found.scale is None else replace(found, scale=max(found.scale / 2, Fraction(1)))

    patch.setattr(choice, "score_by", dishonest)


def every_cluster_gets_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(insensitive, "_per_cluster", lambda method, described, plan: plan)


def every_attribute_gets_everything(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.mechanisms.clusters.plan

    def dishonest(method: Any, described: Any) -> Plan:
        return replace(honest(method, described), shares=dict.fromkeys(described.columns, method.budget))

    patch.setattr(shoal.mechanisms.clusters, "plan", dishonest)


def leaves_counted_twice(patch: pytest.MonkeyPatch) -> None:
    honest = tree.noisy_leaves

    def dishonest(*arguments: Any) -> Any:
        honest(*arguments)
        return honest(*arguments)

    patch.setattr(tree, "noisy_leaves", dishonest)


def staircase_on_rank_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionMethod, "allow_noise", lambda self, attributes: None)


def names_ranked_as_numbers(patch: pytest.MonkeyPatch) -> None:
    honest = Method.applied_claim
    patch.setattr(Method, "applied_claim", lambda self, attributes, nominal=0: honest(self, attributes))


def rows_in_order(patch: pytest.MonkeyPatch) -> None:
    import numpy as np

    patch.setattr(
        "tests.privacy.accounting.transcript._row_orders",
        lambda method, rebuilt, source: {
            column: np.arange(values.size) for column, values in rebuilt.values.items()
        },
    )


SHARING: list[tuple[str, Plant]] = [
    ("laplace", every_attribute_gets_everything),
    ("ranking-dp", every_attribute_gets_everything),
    ("tree-dp", leaves_counted_twice),
    ("insensitive-dp", every_cluster_gets_everything),
]


@pytest.mark.parametrize(("preset", "plant"), SHARING)
def test_what_is_not_paid_for_is_not_drawn(
    preset: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(OverspendError, match="left of"):
        largest_loss(Claiming(preset), 200)


@pytest.mark.parametrize(
    ("preset", "plant"),
    [
        ("laplace", half_the_noise),
        ("ranking-dp", half_the_noise),
        ("insensitive-dp", half_the_noise),
        ("tree-dp", half_the_noise_of_counts),
        pytest.param("tree-dp", twice_the_rate_of_cuts, marks=pytest.mark.slow),
        ("laplace", half_the_sensitivity_of_scores),
        ("insensitive-dp", half_the_sensitivity_of_scores),
        ("laplace", unpaid(every_attribute_gets_everything)),
        ("ranking-dp", unpaid(every_attribute_gets_everything)),
        pytest.param("tree-dp", unpaid(leaves_counted_twice), marks=pytest.mark.slow),
        ("laplace", rows_in_order),
    ],
)
def test_a_planted_fault_is_found(preset: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"can be lost|not random"):
        largest_loss(Claiming(preset), 200)


@pytest.mark.parametrize(
    ("method", "plant"),
    [("insensitive-dp", unpaid(every_cluster_gets_everything)), ("ranking-dp", staircase_on_rank_groups)],
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


@pytest.mark.parametrize("preset", [pytest.param("tree-dp", marks=pytest.mark.slow), "insensitive-dp"])
def test_an_equal_part_of_epsilon_for_every_column_is_found_to_be_too_little(
    preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "stated", property(lambda self: self.shares))
    with pytest.raises(AssertionError, match="can be lost"):
        largest_part(Claiming(preset), 200)


# questions of the query server


def half_the_noise_of_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shoal.query.answers, "round_up_scale", lambda scale: round_up_scale(scale / 2))


def counts_that_move_by_one_together(patch: pytest.MonkeyPatch) -> None:
    """A replaced record leaves one cell and enters another."""
    honest = AnswerNoise.laplace.__func__  # type: ignore[attr-defined]

    def dishonest(cls: type[AnswerNoise], sensitivity: int, *arguments: Any, **options: Any) -> AnswerNoise:
        found: AnswerNoise = honest(cls, min(sensitivity, 1), *arguments, **options)
        return found

    patch.setattr(AnswerNoise, "laplace", classmethod(dishonest))


def sums_that_move_by_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Linear, "sensitivity", lambda self, facts: 1)


def both_parts_of_a_mean_get_everything(patch: pytest.MonkeyPatch) -> None:
    honest = AnswerNoise.single.__func__  # type: ignore[attr-defined]

    def dishonest(
        cls: type[AnswerNoise], noise: str, sensitivity: int, unit: Fraction, epsilon: Fraction
    ) -> AnswerNoise:
        found: AnswerNoise = honest(cls, noise, sensitivity, unit, 2 * epsilon)
        return found

    patch.setattr(AnswerNoise, "single", classmethod(dishonest))


def twice_the_penalties_of_ranks(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.query.rank.ranked

    def dishonest(*arguments: Any) -> Any:
        lengths, starts, penalties = honest(*arguments)
        return lengths, starts, 2 * penalties

    patch.setattr(shoal.query.rank, "ranked", dishonest)


def twice_the_budget_of_ranks(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.query.spec.quantile

    def dishonest(facts: Any, *, epsilon: Fraction, **options: Any) -> Any:
        return replace(honest(facts, epsilon=2 * epsilon, **options), epsilon=epsilon)

    patch.setattr(shoal.query.spec, "quantile", dishonest)


QUERY_FAULTS: list[tuple[str, Plant]] = [
    ("count", half_the_noise_of_answers),
    ("sum", half_the_noise_of_answers),
    ("mean", half_the_noise_of_answers),
    ("histogram", half_the_noise_of_answers),
    ("histogram", counts_that_move_by_one_together),
    ("sum", sums_that_move_by_one),
    ("mean", sums_that_move_by_one),
    ("quantile", twice_the_penalties_of_ranks),
]
QUERY_SHARING: list[tuple[str, Plant]] = [
    ("mean", both_parts_of_a_mean_get_everything),
    ("quantile", twice_the_budget_of_ranks),
]


@pytest.mark.parametrize(("kind", "plant"), QUERY_SHARING)
def test_an_answer_beyond_its_price_is_not_drawn(
    kind: str, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(OverspendError, match="the plan reserves"):
        answers(kind, 12)


@pytest.mark.parametrize(
    ("kind", "plant"), [*QUERY_FAULTS, *((kind, unpaid(plant)) for kind, plant in QUERY_SHARING)]
)
def test_a_fault_of_an_answer_is_found(kind: str, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="bound"):
        answers(kind, 12)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in QUERY_FAULTS}))
def test_the_same_answers_as_they_are_pass(kind: str) -> None:
    assert 0 < answers(kind, 12) <= 1


PERSONS = shoal.Schema(
    (
        Attribute("id", "nominal", "identifier", type="text"),
        Attribute("value", lo=Fraction(0), hi=Fraction(3), step=Fraction(1)),
    )
)
ABOUT_ONE: dict[str, Any] = {
    "kind": "individual",
    "epsilon": "1",
    "key": {"column": "id", "value": "p"},
    "column": "value",
}
ABOUT_ALL: dict[str, Any] = {
    "kind": "statistical",
    "epsilon": "1",
    "statistic": {"kind": "quantile", "column": "value", "q": "0.5"},
}
# everybody there may be: person p with each value, not there, or twice, beside somebody else
TABLES = [[("q", 1)], [("p", 0), ("p", 3), ("q", 1)], *([("p", value), ("q", 1)] for value in range(4))]


def neighbours(relation: Neighbours) -> list[tuple[int, int]]:
    """Pairs of tables that differ in one record."""
    if relation == "replace-one":
        return [(a, b) for a in range(2, 6) for b in range(2, 6) if a != b]
    return [*((0, b) for b in range(2, 6)), (1, 2), (1, 5)]


def answered_within_the_price(asked: dict[str, Any], relation: Neighbours, patch: pytest.MonkeyPatch) -> bool:
    """Whether every pair of neighbours is answered within the price, from the exact laws of the answers."""
    laws: list[list[Fraction]] = []

    def kept(law: Refined, source: Any, *, known: bool = True) -> int:
        weights = law.prior.weights.tolist()
        laws.append(law.probabilities() if known else [Fraction(w, sum(weights)) for w in weights])
        return 0

    patch.setattr(shoal.query.spec, "sample", kept)
    prices = set()
    for rows in TABLES:
        table = pa.table({"id": [who for who, _ in rows], "value": [float(value) for _, value in rows]})
        known = prepare_queries(table, PERSONS, relation)
        query = parse(asked, known.facts)
        answer(query, known)
        prices.add((cost(query, known.facts), delta(query, known.facts)))
    ((epsilon, least),) = prices
    factor = exp_bounds(epsilon)[1]
    found = [(laws[a], laws[b]) for pair in neighbours(relation) for a, b in (pair, pair[::-1])]
    if not least:
        return all(largest_ratio(a, b) <= factor for a, b in found)
    return all(excess(a, b, factor) <= least for a, b in found)


def a_factor_too_large(patch: pytest.MonkeyPatch) -> None:
    honest = Factors.individual.__func__  # type: ignore[attr-defined]
    patch.setattr(
        Factors, "individual", classmethod(lambda cls, epsilon: honest(cls, epsilon * Fraction(11, 10)))
    )


def factors_of_individuals_for_statistics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        Factors, "statistical", classmethod(lambda cls, epsilon, *lift: Factors.individual(epsilon))
    )


def a_replaced_person_costs_as_one_added(patch: pytest.MonkeyPatch) -> None:
    honest = shoal.query.spec._protocol_offer

    patch.setattr(
        shoal.query.spec,
        "_protocol_offer",
        lambda *arguments, **options: honest(*arguments, **{**options, "touched": 1}),
    )


def all_of_delta_moved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shoal.query.spec, "movable", lambda epsilon, delta, **how: delta)


WITH_DELTA = {**ABOUT_ONE, "delta": "0.1"}


@pytest.mark.parametrize(
    ("asked", "relation", "plant"),
    [
        (ABOUT_ONE, "add-remove", a_factor_too_large),
        (ABOUT_ONE, "replace-one", a_factor_too_large),
        (ABOUT_ONE, "replace-one", a_replaced_person_costs_as_one_added),
        (WITH_DELTA, "add-remove", all_of_delta_moved),
        (WITH_DELTA, "replace-one", all_of_delta_moved),
        (ABOUT_ALL, "add-remove", factors_of_individuals_for_statistics),
        (ABOUT_ALL, "replace-one", factors_of_individuals_for_statistics),
    ],
)
def test_a_fault_of_a_refined_answer_is_found(
    asked: dict[str, Any], relation: Neighbours, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answered_within_the_price(asked, relation, monkeypatch)
    plant(monkeypatch)
    assert not answered_within_the_price(asked, relation, monkeypatch)
