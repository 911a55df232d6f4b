"""A table comes in, a hash leaves by which the same table is recognised; it is as private as the table."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shoal.io.parquet_files import parquet_files
from shoal.io.table import Table


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
