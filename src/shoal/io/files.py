"""Files and frames: a path or a frame comes in, a `Table` leaves; a frame comes back and is written to a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from shoal.errors import InputError, did_you_mean
from shoal.io.codebook import Codebook
from shoal.io.column_types import ColumnType
from shoal.io.formats import TITLES, Format, format_of
from shoal.io.table import Table, read_parquet, with_types, without_texts

if TYPE_CHECKING:
    import pyarrow as pa

_PACKAGES = ("stata", "spss")


def read(source: Any, na: Sequence[str] = (), types: Mapping[str, ColumnType] | None = None) -> Table:
    """A table from a path (CSV, Parquet, Stata, SPSS) or from a pandas, polars or pyarrow frame.

    Args:
        na: texts that stand for a missing value, such as "?"; blanks around them do not count.
        types: declared types by column. Those of other columns are read off the cells of a CSV, Stata or SPSS file, and
            `inferred` of the table says so; a frame and a Parquet file have types of their own.

    Raises:
        InputError: the file is missing, empty, not a table, has two columns of one name, or holds a value that is none
            of its column's declared type.
    """
    declared = types or {}
    return with_types(without_texts(_read(source, na, declared), na), declared, na)


def _read(source: Any, na: Sequence[str], types: Mapping[str, ColumnType]) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path)):
        return _read_path(Path(source), na, types)
    try:
        frame = nw.from_native(source)
    except nw.exceptions.DuplicateError as error:
        raise InputError(f"two columns have the same name: {_names_in(error)}. Rename one.") from None
    except TypeError:
        raise InputError(
            f"expected a path or a pandas, polars or pyarrow table, got {type(source).__name__}."
        ) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not eager.columns:
        raise InputError("the table has no columns.")
    if not all(isinstance(name, str) for name in eager.columns):
        raise InputError("column names must be text: rename them, for example with df.columns.astype(str).")
    table = Table(eager)
    # what the values of a type that holds anything are is a fact about the records
    return replace(table, inferred=frozenset(filter(table.holds_objects, table.names)))


def write(frame: Any, path: str | Path, codebook: Codebook | None = None) -> None:
    """Write a frame of any supported library in the format of the path's ending.

    Args:
        codebook: codes, labels and formats for a Stata or SPSS file; other formats have no place for them.
    """
    path = Path(path)
    table = nw.from_native(frame, eager_only=True).to_arrow()
    kind = format_of(path)
    if kind == "csv":
        from pyarrow import csv

        csv.write_csv(table, path, csv.WriteOptions(quoting_style="needed"))
    elif kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(_bare(table), path)
    else:
        from shoal.io.package_write import write_package

        write_package(table, path, kind, codebook)


def _bare(table: pa.Table) -> pa.Table:
    """Only names, types and values: frame libraries hide index and origin in the metadata of files and fields."""
    import pyarrow as pa

    return pa.table(table.columns, schema=pa.schema([pa.field(f.name, f.type) for f in table.schema]))


def check_writable(names: Sequence[str], format: Format) -> None:
    """Refuse, before any work is done, columns that a file of the format cannot hold."""
    if format in _PACKAGES:
        from shoal.io.package_write import check_package

        check_package(names, format)


def read_columnwise(path: Path) -> Table:
    """A Parquet file as a table that stays on disk: only one column at a time is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    _check_file(path)
    try:
        empty = parquet.read_schema(path).empty_table()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "parquet", error) from None
    _check_names(empty.column_names, path)
    table = Table(nw.from_native(empty, eager_only=True), "parquet", path)
    if table.n == 0:
        raise InputError(f"'{path}' has a header but no rows.")
    return table


def _read_path(path: Path, na: Sequence[str], types: Mapping[str, ColumnType]) -> Table:
    import pyarrow as pa

    kind = _check_file(path)
    codebook: Codebook | None = None
    try:
        if kind == "csv":
            arrow = _read_csv(path, na, types)
        elif kind == "parquet":
            arrow = read_parquet(path)
        else:
            from shoal.io.package_read import read_package

            arrow, codebook = read_package(path, kind, types)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(arrow.column_names, path)
    if arrow.num_rows == 0:
        raise InputError(f"'{path}' has a header but no rows.")
    # a Parquet file has types of its own
    inferred = frozenset() if kind == "parquet" else frozenset(arrow.column_names) - set(types)
    return Table(nw.from_native(arrow, eager_only=True), kind, codebook=codebook, inferred=inferred)


def _check_file(path: Path) -> Format:
    """The format of a file that is there and not empty."""
    if path.is_dir():
        raise InputError(f"'{path}' is a folder: name a CSV, Parquet, Stata or SPSS file in it.")
    if not path.exists():
        folder = path.parent if path.parent.is_dir() else None
        near = did_you_mean(path.name, [p.name for p in folder.iterdir()]) if folder else ""
        raise InputError(f"there is no file '{path}'.{near}")
    kind = format_of(path)
    if path.stat().st_size == 0:
        raise InputError(f"'{path}' is empty: a header line and at least one row are needed.")
    return kind


def _unreadable(path: Path, kind: Format, error: Exception) -> InputError:
    # Arrow raises some of its complaints about content as plain OSError, without an error number
    if isinstance(error, OSError) and error.strerror:
        return InputError(f"'{path}' cannot be read: {error.strerror}.")
    if isinstance(error, UnicodeDecodeError):
        return InputError(
            f"'{path}' cannot be read as CSV: it is not UTF-8 text, save it as CSV (UTF-8) or Parquet."
        )
    first_line = str(error).strip().splitlines()[0][:160]
    return InputError(f"'{path}' cannot be read as {TITLES[kind]}: {first_line}")


def _read_csv(path: Path, na: Sequence[str], types: Mapping[str, ColumnType]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    with path.open("rb") as file:
        header = file.readline().decode("utf-8-sig")
    if "\x00" in header:
        raise InputError(f"'{path}' is not a text file: save it as CSV (UTF-8) or Parquet.")
    # a delimiter inside a quoted column name does not count
    bare = re.sub(r'"[^"]*"', "", header)
    delimiter = max(",;\t|", key=bare.count)
    # here, so that numbers beside such texts are read as numbers; without_texts takes them out of text
    gaps = [*csv.ConvertOptions().null_values, *na, *(f" {text}" for text in na)]
    # One thread: reader threads that outlive an error can abort the interpreter, and row numbers get lost.
    # A blank line is a missing value when there is only one column.
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=delimiter in bare),
        # a declared column is taken as it is written: what its cells mean is settled by the type
        convert_options=csv.ConvertOptions(null_values=gaps, column_types=dict.fromkeys(types, pa.string())),
    )


def _check_names(names: Sequence[str], path: Path) -> None:
    blank = [i + 1 for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise InputError(f"'{path}': column {blank[0]} has no name: give every column one.")
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InputError(f"'{path}' has two columns named '{repeated[0]}': rename one.")


def _names_in(error: Exception) -> str:
    quoted = [part for i, part in enumerate(str(error).split("'")) if i % 2]
    return ", ".join(f"'{name}'" for name in quoted) or "see the header"
