"""Persons with several rows: every count against brute force, and what each method of the family makes of them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet

import shoal
from shoal import Attribute, OptionError, Schema
from shoal.cli import run
from shoal.evaluation._kernels import minimal_uniques
from shoal.evaluation.disclosure.record_risk import only_person
from shoal.mechanisms.suppression.mechanism import Combination, emptied_for_all
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from shoal.partition.groups import (
    as_category,
    as_wildcard,
    count_groups,
    distinct_for_units,
    equal_distances,
    most_rows_of_a_unit,
    ordered_distances,
    patterns,
    places,
    ratio_distances,
    units_of_groups,
)
from tests.support.suda_oracle import minimal_uniques_one_by_one

from .mixed import mixed, mixed_schema

Ints = NDArray[np.int64]


@st.composite
def rows(draw: st.DrawFn, columns: int = 2, most: int = 12) -> tuple[Ints, ...]:
    """Some columns of small whole numbers without gaps; the last one is a person."""
    n = draw(st.integers(1, most))
    found = [draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for _ in range(columns + 1)]
    return tuple(places(np.array(column, dtype=np.int64)) for column in found)


def matched(edges: set[tuple[int, int]]) -> int:
    """The most persons with a value each, all different: the largest set of edges without a common end."""
    for many in range(min(len({p for p, _ in edges}), len({v for _, v in edges})), 0, -1):
        for chosen in combinations(sorted(edges), many):
            if len({p for p, _ in chosen}) == many == len({v for _, v in chosen}):
                return many
    return 0


def shares(values: Ints, units: Ints, which: NDArray[np.bool_]) -> dict[int, Fraction]:
    """Every person has one part, divided among the rows that are asked about."""
    found: dict[int, Fraction] = defaultdict(Fraction)
    persons = set(units[which].tolist())
    for person in persons:
        own = values[which & (units == person)].tolist()
        for value in own:
            found[value] += Fraction(1, len(own) * len(persons))
    return found


@given(rows())
def test_units_of_groups_are_counted_one_by_one(table: tuple[Ints, ...]) -> None:
    labels, _, units = table
    for group in range(int(labels.max()) + 1):
        own = units[labels == group].tolist()
        assert units_of_groups(labels, units)[group] == len(set(own))
        assert most_rows_of_a_unit(labels, units)[group] == max(own.count(one) for one in own)


@given(rows())
def test_shares_are_those_of_persons_and_so_are_all_distances(table: tuple[Ints, ...]) -> None:
    labels, values, units = table
    counts = count_groups(labels, values, units)
    kinds = int(values.max()) + 1
    whole = shares(values, units, np.ones(labels.size, dtype=np.bool_))
    for group in range(int(labels.max()) + 1):
        own = shares(values, units, labels == group)
        entries = counts.group == group
        found = dict(zip(counts.value[entries].tolist(), counts.shares[entries].tolist(), strict=True))
        assert found == pytest.approx({value: float(share) for value, share in own.items()})
        apart = [own.get(value, Fraction(0)) - whole[value] for value in range(kinds)]
        assert equal_distances(counts)[group] == pytest.approx(float(sum(map(abs, apart)) / 2), abs=1e-12)
        running = [sum(apart[: place + 1], Fraction(0)) for place in range(kinds)]
        ordered = sum(map(abs, running)) / max(kinds - 1, 1)
        assert ordered_distances(counts)[group] == pytest.approx(float(ordered), abs=1e-12)
        ratio = max(
            max(own[value] / whole[value], whole[value] / own[value]) if value in own else math.inf
            for value in range(kinds)
        )
        assert ratio_distances(counts)[group] == pytest.approx(float(ratio))


@given(rows())
def test_persons_with_rows_of_their_own_are_counted_like_rows(table: tuple[Ints, ...]) -> None:
    labels, values, _ = table
    alone = np.arange(labels.size)
    ours, theirs = count_groups(labels, values, alone), count_groups(labels, values)
    for name in ("group", "value", "count", "sizes", "totals"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@given(rows(most=8))
def test_different_values_of_different_persons_are_a_largest_matching(table: tuple[Ints, ...]) -> None:
    labels, values, units = table
    found = distinct_for_units(labels, values, units)
    for group in range(int(labels.max()) + 1):
        own = labels == group
        edges = set(zip(units[own].tolist(), values[own].tolist(), strict=True))
        assert found[group] == matched(edges)


def fits(own: list[int], other: list[int], alpha: float) -> float:
    """What a row counts for another one, -1 for a missing value: the words of docs/risk.md."""
    if any(a >= 0 and b >= 0 and a != b for a, b in zip(own, other, strict=True)):
        return 0.0
    if own == other or min(other) >= 0 or max(own) < 0:
        return 1.0
    if len(own) > 1 and max(other) < 0 and min(own) >= 0:
        return 0.0
    return alpha


@given(rows(columns=3), st.sampled_from([1.0, 0.5, 0.0]), st.integers(0, 99))
def test_fk_and_their_weights_are_those_of_persons(table: tuple[Ints, ...], alpha: float, seed: int) -> None:
    *keys, units = (column - 1 for column in table)
    units = places(units)
    weights = np.random.default_rng(seed).integers(1, 9, units.size).astype(np.float64)
    smallest = {one: min(weights[units == one]) for one in set(units.tolist())}
    found = patterns(keys, weights, units)
    records = np.stack(keys, axis=1).tolist()
    fk, population = (values[found.labels] for values in as_wildcard(found, alpha))
    plain = as_category(found)[0][found.labels]
    for row, own in enumerate(records):
        best: dict[int, float] = defaultdict(float)
        same = set()
        for other, unit in zip(records, units.tolist(), strict=True):
            best[unit] = max(best[unit], fits(own, other, alpha))
            same |= {unit} if other == own else set()
        assert fk[row] == pytest.approx(sum(best.values()))
        assert population[row] == pytest.approx(sum(part * smallest[unit] for unit, part in best.items()))
        assert plain[row] == len(same)


@given(rows(columns=3))
def test_minimal_sample_uniques_are_persons(table: tuple[Ints, ...]) -> None:
    *keys, units = table
    keys = [key - 1 for key in keys]
    found = patterns(keys, None, units)
    levels = np.array([4] * 3)
    quick = minimal_uniques(found.codes, levels, only_person(found))
    pairs = sorted(zip(*(one.tolist() for one in quick), strict=True))
    assert pairs == sorted(zip(*(one.tolist() for one in minimal_uniques_one_by_one(found)), strict=True))
    records = np.stack(keys, axis=1)
    for pattern, first in enumerate(np.unique(found.labels, return_index=True)[1].tolist()):
        for bits in range(1, 8):
            chosen = [key for key in range(3) if bits >> key & 1]
            if records[first, chosen].min() < 0:
                continue
            same = (records[:, chosen] == records[first, chosen]).all(axis=1)
            alone = len(set(units[same].tolist())) == 1
            covered = any(owner == pattern and bits & sets == sets for owner, sets in pairs)
            assert alone == covered


def six_of_one() -> pa.Table:
    """Six rows of one person, and five persons with one each."""
    return pa.table(
        {
            "who": ["A"] * 6 + list("BCDEF"),
            "age": [30] * 6 + [40] * 5,
            "ill": list("uvwxyz") + list("uuuuv"),
            "w": [2.0] * 6 + [3.0] * 5,
        }
    )


def roles(**more: Any) -> Schema:
    return Schema(
        (
            Attribute("who", kind="nominal", role="unit", **more),
            Attribute("age", role="quasi-identifier", lo=0, hi=100),
            Attribute("ill", kind="nominal", role="confidential", values=tuple("uvwxyz")),
        )
    )


def test_check_and_risk_see_through_six_rows_of_one_person() -> None:
    table = six_of_one()
    assert shoal.check(table, ["age"], ["ill"], k=5).met
    found = shoal.check(table, ["age"], ["ill"], k=5, unit="who")
    assert not found.met
    assert (found.k, found.unique, found.distinct_l, found.entropy_l) == (1, 1, 1, 1)
    assert (found.rows, found.persons and found.persons.number) == (11, 6)
    assert shoal.check(table, schema=roles()).to_dict() == found.to_dict() | {
        "requirements": [],
        "met": True,
    }
    measured = shoal.risk(table, ["age"], weight="w", unit="who", sensitive=["ill"])
    assert measured.fk.tolist() == [1] * 6 + [5] * 5
    # the weight of a person once, not once for each row
    assert measured.Fk.tolist() == [2] * 6 + [15] * 5
    assert (measured.uniques, measured.below(5), measured.persons) == (1, 1, 6)
    assert measured.expected == pytest.approx(measured.individual[[0, 6, 7, 8, 9, 10]].sum())
    assert measured.global_risk == pytest.approx(measured.expected / 6)
    assert measured.suda is not None
    assert (measured.suda > 0).tolist() == [True] * 6 + [False] * 5
    assert measured.figures.suda is not None
    assert measured.figures.suda.records == 1
    assert "units that no other matches" in measured.figures.lines()[0][2]
    lived = shoal.risk(table.append_column("home", pa.array([1] * 11)), ["age"], household="home", unit="who")
    assert lived.household is not None
    assert lived.household.max() == 1
    two = pa.table({"a": [1, 1, 2], "who": [1, 1, 2], "home": [1, 1, 2], "w": [2, 2, 2]})
    once = shoal.risk(two, ["a"], "w", "home", unit="who")
    # a household of one person with two rows is as safe as the person
    assert once.household == pytest.approx(once.individual)


def test_without_a_unit_nothing_is_said_of_persons() -> None:
    table = six_of_one()
    assert "persons" not in json.dumps(shoal.check(table, ["age"], ["ill"]).to_dict())
    assert "persons" not in json.dumps(shoal.risk(table, ["age"]).to_dict())
    assert (
        "counted" not in shoal.protect(table, columns=["age"], method="k-anonymity", k=5).statement.to_dict()
    )


def test_a_row_without_its_person_is_refused() -> None:
    table = pa.table({"who": ["a", None], "age": [1, 1]})
    for measure in (shoal.risk, shoal.check):
        with pytest.raises(shoal.InputError, match="unit column 'who' has no value in row 2"):
            measure(table, ["age"], unit="who")
        with pytest.raises(shoal.InputError, match="there is no column 'whom'"):
            measure(table, ["age"], unit="whom")


def test_commands_count_persons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "people.csv"
    shoal.io.write(six_of_one(), path)
    words = ["check", str(path), "--quasi", "age", "--k", "5"]
    assert run(words) == 0
    assert run([*words, "--unit", "who"]) == 1
    assert "persons of the smallest group" in capsys.readouterr().out
    roles().save(tmp_path / "people.toml")
    assert run([*words, "--schema", str(tmp_path / "people.toml")]) == 1
    capsys.readouterr()
    assert run(["risk", str(path), "--keys", "age", "--unit", "who", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["unit"], document["persons"], document["uniques"]) == ("who", 6, 1)
    assert run(["risk", str(path), "--keys", "age", "--unit", "whom"]) == 2


FAMILY: dict[str, dict[str, Any]] = {
    "k-anonymity": {"k": 4},
    "suppress": {"k": 3},
    "swap-mdav": {"k": 3, "intruder": "uninformed"},
    "swap-ranking": {"k": 4},
    "t-closeness": {"k": 4, "t": 2},
    "anatomy": {"k": 4},
}
# groups in which values lose their owner with the probability of a person's share of the rows
EVEN = ("swap-mdav", "swap-ranking", "anatomy")


def people(seed: int, n: int = 60, persons: int = 20, *, constant: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    who = rng.integers(0, persons, n)
    return pa.table(
        {
            "who": [f"P{one}" for one in who.tolist()],
            "age": (20 + who % 7 * 5) if constant else rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(["a", "b"], n),
            "ill": rng.choice(list("uvwxyz"), n),
            "pay": rng.integers(0, 100, n),
        }
    )


def declared(**unit: Any) -> Schema:
    return Schema(
        (
            Attribute("who", kind="nominal", role="unit", **unit),
            Attribute("age", role="quasi-identifier", lo=0, hi=100),
            Attribute("sex", kind="nominal", role="quasi-identifier", values=("f", "m")),
            Attribute("town", kind="nominal", role="other", values=("a", "b")),
            Attribute("ill", kind="nominal", role="confidential", values=tuple("uvwxyz")),
            Attribute("pay", role="confidential", lo=0, hi=100),
        )
    )


def persons_of(table: pa.Table) -> Ints:
    return places(np.unique(np.array(table["who"].to_pylist()), return_inverse=True)[1].astype(np.int64))


def behind(table: pa.Table, released: Any, names: list[str]) -> int:
    """The fewest persons who share a combination of released values, row by row."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    columns = [[str(value) for value in released[name].to_pylist()] for name in names]
    for who, own in zip(table["who"].to_pylist(), zip(*columns, strict=True), strict=True):
        found[own].add(who)
    return min(map(len, found.values()))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("method", FAMILY)
