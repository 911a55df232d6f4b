"""Conformance of every method: a newly registered method is tested here automatically."""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest

import shoal
from shoal.mechanisms.registry import load_recipe, recipe_text
from shoal.privacy.verdict import MODELS
from shoal.text import catalogue
from tests.support.presets import sampled
from tests.support.samples import (
    LIBRARIES,
    ODD_NAMES,
    PEOPLE_COLUMNS,
    PEOPLE_DOMAINS,
    PEOPLE_TYPES,
    column,
    frame,
    people,
    people_schema,
)

K = 5
# Anatomy releases two linked tables instead of one: see kanonymity/test_anatomy.py
METHODS = {info.name: info for info in shoal.methods() if info.name != "anatomy"}
BUNDLE = {"statement.json", "method.toml", "log.toml", "report.html"}

every_method = pytest.mark.parametrize("name", sampled(METHODS))


def every_library(test: Any, with_all: Callable[[str], bool] | None = None) -> Any:
    """Every method with every library; of the cross-moment methods, which share one way, a few with all of them."""
    chosen = with_all or (lambda name: not name.startswith("xm-") or name in ("xm-6", "xm-17", "xm-b4"))
    cases = [
        (name, library) for name in METHODS for library in LIBRARIES if library == "pyarrow" or chosen(name)
    ]
    return pytest.mark.parametrize(("name", "library"), sampled(cases))(test)


def every_library_for_few(test: Any) -> Any:
    """Every method; a few of them with all libraries, as what is written does not know where it came from."""
    return every_library(test, lambda name: name in ("pairs-dp", "mdav-dp", "suppress", "xm-6"))


def settings(name: str) -> dict[str, Any]:
    wanted = {"epsilon": "0.7", "k": K}
    return {option: value for option, value in wanted.items() if option in METHODS[name].parameters}


def schema() -> shoal.Schema:
    """Numeric columns, which every method takes; one of them is what an intruder may know."""
    return shoal.Schema(
        tuple(
            replace(attribute, role="quasi-identifier") if attribute.name == "age" else attribute
            for attribute in people_schema().attributes
            if attribute.name != "town"
        )
    )


def release_of(name: str, library: str = "pyarrow", seed: int | None = 1, **more: Any) -> shoal.Release:
    return shoal.protect(frame(people(), library), schema(), name, seed=seed, **{**settings(name), **more})


@cache
def seeded(name: str, library: str = "pyarrow") -> shoal.Release:
    """One release for all tests that only read it."""
    return release_of(name, library)


def rows_of(data: Any) -> list[tuple[float, ...]]:
    """Rows as tuples, to five digits: narrow floats are moved inside the domain by one of their steps."""
    # an emptied cell has no value, and one number for that in rows that are compared
    columns = (np.nan_to_num(column(data, name).round(5), nan=-1e9) for name in PEOPLE_COLUMNS)
    return list(zip(*(values.tolist() for values in columns), strict=True))


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@every_library
def test_columns_and_order_are_kept_types_are_the_declared_ones_and_identifiers_gone(
    name: str, library: str
) -> None:
    before = nw.from_native(frame(people(), library), eager_only=True)
    released = seeded(name, library).data
    assert type(released) is type(before.to_native())
    after = nw.from_native(released, eager_only=True)
    assert tuple(after.columns) == PEOPLE_COLUMNS
    stored = {"integer": nw.Int64(), "decimal": nw.Float64()}
    assert after.schema == {column: stored[PEOPLE_TYPES[column]] for column in PEOPLE_COLUMNS}
    assert len(after) == len(before) or seeded(name, library).aligned is None


@every_method
def test_a_recipe_repeats_the_release(name: str, tmp_path: Path) -> None:
    first = seeded(name)
    path = tmp_path / "method.toml"
    path.write_text(recipe_text(first), "utf-8")
    again = shoal.protect(frame(people(), "pyarrow"), seed=1, **load_recipe(path))
    assert again.statement == first.statement
    assert again.data.equals(first.data)
    assert recipe_text(again) == recipe_text(first)


@every_library_for_few
def test_released_values_lie_inside_the_domain(name: str, library: str) -> None:
    # a tiny budget pushes nearly every value against the ends of its domain
    released = release_of(
        name, library, seed=None, **({"epsilon": "0.001"} if "epsilon" in settings(name) else {})
    )
    for attribute, (lo, hi) in PEOPLE_DOMAINS.items():
        values = column(released.data, attribute)
        there = values[~np.isnan(values)]
        assert ((float(lo) <= there) & (there <= float(hi))).all(), attribute


@every_library
def test_partitions_cover_every_record_in_clusters_of_at_least_k(name: str, library: str) -> None:
    release = seeded(name, library)
    grouped = [attribute for made in release.partition for attribute in made.columns]
    covered = sorted(PEOPLE_COLUMNS) if "epsilon" in METHODS[name].parameters else sorted(set(grouped))
    assert sorted(grouped) == covered or not release.partition
    for made in release.partition:
        assert made.labels.shape == (60,)
        assert np.array_equal(np.bincount(made.labels, minlength=len(made)), made.sizes)
        assert made.sizes.min() >= (K if "k" in METHODS[name].parameters else 1)


@every_library_for_few
def test_rows_are_the_measured_ones_in_another_order(name: str, library: str) -> None:
    release = release_of(name, library, seed=None)
    released = rows_of(release.data)
    if release.aligned is None:
        # no row has an original, so nothing can follow the input order
        assert set(released).isdisjoint(rows_of(frame(people(), library)))
        return
    # claims about the table itself leave the values of records as they are: only age is a quasi-identifier here
    computed = not MODELS[release.statement.model].of_the_table
    in_order = rows_of(
        {name: stored(column(release.aligned, name), name, computed=computed) for name in PEOPLE_COLUMNS}
    )
    assert sorted(released) == sorted(in_order)
    # clipping can leave one value in every row, which has one order only
    if chance_of_same_order(released) < 1e-9:
        assert released != in_order


