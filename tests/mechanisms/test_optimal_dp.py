"""The preset optimal-dp: what it claims, that the closed form is its error, and what it gains on Census."""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv, parquet

import shoal
from shoal.errors import OptionError
from shoal.io import read
from shoal.noise import source as noise_source
from shoal.partition import best_k, expected_error, optimal, ranking
from shoal.privacy.accountant import split_budget
from shoal.release.protection import carry_out, prepare
from tests.conftest import data_file

DOMAINS = {"a": (0, 1000), "b": (0, 500)}
CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")


def people(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {"a": np.minimum(rng.lognormal(4, 1, n), 1000).astype(np.int64), "b": rng.integers(0, 500, n)}
    )


def release_of(table: pa.Table, **options: object) -> shoal.Release:
    settings = {"epsilon": 2, "columns": list(DOMAINS), "domains": DOMAINS, "seed": 1, **options}
    return shoal.protect(table, method="optimal-dp", **settings)


@pytest.mark.parametrize(
    "options",
    [{}, {"link": False}, {"k": 1}, {"k": 1, "link": False}, {"columns": ["a"]}, {"columns": ["a"], "k": 1}],
    ids=str,
)
def test_the_claim_is_given_the_partition_whatever_the_settings(options: dict[str, object]) -> None:
    """Clusters depend on the records even in one column, unlinked, or with a minimum size of 1."""
    domains = {name: DOMAINS[name] for name in options.get("columns", DOMAINS)}
    statement = release_of(people(), seed=None, **{"domains": domains, **options}).statement
    assert statement.model == "dp-given-partition"
    assert any(
        "computed from the records" in text and "smallest expected error" in text
        for text in statement.conditions
    )
    assert any("not differential privacy of the original records" in text for text in statement.not_promised)
    assert statement.publishable


def test_other_methods_with_single_records_still_claim_more() -> None:
    for name in ("ranking-dp", "mdav-dp"):
        release = shoal.protect(
            people(), method=name, epsilon=1, k=1, domains=DOMAINS, columns=list(DOMAINS), seed=1
        )
        assert release.statement.model == "dp"


def test_each_column_has_the_optimal_clusters_for_its_share() -> None:
    table = people()
    release = release_of(table, split={"a": 3, "b": 1})
    for made, share in zip(release.partition, (Fraction(3, 2), Fraction(1, 2)), strict=True):
        (name,) = made.columns
        expected = optimal(table[name].to_numpy(), DOMAINS[name][1], share)
        assert np.array_equal(made.labels, expected.labels)
        assert made.sizes.min() >= 3
    assert len(release.partition[0]) > 1
    assert [made.sizes.tolist() for made in release_of(table, epsilon="1e-9").partition] == [[300], [300]]


def test_in_parts_the_same_rows_are_released(tmp_path: Path) -> None:
    parquet.write_table(people(), tmp_path / "in.parquet")
    written = shoal.publish(
        tmp_path / "in.parquet",
        out=tmp_path / "out",
        engine="local",
        method="optimal-dp",
        epsilon=2,
        domains=DOMAINS,
        seed=1,
        columns=list(DOMAINS),
    )
    found, expected = parquet.read_table(written.release.data), release_of(people()).data
    assert found.schema.equals(expected.schema)
    # rows have an order of their own on every engine
    order = [(name, "ascending") for name in DOMAINS]
    assert found.sort_by(order).equals(expected.sort_by(order))


def test_it_is_no_way_to_group_several_columns_together() -> None:
    with pytest.raises(OptionError, match="partition 'optimal' is not one of mdav, vmdav, given"):
        shoal.protect(
            people(), method="mdav-dp", epsilon=1, k=5, partition="optimal", domains=DOMAINS, columns=["a"]
        )


@cache
def census() -> pa.Table:
    return csv.read_csv(data_file("census.csv"))


def known(names: tuple[str, ...], split: str | None) -> list[tuple[NDArray[np.int64], Fraction, Fraction]]:
    """Values, width (1.5 times the maximum) and share of ε = 1 of each attribute; without a split 1 for each."""
    columns = [census()[name].to_numpy() for name in names]
    widths = [Fraction(int(x.max())) * 3 / 2 for x in columns]
    shares = split_budget(Fraction(1), names, widths, split) if split else [Fraction(1)] * len(names)
    return list(zip(columns, widths, shares, strict=True))


def test_census_error_is_below_the_best_fixed_size_in_every_attribute() -> None:
    gains = []
    for x, width, share in known(tuple(census().column_names), None):
        fixed = expected_error(x, ranking(x, best_k(x, width, share)), width, share)
        gains.append(1 - expected_error(x, optimal(x, width, share), width, share) / fixed)
    assert len(gains) == 13
    assert min(gains) > 0.04
    assert np.mean(gains) == pytest.approx(0.242, abs=0.001)


def test_census_4_error_is_far_below_the_best_common_size() -> None:
    attributes = known(CENSUS_4, "proportional")
    common = min(
        sum(expected_error(x, ranking(x, k), width, share) for x, width, share in attributes)
        for k in range(1, 1081)
    )
    own = sum(expected_error(x, optimal(x, width, share), width, share) for x, width, share in attributes)
    assert 1 - own / common == pytest.approx(0.450, abs=0.001)


@pytest.mark.parametrize("method", ["optimal-dp", "ranking-dp"])
def test_the_closed_form_is_the_mean_error_of_releases(method: str) -> None:
    """Without clipping, 150 releases: within 6 standard errors, which a noise 15% off would leave."""
    # loaded code is taken for small tables too, and 150 times over it pays
    importlib.import_module("shoal.partition._kernels")
    attributes = known(CENSUS_4, "proportional")
    columns = {name: x for name, (x, _, _) in zip(CENSUS_4, attributes, strict=True)}
    prepared = prepare(
        read(census()),
        method=method,
        columns=CENSUS_4,
        epsilon=1,
        split="proportional",
        clip=False,
        domain_from_data=1.5,
        seed=0,
        **({"k": 181} if method == "ranking-dp" else {}),
    )
    errors = []
    for seed in range(150):
        release = carry_out(replace(prepared, source=noise_source(seed)))
        errors.append(sum(((release.aligned[name].to_numpy() - x) ** 2).sum() for name, x in columns.items()))
    make = optimal if method == "optimal-dp" else lambda x, width, share: ranking(x, 181)
    expected = sum(expected_error(x, make(x, width, share), width, share) for x, width, share in attributes)
    standard_error = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < 6 * standard_error
    assert 6 * standard_error < 0.2 * expected
