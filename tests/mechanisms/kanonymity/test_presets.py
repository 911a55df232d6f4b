"""The presets of the family, from a table to a bundle that was read back and measured."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal import ClaimError, OptionError, Schema, Taxonomy
from shoal.cli import run
from shoal.io import read
from shoal.mechanisms.kanonymity.grouping_algorithms import ordered_buckets
from shoal.partition import mdav, ranking
from shoal.partition.groups import count_groups, ratio_distances
from shoal.partition.multivariate import mdav_mixed
from shoal.privacy import OverspendError
from shoal.progress import silent
from shoal.release.protection import finished, prepare

from .mixed import CONFIDENTIAL, GRADES, QUASI, TOWNS, mixed, mixed_schema, rows

FAMILY = ("k-anonymity", "swap-mdav", "swap-ranking", "t-closeness", "anatomy")


def release(method: str, k: int = 5, **options: Any) -> shoal.Release:
    return shoal.protect(mixed(), options.pop("schema", mixed_schema()), method, k=k, seed=1, **options)


@pytest.mark.parametrize("k", [2, 5, 10, 80])
def test_every_combination_of_quasi_identifiers_is_shared_by_k_rows_of_the_written_table(
    k: int, tmp_path: Path
) -> None:
    made = release("k-anonymity", k)
    made.save(tmp_path / "out")
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    assert shoal.check(written, QUASI).k >= k
    assert written.column_names == [name for name in mixed().column_names if name != "name"]
    assert rows(written, *CONFIDENTIAL, "visits") == rows(mixed(), *CONFIDENTIAL, "visits")
    assert made.statement.model == "k-anonymity"
    assert f"shared by at least {k} rows" in made.statement.sentence


def test_the_middle_of_a_cluster_is_mean_median_or_least_marginal_value() -> None:
    made = release("k-anonymity", 7)
    (partition,) = made.partition
    table, tree = mixed(), mixed_schema()["town"].tree
    assert tree is not None
    aligned = {name: np.asarray(made.aligned[name]) for name in QUASI}
    for cluster in range(len(partition)):
        own = partition.labels == cluster
        ages = table["age"].to_numpy()[own]
        assert np.unique(aligned["age"][own]).tolist() == [pytest.approx(ages.mean())]
        days = table["born"].to_numpy()[own].astype("datetime64[D]").astype(int)
        assert np.unique(aligned["born"][own]).tolist() == [pytest.approx(days.mean())]
        grades = sorted(GRADES.index(grade) for grade in np.asarray(table["grade"])[own])
        assert np.unique(aligned["grade"][own]).tolist() == [grades[(len(grades) - 1) // 2]]
        codes = tree.encode(np.asarray(table["town"])[own].tolist())
        best = min(tree.domain, key=lambda code: (round(tree.distances(code, codes).sum(), 9), code))
        assert set(aligned["town"][own].tolist()) == {tree.labels[best]}


def test_mixed_records_are_grouped_by_mdav_with_the_mixed_distance() -> None:
    table, tree = mixed(), mixed_schema()["town"].tree
    assert tree is not None
    days = table["born"].to_numpy().astype("datetime64[D]").astype(float)
    places = np.array([GRADES.index(grade) for grade in table["grade"].to_pylist()], dtype=float)
    numbers = [column / np.ptp(column) for column in (table["age"].to_numpy().astype(float), days, places)]
    expected = mdav_mixed(np.stack(numbers, axis=1), [tree.encode(table["town"].to_pylist())], [tree], 7)
    assert np.array_equal(release("k-anonymity", 7).partition[0].labels, expected.labels)


def test_swapped_nominal_values_count_as_they_are_by_then() -> None:
    schema = mixed_schema(**dict.fromkeys(("born", "grade", "town", "visits"), "identifier"))
    made = shoal.protect(mixed(), schema, "swap-mdav", k=8, seed=2)
    assert made.data.column_names == ["age", "income", "illness"]
    age, income = (mixed()[name].to_numpy().astype(float) for name in ("age", "income"))
    illness = np.array(mixed()["illness"].to_pylist())
    tree = Taxonomy.flat(sorted(set(illness.tolist())))
    first = mdav_mixed((age / np.ptp(age))[:, None], [tree.encode(illness)], [tree], 8)
    owner = {value: number for number, value in enumerate(income.tolist())}
    owners = np.array([owner[value] for value in made.aligned["income"].to_pylist()])
    assert np.array_equal(first.labels[owners], first.labels)
    scaled = np.stack([age / np.ptp(age), income[owners] / np.ptp(income)], axis=1)
    second = mdav(scaled, 8)
    for group in range(len(second)):
        own = second.labels == group
        assert sorted(np.array(made.aligned["illness"].to_pylist())[own]) == sorted(illness[own])


def test_a_group_of_values_can_stand_for_a_cluster_when_that_is_asked_for() -> None:
    assert set(release("k-anonymity", 20).data["town"].to_pylist()) <= set(TOWNS)
    # all records in one cluster: five of six towns are in the south
    assert set(release("k-anonymity", 80, generalise=True).data["town"].to_pylist()) == {"south"}


def test_without_declared_quasi_identifiers_everything_is_one() -> None:
    schema = mixed_schema(**dict.fromkeys(QUASI, "other"), income="other", illness="other")
    made = release("k-anonymity", 6, schema=schema)
    assert shoal.check(made.data, made.data.column_names).k >= 6


def test_diversity_and_closeness_are_enforced_and_their_cost_is_kept_inside(tmp_path: Path) -> None:
    plain, joined = release("k-anonymity"), release("k-anonymity", l=3, t_emd="0.2")
    joined.save(tmp_path / "out")
    found = shoal.check(joined.data, QUASI, CONFIDENTIAL, schema=mixed_schema())
    assert (found.distinct_l or 0) >= 3
    assert (found.emd or 1) <= 0.2
    assert len(joined.partition[0]) < len(plain.partition[0])
    assert joined.internal["l_diversity"]["groups_before"] == len(plain.partition[0])
    assert (
        joined.internal["t_closeness_ordered"]["sse"] >= joined.internal["t_closeness_ordered"]["sse_before"]
    )
    published = (tmp_path / "out" / "statement.json").read_text("utf-8")
    assert "at least 3 different values" in published
    assert "groups_before" not in published


def test_labels_of_the_caller_are_groups_too() -> None:
    labels = np.arange(80) % 8
    made = shoal.protect(mixed(), mixed_schema(), "k-anonymity", k=10, seed=1, labels=labels)
    assert made.partition[0].sizes.tolist() == [10] * 8


def test_a_written_table_that_does_not_hold_its_promise_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.release import bundle

    def spoil(frame: pa.Table, path: Path, *more: object) -> None:
        changed = frame["age"].to_numpy().copy()
        changed[0] = 7
        parquet.write_table(frame.set_column(0, "age", pa.array(changed)), path)

    monkeypatch.setattr(bundle, "write", spoil)
    with pytest.raises(ClaimError, match=r"read back and does not satisfy its claim .k 5: not met, found"):
        release("k-anonymity").save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking", "t-closeness"])
def test_swapping_keeps_every_marginal_and_every_other_column(method: str) -> None:
    made, table = release(method), mixed()
    for name in CONFIDENTIAL:
        assert rows(made.data, name) == rows(table, name)
    kept = [name for name in table.column_names if name not in (*CONFIDENTIAL, "name")]
    assert rows(made.data, *kept) == rows(table, *kept)
    assert rows(made.data, "age", "income") != rows(table, "age", "income")


def test_swapped_values_come_from_the_groups_of_the_statement() -> None:
    made, income = release("swap-ranking", sizes={"income": 20}), mixed()["income"].to_numpy()
    by_column = {groups.columns: groups for groups in made.partition}
    assert {columns: int(groups.sizes.min()) for columns, groups in by_column.items()} == {
        ("income",): 20,
        ("illness",): 5,
    }
    expected = ranking(income, 20)
    assert np.array_equal(by_column["income",].labels, expected.labels)
    owner = {value: number for number, value in enumerate(income.tolist())}
    owners = np.array([owner[value] for value in made.aligned["income"].to_pylist()])
    assert np.array_equal(expected.labels[owners], expected.labels)
    assert made.statement.settings["k"] == 5
    assert "probability at most 1/5" in made.statement.sentence
    assert "Maximum probability by column: income 1/20, illness 1/5." in made.statement.conditions


def test_a_smaller_size_of_one_column_is_the_k_of_the_promise() -> None:
    made = release("swap-mdav", 30, sizes={"illness": 4})
    assert "probability at most 1/4" in made.statement.sentence
    with pytest.raises(OptionError, match="sizes names column 'age', which is not swapped"):
        release("swap-mdav", sizes={"age": 4})


def test_an_uninformed_intruder_leaves_confidential_values_together() -> None:
    informed, uninformed = release("swap-mdav"), release("swap-mdav", intruder="uninformed")
    assert rows(uninformed.data, *CONFIDENTIAL) == rows(mixed(), *CONFIDENTIAL)
    assert rows(informed.data, *CONFIDENTIAL) != rows(mixed(), *CONFIDENTIAL)
    assert "The intruder knows all columns of a person except one, and tries to learn that one." in (
        informed.statement.conditions
    )
    assert any(
        "the intruder knows only: age, born, grade, town, visits" in words
        for words in uninformed.statement.conditions
    )


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking"])
def test_groups_of_swapped_values_can_be_diverse(method: str) -> None:
    made = release(method, l=3)
    costs = [value for key, value in made.internal.items() if key.startswith("l_diversity of")]
    assert len(costs) == 2
    for groups in made.partition:
        (name,) = groups.columns
        own = np.asarray(mixed()[name])
        assert min(len(set(own[groups.labels == g].tolist())) for g in range(len(groups))) >= 3


@pytest.mark.parametrize("t", [1, 2, 3])
@pytest.mark.parametrize("others", [("illness",), ("income",), ()], ids=["numeric", "nominal", "compound"])
def test_odds_of_a_bucket_change_by_t_at_most(t: int, others: tuple[str, ...]) -> None:
    made = release("t-closeness", schema=mixed_schema(**dict.fromkeys(others, "other")), t=t)
    (groups,) = made.partition
    assert made.internal["t_reached"] <= t * (1 + 1e-12)
    assert groups.sizes.min() >= 5
    if others == ("illness",):
        buckets = ordered_buckets(mixed()["income"].to_numpy(), t)
        assert ratio_distances(count_groups(groups.labels, buckets)).max() <= t * (1 + 1e-12)
    assert f"by a factor of at most {t}" in made.statement.sentence


def test_an_ordinal_attribute_has_buckets_too() -> None:
    schema = mixed_schema(grade="confidential", income="other", illness="other")
    assert release("t-closeness", schema=schema).internal["t_reached"] <= 2


@pytest.mark.parametrize("method", [*FAMILY, "suppress"])
def test_randomness_of_a_method_without_a_budget_is_accounted_as_free(method: str) -> None:
    ready = prepare(read(mixed()), mixed_schema(), method, k=3, seed=1)
    account = ready.account()
    made = finished(ready, ready.method.run(ready.described, ready.plan, account, silent), account)
    assert (account.reserved, account.charges) == ({}, [])
    swaps = ["values swapped inside groups"] if "swap" in method or method == "t-closeness" else []
    assert account.uses == [*swaps, "order of the released rows"]
    assert made.data.equals(shoal.protect(mixed(), mixed_schema(), method, k=3, seed=1).data)
    with pytest.raises(OverspendError, match="nothing is reserved"):
        account.spend("counts", Fraction(1))


@pytest.mark.parametrize("method", FAMILY)
def test_nothing_is_printed_as_differential_privacy(method: str, tmp_path: Path) -> None:
    made = release(method)
    made.save(tmp_path / "out")
    document = json.loads((tmp_path / "out" / "statement.json").read_text("utf-8"))
    assert document["epsilon"] is None
    assert document["neighbours"] is None
    assert "ε" not in document["sentence"]
    assert "differential" not in document["sentence"]
    assert any("It is not differential privacy" in words for words in document["not_promised"])
    said = " ".join([document["sentence"], document["target"], *document["conditions"]])
    assert "differential" not in said


@pytest.mark.parametrize("method", FAMILY)
def test_no_domain_is_needed_and_none_that_came_from_the_data_is_published(
    method: str, tmp_path: Path
) -> None:
    made = shoal.protect(mixed(), mixed_schema(), method, k=5)
    assert made.statement.publishable
    made.save(tmp_path / "out")
    recipe = (tmp_path / "out" / "method.toml").read_text("utf-8")
    assert "lo =" not in recipe
    assert "hi =" not in recipe
    assert "gout" not in recipe
    again = run(["check", str(tmp_path / "out" / "data.parquet"), "--quasi", "age", "--k", "1", "--json"])
    assert again == 0


@pytest.mark.parametrize("method", FAMILY)
def test_a_recipe_repeats_the_release_on_another_table(method: str, tmp_path: Path) -> None:
    release(method, 6).save(tmp_path / "first")
    parquet.write_table(mixed(seed=4), tmp_path / "next.parquet")
    words = ["--config", str(tmp_path / "first" / "method.toml"), "--out", str(tmp_path / "second")]
    assert run(["protect", str(tmp_path / "next.parquet"), *words]) == 0
    assert json.loads((tmp_path / "second" / "statement.json").read_text("utf-8"))["settings"]["k"] == 6


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking", "t-closeness", "anatomy"])
def test_something_must_be_confidential(method: str) -> None:
    schema = mixed_schema(income="other", illness="other")
    with pytest.raises(OptionError, match="needs a sensitive attribute"):
        release(method, schema=schema)


def test_rows_of_one_person_do_not_hide_each_other() -> None:
    who = [f"P{i // 2}" for i in range(80)]
    table = mixed().set_column(0, "name", pa.array(who))
    found = shoal.protect(table, mixed_schema(name="unit"), "k-anonymity", k=5)
    (group,) = found.partition
    for label in range(len(group)):
        assert len({who[row] for row in np.flatnonzero(group.labels == label)}) >= 5


def test_commands_take_the_options_of_the_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, schema = tmp_path / "people.csv", tmp_path / "people.toml"
    shoal.io.write(mixed(), data)
    mixed_schema().save(schema)
    start = ["protect", str(data), "--schema", str(schema), "--out"]
    out = str(tmp_path / "a")
    assert run([*start, out, "--method", "k-anonymity", "--k", "4", "--l", "2", "--t-emd", "0.4"]) == 0
    check = ["check", f"{out}/data.csv", "--schema", str(schema), "--k", "4", "--l", "2", "--t-emd", "0.4"]
    assert run(check) == 0
    swap = ["--method", "swap-mdav", "--k", "4", "--sizes", "income=9", "--intruder", "uninformed"]
    assert run([*start, str(tmp_path / "b"), *swap]) == 0
    assert "probability at most 1/4" in capsys.readouterr().out
    assert run([*start, str(tmp_path / "c"), "--method", "anatomy", "--t", "2", "--k", "6"]) == 0
    assert {"data.csv", "confidential.csv"} < {path.name for path in (tmp_path / "c").iterdir()}
    assert run([*start, str(tmp_path / "d"), "--method", "anatomy", "--group-by", "confidential"]) == 0
    assert run([*start, str(tmp_path / "e"), "--method", "swap-mdav", "--sizes", "income=many"]) == 2
    assert "the size of column 'income' must be an integer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("k-anonymity", {"k": 81}, "k = 81 is larger than the number of records"),
        ("k-anonymity", {"l": 9}, "l = 9 cannot be reached"),
        ("k-anonymity", {"t_emd": "1.5"}, "t_emd must be from 0 to 1"),
        ("k-anonymity", {"epsilon": 1}, "has no option 'epsilon'"),
        ("t-closeness", {"t": 1.5}, "t must be an integer"),
        ("swap-mdav", {"intruder": "alien"}, "intruder 'alien' is not one of informed, uninformed"),
        ("swap-mdav", {"sizes": 5}, "sizes must map columns to group sizes"),
        ("anatomy", {"t": 2, "l": 2}, "t determines the groups"),
    ],
)
def test_unfitting_options_are_named(method: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        release(method, **options)


def test_swapping_by_rank_in_parts_gives_the_same_rows(tmp_path: Path) -> None:
    table = mixed().select(["age", "income", "visits"])
    parquet.write_table(table, tmp_path / "people.parquet")
    schema = Schema(tuple(mixed_schema()[name] for name in table.column_names))
    shoal.publish(
        tmp_path / "people.parquet",
        out=tmp_path / "out",
        engine="local",
        method="swap-ranking",
        k=5,
        schema=schema,
        seed=3,
    )
    written = parquet.read_table(tmp_path / "out" / "data.parquet")
    whole = shoal.protect(table, schema, "swap-ranking", k=5, seed=3).data
    # an engine has an order of its own, which says as little about the records
    order = [(name, "ascending") for name in table.column_names]
    assert written.sort_by(order).equals(whole.sort_by(order))
    assert rows(written, "age", "visits") == rows(table, "age", "visits")
