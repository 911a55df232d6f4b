"""The local runner: run stages over the row groups of Parquet files, with buckets kept as files on this machine.

Memory is one batch, what a task keeps, and one bucket; the table can be as large as the disk.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.engines.runner import (
    BATCH,
    Blob,
    Delivered,
    Over,
    Sealed,
    TaskStage,
    batch_of,
    blobs_in,
    numbers_batch,
)
from shoal.engines.staging import check_room, claim, give_up, session_folder
from shoal.io import Frozen, not_an_address, private_file
from shoal.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa


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
