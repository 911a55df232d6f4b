"""Mixed tables: numeric, ordinal, date, Boolean and nominal columns with and without a taxonomy, under every method."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.cli.options import recipe_arguments
from shoal.errors import InputError, OptionError
from shoal.io import read
from shoal.mechanisms.registry import load_recipe, recipe_text
from shoal.release.protection import prepare
from tests.conftest import slow_ones
from tests.support.mixed_table import (
    AMOUNT,
    CODES,
    DOMAINS,
    FIRST_DAY,
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
CONCEPTS_OF_JOB = {"work", "office", "outdoors", *VALUES_OF_JOB}


def protect(data: Any, method: str, of: shoal.Schema | None = None, **more: Any) -> shoal.Release:
    return shoal.protect(data, of or schema(), **settings(method, **more))


@every_method
@every_library
def test_types_and_order_of_columns_are_kept(method: str, library: str) -> None:
    frame = table(columns(), library)
    released = protect(frame, method).data
    assert type(released) is type(frame)
    assert types_of(released) == released_types(library)
    assert list(types_of(released)) == list(NAMES)
    assert len(released) == 240


@every_method
@every_library
def test_only_values_of_the_domains_are_released(method: str, library: str) -> None:
    # a tiny budget asks for every corner of the domains
    for epsilon in ("0.001", "50"):
        released = protect(table(columns(), library), method, epsilon=epsilon).data
        for name, domain in DOMAINS.items():
            assert set(values_of(released, name)) <= set(domain), name
        ages, amounts = values_of(released, "age"), values_of(released, AMOUNT)
        assert 0 <= min(ages) <= max(ages) <= 120
        assert 0 <= min(amounts) <= max(amounts) <= 1000
        days = np.array(values_of(released, "born"), dtype="datetime64[D]")
        assert np.datetime64(FIRST_DAY) <= days.min() <= days.max() <= np.datetime64("2000-12-31")


@every_method
def test_a_large_budget_shows_the_distributions_of_names(method: str) -> None:
    """Clusters of one and a huge ε release what is there, so a mix-up of codes and places would be seen."""
    data = columns(400)
    alone = {"k": 1} if method not in ("laplace", "tree-dp") else {}
    released = protect(table(data, "pyarrow"), method, **{"epsilon": 10**6, **alone}).data
    for name in (*NOMINAL, "level"):
        for value in DOMAINS[name]:
            before, after = data[name].count(value), values_of(released, name).count(value)
            assert before == pytest.approx(after, abs=3), (name, value)


@pytest.mark.parametrize("method", ["laplace", "mdav-dp", "ranking-dp", "insensitive-dp"])
@every_library
def test_groups_of_values_are_released_where_asked_for(method: str, library: str) -> None:
    frame = table({name: columns()[name] for name in (JOB, "age")}, library)
    shown: set[str] = set()
    for seed in range(5):
        shown |= set(
            values_of(
                protect(frame, method, small(JOB, "age"), epsilon="0.1", seed=seed, generalise=True).data,
                JOB,
            )
        )
    assert shown <= CONCEPTS_OF_JOB
    assert shown - set(VALUES_OF_JOB)


def test_a_tree_releases_the_smallest_group_around_an_interval() -> None:
    """Names that are too many to be counted: an interval of them stands for the group that holds it."""
    nested = {"all": {f"group {g}": [f"{g}-{v}" for v in range(8)] for g in range(8)}}
    tree = shoal.Taxonomy.from_dict(nested)
    rng = np.random.default_rng(1)
    data = pa.table(
        {"x": [f"{g}-{v}" for g, v in zip(rng.integers(0, 8, 300), rng.integers(0, 8, 300), strict=True)]}
    )
    options = {"method": "tree-dp", "epsilon": "0.4", "cuts": 3, "seed": 1, "domains": {"x": tree}}
    values = shoal.protect(data, **options).data["x"].to_pylist()
    groups = shoal.protect(data, **options, generalise=True).data["x"].to_pylist()
    assert set(values) <= set(tree.values)
    assert set(groups) <= set(tree.labels)
    assert set(groups) & {"all", *nested["all"]}
    # the same draws: every group holds the value that it stands for
    for value, group in zip(values, groups, strict=True):
        assert tree.code(group) in tree.ancestors(tree.code(value))
    # counted names are as they are
    few = shoal.protect(data, **options | {"epsilon": 100}, generalise=True)
    assert set(few.data["x"].to_pylist()) <= set(tree.values)


def small(*names: str, **changes: Any) -> shoal.Schema:
    whole = schema(**changes)
    return shoal.Schema(tuple(whole[name] for name in names))


def never(what: str, done: int, total: int) -> None:
    assert what == "reading the table", "work has begun"


@pytest.mark.parametrize(
    ("name", "library", "stored"),
    [
        ("smokes", "pandas", "Boolean"),
        ("smokes", "polars", "Boolean"),
        ("smokes", "pyarrow", "Boolean"),
        ("code", "pandas", "Int64"),
        ("code", "pyarrow", "Int64"),
    ],
)
def test_a_group_without_a_place_in_the_type_is_refused_before_any_work(
    name: str, library: str, stored: str
) -> None:
    frame = table({name: columns()[name]}, library)
    with pytest.raises(
        InputError, match=rf"'{name}' is stored as {stored}, which cannot hold '\*': .*generalise"
    ):
        shoal.protect(frame, small(name), **settings("mdav-dp", generalise=True), progress=never)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_type_that_lists_its_values_gets_those_that_are_declared(library: str) -> None:
    frame = table({"colour": columns()["colour"]}, library)
    released = shoal.protect(frame, small("colour"), **settings("mdav-dp", generalise=True)).data
    listed = (
        released["colour"].cat.categories if library == "pandas" else released.schema["colour"].categories
    )
    assert set(listed) == {*DOMAINS["colour"], "*"}


def test_groups_with_numbers_for_names_fit_into_a_column_of_numbers() -> None:
    tree = shoal.Taxonomy.from_dict({0: {1: [11, 12], 2: [21, 22]}})
    frame = table({"code": columns()["code"]}, "pyarrow")
    release = shoal.protect(
        frame, domains={"code": tree}, **settings("mdav-dp", epsilon="0.05", generalise=True)
    )
    assert release.data.schema == frame.schema
    found = set(values_of(release.data, "code"))
    assert found <= {0, 1, 2, *CODES}
    assert found & {0, 1, 2}


@pytest.mark.parametrize(
    ("frame", "entry", "type"),
    [
        (pa.table({"x": pa.array([11, 12], pa.int8())}), {"values": [11, 12, 300]}, "int64"),
        (pa.table({"x": [11, 12]}), {"values": ["11", "12", "other"]}, "string"),
        (
            pd.DataFrame({"x": pd.Categorical(["red", "blue"])}),
            {"values": ["red", "green", "blue"]},
            "category",
        ),
        (pl.DataFrame({"x": ["red"]}, schema={"x": pl.Enum(["red"])}), {"values": ["red", "green"]}, "Enum"),
        (pa.table({"x": [True]}), {"values": ["True", "False", "maybe"]}, "string"),
        (pa.table({"x": [1, 2]}), {"kind": "ordinal", "ordered": ["1", "2", "more"]}, "string"),
        (pa.table({"x": [1, 2]}), {"values": ["1", "2", "2.5"]}, "double"),
    ],
)
def test_values_are_released_in_the_type_that_all_of_them_have(
    frame: Any, entry: dict[str, Any], type: str
) -> None:
    of = shoal.Schema.from_dict({"attribute": [{"name": "x", **entry}]})
    release = shoal.protect(frame, of, "laplace", epsilon=1)
    assert release.statement.publishable
    assert str(types_of(release.data)["x"]).startswith(type)


@pytest.mark.parametrize("method", ["mdav-dp", "ranking-dp", "laplace", "insensitive-dp"])
def test_released_rows_are_the_measured_ones_in_another_order(method: str) -> None:
    release = protect(table(columns(), "polars"), method, seed=None)
    whole = ("smokes", JOB, "code", "colour", "planet")
    released, measured = (
        list(zip(*(values_of(frame, name) for name in whole), strict=True))
        for frame in (release.data, release.aligned)
    )
    assert sorted(map(str, released)) == sorted(map(str, measured))
    assert released != measured


@every_method
def test_the_plan_spends_epsilon_and_no_more(method: str) -> None:
    arguments = settings(method)
    prepared = prepare(read(table(columns(), "pyarrow")), schema(), **arguments)
    assert sum(prepared.plan.spending.values()) == 2
    assert set(prepared.plan.shares) == set(NAMES)
    if method != "tree-dp":
        assert sum(prepared.plan.shares.values()) == 2
        for name in NAMES:
            what = "concepts" if name in NOMINAL else "sums"
            assert f"cluster {what} of {name}" in prepared.plan.spending
    assert sum(share or 0 for share in prepared.statement.spending.values()) == 2


def test_names_get_an_equal_share_whatever_the_widths_of_the_numbers() -> None:
    """Proportional shares follow widths, which names do not have."""
    release = protect(table(columns(), "pyarrow"), "mdav-dp", split="proportional")
    shares = release.statement.epsilon_per_attribute
    assert {shares[name] for name in NOMINAL} == {Fraction(2, 9)}
    assert shares[AMOUNT] / shares["age"] == Fraction(1000, 120)


@pytest.mark.parametrize(
    ("method", "names", "more", "model"),
    [
        ("laplace", NAMES, {}, "dp"),
        ("tree-dp", NAMES, {}, "dp"),
        ("insensitive-dp", NAMES, {}, "dp"),
        ("insensitive-dp", (JOB,), {}, "dp"),
        ("mdav-dp", NAMES, {}, "dp-given-partition"),
        ("mdav-dp", (JOB,), {}, "dp-given-partition"),
        ("mdav-dp", (JOB,), {"k": 1}, "dp"),
        ("ranking-dp", NAMES, {}, "dp-given-partition"),
        # sums of ranked numbers telescope when a record moves through all clusters, choices of concepts do not
        ("ranking-dp", ("age",), {}, "dp"),
        ("ranking-dp", ("level",), {}, "dp"),
        ("ranking-dp", (JOB,), {}, "dp-given-partition"),
        ("ranking-dp", ("age", "level"), {"link": False}, "dp"),
        ("ranking-dp", ("age", JOB), {"link": False}, "dp-given-partition"),
        ("ranking-dp", (JOB,), {"k": 1}, "dp"),
    ],
)
def test_the_statement_names_the_model_that_holds(
    method: str, names: tuple[str, ...], more: dict[str, Any], model: str
) -> None:
    release = protect(table(columns(), "pyarrow"), method, seed=None, columns=list(names), **more)
    assert release.statement.model == model
    assert release.statement.publishable
    assert release.statement.data_dependent == ()


def test_the_statement_describes_domains_in_words() -> None:
    facts = protect(table(columns(), "pyarrow"), "mdav-dp").statement.attributes
    stated = {"domain": "5 values of a taxonomy with 8 concepts", "step": "", "type": "text", "source": ""}
    assert facts[JOB] == stated
    assert facts["smokes"]["domain"] == "2 values"
    assert facts["smokes"]["type"] == "truth value"
    assert facts["level"].items() >= {"lo": "low", "hi": "high", "step": "one place in the order"}.items()


@pytest.mark.parametrize(
    ("method", "library"),
    # what is written does not know where it came from: every method once, one with every library
    [
        (method, library)
        for method in METHODS
        for library in LIBRARIES
        if library == "pyarrow" or method == "mdav-dp"
    ],
)
def test_a_seed_repeats_every_byte(method: str, library: str, tmp_path: Path) -> None:
    bundles = []
    for name, seed in (("first", 7), ("again", 7), ("other", 8)):
        folder = protect(table(columns(), library), method, seed=seed).save(tmp_path / name)
        bundles.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert bundles[0] == bundles[1]
    assert bundles[0]["data.parquet"] != bundles[2]["data.parquet"]


@every_method
def test_a_recipe_repeats_statement_and_recipe(method: str, tmp_path: Path) -> None:
    first = protect(table(columns(), "pyarrow"), method, seed=None, missing="category")
    path = first.save(tmp_path / "out") / "method.toml"
    arguments = load_recipe(path)
    again = shoal.protect(table(columns(seed=9), "pyarrow"), **arguments)
    assert again.statement == first.statement
    assert recipe_text(again) == path.read_text("utf-8")
    kept = arguments["schema"]
    assert kept[JOB].tree == first.schema[JOB].tree
    assert kept[JOB].taxonomy == shoal.Taxonomy.from_dict(JOBS)
    assert kept["colour"].values == ("red", "green", "blue", "black")
    assert arguments["missing"] == "category"


def test_a_recipe_keeps_values_that_are_groups() -> None:
    tree = shoal.Taxonomy.from_dict(JOBS).minimal(["clerk", "outdoors"])
    data = pa.table({"job": ["clerk", "outdoors"] * 20})
    first = shoal.protect(data, domains={"job": tree}, method="ranking-dp", epsilon=1, k=5, seed=1)
    assert set(values_of(first.data, "job")) <= {"clerk", "outdoors"}
    raw = shoal.Schema.from_dict(first.schema.to_dict())
    assert raw == first.schema
    assert raw["job"].tree == tree


def test_a_taxonomy_from_the_command_line(tmp_path: Path) -> None:
    shoal.Taxonomy.from_dict(JOBS).save(tmp_path / "jobs.csv")
    data = {"job": columns()[JOB], "age": columns()["age"]}
    pl.DataFrame(data).write_csv(tmp_path / "people.csv")
    command = ["protect", str(tmp_path / "people.csv"), "--columns", "age,job", "--domain", "age=0:120"]
    command += [
        "--taxonomy",
        f"job={tmp_path / 'jobs.csv'}",
        "--method",
        "mdav-dp",
        "--epsilon",
        "1",
        "--k",
        "20",
    ]
    done = CliRunner().invoke(app, [*command, "--generalise", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    released = pl.read_csv(tmp_path / "out" / "data.csv")
    assert set(released["job"].to_list()) <= CONCEPTS_OF_JOB
    statement = json.loads((tmp_path / "out" / "statement.json").read_text())
    assert statement["attributes"]["job"]["domain"] == "5 values of a taxonomy with 8 concepts"
    repeat = ["protect", str(tmp_path / "people.csv"), "--config", str(tmp_path / "out" / "method.toml")]
    again = CliRunner().invoke(app, [*repeat, "--out", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize("text", ["job", "=jobs.csv", "job="])
def test_a_taxonomy_option_of_another_form_is_refused(text: str) -> None:
    typed = {"config": None, "schema": None, "method": "laplace", "domain": None, "taxonomy": [text]}
    with pytest.raises(OptionError, match="must have the form column=file"):
        recipe_arguments(typed)


def test_a_dry_run_works_for_every_kind(tmp_path: Path) -> None:
    data = columns(gaps=["code", JOB])
    pl.DataFrame(data, schema_overrides={JOB: pl.String}).write_parquet(tmp_path / "people.parquet")
    schema().save(tmp_path / "people.toml")
    for method in METHODS:
        command = ["protect", str(tmp_path / "people.parquet"), "--schema", str(tmp_path / "people.toml")]
        command += ["--method", method, "--epsilon", "1", "--missing", "category", "--dry-run"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert "Nothing was written" in done.output
        assert "6 values of a taxonomy with 9 concepts" in done.output


def test_a_schema_with_every_kind_is_written_and_read(tmp_path: Path) -> None:
    before = schema(job={"missing": "category"}, age={"missing": "separate"})
    before.save(tmp_path / "people.toml")
    assert shoal.Schema.load(tmp_path / "people.toml") == before


def test_values_from_the_records_taint_and_stay_private(tmp_path: Path) -> None:
    without = shoal.Schema((schema()["age"], shoal.Attribute(JOB, "nominal")))
    release = protect(table(columns(), "pyarrow"), "mdav-dp", without, seed=None)
    assert not release.statement.publishable
    of_type, of_values = release.statement.data_dependent
    assert f"types inferred from the records: {JOB} " in of_type
    assert f"the values of column '{JOB}' were taken from the records" in of_values
    assert release.statement.attributes[JOB]["lo"] == "taken from the data"
    folder = release.save(tmp_path / "out")
    recipe = (folder / "method.toml").read_text("utf-8")
    assert "clerk" not in recipe
    assert "clerk" not in (folder / "statement.json").read_text("utf-8")
    assert "| taken from the data |" in release.statement.to_markdown()


def test_a_truth_value_shows_its_domain_by_its_type() -> None:
    release = protect(table(columns(), "polars"), "laplace", small("age", "smokes"), seed=None)
    assert release.statement.publishable
    assert release.statement.attributes["smokes"]["domain"] == "2 values"


def test_a_column_named_without_values_is_taken_and_tainted() -> None:
    data = table({"town": ["A", "B"] * 20, "age": [30, 40] * 20}, "pyarrow")
    left = shoal.protect(data, method="laplace", epsilon=1, domains={"age": (0, 99)})
    assert left.data.column_names == ["age"]
    assert any("'town' is not released: its values are not declared" in note for note in left.notes)
    named = shoal.protect(
        data, method="laplace", epsilon=1, columns=["age", "town"], domains={"age": (0, 99)}
    )
    assert named.data.column_names == ["town", "age"]
    assert not named.statement.publishable
    listed = shoal.protect(
        data, method="laplace", epsilon=1, domains={"age": (0, 99), "town": ["A", "B", "C"]}
    )
    assert listed.statement.publishable


@every_library
def test_a_value_outside_the_domain_is_named_with_its_row(library: str) -> None:
    data = columns()
    data[JOB][16] = "farmr"
    with pytest.raises(InputError, match=r"job</b>, main', row 17: 'farmr' .* Did you mean 'farmer'\?"):
        protect(table(data, library), "mdav-dp")
    data = columns()
    data[JOB][4] = "office"
    with pytest.raises(InputError, match="row 5: 'office' is a group of the taxonomy"):
        protect(table(data, library), "laplace")


@every_method
def test_a_column_of_one_value_is_released_as_it_is(method: str) -> None:
    data = table({"planet": ["earth"] * 60, "age": columns(60)["age"]}, "pyarrow")
    release = protect(
        data,
        method,
        small("planet", "age"),
        columns=["planet", "age"],
        **({} if method in ("laplace", "tree-dp") else {"k": 10}),
    )
    assert set(values_of(release.data, "planet")) == {"earth"}
    alone = protect(data, method, small("planet"), **({} if method in ("laplace", "tree-dp") else {"k": 10}))
    assert set(values_of(alone.data, "planet")) == {"earth"}


@pytest.mark.parametrize(
    ("values", "kind", "type"),
    [
        ([True, None, False], bool, "boolean"),
        ([3, None, 5], int, "Int64"),
        (["a", None, "b"], str, str(pd.Series(["a"]).dtype)),
        (["a", None, 3], str, str(pd.Series(["a"]).dtype)),
    ],
)
def test_columns_of_python_objects_are_released_as_their_values_are(
    values: list[Any], kind: type, type: str
) -> None:
    frame = pd.DataFrame({"x": pd.Series(values * 20, dtype=object)})
    of = shoal.Schema.from_dict(
        {"attribute": [{"name": "x", "values": [str(v) for v in values if v is not None]}]}
    )
    release = shoal.protect(frame, of, "laplace", epsilon=3, seed=1, missing="category")
    assert str(release.data["x"].dtype) == type
    assert {value.__class__ for value in values_of(release.data, "x") if value is not None} == {kind}


def test_categories_of_numbers_come_back_as_numbers() -> None:
    frame = pd.DataFrame({"code": pd.Categorical([11, 12, 21, 22] * 10)})
    release = shoal.protect(frame, small("code"), "laplace", epsilon=1, seed=1)
    assert release.data.dtypes["code"] == frame.dtypes["code"]
    assert set(values_of(release.data, "code")) <= set(CODES)


def test_truth_values_may_be_spelled_otherwise() -> None:
    of = shoal.Schema.from_dict({"attribute": [{"name": "smokes", "values": ["false", "true"]}]})
    data = columns()
    release = shoal.protect(table({"smokes": data["smokes"]}, "polars"), of, "laplace", epsilon=100, seed=1)
    assert sorted(values_of(release.data, "smokes")) == sorted(data["smokes"])


def test_large_whole_numbers_are_no_powers_of_ten() -> None:
    """Some libraries store whole numbers with gaps as floats, whose short text would lose digits."""
    frame = pd.DataFrame({"code": [1234567.0, None, 1234568.0] * 10})
    of = shoal.Schema.from_dict({"attribute": [{"name": "code", "values": [1234567, 1234568]}]})
    release = shoal.protect(frame, of, "laplace", epsilon=1, seed=1, missing="category")
    assert set(values_of(release.data, "code")) == {1234567.0, 1234568.0, None}


def test_a_value_named_like_the_root_of_flat_names_is_a_value() -> None:
    of = shoal.Schema.from_dict({"attribute": [{"name": "x", "values": ["*", "a"]}]})
    release = shoal.protect(pa.table({"x": ["*", "a"] * 10}), of, "laplace", epsilon=100, seed=1)
    assert sorted(values_of(release.data, "x")) == ["*"] * 10 + ["a"] * 10


def test_unlinked_columns_are_shuffled_by_themselves() -> None:
    data = {"smokes": [True] * 20 + [False] * 20, "code": [11] * 20 + [22] * 20}
    release = protect(
        table(data, "pyarrow"), "ranking-dp", small("smokes", "code"), epsilon=10**4, k=5, link=False
    )
    pairs = set(zip(values_of(release.data, "smokes"), values_of(release.data, "code"), strict=True))
    assert len(pairs) == 4


def test_box_noise_and_other_partitions_refuse_names() -> None:
    with pytest.raises(
        OptionError, match="noise 'box' supports ordered columns only, and 'smokes' is nominal"
    ):
        protect(table(columns(), "pyarrow"), "mdav-dp", noise="box")
    with pytest.raises(OptionError, match="vmdav supports ordered columns only"):
        protect(table(columns(), "pyarrow"), "mdav-dp", partition="vmdav")


def test_reports_show_names_and_escape_them(tmp_path: Path) -> None:
    # names by taxonomy are wide: they get most of ε, so that the likeliest one stays on the page
    release = protect(
        table(columns(gaps=[JOB]), "pyarrow"), "mdav-dp", missing="category", split="proportional"
    )
    evaluation = shoal.evaluate(table(columns(gaps=[JOB]), "pyarrow"), release)
    release.save(tmp_path / "out", tmp_path / "internal.html", evaluation=evaluation)
    for page in (tmp_path / "out" / "report.html", tmp_path / "internal.html"):
        text = page.read_text("utf-8")
        assert "clerk" in text
        assert "6 values of a taxonomy with 9 concepts" in text
        assert "<b>job</b>" not in text
        assert "&lt;b&gt;job&lt;/b&gt;" in text


@every_method
@pytest.mark.parametrize("missing", ["error", "category"])
def test_mixed_releases_can_be_measured(method: str, missing: str) -> None:
    data = columns(gaps=[JOB, "code"] if missing == "category" else [])
    frame = table(data, "polars")
    release = protect(frame, method, missing=missing)
    measured = shoal.evaluate(frame, release)
    json.dumps(measured.to_dict())
    assert str(measured)


def test_generalised_releases_can_be_measured() -> None:
    frame = table({name: columns()[name] for name in (JOB, "age")}, "polars")
    release = protect(frame, "mdav-dp", small(JOB, "age"), epsilon="0.1", generalise=True)
    json.dumps(shoal.evaluate(frame, release).to_dict())


class Watched:
    """Runs a method without noise and keeps the sums and counts that noise would have covered, with their scales."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, factor: int) -> None:
        from shoal.mechanisms import clusters
        from shoal.mechanisms import clusters as mask

        self.seen: list[tuple[str, Any, Any]] = []
        real = mask.mask_group

        def quiet(scale: Any, size: Any = None, source: Any = None) -> Any:
            self.scale = scale
            return np.zeros(size, dtype=np.int64)

        def counted(
            labels: Any, codes: Any, number: int, tree: Any, epsilon: Fraction, source: Any, **how: Any
        ) -> Any:
            counts = np.zeros((number, tree.size), dtype=np.int64)
            np.add.at(counts, (labels, codes), 1)
            self.seen.append(("concepts", counts, (tree, epsilon * factor, how)))
            return np.full(number, tree.domain[0])

        def watching(group: Any, *arguments: Any) -> Any:
            masked = real(group, *arguments)
            for number in group.ordered:
                steps = group.lattices[number].steps
                share = arguments[1][group.columns[number]]
                self.seen.append(("sums", masked.summaries[number], steps / share / factor))
            return masked

        monkeypatch.setattr("shoal.noise.families.discrete_laplace", quiet)
        monkeypatch.setattr(mask, "categorical_centroids", counted)
        monkeypatch.setattr(clusters, "mask_group", watching)

    def run(self, work: Callable[[], Any]) -> list[tuple[str, Any, Any]]:
        self.seen = []
        work()
        return self.seen