def test_groups_hold_k_persons(method: str, constant: bool) -> None:
    for seed in range(6):
        table = people(seed, constant=constant)
        options = FAMILY[method]
        release = shoal.protect(table, declared(), method, **options)
        k, units = options["k"], persons_of(table)
        assert release.statement.unit == "value of 'who'"
        assert release.statement.counted == "persons"
        if method in ("k-anonymity", "suppress"):
            assert f"shared by at least {k} persons" in release.statement.sentence
            assert behind(table, release.aligned, ["age", "sex"]) >= k
        for group in release.partition:
            assert units_of_groups(group.labels, units).min() >= k
            if method in EVEN:
                assert (group.sizes >= k * most_rows_of_a_unit(group.labels, units)).all()
        assert "who" not in pa.table(release.data).column_names


@pytest.mark.parametrize("method", FAMILY)
def test_six_rows_of_one_person_are_no_group(method: str) -> None:
    # at k = 5 all six would be published as they are if rows were counted
    table = six_of_one()
    with pytest.raises(OptionError, match=r"k = 7 is larger than the number of persons in the table"):
        shoal.protect(table, roles(), method, k=7)
    if method in EVEN:
        with pytest.raises(OptionError, match=r"has more than one in k = 5 rows of the table"):
            shoal.protect(table, roles(), method, k=5)
        return
    release = shoal.protect(table, roles(), method, k=5)
    if method in ("k-anonymity", "suppress"):
        assert len(set(map(str, release.data["age"].to_pylist()))) == 1
    for group in release.partition:
        assert len(group) == 1


