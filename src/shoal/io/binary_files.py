"""Read and write files with typed cells: Parquet, Feather, Excel and JSON lines.

Batches of records carry row numbers; files are in the order of their names, and folders such as region=North add
columns. A file that changes during a release stops it, because noise would be drawn for other records. Tables with a
transaction log (Delta, Iceberg, Hudi) are refused: their files also hold deleted rows.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from shoal.errors import InputError, closest, needs_extra
from shoal.io.cell_types import column_of
from shoal.io.common import MOST_BYTES, check_zip, most_unpacked, too_much
from shoal.io.text_files import Conventions, SheetRange, _opened, _target, cells_of
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet


# added to the columns of a batch of records: their row numbers in the table
ROW = "shoal row number"
# name of the folder of missing values in Hive, Spark and Arrow
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# marks of a folder whose files alone are not the table: a transaction log lists the current rows
_LOGGED = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json", "Hudi": ".hoodie"}
_ERRORS = ("#N/A", "#NULL!", "#NAME?", "#REF!", "#DIV/0!", "#VALUE!", "#NUM!")
_MOST_ROWS, _MOST_COLUMNS = 1_048_575, 16_384
# the earliest time a zip archive can store
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class File:
    """One file of the table.

    Attributes:
        first: number of its first row in the table.
        values: partition values from the names of its folders, by column; None for a missing value.
        mark: size and modification time.
        groups: number of rows of each row group.
        unpacked: size of its values in bytes.
    """

    path: Path
    rows: int
    first: int
    values: tuple[tuple[str, str | None], ...]
    mark: tuple[int, int]
    groups: tuple[int, ...]
    unpacked: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive row groups of a file.

    Attributes:
        groups: their indices.
        first: number of their first row in the table.
    """

    file: File
    groups: tuple[int, ...]
    first: int

    @property
    def rows(self) -> int:
        return sum(self.file.groups[group] for group in self.groups)


