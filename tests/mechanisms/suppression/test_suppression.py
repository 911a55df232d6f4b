"""Local suppression: as few cells as can be, k verified, beside the offices' figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import shoal
from shoal import Attribute, Schema
from shoal.cli import run
from shoal.mechanisms.suppression.bound import Keys, priced_bound, program_of, share_bound, solved
from shoal.mechanisms.suppression.search import Assignment, fewest, finished, refined
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from shoal.report import internal_report
from tests.conftest import data_file, offices_file
from tools.offices import KEYS4, KEYS6, KEYS_MISSING, adult

from .suppression_oracle import NothingDiffersError, counts_of, reference_run

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


def groupings(rows: tuple[int, ...], k: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to divide rows into groups of at least k."""
    if not rows:
        yield []
    for size in range(k, len(rows) + 1):
        for others in combinations(rows[1:], size - 1):
            rest = tuple(row for row in rows[1:] if row not in others)
            if not rest or len(rest) >= k:
                yield from ([(rows[0], *others), *more] for more in groupings(rest, k))


def least_by_grouping(keys: Keys, k: int) -> float:
    """The oracle for a few rows more: all groupings, each group keeps what its rows have in common."""
    best = np.inf
    for found in groupings(tuple(range(keys.n)), k):
        cost = 0.0
        for group in found:
            own = keys.codes[list(group)]
            cost += float(((own > 0) & (own != own[0]).any(axis=0)).sum(axis=0) @ keys.costs)
        best = min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(16))
def test_frequent_rows_help_where_that_is_best(seed: int) -> None:
    """Tables in which the rows that can be spared are few, so that it matters who lends to whom."""
    draw = np.random.default_rng(seed)
    n, m, k = int(draw.integers(5, 9)), int(draw.integers(2, 5)), int(draw.integers(2, 4))
    codes = draw.integers(0 if seed % 3 == 0 else 1, 4, (n, m))
    keys = Keys(codes, np.ones(m) if seed % 2 else draw.integers(1, 4, m).astype(float))
    found = fewest(keys, k)
    assert smallest_group(released(keys, found.masks)) >= k
    assert found.cost == found.bound == pytest.approx(least_by_grouping(keys, k))


@pytest.mark.parametrize(("n", "k"), [(60, 3), (90, 2), (150, 4)])
def test_prices_give_nearly_the_bound_of_the_linear_program(n: int, k: int) -> None:
    keys = Keys(np.random.default_rng(n).integers(1, 6, (n, 4)), np.ones(4))
    program = program_of(keys, k, _rare(keys, k))
    linear = solved(program, whole=False)
    assert linear is not None
    bound = priced_bound(program, 1.1 * linear.cost)
    assert share_bound(program) < linear.cost
    assert share_bound(program) - 1e-6 <= bound <= linear.cost + 1e-6
    assert bound >= 0.98 * linear.cost


def test_parts_that_are_blanked_anew_cost_less_and_keep_k() -> None:
    draw = np.random.default_rng(1)
    codes = 1 + np.floor(draw.random((160, 4)) ** 2 * 6).astype(np.int64)
    codes[draw.random(codes.shape) < 0.02] = 0
    keys = Keys(codes, np.array([1.0, 2.0, 1.0, 1.0]))
    before = finished(Assignment.start(keys, 3)).copy()
    after = []
    for _ in range(2):
        found = Assignment(keys, 3, before.copy())
        refined(found)
        after.append(found.masks)
    # the same every time
    assert (after[0] == after[1]).all()
    assert smallest_group(released(keys, after[0])) >= 3
    paid = [float((keys.cells(masks) & (codes > 0)).sum(axis=0) @ keys.costs) for masks in (before, after[0])]
    assert paid[1] < paid[0]


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
@pytest.mark.parametrize(("k", "most", "least"), [(3, 1560, 1485), (5, 2450, 2250)])
def test_adult_with_six_keys_is_near_its_bound(k: int, most: int, least: int) -> None:
    data_file("adult.csv")
    keys = Keys(codes_of(adult(5000), KEYS6), np.ones(6))
    found = fewest(keys, k)
    assert smallest_group(released(keys, found.masks)) >= k
    assert found.cost <= most
    assert found.bound >= least


