"""Parquet files that are one table, a single file or a folder of them, taken as they are now.

Batches of records know their row numbers: files in the order of their names, folders such as region=North below each
other as columns. A file that changes while a release is made ends it, because noise would be drawn for other records.
Tables whose log says which rows are still there (Delta, Iceberg, Hudi) are refused: their files hold deleted rows too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from shoal.errors import InputError
from shoal.text import Message

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

# beside the columns of a batch of records: their numbers in the table
ROW = "shoal row number"
# what Hive, Spark and Arrow call the folder of the rows that have no value
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# how a folder is recognised whose files are not the table: a log beside them says which rows are
_LOGGED = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json", "Hudi": ".hoodie"}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the table.

    Attributes:
        first: number of its first row.
        values: what the names of the folders above it say, by column; None for a missing value.
        mark: size and time of the last change.
        groups: rows of each of its row groups.
        unpacked: bytes of its values.
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
    """Row groups of a file that follow each other.

    Attributes:
        groups: their numbers.
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
    """Files that are one table.

    Attributes:
        schema: names and types, those of folders last.
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
        """Some columns as a whole."""
        import pyarrow as pa

        schema = pa.schema([self.schema.field(name) for name in columns])
        kept = (batch.drop_columns([ROW]) for batch in self.batches(columns, 1 << 20))
        return pa.Table.from_batches(kept, schema)

    def fingerprint(self) -> str:
        """A hash of all bytes, by which the same files are recognised; as private as the table."""
        digest = hashlib.sha256()
        for file in self.files:
            with file.path.open("rb") as opened:
                while piece := opened.read(1 << 20):
                    digest.update(piece)
        return digest.hexdigest()

    def check_unchanged(self) -> None:
        """An error if a file is not as it was."""
        for file in self.files:
            if not file.path.exists() or _mark(file.path) != file.mark:
                raise InputError("changed-while-release-made", path=file.path)

    def pieces(self, rows: int) -> tuple[Piece, ...]:
        """The table in pieces of about so many rows: whole row groups of one file."""
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
        """The table in shares of about so many rows, of one file or of many small ones that follow each other."""
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
        """All records, with their numbers in `ROW`; batches never reach over the end of a row group."""
        import pyarrow as pa

        for file in self.files:
            yield from self.piece(Piece(file, tuple(range(len(file.groups))), file.first), columns, size)
            pa.default_memory_pool().release_unused()

    def piece(self, piece: Piece, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """The records of a piece, the same batches as of the whole table."""
        stored = [name for name in columns if name not in self.folders]
        file, row = piece.file, piece.first
        with _opened(file.path) as opened:
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
    """The Parquet file, or all Parquet files of a folder and of the folders in it.

    Columns are those of the first file, found by name in the others, in a type that holds the values of all files:
    whole numbers of 32 and of 64 bits are one column of 64 bits.

    Args:
        empty: take files without rows.

    Raises:
        InputError: there is none, one cannot be read, they do not have the same columns, they hold no rows, or what
            is there is a table with a log of its own.
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
        with _opened(one) as opened:
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
    """The Parquet files below a folder in the order of their names; hidden ones, and those of a commit, aside.

    Raises:
        InputError: it is, or holds, a table whose log says which of the rows are still there.
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
    """Refuse a file or folder of a table whose log says which of the rows are still there."""
    place = path.absolute() if path.is_dir() else path.absolute().parent
    _refuse_log_in(place)
    # a partition of such a table, or its data beside the log
    while place.name == "data" or ("=" in place.name and not place.name.startswith(".")):
        place = place.parent
        _refuse_log_in(place)


def _refuse_log_in(folder: Path) -> None:
    refuse_log(str(folder), lambda log: next(folder.glob(log), None) is not None)


def refuse_log(folder: str, there: Callable[[str], bool]) -> None:
    """Refuse a folder in which `there` finds the log of a table format."""
    for name, log in _LOGGED.items():
        if there(log):
            raise InputError("table-with-a-log", folder=folder, name=name, name_2=name.lower())


def unpacked_sizes(facts: parquet.FileMetaData) -> Iterator[int]:
    """The bytes of the values of each row group, as a file says."""
    for number in range(facts.num_row_groups):
        yield facts.row_group(number).total_byte_size


@contextmanager
def _opened(path: Path) -> Iterator[parquet.ParquetFile]:
    """A Parquet file; what cannot be read of it names the file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    with opened:
        yield opened


def _next(batches: Iterator[pa.RecordBatch], path: Path) -> pa.RecordBatch | None:
    """The next of the batches of a file, None after the last."""
    import pyarrow as pa

    try:
        return next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    lines = str(error).splitlines()
    reason = lines[0][:160].rstrip(".") if lines else Message("no-reason")
    return InputError("unreadable", path=path, reason=reason)


def _common(before: pa.Schema, own: pa.Schema, first: Path, path: Path) -> pa.Schema:
    """The columns of the files before and of one more, by name, in types that hold both."""
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
    """The type that holds every value of two without a loss; None where there is none.

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
    """Columns that the names of folders are: whole numbers where all are, text otherwise."""
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
    """The type of what the names of folders say."""
    import pyarrow as pa

    whole = bool(values) and all(
        value.removeprefix("-").isdecimal() and str(int(value)) == value for value in values
    )
    largest = max((abs(int(value)) for value in values), default=0) if whole else 1 << 63
    return pa.int32() if largest < 1 << 31 else pa.int64() if largest < 1 << 63 else pa.string()


def _mark(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns
