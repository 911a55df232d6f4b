"""How much is read: the file of a data set comes in, an error that says what is too large leaves, or nothing.

A small file can hold a table that fills the memory: what a Parquet file says of itself is looked at first, then it is
read piece by piece and only its size is kept.
"""

from __future__ import annotations

from pathlib import Path

from shoal.errors import InputError
from shoal.io import find_format
from shoal.io.common import MOST_BYTES, unpacked_sizes


def check_size(path: Path, dataset: str, most_rows: int, most_bytes: int = MOST_BYTES) -> None:
    """Refuse a file with more rows or more bytes, once unpacked, than a server is meant to hold.

    Raises:
        InputError: it is too large, or cannot be read.
    """
    size = path.stat().st_size
    if size > most_bytes:
        raise _too_large(dataset, f"{size:,} bytes", f"{most_bytes:,}")
    kind = find_format(path)
    if kind is not None and kind.name == "parquet":
        _check_parquet(path, dataset, most_rows, most_bytes)


def check_rows(dataset: str, rows: int, most_rows: int) -> None:
    """Refuse a table with too many rows, whatever the file said."""
    if rows > most_rows:
        raise _too_large(dataset, f"{rows:,} rows", f"{most_rows:,} (most_rows in dataset.toml)")


def _check_parquet(path: Path, dataset: str, most_rows: int, most_bytes: int) -> None:
    import pyarrow as pa

    try:
        for rows, size in unpacked_sizes(path):
            check_rows(dataset, rows, most_rows)
            if size > most_bytes:
                raise _too_large(dataset, f"more than {most_bytes:,} bytes, unpacked", f"{most_bytes:,}")
    except (pa.ArrowException, OSError) as error:
        raise InputError("cannot-read-parquet", path=path, reason=str(error).splitlines()[0]) from None


def _too_large(dataset: str, found: str, most: str) -> InputError:
    return InputError("data-set-most-served", dataset=dataset, found=found, most=most)
