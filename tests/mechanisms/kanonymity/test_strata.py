"""Strata and survey weights in the family: groups within strata, weighted middles, swaps that keep weighted totals."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import Attribute, OptionError, Schema
from shoal.evaluation.measures import il1s
from shoal.mechanisms.registry import configured
from shoal.release.in_parts.run import refusal
from shoal.report import internal_report
from tests.conftest import data_file, offices_file
from tools.offices import census

MONEY = ("FICA", "FEDTAX", "AGI")
DOMAINS = {"FICA": (0, 12000), "FEDTAX": (0, 60000)}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    data_file("census.csv")
    return census()


def schema(*, weight: bool = False, **roles: str) -> Schema:
    found = tuple(Attribute(name, "numeric", roles.get(name, "quasi-identifier")) for name in MONEY)
    more = (Attribute("w", "numeric", "weight"),) if weight else ()
    return Schema((*found, Attribute("stratum", "numeric", "other"), *more))


def numbers(data: pa.Table, name: str) -> np.ndarray:
    return np.asarray(data[name].to_numpy(), dtype=np.float64)


def test_mdav_within_strata_is_the_stored_one(table: pa.Table) -> None:
    with offices_file("csv/ma_census_mdav3_strata.csv").open() as file:
        names, *rows = csv.reader(file)
    own = Schema(
        (*(Attribute(name, "numeric", "quasi-identifier") for name in names), schema().attributes[-1])
    )
    made = shoal.protect(table, own, "k-anonymity", k=3, normalise="zscore", strata="stratum", seed=1)
    expected = np.array(rows, dtype=np.float64)
    found = np.stack([numbers(made.aligned, name) for name in names], axis=1)
    assert np.allclose(found, expected, rtol=1e-6)
    facts = made.internal["strata"]
    assert [(one["rows"], one["groups"], one["smallest"]) for one in facts] == [(270, 90, 3)] * 4
    original = np.stack([numbers(table, name) for name in names], axis=1)
    lost = ((found - original) ** 2 / original.var(axis=0)).mean(axis=1)
    for stratum, one in enumerate(facts, start=1):
        assert one["loss"] == pytest.approx(lost[numbers(table, "stratum") == stratum].mean(), rel=1e-6)
    page = internal_report(made)
    assert f'<td class="number" data-label="loss">{facts[0]["loss"]:.3g}</td>' in page
    assert any("within strata" in condition for condition in made.statement.conditions)


@pytest.mark.parametrize("k", [3, 5])
def test_mdav_within_strata_loses_what_is_stored(k: int, table: pa.Table) -> None:
    stored = json.loads(offices_file("results_numeric.json").read_text())[f"census_mdav{k}_strata"]
    names = tuple(stored["first5"][0])
    own = Schema(
        (*(Attribute(name, "numeric", "quasi-identifier") for name in names), schema().attributes[-1])
    )
    made = shoal.protect(table, own, "k-anonymity", k=k, normalise="zscore", strata="stratum", seed=1)
    before, after = (
        np.stack([numbers(data, name) for name in names], axis=1) for data in (table, made.aligned)
    )
    for line, theirs in zip(after, stored["first5"], strict=False):
        assert line == pytest.approx([theirs[name] for name in names], rel=1e-6)
    assert after.mean(axis=0) == pytest.approx(np.array(stored["colmeans_after"]), rel=1e-9)
    assert il1s(before, after) == pytest.approx(stored["IL1s"], rel=1e-6)
    within = ((before - after) ** 2 / before.var(axis=0)).mean() * 100
    assert within == pytest.approx(stored["SSE_over_SST_pct"], rel=1e-6)
    assert sum(one["groups"] for one in made.internal["strata"]) == stored["groups"]


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking"])
def test_values_stay_in_their_stratum(method: str, table: pa.Table) -> None:
    own = schema(FICA="confidential", FEDTAX="confidential")
    made = shoal.protect(table, own, method, k=5, strata="stratum", seed=1)
    for stratum in range(1, 5):
        rows = numbers(table, "stratum") == stratum
        for name in ("FICA", "FEDTAX"):
            before, after = numbers(table, name)[rows], numbers(made.aligned, name)[rows]
            assert np.array_equal(np.sort(before), np.sort(after))
            assert not np.array_equal(before, after)


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking"])
def test_swaps_keep_weighted_totals(method: str, table: pa.Table) -> None:
    own = schema(weight=True, FICA="confidential", FEDTAX="confidential")
    made = shoal.protect(table, own, method, k=5, seed=1)
    weights = numbers(table, "w")
    for name in MONEY:
        assert numbers(made.aligned, name) @ weights == numbers(table, name) @ weights
    assert any("weighted totals" in condition for condition in made.statement.conditions)
    assert not any("weighted totals change" in note for note in made.notes)


@pytest.mark.parametrize("method", ["swap-mdav", "swap-ranking"])
@pytest.mark.parametrize("strata", [None, "stratum"])
def test_rare_weights_are_swapped_as_if_there_were_none(
    method: str, strata: str | None, table: pa.Table
) -> None:
    odd = table.set_column(table.column_names.index("w"), "w", pa.array(np.arange(1.0, 1081.0)))
    roles = {"FICA": "confidential", "FEDTAX": "confidential"}
    made = shoal.protect(odd, schema(weight=True, **roles), method, k=5, seed=1, strata=strata)
    plain = shoal.protect(odd, schema(**roles), method, k=5, seed=1, strata=strata)
    assert all(np.array_equal(numbers(made.aligned, name), numbers(plain.aligned, name)) for name in MONEY)
    weights = numbers(odd, "w")
    assert numbers(made.aligned, "FICA") @ weights != numbers(odd, "FICA") @ weights
    assert any("regardless of the w of their rows" in condition for condition in made.statement.conditions)
    # how many rows have a weight is no public fact: only the note tells which of both it was
    usual = shoal.protect(table, schema(weight=True, **roles), method, k=5, seed=1, strata=strata)
    assert usual.statement.conditions == made.statement.conditions
    (note,) = (note for note in made.notes if "weighted totals change" in note)
    assert "fewer than 5 rows" in note
    assert "Recode the weight into fewer values" in note
    assert not any("weighted totals" in note for note in plain.notes)


def test_middles_of_groups_are_weighted(table: pa.Table) -> None:
    made = shoal.protect(table, schema(weight=True), "k-anonymity", k=5, seed=1)
    plain = shoal.protect(table, schema(), "k-anonymity", k=5, seed=1)
    weights = numbers(table, "w")
    assert np.array_equal(made.partition[0].labels, plain.partition[0].labels)
    for name in MONEY:
        total = numbers(table, name) @ weights
        assert numbers(made.aligned, name) @ weights == pytest.approx(total)
        assert numbers(plain.aligned, name) @ weights != pytest.approx(total)
        assert numbers(plain.aligned, name).sum() == pytest.approx(numbers(table, name).sum())
    assert any("weighted by w" in condition for condition in made.statement.conditions)
    bad = table.set_column(table.column_names.index("w"), "w", pa.array([0.0, *[1.0] * 1079]))
    with pytest.raises(shoal.InputError, match="weight 'w' must be above 0, got 0 in row 1"):
        shoal.protect(bad, schema(weight=True), "k-anonymity", k=5, seed=1)


def test_a_weighted_median_is_a_value_that_is_there() -> None:
    grades = ("low", "middle", "high")
    data = pa.table({"grade": ["low", "low", "high", "high"], "w": [1, 1, 1, 5]})
    own = Schema(
        (
            Attribute("grade", "ordinal", "quasi-identifier", ordered=grades),
            Attribute("w", "numeric", "weight"),
        )
    )
    made = shoal.protect(data, own, "k-anonymity", k=4, seed=1)
    assert set(made.data["grade"].to_pylist()) == {"high"}
    alike = replace(own, attributes=own.attributes[:1])
    assert set(shoal.protect(data, alike, "k-anonymity", k=4, seed=1).data["grade"].to_pylist()) == {"low"}


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("mdav-dp", "dp-given-partition"),
        ("ranking-dp", "dp-given-partition"),
        ("optimal-dp", "dp-given-partition"),
        ("idp-ls", "idp-given-partition"),
        ("idp-cbls", "idp-given-partition"),
        ("xm-2", "dp-given-partition"),
        ("xm-15", "idp-given-partition"),
        ("xm-22", "dp-given-partition"),
    ],
)
def test_clusters_given_the_partition_stay_in_their_stratum(method: str, model: str, table: pa.Table) -> None:
    made = shoal.protect(
        table,
        method=method,
        epsilon=1,
        k=20,
        columns=list(DOMAINS),
        domains=DOMAINS,
        strata="stratum",
        outside="clip",
        seed=1,
    )
    strata = numbers(table, "stratum")
    assert made.statement.model == model
    for clusters in made.partition:
        assert all(np.unique(strata[clusters.labels == one]).size == 1 for one in range(len(clusters)))
    assert [one["rows"] for one in made.internal["strata"]] == [270] * 4
    assert any("treated as fixed and public" in condition for condition in made.statement.conditions)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "laplace"},
        {"method": "ranking-dp", "k": 20, "link": False},
        {"method": "mdav-dp", "k": 1},
        {"method": "insensitive-dp"},
        {"method": "xm-20", "k": 1},
    ],
)
def test_claims_about_the_original_records_refuse_strata(options: dict[str, object], table: pa.Table) -> None:
    asked = {
        "epsilon": 1,
        "columns": list(DOMAINS),
        "domains": DOMAINS,
        "strata": "stratum",
        "outside": "clip",
    }
    with pytest.raises(OptionError, match="additional column instead"):
        shoal.protect(table, **asked, **options)


@pytest.mark.parametrize("group_by", ["quasi", "confidential"])
def test_linked_tables_have_groups_within_strata(group_by: str, table: pa.Table) -> None:
    own = schema(FICA="confidential")
    made = shoal.protect(table, own, "anatomy", k=5, strata="stratum", group_by=group_by, seed=1)
    labels, strata = made.partition[0].labels, numbers(table, "stratum")
    assert all(np.unique(strata[labels == group]).size == 1 for group in range(len(made.partition[0])))
    assert any("within strata" in condition for condition in made.statement.conditions)
    shown = made.data.to_pandas()
    assert (shown.groupby("group").stratum.nunique() == 1).all()


@pytest.mark.parametrize("options", [{"method": "t-closeness"}, {"method": "anatomy", "t": 2}])
def test_closeness_to_the_whole_table_refuses_strata(options: dict[str, object], table: pa.Table) -> None:
    with pytest.raises(OptionError, match=r"whole table: leave .* each stratum as a separate table"):
        shoal.protect(table, schema(FICA="confidential"), k=10, strata="stratum", **options)


def test_engines_leave_strata_to_memory() -> None:
    plain = configured("ranking-dp", epsilon=1, k=20)
    assert refusal(plain) is None
    divided = configured("ranking-dp", epsilon=1, k=20, strata=["stratum"])
    assert "strata" in str(refusal(divided))


def test_a_stratum_that_is_too_small_is_named(table: pa.Table) -> None:
    with pytest.raises(OptionError, match="stratum stratum=1 has 270 rows, fewer than k = 271"):
        shoal.protect(table, schema(), "k-anonymity", k=271, strata="stratum")