def test_nothing_is_charged_for_what_is_refused(tmp_path: Path) -> None:
    path, schema = tmp_path / "people.csv", tmp_path / "people.toml"
    shoal.io.write(six_of_one(), path)
    roles().save(schema)
    words = ["protect", str(path), "--schema", str(schema), "--method", "swap-ranking", "--k", "5"]
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    assert run([*words, "--out", str(out), "--ledger", str(ledger), "--dataset", "x"]) == 2
    assert not out.exists()
    assert not ledger.exists()


@pytest.mark.parametrize("method", FAMILY)
def test_persons_with_one_row_each_are_released_as_rows_are(method: str) -> None:
    table = mixed(60)
    options = {**FAMILY[method], "seed": 3}
    plain = shoal.protect(table, mixed_schema(), method, **options)
    found = shoal.protect(table, mixed_schema(name="unit"), method, **options)
    assert pa.table(found.data).equals(pa.table(plain.data))
    assert (plain.statement.counted, found.statement.counted) == ("rows", "persons")


@settings(max_examples=25, deadline=None)
@given(rows(columns=3, most=12), st.integers(1, 3), st.booleans())
def test_emptied_cells_leave_k_persons_for_every_combination(
    table: tuple[Ints, ...], k: int, several: bool
) -> None:
    *keys, units = table
    codes = np.stack(keys, axis=1)  # 0 is empty from the start
    k = min(k, int(units.max()) + 1)
    wishes = [Combination((0, 1, 2), k)]
    if several:
        wishes = [Combination((0,), k), Combination((1, 2), k), *wishes]
    found, bound = emptied_for_all(codes, wishes, np.ones(3), [0, 1, 2], None, units)
    assert ((found == codes) | (found == 0)).all()
    assert bound <= int(((found == 0) & (codes > 0)).sum()) + 1e-6
    for wish in wishes:
        together: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for row, unit in zip(found[:, wish.columns].tolist(), units.tolist(), strict=True):
            together[tuple(row)].add(unit)
        assert min(map(len, together.values())) >= k


