"""Once the budget is spent nothing fails, whatever the records and the draws are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import InputError, OptionError
from shoal.io import read
from shoal.mechanisms.registry import names
from shoal.mechanisms.tree.intervals import ends_of
from shoal.noise import Seeded
from shoal.release.protection import prepare
from tests.support.presets import sampled

from .transcript import recording
from .worlds import world

every_preset = pytest.mark.parametrize("preset", sampled(names()))


def carried_out(preset: str, wanted: int, first: int = 0) -> int:
    """How many worlds were protected, with draws as they come and with draws far out; an exception ends it."""
    worlds = 0
    for seed in range(first, first + 50 * wanted):
        if worlds == wanted:
            break
        made = world(preset, seed)
        if made is None:
            continue
        prepared = made.prepared(made.table)
        made.carried_out(prepared, Seeded(seed))
        if prepared.statement.epsilon is not None and prepared.statement.model != "none":
            with recording(seed) as run:
                made.carried_out(prepared, run.source)
        worlds += 1
    return worlds


@every_preset
def test_nothing_fails_once_a_release_is_prepared(preset: str) -> None:
    assert carried_out(preset, 1) == 1


@pytest.mark.slow
@every_preset
def test_nothing_fails_in_hundreds_of_worlds(preset: str) -> None:
    assert carried_out(preset, 60, first=1000) == 60


def test_an_empty_interval_behind_the_last_name_is_no_failure() -> None:
    """Cut points that leave nothing to their right, at the end of a domain of names: six runs in a hundred did that."""
    towns = [f"name {number:02}" for number in range(10)]
    schema = shoal.Schema.from_dict(
        {"attribute": [{"name": "a", "kind": "nominal", "values": towns}, {"name": "b", "lo": 0, "hi": 100}]}
    )
    for seed in range(60):
        random = np.random.default_rng(seed)
        table = pd.DataFrame({"a": random.choice(towns, 20), "b": random.integers(0, 101, 20)})
        released = shoal.protect(table, schema, "tree-dp", 1, seed=seed, cuts=3, depth=4).data
        assert set(released["a"]) <= set(towns)


def test_ends_of_intervals_stay_inside_the_domain() -> None:
    lows, highs = ends_of(np.array([0, 0, 4, 5, 5, 5]))
    assert lows.tolist() == [0, 0, 4, 4, 4]
    assert highs.tolist() == [0, 3, 4, 4, 4]


WIDE = {"a": (0, 10**12)}


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("laplace", {"epsilon": "0.000001"}, "2\\^52"),
        ("ranking-dp", {"epsilon": "0.000001", "k": 2}, "2\\^52"),
        ("insensitive-dp", {"epsilon": "0.0001", "k": 1}, "2\\^52"),
        ("idp-ls", {"epsilon": "0.000001", "k": 2}, "2\\^52"),
        ("xm-14", {"epsilon": "0.000001", "k": 2}, "2\\^52"),
        ("tree-dp", {"epsilon": "0.000001", "cuts": 1}, "2\\^52"),
        ("tree-dp", {"epsilon": "0.000001", "neighbours": "add-remove"}, "declare a number of rows"),
        ("ranking-dp", {"epsilon": 1, "k": 50}, "k = 50"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused_before_the_budget_is_spent(
    method: str, settings: dict[str, object], message: str
) -> None:
    table = read(pd.DataFrame({"a": [1, 5, 10**12, 4]}))
    with pytest.raises(OptionError, match=message):
        prepare(table, None, method, domains=WIDE, **settings)  # type: ignore[arg-type]


def test_a_value_outside_its_domain_is_refused_before_the_budget_is_spent() -> None:
    table = read(pd.DataFrame({"a": [1, 5, 200]}))
    with pytest.raises(InputError, match="some values of column 'a' lie outside 0:100"):
        prepare(table, None, "laplace", 1, domains={"a": (0, 100)})


def test_too_few_rows_that_miss_the_same_are_refused_before_the_budget_is_spent() -> None:
    table = read(pd.DataFrame({"a": [1.0, 5.0, 7.0, None]}))
    with pytest.raises(OptionError, match="too few rows without missing values"):
        prepare(table, None, "mdav-dp", 1, 4, domains={"a": (0, 100)}, missing="separate")


@pytest.mark.parametrize(("method", "needed"), [("idp-cbls", 3), ("xm-21", 2), ("xm-24", 3)])
def test_a_single_row_without_a_value_is_refused_where_it_has_no_statistics(method: str, needed: int) -> None:
    table = read(pd.DataFrame({"a": [1.0, 5.0, 7.0, 8.0, None]}))
    with pytest.raises(OptionError, match=f"missing in exactly a, got 1 but at least {needed} are needed"):
        prepare(table, None, method, 1, 4, domains={"a": (0, 100)}, missing="separate")


def test_a_depth_that_the_drawn_number_of_rows_does_not_allow_becomes_smaller() -> None:
    table = pd.DataFrame({"a": [1, 5, 7], "b": [2, 2, 2]})
    for seed in range(20):
        shoal.protect(
            table,
            method="tree-dp",
            epsilon=1,
            seed=seed,
            neighbours="add-remove",
            depth=3,
            domains={"a": (0, 9), "b": (0, 9)},
        )


def stratified(**more: object) -> tuple[pd.DataFrame, shoal.Schema]:
    """Two strata of four rows; the illness is the same in all rows of the second one."""
    table = pd.DataFrame(
        {
            "region": ["north"] * 4 + ["south"] * 4,
            "age": [20, 21, 30, 31, 40, 41, 50, 51],
            "illness": ["flu", "gout", "flu", "gout", "flu", "flu", "flu", "flu"],
            **more,
        }
    )
    roles = {
        "region": "quasi-identifier",
        "age": "quasi-identifier",
        "illness": "confidential",
        "weight": "weight",
    }
    facts = {
        "region": {"kind": "nominal", "values": ["north", "south"]},
        "age": {"lo": 0, "hi": 120},
        "illness": {"kind": "nominal", "values": ["flu", "gout"]},
        "weight": {},
    }
    entries = [{"name": name, "role": roles[name], **facts[name]} for name in table]
    return table, shoal.Schema.from_dict({"attribute": entries})


@pytest.mark.parametrize("method", ["k-anonymity", "anatomy", "swap-ranking", "swap-mdav"])
def test_an_l_out_of_reach_in_a_stratum_is_refused_before_the_budget_is_spent(method: str) -> None:
    table, schema = stratified()
    assert prepare(read(table), schema, method, k=2, l=2).method.l == 2
    with pytest.raises(
        OptionError,
        match="l = 2 cannot be reached: column 'illness' has only 1 different value in the stratum region=south",
    ):
        prepare(read(table), schema, method, k=2, l=2, strata=["region"])


@pytest.mark.parametrize("method", ["swap-ranking", "swap-mdav"])
def test_an_l_out_of_reach_among_rows_of_equal_weight_is_refused_before_a_swap(method: str) -> None:
    table, schema = stratified(weight=[1.5] * 4 + [2.5] * 4)
    with pytest.raises(
        OptionError, match="column 'illness' has only 1 different value in the whole table, among rows of"
    ):
        prepare(read(table), schema, method, k=2, l=2)


@pytest.mark.parametrize(
    ("method", "settings"),
    [("k-anonymity", {}), ("anatomy", {}), ("mdav-dp", {"epsilon": 1}), ("xm-23", {"epsilon": 1})],
)
def test_given_labels_that_strata_cut_below_k_are_refused_before_the_budget_is_spent(
    method: str, settings: dict[str, object]
) -> None:
    table, schema = stratified()
    labels = [0, 0, 0, 1, 1, 1, 0, 0]
    columns = {"columns": ["age"]} if "epsilon" in settings else {}
    common = {"k": 3, "labels": labels, **settings, **columns}
    prepare(read(table), schema, method, **common)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cluster 1 has 1 records, fewer than k = 3"):
        prepare(read(table), schema, method, strata=["region"], **common)  # type: ignore[arg-type]
