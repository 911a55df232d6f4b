"""Six messy files, each taken by commands alone from the raw file to a bundle that may be published."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.cli import run

ROWS = 400
RNG = np.random.default_rng(11)


def register(folder: Path) -> str:
    """An old encoding, semicolons, decimal commas, dates with points, a title above the header."""
    lines = ["Melderegister der Gemeinde; Stand 31.12.2025;;", "alter;größe;geboren;ort"]
    for age in RNG.integers(18, 90, ROWS):
        height = f"{RNG.integers(1500, 2000) / 10:.1f}".replace(".", ",")
        lines.append(
            f"{age};{height};{RNG.integers(1, 29):02d}.05.{2025 - age};{RNG.choice(['Köln', 'Aßlar'])}"
        )
    (folder / "register.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    return """
[file]
encoding = "latin-1"
decimal = ","
header_row = 2

[[attribute]]
name = "alter"
type = "integer"
lo = 18
hi = 90
source = "law"

[[attribute]]
name = "größe"
type = "decimal"
decimals = 1
lo = 140
hi = 210
source = "common knowledge"

[[attribute]]
name = "geboren"
kind = "date"
format = "DD.MM.YYYY"
lo = "1934-01-01"
hi = "2008-12-31"
source = "law"

[[attribute]]
name = "ort"
type = "text"
values = ["Köln", "Aßlar"]
source = "law"
"""


def ward(folder: Path) -> str:
    """A sheet with a title, a table that begins in the middle, sums below it, and codes for diagnoses."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Ward 7", None, None, None])
    sheet.append([None, None, None, None])
    sheet.append([None, "age", "diagnosis", "days"])
    for _ in range(ROWS):
        code = str(RNG.choice(["E10.1", "E10.9", "E11.0", "I21.4"]))
        sheet.append([None, int(RNG.integers(18, 90)), code, int(RNG.choice([1, 3, 8, 99]))])
    sheet.append([None, "sum", None, "=SUM(D4:D403)"])
    book.save(folder / "ward.xlsx")
    return f"""
[file]
range = "B3:D{ROWS + 3}"

[[attribute]]
name = "age"
type = "integer"
lo = 18
hi = 90
source = "law"

[[attribute]]
name = "diagnosis"
type = "text"
values = ["E10.1", "E10.9", "E11.0", "I21.4"]
source = "law"

[[attribute]]
name = "days"
type = "integer"
lo = 0
hi = 60
na = [99]
missing = "keep"
source = "questionnaire"

[[step]]
truncate = "diagnosis"
length = 3
source = "law"
"""


def answers(folder: Path) -> str:
    """An archive with one table: many alike questions, with codes for no answer."""
    names = ["weight_factor", *(f"Q{number:03d}" for number in range(1, 9))]
    lines = [",".join(names)]
    for _ in range(ROWS):
        row = [f"{RNG.random() * 3:.2f}", *(str(RNG.choice([1, 2, 3, 4, 5, -9])) for _ in names[1:])]
        lines.append(",".join(row))
    with zipfile.ZipFile(folder / "answers.zip", "w") as archive:
        archive.writestr("survey/answers.csv", "\n".join(lines))
    return """
[[attribute]]
name = "weight_factor"
role = "weight"
release = "dropped"

[[attribute]]
names = "Q001 to Q008"
type = "integer"
lo = 1
hi = 5
na = [-9]
missing = "keep"
source = "questionnaire"
"""


def visits(folder: Path) -> str:
    """JSON lines: several rows of a person, keys that are not always there."""
    lines = []
    for number in range(ROWS):
        row = {"patient": f"P{number // 2:04d}", "age": int(RNG.integers(18, 90))}
        if RNG.random() < 0.9:
            row["smoker"] = bool(RNG.random() < 0.3)
        lines.append(json.dumps(row))
    (folder / "visits.jsonl").write_text("\n".join(lines))
    return """
[[attribute]]
name = "patient"
kind = "nominal"
type = "text"
role = "unit"
max_rows = 2
source = "questionnaire"

[[attribute]]
name = "age"
type = "integer"
lo = 18
hi = 90
source = "law"

[[attribute]]
name = "smoker"
type = "boolean"
values = ["False", "True"]
missing = "keep"
source = "questionnaire"
"""


def wages(folder: Path) -> str:
    """Tabs, thousands with points, question marks for gaps, a column of remarks."""
    lines = ["Lohn\tStunden\tBemerkung"]
    for _ in range(ROWS):
        wage = f"{RNG.integers(1000, 9000):,}".replace(",", ".")
        lines.append(f"{wage}\t{RNG.choice(['20', '38', '40', '?'])}\tsiehe Akte {RNG.integers(9)}")
    (folder / "wages.tsv").write_text("\n".join(lines), "utf-8-sig")
    return """
[file]
thousands = "."
na = ["?"]

[[attribute]]
name = "Lohn"
type = "integer"
lo = 0
hi = 10000
source = "law"

[[attribute]]
name = "Stunden"
type = "integer"
lo = 0
hi = 60
missing = "keep"
source = "questionnaire"

[[attribute]]
name = "Bemerkung"
kind = "nominal"
role = "identifier"
type = "text"
source = "questionnaire"
"""


def exports(folder: Path) -> str:
    """A folder of Parquet files whose columns differ in order and width."""
    place = folder / "exports"
    place.mkdir()
    for number, width in enumerate((pa.int32(), pa.int64())):
        columns = {
            "age": pa.array(RNG.integers(18, 90, ROWS), width),
            "region": pa.array(RNG.choice(["N", "S"], ROWS)),
        }
        order = list(columns) if number else list(reversed(columns))
        pq.write_table(pa.table({name: columns[name] for name in order}), place / f"part-{number}.parquet")
    return """
[[attribute]]
name = "age"
type = "integer"
lo = 18
hi = 90
source = "law"

[[attribute]]
name = "region"
type = "text"
values = ["N", "S"]
source = "law"
"""


FILES: dict[str, Callable[[Path], str]] = {
    "register.csv": register,
    "ward.xlsx": ward,
    "answers.zip": answers,
    "visits.jsonl": visits,
    "wages.tsv": wages,
    "exports": exports,
}


@pytest.mark.parametrize("name", FILES)
def test_a_messy_file_ends_in_a_bundle_that_may_be_published(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(FILES[name](tmp_path), "utf-8")
    if name == "exports":
        assert run(["schema", name]) == 0
    asked = [
        "protect",
        name,
        "--schema",
        "schema.toml",
        "--epsilon",
        "2",
        "--dataset",
        "messy",
        "--out",
        "out",
    ]
    assert run(asked) == 0, capsys.readouterr().err
    statement = json.loads(Path("out/statement.json").read_text("utf-8"))
    assert statement["publishable"]
    assert statement["data_dependent"] == []
    assert (statement["format"], statement["adjacency"]) == (2, "add-remove")
    assert run(["evaluate", name, "out", "--dataset", "messy"]) == 0, capsys.readouterr().err