def least_important_first(ranks: list[int]) -> Codes:
    return np.argsort(-np.array(ranks), kind="stable")


def codes_in(columns: dict[str, list[int | None]]) -> Codes:
    return np.array([[value or 0 for value in column] for column in columns.values()]).T


def test_an_empty_cell_that_fits_any_value_never_costs_more_than_in_the_stored_tables() -> None:
    for stored in json.loads(offices_file("fuzz_localsupp.json").read_text()):
        codes = codes_in(stored["x"])
        # the oracle is the reference, cell by cell, so that more tables can be made
        theirs = reference_run(codes, stored["k"], stored["importance"])
        assert (theirs == codes_in(stored["xAnon"])).all()
        gone = emptied(codes, Wish(stored["k"]), least_important_first(stored["importance"]))
        assert gone.sum() <= stored["total"]
        assert min(counts_of(np.where(gone, 0, codes), 1.0)) >= stored["k"]


@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("seed", range(20))
def test_nor_than_the_reference_does_in_other_tables(seed: int, alpha: float) -> None:
    draw = np.random.default_rng(seed)
    n, m, k = int(draw.integers(6, 20)), int(draw.integers(1, 5)), int(draw.integers(2, 5))
    codes = draw.integers(1, 2 + int(draw.integers(1, 4)), (n, m))
    if seed % 3 == 0:
        codes[draw.random((n, m)) < 0.15] = 0
    ranks = (1 + draw.permutation(m)).tolist()
    gone = emptied(codes, Wish(k, alpha), least_important_first(ranks))
    assert min(counts_of(np.where(gone, 0, codes), alpha)) >= k - 1e-9
    try:
        theirs = reference_run(codes, k, ranks, alpha)
    except NothingDiffersError:
        return
    assert gone.sum() <= ((theirs == 0) & (codes > 0)).sum()


def stored_run(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(offices_file("results_suppression.json").read_text())[name]
    return found


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
        pytest.param("a30_K6_k3", KEYS6, 3, 1.0, marks=pytest.mark.slow),
        pytest.param("a30_K6_k5", KEYS6, 5, 1.0, marks=pytest.mark.slow),
    ],
)
def test_nor_than_in_the_stored_runs_on_adult(run: str, keys: tuple[str, ...], k: int, alpha: float) -> None:
    stored = stored_run(run)
    data_file("adult.csv")
    codes = codes_of(adult(None if "a30" in run else 5000, complete=keys is not KEYS_MISSING), keys)
    wish = Wish(k, alpha)
    gone = emptied(codes, wish, least_important_first(stored["importance_used"]))
    assert gone.sum() <= stored["total"]
    assert wish.frequencies(np.where(gone, 0, codes))[0].min() >= k


def test_stored_runs_of_the_first_table() -> None:
    data = [(1, 1, 1), (1, 1, 1), (1, 1, 2), (1, 2, 2), (1, 2, 2), (2, 1, 1), (2, 2, 2), (3, 3, 3), (3, 3, 3)]
    stored = stored_run("toy_k2")
    for k, ranks, supps in ((2, stored["k2_imp"], "k2_supps"), (3, [3, 2, 1], "k3_supps")):
        gone = emptied(np.array(data), Wish(k), least_important_first(ranks))
        assert gone.sum() <= sum(stored[supps][0].values())
        assert min(counts_of(np.where(gone, 0, data), 1.0)) >= k


def adult_keys(keys: tuple[str, ...], *more: Attribute) -> tuple[pa.Table, Schema]:
    """Adult as a release has it: keys that are codes, and other columns."""
    data_file("adult.csv")
    own = tuple(Attribute(name, "nominal", "quasi-identifier", type="integer") for name in keys)
    return adult(5000).select([*keys, *(one.name for one in more)]), Schema((*own, *more))