def loss(one: list[tuple[str, Any, Any]], other: list[tuple[str, Any, Any]]) -> float:
    """The largest log-ratio of the probabilities of any release, if noise is as large as the method says."""
    from shoal.noise.choice import centroid_probabilities

    total = 0.0
    for (kind, mine, facts), (_, theirs, same) in zip(one, other, strict=True):
        assert facts == same
        if kind == "sums":
            total += float(np.abs(mine - theirs).sum() / facts)
            continue
        tree, epsilon, how = facts
        for here, there in zip(mine, theirs, strict=True):
            chances = [centroid_probabilities(counts, tree, epsilon, **how) for counts in (here, there)]
            possible = chances[0] > 0
            total += float(np.abs(np.log(chances[0][possible] / chances[1][possible])).max())
    return total


WORLD = {"age": [0, 3, 3, 9, 10, 10], "job": ["clerk", "clerk", "fisher", "farmer", "none", "manager"]}
WORLD_DOMAINS = {"age": (0, 10), "job": shoal.Taxonomy.from_dict(JOBS)}


def neighbours_of_world() -> list[dict[str, list[Any]]]:
    found = []
    for row in range(6):
        for age in (0, 10):
            for job in VALUES_OF_JOB:
                other = {name: list(values) for name, values in WORLD.items()}
                other["age"][row], other["job"][row] = age, job
                found.append(other)
    return found