@settings(max_examples=15, deadline=None)
@given(rows(columns=2, most=12), st.integers(1, 3))
def test_wildcards_leave_k_compatible_persons(table: tuple[Ints, ...], k: int) -> None:
    *keys, units = table
    codes = np.stack(keys, axis=1) + 1
    k = min(k, int(units.max()) + 1)
    gone = emptied(codes, Wish(k, units=units), np.array([0, 1]))
    after = np.where(gone, -1, codes).tolist()
    for own in after:
        near = {unit for unit, other in zip(units.tolist(), after, strict=True) if fits(own, other, 1.0) > 0}
        assert len(near) >= k


def test_strata_combinations_and_wildcards_count_persons() -> None:
    table = people(1)
    strata = shoal.protect(table, declared(), "k-anonymity", k=3, strata=["town"])
    joined = pa.table({"who": table["who"], **{n: strata.aligned[n] for n in ("age", "sex", "town")}})
    assert behind(joined, joined, ["age", "sex", "town"]) >= 3
    found = shoal.protect(table, declared(), "suppress", k=2, strata=["town"], combinations={"sex": 5})
    joined = pa.table({"who": table["who"], **{n: found.aligned[n] for n in ("age", "sex", "town")}})
    assert behind(joined, joined, ["age", "sex", "town"]) >= 2
    assert behind(joined, joined, ["sex", "town"]) >= 5
    assert any("sex is shared by at least 5 persons" in line for line in found.statement.conditions)
    loose = shoal.protect(table, declared(), "suppress", k=3, missing_as="wildcard").statement
    assert any("at least 3 persons (values of who)" in line for line in loose.conditions)
    towns = table["town"].to_pylist()
    # one person has all rows of a town
    who = [own if town == "a" else "Q" for own, town in zip(table["who"].to_pylist(), towns, strict=True)]
    few = table.set_column(0, "who", pa.array(who))
    for method in ("k-anonymity", "suppress", "swap-mdav", "anatomy"):
        with pytest.raises(
            OptionError, match=r"k = 2 is larger than the number of persons in the stratum town=b"
        ):
            shoal.protect(few, declared(), method, k=2, strata=["town"])


