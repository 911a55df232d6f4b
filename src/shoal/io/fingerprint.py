"""Hashes by which a table is recognised, by its bytes or by its records; as private as the table."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.io.parquet_files import Frozen, parquet_files
from shoal.io.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

Words = NDArray[np.uint64]

# odd constants of splitmix64, and one each for what is mixed with them
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_NUMBER, _TEXT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_SUMS = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))
# public weights of the bytes of a text, by place; the places of longer texts are told apart by their round
_PLACES = 1 << 12
_WEIGHTS = np.random.default_rng(0).integers(1, 1 << 63, _PLACES, dtype=np.uint64) * np.uint64(2) + np.uint64(
    1
)
# different texts, and rows of a batch, that are hashed together
_TEXTS, _ROWS = 1 << 17, 1 << 18
_DECIMAL = r"^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$"
_DAY = r"^\d{4}-\d{2}-\d{2}([ t]\d{2}:\d{2}[\d:.]*)?$"


def fingerprint(source: Path | Table) -> str:
    """A hash of a file, of a folder of Parquet files or of a table in memory; as private as the table."""
    digest = hashlib.sha256()
    if isinstance(source, Table):
        _hash_table(source, digest)
        return digest.hexdigest()
    for path in parquet_files(source) if source.is_dir() else [source]:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _hash_table(table: Table, digest: hashlib._Hash) -> None:
    import pyarrow as pa

    # one piece per column: in how many it lies in memory is no property of the table
    whole = table.frame.to_arrow().combine_chunks().replace_schema_metadata(None)
    for batch in whole.to_batches() or [pa.record_batch([], names=[])]:
        digest.update(batch.serialize())
    digest.update(whole.schema.serialize())


def content_digest(source: Table | Frozen) -> str:
    """A hash of the records of a table: the same in any order of rows and columns, in any format, with blank lines.

    Columns are not told apart by name, numbers are compared to about seven digits and times by their day, because
    formats and declared types differ in all of these.
    A table that went through steps keeps the digest of the table that was read.

    Cost: some 20 ns for a number, 100 ns for a different text, and eight bytes for each row.

    >>> import pyarrow as pa
    >>> from shoal.io import read
    >>> people = pa.table({"age": [31, 45], "town": ["A", None]})
    >>> other = pa.table({"Town": ["", "a "], "age": ["45.0", "31"]})
    >>> content_digest(read(people)) == content_digest(read(other))
    True
    """
    if isinstance(source, Table) and source.content:
        return source.content
    count, sums = 0, [0, 0]
    for rows in _in_batches(source) if isinstance(source, Frozen) else [_whole(source)]:
        present = rows[rows != 0]
        count += present.size
        for lane, odd in enumerate(_SUMS):
            sums[lane] = (sums[lane] + int(_mixed(present ^ odd).sum(dtype=np.uint64))) % 2**64
    return hashlib.sha256(f"{count} {sums[0]} {sums[1]}".encode()).hexdigest()


def _whole(table: Table) -> Words:
    return _rows(table.n, (_arrow(table, name) for name in table.names))


def _in_batches(files: Frozen) -> Iterator[Words]:
    names = files.schema.names
    for batch in files.batches(names, _ROWS):
        yield _rows(batch.num_rows, (batch.column(name) for name in names))


def _rows(n: int, columns: Iterable[Any]) -> Words:
    """A number for each row, which is 0 where every cell is missing."""
    rows = np.zeros(n, dtype=np.uint64)
    for column in columns:
        rows += _cells(column)
    return rows


def _arrow(table: Table, name: str) -> pa.Array:
    import pyarrow as pa

    series = table.series(name)
    try:
        found = series.to_arrow()
    except pa.ArrowException:
        # values of several types in one column
        found = pa.array([None if value is None else str(value) for value in series.to_list()])
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _cells(column: pa.Array) -> Words:
    """A number for each cell, which is 0 where it is missing."""
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _looked_up(_cells(column.dictionary), column.indices)
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.uint64)
    if pa.types.is_date(kind):
        return _numbers(column.cast(pa.date32()).cast(pa.int32()))
    if pa.types.is_timestamp(kind):
        # a declared type may drop the time of day
        return _numbers(compute.floor(compute.divide(_seconds(column), 86_400.0)))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _numbers(column)
    try:
        texts = column.cast(pa.large_string())
    except pa.ArrowException:
        texts = pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.large_string())
    found = texts.dictionary_encode()
    pieces = [
        _texts(found.dictionary.slice(start, _TEXTS)) for start in range(0, len(found.dictionary), _TEXTS)
    ]
    return _looked_up(np.concatenate([np.zeros(0, dtype=np.uint64), *pieces]), found.indices)


def _looked_up(cells: Words, indices: pa.Array) -> Words:
    import pyarrow as pa
    from pyarrow import compute

    places = np.asarray(compute.fill_null(indices.cast(pa.int64()), cells.size))
    found: Words = np.append(cells, np.uint64(0))[places]
    return found


def _seconds(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column.cast(pa.timestamp("s", column.type.tz), safe=False).cast(pa.int64()).cast(pa.float64())


def _numbers(column: pa.Array) -> Words:
    import pyarrow as pa

    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        # adding 0 leaves one zero of two
        narrow = values.astype(np.float32) + np.float32(0)
    found = _mixed(narrow.view(np.uint32).astype(np.uint64) + _NUMBER)
    found[np.isnan(narrow)] = 0
    return found


def _texts(texts: pa.Array) -> Words:
    """Numbers and days that are written as texts count as what they are."""
    import pyarrow as pa
    from pyarrow import compute

    plain = compute.utf8_lower(compute.utf8_trim_whitespace(texts))
    found = _spelled(plain)
    found[np.asarray(compute.equal(plain, ""))] = 0
    numeric = np.asarray(compute.match_substring_regex(plain, _DECIMAL))
    if numeric.any():
        found[numeric] = _numbers(plain.filter(pa.array(numeric)).cast(pa.float64()))
    days = np.asarray(compute.match_substring_regex(plain, _DAY))
    if days.any():
        written = compute.utf8_slice_codeunits(plain.filter(pa.array(days)), 0, 10)
        parsed = compute.strptime(written, format="%Y-%m-%d", unit="s", error_is_null=True)
        known = np.asarray(compute.is_valid(parsed))
        places = np.flatnonzero(days)[known]
        found[places] = _numbers(parsed.filter(pa.array(known)).cast(pa.date32()).cast(pa.int32()))
    return found


def _spelled(texts: pa.Array) -> Words:
    """A sum of bytes, weighted by their places, for each text."""
    import pyarrow as pa

    texts = pa.concat_arrays([texts])  # a slice of a larger array has the buffers of the whole
    _, where, held = texts.buffers()
    ends = np.frombuffer(where, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(held or b"", dtype=np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    starts = ends - ends[0]
    places = np.arange(data.size) - np.repeat(starts[:-1], np.diff(starts))
    rounds = (places // _PLACES).astype(np.uint64) * _TEXT
    sums = np.append(np.uint64(0), np.cumsum((data + np.uint64(1)) * (_WEIGHTS[places % _PLACES] + rounds)))
    return _mixed((sums[starts[1:]] - sums[starts[:-1]]) ^ _TEXT)


def _mixed(values: Words) -> Words:
    """The finaliser of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