@dataclass(frozen=True, slots=True)
class Frozen:
    """Files that together are one table.

    Attributes:
        schema: names and types, partition columns last.
    """

    files: tuple[File, ...]
    schema: pa.Schema
    folders: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        last = self.files[-1]
        return last.first + last.rows

    @property
    def unpacked(self) -> int:
        return sum(file.unpacked for file in self.files)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """The complete table, some columns only."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in columns])
        kept = (batch.drop_columns([ROW]) for batch in self.batches(columns, 1 << 20))
        return pa.Table.from_batches(kept, schema)

    def fingerprint(self) -> str:
        """A hash of all bytes that identifies the files; as private as the table."""
        digest = hashlib.sha256()
        for file in self.files:
            with file.path.open("rb") as opened:
                while piece := opened.read(1 << 20):
                    digest.update(piece)
        return digest.hexdigest()

    def check_unchanged(self) -> None:
        """Raise an error if a file has changed."""
        for file in self.files:
            if not file.path.exists() or _mark(file.path) != file.mark:
                raise InputError("changed-while-release-made", path=file.path)

    def pieces(self, rows: int) -> tuple[Piece, ...]:
        """The table in pieces of about this many rows: whole row groups of one file."""
        found: list[Piece] = []
        for file in self.files:
            row = start = file.first
            groups: list[int] = []
            for number, size in enumerate(file.groups):
                groups.append(number)
                row += size
                if row - start >= rows or number + 1 == len(file.groups):
                    found.append(Piece(file, tuple(groups), start))
                    start, groups = row, []
        return tuple(found)

    def shares(self, rows: int) -> tuple[tuple[Piece, ...], ...]:
        """The table in shares of about this many rows, of one file or of several consecutive small ones."""
        found: list[tuple[Piece, ...]] = []
        share: list[Piece] = []
        size = 0
        for piece in self.pieces(rows):
            if share and size + piece.rows > rows:
                found.append(tuple(share))
                share, size = [], 0
            share.append(piece)
            size += piece.rows
        return (*found, tuple(share)) if share else tuple(found)

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All records, with their row numbers in `ROW`; batches never cross the end of a row group."""
        import pyarrow as pa

        for file in self.files:
            yield from self.piece(Piece(file, tuple(range(len(file.groups))), file.first), columns, size)
            pa.default_memory_pool().release_unused()

    def piece(self, piece: Piece, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """The records of a piece, in the same batches as for the whole table."""
        stored = [name for name in columns if name not in self.folders]
        file, row = piece.file, piece.first
        with _opened_parquet(file.path) as opened:
            for group in piece.groups:
                if not stored:
                    yield self._with_rows(None, file.groups[group], row, columns, file)
                    row += file.groups[group]
                    continue
                batches = opened.iter_batches(size, [group], stored)
                while (batch := _next(batches, file.path)) is not None:
                    yield self._with_rows(batch, batch.num_rows, row, columns, file)
                    row += batch.num_rows

    def _with_rows(
        self, batch: pa.RecordBatch | None, rows: int, first: int, columns: Sequence[str], file: File
    ) -> pa.RecordBatch:
        import pyarrow as pa

        said = dict(file.values)
        arrays: list[Any] = []
        for name in columns:
            field = self.schema.field(name)
            if name in said:
                arrays.append(pa.array([said[name]] * rows, pa.string()).cast(field.type))
            else:
                assert batch is not None
                arrays.append(batch.column(batch.schema.names.index(name)).cast(field.type))
        arrays.append(pa.array(np.arange(first, first + rows, dtype=np.int64)))
        return pa.record_batch(arrays, names=[*columns, ROW])


def frozen(path: str | Path, *, empty: bool = False) -> Frozen:
    """The Parquet file, or all Parquet files of a folder and its subfolders.

    Columns are those of the first file, matched by name in the others, in a type that holds the values of all
    files: 32-bit and 64-bit integers become one 64-bit column.

    Args:
        empty: accept files without rows.

    Raises:
        InputError: there are no files, one cannot be read, their columns differ, they hold no rows, or the
            folder is a table with a transaction log.
    """
    import pyarrow as pa

    path = Path(path)
    if not path.exists():
        raise InputError("there-no-file-folder", path=path)
    if not path.is_dir():
        refuse_logged(path)
    found = parquet_files(path) if path.is_dir() else [path]
    if not found:
        raise InputError("folder-holds-no-parquet-file-parquet", path=path)
    files: list[File] = []
    schema: pa.Schema | None = None
    first = 0
    for one in found:
        with _opened_parquet(one) as opened:
            facts = opened.metadata
            own = pa.schema([pa.field(field.name, field.type) for field in opened.schema_arrow])
            groups = tuple(facts.row_group(number).num_rows for number in range(facts.num_row_groups))
            unpacked = sum(unpacked_sizes(facts))
        if len(set(own.names)) < len(own.names):
            repeated = next(name for name in own.names if own.names.count(name) > 1)
            raise InputError("parquet-files-two-columns-named", path=one, column=repeated)
        schema = own if schema is None else _common(schema, own, found[0], one)
        files.append(File(one, sum(groups), first, _folder_values(one, path), _mark(one), groups, unpacked))
        first += sum(groups)
    assert schema is not None
    if not first and not empty:
        raise InputError("header-but-no-rows", path=path)
    return _with_folders(files, schema, path)


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files below a folder in the order of their names, without hidden files and commit files.

    Raises:
        InputError: it is, or contains, a table with a transaction log.
    """
    refuse_logged(folder)
    found = [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    between = {above for path in found for above in path.parents if above.is_relative_to(folder)} - {folder}
    for below in sorted(between):
        _refuse_log_in(below)
    return found


def refuse_logged(path: Path) -> None:
    """Refuse a file or folder of a table with a transaction log."""
    place = path.absolute() if path.is_dir() else path.absolute().parent
    _refuse_log_in(place)
    # a partition of such a table, or its data folder beside the log
    while place.name == "data" or ("=" in place.name and not place.name.startswith(".")):
        place = place.parent
        _refuse_log_in(place)


def _refuse_log_in(folder: Path) -> None:
    refuse_log(str(folder), lambda log: next(folder.glob(log), None) is not None)


def refuse_log(folder: str, there: Callable[[str], bool]) -> None:
    """Refuse a folder in which `there` finds the transaction log of a table format."""
    for name, log in _LOGGED.items():
        if there(log):
            raise InputError("table-with-a-log", folder=folder, name=name, name_2=name.lower())


def unpacked_sizes(facts: parquet.FileMetaData) -> Iterator[int]:
    """The size in bytes of each row group's values, according to the file."""
    for number in range(facts.num_row_groups):
        yield facts.row_group(number).total_byte_size


@contextmanager
def _opened_parquet(path: Path) -> Iterator[parquet.ParquetFile]:
    """A Parquet file; read errors name it."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    with opened:
        yield opened


def _next(batches: Iterator[pa.RecordBatch], path: Path) -> pa.RecordBatch | None:
    """The next batch of a file, None after the last."""
    import pyarrow as pa

    try:
        batch = next(batches, None)
        if batch is not None:
            batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    return batch


def _unreadable(path: Path, error: Exception) -> InputError:
    lines = str(error).splitlines()
    reason = lines[0][:160].rstrip(".") if lines else Message("no-reason")
    return InputError("unreadable", path=path, reason=reason)


def _common(before: pa.Schema, own: pa.Schema, first: Path, path: Path) -> pa.Schema:
    """The columns of the previous files and one more, matched by name, in types that hold both."""
    import pyarrow as pa

    if own == before:
        return before
    for have, lack, where, beside in ((own, before, path, first), (before, own, first, path)):
        more = next((name for name in have.names if name not in set(lack.names)), None)
        if more is not None:
            raise InputError("has-a-column-and-has-none", column=more, path=where, other=beside)
    fields = []
    for field in before:
        other = own.field(field.name).type
        type = _wider(field.type, other)
        if type is None:
            raise InputError(
                "column-files-before-such",
                column=field.name,
                other=other,
                path=path,
                type=field.type,
                first=first,
            )
        fields.append(pa.field(field.name, type))
    return pa.schema(fields)


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds every value of both types without loss, or None.

    >>> import pyarrow as pa
    >>> _wider(pa.int32(), pa.int64()), _wider(pa.uint32(), pa.int32()), _wider(pa.uint64(), pa.int8())
    (DataType(int64), DataType(int64), None)
    """
    import pyarrow as pa

    if one == other:
        return one
    if pa.types.is_null(one) or pa.types.is_null(other):
        return other if pa.types.is_null(one) else one
    texts = (pa.string(), pa.large_string())
    if one in texts and other in texts:
        return pa.large_string()
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return max((one, other), key=lambda type: type.bit_width)
    if not (pa.types.is_integer(one) and pa.types.is_integer(other)):
        return None
    signed = [type for type in (one, other) if pa.types.is_signed_integer(type)]
    if len(signed) != 1:
        return max((one, other), key=lambda type: type.bit_width)
    unsigned = other if signed[0] is one else one
    bits = max(signed[0].bit_width, 2 * unsigned.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits)


def _folder_values(path: Path, root: Path) -> tuple[tuple[str, str | None], ...]:
    if path == root:
        return ()
    parts = [part.partition("=") for part in path.relative_to(root).parts[:-1]]
    return tuple(
        (name, None if value == _NO_VALUE else unquote(value)) for name, equal, value in parts if equal
    )


def _with_folders(files: Sequence[File], schema: pa.Schema, path: Path) -> Frozen:
    """The table with partition columns: integers where all values are, text otherwise."""
    import pyarrow as pa

    names = tuple(name for name, _ in files[0].values)
    for file in files:
        if tuple(name for name, _ in file.values) != names:
            raise InputError("lies-folders-other-names-than", path=file.path, other=files[0].path)
    for number, name in enumerate(names):
        if name in schema.names:
            raise InputError("column-both-files-names-folders", column=name, path=path)
        values = {value for file in files if (value := file.values[number][1]) is not None}
        schema = schema.append(pa.field(name, _named_type(values)))
    return Frozen(tuple(files), schema, names)


def _named_type(values: set[str]) -> pa.DataType:
    """The type of partition values."""
    import pyarrow as pa

    whole = bool(values) and all(
        value.removeprefix("-").isdecimal() and str(int(value)) == value for value in values
    )
    largest = max((abs(int(value)) for value in values), default=0) if whole else 1 << 63
    return pa.int32() if largest < 1 << 31 else pa.int64() if largest < 1 << 63 else pa.string()


def _mark(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def library() -> Any:
    """openpyxl, or a one-line error that says how to install it."""
    with needs_extra("excel", "Excel files need"):
        import openpyxl
    return openpyxl


def read_excel(path: Path, told: Conventions) -> tuple[pa.Table, dict[str, Message], Conventions]:
    """Columns of the sheet, named by the first row or the declared header row; doubts about mixed columns.

    Raises:
        InputError: not a workbook, several sheets and none named, or a cell with an error or an uncalculated formula.
    """
    import pyarrow as pa

    library()
    check_zip(path)
    cells = (
        SheetRange((told.header_row or 1) - 1, 0, None, None, "")
        if told.range is None
        else cells_of(told.range)
    )
    sheet, rows = _rows(path, told.sheet, cells, values=True)
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        if told.range is not None:
            raise InputError("range-empty", path=path, sheet=sheet, range=told.range)
        if told.header_row is not None:
            raise InputError("sheet-empty-from-row", path=path, sheet=sheet, row=told.header_row)
        raise InputError("empty-row-names-least-row-needed", path=path, sheet=sheet)
    width = max(
        max((place + 1 for place, cell in enumerate(row) if cell is not None), default=0) for row in rows
    )
    rows = [[*row[:width], *[None] * (width - len(row))] for row in rows]
    _check_formulas(path, sheet, rows, cells)
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    columns, doubts = [], {}
    for place, name in enumerate(names):
        column, doubt = column_of(name, [row[place] for row in rows[1:]])
        columns.append(column)
        if doubt is not None:
            doubts[name] = doubt
    return pa.table(columns, names=names), doubts, told


@contextmanager
def _workbook(path: Path, *, values: bool) -> Iterator[Any]:
    """The workbook, with cell values or with formulas."""
    openpyxl = library()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(path, read_only=True, data_only=values, keep_links=False)
    except InputError:
        raise
    except Exception as error:  # a broken workbook can fail in the parsers of several libraries
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError("cannot-read-excel", path=path, reason=reason) from None
    try:
        yield book
    finally:
        book.close()


def _rows(path: Path, wanted: str | None, cells: SheetRange, *, values: bool) -> tuple[str, list[list[Any]]]:
    """The title of the sheet, and its rows within the range of the table."""
    with _workbook(path, values=values) as book:
        names = [sheet.title for sheet in book.worksheets]
        if wanted is None and len(names) > 1:
            raise InputError("several-sheets", path=path, count=len(names), allowed=tuple(names[:8]))
        if wanted is not None and wanted not in names:
            raise InputError("has-no-sheet", path=path, found=wanted, hint=closest(wanted, names))
        if not names:
            raise InputError("no-sheet-cells", path=path)
        sheet = book[wanted or names[0]]
        try:
            # the size recorded in a file may be too small
            sheet.reset_dimensions()
            rows = [list(row) for row in sheet.iter_rows(values_only=True)]
            last_row = None if cells.bottom is None else cells.bottom + 1
            last_column = None if cells.right is None else cells.right + 1
            return sheet.title, [row[cells.left : last_column] for row in rows[cells.top : last_row]]
        except Exception as error:
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise InputError("cannot-read-excel", path=path, reason=reason) from None


def _check_formulas(path: Path, sheet: str, rows: list[list[Any]], cells: SheetRange) -> None:
    """Refuse cells that hold an error, and formulas without a stored value."""
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            if isinstance(cell, str) and cell in _ERRORS and cell != "#N/A":
                wrong = _cell(cells.top + number, cells.left + place)
                raise InputError("cell-sheet-holds-error", path=path, place=wrong, sheet=sheet, found=cell)
            if cell == "#N/A":
                row[place] = None
    with zipfile.ZipFile(path) as archive:
        parts = [name for name in archive.namelist() if re.match(r"xl/worksheets/[^/]+\.xml$", name)]
        if not any(b"<f" in archive.read(part) for part in parts):
            return
    _, formulas = _rows(path, sheet, cells, values=False)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            there = (
                formulas[number][place] if number < len(formulas) and place < len(formulas[number]) else None
            )
            if cell is None and isinstance(there, str) and there.startswith("="):
                named = _cell(cells.top + number, cells.left + place)
                raise InputError(
                    "cell-sheet-holds-formula-without-value", path=path, place=named, sheet=sheet
                )


def _cell(row: int, place: int) -> str:
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def check_size(names: Any) -> None:
    """Refuse, before any work is done, a table that a sheet cannot hold."""
    library()
    if len(names) > _MOST_COLUMNS:
        raise InputError("sheet-too-many-columns", most=_MOST_COLUMNS, found=len(names))


def write_excel(table: pa.Table, path: Path, conventions: Conventions, formats: dict[str, str]) -> None:
    """Write one sheet, without time stamps; texts stay texts, whatever character they start with."""
    from shoal.errors import OutputError

    if table.num_rows > _MOST_ROWS:
        raise OutputError("sheet-most-rows", most=_MOST_ROWS)
    openpyxl = library()
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet(_title(conventions.sheet))

    def cell(value: Any, form: str | None = None) -> Any:
        made = WriteOnlyCell(sheet, value=value)
        if isinstance(value, str):
            made.data_type = "s"
        elif form is not None and isinstance(value, date):
            made.number_format = form
        return made

    names = table.column_names
    sheet.append([cell(name) for name in names])
    forms = [formats.get(name, conventions.date_format) for name in names]
    for batch in table.to_batches(max_chunksize=1 << 14):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            sheet.append([cell(_storable(value), form) for value, form in zip(row, forms, strict=True)])
    book.save(path)
    _without_clock(path)


def _title(sheet: str | None) -> str:
    return re.sub(r"[\[\]:*?/\\]", "_", sheet or "data")[:31] or "data"


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        # XML does not allow control characters
        return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", value)
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat()
    return value


def _without_clock(path: Path) -> None:
    """Rewrite the archive without the modification times of its parts."""
    aside = path.with_name(path.name + ".part")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as after:
        for part in before.infolist():
            content = before.read(part)
            if part.filename == "docProps/core.xml":
                content = re.sub(
                    rb"(<dcterms:\w+[^>]*>)[^<]*(</dcterms)", rb"\g<1>1980-01-01T00:00:00Z\g<2>", content
                )
                content = re.sub(rb"(<dc:creator>)[^<]*(</dc:creator>)", rb"\g<1>\g<2>", content)
            after.writestr(zipfile.ZipInfo(part.filename, _EPOCH), content, zipfile.ZIP_DEFLATED)
    aside.replace(path)


def read_json_lines(path: Path, packing: str = "") -> tuple[pa.Table, dict[str, Message]]:
    """Columns in the order in which their names first occur, and doubts about columns of mixed types.

    A name missing from a line is a missing value.

    Raises:
        InputError: a line is not a flat object; names the row.
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    names: dict[str, None] = {}
    with closing(_opened(path, packing)) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", newline="\n")
        try:
            for line in lines:
                if line.strip():
                    rows.append(_object(path, line, len(rows) + 1))
                    names.update(dict.fromkeys(rows[-1]))
        except UnicodeDecodeError as error:
            raise InputError(
                "not-utf-8-text-json", row=len(rows), path=path, found=error.object[error.start]
            ) from None
    columns: dict[str, Any] = {}
    doubts: dict[str, Message] = {}
    for name in names:
        columns[name], doubt = column_of(name, [row.get(name) for row in rows])
        if doubt is not None:
            doubts[name] = doubt
    return pa.table(columns), doubts


def _object(path: Path, line: str, row: int) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InputError("row-name-twice", row=row, path=path)
        return found

    def refuse(word: str) -> Any:
        raise InputError("row-holds-no-value-json", row=row, path=path, found=word)

    try:
        found = json.loads(line, object_pairs_hook=once, parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "row-not-json-object-line-own", row=row, path=path, reason=str(error).splitlines()[0]
        ) from None
    if not isinstance(found, dict):
        raise InputError("row-not-json-object-such", row=row, path=path)
    for name, value in found.items():
        if isinstance(value, dict | list):
            raise InputError("row-holds-list-object-table-value", row=row, path=path, column=name)
    return found


def write_json_lines(table: pa.Table, path: Path, conventions: Conventions, packing: str = "") -> None:
    """One object per row; a missing value is null."""
    names = table.column_names
    with _target(path, packing) as file:
        for batch in table.to_batches(max_chunksize=1 << 16):
            columns = [_plain(column) for column in batch.columns]
            for row in zip(*columns, strict=True):
                line = json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
                file.write(f"{line}\n".encode())


def _plain(column: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        return [None if value != value else value for value in column.to_pylist()]
    return list(column.to_pylist())


def read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A Parquet file, or some columns of it or of a folder of such files."""
    from pyarrow import parquet

    if path.is_dir():
        files = frozen(path, empty=True)
        if columns is None and files.unpacked > MOST_BYTES * 16:
            raise too_much(path, MOST_BYTES * 16)
        return files.table(files.schema.names if columns is None else columns)

    with parquet.ParquetFile(path) as file:
        meta = file.metadata
        if sum(unpacked_sizes(meta)) > MOST_BYTES * 16:
            raise too_much(path, MOST_BYTES * 16)
        table = file.read(columns)
    # pages without a checksum may hold invalid text
    table.validate(full=True)
    return table


def parquet_rows(path: Path) -> int:
    from pyarrow import parquet

    if path.is_dir():
        return frozen(path, empty=True).rows
    return int(parquet.read_metadata(path).num_rows)


def write_parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(bare(table), path)


def read_feather(path: Path) -> pa.Table:
    """A Feather file, read in pieces up to the size limit."""
    import pyarrow as pa

    most = most_unpacked(path.stat().st_size)
    with pa.OSFile(str(path)) as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            raise InputError("not-feather-file-present-version", path=path) from None
        batches, size = [], 0
        for number in range(reader.num_record_batches):
            batches.append(reader.get_batch(number))
            # a damaged file may have wrong lengths and invalid text
            batches[-1].validate(full=True)
            size += batches[-1].nbytes
            if size > most:
                raise too_much(path, most)
        return pa.Table.from_batches(batches, reader.schema)


def write_feather(table: pa.Table, path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(bare(table), str(path), compression="zstd")


def bare(table: pa.Table) -> pa.Table:
    """The table without metadata: frame libraries store index and origin in the metadata of files and fields."""
    import pyarrow as pa

    return pa.table(table.columns, schema=pa.schema([pa.field(f.name, f.type) for f in table.schema]))
