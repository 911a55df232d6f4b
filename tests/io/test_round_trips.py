"""Released files are written as the input was: encoding, separator, signs, date formats, packing, sheet."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError, OptionError
from shoal.io import FORMATS, Content, Conventions, Format, Manner, ReadOptions, read, register_format, write
from shoal.io.formats import find_format

ROWS = 40


def entry(name: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "source": "questionnaire", **facts}


def schema(**file: Any) -> shoal.Schema:
    """What is public about the tables below; `file` says how they are written."""
    return shoal.Schema.from_dict(
        {
            "file": file,
            "attribute": [
                entry("renta", type="decimal", decimals=2, lo=0, hi=100_000),
                entry("edad", type="integer", lo=0, hi=120),
                entry("nacido", kind="date", format="DD.MM.YYYY", lo="1930-01-01", hi="2010-12-31"),
                entry("comuna", type="text", values=["Peñalolén", "Ñuñoa", "Las Condes"]),
            ],
        }
    )


def lines(separator: str) -> list[list[str]]:
    names = ["renta", "edad", "nacido", "comuna"]
    towns = ("Peñalolén", "Ñuñoa", "Las Condes")
    rows = [
        [
            f"{1 + i}.{234 + i},5{i % 10}",
            str(20 + i),
            f"{1 + i % 28:02d}.0{1 + i % 9}.19{40 + i}",
            towns[i % 3],
        ]
        for i in range(ROWS)
    ]
    return [names, *rows]


def text(separator: str, newline: str) -> str:
    return "".join(separator.join(line) + newline for line in lines(separator))


OFFICE = {"encoding": "latin-1", "decimal": ",", "thousands": "."}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [";", "\t", "|", "^"])
@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-8"])
def test_a_release_is_written_as_its_input_was(
    encoding: str, separator: str, newline: str, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text(separator, newline).encode(encoding))
    told = {**OFFICE, "encoding": encoding, **({"separator": separator} if separator == "^" else {})}
    release = shoal.protect(path, schema(**told), "laplace", epsilon=2)
    assert release.statement.publishable
    out = release.save(tmp_path / "out")
    written = (out / "data.csv").read_bytes().decode(encoding)
    assert written.split(newline)[0] == separator.join(("renta", "edad", "nacido", "comuna"))
    assert written.count(newline) == ROWS + 1
    assert ("\r" in written) == (newline == "\r\n")
    cells = [line.split(separator) for line in written.split(newline)[1:-1]]
    assert any("." in row[0] for row in cells)
    assert all("," in row[0] or row[0].replace(".", "").isdigit() for row in cells)
    assert all(len(row[2]) == 10 and row[2][2] == row[2][5] == "." for row in cells)
    # the same options read it, and the recipe tells them
    again = read(out / "data.csv", (), schema().types, told, {"nacido": "DD.MM.YYYY"})
    assert again.series("renta").to_list() == pytest.approx(release.data["renta"].to_pylist())
    assert again.series("nacido").to_list() == release.data["nacido"].to_pylist()
    assert again.series("comuna").to_list() == release.data["comuna"].to_pylist()
    repeated = shoal.protect(out / "data.csv", **_recipe(out))
    assert repeated.statement.attributes == release.statement.attributes


def _recipe(out: Path) -> dict[str, Any]:
    from shoal.mechanisms.registry import load_recipe

    return load_recipe(out / "method.toml")


def test_a_byte_order_mark_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(text(";", "\n").encode("utf-8-sig"))
    told = {"decimal": ",", "thousands": "."}
    out = shoal.protect(path, schema(**told), "laplace", epsilon=1).save(tmp_path / "out")
    assert (out / "data.csv").read_bytes().startswith(b"\xef\xbb\xbfrenta;")


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zst", ".tsv", ".tsv.gz"])
def test_packed_and_tabbed_files_stay_so(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"people{ending}"
    content = text("\t" if ".tsv" in ending else ";", "\n").encode("latin-1")
    if ending.endswith(".gz"):
        path.write_bytes(gzip.compress(content))
    elif ending.endswith(".zst"):
        with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as file:
            file.write(content)
    else:
        path.write_bytes(content)
    release = shoal.protect(path, schema(**OFFICE), "laplace", epsilon=1)
    out = release.save(tmp_path / "out")
    assert (out / f"data{ending}").exists()
    again = read(out / f"data{ending}", (), schema().types, OFFICE, {"nacido": "DD.MM.YYYY"})
    assert again.series("renta").to_list() == pytest.approx(release.data["renta"].to_pylist())
    # no moment of writing: the same table makes the same bytes
    other = release.save(tmp_path / "other")
    assert (other / f"data{ending}").read_bytes() == (out / f"data{ending}").read_bytes()


PLAIN = pa.table(
    {
        "edad": list(range(20, 60)),
        "comuna": pa.array(["Peñalolén", "Ñuñoa"] * 20),
        "renta": [i + 0.5 for i in range(40)],
    }
)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_reads_what_it_writes(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"people{FORMATS[format].ending}"
    write(PLAIN, path)
    table = read(path)
    assert table.format == format
    assert {name: table.series(name).to_list() for name in table.names} == PLAIN.to_pydict()


@pytest.mark.parametrize("format", FORMATS)
def test_a_release_leaves_in_the_format_of_its_input(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"people{FORMATS[format].ending}"
    write(PLAIN, path)
    of = shoal.Schema.from_dict(
        {
            "attribute": [
                entry("edad", type="integer", lo=0, hi=120),
                entry("comuna", type="text", values=["Peñalolén", "Ñuñoa"]),
                entry("renta", type="decimal", decimals=1, lo=0, hi=100),
            ]
        }
    )
    release = shoal.protect(path, of, "tree-dp", epsilon=1)
    assert release.statement.publishable
    out = release.save(tmp_path / "out")
    assert (out / f"data{FORMATS[format].ending}").exists()
    again = read(out / f"data{FORMATS[format].ending}", types=of.types)
    assert again.series("edad").to_list() == release.data["edad"].to_pylist()


def test_a_sheet_keeps_its_name_and_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "people.xlsx"
    write(
        pa.table({"job": ["=cmd|' /C calc'!A0", "clerk"] * 10}), path, conventions=Conventions(sheet="2024")
    )
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["2024"]
    cell = book["2024"]["A2"]
    assert (cell.value, cell.data_type) == ("=cmd|' /C calc'!A0", "s")
    assert read(path).series("job").to_list()[:2] == ["=cmd|' /C calc'!A0", "clerk"]


def test_formulas_are_pointed_out_and_written_harmlessly_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job,pay\n" + "=1+1,1\nclerk,2\n" * 20)
    of = shoal.Schema.from_dict(
        {
            "attribute": [
                entry("job", type="text", values=["=1+1", "clerk", "-5"]),
                entry("pay", type="integer", lo=0, hi=9),
            ]
        }
    )
    release = shoal.protect(path, of, "laplace", epsilon=10)
    (note,) = release.notes
    assert note == (
        "column 'job' can be released with '=1+1', which a spreadsheet program would execute: "
        "spreadsheet_safe=True writes it with an apostrophe in front."
    )
    assert '\n"=1+1",' in (release.save(tmp_path / "plain") / "data.csv").read_text()
    safe = shoal.protect(path, of, "laplace", epsilon=10, file={"spreadsheet_safe": True})
    assert safe.notes == ()
    out = safe.save(tmp_path / "safe")
    assert '\n"\'=1+1",' in (out / "data.csv").read_text()
    assert '"=1+1"' not in (out / "data.csv").read_text()
    # the recipe says so, and the release can be read with it
    assert shoal.protect(out / "data.csv", **_recipe(out)).statement.publishable


def test_a_value_without_a_place_in_the_encoding_is_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(("price\n" + "ñ\n" * 20).encode("latin-1"))
    of = shoal.Schema.from_dict(
        {"file": {"encoding": "latin-1"}, "attribute": [entry("price", type="text", values=["ñ", "€"])]}
    )
    with pytest.raises(InputError, match=r"column 'price': '€' cannot be written in the encoding latin-1"):
        shoal.protect(path, of, "laplace", epsilon=1)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"encoding": "klingon"}, "unknown encoding 'klingon'"),
        ({"encoding": "base64"}, "unknown encoding 'base64'"),
        ({"separator": "::"}, "separator must be a single ASCII character"),
        ({"decimal": ";"}, "decimal must be a point or a comma, got ';'"),
        ({"decimal": ",", "thousands": ","}, "',' cannot be both the decimal and the thousands separator"),
        ({"thousands": "x"}, "thousands must be a point, a comma, a space, an apostrophe or none, got 'x'"),
        ({"separator": ";", "quote": ";"}, "';' cannot be both the field separator and the quote character"),
        ({"date_format": "DD.MM.YY"}, "a two-digit year does not determine the century"),
        ({"date_format": "DD.MM"}, "must contain YYYY, MM or M, and DD or D"),
        ({"sepparator": ";"}, "file has an unknown key 'sepparator'. Did you mean 'separator'?"),
        ({"na": "?"}, "na must be a list of texts"),
        ("latin-1", "file must be a table of keys"),
    ],
)
def test_conventions_that_cannot_be_are_refused(told: Any, says: str) -> None:
    with pytest.raises(OptionError) as refused:
        Conventions.of(told)
    assert says in str(refused.value)


def test_a_format_from_outside_is_one_record(tmp_path: Path) -> None:
    """Pairs of name and value, one a line: read, written, listed and refused like those of the package."""

    def reader(path: Path, asked: ReadOptions) -> Content:
        columns: dict[str, list[str]] = {}
        for line in path.read_text().splitlines():
            name, _, value = line.partition("=")
            columns.setdefault(name, []).append(value)
        return Content(pa.table(columns), asked.conventions, cells=True)

    def writer(table: pa.Table, path: Path, manner: Manner) -> None:
        path.write_text("".join(f"{name}={v}\n" for row in table.to_pylist() for name, v in row.items()))

    toy = Format("pairs", "Pairs", (".pairs",), reader, writer, keeps="nothing")
    try:
        register_format(toy)
        assert find_format(Path("a.pairs")) is toy
        path = tmp_path / "ages.pairs"
        path.write_text("age=30\nage=41\nage=52\n")
        assert read(path).series("age").to_list() == [30, 41, 52]
        of = shoal.Schema.from_dict({"attribute": [entry("age", type="integer", lo=0, hi=120)]})
        release = shoal.protect(path, of, "laplace", epsilon=1)
        assert release.statement.publishable
        assert (release.save(tmp_path / "out") / "data.pairs").read_text().startswith("age=")
        with pytest.raises(OptionError, match="the file format 'pairs' already exists"):
            register_format(toy)
        with pytest.raises(
            OptionError, match=r"the file extension \.csv already belongs to the format 'csv'"
        ):
            register_format(Format("mine", "Mine", (".csv",), reader, writer))
        (tmp_path / "x.sas").write_text("x")
        with pytest.raises(InputError, match=r"\.pairs"):
            read(tmp_path / "x.sas")
    finally:
        FORMATS.pop("pairs", None)


@pytest.mark.parametrize("told", ["schema", "call"])
def test_gaps_are_written_as_the_input_writes_them(told: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = [f"{20 + i % 50};{'?' if i % 3 == 0 else 'fm'[i % 2]}" for i in range(200)]
    path.write_text("age;sex\n" + "\n".join(rows) + "\n", "utf-8")
    about = {"separator": ";"} | ({"na": ["?"]} if told == "schema" else {})
    schema = shoal.Schema.from_dict(
        {
            "file": about,
            "attribute": [
                {"name": "age", "lo": 0, "hi": 99, "type": "integer"},
                {
                    "name": "sex",
                    "kind": "nominal",
                    "values": ["f", "m"],
                    "type": "text",
                    "missing": "category",
                },
            ],
        }
    )
    options = {"na": ["?"]} if told == "call" else {}
    release = shoal.protect(path, schema, method="tree-dp", epsilon=50, **options)
    folder = release.save(tmp_path / "out")
    lines = (folder / "data.csv").read_text("utf-8").splitlines()[1:]
    gaps = sum(line.endswith(";?") for line in lines)
    assert gaps > 30
    assert not any(line.endswith(";") for line in lines)
    again = shoal.Bundle.load(folder).data
    assert again["sex"].to_pylist().count(None) == gaps
