"""Expected errors in closed form agree with enumeration on tiny tables and with seeded releases on larger ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import shoal
from shoal.evaluation import evaluate
from shoal.io import read
from shoal.mechanisms.clusters import Clusters
from shoal.mechanisms.sensitivity import cluster_sum_scale
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protection import Preparation, carry_out, prepare
from shoal.survey import survey, survey_schema
from shoal.tuning.expected import expected_errors, expected_measures, has_closed_form
from tests.conftest import data_file, examples, slow_ones

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("laplace", {}),
    ("laplace", {"split": "optimal", "clip": False}),
    ("mdav-dp", {"k": 20}),
    ("mdav-dp", {"k": 7, "split": "equal", "groups": [["age"], ["income", "tax"]]}),
    ("ranking-dp", {"k": 20}),
    ("ranking-dp", {"k": 20, "epsilon": "0.02"}),
    ("optimal-dp", {"k": 3}),
    ("idp-ls", {"k": 10}),
    ("idp-ls", {"k": 10, "partition": "mdav"}),
    ("idp-cbls", {"k": 5}),
    ("idp-cbls", {"k": 5, "floor": {"income": 20_000}}),
    ("insensitive-dp", {"k": 60, "epsilon": "20"}),
]


def settled(method: str, **options: Any) -> tuple[Preparation, tuple[Clusters, ...]]:
    arguments = {"epsilon": "1", "columns": ["age", "income", "tax"], **options}
    prepared = prepare(read(survey(200)), survey_schema(), method, **arguments)
    assert prepared.method.freezes
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    return prepared, frozen


def sampled(prepared: Preparation, frozen: tuple[Clusters, ...], runs: int) -> dict[str, np.ndarray]:
    """Squared errors of each column in so many seeded runs."""
    described = prepared.described
    errors = {name: np.empty(runs) for name in described.columns}
    truth = {name: described.original(name) for name in described.columns}
    for seed in range(runs):
        account = prepared.method.account(prepared.plan, Seeded(seed))
        made = prepared.method.run_frozen(described, prepared.plan, account, silent, frozen)
        assert account.unspent() == {}
        for name, values in made.values.items():
            errors[name][seed] = ((values - truth[name]) ** 2).sum()
    return errors


@pytest.mark.parametrize(("method", "options"), slow_ones(SETTINGS, 1, 3, 5, 7, 9))
def test_the_mean_over_many_releases_is_the_expectation(method: str, options: dict[str, Any]) -> None:
    prepared, frozen = settled(method, **options)
    assert has_closed_form(prepared)
    expected = expected_errors(prepared, frozen)
    errors = sampled(prepared, frozen, examples(280))
    for name, found in errors.items():
        error = found.std(ddof=1) / np.sqrt(found.size)
        assert abs(found.mean() - expected[name]) < 6 * error + 1e-9 * expected[name], name
        # twice as much would be noticed
        assert 6 * error < expected[name], name


@pytest.mark.parametrize(("method", "options"), SETTINGS[:3])
def test_frozen_clusters_change_nothing_about_a_release(method: str, options: dict[str, Any]) -> None:
    prepared, frozen = settled(method, **options)
    again = replace(prepared, source=Seeded(4))
    plain = carry_out(replace(prepared, source=Seeded(4)))
    assert carry_out(again, frozen=frozen).data.equals(plain.data)


def enumerated(prepared: Preparation, made: Clusters, name: str) -> float:
    """The expected error of one column by its definition: every value of the noise of every cluster."""
    described, partition = prepared.described, made.partition
    positions, _ = described.positions(name)
    lattice = described.lattices[name]
    scale = float(cluster_sum_scale(lattice.steps, prepared.plan.shares[name]))
    noise = np.arange(-round(80 * scale), round(80 * scale) + 1)
    weights = np.exp(-np.abs(noise) / scale)
    weights /= weights.sum()
    total = 0.0
    for label, size in enumerate(partition.sizes.tolist()):
        mine = partition.labels == label
        released = lattice.values((positions[mine].sum() + noise) / size)
        released = np.clip(released, float(lattice.lo), float(lattice.hi))
        for value in described.original(name)[mine]:
            total += float(weights @ (released - value) ** 2)
    return total


@pytest.mark.parametrize(
    ("values", "lo", "hi", "step"),
    [
        ([0, 1, 1, 2, 4, 4], 0, 4, 1),
        ([0.2, 0.3, 1.4, 9.9, 10.0, 10.2], 0.2, 10.2, 3),
        ([-3, -3, -3, 5, 5, 5], -3, 5, 2),
    ],
)
@pytest.mark.parametrize("epsilon", ["0.3", "2", "20"])
def test_coarse_lattices_agree_with_enumeration(
    values: list[float], lo: float, hi: float, step: int, epsilon: str
) -> None:
    schema = shoal.Schema.from_dict({"attribute": [{"name": "x", "lo": lo, "hi": hi, "step": step}]})
    prepared = prepare(read(pa.table({"x": values})), schema, "ranking-dp", epsilon, 2)
    assert prepared.method.freezes
    (made,) = prepared.method.freeze(prepared.described, prepared.plan, silent)
    found = expected_errors(prepared, (made,))["x"]
    assert found == pytest.approx(enumerated(prepared, made, "x"), rel=1e-9)


def test_measures_are_those_of_an_evaluation() -> None:
    """At an enormous ε there is no noise, and a release has exactly the expected measures."""
    table = survey(120).append_column("level", survey(120)["education"])
    entries = survey_schema().to_dict()["attribute"]
    level = next(dict(entry) for entry in entries if entry["name"] == "education") | {"name": "level"}
    schema = shoal.Schema.from_dict({"attribute": [*entries, level]})
    columns = ["age", "income", "level", "savings"]
    prepared = prepare(
        read(table),
        schema,
        "idp-ls",
        "1e6",
        5,
        columns=columns,
        missing="separate",
        groups=[[c] for c in columns],
    )
    assert prepared.method.freezes
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    expected = expected_measures(prepared, frozen)
    measured = evaluate(table, carry_out(replace(prepared, source=Seeded(1)), frozen=frozen)).utility
    for name in ("sse", "normalised_sse", "scaled_sse"):
        assert expected[name] == pytest.approx(measured[name], rel=1e-3), name


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("mdav-dp", {"noise": "staircase"}),
        ("ranking-dp", {"link": False}),
        ("insensitive-dp", {"composition": "parallel"}),
        ("tree-dp", {}),
        ("xm-2", {"k": 20}),
        ("ranking-dp", {"columns": ["age", "region"], "k": 20}),
    ],
)
def test_no_closed_form_is_claimed_where_there_is_none(method: str, options: dict[str, Any]) -> None:
    arguments = {"epsilon": "1", "columns": ["age", "income"], **options}
    assert not has_closed_form(prepare(read(survey(60)), survey_schema(), method, **arguments))


def test_values_outside_the_domain_count_with_their_own_value() -> None:
    data = pa.table({"x": [0.0, 5.0, 50.0, 60.0]})
    prepared = prepare(read(data), None, "ranking-dp", "1e6", 2, domains={"x": (0, 10)}, outside="clip")
    assert prepared.method.freezes
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    # clusters {0, 5} around 2.5 and {50, 60}, both clipped to 10
    assert expected_errors(prepared, frozen)["x"] == pytest.approx(2 * 2.5**2 + 40**2 + 50**2, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "k"), list(product(("mdav-dp", "ranking-dp", "idp-cbls"), (50, 100))))
def test_census_agrees_within_two_percent(method: str, k: int) -> None:
    table = csv.read_csv(data_file("census.csv"))
    columns = ["FEDTAX", "POTHVAL", "INTVAL", "FICA"]
    prepared = prepare(read(table), None, method, "1", k, columns=columns, domain_from_data=1.5)
    assert prepared.method.freezes
    frozen = prepared.method.freeze(prepared.described, prepared.plan, silent)
    expected = sum(expected_errors(prepared, frozen).values())
    found = sum(sampled(prepared, frozen, 2000).values())
    error = found.std() / np.sqrt(found.size)
    assert found.mean() == pytest.approx(expected, rel=0.02, abs=6 * error)
