"""Types, steps, sources and released columns are declared, or the statement says that they are data-dependent."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
from pyarrow import feather, parquet

import shoal
from shoal.cli import run
from shoal.columns.schema import draft_text
from shoal.errors import InputError, LeftOutWarning, OptionError
from shoal.io import read
from shoal.query.facts import DatasetFacts
from shoal.query.facts import prepare as prepare_queries
from shoal.text import Message

FIXED = str(Message("rests-on-declarations"))


def csv_of(path: Path, **columns: list[Any]) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def of(**facts: dict[str, Any]) -> shoal.Schema:
    return shoal.Schema.from_dict({"attribute": [{"name": name, **entry} for name, entry in facts.items()]})


HALVES = {"lo": 0, "hi": 20, "step": "0.5"}


def has_fractions(data: Any) -> bool:
    values = np.asarray(data["x"].to_pylist(), dtype=float)
    return bool((values != np.rint(values)).any())


@pytest.mark.parametrize("last", [6, 6.5])
def test_a_declared_column_is_released_in_its_type_whatever_the_last_record_is(
    last: float, tmp_path: Path
) -> None:
    path = csv_of(tmp_path / "t.csv", x=[1, 4, 9, 2, last])
    decimal = of(x={"type": "decimal", "decimals": 1, **HALVES})
    released = [shoal.protect(path, decimal, "laplace", epsilon=1) for _ in range(30)]
    assert all(str(release.data["x"].type) == "double" for release in released)
    assert any(has_fractions(release.data) for release in released)
    assert released[0].statement.publishable
    assert FIXED in released[0].statement.conditions
    assert released[0].statement.attributes["x"]["type"] == "decimal, 1 decimal"


def forms(path: Path, **columns: list[Any]) -> list[Any]:
    """One table in every library and in every kind of file that stores types, or none."""
    path.mkdir()
    table = pa.table(columns)
    parquet.write_table(table, path / "t.parquet")
    feather.write_feather(table, path / "t.feather")
    frames = [pd.DataFrame(columns), pl.DataFrame(columns, strict=False), table]
    return [*frames, path / "t.parquet", path / "t.feather", csv_of(path / "t.csv", **columns)]


def test_a_type_that_nobody_declared_taints_and_is_not_told_whatever_stores_it(tmp_path: Path) -> None:
    undeclared = of(x={"lo": 0, "hi": 20, "type": "integer", "source": {"type": "these records"}})
    for data in forms(tmp_path / "t", x=[1, 4, 9, 2]):
        release = shoal.protect(data, undeclared, "laplace", epsilon=1)
        assert not release.statement.publishable
        assert "types inferred from the records: x" in release.statement.data_dependent[0]
        assert FIXED not in release.statement.conditions
        assert release.statement.attributes["x"]["type"] == "taken from the data"
        assert release.statement.attributes["x"]["step"] == "taken from the data"
        guessed = shoal.protect(data, method="laplace", epsilon=1, domain_from_data="1.5", columns=["x"])
        assert "types inferred from the records: x" in str(guessed.statement.data_dependent)


def form_of(data: Any) -> str:
    return str(data.schema if hasattr(data, "schema") else dict(data.dtypes))


@pytest.mark.parametrize(
    ("declared", "lasts"),
    [
        ({"lo": 0, "hi": 9, "missing": "category"}, [3, None]),
        ({"lo": 0, "hi": 9, "type": "decimal", "decimals": 1}, [3, 3.5]),
        ({"lo": 0.0, "hi": 9.0}, [3, 3.5]),
        ({"lo": "0.00", "hi": "9.00"}, [3, 3.5]),
        ({"lo": 0, "hi": 9, "step": "0.5"}, [3, 3.5]),
        ({"values": ["1", "2", "3"], "missing": "category"}, [3, None]),
        ({"ordered": ["1", "2", "3"], "missing": "category"}, [3, None]),
        ({"values": ["1", "2", "3", "3.5"]}, [3, 3.5]),
    ],
)
def test_neighbours_are_released_in_one_form_with_one_statement(
    declared: dict[str, Any], lasts: list[Any], tmp_path: Path
) -> None:
    """The rule of the frame libraries: one gap, or one fraction, turns a column of whole numbers into another."""
    stores = [forms(tmp_path / str(last), x=[1, 2, 3, last]) for last in lasts]
    for pair in zip(*stores, strict=True):
        released = [shoal.protect(data, of(x=declared), "laplace", epsilon=1) for data in pair]
        assert form_of(released[0].data) == form_of(released[1].data)
        statements = [json.dumps(release.statement.to_dict()) for release in released]
        assert statements[0] == statements[1]
        assert released[0].statement.publishable
        assert FIXED in released[0].statement.conditions


def test_a_folder_follows_the_declaration_as_a_table_in_memory_does(tmp_path: Path) -> None:
    forms_seen = set()
    for last in (3, 3.5):
        folder = tmp_path / f"in{last}"
        folder.mkdir()
        parquet.write_table(pa.table({"x": [1, 2, 3, last]}), folder / "a.parquet")
        parquet.write_table(pa.table({"x": [1, 2, 3, last]}), folder / "b.parquet")
        real = of(x={"lo": 0.0, "hi": 9.0})
        made = shoal.publish(folder, schema=real, method="laplace", epsilon=1, out=tmp_path / f"out{last}")
        assert made.release.statement.publishable
        forms_seen.add(str(parquet.read_schema(tmp_path / f"out{last}" / "data.parquet")))
        whole = of(x={"lo": 0, "hi": 9})
        if last == 3:
            made = shoal.publish(folder, schema=whole, method="laplace", epsilon=1, out=tmp_path / "whole")
            assert parquet.read_schema(tmp_path / "whole" / "data.parquet").field("x").type == pa.int64()
            assert made.release.statement.attributes["x"]["type"] == "integer"
            continue
        with pytest.raises(
            InputError, match=r"column 'x' holds '3.5' in row 4, but its bounds declare integers"
        ):
            shoal.publish(folder, schema=whole, method="laplace", epsilon=1, out=tmp_path / "refused")
        assert not (tmp_path / "refused").exists()
    assert forms_seen == {"x: double"}


@pytest.mark.parametrize(
    ("bounds", "type", "step"),
    [
        ((0, 10), "integer", "1"),
        (("0", "10"), "integer", "1"),
        ((Fraction(0), Decimal(10)), "integer", "1"),
        ((0, 9.75), "decimal, 2 decimals", "0.01"),
        (("0.00", "10.00"), "decimal, 2 decimals", "0.01"),
        ((Decimal("0.00"), Decimal("10.00")), "decimal, 2 decimals", "0.01"),
        ((0, Decimal("10.000")), "decimal, 3 decimals", "0.001"),
        ((0.0, 10.0), "decimal", "0.0000095367431640625"),
        (("0.0", "10.0"), "decimal", "0.0000095367431640625"),
        ((np.int64(0), np.float64(10)), "decimal", "0.0000095367431640625"),
    ],
)
def test_bounds_declare_the_type_by_the_way_they_are_written(
    bounds: Any, type: str, step: str, tmp_path: Path
) -> None:
    frame = pa.table({"x": [1, 2, 3, 4]})
    release = shoal.protect(frame, method="laplace", epsilon=1, domains={"x": bounds})
    assert release.statement.publishable
    assert release.statement.attributes["x"]["type"] == type
    assert float(release.statement.attributes["x"]["step"]) == float(step)
    assert release.data.schema.field("x").type == (pa.int64() if type == "integer" else pa.float64())
    if not any(isinstance(end, Fraction) for end in bounds):
        lo, hi = bounds
        written = of(x={"lo": lo, "hi": hi})
        written.save(tmp_path / "s.toml")
        assert shoal.Schema.load(tmp_path / "s.toml") == written
        same = shoal.protect(frame, written, "laplace", epsilon=1).statement
        assert same.attributes["x"]["type"] == type


@pytest.mark.parametrize(
    ("bounds", "cells", "said", "row"),
    [
        ((0, 10), [1, 2, 3.5], "integers", 3),
        (("0.00", "10.00"), [1.25, 2.125, 3], "2 decimals", 2),
        ((0, 9.5), [1.25, 2, 3], "1 decimal", 1),
    ],
)
def test_a_value_that_its_bounds_do_not_declare_is_refused_with_the_way_out(
    bounds: Any, cells: list[float], said: str, row: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for data in forms(tmp_path / "t", x=cells):
        arguments: Any = {"method": "laplace", "epsilon": 1, "domains": {"x": bounds}, "columns": ["x"]}
        with pytest.raises(InputError) as refused:
            shoal.protect(data, **arguments)
        assert refused.value.row == row
        assert f"column 'x' holds '{cells[row - 1]}' in row {row}, but its bounds declare {said}" in str(
            refused.value
        )
        assert 'types={"x": "decimal"}' in str(refused.value)
        release = shoal.protect(data, **arguments, types={"x": "decimal"})
        assert release.statement.publishable
    command = ["protect", str(tmp_path / "t" / "t.csv"), "--domain", f"x={bounds[0]}:{bounds[1]}"]
    command += ["--method", "laplace", "--epsilon", "1", "--columns", "x", "--out", str(tmp_path / "out")]
    assert run(command) == 2
    assert "--type 'x=decimal'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run([*command, "--type", "x=decimal"]) == 0


def test_sums_of_decimals_have_the_decimals_of_their_summands() -> None:
    frame = pd.DataFrame({"x": [0.1 + 0.2, 1e9 + 0.01, 0.07 * 100]})
    release = shoal.protect(frame, method="laplace", epsilon=1, domains={"x": ("0.00", "2000000000.00")})
    assert release.statement.publishable


@pytest.mark.parametrize("cell", ["1992-03-05 10:30:00", "1992-03-05T10:30", "1992-03-05"])
def test_one_cell_with_a_time_does_not_turn_dates_into_time_stamps(cell: str, tmp_path: Path) -> None:
    path = csv_of(tmp_path / "t.csv", d=["1990-01-01", "1991-01-01", cell])
    days = of(d={"kind": "date", "type": "date", "lo": "1980-01-01", "hi": "2000-12-31"})
    release = shoal.protect(path, days, "laplace", epsilon=1)
    assert str(release.data["d"].type) == "date32[day]"
    assert release.statement.publishable


def test_half_a_date_is_an_error_that_names_the_row(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "t.csv", d=["1990-01-01", "1991-01-01", "1992-03"])
    days = of(d={"kind": "date", "type": "date", "lo": "1980-01-01", "hi": "2000-12-31"})
    with pytest.raises(InputError, match="'d' is declared as date, but row 3 holds '1992-03'"):
        shoal.protect(path, days, "laplace", epsilon=1)


@pytest.mark.parametrize(
    ("type", "cells", "row"),
    [
        ("integer", ["1", "2", "6.5"], 3),
        ("integer", ["1", "many", "3"], 2),
        ("integer", ["99999999999999999999", "2", "3"], 1),
        ("decimal", ["1", "2,5", "3"], 2),
        ("boolean", ["true", "FALSE", "perhaps"], 3),
        ("date", ["19900101", "1990-01-01", "1990-01-01"], 1),
        ("timestamp", ["1990-01-01 10:00", "1990-13-01", "1990-01-01"], 2),
    ],
)
def test_a_cell_of_another_type_is_an_error_that_names_the_row(
    type: str, cells: list[str], row: int, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *(f"{cell};0" for cell in cells)]))
    with pytest.raises(InputError, match=f"column 'x' is declared as {type}, but row {row} holds"):
        read(tmp_path / "t.csv", types={"x": type})  # type: ignore[dict-item]


def test_declared_cells_are_read_as_a_person_means_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d,e\n 7 ,007,True,,1.50\n8.0,7,0,NA,\n,x,,1990-01-01 09:00,2\n")
    types: Any = {"a": "integer", "b": "text", "c": "boolean", "d": "timestamp", "e": "decimal"}
    table = read(tmp_path / "t.csv", types=types)
    assert table.inferred == frozenset()
    assert table.series("a").to_list() == [7, 8, None]
    assert table.series("b").to_list() == ["007", "7", "x"]
    assert table.series("c").to_list() == [True, False, None]
    assert [str(value) for value in table.series("d").to_list()] == ["None", "None", "1990-01-01 09:00:00"]
    assert table.series("e").to_list() == [1.5, None, 2.0]


TYPED = {
    "x": [1, 4, 9, 2],
    "y": [0.5, 1.0, 2.5, 3.0],
    "z": [0.5, 1.0, 2.5, 3.0],
    "job": ["a", "b", "a", "a"],
    "on": [True, False, True, True],
}
DOMAINS = {"x": (0, 10), "y": (0.0, 10.0), "z": (0, "9.5"), "job": ["a", "b"], "on": [False, True]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_with_domains_stays_publishable(make: Any) -> None:
    for method in ("laplace", "tree-dp"):
        release = shoal.protect(make(TYPED), method=method, epsilon="1", domains=DOMAINS)
        assert release.statement.data_dependent == ()
        assert release.statement.publishable
        assert FIXED in release.statement.conditions
        assert release.statement.attributes["x"]["step"] == "1"
        assert release.statement.attributes["job"]["type"] == "text"
    columns = shoal.protect(
        make(TYPED), method="mdav-dp", epsilon=1, k=2, columns=["x"], domains={"x": (0, 10)}
    )
    assert columns.statement.publishable


def test_a_column_of_objects_is_what_its_declared_values_are() -> None:
    gaps = pd.DataFrame({"on": pd.Series([True, False, None, True], dtype=object)})
    whole = pd.DataFrame({"on": pd.Series([True, False, True, True], dtype=object)})
    for frame in (gaps, whole):
        release = shoal.protect(
            frame, method="laplace", epsilon=1, domains={"on": [True, False]}, missing="category"
        )
        assert release.statement.publishable
        assert release.statement.attributes["on"] == {
            "domain": "3 values",
            "step": "",
            "type": "truth value",
            "source": "",
        }
        assert release.data["on"].dtype == "boolean"


def test_a_declared_type_wins_over_that_of_the_frame() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "y": [1, 2, 3]})
    declared = of(
        x={"type": "integer", "lo": 0, "hi": 9, "missing": "separate"},
        y={"type": "decimal", "decimals": 1, "lo": 0, "hi": 9},
    )
    release = shoal.protect(frame, declared, "xm-b1", k=1)
    assert str(release.data.dtypes["x"]) == "Int64"
    assert release.data.dtypes["y"] == np.float64
    with pytest.raises(InputError, match=r"'x' is declared as integer, but row 2 holds '2.5'"):
        shoal.protect(pd.DataFrame({"x": [1.0, 2.5]}), declared, "laplace", epsilon=1, columns=["x"])


def test_types_on_the_call_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = csv_of(tmp_path / "t.csv", x=[1, 4, 9], y=[1.25, 2.5, 3], note=["a", "b", "c"])
    domains = {"x": (0, 10), "y": (0, 10)}
    types = {"x": "integer", "y": "decimal:2"}
    release = shoal.protect(
        path, method="laplace", epsilon=1, domains=domains, types=types, columns=["x", "y"]
    )
    assert release.statement.publishable
    assert release.statement.attributes["y"]["step"] == "0.01"
    command = ["protect", str(path), "--domain", "x=0:10", "--domain", "y=0:10", "--columns", "x,y"]
    command += ["--method", "laplace", "--epsilon", "1"]
    assert run([*command, "--out", str(tmp_path / "untyped")]) == 2
    assert "column 'y' holds '1.25' in row 1" in capsys.readouterr().err
    typed = ["--type", "x=integer", "--type", "y=decimal:2", "--out", str(tmp_path / "typed")]
    assert run([*command, *typed]) == 0
    assert "Verdict: do not publish." not in capsys.readouterr().out
    for wrong in ("x", "x=whole", "z=integer", "y=decimal:two"):
        assert run([*command, "--type", wrong, "--out", str(tmp_path / "wrong")]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
        assert not (tmp_path / "wrong").exists()


def test_without_a_schema_the_set_of_columns_of_a_file_taints_and_what_is_left_out_is_said_loudly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = csv_of(tmp_path / "t.csv", x=[1, 4, 9], other=["1", "2", "b"])
    arguments: Any = {"method": "laplace", "epsilon": 1, "domains": {"x": (0, 10)}, "types": {"x": "integer"}}
    with pytest.warns(LeftOutWarning, match="did not release other"):
        release = shoal.protect(path, **arguments)
    assert not release.statement.publishable
    assert "the choice of released columns depends on types inferred from the records" in str(
        release.statement.data_dependent
    )
    named = shoal.protect(path, **arguments, columns=["x"])
    assert named.statement.publishable
    command = ["protect", str(path), "--domain", "x=0:10", "--type", "x=integer", "--method", "laplace"]
    assert run([*command, "--epsilon", "1", "--out", str(tmp_path / "out")]) == 0
    assert "shoal: note: column 'other' is not released" in capsys.readouterr().err


# sources


def test_every_public_fact_carries_its_source_and_these_records_taint(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 4, 9]})
    stated = shoal.protect(frame, of(x={"lo": 0, "hi": 10, "source": "law"}), "laplace", epsilon=1).statement
    assert stated.publishable
    assert stated.attributes["x"]["source"] == "law"
    assert "| law |" in stated.to_markdown()
    mixed = {"lo": 0, "hi": 10, "source": {"domain": "questionnaire", "type": "law"}}
    stated = shoal.protect(frame, of(x=mixed), "laplace", epsilon=1).statement
    assert stated.attributes["x"]["source"] == "type: law, domain: questionnaire"
    for source in ("these records", {"domain": "these records"}):
        release = shoal.protect(frame, of(x={"lo": 0, "hi": 10, "source": source}), "laplace", epsilon=1)
        assert not release.statement.publishable
        assert "domains inferred from the records: x" in str(release.statement.data_dependent)
        assert release.statement.attributes["x"]["lo"] == "taken from the data"
        release.save(tmp_path / str(len(str(source))))
        assert "lo =" not in (tmp_path / str(len(str(source))) / "method.toml").read_text()
    with pytest.raises(OptionError, match=r"source 'a hunch' is not one of questionnaire, law"):
        of(x={"source": "a hunch"})
    with pytest.raises(OptionError, match="source has the key 'domains', which is not one of"):
        of(x={"source": {"domains": "law"}})


def test_a_draft_has_types_steps_and_rows_per_person_and_is_not_confirmed(tmp_path: Path) -> None:
    path = csv_of(
        tmp_path / "t.csv",
        person_id=["a", "a", "b", "a"],
        age=[30, 40, 50, 60],
        rent=[100.25, 7.5, 3, 1],
        share=[1 / 3, 0.1, 0.2, 0.3],
        born=["1990-01-01"] * 4,
        town=["A", "B", "A", "A"],
        member=[True, False, True, True],
    )
    made = shoal.Schema.draft(path)
    assert (made["person_id"].role, made["person_id"].max_rows) == ("unit", 3)
    assert (made["age"].type, made["age"].step) == ("integer", 1)
    assert (made["rent"].type, made["rent"].decimals, made["rent"].step) == ("decimal", 2, Fraction(1, 100))
    assert (made["share"].type, made["share"].decimals) == ("decimal", None)
    assert [made[name].type for name in ("born", "town", "member")] == ["date", "text", "boolean"]
    assert 'source = "these records"' in draft_text(made)
    (tmp_path / "draft.toml").write_text(draft_text(made), "utf-8")
    assert shoal.Schema.load(tmp_path / "draft.toml") == made
    # filled in but not confirmed, then confirmed
    text = draft_text(made).replace("decimals = 2\n", "decimals = 2\nlo = 0\nhi = 1000\n")
    for confirmed in (False, True):
        (tmp_path / "s.toml").write_text(
            text.replace('"these records"', '"questionnaire"') if confirmed else text, "utf-8"
        )
        release = shoal.protect(
            path, shoal.Schema.load(tmp_path / "s.toml"), "laplace", epsilon=1, columns=["rent"]
        )
        assert release.statement.publishable is confirmed
        assert (
            any("maximum number of rows per unit" in entry for entry in release.statement.data_dependent)
            is not confirmed
        )


def test_what_is_inferred_from_a_table_is_known_from_these_records_until_it_is_declared(
    tmp_path: Path,
) -> None:
    for data in forms(tmp_path / "t", x=[1, 4, 9], on=[True, False, True]):
        inferred = shoal.Schema.infer(data)
        assert inferred["x"].source == {"kind": "these records", "type": "these records"}
        assert set(inferred["on"].from_records) == {"kind", "type", "domain"}
        # only its domain is declared, and what the type was is still known from the records
        half = replace(inferred["x"], lo=Fraction(0), hi=Fraction(10))
        release = shoal.protect(data, shoal.Schema((half,)), "laplace", epsilon=1)
        assert "types inferred from the records: x" in str(release.statement.data_dependent)
        declared = inferred.with_domains({"x": (0, 10), "on": [False, True]})
        assert shoal.protect(data, declared, "laplace", epsilon=1).statement.publishable


# what released numbers look like


@pytest.mark.parametrize(
    ("domain", "decimals"), [((0, 200), 2), ((0, 1), 4), ((-0.001, 0.001), 7), ((0, 2_000_000), 2)]
)
def test_computed_numbers_have_no_more_decimals_than_say_something(domain: Any, decimals: int) -> None:
    values = np.linspace(float(domain[0]), float(domain[1]), 50)
    arguments: Any = {"domains": {"x": domain}, "types": {"x": "decimal"}}
    release = shoal.protect(pd.DataFrame({"x": values}), method="laplace", epsilon=1, **arguments)
    found = release.data["x"].to_numpy()
    assert np.array_equal(found, np.round(found, decimals))
    assert found.min() >= domain[0]
    assert found.max() <= domain[1]
    assert all(len(repr(float(value))) < 16 for value in found)


def test_records_own_values_keep_their_decimals() -> None:
    values = np.random.default_rng(1).uniform(0, 1, 30)
    frame = pd.DataFrame({"x": values, "age": range(30)})
    release = shoal.protect(frame, of(x={}, age={"role": "quasi-identifier"}), "swap-ranking", k=3)
    assert sorted(release.data["x"]) == sorted(values)


# codes of statistics packages


@pytest.mark.parametrize("ending", ["dta", "sav"])
def test_codes_do_not_tell_which_values_occur(ending: str, tmp_path: Path) -> None:
    labels = {"q": {1: "no", 2: "yes"}}
    declared = of(q={"type": "text", "taxonomy": {"any": {"answered": ["no", "yes"], "other": ["3"]}}})
    books = []
    for codes in ([1, 2, 2, 1, 2, 1], [1, 2, 2, 1, 2, 3]):
        path = tmp_path / f"{codes[-1]}.{ending}"
        frame = pd.DataFrame({"q": np.array(codes, dtype="int32")})
        write = pyreadstat.write_dta if ending == "dta" else pyreadstat.write_sav
        write(frame, path, variable_value_labels=labels)
        release = shoal.protect(path, declared, "laplace", epsilon="0.1", generalise=True)
        assert release.statement.publishable
        out = release.save(tmp_path / f"out{codes[-1]}")
        reader = pyreadstat.read_dta if ending == "dta" else pyreadstat.read_sav
        _, meta = reader(out / f"data.{ending}", metadataonly=True)
        books.append(meta.variable_value_labels["q"])
    assert books[0] == books[1] == {1: "no", 2: "yes", 4: "answered", 5: "any", 6: "other"}


# metadata of frames


def test_unused_categories_are_not_published() -> None:
    names = ["clerk", "judge", "spy"]
    frame = pd.DataFrame({"job": pd.Categorical(["clerk", "judge"] * 5, categories=names)})
    declared = of(job={"values": ["judge", "clerk", "nurse"]})
    released = shoal.protect(frame, declared, "laplace", epsilon=1).data["job"]
    assert list(released.cat.categories) == ["judge", "clerk", "nurse"]
    declared = of(job={"values": ["judge", "clerk"]})
    assert list(shoal.protect(frame, declared, "laplace", epsilon=1).data["job"].cat.categories) == [
        "judge",
        "clerk",
    ]
    enum = pl.DataFrame({"job": pl.Series(["clerk", "judge"] * 5, dtype=pl.Enum(names))})
    assert shoal.protect(enum, declared, "laplace", epsilon=1).data.schema["job"] == pl.Enum(
        ["judge", "clerk"]
    )
    # without declared values the list is what was released
    plain = of(job={"kind": "nominal"}, age={"role": "quasi-identifier"})
    swapped = shoal.protect(frame.assign(age=range(10)), plain, "k-anonymity", k=2)
    assert set(swapped.data["job"].cat.categories) == {"clerk", "judge"}


def test_metadata_of_arrow_fields_is_not_published(tmp_path: Path) -> None:
    field = pa.field("x", pa.int64(), metadata={b"interviewer": b"Bob"})
    table = pa.table([[1, 4, 9]], schema=pa.schema([field], metadata={b"host": b"secret"}))
    release = shoal.protect(table, method="laplace", epsilon=1, domains={"x": (0, 10)})
    assert release.data.schema.metadata is None
    assert release.data.schema.field("x").metadata is None
    release.save(tmp_path / "out")
    assert b"Bob" not in (tmp_path / "out" / "data.parquet").read_bytes()
    parquet.write_table(table, tmp_path / "in.parquet")
    shoal.protect(tmp_path / "in.parquet", method="laplace", epsilon=1, domains={"x": (0, 10)}).save(
        tmp_path / "again"
    )
    assert b"Bob" not in (tmp_path / "again" / "data.parquet").read_bytes()


# the query server


def test_the_server_refuses_columns_whose_facts_come_from_the_records(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "t.csv", x=[1, 4, 9], y=[1, 2, 3], z=[1, 2, 3])
    declared = of(
        x={"lo": 0, "hi": 10},
        y={"type": "integer", "lo": 0, "hi": 10, "source": {"type": "these records"}},
        z={"type": "integer", "lo": 0, "hi": 10, "source": {"domain": "these records"}},
    )
    facts = prepare_queries(path, declared).facts
    assert [column["name"] for column in facts.describe()["columns"]] == ["x"]
    for name in ("y", "z"):
        with pytest.raises(OptionError, match=f"column '{name}' cannot be queried, because its type"):
            facts.lattice(name)
    assert DatasetFacts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    with pytest.raises(InputError, match="no column can be queried"):
        prepare_queries(path, of(y={}))


def test_the_description_of_a_served_column_does_not_follow_the_records(tmp_path: Path) -> None:
    declared = of(x={"type": "decimal", "decimals": 1, "lo": 0, "hi": 10})
    facts = [
        prepare_queries(csv_of(tmp_path / f"{last}.csv", x=[1, 4, last]), declared).facts.describe()
        for last in (6, 6.5)
    ]
    assert facts[0] == facts[1]
