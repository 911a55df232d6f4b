"""What a runner is asked to do: stages over the parts of a table, or over numbers of blocks to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shoal.errors import OutputError
from shoal.noise.entropy import computed_again
from shoal.release.engines.blobs import Blob

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.progress import Progress

Task = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
NUMBER = "number"

# records in a batch, about
BATCH = 1 << 17


@dataclass(frozen=True, slots=True)
class Stage:
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
    """What the first stage works on: batches of these columns with row numbers, or the numbers 0 .. count - 1."""

    columns: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class Delivered:
    """A finished bundle at its place.

    Attributes:
        data: what a caller gets of the released data: it reads what was written, and computes nothing again.
        folder: where the bundle lies, a folder of this machine or an address.
        problem: why it lies there and not where it was asked for.
    """

    data: Any
    folder: Path | str
    problem: OutputError | None = None


class Runner(Protocol):
    """Carries stages out. A stage may be run again, on the same batches, as often as the runner likes.

    Attributes:
        rows: of the table.
        schema: names and types of its columns.
        shards: into how many buckets aggregates are best spread.
    """

    @property
    def rows(self) -> int: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def shards(self) -> int: ...

    def collect(self, what: str, over: Over, *stages: Stage) -> Sequence[pa.RecordBatch]:
        """The results of the last stage, which are few."""

    def write(self, what: str, over: Over, *stages: Stage, schema: pa.Schema, folder: Path) -> Path:
        """The results of the last stage as the released data in a folder: a file, or a folder of files."""

    def made_in(self, out: Path | str) -> Path:
        """The folder of this machine that the bundle for a place is made in."""

    def delivered(self, data: Path, out: Path | str) -> Delivered:
        """Put the finished bundle with these data where it was asked for."""

    def working_in(self, folder: Path) -> AbstractContextManager[None]:
        """A folder for what lies between stages: private, and gone afterwards."""

    def check_room(self, out: Path, columns: int) -> None:
        """Refuse, before the budget is spent, a place that a release of so many columns cannot be written to."""

    def fingerprint(self) -> str:
        """A hash by which the same table is recognised; as private as the table."""

    def close(self) -> None:
        """Remove what was made for this release alone; the work is done, or was given up."""

    def watched(self, progress: Progress) -> None:
        """Whom to tell how far the work is."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A task that cannot reach the operating system's entropy, because it may be run again."""

    task: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = iter(self.task(batches))
        while True:
            # entered anew for every batch: between two of them the thread belongs to the runner
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
