"""Arrays on their way between stages: numpy arrays come in, rows of (bucket, part, bytes) leave, and back.

A row of bytes costs an engine far less than a thousand rows of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Blob = tuple[int, int, bytes]
_CODEC = "lz4"
# below so many bytes compression saves nothing
_SMALL = 512


def blob_schema() -> pa.Schema:
    """What passes between stages."""
    import pyarrow as pa

    return pa.schema([("bucket", pa.int32()), ("part", pa.int32()), ("blob", pa.binary())])


def packed(*arrays: NDArray[Any], shrink: bool = False, squeeze: bool = False) -> bytes:
    """Arrays as bytes; with `shrink` whole numbers in the smallest type that holds them, with `squeeze` compressed too.

    >>> [part.tolist() for part in unpacked(packed(np.array([3, 4]), np.array([0.5])))]
    [[3, 4], [0.5]]
    >>> unpacked(packed(np.arange(1000), squeeze=True))[0].dtype
    dtype('uint16')
    """
    import pyarrow as pa

    parts = [_smallest(array) if shrink or squeeze else array for array in arrays]
    head = ";".join(f"{part.dtype.str},{part.size}" for part in parts).encode()
    body = b"".join([len(head).to_bytes(4, "little"), head, *(part.tobytes() for part in parts)])
    if not squeeze or len(body) < _SMALL:
        return b"\0" + body
    smaller: bytes = pa.Codec(_CODEC).compress(body, asbytes=True)
    return b"\1" + len(body).to_bytes(8, "little") + smaller


def unpacked(blob: bytes) -> list[NDArray[Any]]:
    """The arrays of `packed`."""
    import pyarrow as pa

    body = memoryview(blob)[1:]
    if blob[0]:
        size = int.from_bytes(body[:8], "little")
        body = memoryview(pa.Codec(_CODEC).decompress(body[8:], size, asbytes=True))
    length = int.from_bytes(body[:4], "little")
    start, found = 4 + length, []
    for field in bytes(body[4:start]).decode().split(";"):
        dtype, count = field.split(",")
        found.append(np.frombuffer(body, dtype, int(count), start))
        start += found[-1].nbytes
    return found


def _smallest(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in "iu" or not array.size or array.min() < 0:
        return array
    return array.astype(np.min_scalar_type(int(array.max())))


def batch_of(blobs: Sequence[Blob]) -> pa.RecordBatch:
    """Some blobs as one batch."""
    import pyarrow as pa

    columns = zip(*blobs, strict=True) if blobs else ((), (), ())
    schema = blob_schema()
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def blobs_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Blob]:
    """The blobs of batches, one after the other."""
    for batch in batches:
        buckets, parts = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        for bucket, part, blob in zip(buckets.tolist(), parts.tolist(), batch.column(2), strict=True):
            yield bucket, part, blob.as_py()


def by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, dict[int, list[list[NDArray[Any]]]]]]:
    """Buckets in ascending order: for each its parts, and for each of these the arrays of its blobs."""
    found: dict[int, dict[int, list[bytes]]] = {}
    for bucket, part, blob in blobs_in(batches):
        found.setdefault(bucket, {}).setdefault(part, []).append(blob)
    for bucket in sorted(found):
        parts = found.pop(bucket)
        yield bucket, {part: [unpacked(blob) for blob in parts[part]] for part in sorted(parts)}


def scattered(
    buckets: NDArray[np.int64], part: int, *arrays: NDArray[Any], shrink: bool = False
) -> Iterator[Blob]:
    """Arrays cut by the bucket of each entry, in their order inside a bucket."""
    if not buckets.size:
        return
    # short integers are sorted by their digits, in a fraction of the time
    kind = np.uint16 if int(buckets.max()) < 1 << 16 else np.int64
    short = buckets.astype(kind)
    order = np.argsort(short, kind="stable")
    ordered = short[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], ordered.size)
    moved = [array[order] for array in arrays]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(ordered[start]), part, packed(*(array[start:end] for array in moved), shrink=shrink)
