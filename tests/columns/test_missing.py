"""Missing values: what each policy releases, what it does to the claim, and how gaps are written."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.columns.attribute import Attribute, patterns, settle_gaps
from shoal.columns.description import InMemory
from shoal.columns.kinds import Lattice
from shoal.errors import ClaimError, InputError, OptionError, Problems
from shoal.io import read
from shoal.mechanisms.partition_stage import Group, partition_group
from shoal.mechanisms.registry import configured, load_recipe, recipe_text
from tests.support.mixed_table import (
    AMOUNT,
    CODES,
    COLOURS,
    JOB,
    JOBS,
    LIBRARIES,
    METHODS,
    NAMES,
    NOMINAL,
    VALUES_OF_JOB,
    columns,
    released_types,
    schema,
    settings,
    table,
    types_of,
    values_of,
)

every_method = pytest.mark.parametrize("method", METHODS)
every_library = pytest.mark.parametrize("library", LIBRARIES)
# methods that have a place for missing numbers
FLAGGING = ("laplace", "tree-dp")
WITH_GAPS = ("smokes", JOB, "code", "colour")


def protect(data: Any, method: str, of: shoal.Schema | None = None, **more: Any) -> shoal.Release:
    return shoal.protect(data, of or schema(), **settings(method, **more))


def small(*names: str, **changes: Any) -> shoal.Schema:
    whole = schema(**changes)
    return shoal.Schema(tuple(whole[name] for name in names))


def test_a_gap_is_an_error_that_names_the_ways_out() -> None:
    data = columns()
    data[JOB][7] = None
    with pytest.raises(
        InputError, match=r"has missing values, the first in row 8: .* category .* separate, or"
    ):
        protect(table(data, "polars"), "laplace")


@every_method
@every_library
def test_category_counts_gaps_as_one_more_value(method: str, library: str) -> None:
    frame = table(columns(gaps=WITH_GAPS), library)
    release = protect(frame, method, missing="category", seed=None)
    gapped = {*NOMINAL, *(NAMES if method in FLAGGING else ())}
    assert types_of(release.data) == released_types(library, gapped)
    assert release.statement.publishable
    assert release.statement.data_dependent == ()
    assert release.statement.attributes[JOB]["domain"] == "6 values of a taxonomy with 9 concepts"
    for name, domain in {
        JOB: VALUES_OF_JOB,
        "code": CODES,
        "colour": COLOURS,
        "smokes": (True, False),
    }.items():
        assert set(values_of(release.data, name)) <= {*domain, None}, name
    for name in NAMES:
        if name not in NOMINAL and method not in FLAGGING:
            assert None not in values_of(release.data, name)


@every_method
def test_with_a_large_budget_gaps_are_as_frequent_as_they_were(method: str) -> None:
    data = columns(400, gaps=WITH_GAPS)
    more: dict[str, Any] = {} if method in ("laplace", "tree-dp") else {"k": 1}
    of = schema(**{name: {"missing": "category"} for name in ("smokes", "job", "code", "colour")})
    release = protect(table(data, "polars"), method, of, epsilon=10**6, **more)
    for name in WITH_GAPS:
        before, after = data[name].count(None), values_of(release.data, name).count(None)
        assert before == 80
        # rows of a tree are drawn leaf by leaf, in whole numbers
        assert after == pytest.approx(80, abs=10 if method == "tree-dp" else 2)


def test_a_category_is_a_neighbour_of_no_group_but_the_root() -> None:
    tree = schema(job={"missing": "category"})[JOB].tree
    assert tree is not None
    assert tree.parents[tree.code("(missing)")] == tree.root
    assert set(tree.values) == {*VALUES_OF_JOB, "(missing)"}


def test_a_gap_is_one_of_the_values_whether_or_not_the_type_of_the_frame_has_room_for_it() -> None:
    """What a type of pandas can hold follows from the records: a column is plain as long as it has no gap."""
    frame = table(columns(), "pandas")
    for typed in (frame, frame.astype({"code": "Int64", "smokes": "boolean"})):
        release = protect(typed, "laplace", missing="category", epsilon="0.01")
        assert release.statement.attributes["smokes"]["domain"] == "3 values"
        assert release.statement.attributes["code"]["domain"] == "5 values"
        assert release.data.dtypes["code"] == "Int64"
        assert release.data.dtypes["smokes"] == "boolean"
        assert release.data["code"].isna().any()
    narrow = frame.astype({"code": "uint8"})
    assert protect(narrow, "laplace", missing="category", epsilon=1).data.dtypes["code"] == "Int64"


@pytest.mark.parametrize("method", [name for name in METHODS if name not in FLAGGING])
def test_other_methods_have_a_category_for_names_only(method: str) -> None:
    data = columns(gaps=["age"])
    with pytest.raises(
        InputError, match=r"column 'age' has missing values.* with pairs-dp, tree-dp or laplace"
    ):
        protect(table(data, "polars"), method, missing="category")
    with pytest.raises(
        OptionError,
        match="column 'age' is numeric and declared with missing = \"category\", which only the methods "
        "pairs-dp, tree-dp and laplace support",
    ):
        # whether or not a value is missing
        protect(table(columns(), "polars"), method, schema(age={"missing": "category"}))


ORDERED = ("age", AMOUNT, "level", "born")
EVERY_GAP = {name: {"missing": "category"} for name in ("age", "amount", "level", "born")}


@pytest.mark.parametrize("method", FLAGGING)
@every_library
def test_numbers_dates_and_orders_have_a_place_for_gaps(method: str, library: str) -> None:
    of = small(*ORDERED, **EVERY_GAP)
    data = {name: values for name, values in columns(gaps=ORDERED).items() if name in ORDERED}
    release = protect(table(data, library), method, of, seed=None)
    assert release.statement.model == "dp"
    assert release.statement.publishable
    assert release.statement.attributes["age"]["missing"] == "a value of its own"
    assert "0 to 120, or missing" in release.statement.to_markdown()
    expected = released_types(library, ORDERED)
    assert types_of(release.data) == {name: expected[name] for name in ORDERED}
    assert sum(release.statement.spending.values()) == 2
    measured = shoal.evaluate(table(data, library), release)
    json.dumps(measured.to_dict())


@pytest.mark.parametrize("method", FLAGGING)
@every_library
def test_a_table_without_gaps_has_room_for_them_all_the_same(method: str, library: str) -> None:
    """The schema decides, and never whether a gap occurs."""
    data = {name: values for name, values in columns(60).items() if name in ORDERED}
    frame = table(data, library)
    release = protect(frame, method, small(*ORDERED, **EVERY_GAP), epsilon="0.1", seed=None)
    found = [value for name in ORDERED for value in values_of(release.data, name)]
    assert None in found
    if library == "pandas":
        assert release.data.dtypes["age"] == "Int64"
    with_gaps = table({**data, "age": [None, *data["age"][1:]]}, library)
    of = small(*ORDERED, **EVERY_GAP).with_types({"age": "integer"})
    again = protect(with_gaps, method, of, epsilon="0.1", seed=None)
    assert types_of(again.data) == types_of(release.data)
    assert again.statement.conditions == release.statement.conditions


@pytest.mark.parametrize("method", FLAGGING)
def test_with_a_large_budget_missing_numbers_are_as_frequent_as_they_were(method: str) -> None:
    data = {name: values for name, values in columns(400, gaps=ORDERED).items() if name in ORDERED}
    release = protect(table(data, "polars"), method, small(*ORDERED, **EVERY_GAP), epsilon=10**6)
    for name in ORDERED:
        after = values_of(release.data, name)
        assert after.count(None) == pytest.approx(80, abs=10 if method == "tree-dp" else 0)
        if method == "laplace" and name == "age":
            assert sorted(v for v in after if v is not None) == sorted(v for v in data[name] if v is not None)


def test_a_gap_is_told_by_randomised_response_under_laplace() -> None:
    """At ε = 2 for one column the flag has ε = 1 and is reversed with probability 1 / (1 + e)."""
    n = 20_000
    frame = pa.table({"age": [30] * (n // 2) + [None] * (n // 2)})
    of = small("age", age={"missing": "category"})
    release = shoal.protect(frame, of, "laplace", epsilon=2, seed=4)
    assert any("reversed with probability 0.269" in condition for condition in release.statement.conditions)
    assert release.statement.spending == {
        "whether age is missing": Fraction(1),
        "cluster sums of age": Fraction(1),
    }
    aligned = np.array(values_of(release.aligned, "age"), dtype=float)
    for half in (np.isnan(aligned[: n // 2]), ~np.isnan(aligned[n // 2 :])):
        # three standard deviations of a share of 10,000
        assert half.mean() == pytest.approx(1 / (1 + np.e), abs=0.014)


def test_missing_numbers_are_released_in_parts_as_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "ages.parquet"
    pa.parquet.write_table(pa.table({"age": [30, 40, None] * 200}), path)
    of = small("age", age={"missing": "category"})
    made = shoal.publish(path, of, "laplace", 1, out=tmp_path / "out", engine="local", seed=1)
    assert made.release.statement == shoal.protect(path, of, "laplace", 1, seed=1).statement
    gaps = pa.parquet.read_table(tmp_path / "out" / "data.parquet")["age"].null_count
    # a third is missing, and an answer is reversed with probability 0.38
    assert 150 < gaps < 400


def test_the_name_of_gaps_cannot_be_a_group() -> None:
    with pytest.raises(OptionError, match=r"'\(missing\)' is a group of its taxonomy.*rename the group"):
        schema(job={"taxonomy": {"work": {"(missing)": ["clerk"]}}, "missing": "category"})
    tree = schema(job={"taxonomy": {"work": ["(missing)", "clerk"]}, "missing": "category"})[JOB].tree
    assert tree is not None
    assert tree.values == ("(missing)", "clerk")


SEPARATE = ("mdav-dp", "ranking-dp")


@pytest.mark.parametrize("method", SEPARATE)
@every_library
def test_separate_keeps_the_number_of_gaps_of_every_column(method: str, library: str) -> None:
    names = ("age", "level", "born", "smokes", JOB, "code", "colour")
    data = columns(gaps=names, share=0.1)
    frame = table(data, library)
    groups = {"groups": [[name] for name in NAMES]} if method == "mdav-dp" else {}
    release = protect(frame, method, missing="separate", seed=None, **groups)
    assert types_of(release.data) == released_types(library, NAMES)
    for name in NAMES:
        assert values_of(release.data, name).count(None) == data[name].count(None) == 24 * (name in names)
    assert release.statement.model == "dp-given-partition"
    assert release.statement.publishable
    assert "Which values are missing is treated as fixed and public." in release.statement.conditions


def test_rows_with_the_same_gaps_stay_together() -> None:
    """Two columns with gaps in the same rows or in one of them: released rows have the same patterns, as often."""
    age = [None] * 20 + [None] * 20 + list(range(20, 80))
    job = [None] * 20 + ["clerk"] * 20 + [None] * 20 + ["farmer"] * 40
    frame = pa.table({"age": age, JOB: job})
    release = protect(frame, "mdav-dp", small("age", JOB), missing="separate", k=4)
    patterns_of = [
        sorted(
            zip(
                [value is None for value in values_of(each, "age")],
                [value is None for value in values_of(each, JOB)],
                strict=True,
            )
        )
        for each in (frame, release.data)
    ]
    assert patterns_of[0] == patterns_of[1]
    (partition,) = release.partition
    gaps = np.array([[value is None for value in age], [value is None for value in job]])
    for cluster in range(len(partition)):
        inside = gaps[:, partition.labels == cluster]
        assert (inside == inside[:, :1]).all()
        # where something is released, k rows share it
        assert inside.all() or partition.sizes[cluster] >= 4


def test_aligned_rows_have_the_gaps_of_their_originals() -> None:
    data = columns(gaps=["age", JOB], share=0.1)
    release = protect(table(data, "polars"), "ranking-dp", missing="separate")
    for name in ("age", JOB):
        absent = [value is None or value != value for value in values_of(release.aligned, name)]
        assert absent == [value is None for value in data[name]]


@pytest.mark.parametrize(
    ("method", "names"),
    [
        ("laplace", NAMES),
        ("tree-dp", NAMES),
        ("insensitive-dp", NAMES),
        ("ranking-dp", ("age",)),
        ("swap-mdav", NAMES),
    ],
)
def test_separate_is_refused_where_the_claim_covers_the_gaps(method: str, names: tuple[str, ...]) -> None:
    data = table(columns(gaps=["age"]), "pyarrow")
    arguments = settings(method, columns=list(names)) if method in METHODS else {"method": method, "k": 5}
    with pytest.raises(ClaimError, match="missing=separate reveals which values are missing"):
        shoal.protect(data, schema(), **arguments, missing="separate")


def test_confidential_values_stay_missing_under_k_anonymity_and_quasi_identifiers_must_not() -> None:
    facts = [
        {"name": "age", "role": "quasi-identifier", "lo": 0, "hi": 99},
        {"name": "pay", "role": "confidential", "lo": 0, "hi": 99},
    ]
    declared = shoal.Schema.from_dict({"attribute": facts})
    people: dict[str, list[int | None]] = {"age": list(range(20)), "pay": [None, *range(19)]}
    release = shoal.protect(pa.table(people), declared, "k-anonymity", k=5, missing="separate")
    assert release.data["pay"].null_count == 1
    people["age"][3] = None
    with pytest.raises(InputError, match="quasi-identifier 'age' has missing values"):
        shoal.protect(pa.table(people), declared, "k-anonymity", k=5, missing="separate")


def test_separate_is_refused_or_not_by_the_declaration_and_not_by_the_gaps() -> None:
    """A refusal that depended on whether there is a gap would tell whether there is one."""
    whole = table(columns(), "pyarrow")
    with pytest.raises(ClaimError, match="missing=separate"):
        protect(whole, "laplace", missing="separate")
    stated = protect(whole, "ranking-dp", missing="separate", seed=None).statement
    gaps = protect(table(columns(gaps=["age"]), "pyarrow"), "ranking-dp", missing="separate", seed=None)
    assert stated == gaps.statement


def test_too_few_rows_with_the_same_gaps_are_an_error() -> None:
    data = columns()
    for row in range(3):
        data["age"][row] = None
    with pytest.raises(
        OptionError, match=r"too few rows with values missing in exactly age, got 3 for k = 5: lower k"
    ):
        protect(table(data, "pyarrow"), "mdav-dp", missing="separate")
    # a group of its own has nothing to release for them
    release = protect(
        table(data, "pyarrow"),
        "mdav-dp",
        missing="separate",
        groups=[["age"], [name for name in NAMES if name != "age"]],
    )
    assert values_of(release.data, "age").count(None) == 3


def test_a_column_of_gaps_only_stays_one() -> None:
    frame = pl.DataFrame({"age": [None] * 40, "code": [11, 12] * 20}, schema_overrides={"age": pl.Int64})
    release = protect(frame, "ranking-dp", small("age", "code"), missing="separate", k=5)
    assert values_of(release.data, "age") == [None] * 40


@every_method
def test_drop_leaves_rows_out_and_taints(method: str) -> None:
    data = columns(gaps=["age", JOB])
    whole = sum(age is not None and job is not None for age, job in zip(data["age"], data[JOB], strict=True))
    release = protect(table(data, "pyarrow"), method, missing="drop", seed=None)
    assert len(release.data) == whole
    assert not release.statement.publishable
    assert any("missing=drop" in entry for entry in release.statement.data_dependent)
    assert release.statement.sentence.startswith("No guarantee as it stands")


def test_every_column_can_have_its_own_policy() -> None:
    data = columns(gaps=["age", "born", JOB, "code"], share=0.1)
    of = schema(
        age={"missing": "separate"},
        born={"missing": "drop"},
        job={"missing": "category"},
        code={"missing": "separate"},
    )
    kept = sum(day is not None for day in data["born"])
    frame = table(data, "polars")
    release = protect(frame, "ranking-dp", of)
    assert len(release.data) == kept
    assert types_of(release.data) == types_of(frame)
    assert values_of(release.data, "born").count(None) == 0
    for name in ("age", "code"):
        inside = sum(
            value is None for value, day in zip(data[name], data["born"], strict=True) if day is not None
        )
        assert values_of(release.data, name).count(None) == inside
    assert release.statement.attributes[JOB]["domain"].startswith("6 values")
    assert release.statement.attributes["colour"]["domain"] == "4 values"
    with pytest.raises(InputError, match="column 'colour' has"):
        protect(table(columns(gaps=["colour"]), "polars"), "ranking-dp", of)


def test_a_policy_of_the_schema_wins_over_that_of_the_call(tmp_path: Path) -> None:
    data = columns(gaps=[JOB, "code"])
    release = protect(
        table(data, "polars"),
        "ranking-dp",
        schema(job={"missing": "separate"}),
        missing="category",
        seed=None,
    )
    assert values_of(release.data, JOB).count(None) == 48
    assert release.statement.attributes["code"]["domain"] == "5 values"
    assert release.statement.attributes[JOB]["domain"].startswith("5 values")
    path = release.save(tmp_path / "out") / "method.toml"
    arguments = load_recipe(path)
    assert arguments["schema"][JOB].missing == "separate"
    again = shoal.protect(table(data, "polars"), **arguments)
    assert again.statement == release.statement
    assert recipe_text(again) == path.read_text("utf-8")


@pytest.mark.parametrize("missing", ["category", "separate"])
def test_releases_with_gaps_can_be_measured_and_reported(missing: str, tmp_path: Path) -> None:
    data = columns(gaps=[JOB, "code"] if missing == "category" else ["age", "born", JOB, "code"], share=0.1)
    frame = table(data, "polars")
    release = protect(frame, "ranking-dp", missing=missing)
    measured = shoal.evaluate(frame, release)
    json.dumps(measured.to_dict())
    release.save(tmp_path / "out", tmp_path / "internal.html", evaluation=measured)
    assert "clerk" in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_empty_cells_of_a_csv_file_are_gaps_and_stay_empty(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("job,age\n" + "clerk,30\n,40\n" * 20)
    of = shoal.Schema.from_dict(
        {"attribute": [{"name": "job", "taxonomy": JOBS}, {"name": "age", "lo": 0, "hi": 99}]}
    )
    release = shoal.protect(
        tmp_path / "people.csv", of, "mdav-dp", epsilon=1, k=5, missing="separate", seed=1
    )
    release.save(tmp_path / "out")
    again = pl.read_csv(tmp_path / "out" / "data.csv")
    assert again["job"].null_count() == 20


ADULT_LIKE = "age,workclass,hours\n39, State-gov,40\n50, ?,13\n?,Private,?\n28,Private ,40\n"


@pytest.mark.parametrize("kind", ["file", "pandas", "polars", "pyarrow"])
def test_texts_that_stand_for_a_gap(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "adult.csv"
    path.write_text(ADULT_LIKE)
    source: Any = path
    if kind == "pandas":
        source = pd.read_csv(path)
    elif kind == "polars":
        source = pl.read_csv(path)
    elif kind == "pyarrow":
        source = pa.csv.read_csv(path)
    found = read(source, ["?"])
    assert found.series("workclass").is_null().to_list() == [False, True, False, False]
    assert found.series("age").is_null().to_list() == [False, False, True, False]
    if kind == "file":
        # numbers beside such texts are numbers
        assert found.is_integer("age")
        assert found.is_integer("hours")
    # text that only looks like a gap elsewhere stays text
    assert read(pa.table({"country": ["NA", "?"]}), ["?"]).series("country").to_list() == ["NA", None]


def test_such_texts_are_an_option_and_part_of_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "adult.csv"
    path.write_text("age,workclass\n" + "39, State-gov\n50, ?\n28,Private\n" * 10)
    taxonomy = tmp_path / "work.csv"
    shoal.Taxonomy.flat(["State-gov", "Private", "Never-worked"]).save(taxonomy)
    command = [
        "protect",
        str(path),
        "--domain",
        "age=17:90",
        "--taxonomy",
        f"workclass={taxonomy}",
        "--na",
        "?",
    ]
    command += [
        "--missing",
        "category",
        "--method",
        "laplace",
        "--epsilon",
        "30",
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    released = pl.read_csv(tmp_path / "out" / "data.csv")
    assert set(released["workclass"].to_list()) <= {"State-gov", "Private", "Never-worked", "?"}
    recipe = tmp_path / "out" / "method.toml"
    assert 'na = ["?"]' in recipe.read_text("utf-8")
    again = CliRunner().invoke(
        app, ["protect", str(path), "--config", str(recipe), "--out", str(tmp_path / "again")]
    )
    assert again.exit_code == 0, again.output
    compared = CliRunner().invoke(
        app, ["evaluate", str(path), str(tmp_path / "out" / "data.csv"), "--na", "?", "--columns", "age"]
    )
    assert compared.exit_code == 0, compared.output
    with pytest.raises(OptionError, match="na must be a list of texts"):
        shoal.protect(path, method="laplace", epsilon=1, na="?")


def test_policies_by_column_and_patterns() -> None:
    absent = {"a": np.array([True, False, False, True]), "b": np.array([False, True, False, True])}
    records = InMemory(
        read(pa.table({name: pa.array(np.ones(4), mask=gaps) for name, gaps in absent.items()}))
    )
    found_absent = {name: records.absent(Attribute(name, "numeric")) for name in absent}
    assert [(gone.count, gone.first) for gone in found_absent.values()] == [(2, 0), (2, 1)]
    gaps = settle_gaps(found_absent, {"a": "separate", "b": "drop"}, records, Problems())
    assert gaps.kept is not None
    assert gaps.kept.tolist() == [0, 2]
    assert gaps.separate["a"].tolist() == [True, False]
    found = patterns(absent, ("a", "b"))
    assert found is not None
    assert len(set(found.tolist())) == 4
    # rows that miss none come first
    assert found[2] == 0
    assert patterns(absent, ("c",)) is None


def test_clusters_never_mix_rows_that_miss_different_values() -> None:
    rng = np.random.default_rng(4)
    gaps = {"a": rng.random(60) < 0.3, "b": rng.random(60) < 0.3}
    lattice = Lattice(Fraction(0), Fraction(9), Fraction(1))
    group = Group(("a", "b"), (lattice, lattice), tuple(rng.integers(0, 10, 60) for _ in range(2)), gaps=gaps)
    method = configured("mdav-dp", epsilon=1, k=3)
    made = partition_group(group, method)
    for cluster in range(len(made)):
        members = made.labels == cluster
        for absent in gaps.values():
            assert len(set(absent[members].tolist())) == 1