def chance_of_same_order(rows: list[tuple[float, ...]]) -> float:
    """How likely a random order of the rows looks like a given one, because rows are equal."""
    alike = sum(math.lgamma(count + 1) for count in Counter(rows).values())
    return math.exp(alike - math.lgamma(len(rows) + 1))


def stored(values: np.ndarray, attribute: str, *, computed: bool) -> np.ndarray:
    """Unrounded values as they are released: whole numbers, or as many decimals as the domain calls for."""
    dtype = people(2)[attribute].dtype
    decimals = 0 if dtype.kind in "iu" else 2 if attribute == ODD_NAMES[1] else 4
    there = np.nan_to_num(values)
    made = (np.round(there, decimals) if computed or not decimals else there).astype(dtype)
    return np.where(np.isnan(values), np.nan, made.astype(np.float64))


@every_library_for_few
def test_a_seed_repeats_every_byte_of_the_bundle(name: str, library: str, tmp_path: Path) -> None:
    first, again, other = (
        release_of(name, library, seed=seed).save(tmp_path / folder)
        for folder, seed in (("first", 7), ("again", 7), ("other", 8))
    )
    numbers = {"measurements.json"} if name in ("pairs-dp", "tree-dp") else set()
    assert set(files_of(first)) == {"data.parquet", *BUNDLE, *numbers}
    assert files_of(first) == files_of(again)
    assert files_of(first)["data.parquet"] != files_of(other)["data.parquet"]


@every_library_for_few
def test_without_a_seed_no_two_releases_are_equal(name: str, library: str, tmp_path: Path) -> None:
    first, again = (release_of(name, library, seed=None).save(tmp_path / folder) for folder in ("a", "b"))
    assert files_of(first)["data.parquet"] != files_of(again)["data.parquet"]
    # the promise does not depend on the draws
    assert promise_of(first) == promise_of(again)


def promise_of(folder: Path) -> dict[str, Any]:
    """The statement without the words that follow from a noisy number of rows, if it says that some do.

    edge/test_edge.py writes these words again from the number of rows that were released.
    """
    statement: dict[str, Any] = json.loads(files_of(folder)["statement.json"])
    said = statement["conditions"]
    follows = [
        number for number, words in enumerate(said, 1) if "determined by the noisy number of rows" in words
    ]
    if not follows:
        return statement
    # so do the error to expect, and what the verdict says of it
    computed = {key: value for key, value in statement["computed"].items() if key != "expected_error"}
    kept = {key: value for key, value in statement.items() if key != "verdict"}
    terms = {**statement["terms"], "conditions": statement["terms"]["conditions"][: follows[0]]}
    return {**kept, "conditions": said[: follows[0]], "computed": computed, "terms": terms}


@every_method
def test_terms_publish_no_fact_that_their_sentence_does_not_say(name: str) -> None:
    terms = release_of(name, seed=None).statement.to_dict()["terms"]
    for term in (term for said in terms.values() for term in said):
        templates = [re.sub("[«»]", "", part) for part in catalogue()[term["code"]]]
        said = {field for part in templates for _, field, _, _ in string.Formatter().parse(part)}
        assert set(term["facts"]) <= said, term


@every_method
@pytest.mark.parametrize(
    ("columns", "seed"),
    [(PEOPLE_COLUMNS, None), (PEOPLE_COLUMNS[1:2], 3)],
    ids=["several", "one"],
)
def test_statement_agrees_with_the_method(name: str, columns: tuple[str, ...], seed: int | None) -> None:
    release = release_of(name, seed=seed, columns=list(columns))
    statement, method = release.statement, release.method
    assert statement.model == method.model(len(columns))
    assert statement.model in METHODS[name].claim
    assert statement.method == name
    assert statement.publishable is (seed is None and MODELS[statement.model].guarantee)
    assert statement.data_dependent == ()
    assert tuple(statement.attributes) == columns
    if method.epsilon is not None:
        assert statement.epsilon == method.epsilon
        assert sum(share or 0 for share in statement.spending.values()) <= method.epsilon
    if method.k is not None:
        assert statement.settings["k"] == K


@every_method
def test_permuting_the_rows_gives_the_same_clusters(name: str) -> None:
    order = np.random.default_rng(11).permutation(60)
    shuffled = {attribute: values[order] for attribute, values in people().items()}
    before = seeded(name)
    after = shoal.protect(frame(shuffled, "pyarrow"), schema(), name, seed=1, **settings(name))
    for one, two in zip(before.partition, after.partition, strict=True):
        assert clusters(one, np.arange(60)) == clusters(two, order)


def clusters(partition: shoal.Partition, records: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(records[partition.labels == cluster].tolist()) for cluster in range(len(partition))}


@every_method
def test_fewer_than_two_k_records_are_one_cluster(name: str) -> None:
    few = {attribute: values[: 2 * K - 1] for attribute, values in people().items()}
    release = shoal.protect(frame(few, "polars"), schema(), name, seed=1, **settings(name))
    if "k" in METHODS[name].parameters:
        assert [made.sizes.tolist() for made in release.partition] == [[2 * K - 1]] * len(release.partition)
    # where the number of records is private, that of the rows is noisy
    assert len(release.data) == 2 * K - 1 or release.method.adjacency == "add-remove"