def test_nor_than_in_the_stored_run_within_strata() -> None:
    table, own = adult_keys(KEYS4, Attribute("stratum", "nominal", "other", type="integer"))
    made = shoal.protect(table, own, "suppress", k=3, strata="stratum", missing_as="wildcard", seed=1)
    stored = {f"stratum={one['_row']}": one for one in stored_run("a5_K4_k3_strata")["supps"]}
    for facts in made.internal["cells_emptied"]:
        theirs = stored[facts["stratum"]]
        assert facts["cells"] <= sum(theirs[name] for name in KEYS4)
    for stratum in range(1, 4):
        rows = np.array(table["stratum"].to_pylist()) == stratum
        kept = made.aligned.filter(pa.array(rows)).select(KEYS4)
        assert shoal.risk(kept, list(KEYS4), special=False).fk.min() >= 3


@pytest.mark.slow
def test_nor_than_in_the_stored_run_of_all_combinations() -> None:
    stored = stored_run("a5_K4_k3_combs3_2")
    table, own = adult_keys(KEYS4)
    wished = {",".join(names): k for size, k in ((3, 3), (2, 5)) for names in combinations(KEYS4, size)}
    made = shoal.protect(table, own, "suppress", k=1, combinations=wished, missing_as="wildcard", seed=1)
    assert cells(made) <= sum(stored["supps"][0].values())
    for names, k in wished.items():
        assert shoal.risk(made.aligned, names.split(","), special=False).fk.min() >= k
    claimed = shoal.protect(table, own, "suppress", k=1, combinations=wished, seed=1)
    for names, k in wished.items():
        assert shoal.check(claimed.data, names.split(",")).k >= k
    # all columns with the largest k imply every wish, and cost 254
    assert cells(claimed) < 254


def test_a_risk_threshold_takes_fewer_cells_than_one_column_of_every_endangered_record() -> None:
    table, own = adult_keys(KEYS6, Attribute("w10", "numeric", "weight", type="integer"))
    made = shoal.protect(table, own, "suppress", risk="0.15", missing_as="wildcard", seed=1)
    for stored in (stored_run("a5_localSupp_threshold")[name] for name in ("age_band", "education")):
        assert cells(made) <= stored["n_suppressed"]
        after = shoal.risk(
            made.aligned.append_column("w10", table["w10"]), list(KEYS6), weight="w10", special=False
        )
        assert after.individual.max() <= 0.15 + 1e-9
        assert after.expected < stored["ER_after"]


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
    """Rows that hardly show a value fit many: counts get large, unique rows stay. Under the claim they do not count."""
    codes = np.array([[1, 1], [1, 2], [1, 3], [1, 4], [1, 0], [1, 0]])
    assert Wish(3).frequencies(codes)[0].min() >= 3
    # those that show none do not even count there
    blank = np.array([[1, 1], [2, 2], [3, 3], [4, 4], [0, 0], [0, 0]])
    assert Wish(3).frequencies(blank)[0].tolist() == [1, 1, 1, 1, 6, 6]
    for given in (codes, blank):
        keys = Keys(given, np.ones(2))
        assert smallest_group(released(keys, fewest(keys, 3).masks)) >= 3
    table = pa.table({"a": [1] * 6 + [2] * 3, "b": [1, 2, 3, 4, 5, 6, 1, 1, 1]})
    own = Schema((Attribute("a", role="quasi-identifier"), Attribute("b", role="quasi-identifier")))
    loose = shoal.protect(table, own, "suppress", k=3, seed=1, missing_as="wildcard")
    claimed = shoal.protect(table, own, "suppress", k=3, seed=1)
    assert loose.statement.model == "none"
    assert not loose.statement.publishable
    # a row that nobody shares is left, and with the claim none is
    assert shoal.check(loose.data, ["a", "b"]).k == 1
    assert shoal.check(claimed.data, ["a", "b"]).k >= 3


