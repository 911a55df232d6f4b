"""Local suppression: as few cells as can be, k verified, beside the offices' figures."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import data_file, offices_file
from numpy.typing import NDArray
from pyarrow import parquet

import shoal
from shoal import Attribute, Schema
from shoal.cli import run
from shoal.mechanisms.suppression.keys import Keys
from shoal.mechanisms.suppression.program import program_of, share_bound
from shoal.mechanisms.suppression.search import fewest
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from tools.offices import KEYS4, KEYS6, KEYS_MISSING, adult

Codes = NDArray[np.int64]


def codes_of(table: pa.Table, names: tuple[str, ...]) -> Codes:
    columns = []
    for name in names:
        values = table[name].to_pandas()
        codes = np.unique(values.dropna(), return_inverse=True)[1]
        found = np.zeros(len(values), dtype=np.int64)
        found[values.notna().to_numpy()] = codes + 1
        columns.append(found)
    return np.stack(columns, axis=1)


def smallest_group(codes: Codes) -> int:
    return int(np.unique(codes, axis=0, return_counts=True)[1].min())


def released(keys: Keys, masks: Codes) -> Codes:
    return np.where(keys.cells(masks), 0, keys.codes)


def least_by_trying(keys: Keys, k: int) -> float:
    """The oracle: every mask of every row."""
    best = np.inf
    for chosen in product(range(1 << keys.m), repeat=keys.n):
        gone = keys.cells(np.array(chosen, dtype=np.int64))
        cost = float((gone & (keys.codes > 0)).sum(axis=0) @ keys.costs)
        if cost < best and smallest_group(np.where(gone, 0, keys.codes)) >= k:
            best = cost
    return best


@pytest.mark.parametrize("seed", range(12))
def test_small_tables_lose_as_few_cells_as_any_way_does(seed: int) -> None:
    draw = np.random.default_rng(seed)
    codes = draw.integers(0 if seed % 4 == 0 else 1, 4, (5, 2))
    keys = Keys(codes, np.array([1.0, 2.0]) if seed % 3 == 0 else np.ones(2))
    found = fewest(keys, 2)
    assert smallest_group(released(keys, found.masks)) >= 2
    least = least_by_trying(keys, 2)
    assert found.cost == pytest.approx(least)
    assert found.bound <= least + 1e-9
    rare = _rare(keys, 2)
    assert rare.size == 0 or share_bound(program_of(keys, 2, rare)) <= least + 1e-9


def _rare(keys: Keys, k: int) -> Codes:
    _, place, counts = np.unique(keys.whole, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[place] < k)


@pytest.mark.parametrize(("columns", "values"), [(3, 40), (11, 2), (24, 9)])
def test_any_number_of_columns_reaches_k(columns: int, values: int) -> None:
    draw = np.random.default_rng(columns)
    keys = Keys(draw.integers(1, values + 1, (24, columns)), np.ones(columns))
    found = fewest(keys, 4)
    assert smallest_group(released(keys, found.masks)) >= 4
    assert found.bound <= found.cost


@pytest.mark.parametrize(("k", "cells"), [(3, 144), pytest.param(5, 254, marks=pytest.mark.slow)])
def test_adult_with_four_keys_is_solved_to_the_end(k: int, cells: int) -> None:
    data_file("adult.csv")
    keys = Keys(codes_of(adult(5000), KEYS4), np.ones(4))
    found = fewest(keys, k)
    assert smallest_group(released(keys, found.masks)) >= k
    assert (found.cost, found.bound) == (cells, cells)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "most", "least"), [(3, 1620, 1399), (5, 2560, 2049)])
def test_adult_with_six_keys_is_near_its_bound(k: int, most: int, least: int) -> None:
    data_file("adult.csv")
    keys = Keys(codes_of(adult(5000), KEYS6), np.ones(6))
    found = fewest(keys, k)
    assert smallest_group(released(keys, found.masks)) >= k
    assert found.cost <= most
    assert found.bound >= least


def least_important_first(ranks: list[int]) -> Codes:
    return np.argsort(-np.array(ranks), kind="stable")


def test_an_empty_cell_that_fits_any_value_never_costs_more_than_in_the_stored_tables() -> None:
    for stored in json.loads(offices_file("fuzz_localsupp.json").read_text()):
        table = pa.table({name: pa.array(values) for name, values in stored["x"].items()})
        codes = codes_of(table, tuple(stored["x"]))
        gone = emptied(codes, Wish(stored["k"]), least_important_first(stored["importance"]))
        assert gone.sum() <= stored["total"]
        assert Wish(stored["k"]).frequencies(np.where(gone, 0, codes))[0].min() >= stored["k"]


@pytest.mark.parametrize(
    ("run", "keys", "k", "alpha"),
    [
        ("a5_K4_k2", KEYS4, 2, 1.0),
        ("a5_K4_k3", KEYS4, 3, 1.0),
        ("a5_K4_k5", KEYS4, 5, 1.0),
        ("a5_K4_k3_imp4321", KEYS4, 3, 1.0),
        ("a5_K4_k3_imp1234", KEYS4, 3, 1.0),
        ("a5_K4_k3_alpha0", KEYS4, 3, 0.0),
        ("a5_K6_k3", KEYS6, 3, 1.0),
        ("a5_K6_k5", KEYS6, 5, 1.0),
        ("a5n_KN_k3", KEYS_MISSING, 3, 1.0),
    ],
)
def test_nor_than_in_the_stored_runs_on_adult(run: str, keys: tuple[str, ...], k: int, alpha: float) -> None:
    stored = json.loads(offices_file("results_suppression.json").read_text())[run]
    data_file("adult.csv")
    codes = codes_of(adult(5000, complete=keys is not KEYS_MISSING), keys)
    wish = Wish(k, alpha)
    gone = emptied(codes, wish, least_important_first(stored["importance_used"]))
    assert gone.sum() <= stored["total"]
    assert wish.frequencies(np.where(gone, 0, codes))[0].min() >= k


KEYS = ("town", "sex", "job")


def people(n: int = 120) -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "town": draw.choice(["A", "B", "C", "D"], n, p=[0.6, 0.2, 0.1, 0.1]),
            "sex": draw.integers(1, 3, n),
            "job": draw.choice([f"job {number}" for number in range(9)], n),
            "income": draw.integers(0, 1000, n),
            "part": draw.choice(["north", "south"], n),
            "w": draw.integers(1, 9, n),
        }
    )


def schema(**roles: Any) -> Schema:
    return Schema(
        (
            Attribute("town", "nominal", "quasi-identifier"),
            Attribute("sex", "numeric", "quasi-identifier"),
            Attribute("job", "nominal", "quasi-identifier"),
            Attribute("income", "numeric", "confidential"),
            Attribute("part", "nominal", "other"),
            Attribute("w", "numeric", "weight"),
        )
    )


def cells(release: shoal.Release) -> int:
    return sum(facts["cells"] for facts in release.internal["cells_emptied"])


def test_the_written_table_has_its_k_and_all_other_cells(tmp_path: Path) -> None:
    made = shoal.protect(people(), schema(), "suppress", k=4, seed=1)
    made.save(tmp_path / "out")
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert shoal.check(written, KEYS).k >= 4
    assert made.statement.model == "k-anonymity"
    assert "at least 4 rows" in made.statement.sentence
    empty = sum(written[name].null_count for name in KEYS)
    assert empty == cells(made) > 0
    assert made.internal["cells_emptied"][0]["lower_bound"] <= empty
    for name in KEYS:
        before, after = people()[name].to_pylist(), made.aligned[name].to_pylist()
        assert all(new is None or new != new or new == old for old, new in zip(before, after, strict=True))
    assert sorted(written["income"].to_pylist()) == sorted(people()["income"].to_pylist())


def test_blanking_whole_records_does_not_pass_for_k() -> None:
    """Two blank rows fit every row: counts get large, unique rows stay. Under the claim they do not count."""
    codes = np.array([[1, 1], [2, 2], [3, 3], [4, 4], [0, 0], [0, 0]])
    assert Wish(3).frequencies(codes)[0].min() >= 3
    keys = Keys(codes, np.ones(2))
    found = fewest(keys, 3)
    after = released(keys, found.masks)
    assert smallest_group(after) >= 3
    table = pa.table({"a": [1, 2, 3, 4, 5, 6, 1, 1], "b": [1, 2, 3, 4, 5, 6, 1, 1]})
    own = Schema((Attribute("a", role="quasi-identifier"), Attribute("b", role="quasi-identifier")))
    loose = shoal.protect(table, own, "suppress", k=3, seed=1, missing_as="wildcard")
    claimed = shoal.protect(table, own, "suppress", k=3, seed=1)
    assert loose.statement.model == "none"
    assert not loose.statement.publishable
    assert shoal.check(claimed.data, ["a", "b"]).k >= 3


def test_combinations_have_a_k_of_their_own() -> None:
    made = shoal.protect(people(), schema(), "suppress", k=2, combinations={"town,sex": 12}, seed=1)
    assert shoal.check(made.data, ["town", "sex"]).k >= 12
    assert shoal.check(made.data, KEYS).k >= 2
    assert "Every combination of town, sex is shared by at least 12 rows." in made.statement.conditions


def test_important_columns_keep_their_cells() -> None:
    made = shoal.protect(people(), schema(), "suppress", k=4, importance={"job": 50}, seed=1)
    plain = shoal.protect(people(), schema(), "suppress", k=4, seed=1)
    by_column = [one.internal["cells_emptied"][0]["by_column"]["job"] for one in (made, plain)]
    assert by_column[0] < by_column[1]


def test_a_risk_is_reached() -> None:
    made = shoal.protect(people(), schema(), "suppress", risk="0.15", k=1, seed=1)
    assert made.statement.settings["k"] == 7
    assert shoal.check(made.data, KEYS).k >= 7
    loose = shoal.protect(people(), schema(), "suppress", risk="0.15", missing_as="wildcard", seed=1)
    weights = people()["w"].to_pylist()
    table = loose.aligned.append_column("w", pa.array(weights))
    assert shoal.risk(table, keys=list(KEYS), weight="w").individual.max() <= 0.15 + 1e-9


def test_strata_are_kept_apart() -> None:
    made = shoal.protect(people(), schema(), "suppress", k=3, strata=["part"], seed=1)
    assert shoal.check(made.data, [*KEYS, "part"]).k >= 3
    assert [facts["stratum"] for facts in made.internal["cells_emptied"]] == ["part=north", "part=south"]


def test_commands_take_the_options(tmp_path: Path) -> None:
    data, described = tmp_path / "people.csv", tmp_path / "people.toml"
    shoal.io.write(people(), data)
    schema().save(described)
    asked = ["--k", "2", "--combinations", "town,sex=10;job=5", "--importance", "sex=3", "--strata", "part"]
    start = ["protect", str(data), "--schema", str(described), "--method", "suppress"]
    assert run([*start, *asked, "--out", str(tmp_path / "out")]) == 0
    assert run(["check", str(tmp_path / "out" / "data.csv"), "--quasi", "town,sex,part", "--k", "10"]) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"combinations": {"town,shoe": 5}}, "combinations names column 'shoe'"),
        ({"combinations": 5}, "combinations must give a k by columns"),
        ({"importance": {"income": 2}}, "importance names column 'income'"),
        ({"importance": {"sex": 0}}, "must be above 0"),
        ({"risk": 2}, "risk must be from"),
        ({"alpha": "0.5"}, "alpha is for missing_as=wildcard"),
        ({"missing_as": "joker"}, "missing_as 'joker' is not one of"),
        ({"k": 121}, "larger than the number of records"),
        ({"strata": "shoe"}, "shoe"),
        ({"strata": ["town", "sex", "job"]}, "strata names all quasi-identifiers"),
        ({"strata": "town", "k": 30}, "stratum town=. has"),
    ],
)
def test_unfitting_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(shoal.ShoalError, match=words):
        shoal.protect(people(), schema(), "suppress", **options)
