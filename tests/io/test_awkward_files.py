"""Files in unusual formats: each is read correctly, cell by cell, or refused with its exact message."""

from __future__ import annotations

import datetime
import gzip
import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shoal.cli.command import flag
from shoal.errors import InputError
from shoal.io import read

DAY = datetime.date(1984, 5, 31)
NAME = "people"


@dataclass(frozen=True)
class Awkward:
    """A file, what is told about it, and what is in it or why it is refused."""

    content: bytes | str | Callable[[Path], None]
    ending: str = ".csv"
    told: Mapping[str, Any] = field(default_factory=dict)
    cells: Mapping[str, list[Any]] | None = None
    refused: str | None = None
    types: Mapping[str, Any] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    na: tuple[str, ...] = ()


def book(*sheets: tuple[str, list[list[Any]]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        made = openpyxl.Workbook()
        made.remove(made.active)
        for title, rows in sheets:
            sheet = made.create_sheet(title)
            for row in rows:
                sheet.append(row)
        made.save(path)

    return write


def packed(content: bytes, codec: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), codec) as file:
            file.write(content)

    return write


def lying_book(path: Path) -> None:
    """A workbook with a part that unpacks to far more than a table."""
    book(("a", [["x"], [1]]))(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/zeros.bin", b"\0" * (80 * 2**20))


def doctype_book(path: Path) -> None:
    aside = io.BytesIO()
    book(("a", [["x"], [1]]))(path)
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(aside, "w") as after:
        for part in before.namelist():
            content = before.read(part)
            if part == "xl/workbook.xml":
                content = b"<!DOCTYPE a [<!ENTITY e 'x'>]>" + content
            after.writestr(part, content)
    path.write_bytes(aside.getvalue())


AB = {"a": [1, 2], "b": ["x", "y"]}
SPANISH = "comuna;renta\nPeñalolén;1.234,50\nÑuñoa;987,00\n"
CASES: dict[str, Awkward] = {
    # encodings
    "latin-1, not told": Awkward(
        SPANISH.encode("latin-1"),
        refused="'people.csv' is not UTF-8 text: row 1 contains the byte 0xF1; give its encoding, for example "
        "--encoding latin-1, windows-1252 or utf-16.",
    ),
    "latin-1": Awkward(
        SPANISH.encode("latin-1"),
        told={"encoding": "latin-1", "decimal": ",", "thousands": "."},
        cells={"comuna": ["Peñalolén", "Ñuñoa"], "renta": [1234.5, 987.0]},
    ),
    "windows-1252": Awkward(
        "price,what\n€5,“big”\n".encode("windows-1252"),
        told={"encoding": "windows-1252"},
        cells={"price": ["€5"], "what": ["“big”"]},
    ),
    "a byte that windows-1252 does not have": Awkward(
        b"a,b\n1,x\n2,\x81\n",
        told={"encoding": "windows-1252"},
        refused="'people.csv' is not windows-1252 text: row 2 contains the byte 0x81; give its encoding, for "
        "example --encoding latin-1, windows-1252 or utf-16.",
    ),
    "utf-16, not told": Awkward(
        "a,b\n1,ñ\n".encode("utf-16"), refused="'people.csv' looks like UTF-16 text: use --encoding utf-16."
    ),
    "utf-16": Awkward(
        "a\tb\n1\tñ\n".encode("utf-16"), told={"encoding": "utf-16"}, cells={"a": [1], "b": ["ñ"]}
    ),
    "utf-16 without a mark": Awkward(
        "a,b\n1,x\n".encode("utf-16-le"),
        refused="'people.csv' is not a text file: save it as CSV (UTF-8), or give its encoding, such as --encoding "
        "utf-16.",
    ),
    "byte order mark": Awkward("\ufeffa,b\n1,x\n2,y\n", cells=AB),
    "byte order mark and quoted names": Awkward('\ufeff"a","b"\n1,x\n2,y\n', cells=AB),
    "a bad byte in the header": Awkward(
        b"gr\xf6\xdfe,b\n1,2\n",
        refused="'people.csv' is not UTF-8 text: the header contains the byte 0xF6; give its encoding, for example "
        "--encoding latin-1, windows-1252 or utf-16.",
    ),
    "a character cut off at the end": Awkward(
        "a\nñ".encode()[:-1],
        refused="'people.csv' is not UTF-8 text: row 1 contains the byte 0xC3; give its encoding, for example "
        "--encoding latin-1, windows-1252 or utf-16.",
    ),
    # separators and lines
    "semicolons": Awkward("a;b\n1;x\n2;y\n", cells=AB),
    "tabs": Awkward("a\tb\n1\tx\n2\ty\n", cells=AB),
    "bars": Awkward("a|b\n1|x\n2|y\n", cells=AB),
    "carets, not told": Awkward(
        "a^b\n1^x\n2^y\n",
        refused="'people.csv' can be read as one column named 'a^b' with --separator ',' or as 2 columns separated "
        "by '^' with --separator '^': specify which.",
    ),
    "carets": Awkward("a^b\n1^x\n2^y\n", told={"separator": "^"}, cells=AB),
    "blanks, not told": Awkward(
        "a b\n1 x\n2 y\n",
        refused="'people.csv' can be read as one column named 'a b' with --separator ',' or as 2 columns separated "
        "by spaces with --separator ' ': specify which.",
    ),
    "blanks": Awkward("a b\n1 x\n2 y\n", told={"separator": "space"}, cells=AB),
    "one column with a blank in its name": Awkward(
        "hours a week\n38\n40\n", cells={"hours a week": [38, 40]}
    ),
    "two separators": Awkward(
        "a;b,c\n1;2,3\n",
        refused="'people.csv' can be read as 2 columns separated by commas with --separator ',' or 2 columns "
        "separated by semicolons with --separator ';': specify which.",
    ),
    "two separators, told": Awkward(
        "a;b,c\n1;x,y\n", told={"separator": ";"}, cells={"a": [1], "b,c": ["x,y"]}
    ),
    "a separator stated by a spreadsheet": Awkward("sep=;\na;b\n1;x\n2;y\n", cells=AB),
    "lines of Windows": Awkward("a,b\r\n1,x\r\n2,y\r\n", cells=AB),
    "lines of old Macs": Awkward("a,b\r1,x\r2,y\r", cells=AB),
    "no line break at the end": Awkward("a,b\n1,x\n2,y", cells=AB),
    "blank lines": Awkward("\na,b\n\n1,x\n\n2,y\n\n", cells=AB),
    "apostrophes for quotes, not told": Awkward(
        "'a','b'\n'1','x'\n",
        refused="'people.csv' has its column names in apostrophes: use --quote \"'\".",
    ),
    "apostrophes for quotes": Awkward("'a','b'\n'1','x'\n'2','y'\n", told={"quote": "'"}, cells=AB),
    "a line break in a field": Awkward('a,b\n1,"x\ny"\n', cells={"a": [1], "b": ["x\ny"]}),
    "doubled quotes": Awkward('a,b\n1,"say ""x"""\n', cells={"a": [1], "b": ['say "x"']}),
    "a quote that is not closed": Awkward(
        'a,b\n1,"x\n2,y\n',
        refused="'people.csv': a quote in row 1 is not closed: correct it, or use --quote none if quotes are part of "
        "the "
        "text.",
    ),
    "text behind a quote": Awkward(
        'a,b\n1,"x"y\n',
        refused="'people.csv': a quote in row 1 is followed by other text: correct it, or use --quote none if quotes "
        "are part "
        "of the text.",
    ),
    "inches": Awkward('a,b\n1,5" pipe\n', told={"quote": "none"}, cells={"a": [1], "b": ['5" pipe']}),
    "a row with a field too many": Awkward(
        "a,b\n1,x\n2,y,z\n",
        refused="'people.csv': row 2 has 3 fields, but the header has 2: correct it, quote a field that contains "
        "',', or choose another --separator.",
    ),
    "a row with a field too few": Awkward(
        "a,b\n1,x\n2\n",
        refused="'people.csv': row 2 has 1 field, but the header has 2: correct it, quote a field that contains "
        "',', or choose another --separator.",
    ),
    # numbers
    "decimal commas, not told": Awkward(
        "income;town\n1,5;A\n2,25;B\n",
        refused="column 'income' looks like numbers with decimal commas (row 1: '1,5'): use --decimal ',', or --type "
        "'income=text' if it is text.",
    ),
    "decimal commas": Awkward(
        "income;town\n1,5;A\n2,25;B\n",
        told={"decimal": ","},
        cells={"income": [1.5, 2.25], "town": ["A", "B"]},
    ),
    "points and commas, not told": Awkward(
        "income;town\n1.234,50;A\n",
        refused="column 'income' looks like numbers with decimal commas (row 1: '1.234,50'): use --decimal ',' "
        "--thousands "
        "'.', or --type 'income=text' if it is text.",
    ),
    "thirty-five or thirty-five thousand": Awkward(
        "income\n35.000\n12.500\n",
        refused="column 'income': row 1 holds '35.000', which is 35 with --decimal '.' or 35000 with --decimal ',' "
        "--thousands '.': specify which.",
    ),
    "thirty-five thousand": Awkward(
        "income\n35.000\n12.500\n", told={"thousands": "."}, cells={"income": [35000, 12500]}
    ),
    "thirty-five": Awkward("income\n35.000\n12.500\n", told={"decimal": "."}, cells={"income": [35.0, 12.5]}),
    "a declared type does not say what a point means": Awkward(
        "income\n35.000\n12.500\n",
        types={"income": "integer"},
        refused="column 'income': row 1 holds '35.000', which is 35 with --decimal '.' or 35000 with --decimal ',' "
        "--thousands '.': specify which.",
    ),
    "a comma between thousands, or before decimals": Awkward(
        "income;b\n35,000;x\n",
        refused="column 'income': row 1 holds '35,000', which is 35 with --decimal ',' or 35000 with --thousands "
        "',': specify which.",
    ),
    "decimals that are plain": Awkward("x\n35.000\n1234.5\n", cells={"x": [35.0, 1234.5]}),
    "blanks between thousands": Awkward(
        "income;b\n1 234\u00a0567;x\n", told={"thousands": " "}, cells={"income": [1234567], "b": ["x"]}
    ),
    "apostrophes between thousands": Awkward(
        "income;b\n1'234.5;x\n", told={"thousands": "'"}, cells={"income": [1234.5], "b": ["x"]}
    ),
    "a point where the file has commas": Awkward(
        "a;b\n1,5;0.5\n2,5;0.7\n",
        told={"decimal": ","},
        refused="column 'b' looks like numbers (row 1: '0.5'), but not with --decimal ',', as in the rest of the "
        "file: write all numbers alike, or use --type 'b=text' if it is text.",
    ),
    "half numbers, half text": Awkward(
        "age,b\n34,x\nunknown,y\n51,z\n",
        refused="column 'age' holds numbers (row 1: '34') and other text (row 2: 'unknown'): for numbers, correct "
        "it or declare it missing with --na 'unknown'; for text, use --type 'age=text'.",
    ),
    "half numbers, half a text for missing": Awkward(
        "age,b\n34,x\nunknown,y\n51,z\n", na=("unknown",), cells={"age": [34, None, 51], "b": ["x", "y", "z"]}
    ),
    "a text for missing in the schema's words": Awkward(
        "age,b\n34,x\n-9,y\n", told={"na": ["-9"]}, cells={"age": [34, None], "b": ["x", "y"]}
    ),
    "codes with a zero in front": Awkward(
        "zip\n01234\n12345\n",
        refused="column 'zip': row 1 holds '01234', either a number, which loses its leading zero with --type "
        "'zip=integer', or a code, which keeps it with --type 'zip=text': specify which.",
    ),
    "codes with a zero in front, told": Awkward(
        "zip\n01234\n12345\n", types={"zip": "text"}, cells={"zip": ["01234", "12345"]}
    ),
    "a number of twenty digits": Awkward(
        "card,b\n12345678901234567890,x\n",
        refused="column 'card': row 1 holds '12345678901234567890', either a number, which loses its last digits "
        "with --type 'card=decimal', or a code, which keeps them with --type 'card=text': specify which.",
    ),
    "signs, blanks and exponents": Awkward("x\n +5 \n-1.5\n2e3\n.5\n", cells={"x": [5.0, -1.5, 2000.0, 0.5]}),
    "words for nothing": Awkward(
        "x,y\n1,a\nNA,b\n,c\n#N/A,d\n", cells={"x": [1, None, None, None], "y": ["a", "b", "c", "d"]}
    ),
    "truth values": Awkward("x,y\ntrue,1\nFALSE,2\n", cells={"x": [True, False], "y": [1, 2]}),
    # dates
    "dates with points, not told": Awkward(
        "born\n31.05.1984\n01.02.1990\n",
        refused="column 'born' looks like dates of the form DD.MM.YYYY (row 1: '31.05.1984'): use --date-format "
        "'born=DD.MM.YYYY', or --type 'born=text' if it is text.",
    ),
    "dates with points": Awkward(
        "born\n31.05.1984\n", told={"date_format": "DD.MM.YYYY"}, cells={"born": [DAY]}
    ),
    "the third of April or the fourth of March": Awkward(
        "born\n03/04/1984\n",
        refused="column 'born': row 1 holds '03/04/1984', which is 1984-04-03 with --date-format 'born=DD/MM/YYYY' "
        "or 1984-03-04 with --date-format 'born=MM/DD/YYYY': specify which.",
    ),
    "American dates": Awkward(
        "born\n5/31/1984\n", dates={"born": "M/D/YYYY"}, types={"born": "date"}, cells={"born": [DAY]}
    ),
    "a day that the calendar does not have": Awkward(
        "born\n31.05.1984\n31.06.1984\n",
        types={"born": "date"},
        dates={"born": "DD.MM.YYYY"},
        refused="column 'born' is declared as date, but row 2 holds '31.06.1984', which is not a date of the form "
        "DD.MM.YYYY: correct it, or declare another type in the schema.",
    ),
    "dates and other text": Awkward(
        "born,b\n1984-05-31,x\nsoon,y\n",
        refused="column 'born' holds dates of the form YYYY-MM-DD (row 1: '1984-05-31') and other text (row 2: "
        "'soon'): correct it, declare it missing with --na 'soon', or read the column as text with --type "
        "'born=text'.",
    ),
    "declared dates in another form": Awkward(
        "born\n31.05.1984\n",
        types={"born": "date"},
        refused="column 'born' is declared as date, but row 1 holds '31.05.1984', which is a date of the form "
        "DD.MM.YYYY "
        "(--date-format): correct it, or declare another type in the schema.",
    ),
    "dates and times": Awkward(
        "at\n1984-05-31 10:30:00\n", cells={"at": [datetime.datetime(1984, 5, 31, 10, 30)]}
    ),
    # headers
    "two columns of one name": Awkward(
        "a,a\n1,2\n", refused="'people.csv' has two columns named 'a': rename one of them."
    ),
    "a column without a name": Awkward(
        "a,\n1,2\n", refused="'people.csv': column 2 has no name: name every column."
    ),
    "long and odd names": Awkward(
        f'"{"x" * 200}","a ""b"", c","=1+1"\n1,2,3\n',
        cells={"x" * 200: [1], 'a "b", c': [2], "=1+1": [3]},
    ),
    "a name that is no name": Awkward(
        f"{'x' * 5000},b\n1,2\n",
        refused=f"'people.csv': a column name has 5,000 characters and begins with '{'x' * 40}': is the first row a "
        "header?",
    ),
    "nothing but a header": Awkward("a,b\n", refused="'people.csv' has a header but no rows."),
    "nothing": Awkward("", refused="'people.csv' is empty: a header line and at least one row are needed."),
    "nothing but empty lines": Awkward(
        "\n\n\n",
        refused="'people.csv' contains only empty lines: a header line and at least one row are needed.",
    ),
    "no text at all": Awkward(
        b"\x89PNG\r\n\x1a\n\x00\x00",
        refused="'people.csv' is not a text file: save it as CSV (UTF-8), or give its encoding, such as --encoding "
        "utf-16.",
    ),
    # compressed
    "gzip": Awkward(gzip.compress(b"a,b\n1,x\n2,y\n"), ".csv.gz", cells=AB),
    "zstd": Awkward(packed(b"a;b\n1;x\n2;y\n", "zstd"), ".csv.zst", cells=AB),
    "gzip of two parts": Awkward(gzip.compress(b"a,b\n1,x\n") + gzip.compress(b"2,y\n"), ".csv.gz", cells=AB),
    "gzip of another encoding": Awkward(
        gzip.compress("a,b\n1,ñ\n".encode("latin-1")),
        ".csv.gz",
        told={"encoding": "latin-1"},
        cells={"a": [1], "b": ["ñ"]},
    ),
    "gzip that is none": Awkward(
        "a,b\n", ".csv.gz", refused="'people.csv.gz' cannot be decompressed: Not a gzipped file (b'a,')."
    ),
    "gzip that is cut off": Awkward(
        gzip.compress(b"a,b\n" + b"1,x\n" * 1000)[:30],
        ".csv.gz",
        refused="'people.csv.gz' cannot be decompressed: Compressed file ended before the end-of-stream marker was "
        "reached.",
    ),
    "gzip that grows without end": Awkward(
        gzip.compress(b"a,b\n" + b"1,2\n" * 20_000_000, 9),
        ".csv.gz",
        refused="'people.csv.gz' decompresses to more than 67 MB, which is implausible for a table in a file of "
        "its size: if it is correct, decompress it and pass the decompressed file.",
    ),
    "zstd that grows without end": Awkward(
        packed(b"a,b\n" + b"1,2\n" * 20_000_000, "zstd"),
        ".csv.zst",
        refused="'people.csv.zst' decompresses to more than 67 MB, which is implausible for a table in a file of "
        "its size: if it is correct, decompress it and pass the decompressed file.",
    ),
    # other formats
    "tab-separated, with commas": Awkward(
        "a,c\tb\n1\tx\n2\ty\n", ".tsv", cells={"a,c": [1, 2], "b": ["x", "y"]}
    ),
    "JSON lines": Awkward(
        '{"a": 1, "b": "x"}\n\n{"b": null, "a": 2.5}\n{"a": 3}\n',
        ".jsonl",
        cells={"a": [1.0, 2.5, 3.0], "b": ["x", None, None]},
    ),
    "JSON lines of two kinds": Awkward(
        '{"a": 1}\n{"a": "x"}\n',
        ".jsonl",
        refused="column 'a' holds numbers (row 1: '1') and text (row 2: 'x'): correct it, or read the column as "
        "text with --type 'a=text'.",
    ),
    "JSON lines with a list": Awkward(
        '{"a": [1, 2]}\n',
        ".jsonl",
        refused="'people.jsonl': row 1 holds a list or an object in 'a': a cell must hold a single value: write "
        "its parts as columns.",
    ),
    "JSON lines with a name twice": Awkward(
        '{"a": 1}\n{"a": 1, "a": 2}\n',
        ".jsonl",
        refused="'people.jsonl': row 2 has a duplicate name: correct it.",
    ),
    "one JSON document": Awkward(
        '[\n{"a": 1}\n]\n',
        ".jsonl",
        refused="'people.jsonl': row 1 is not a JSON object on a single line: Expecting value: line 2 column 1 "
        "(char 2).",
    ),
    "feather": Awkward(lambda path: feather.write_feather(pa.table(AB), str(path)), ".feather", cells=AB),
    "parquet": Awkward(lambda path: parquet.write_table(pa.table(AB), path), ".parquet", cells=AB),
    "feather that is none": Awkward(
        "a,b\n1,2\n",
        ".feather",
        refused="'people.feather' is not a Feather version 2 file: write it again as Feather version 2, or as Parquet.",
    ),
    "workbook": Awkward(
        book(("2024", [["a", "b", "born"], [1, "x", DAY], [2, "y", None]])),
        ".xlsx",
        cells={**AB, "born": [DAY, None]},
    ),
    "workbook of two sheets": Awkward(
        book(("2023", [["a"], [1]]), ("2024", [["a"], [2]])),
        ".xlsx",
        refused="'people.xlsx' has 2 sheets, '2023', '2024': choose one with --sheet.",
    ),
    "a sheet by name": Awkward(
        book(("2023", [["a"], [1]]), ("2024", [["a"], [2]])),
        ".xlsx",
        told={"sheet": "2024"},
        cells={"a": [2]},
    ),
    "a sheet that is not there": Awkward(
        book(("2023", [["a"], [1]]), ("2024", [["a"], [2]])),
        ".xlsx",
        told={"sheet": "2042"},
        refused="'people.xlsx' has no sheet '2042'. Did you mean '2024'?",
    ),
    "a sheet of numbers and text": Awkward(
        book(("a", [["age"], [34], ["unknown"]])),
        ".xlsx",
        refused="column 'age' holds numbers (row 1: '34') and text (row 2: 'unknown'): correct it, or read the "
        "column as text with --type 'age=text'.",
    ),
    "a formula without its value": Awkward(
        book(("a", [["x", "y"], [1, "=A2*2"]])),
        ".xlsx",
        refused="'people.xlsx': cell B2 of sheet 'a' holds a formula without a stored value: open the file in a "
        "spreadsheet program and save it, or replace the formula by its value.",
    ),
    "an error in a cell": Awkward(
        book(("a", [["x", "y"], [1, "#DIV/0!"]])),
        ".xlsx",
        refused="'people.xlsx': cell B2 of sheet 'a' holds the error #DIV/0!: correct it.",
    ),
    "a title above the header": Awkward(
        book(("a", [["Survey 2024", None], ["a", "b"], [1, "x"]])),
        ".xlsx",
        refused="'people.xlsx': column 2 has no name: name every column.",
    ),
    "empty rows and columns around a sheet": Awkward(
        book(("a", [["a", "b", None], [1, "x", None], [2, "y", None], [None, None, None]])), ".xlsx", cells=AB
    ),
    "an empty sheet": Awkward(
        book(("a", [])),
        ".xlsx",
        refused="sheet 'a' of 'people.xlsx' is empty: a row of column names and at least one row are needed.",
    ),
    "a workbook that is none": Awkward(
        "a,b\n1,2\n",
        ".xlsx",
        refused="'people.xlsx' is not a valid archive of the type that its extension indicates: File is not a zip "
        "file.",
    ),
    "a workbook that grows without end": Awkward(
        lying_book,
        ".xlsx",
        refused="'people.xlsx' decompresses to more than 67 MB, which is implausible for a table in a file of its "
        "size: if it is correct, decompress it and pass the decompressed file.",
    ),
    "a workbook that declares a document type": Awkward(
        doctype_book,
        ".xlsx",
        refused="'people.xlsx' declares a document type (<!DOCTYPE ...>), whose entities can expand without limit "
        "or load other files: remove the declaration and write out its entities.",
    ),
    "an old workbook": Awkward(
        b"\xd0\xcf\x11\xe0",
        ".xls",
        refused="'people.xls' has an unknown file extension: use one of .csv, .txt, .csv.gz, .txt.gz, .csv.zst, "
        ".txt.zst, .tsv, .tab, .tsv.gz, .tab.gz, .tsv.zst, .tab.zst, .jsonl, .ndjson, .jsonl.gz, "
        ".ndjson.gz, .jsonl.zst, .ndjson.zst, .parquet, .pq, .feather, .arrow, .xlsx, .dta, .sav, .zsav. "
        "The .xls format is outdated: save the file as .xlsx.",
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_awkward_file_is_read_right_or_refused_with_its_sentence(case: Awkward, here: Path) -> None:
    path = Path(f"{NAME}{case.ending}")
    if callable(case.content):
        case.content(path)
    else:
        path.write_bytes(case.content.encode() if isinstance(case.content, str) else case.content)

    def found() -> dict[str, list[Any]]:
        table = read(path, case.na, case.types, case.told, case.dates)
        return {name: table.series(name).to_list() for name in table.names}

    assert (case.cells is None) != (case.refused is None)
    if case.refused is not None:
        with pytest.raises(InputError) as refused:
            found()
        # in the words of the command line, which most people will read
        assert refused.value.rendered(flag) == case.refused
        return
    cells = found()
    assert cells == case.cells
    assert [[type(cell) for cell in column] for column in cells.values()] == [
        [type(cell) for cell in column] for column in (case.cells or {}).values()
    ]


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 40
    assert sum(case.cells is not None for case in CASES.values()) >= 20
    assert sum(case.refused is not None for case in CASES.values()) >= 20