def test_combinations_have_a_k_of_their_own() -> None:
    made = shoal.protect(people(), schema(), "suppress", k=2, combinations={"town,sex": 12}, seed=1)
    assert shoal.check(made.data, ["town", "sex"]).k >= 12
    assert shoal.check(made.data, KEYS).k >= 2
    assert "Every combination of town, sex is shared by at least 12 rows." in made.statement.conditions


def test_many_combinations_cost_no_more_than_all_columns_with_the_largest_k() -> None:
    wished = {"town,sex": 4, "town,job": 3, "sex,job": 5}
    made = shoal.protect(people(), schema(), "suppress", k=1, combinations=wished, seed=1)
    for names, k in wished.items():
        assert shoal.check(made.data, names.split(",")).k >= k
    assert cells(made) < cells(shoal.protect(people(), schema(), "suppress", k=5, seed=1))
    assert made.internal["cells_emptied"][0]["lower_bound"] <= cells(made)


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
    assert shoal.risk(table, quasi_identifiers=list(KEYS), weight="w").individual.max() <= 0.15 + 1e-9


def test_strata_are_kept_apart() -> None:
    made = shoal.protect(people(), schema(), "suppress", k=3, strata=["part"], seed=1)
    assert shoal.check(made.data, [*KEYS, "part"]).k >= 3
    assert [facts["stratum"] for facts in made.internal["cells_emptied"]] == ["part=north", "part=south"]
    page = internal_report(made)
    (table,) = re.findall(r'<h2 id="strata">.*?</table>', page, re.DOTALL)
    for facts in made.internal["cells_emptied"]:
        assert facts["lower_bound"] <= facts["cells"] == sum(facts["by_column"].values())
        (line,) = re.findall(rf'<tr><th scope="row">{facts["stratum"]}</th>.*?</tr>', table)
        shown = [int(number) for number in re.findall(r">([0-9]+)</td>", line)]
        assert shown[2:] == [facts["cells"], facts["lower_bound"], *facts["by_column"].values()]


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_holds_for_combinations_too(seed: int) -> None:
    draw = np.random.default_rng(seed)
    codes = draw.integers(1, 3, (5, 3))
    names = ("a", "b", "c")
    table = pa.table({name: codes[:, place] for place, name in enumerate(names)})
    own = Schema(tuple(Attribute(name, role="quasi-identifier") for name in names))
    made = shoal.protect(table, own, "suppress", k=1, combinations={"a,b": 2, "c": 3}, seed=1)
    least = least_by_trying(Keys(codes[:, :2], np.ones(2)), 2) + least_by_trying(
        Keys(codes[:, 2:], np.ones(1)), 3
    )
    # columns in common are none: the two bounds add up
    assert made.internal["cells_emptied"][0]["lower_bound"] <= least <= cells(made)
    assert made.internal["cells_emptied"][0]["lower_bound"] > 0 or least == 0


def test_the_command_says_how_many_cells_and_how_few_they_could_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, described = tmp_path / "people.csv", tmp_path / "people.toml"
    shoal.io.write(people(), data)
    schema().save(described)
    start = ["protect", str(data), "--schema", str(described), "--method", "suppress", "--k", "3"]
    for number, (more, words) in enumerate(
        [
            (
                ["--strata", "part"],
                r"Cells emptied in part=north: \d+ \(at least \d+\) in \d+ of \d+ rows; .*job \d+",
            ),
            (["--importance", "sex=3"], r"Cells emptied: \d+, \d+ by importance \(at least \d+\)"),
            (["--missing-as", "wildcard"], r"Cells emptied: \d+ \(no lower bound\)"),
        ]
    ):
        run([*start, *more, "--out", str(tmp_path / f"out{number}")])
        assert re.search(words, capsys.readouterr().out.replace("\n", " "))


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
        ({"combinations": 5}, "combinations must map combinations of columns to k"),
        ({"importance": {"income": 2}}, "importance names column 'income'"),
        ({"importance": {"sex": 0}}, "must be above 0"),
        ({"risk": 2}, "risk must be from"),
        ({"alpha": "0.5"}, "alpha requires missing_as=wildcard"),
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
