"""Read tables from paths or data frames, and write them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw

from shoal.errors import InputError, ShoalError, closest
from shoal.io.binary_files import frozen, parquet_files, refuse_logged
from shoal.io.cell_types import ColumnType, settled
from shoal.io.formats import (
    FORMATS,
    Content,
    Format,
    Manner,
    ReadOptions,
    find_format,
    format_of,
    known_format,
    titles,
)
from shoal.io.statistical_files import Codebook
from shoal.io.table import Table, check_doubts, with_types, without_codes, without_texts
from shoal.io.text_files import Conventions
from shoal.text import Message

# a longer name is most likely data
_LONGEST_NAME = 1000


def read(
    source: Any,
    na: Sequence[str] = (),
    types: Mapping[str, ColumnType] | None = None,
    conventions: Conventions | Mapping[str, Any] | None = None,
    dates: Mapping[str, str] | None = None,
    *,
    codes: Mapping[str, Sequence[str]] | None = None,
    strict: bool = True,
    empty: bool = False,
) -> Table:
    """A table from a path (see `shoal.io.FORMATS`), a folder of Parquet files, or a frame.

    Args:
        na: texts that stand for a missing value, such as "?"; surrounding blanks are ignored.
        types: declared types by column. Other columns of files without types are inferred from the cells; the
            types stored in a frame, Parquet or Feather file are kept. `inferred` of the table lists all undeclared
            ones.
        conventions: known conventions of a text file: encoding, separator, decimal sign and so on.
        dates: date formats by column, such as DD.MM.YYYY.
        codes: codes for missing values in single columns, such as 99.
        strict: refuse an ambiguous column without a declared type. Otherwise the table keeps its doubts, for
            code that uses the column.
        empty: accept a file with a header and no rows: the number of rows is then private.

    Raises:
        InputError: the file is missing, empty or not a table, has a repeated column name, is ambiguous, or
            holds a value that does not fit its column's declared type.
    """
    declared = types or {}
    told = Conventions.of(conventions)
    texts = tuple(dict.fromkeys((*na, *told.na)))
    told = replace(told, na=texts)
    own = {} if codes is None else codes
    table = _read(source, texts, declared, told, dates or {}, own, empty=empty)
    table = without_codes(without_texts(table, texts), own)
    table = without_codes(with_types(table, declared, texts), own)
    if strict and not isinstance(source, Table):
        check_doubts(table, table.names)
    return table


def _read(
    source: Any,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    told: Conventions,
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
    *,
    empty: bool,
) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path)):
        return _read_path(Path(source), na, types, told, dates, codes, empty=empty)
    try:
        frame = nw.from_native(source)
    except nw.exceptions.DuplicateError as error:
        names = tuple(str(error).split("'")[1::2])
        raise InputError("same-name-twice" if names else "same-name-in-header", names=names) from None
    except TypeError:
        raise InputError("expected-path-pandas-polars-pyarrow-table", found=type(source).__name__) from None
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if not eager.columns:
        raise InputError("table-no-columns")
    if not all(isinstance(name, str) for name in eager.columns):
        raise InputError("column-names-text")
    # one record can turn integers into floats or text: a frame's storage type is a fact about the records
    return Table(eager, conventions=told, dates=dict(dates), inferred=frozenset(eager.columns))


def write(
    frame: Any,
    path: str | Path,
    codebook: Codebook | None = None,
    conventions: Conventions | None = None,
    dates: Mapping[str, str] | None = None,
) -> None:
    """Write a frame of any supported library in the format of the path's ending.

    Args:
        codebook: codes, labels and formats for a Stata or SPSS file; other formats ignore it.
        conventions: conventions of a text file; by default UTF-8 with commas and points.
        dates: date format by column, for text files.
    """
    path = Path(path)
    table = nw.from_native(frame, eager_only=True).to_arrow()
    format_of(path).write(table, path, Manner(conventions or Conventions(), codebook, dates or {}))


def check_writable(names: Sequence[str], format: str | Format) -> None:
    """Refuse, before any work is done, columns that a file of the format cannot hold."""
    check = known_format(format).check
    if check is not None:
        check(names)


def read_columnwise(path: Path) -> Table:
    """A Parquet file, or a folder of them, as a table on disk: only one column at a time is in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    if path.is_dir():
        return _on_disk(frozen(path).schema.empty_table(), path)
    kind = _check_file(path)
    try:
        empty = parquet.read_schema(path).empty_table()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(empty.column_names, path)
    table = _on_disk(empty, path)
    if table.n == 0:
        raise InputError("header-but-no-rows", path=path)
    return table