@pytest.mark.parametrize("method", ["k-anonymity", "anatomy", "swap-ranking"])
def test_l_is_of_values_of_different_persons(method: str) -> None:
    for seed in range(4):
        table = people(seed)
        release = shoal.protect(table, declared(), method, k=3, l=3)
        units = persons_of(table)
        for group in release.partition:
            names = ["ill", "pay"] if method != "swap-ranking" else list(group.columns)
            for name in names:
                values = np.unique(np.array(table[name].to_pylist()), return_inverse=True)[1].astype(np.int64)
                assert distinct_for_units(group.labels, values, units).min() >= 3
    assert any("each belonging to a different person" in line for line in release.statement.conditions)
    # one person has all six illnesses, the others the same one
    table = people(0).filter(pa.array([True] * 12 + [False] * 48))
    table = table.set_column(0, "who", pa.array(["A"] * 6 + list("BCDEFG")))
    table = table.set_column(4, "ill", pa.array([*"uvwxyz", *"uuuuuu"]))
    with pytest.raises(OptionError, match="l = 3 cannot be reached: there are no 3 persons"):
        shoal.protect(table, declared(), method, k=2, l=3)


def test_shares_of_persons_are_close_to_the_table() -> None:
    for seed in range(4):
        table = people(seed)
        units = persons_of(table)
        ill = np.unique(np.array(table["ill"].to_pylist()), return_inverse=True)[1].astype(np.int64)
        pay = np.unique(np.array(table["pay"].to_pylist()), return_inverse=True)[1].astype(np.int64)
        (group,) = shoal.protect(table, declared(), "k-anonymity", k=3, t_emd="0.25").partition
        assert equal_distances(count_groups(group.labels, ill, units)).max() <= 0.25 + 1e-9
        assert ordered_distances(count_groups(group.labels, pay, units)).max() <= 0.25 + 1e-9
        for method in ("t-closeness", "anatomy"):
            release = shoal.protect(table, declared(), method, k=3, t=2)
            assert 1 <= release.internal["t_reached"] <= 2 + 1e-9
            assert release.internal["persons"]["fewest"] >= 3


def test_swaps_among_equal_weights_only_where_those_are_persons_enough() -> None:
    table = people(2).append_column("w", pa.array([1.0] * 30 + [2.0] * 30))
    weight = Attribute("w", role="weight", release="dropped")
    schema = Schema((*declared().attributes, weight))
    release = shoal.protect(table, schema, "swap-ranking", k=3)
    assert not any("weighted totals change" in note for note in release.notes)
    # one person has all rows of a weight
    who = pa.array(["A"] * 3 + [f"P{row}" for row in range(57)])
    table = table.set_column(0, "who", who).set_column(6, "w", pa.array([2.0] * 3 + [1.0] * 57))
    release = shoal.protect(table, schema, "swap-ranking", k=3)
    assert any("fewer than 3 persons" in note for note in release.notes)


def test_given_clusters_need_k_persons() -> None:
    table = people(3)
    units = persons_of(table)
    own = np.where(units == 0, 0, 1)
    assert (own == 0).sum() >= 2
    for method in ("k-anonymity", "anatomy"):
        with pytest.raises(OptionError, match="labels: a cluster has fewer than k = 2 persons"):
            shoal.protect(table, declared(), method, k=2, labels=own)


