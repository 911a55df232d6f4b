"""Runners: read a table in parts, run stages of tasks over it, and pass on what they computed."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.engines.staging import check_room, claim, give_up, session_folder
from shoal.errors import OutputError
from shoal.io import Frozen, not_an_address, private_file
from shoal.noise import computed_again
from shoal.progress import Progress, silent

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


# Bytes of blobs held in memory before they are written to files.
_WAITING = 1 << 26
_HEAD = struct.Struct("<iq")


class LocalRunner:
    """Run every stage once, in this process.

    Attributes:
        folder: for the buckets; its content is private and is removed with it.
    """

    shards = 1

    def __init__(self, files: Frozen, folder: Path | None = None) -> None:
        self.files, self.folder = files, folder
        self._tell: Progress = silent

    @property
    def rows(self) -> int:
        return self.files.rows

    @property
    def schema(self) -> pa.Schema:
        return self.files.schema

    def close(self) -> None:
        return None

    def fingerprint(self) -> str:
        return self.files.fingerprint()

    def watched(self, progress: Progress) -> None:
        self._tell = progress

    def collect(self, what: str, over: Over, *stages: TaskStage) -> Sequence[pa.RecordBatch]:
        return list(self._run(what, over, stages))

    def write(self, what: str, over: Over, *stages: TaskStage, schema: pa.Schema, folder: Path) -> Path:
        from pyarrow import parquet

        target = folder / "data.parquet"
        with parquet.ParquetWriter(target, schema) as writer:
            for batch in self._run(what, over, stages):
                writer.write_batch(batch)
        return target

    def made_in(self, out: Path | str) -> Path:
        return not_an_address(out)

    def delivered(self, data: Path, out: Path | str) -> Delivered:
        return Delivered(data, out)

    @contextmanager
    def working_in(self, folder: Path) -> Iterator[None]:
        claim(folder)
        self.folder = folder
        try:
            yield
        finally:
            self.folder = None
            give_up(folder)

    def check_room(self, out: Path, columns: int) -> None:
        check_room(self.rows * columns, out, [out])

    def _run(self, what: str, over: Over, stages: Sequence[TaskStage]) -> Iterator[pa.RecordBatch]:
        self.files.check_unchanged()
        batches = self._numbers(over.count, what) if over.count else self._records(over.columns, what)
        made = Sealed(stages[0].task)(batches)
        with ExitStack() as undo:
            for before, stage in pairwise(stages):
                buckets = _Buckets(partial(self._work, undo), before.buckets)
                buckets.fill(before.given)
                for batch in made:
                    buckets.fill(blobs_in([batch]))
                made = self._bucketwise(buckets, stage, what)
            yield from made

    def _bucketwise(self, buckets: _Buckets, stage: TaskStage, what: str) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(buckets.taken()):
            yield from Sealed(stage.task)(iter([batch]))
            self._tell(what, number + 1, buckets.count)

    def _records(self, columns: Sequence[str], what: str) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in self.files.batches(columns, BATCH):
            yield batch
            done += batch.num_rows
            self._tell(what, done, self.rows)

    def _numbers(self, count: int, what: str) -> Iterator[pa.RecordBatch]:
        for number in range(count):
            yield numbers_batch([number])
            self._tell(what, number + 1, count)

    def _work(self, undo: ExitStack) -> Path:
        """A new folder for buckets: in that of the release, or, before there is one, a private folder of its own."""
        if self.folder is not None:
            return Path(tempfile.mkdtemp(dir=self.folder))
        made = session_folder(Path(tempfile.gettempdir()), "local")
        undo.callback(give_up, made)
        return Path(tempfile.mkdtemp(dir=made))


class _Buckets:
    """Blobs in files, one per bucket; a single bucket, or little data, stays in memory."""

    def __init__(self, folder_of: Callable[[], Path], count: int) -> None:
        self._folder_of, self.count = folder_of, count
        self._folder: Path | None = None
        self._waiting: dict[int, list[bytes]] = {}
        self._bytes = 0

    def fill(self, blobs: Iterable[Blob]) -> None:
        for bucket, part, blob in blobs:
            self._waiting.setdefault(bucket, []).append(_HEAD.pack(part, len(blob)) + blob)
            self._bytes += len(blob)
            if self._bytes > _WAITING and self.count > 1:
                self._flush()

    def _flush(self) -> None:
        self._folder = self._folder or self._folder_of()
        for bucket, pieces in self._waiting.items():
            with private_file(self._folder / str(bucket)).open("ab") as file:
                file.writelines(pieces)
        self._waiting, self._bytes = {}, 0

    def taken(self) -> Iterator[pa.RecordBatch]:
        """Yield bucket after bucket, each as one batch; a file is removed once it has been read."""
        for bucket in range(self.count):
            blobs = [*self._stored(bucket), *self._read(bucket, b"".join(self._waiting.pop(bucket, [])))]
            if blobs:
                yield batch_of(blobs)
        if self._waiting:
            raise RuntimeError(
                "probably a bug, please report: a task sent records to a bucket that is not there."
            )
        if self._folder is not None:
            self._folder.rmdir()

    def _stored(self, bucket: int) -> Iterator[Blob]:
        if self._folder is None or not (path := self._folder / str(bucket)).exists():
            return
        yield from self._read(bucket, path.read_bytes())
        path.unlink()

    def _read(self, bucket: int, whole: bytes) -> Iterator[Blob]:
        start = 0
        while start < len(whole):
            part, size = _HEAD.unpack_from(whole, start)
            start += _HEAD.size
            yield bucket, part, whole[start : start + size]
            start += size