def is_parquet(path: Path) -> bool:
    """Whether a path is a Parquet file, or a folder of them.

    Raises:
        InputError: it is a folder of a table format with a transaction log.
    """
    if path.is_dir():
        return bool(parquet_files(path))
    kind = find_format(path)
    return kind is not None and kind.name == "parquet"


def _on_disk(empty: Any, path: Path) -> Table:
    frame = nw.from_native(empty, eager_only=True)
    return Table(frame, "parquet", path, inferred=frozenset(frame.columns))


def _read_path(
    path: Path,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    told: Conventions,
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
    *,
    empty: bool,
) -> Table:
    import pyarrow as pa

    kind = _check_file(path)
    try:
        found = kind.read(path, ReadOptions(types, told))
        # names in a damaged file may be invalid text
        names = found.table.column_names
    except ShoalError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise _unreadable(path, kind, error) from None
    _check_names(names, path)
    if found.table.num_rows == 0 and not empty:
        raise InputError("header-but-no-rows", path=path)
    if found.cells:
        found = _settled(found, na, types, dates, codes)
    inferred = frozenset(names) if kind.typed else frozenset(names) - set(types)
    return Table(
        nw.from_native(found.table, eager_only=True),
        kind.name,
        codebook=found.codebook,
        inferred=inferred,
        conventions=found.conventions,
        dates={name: form for name, form in dates.items() if name in names},
        doubts={name: doubt for name, doubt in found.doubts.items() if name in inferred},
    )


def _settled(
    found: Content,
    na: Sequence[str],
    types: Mapping[str, ColumnType],
    dates: Mapping[str, str],
    codes: Mapping[str, Sequence[str]],
) -> Content:
    """Columns of texts converted to values; a declared column is taken as written and converted by its type."""
    import pyarrow as pa

    columns: list[Any] = []
    doubts: dict[str, Message] = {}
    for name, column in zip(found.table.column_names, found.table.columns, strict=True):
        if name in types:
            columns.append(column)
            continue
        texts = (*na, *codes.get(name, ()))
        made = settled(column, name, found.conventions, texts, dates.get(name))
        columns.append(made.values)
        if made.doubt is not None:
            doubts[name] = made.doubt
    return replace(found, table=pa.table(columns, names=found.table.column_names), doubts=doubts)


def _check_file(path: Path) -> Format:
    """The format of an existing, non-empty file."""
    if path.is_dir():
        if is_parquet(path):
            return FORMATS["parquet"]
        raise InputError("folder-without-parquet", path=path, allowed=titles())
    if not path.exists():
        folder = path.parent if path.parent.is_dir() else None
        near = closest(path.name, [p.name for p in folder.iterdir()]) if folder else None
        raise InputError("files-there-no-file", path=path, hint=near)
    kind = format_of(path)
    if path.stat().st_size == 0:
        raise InputError("empty-header-line-least-row-needed", path=path)
    if kind.name == "parquet":
        refuse_logged(path)
    return kind


def _unreadable(path: Path, kind: Format, error: Exception) -> InputError:
    # Arrow reports some content errors as plain OSError, without an error number
    if isinstance(error, OSError) and error.strerror:
        return InputError("cannot-be-read", path=path, reason=error.strerror)
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    return InputError("cannot-be-read-as", path=path, title=kind.title, reason=first_line)


def _check_names(names: Sequence[str], path: Path) -> None:
    blank = [i + 1 for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise InputError("column-no-name", path=path, place=blank[0])
    long = next((name for name in names if len(name) > _LONGEST_NAME), None)
    if long is not None:
        raise InputError(
            "column-name-characters-begins-first-row", path=path, length=len(long), found=long[:40]
        )
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise InputError("two-columns-named", path=path, column=repeated[0])