def test_a_statement_about_persons_is_read_back(tmp_path: Path) -> None:
    release = shoal.protect(people(0), declared(), "k-anonymity", k=4)
    stated = shoal.PrivacyStatement.from_dict(release.statement.to_dict())
    assert stated == release.statement
    release.save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "finds rows of at least 4 persons" in page
    broken = {**release.statement.to_dict(), "counted": "heads"}
    with pytest.raises(shoal.InputError, match="'counted' cannot be 'heads'"):
        shoal.PrivacyStatement.from_dict(broken)


def test_an_engine_refuses_persons_with_several_rows(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    parquet.write_table(people(0), path)
    once = people(0).set_column(0, "who", pa.array([f"P{row}" for row in range(60)]))
    parquet.write_table(once, tmp_path / "once.parquet")
    arguments: dict[str, Any] = {"method": "swap-ranking", "k": 4, "engine": "local"}
    for unit in ({}, {"max_rows": 30}):
        with pytest.raises(OptionError, match=r"counts the persons in each group .*use engine=memory"):
            shoal.publish(path, declared(**unit), out=tmp_path / "out", **arguments)
        assert not (tmp_path / "out").exists()
    shoal.publish(tmp_path / "once.parquet", declared(max_rows=1), out=tmp_path / "out", **arguments)
    assert json.loads((tmp_path / "out" / "statement.json").read_text("utf-8"))["counted"] == "persons"


def weighed(release: str) -> Schema:
    weight = {"name": "w", "role": "weight", "release": release, "type": "decimal", "lo": 0, "hi": 10}
    return Schema.from_dict({"attribute": [*declared().to_dict()["attribute"][1:], weight]})


@pytest.mark.parametrize("method", FAMILY)
def test_a_masked_weight_is_refused_where_it_would_come_out_exactly(method: str) -> None:
    table = people(0).append_column("w", pa.array(np.linspace(1, 9, 60)))
    with pytest.raises(
        OptionError, match=r"column 'w': .* a masked weight unchanged, .* \"dropped\" or \"raked\""
    ):
        shoal.protect(table, weighed("masked"), method, **FAMILY[method])
    found = shoal.protect(table, weighed("dropped"), method, **FAMILY[method])
    assert "w" not in pa.table(found.data).column_names


@settings(max_examples=40, deadline=None)
@given(rows(columns=3))
def test_figures_of_the_risk_are_those_of_persons(table: tuple[Ints, ...]) -> None:
    first, second, sensitive, units = table
    people = pa.table({"a": first, "b": second, "s": sensitive, "who": units})
    found = shoal.risk(people, ["a", "b"], unit="who", sensitive=["s"])
    keys = list(zip(first.tolist(), second.tolist(), strict=True))
    whose = units.tolist()
    fk = [len({own for own, key in zip(whose, keys, strict=True) if key == mine}) for mine in keys]
    least = {own: min(f for f, who in zip(fk, whose, strict=True) if who == own) for own in set(whose)}
    assert found.fk.tolist() == fk
    assert found.uniques == sum(f == 1 for f in least.values())
    assert found.below(3) == sum(f < 3 for f in least.values())
    # everybody is in the table: the risk of a person is 1 over the fewest who fit one of their rows
    assert found.expected == pytest.approx(sum(1 / f for f in least.values()))
    assert found.global_risk == pytest.approx(found.expected / len(least))
    assert found.figures.largest == pytest.approx(1 / min(fk))
    checked = shoal.check(people, ["a", "b"], ["s"], unit="who", k=2)
    assert (checked.k, checked.met, checked.unique) == (min(fk), min(fk) >= 2, found.uniques)
    for mine in set(keys):
        own = np.array([key == mine for key in keys])
        parts = [float(part) for part in shares(sensitive, units, own).values()]
        at = int(np.argmax(own))
        most = matched(set(zip(units[own].tolist(), sensitive[own].tolist(), strict=True)))
        assert found.diversity["s"].distinct[at] == most
        entropy = math.exp(-sum(part * math.log(part) for part in parts))
        assert found.diversity["s"].entropy[at] == pytest.approx(min(entropy, most))
        ordered = sorted(parts, reverse=True)
        holds = [place for place in range(len(parts)) if ordered[0] < 2 * sum(ordered[place:]) - 1e-9]
        close = any(abs(ordered[0] - 2 * sum(ordered[place:])) < 1e-9 for place in range(len(parts)))
        if not close:
            assert found.diversity["s"].recursive[at] == min(max([1, *(place + 1 for place in holds)]), most)