def worst_loss(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    names: tuple[str, ...],
    *,
    frozen: bool,
    factor: int = 1,
    **more: Any,
) -> float:
    from shoal.progress import silent

    watched = Watched(monkeypatch, factor)
    domains = {name: WORLD_DOMAINS[name] for name in names}

    def prepared(world: dict[str, list[Any]]) -> Any:
        frame = pa.table({name: world[name] for name in names})
        return prepare(read(frame), method=method, epsilon="1.5", seed=1, domains=domains, **more)

    start = prepared(WORLD)
    clusters = start.method.freeze(start.described, start.plan, silent) if frozen else None

    def seen(world: dict[str, list[Any]]) -> list[tuple[str, Any, Any]]:
        one = prepared(world)
        if clusters is None:
            return watched.run(lambda: one.method.run(one.described, one.plan, one.account(), silent))
        return watched.run(
            lambda: one.method.run_frozen(one.described, one.plan, one.account(), silent, clusters)
        )

    first = seen(WORLD)
    return max(loss(first, seen(world)) for world in neighbours_of_world())


@pytest.mark.parametrize(
    ("method", "names", "frozen", "more"),
    slow_ones(
        [
            ("laplace", ("age", "job"), False, {}),
            ("mdav-dp", ("age", "job"), True, {"k": 2}),
            ("mdav-dp", ("age", "job"), True, {"k": 2, "generalise": True}),
            ("mdav-dp", ("age", "job"), True, {"k": 3, "split": {"age": 1, "job": 4}}),
            ("ranking-dp", ("job",), True, {"k": 2}),
            ("ranking-dp", ("age", "job"), True, {"k": 3}),
            ("insensitive-dp", ("age", "job"), False, {"k": 2}),
            ("insensitive-dp", ("age", "job"), False, {"k": 3, "generalise": True}),
            ("insensitive-dp", ("job",), False, {"k": 2}),
        ],
        2,
        3,
        5,
        7,
    ),
)
def test_no_release_loses_more_than_epsilon(
    method: str, names: tuple[str, ...], frozen: bool, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All neighbours of a small world, in the view that the model speaks of: the code itself is run, noise aside."""
    worst = worst_loss(monkeypatch, method, names, frozen=frozen, **more)
    assert 0.3 < worst <= 1.5 * (1 + 1e-9)


@pytest.mark.parametrize(("method", "frozen"), [("mdav-dp", True), ("insensitive-dp", False)])
def test_shares_twice_as_large_would_be_noticed(
    method: str, frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worst_loss(monkeypatch, method, ("age", "job"), frozen=frozen, factor=2, k=2) > 1.5


def test_ranked_names_are_protected_given_the_clusters_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record that moves through all clusters changes each by one: with sums that adds up, with choices it grows."""
    more = {"k": 1, "epsilon": "1.5"}
    assert (
        shoal.protect(
            pa.table({"job": WORLD["job"]}),
            domains={"job": WORLD_DOMAINS["job"]},
            method="ranking-dp",
            **more,
        ).statement.model
        == "dp"
    )
    assert worst_loss(monkeypatch, "ranking-dp", ("job",), frozen=False, k=2) > 1.5


def test_dates_are_released_as_declared_where_a_library_has_several_types() -> None:
    days = pa.array(columns()["born"], pa.date32())
    for kind in (pa.date32(), pa.date64(), pa.timestamp("us"), pa.string()):
        frame = pa.table({"born": days.cast(kind)})
        for type, stored in ((None, pa.date32()), ("timestamp", pa.timestamp("ms")), ("text", pa.string())):
            of = small("born") if type is None else small("born").with_types({"born": type})
            release = protect(frame, "ranking-dp", of)
            assert release.data.schema == pa.schema({"born": stored})
            assert isinstance(values_of(release.data, "born")[0], datetime.date | str)


@pytest.mark.parametrize("kind", ["string[pyarrow]", "string[python]", object, "category"])
def test_every_kind_of_text_in_pandas_can_have_gaps(kind: Any) -> None:
    frame = pd.DataFrame({JOB: pd.array([*VALUES_OF_JOB, None] * 10, dtype="string").astype(kind)})
    release = protect(frame, "laplace", small(JOB), missing="category")
    assert release.data.dtypes[JOB].name == (
        "category" if kind == "category" else pd.Series(["a"]).dtype.name
    )
    assert set(values_of(release.data, JOB)) <= {*VALUES_OF_JOB, None}


def test_dates_with_gaps_of_pandas_stay_gaps() -> None:
    days = pd.Series([FIRST_DAY, None, FIRST_DAY, FIRST_DAY] * 10)
    for column in (
        pd.to_datetime(days),
        days.astype("date32[pyarrow]"),
        days.astype(str).where(days.notna()),
    ):
        frame = pd.DataFrame({"born": column, "age": [30] * 40})
        release = protect(frame, "ranking-dp", small("born", "age"), missing="separate", k=5)
        assert release.data.dtypes["born"] == "datetime64[s]"
        assert release.data["born"].isna().sum() == 10


def test_a_column_without_any_value_has_the_type_of_its_declared_values() -> None:
    data = pa.table({JOB: pa.nulls(20), "age": [30] * 20})
    released = protect(data, "laplace", small(JOB, "age"), missing="category").data
    assert released.schema.field(JOB).type == pa.string()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"values": ["a", ""]},
            "values contains an empty text: remove it, because an empty cell is a missing value",
        ),
        ({"values": ["a", "a "]}, "values contains a value twice"),
        ({"values": ["clerk", "managr"], "taxonomy": JOBS}, "'managr' is not in the taxonomy. Did you mean"),
        ({"kind": "numeric", "taxonomy": JOBS}, "values and taxonomy apply only to nominal columns"),
        ({"taxonomy": {}}, "the taxonomy is empty"),
        ({"values": "abc"}, "values must be a list of values"),
    ],
)
def test_schemas_that_do_not_fit_are_refused_with_the_column(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=f"column 'x': .*{words}"):
        shoal.Schema.from_dict({"attribute": [{"name": "x", **entry}]})
