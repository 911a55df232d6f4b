"""Office files: titles above the header, parts of sheets, archives, codes for missing values."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app
from shoal.columns.declaration import read_declared
from shoal.columns.draft import role_of
from shoal.errors import InputError, OptionError
from shoal.io import read


def workbook(path: Path, rows: list[list[Any]]) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


TITLED = [
    ["Visits of 2025", None, None, None],
    [None, None, None, None],
    [None, "age", "pay", "total"],
    [None, 31, 200, "#REF!"],
    [None, 45, 300, None],
    [None, "sum", 500, None],
]


def test_the_row_of_names_of_a_sheet_can_be_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "visits.xlsx", [["Visits of 2025"], [], ["age", "pay"], [31, 200], [45, 300]])
    table = read(path, conventions={"header_row": 3})
    assert table.names == ("age", "pay")
    assert table.series("pay").to_list() == [200, 300]


def test_a_range_of_cells_leaves_out_titles_sums_and_broken_cells_beside_it(tmp_path: Path) -> None:
    path = workbook(tmp_path / "visits.xlsx", TITLED)
    table = read(path, conventions={"range": "b3:C5"})
    assert (table.names, table.series("age").to_list()) == (("age", "pay"), [31, 45])
    with pytest.raises(InputError, match=r"cell D4 of sheet 'Sheet' holds the error #REF!"):
        read(path, conventions={"range": "B3:D5"})


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"range": "B3-C5"}, "range must have the form B4:F200"),
        ({"range": "C5:B3"}, "ends before it begins"),
        ({"header_row": 0}, "header_row must be a positive integer"),
        ({"header_row": 3, "range": "B3:C5"}, "leave out header_row"),
    ],
)
def test_a_range_or_row_that_makes_no_sense_is_one_line(told: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        read("never-read.xlsx", conventions=told)


def test_lines_above_the_header_of_a_text_file_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text('Visits; 2025, all\nmade by "us"\nage,pay,town\n31,200,"A, B"\n45,300,C\n')
    table = read(path, conventions={"header_row": 3})
    assert table.names == ("age", "pay", "town")
    assert table.series("town").to_list() == ["A, B", "C"]
    with pytest.raises(InputError, match="has no row 9"):
        read(path, conventions={"header_row": 9})


def test_the_command_line_takes_both(tmp_path: Path) -> None:
    path = workbook(tmp_path / "visits.xlsx", TITLED)
    done = CliRunner().invoke(app, ["schema", str(path), "--range", "B3:C5"])
    assert done.exit_code == 0, done.output
    assert 'name = "pay"' in done.output
    assert 'range = "B3:C5"' in done.output


def zipped(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_an_archive_with_one_table_is_read(tmp_path: Path) -> None:
    parts = {"out/people.csv": b"age;pay\n31;2,5\n", "__MACOSX/._people.csv": b"?", "out/.DS_Store": b"?"}
    table = read(zipped(tmp_path / "people.zip", parts), conventions={"decimal": ","})
    assert table.series("pay").to_list() == [2.5]
    lines = zipped(tmp_path / "lines.zip", {"people.jsonl": b'{"age": 31}\n'})
    assert read(lines).series("age").to_list() == [31]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"a.csv": b"x\n1\n", "b.csv": b"x\n1\n"}, "contains 2 files, but a single table is needed"),
        ({}, "contains 0 files"),
        ({"a.parquet": b"?"}, "does not contain a CSV, TSV or JSON lines file"),
        ({"a.csv.gz": b"?"}, "does not contain a CSV, TSV or JSON lines file"),
    ],
)
def test_any_other_archive_is_one_line(parts: dict[str, bytes], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read(zipped(tmp_path / "a.zip", parts))


def test_an_archive_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"x\n" + b"1\n" * 80_000_000)
    with pytest.raises(InputError, match="decompresses to more than"):
        read(path)


HOURS: dict[str, Any] = {"name": "hours", "type": "integer", "lo": 0, "hi": 80, "missing": "category"}


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "csv"])
def test_codes_for_missing_values_belong_to_their_column(library: str, tmp_path: Path) -> None:
    table = pa.table({"hours": [40, 99, -9, 12] * 25, "age": [99, 31, 45, 60] * 25})
    schema = shoal.Schema.from_dict(
        {"attribute": [{**HOURS, "na": [99, "-9"]}, {"name": "age", "type": "integer", "lo": 0, "hi": 120}]}
    )
    data: Any = table.to_pandas() if library == "pandas" else table
    if library == "csv":
        data = tmp_path / "people.csv"
        table.to_pandas().to_csv(data, index=False)
    before = read_declared(data, schema)
    assert before.series("hours").null_count() == 50
    assert before.series("age").null_count() == 0
    released = shoal.protect(data, schema, "tree-dp", epsilon=50, seed=1).data
    hours = pd.Series(
        released["hours"].to_pylist() if hasattr(released["hours"], "to_pylist") else released["hours"]
    )
    assert 20 < hours.isna().sum() < 80


def test_codes_are_kept_by_schema_files_and_recipes(tmp_path: Path) -> None:
    schema = shoal.Schema.from_dict({"attribute": [{**HOURS, "na": [99, -9]}]})
    schema.save(tmp_path / "people.toml")
    assert shoal.Schema.load(tmp_path / "people.toml")["hours"].na == ("99", "-9")
    frame = pd.DataFrame({"hours": [40, 99, -9, 12] * 25})
    shoal.protect(frame, schema, "tree-dp", epsilon=1).save(tmp_path / "out")
    again = shoal.Bundle.load(tmp_path / "out").schema
    assert again is not None
    assert again["hours"].na == ("99", "-9")


def test_codes_must_be_a_list_of_numbers_or_texts() -> None:
    for wrong in (99, "99", [None], [True]):
        with pytest.raises(OptionError, match="column 'hours': na"):
            shoal.Schema.from_dict({"attribute": [{**HOURS, "na": wrong}]})


@pytest.mark.parametrize(("codes", "hinted"), [([99, 98], True), ([-9, 99], True), ([99, 120], False)])
def test_values_outside_a_range_that_look_like_codes_are_called_so(codes: list[int], hinted: bool) -> None:
    frame = pd.DataFrame({"hours": [40, 12, *codes] * 25})
    with pytest.raises(InputError) as told:
        shoal.protect(frame, epsilon=1, domains={"hours": (0, 80)}, types={"hours": "integer"})
    assert ("list them as na of column 'hours'" in str(told.value)) is hinted
    assert "98" not in str(told.value)
    assert "120" not in str(told.value)


def test_one_entry_describes_columns_that_are_counted() -> None:
    schema = shoal.Schema.from_dict(
        {
            "attribute": [
                {"names": "Q008 to Q011", "lo": 1, "hi": 5},
                {"names": ["a1 to a2", "age"], "lo": 0, "hi": 9},
            ]
        }
    )
    assert schema.names == ("Q008", "Q009", "Q010", "Q011", "a1", "a2", "age")
    assert {a.hi for a in schema.attributes[:4]} == {5}


@pytest.mark.parametrize("names", ["Q9 to Q3", "Q1 to R9", "Q1 to Q999999", 7])
def test_a_pattern_that_names_no_columns_is_one_line(names: object) -> None:
    with pytest.raises(OptionError):
        shoal.Schema.from_dict({"attribute": [{"names": names, "lo": 0, "hi": 1}]})


def test_counted_columns_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    frame = pd.DataFrame({f"Q{number:03d}": np.arange(60) % 5 + 1 for number in range(1, 5)})
    frame.to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "answers.toml").write_text(
        '[[attribute]]\nnames = "Q001 to Q004"\ntype = "integer"\nlo = 1\nhi = 5\n'
    )
    asked = [
        "protect",
        str(tmp_path / "answers.csv"),
        "--schema",
        str(tmp_path / "answers.toml"),
        "--epsilon",
        "5",
    ]
    done = CliRunner().invoke(app, [*asked, "--columns", "Q002 to Q003", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "data.csv").read_text().splitlines()[0] == '"Q002","Q003"'


def test_codes_are_truncated_to_their_first_characters() -> None:
    values = ["E10.1", "E10.2", "E11.0", "I21.9"]
    attribute = {
        "name": "diagnosis",
        "type": "text",
        "values": values,
        "source": "law",
        "role": "quasi-identifier",
    }
    schema = shoal.Schema.from_dict(
        {"attribute": [attribute], "step": [{"truncate": "diagnosis", "length": 3, "source": "law"}]}
    )
    assert schema.stepped["diagnosis"].values == ("E10", "E11", "I21")
    frame = pd.DataFrame({"diagnosis": [*values, None] * 20})
    read_back = read_declared(pa.Table.from_pandas(frame), schema)
    assert read_back.series("diagnosis").to_list()[:5] == ["E10", "E10", "E11", "I21", None]
    statement = shoal.protect(frame.dropna(), schema, "tree-dp", epsilon=1).statement
    assert "Codes of column diagnosis are truncated to their first 3 characters." in " ".join(statement.steps)
    assert shoal.Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("attribute", "step", "words"),
    [
        ({"lo": 0, "hi": 9}, {"length": 1}, "this step applies to codes, but the column is numeric"),
        ({"values": ["a1", "a2"]}, {"length": 1}, "a single code for all values carries no information"),
        ({"values": ["a1", "b2"]}, {"length": 0}, "length must be a positive integer"),
        ({"values": ["a1", "b2"]}, {"level": 1}, "unknown parameter 'level' for this step"),
        ({"taxonomy": {"all": ["a1", "b2"]}}, {"length": 1}, "a column with a taxonomy cannot be truncated"),
    ],
)
def test_a_truncation_that_makes_no_sense_is_one_line(attribute: Any, step: Any, words: str) -> None:
    raw = {"attribute": [{"name": "x", **attribute}], "step": [{"truncate": "x", **step}]}
    with pytest.raises(OptionError, match=words):
        shoal.Schema.from_dict(raw).stepped.names  # noqa: B018


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("pairs-dp", {"epsilon": 5}),
        ("tree-dp", {"epsilon": 5}),
        ("ranking-dp", {"epsilon": 5, "k": 5}),
        ("mdav-dp", {"epsilon": 5, "k": 3}),
        ("suppress", {"k": 3}),
    ],
)
def test_one_policy_for_missing_values_serves_dp_and_classical_methods(
    method: str, asked: dict[str, Any]
) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"age": rng.integers(20, 60, 300).astype(float), "town": rng.choice(["A", "B"], 300)}
    )
    frame.loc[rng.random(300) < 0.2, "age"] = np.nan
    frame.loc[rng.random(300) < 0.2, "town"] = None
    attributes = [
        {"name": "age", "role": "quasi-identifier", "type": "integer", "lo": 0, "hi": 99, "missing": "keep"},
        {"name": "town", "role": "quasi-identifier", "type": "text", "values": ["A", "B"], "missing": "keep"},
    ]
    schema = shoal.Schema.from_dict({"attribute": attributes})
    release = shoal.protect(frame, schema, method, seed=1, **asked)
    assert release.data.isna().sum().min() > 0
    assert release.statement.data_dependent == ()


def test_a_method_without_a_place_for_gaps_refuses_them_under_the_same_policy() -> None:
    frame = pd.DataFrame({"age": [31.0, None, 45.0, 60.0] * 10})
    schema = shoal.Schema.from_dict({"attribute": [{"name": "age", "lo": 0, "hi": 99, "missing": "keep"}]})
    with pytest.raises(InputError, match="column 'age' has missing values"):
        shoal.protect(frame, schema, "insensitive-dp", epsilon=1, k=2)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Geburtsdatum", "quasi-identifier"),
        ("Geschlecht", "quasi-identifier"),
        ("âge", "quasi-identifier"),
        ("département", "quasi-identifier"),
        ("edad", "quasi-identifier"),
        ("sesso", "quasi-identifier"),
        ("profissão", "quasi-identifier"),
        ("geboortejaar", "quasi-identifier"),
        ("płeć", "quasi-identifier"),
        ("Nachname", "identifier"),
        ("prénom", "identifier"),
        ("apellidos", "identifier"),
        ("nome", "identifier"),
        ("nazwisko", "identifier"),
        ("achternaam", "identifier"),
        ("ponderación", "weight"),
        ("nombre d'enfants", "confidential"),
        ("peso", "confidential"),
    ],
)
def test_roles_follow_words_of_large_european_languages(name: str, role: str) -> None:
    assert role_of(name, "numeric") == role


def test_remarks_and_codes_of_something_named_are_not_drafted_as_persons() -> None:
    frame = pa.table(
        {
            "remarks": ["none", "late", "called twice", "none"] * 20,
            "party": [f"P{number % 25:03d}" for number in range(80)],
            "patient_id": [f"A{number // 2:04d}" for number in range(80)],
        }
    )
    roles = {a.name: a.role for a in shoal.Schema.draft(frame).attributes}
    assert roles == {"remarks": "identifier", "party": "identifier", "patient_id": "unit"}
