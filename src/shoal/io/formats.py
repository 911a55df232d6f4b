"""File formats by name: extensions, readers, writers, and what each preserves of a table.

A new format is one record; `register_format` adds third-party formats. Reading, writing, help texts, error messages and
`--format` follow from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.display import internal
from shoal.errors import Extra, InputError, OptionError, closest
from shoal.io.text_files import Conventions
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.io.cell_types import ColumnType
    from shoal.io.statistical_files import Codebook


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for a reader: declared types by column, and the conventions of the file."""

    types: Mapping[str, ColumnType] = field(default_factory=dict)
    conventions: Conventions = field(default_factory=Conventions)


@internal()
@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The result of a reader.

    Attributes:
        table: its columns; all texts if `cells` is set.
        conventions: the conventions of the file.
        codebook: codes and labels, where the format has them.
        doubts: by column, one line about an ambiguity.
        cells: the columns are uninterpreted texts.
    """

    table: pa.Table
    conventions: Conventions = field(default_factory=Conventions)
    codebook: Codebook | None = None
    doubts: Mapping[str, Message] = field(default_factory=dict)
    cells: bool = False


@dataclass(frozen=True, slots=True)
class Manner:
    """Options for a writer: conventions, codes and labels, and the date format of each column that has one."""

    conventions: Conventions = field(default_factory=Conventions)
    codebook: Codebook | None = None
    dates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: its name for `--format`.
        title: its name in prose.
        suffixes: file extensions; the first is used for new files.
        read: function from a path and options to the content.
        write: function that writes an Arrow table to a path in a given manner.
        keeps: what it preserves of a table besides values.
        typed: its columns have types.
        text: it follows conventions such as separator and decimal sign.
        extra: the optional dependency group that it needs.
        check: refuses, before any work is done, columns that it cannot store.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Content]
    write: Callable[[pa.Table, Path, Manner], None]
    keeps: str = ""
    typed: bool = False
    text: bool = False
    extra: Extra | None = None
    check: Callable[[Sequence[str]], None] | None = None

    @property
    def ending(self) -> str:
        return self.suffixes[0]


def _read_delimited(
    path: Path, asked: ReadOptions, *, packing: str = "", usual: str | None = None
) -> Content:
    from shoal.io.text_files import read_delimited

    table, conventions = read_delimited(path, asked.conventions, packing, usual)
    return Content(table, conventions, cells=True)


def _write_delimited(
    table: pa.Table, path: Path, manner: Manner, *, packing: str = "", usual: str | None = None
) -> None:
    from shoal.io.text_files import spelled, write_delimited

    conventions = manner.conventions
    if usual is not None:
        conventions = replace(conventions, separator=usual)
    write_delimited(spelled(table, replace(manner, conventions=conventions)), path, conventions, packing)


def _read_json(path: Path, asked: ReadOptions, *, packing: str = "") -> Content:
    from shoal.io.binary_files import read_json_lines

    table, doubts = read_json_lines(path, packing)
    return Content(table, asked.conventions, doubts=doubts)


def _write_json(table: pa.Table, path: Path, manner: Manner, *, packing: str = "") -> None:
    from shoal.io.binary_files import write_json_lines
    from shoal.io.text_files import dates_spelled

    write_json_lines(dates_spelled(table, manner), path, manner.conventions, packing)


def _read_parquet(path: Path, asked: ReadOptions) -> Content:
    from shoal.io.binary_files import read_parquet

    return Content(read_parquet(path), asked.conventions)


def _write_parquet(table: pa.Table, path: Path, manner: Manner) -> None:
    from shoal.io.binary_files import write_parquet

    write_parquet(table, path)


def _read_feather(path: Path, asked: ReadOptions) -> Content:
    from shoal.io.binary_files import read_feather

    return Content(read_feather(path), asked.conventions)


def _write_feather(table: pa.Table, path: Path, manner: Manner) -> None:
    from shoal.io.binary_files import write_feather

    write_feather(table, path)


def _read_excel(path: Path, asked: ReadOptions) -> Content:
    from shoal.io.binary_files import read_excel

    table, doubts, conventions = read_excel(path, asked.conventions)
    return Content(table, conventions, doubts=doubts)


def _write_excel(table: pa.Table, path: Path, manner: Manner) -> None:
    from shoal.io.binary_files import write_excel

    write_excel(table, path, manner.conventions, dict(manner.dates))


def _check_excel(names: Sequence[str]) -> None:
    from shoal.io.binary_files import check_size

    check_size(names)


def _read_package(path: Path, asked: ReadOptions, *, source: str) -> Content:
    from shoal.io.statistical_files import read_package

    table, codebook = read_package(path, source, asked.types)
    return Content(table, asked.conventions, codebook)


def _write_package(table: pa.Table, path: Path, manner: Manner, *, target: str) -> None:
    from shoal.io.statistical_files import write_package

    write_package(table, path, target, manner.codebook)


def _check_package(names: Sequence[str], *, target: str) -> None:
    from shoal.io.statistical_files import check_package

    check_package(names, target)


def _delimited(name: str, title: str, suffixes: tuple[str, ...], packing: str, usual: str | None) -> Format:
    return Format(
        name + packing,
        title,
        tuple(f"{suffix}{packing}" for suffix in suffixes),
        partial(_read_delimited, packing=packing, usual=usual),
        partial(_write_delimited, packing=packing, usual=usual),
        keeps="encoding, separator, signs and date formats of the input; no types",
        text=True,
    )


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        *(_delimited("csv", "CSV", (".csv", ".txt"), packing, None) for packing in ("", ".gz", ".zst")),
        *(_delimited("tsv", "TSV", (".tsv", ".tab"), packing, "\t") for packing in ("", ".gz", ".zst")),
        *(
            Format(
                f"jsonl{packing}",
                "JSON lines",
                (f".jsonl{packing}", f".ndjson{packing}"),
                partial(_read_json, packing=packing),
                partial(_write_json, packing=packing),
                keeps="numbers, texts and truth values apart; date formats of the input",
            )
            for packing in ("", ".gz", ".zst")
        ),
        Format(
            "parquet",
            "Parquet",
            (".parquet", ".pq"),
            _read_parquet,
            _write_parquet,
            keeps="column types",
            typed=True,
        ),
        Format(
            "feather",
            "Feather",
            (".feather", ".arrow"),
            _read_feather,
            _write_feather,
            keeps="column types",
            typed=True,
        ),
        Format(
            "excel",
            "Excel",
            (".xlsx",),
            _read_excel,
            _write_excel,
            keeps="numbers, texts and dates apart; the name of the sheet, date formats",
            extra="excel",
            check=_check_excel,
        ),
        *(
            Format(
                name,
                title,
                suffixes,
                partial(_read_package, source=name),
                partial(_write_package, target=name),
                keeps="codes, labels, display formats",
                extra="files",
                check=partial(_check_package, target=name),
            )
            for name, title, suffixes in (("stata", "Stata", (".dta",)), ("spss", "SPSS", (".sav", ".zsav")))
        ),
    )
}


def register_format(format: Format) -> Format:
    """Add a third-party format; its name and extensions must be new.

    Raises:
        OptionError: the name or an extension is taken.
    """
    taken = {suffix: known.name for known in FORMATS.values() for suffix in known.suffixes}
    if format.name in FORMATS:
        raise OptionError("there-file-format-already", format=format.name)
    for suffix in format.suffixes:
        if suffix in taken:
            raise OptionError("files-end-format-already", suffix=suffix, taken=taken[suffix])
    FORMATS[format.name] = format
    return format


def suffixes() -> tuple[str, ...]:
    """All known extensions."""
    return tuple(suffix for known in FORMATS.values() for suffix in known.suffixes)


def find_format(path: Path) -> Format | None:
    """The format with the longest matching extension, or None.

    >>> find_format(Path("people.csv.GZ")).name
    'csv.gz'
    """
    name = path.name.lower()
    fitting = [
        (len(suffix), known)
        for known in FORMATS.values()
        for suffix in known.suffixes
        if name.endswith(suffix) and len(name) > len(suffix)
    ]
    return max(fitting, key=lambda found: found[0])[1] if fitting else None


def _zipped(path: Path) -> Format:
    """The format of the single text file in a zip archive."""
    from shoal.io.common import zipped_table

    inner = find_format(Path(zipped_table(path)))
    reader = None if inner is None else inner.read
    if inner is None or not isinstance(reader, partial) or reader.keywords.get("packing") != "":
        raise InputError("does-not-hold-csv-tsv-json", path=path)
    return replace(inner, read=partial(reader, packing=".zip"))


def format_of(path: Path) -> Format:
    """The file format by extension; for a zip archive, that of the single file in it."""
    if path.suffix.lower() == ".zip" and path.is_file():
        return _zipped(path)
    found = find_format(path)
    if found is None:
        old = Message("xls-is-older") if path.suffix.lower() == ".xls" else ""
        raise InputError("has-an-unknown-ending", path=path.name, allowed=tuple(suffixes()), old=old)
    return found


def table_name(path: Path) -> str | None:
    """The file name of a table without its extension, None for other files.

    >>> table_name(Path("out/data.csv.gz")), table_name(Path("out/report.html"))
    ('data', None)
    """
    found = find_format(path)
    if found is None:
        return None
    ending = next(
        suffix
        for suffix in sorted(found.suffixes, key=len, reverse=True)
        if path.name.lower().endswith(suffix)
    )
    return path.name[: -len(ending)]


def known_format(word: Any) -> Format:
    """A format by its name, or an error that lists the formats."""
    if isinstance(word, Format):
        return word
    if word not in FORMATS:
        raise OptionError(
            "unknown-format",
            option="format",
            found=word,
            allowed=tuple(FORMATS),
            hint=closest(str(word), FORMATS),
        )
    return FORMATS[word]


def titles() -> tuple[str, ...]:
    """The names of all formats, for prose.

    >>> titles()
    ('CSV', 'TSV', 'JSON lines', 'Parquet', 'Feather', 'Excel', 'Stata', 'SPSS')
    """
    return tuple(dict.fromkeys(known.title for known in FORMATS.values()))
