"""Runners: read a table in parts, run stages of tasks over it, and pass on what they computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OutputError
from shoal.noise import computed_again

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.progress import Progress


Blob = tuple[int, int, bytes]
_CODEC = "lz4"
# below this many bytes compression saves nothing
_SMALL = 512


def blob_schema() -> pa.Schema:
    """The schema of what passes between stages."""
    import pyarrow as pa

    return pa.schema([("bucket", pa.int32()), ("part", pa.int32()), ("blob", pa.binary())])


def packed(*arrays: NDArray[Any], shrink: bool = False, squeeze: bool = False) -> bytes:
    """Arrays as bytes; `shrink` stores integers in the smallest type that holds them, `squeeze` also compresses.

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
    """Split arrays by the bucket of each entry, keeping the order inside a bucket."""
    if not buckets.size:
        return
    # short integers are radix-sorted, in a fraction of the time
    kind = np.uint16 if int(buckets.max()) < 1 << 16 else np.int64
    short = buckets.astype(kind)
    order = np.argsort(short, kind="stable")
    ordered = short[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], ordered.size)
    moved = [array[order] for array in arrays]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(ordered[start]), part, packed(*(array[start:end] for array in moved), shrink=shrink)


Task = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
NUMBER = "number"

# approximate number of records in a batch
BATCH = 1 << 17


@dataclass(frozen=True, slots=True)
class TaskStage:
    """A task, and where its results go.

    Attributes:
        buckets: of the blobs that it makes: the next stage gets one or several whole buckets at a time. 0 for the last.
        given: blobs from the driver for the next stage, beside those of the task.
    """

    task: Task
    buckets: int = 0
    given: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True)
class Over:
    """Input of the first stage: batches of these columns with row numbers, or the numbers 0 .. count - 1."""

    columns: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Delivered:
    """A finished bundle at its destination.

    Attributes:
        data: what the caller gets of the released data; it reads what was written and computes nothing again.
        folder: where the bundle is, a folder on this machine or an address.
        problem: why it is not at the requested destination.
    """

    data: Any
    folder: Path | str
    problem: OutputError | None = None


class Runner(Protocol):
    """Runs stages. A stage may run several times on the same batches.

    Attributes:
        rows: of the table.
        schema: names and types of its columns.
        shards: recommended number of buckets for aggregates.
    """

    @property
    def rows(self) -> int: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def shards(self) -> int: ...

    def collect(self, what: str, over: Over, *stages: TaskStage) -> Sequence[pa.RecordBatch]:
        """The few results of the last stage."""

    def write(self, what: str, over: Over, *stages: TaskStage, schema: pa.Schema, folder: Path) -> Path:
        """The results of the last stage as the released data in a folder: a file, or a folder of files."""

    def made_in(self, out: Path | str) -> Path:
        """The folder on this machine in which the bundle for a destination is prepared."""

    def delivered(self, data: Path, out: Path | str) -> Delivered:
        """Move the finished bundle with these data to its destination."""

    def working_in(self, folder: Path) -> AbstractContextManager[None]:
        """A private folder for intermediate results, removed afterwards."""

    def check_room(self, out: Path, columns: int) -> None:
        """Refuse, before any budget is spent, a destination that cannot hold a release of so many columns."""

    def fingerprint(self) -> str:
        """A hash that identifies the table; as private as the table."""

    def close(self) -> None:
        """Remove what was created for this release only, whether it finished or was abandoned."""

    def watched(self, progress: Progress) -> None:
        """The callback that receives progress."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A task without access to the operating system's entropy, because it may run more than once."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = iter(self.task(batches))
        while True:
            # entered anew for every batch: between two batches the thread belongs to the runner
            with computed_again():
                try:
                    batch = next(made)
                except StopIteration:
                    return
            yield batch


def numbers_batch(numbers: Sequence[int]) -> pa.RecordBatch:
    """Numbers of blocks as a batch."""
    import pyarrow as pa

    return pa.record_batch([pa.array(numbers, pa.int64())], names=[NUMBER])
