"""tree-dp on ordinal and date columns: coding, round trips of types, statements and errors."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.cli.options import parse_domains
from shoal.errors import InputError, OptionError
from shoal.mechanisms.registry import load_recipe

LEVELS = ("none", "primary", "secondary", "degree")
FIRST = datetime.date(1950, 1, 1)


def columns(rows: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(2)
    return {
        "education": [LEVELS[i] for i in rng.choice(4, rows, p=[0.1, 0.2, 0.5, 0.2])],
        "birth": [FIRST + datetime.timedelta(days=int(d)) for d in rng.integers(0, 18_000, rows)],
        "income": rng.integers(0, 50_000, rows).tolist(),
    }


def schema(**changes: dict[str, Any]) -> shoal.Schema:
    entries = [
        {"name": "education", "kind": "ordinal", "ordered": list(LEVELS)},
        {"name": "birth", "kind": "date", "lo": "1950-01-01", "hi": "2005-12-31"},
        {"name": "income", "kind": "numeric", "lo": 0, "hi": 60_000},
    ]
    return shoal.Schema.from_dict(
        {"attribute": [entry | changes.get(entry["name"], {}) for entry in entries]}
    )


def protect(data: Any, declared: shoal.Schema | None = None, **options: Any) -> shoal.Release:
    return shoal.protect(
        data, declared or schema(), **{"method": "tree-dp", "epsilon": 1, "seed": 1, **options}
    )


def pandas_frame() -> pd.DataFrame:
    frame = pd.DataFrame(columns())
    frame["education"] = pd.Categorical(frame["education"], LEVELS, ordered=True)
    frame["birth"] = pd.to_datetime(frame["birth"])
    return frame


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(columns(), schema_overrides={"education": pl.Enum(LEVELS)})


def text_dates() -> pa.Table:
    data = columns()
    return pa.table({**data, "birth": [day.isoformat() for day in data["birth"]]})


FRAMES = {
    "pandas": pandas_frame,
    "polars": polars_frame,
    "arrow": lambda: pa.table(columns()),
    "text": text_dates,
}


@pytest.mark.parametrize("name", FRAMES)
def test_types_come_back_as_they_were(name: str) -> None:
    frame = FRAMES[name]()
    # dates as bounds declare dates: whoever wants texts back says so
    data = protect(frame, schema(birth={"type": "text"} if name == "text" else {})).data
    assert type(data) is type(frame)
    before, after = ((f.dtypes.to_dict() if name == "pandas" else f.schema) for f in (frame, data))
    assert before == after
    assert len(data) == 400


def test_texts_between_dates_come_back_as_dates() -> None:
    assert protect(text_dates()).data.schema == pa.table(columns()).schema


@pytest.mark.parametrize("name", FRAMES)
def test_values_are_those_of_the_declared_domain(name: str) -> None:
    data = protect(FRAMES[name]()).data
    assert set(
        data["education"].to_list() if name != "text" and name != "arrow" else data["education"].to_pylist()
    ) <= set(LEVELS)
    days = np.array(
        data["birth"].to_list() if name in ("pandas", "polars") else data["birth"].to_pylist(),
        dtype="datetime64[D]",
    )
    assert days.min() >= np.datetime64("1950-01-01")
    assert days.max() <= np.datetime64("2005-12-31")


def test_a_large_budget_shows_the_distributions() -> None:
    data, table = protect(pa.table(columns(3000)), epsilon=300).data, pa.table(columns(3000))
    for level in LEVELS:
        share = [t["education"].to_pylist().count(level) / 3000 for t in (table, data)]
        assert share[0] == pytest.approx(share[1], abs=0.03)
    middle = [
        np.median(np.array(t["birth"].to_pylist(), dtype="datetime64[D]").astype(int)) for t in (table, data)
    ]
    assert middle[0] == pytest.approx(middle[1], abs=200)


def test_statement_and_recipe_speak_of_labels_and_dates(tmp_path: Path) -> None:
    release = shoal.protect(pa.table(columns()), schema(), method="tree-dp", epsilon=1)
    facts = release.statement.attributes
    education = {"lo": "none", "hi": "degree", "step": "one place in the order"}
    birth = {"lo": "1950-01-01", "hi": "2005-12-31", "step": "1 day"}
    assert facts["education"] == {**education, "type": "text", "source": ""}
    assert facts["birth"] == {**birth, "type": "date", "source": ""}
    release.save(tmp_path / "out", tmp_path / "internal.html")
    assert 'lo = "1950-01-01"' in (tmp_path / "out" / "method.toml").read_text()
    assert "secondary" in (tmp_path / "out" / "report.html").read_text()
    again = shoal.protect(pa.table(columns()), **load_recipe(tmp_path / "out" / "method.toml"))
    assert again.statement == release.statement


def test_a_csv_file_goes_all_the_way(tmp_path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(text_dates(), tmp_path / "people.csv")
    release = protect(tmp_path / "people.csv")
    release.save(tmp_path / "out")
    again = csv.read_csv(tmp_path / "out" / "data.csv")
    assert set(again["education"].to_pylist()) <= set(LEVELS)


def test_dates_take_a_domain_without_a_schema() -> None:
    table = pa.table(columns()).select(["birth"])
    release = shoal.protect(
        table,
        method="tree-dp",
        epsilon=1,
        seed=1,
        domains={"birth": ("1950-01-01", datetime.date(2005, 12, 31))},
    )
    assert release.data.schema == table.schema


def test_domains_of_dates_on_the_command_line_stay_text() -> None:
    assert parse_domains(["birth=1950-01-01:2005-12-31"]) == {"birth": ("1950-01-01", "2005-12-31")}


def test_integers_can_be_ordinal() -> None:
    table = pa.table({"grade": [1, 2, 3, 5] * 20})
    graded = shoal.Schema.from_dict(
        {"attribute": [{"name": "grade", "kind": "ordinal", "ordered": [1, 2, 3, 5]}]}
    )
    release = shoal.protect(table, graded, method="tree-dp", epsilon=50, seed=1)
    assert release.data.schema == table.schema
    assert set(release.data["grade"].to_pylist()) <= {1, 2, 3, 5}


@pytest.mark.parametrize(
    "name", ["laplace", "mdav-dp", "ranking-dp", "optimal-dp", "idp-ls", "insensitive-dp"]
)
def test_other_methods_take_orders_and_dates_too(name: str) -> None:
    table = pa.table(columns())
    k = {} if name == "laplace" else {"k": 25}
    release = shoal.protect(table, schema(), method=name, epsilon=1, seed=1, **k)
    assert release.data.schema == table.schema
    assert set(release.data["education"].to_pylist()) <= set(LEVELS)


def test_a_method_for_numbers_leaves_them_out_and_says_so() -> None:
    release = shoal.protect(pa.table(columns()), schema(), method="xm-1", epsilon=1, k=100, seed=1)
    assert release.data.column_names == ["income"]
    assert any("it is ordinal, but this method takes numeric columns" in note for note in release.notes)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"education": ["degre"] * 400},
            "row 1, which its declared order does not include.*Did you mean 'degree'",
        ),
        ({"birth": ["1980-01-01"] * 3 + ["soon"] * 397}, "row 4 holds 'soon'"),
        ({"birth": [1] * 400}, "declared as date, but row 1 holds '1'"),
        ({"education": [None, *["degree"] * 399]}, "missing values, the first in row 1:"),
        ({"birth": [datetime.date(1949, 12, 31)] * 400}, "some values of column 'birth' lie outside"),
    ],
)
def test_values_that_do_not_fit_are_named(changed: dict[str, list[Any]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        protect(pa.table(columns() | changed))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"birth": {"lo": "1950-13-01"}}, "must be a valid calendar date"),
        ({"birth": {"lo": "soon"}}, "must be a date such as 1984-05-31"),
        ({"education": {"ordered": ["a", "b", "a"]}}, "ordered contains a value twice"),
    ],
)
def test_schemas_that_do_not_fit_are_named(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        schema(**changed)


def test_a_column_without_an_order_is_left_out_unless_asked_for() -> None:
    plain = schema(education={"ordered": []})
    release = shoal.protect(pa.table(columns()), plain, method="tree-dp", epsilon=1, seed=1)
    assert "education" not in release.data.column_names
    with pytest.raises(OptionError, match="its order is not declared"):
        shoal.protect(pa.table(columns()), plain, method="tree-dp", epsilon=1, columns=["education"])
