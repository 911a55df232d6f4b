"""Parquet and Feather files: types of their own are kept, and nothing else that a file could tell is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError
from shoal.io.limits import MOST_BYTES, most_unpacked, too_much
from shoal.io.parquet_files import frozen, unpacked_sizes

if TYPE_CHECKING:
    import pyarrow as pa


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
        return file.read(columns)


def parquet_rows(path: Path) -> int:
    from pyarrow import parquet

    if path.is_dir():
        return frozen(path, empty=True).rows
    return int(parquet.read_metadata(path).num_rows)


def write_parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(bare(table), path)


def read_feather(path: Path) -> pa.Table:
    """A Feather file, piece by piece up to the limit."""
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
            size += batches[-1].nbytes
            if size > most:
                raise too_much(path, most)
        return pa.Table.from_batches(batches, reader.schema)


def write_feather(table: pa.Table, path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(bare(table), str(path), compression="zstd")


def bare(table: pa.Table) -> pa.Table:
    """Only names, types and values: frame libraries hide index and origin in the metadata of files and fields."""
    import pyarrow as pa

    return pa.table(table.columns, schema=pa.schema([pa.field(f.name, f.type) for f in table.schema]))
