"""Parquet files that are one table: a file, or a folder of them, comes in, and is taken as it is now.

Batches of records know their row numbers: files in the order of their names, folders such as region=North below each
other as columns. A file that changes while a release is made ends it, because noise would be drawn for other records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from shoal.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# beside the columns of a batch of records: their numbers in the table
ROW = "shoal row number"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the table.

    Attributes:
        first: number of its first row.
        values: what the names of the folders above it say, by column.
        mark: size and time of the last change.
        groups: rows of each of its row groups.
    """

    path: Path
    rows: int
    first: int
    values: tuple[tuple[str, str], ...]
    mark: tuple[int, int]
    groups: tuple[int, ...]


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

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as a whole."""
        import pyarrow as pa

        pieces = [batch.column(0) for batch in self.batches([name], 1 << 20)]
        return pa.chunked_array(pieces, self.schema.field(name).type)

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
                raise InputError(
                    f"'{file.path}' changed while the release was made: start again on files that stay as they are."
                )

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

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All records, with their numbers in `ROW`; batches never reach over the end of a row group."""
        import pyarrow as pa

        for file in self.files:
            yield from self.piece(Piece(file, tuple(range(len(file.groups))), file.first), columns, size)
            pa.default_memory_pool().release_unused()

    def piece(self, piece: Piece, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """The records of a piece, the same batches as of the whole table."""
        from pyarrow import parquet

        stored = [name for name in columns if name not in self.folders]
        file, row = piece.file, piece.first
        with parquet.ParquetFile(file.path) as opened:
            for group in piece.groups:
                if not stored:
                    yield self._with_rows(None, file.groups[group], row, columns, file)
                    row += file.groups[group]
                    continue
                for batch in opened.iter_batches(size, [group], stored):
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

    Args:
        empty: take files without rows.

    Raises:
        InputError: there is none, one cannot be read, they do not have the same columns, or hold no rows.
    """
    import pyarrow as pa
    from pyarrow import parquet

    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file or folder '{path}'.")
    found = parquet_files(path) if path.is_dir() else [path]
    if not found:
        raise InputError(f"the folder '{path}' holds no Parquet file (*.parquet): name another.")
    files: list[File] = []
    schema: pa.Schema | None = None
    first = 0
    for one in found:
        try:
            with parquet.ParquetFile(one) as opened:
                facts, own = opened.metadata, opened.schema_arrow
                groups = tuple(facts.row_group(number).num_rows for number in range(facts.num_row_groups))
        except (pa.ArrowException, OSError) as error:
            reason = (str(error).splitlines() or ["no reason given"])[0][:160]
            raise InputError(f"'{one}' cannot be read as Parquet: {reason}") from None
        own = pa.schema([pa.field(field.name, field.type) for field in own])
        schema = own if schema is None else schema
        if own != schema:
            raise InputError(
                f"'{one}' has other columns or types than '{found[0]}': files of one table must have the same."
            )
        files.append(File(one, sum(groups), first, _folder_values(one, path), _mark(one), groups))
        first += sum(groups)
    assert schema is not None
    if not first and not empty:
        raise InputError(f"'{path}' has a header but no rows.")
    return _with_folders(files, schema, path)


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files below a folder in the order of their names; hidden ones, and those of a commit, aside."""
    return [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]


def _folder_values(path: Path, root: Path) -> tuple[tuple[str, str], ...]:
    if path == root:
        return ()
    parts = [part.partition("=") for part in path.relative_to(root).parts[:-1]]
    return tuple((name, unquote(value)) for name, equal, value in parts if equal)


def _with_folders(files: Sequence[File], schema: pa.Schema, path: Path) -> Frozen:
    """Columns that the names of folders are: whole numbers where all are, text otherwise."""
    import pyarrow as pa

    names = tuple(name for name, _ in files[0].values)
    for file in files:
        if tuple(name for name, _ in file.values) != names:
            raise InputError(
                f"'{file.path}' lies in folders of other names than '{files[0].path}': partition all files alike."
            )
    for number, name in enumerate(names):
        if name in schema.names:
            raise InputError(f"'{path}': column '{name}' is both in the files and in the names of folders.")
        values = [file.values[number][1] for file in files]
        whole = all(value.lstrip("-").isdigit() and str(int(value)) == value for value in values)
        schema = schema.append(pa.field(name, pa.int32() if whole else pa.string()))
    return Frozen(tuple(files), schema, names)


def _mark(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns
