"""tree-dp from end to end: its claim, the number of rows it releases, and tables with nothing to cut."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import shoal
from shoal.errors import ClaimError, OptionError
from shoal.io import read
from shoal.mechanisms.registry import load_recipe
from shoal.noise import Seeded
from shoal.release.protection import carry_out, prepare

REBUILDS = ("uniform", "centroid", "normal")


def people(rows: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, rows), 0, 100).astype(np.int64)
    income = np.minimum(300 * age * rng.lognormal(0, 0.4, rows), 200_000).round(2)
    return pa.table({"age": age, "income": income})


DOMAINS = {"age": (0, 120), "income": (0.0, 200_000.0)}


def protect(table: Any, **options: Any) -> shoal.Release:
    settings = {"method": "tree-dp", "epsilon": 1, "seed": 1, "domains": DOMAINS, **options}
    return shoal.protect(table, **settings)


def test_the_claim_is_differential_privacy_of_the_original_records() -> None:
    release = shoal.protect(people(500), method="tree-dp", epsilon="0.5", domains=DOMAINS)
    statement = release.statement
    assert (statement.model, statement.epsilon, statement.publishable) == ("dp", Fraction(1, 2), True)
    assert statement.adjacency.words == (
        "replace-one: adjacent data sets differ in one record, and the number of records is public"
    )
    assert any("number of records is public" in line for line in statement.not_promised)
    assert release.aligned is None
    assert release.partition == []
    assert release.data.num_rows == 500
    assert release.data.schema == people(1).schema


@pytest.mark.parametrize("options", [{}, {"rebuild": "normal"}, {"cuts": 0}, {"cuts": 3, "depth": 0}])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "10"])
def test_every_share_is_listed_and_they_add_up(options: dict[str, Any], epsilon: str) -> None:
    spending = protect(people(2000), epsilon=epsilon, **options).statement.spending
    assert sum(share for share in spending.values() if share is not None) == Fraction(epsilon)


def test_levels_are_listed_one_by_one() -> None:
    spending = protect(people(2000), cuts=2, depth=3).statement.spending
    assert [name for name in spending if "tree" in name] == [
        f"counts of the tree, level {level} of 3" for level in (1, 2, 3)
    ]
    assert "cut points of all attributes, level 2 of 2" in spending


@pytest.mark.parametrize("rebuild", REBUILDS)
def test_values_stay_in_the_domain_and_integers_stay_integers(rebuild: str) -> None:
    data = protect(people(3000), epsilon=5, rebuild=rebuild).data
    for name, (lo, hi) in DOMAINS.items():
        values = data[name].to_numpy()
        assert values.min() >= lo
        assert values.max() <= hi


@pytest.mark.parametrize("rebuild", REBUILDS)
def test_a_large_budget_shows_the_data(rebuild: str) -> None:
    """At ε = 500 distributions and dependence come out almost as they are."""
    table = people(4000)
    data = protect(table, epsilon=500, rebuild=rebuild).data
    for name in DOMAINS:
        before, after = np.sort(table[name].to_numpy()), np.sort(data[name].to_numpy())
        assert np.abs(before - after).mean() < 0.05 * before.std()
    assert correlation(data) == pytest.approx(correlation(table), abs=0.1)


def correlation(table: pa.Table) -> float:
    return float(np.corrcoef(table["age"].to_numpy(), table["income"].to_numpy())[0, 1])


def test_a_tiny_budget_does_not_show_the_data() -> None:
    """At ε = 1e-6 the release of two opposite tables is the same for the same noise."""
    low = pa.table({"x": np.zeros(50, dtype=np.int64)})
    high = pa.table({"x": np.full(50, 100)})
    one, two = (
        protect(table, epsilon="0.000001", domains={"x": (0, 100)}).data["x"].to_pylist()
        for table in (low, high)
    )
    assert one == two


CONSTANT = [7] * 40


@pytest.mark.parametrize(
    "options", [{}, {"cuts": 3}, {"cuts": 2, "depth": 3}, {"rebuild": "normal", "cuts": 2}]
)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "columns",
    [
        {"x": CONSTANT, "y": CONSTANT},
        {"x": [0] * 20 + [10] * 20, "y": list(range(10)) * 4},
        {"x": [3], "y": [10]},
        {"x": [0, 10], "y": [0, 10]},
    ],
    ids=["constant", "two values", "one record", "corners"],
)
def test_tables_with_little_to_cut_are_released(
    columns: dict[str, list[int]], neighbours: str, options: dict[str, Any]
) -> None:
    table = pa.table(columns)
    for epsilon in ("0.01", "3", "1000"):
        release = protect(
            table, epsilon=epsilon, domains={"x": (0, 10), "y": (0, 10)}, neighbours=neighbours, **options
        )
        if neighbours == "replace-one":
            assert release.data.num_rows == table.num_rows
        for name in columns:
            values = release.data[name].to_numpy()
            assert ((values >= 0) & (values <= 10)).all()


def test_a_lattice_of_two_points_is_cut_once_and_left_whole_after_that() -> None:
    table = pa.table({"sex": [0, 1] * 300, "age": list(range(100)) * 6})
    release = protect(table, epsilon=100, domains={"sex": (0, 1), "age": (0, 99)}, cuts=4, depth=6)
    assert release.data["sex"].to_numpy().mean() == pytest.approx(0.5, abs=0.05)
    assert set(release.data["sex"].to_pylist()) == {0, 1}


def test_centroids_of_constant_data_are_that_constant_at_a_large_budget() -> None:
    release = protect(
        pa.table({"x": CONSTANT, "y": CONSTANT}),
        epsilon=1_000_000,
        domains={"x": (0, 10**6), "y": (0, 10)},
        cuts=4,
        rebuild="centroid",
    )
    assert set(release.data["x"].to_pylist()) == {7}
    assert set(release.data["y"].to_pylist()) == {7}


def test_one_attribute_needs_no_tree() -> None:
    table = people(1000).select(["age"])
    release = protect(table, epsilon=5, domains={"age": (0, 120)})
    assert not any("tree" in name for name in release.statement.spending)
    assert np.median(release.data["age"].to_numpy()) == pytest.approx(
        np.median(table["age"].to_numpy()), abs=2
    )


def test_the_finest_lattice_is_cut_without_overflow() -> None:
    values = np.array([0, 1, 2**51, 2**52 - 1] * 10)
    release = protect(pa.table({"x": values}), epsilon=1000, domains={"x": (0, 2**52)}, rebuild="centroid")
    released: NDArray[np.int64] = release.data["x"].to_numpy()
    assert np.abs(np.sort(released) - np.sort(values)).max() < 2**52 // 100


def test_added_and_removed_records_have_a_statement_and_row_numbers_of_their_own() -> None:
    table = people(2000)
    release = protect(table, epsilon=1, neighbours="add-remove")
    assert release.statement.adjacency.words == (
        "adjacent data sets differ by one added or removed record, and the number of records is private"
    )
    assert not any("took part" in line for line in release.statement.not_promised)
    assert release.statement.spending["number of rows"] == Fraction(1, 20)
    assert sum(share or 0 for share in release.statement.spending.values()) == 1
    assert release.data.num_rows != 2000
    assert abs(release.data.num_rows - 2000) < 500
    assert release.internal["rows_released"] == release.data.num_rows


def test_noisy_numbers_of_rows_have_the_promised_spread() -> None:
    table = people(60)
    prepared = prepare(read(table), method="tree-dp", epsilon=2, neighbours="add-remove", domains=DOMAINS)
    numbers = [carry_out(replace(prepared, source=Seeded(seed))).data.num_rows for seed in range(120)]
    # discrete Laplace of scale 10, cut off at one row: mean 60, standard deviation about 14
    assert np.mean(numbers) == pytest.approx(60, abs=6)
    assert 11 < np.std(numbers) < 18


def test_a_declared_number_of_rows_is_released_and_costs_nothing() -> None:
    release = protect(people(1900), neighbours="add-remove", rows=2000)
    assert release.data.num_rows == 2000
    assert "number of rows" not in release.statement.spending
    assert release.internal["rows_released"] == 2000


def test_the_plan_under_add_remove_does_not_look_at_the_number_of_records() -> None:
    plans = {
        tuple(protect(people(n), neighbours="add-remove", rows=1000).statement.spending.items())
        for n in (500, 1000, 5000)
    }
    assert len(plans) == 1
    statements = [protect(people(n), neighbours="add-remove").statement.to_dict() for n in (500, 5000)]
    assert statements[0] == statements[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 100}, "rows requires neighbours=add-remove"),
        ({"neighbours": "replace"}, "Did you mean 'replace-one'"),
        ({"rebuild": "box"}, "rebuild 'box' is not one of uniform, centroid, normal"),
        ({"shares": {"cuts": 1}}, "shares must map each of cuts, intervals, leaves, means to a weight"),
        ({"shares": {"cuts": 1, "intervals": 0, "leaves": 1, "means": 1}}, "must be above 0"),
        ({"depth": -1}, "depth must be an integer"),
        ({"cuts": 1.5}, "cuts must be an integer"),
        ({"k": 5}, "forms no groups, so k does not apply"),
        ({"clip": False}, "has no option 'clip'"),
        ({"labels": [0] * 50}, "has no option 'partition'"),
    ],
)
def test_unfitting_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        protect(people(50), **options)


def test_a_person_with_several_rows_needs_a_declared_maximum() -> None:
    table = people(40).append_column("person", pa.array([i // 2 for i in range(40)]))
    entries = [
        {"name": "age", "lo": 0, "hi": 120},
        {"name": "income", "lo": 0.0, "hi": 200_000.0},
        {"name": "person", "role": "unit"},
    ]
    with pytest.raises(ClaimError, match="declare max_rows"):
        shoal.protect(table, shoal.Schema.from_dict({"attribute": entries}), method="tree-dp", epsilon=1)
    entries[2]["max_rows"] = 2
    release = shoal.protect(
        table, shoal.Schema.from_dict({"attribute": entries}), method="tree-dp", epsilon=1
    )
    assert release.statement.epsilon == 1
    assert release.method.epsilon == Fraction(1, 2)


def test_a_recipe_repeats_every_setting(tmp_path: Path) -> None:
    options = {
        "cuts": 2,
        "depth": 3,
        "rebuild": "normal",
        "neighbours": "add-remove",
        "rows": 300,
        "shares": {"cuts": "0.5", "intervals": "0.1", "leaves": "0.3", "means": "0.1"},
    }
    release = shoal.protect(people(300), method="tree-dp", epsilon="0.5", domains=DOMAINS, **options)
    release.save(tmp_path / "out")
    again = shoal.protect(people(300), **load_recipe(tmp_path / "out" / "method.toml"))
    assert again.method == release.method
    assert again.statement == release.statement


def test_no_result_depends_on_the_order_of_records() -> None:
    table = people(800)
    shuffled = table.take(np.random.default_rng(3).permutation(800))
    one, two = (protect(t, epsilon=2).data for t in (table, shuffled))
    assert one.equals(two)
