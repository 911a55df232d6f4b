"""The Spark runner: stages as plans of DataFrames, `mapInArrow` for tasks, shuffles of blobs between them.

Spark runs tasks again when a machine is lost, when one is slow, and when a plan is computed twice. Nothing here depends
on how often: tasks are sealed, every noise that is drawn once was drawn before, and what is returned reads what was
written.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import CancelledError, InputError, OutputError, ShoalError
from shoal.io.binary_files import Frozen, Piece, parquet_rows
from shoal.io.common import private_file
from shoal.io.folders import finished, not_an_address, stoppable, unfinished
from shoal.progress import Progress, silent
from shoal.release.engines.blobs import batch_of, blob_schema
from shoal.release.engines.remote import Remote, java_words, literally
from shoal.release.engines.stages import BATCH, NUMBER, Delivered, Over, Sealed, Stage, Task
from shoal.release.engines.staging import check_room, check_room_at, claim, give_up, snapshot_folder

if TYPE_CHECKING:
    import pyarrow as pa

# the folder of files in that of a snapshot
FROZEN = "data"
_BLOBS = "bucket int, part int, blob binary"
_GROUP = "shoal"
# how lines begin that say why a task failed
_TELLING = ("RuntimeError:", "shoal.errors.", "MemoryError", "OSError:", "pyarrow.lib.")
_OWN = re.compile(r"^shoal\.errors\.\w+: ")
# seconds between two looks at how far a job is
_LOOK = 0.5
# seconds that a cancelled job has to end
_PATIENCE = 60
_MOST_SHARDS = 32
# rows of a task's share of the input, about
_SHARE = 1 << 19


@dataclass(frozen=True, slots=True)
class _SameCode:
    """A task that refuses to run with other code than the driver's: a worker that was replaced may load newer files."""

    task: Task
    code: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if code_hash() != self.code:
            raise RuntimeError(
                "a worker has another version of Shoal than the driver: install the same everywhere, and start again."
            )
        return self.task(batches)


@dataclass(frozen=True, slots=True)
class _OfFiles:
    """A task whose worker reads its share of the input by itself: records that pass through Java cost twice as much.

    Batches are those of the files, whichever share they are in: noise does not depend on how files are shared out.

    Attributes:
        files: the input, by paths that every worker knows.
        shares: those parts of it whose numbers a worker gets.
    """

    task: Task
    files: Frozen
    shares: tuple[tuple[Piece, ...], ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(self._records(batches))

    def _records(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in (piece for number in batch.column(0).to_pylist() for piece in self.shares[number]):
                path = piece.file.path
                if not path.exists():
                    raise InputError("worker-cannot-read", path=path)
                if path.stat().st_size != piece.file.mark[0]:
                    raise InputError("spark-changed-while-release-made", path=path)
                yield from self.files.piece(piece, self.columns, BATCH)


def code_hash() -> str:
    """A hash of the package's code as it lies on this machine."""
    global _hashed
    if _hashed is None:
        import shoal

        root = Path(shoal.__file__).parent
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
        _hashed = digest.hexdigest()
    return _hashed


_hashed: str | None = None


def address(path: Path) -> str:
    """A folder of this file system, whatever Spark's default one is, and wherever its processes were started."""
    return f"file://{path.absolute()}"


def local_folders(session: Any) -> list[Path]:
    """Where a session keeps what lies between stages, on this machine."""
    context = session.sparkContext
    found = context._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(context._jsc.sc().conf())
    return [Path(folder) for folder in found]


class SparkRunner:
    """Runs stages on a session of Spark.

    Attributes:
        files: the input, which every worker can read under the same path.
        snapshot: the folder that the input was frozen in for this release; removed with the work.
        log: where what Spark complains about is written as a whole.
        remote: where the bundle goes, if that is an address.
    """

    def __init__(
        self,
        session: Any,
        files: Frozen,
        snapshot: Path | None = None,
        log: Path | None = None,
        remote: Remote | None = None,
    ) -> None:
        self.session, self.files, self.snapshot, self.remote = session, files, snapshot, remote
        self._tell: Progress = silent
        self._log = log

    @property
    def rows(self) -> int:
        return self.files.rows

    @property
    def schema(self) -> pa.Schema:
        return self.files.schema

    @property
    def shards(self) -> int:
        parallel = int(self.session.sparkContext.defaultParallelism)
        return max(1, min(parallel, _MOST_SHARDS))

    def fingerprint(self) -> str:
        """The same for files that hold the same rows: of a frame, the files it was frozen into are new every time."""
        if self.snapshot is None:
            return self.files.fingerprint()
        names = ", ".join(f"`{name.replace('`', '``')}`" for name in self.schema.names)
        frame = self._reading(self.snapshot / FROZEN)
        # sums do not depend on the order of rows; two of them with different seeds are hard to meet by chance
        sums = [f"sum(cast(xxhash64({seed}, {names}) as decimal(38, 0)))" for seed in (1, 2)]
        found = [str(value) for value in frame.selectExpr("count(*)", *sums).collect()[0]]
        return hashlib.sha256(" ".join([str(self.schema), *found]).encode()).hexdigest()

    def watched(self, progress: Progress) -> None:
        self._tell = progress

    @contextlib.contextmanager
    def working_in(self, folder: Path) -> Iterator[None]:
        claim(folder)
        try:
            yield
        finally:
            give_up(folder)

    def close(self) -> None:
        if self.snapshot is not None:
            give_up(self.snapshot)

    def check_room(self, out: Path, columns: int) -> None:
        """What is between stages lies on this machine where the workers do; and all of them can write to `out`.

        So they can to the address of the bundle, if it has one.
        """
        self.files.check_unchanged()
        context = self.session.sparkContext
        here = [folder for folder in local_folders(self.session) if folder.exists()]
        check_room(self.rows * columns, out, here if context.master.startswith("local") else [])
        if self.snapshot is None:
            # workers would have written it to the same folder
            self._run("trying to write", partial(try_folder, self.session, out))
        if self.remote is not None:
            check_room_at(self.remote.address, self.remote.free(), self.rows * columns)
            trial = partial(self.remote.try_out, context.defaultParallelism)
            self._run(f"trying to write to '{self.remote.address}'", trial)

    def made_in(self, out: Path | str) -> Path:
        return not_an_address(out) if self.remote is None else self.remote.made

    def delivered(self, data: Path, out: Path | str) -> Delivered:
        if self.remote is None:
            return Delivered(self._reading(data), out)
        bundle, stopped, kept = data.parent, threading.Event(), False
        unfinished(bundle)
        try:
            with stoppable(stopped.set):
                return Delivered(self._copied(self.remote, data, stopped), self.remote.address)
        except Exception as error:
            if stopped.is_set() or isinstance(error, CancelledError):
                raise
            kept = True
            facts: dict[str, Any] = {"address": self.remote.address, "bundle": bundle}
            if isinstance(error, ShoalError):
                return Delivered(data, bundle, OutputError("kept-because", **facts, reason=error))
            return Delivered(data, bundle, OutputError("kept", **facts, reason=str(error).rstrip(".")))
        finally:
            if not kept:
                shutil.rmtree(bundle, ignore_errors=True)
            finished(bundle)

    def _copied(self, remote: Remote, data: Path, stopped: threading.Event) -> Any:
        """A frame that reads a bundle that was copied to its address; if that fails or is stopped, nothing is there."""
        missing, begun = remote.missing(), threading.Event()

        def undo() -> None:
            remote.remove(missing, remote.aside, *([remote.address] if begun.is_set() else []))

        try:
            self._run("copying the bundle", partial(remote.copy, data, parquet_rows(data)), undo)
            if stopped.is_set():
                raise CancelledError("stopped")
            self._run("putting the bundle in place", partial(remote.put_in_place, begun), undo)
            return remote.read()
        except BaseException:
            undo()
            raise

    def _reading(self, path: Path) -> Any:
        return self.session.read.parquet(literally(address(path)))

    def collect(self, what: str, over: Over, *stages: Stage) -> Sequence[pa.RecordBatch]:
        def job() -> Sequence[pa.RecordBatch]:
            frame = self._plan(over, stages, _BLOBS)
            found = [(row.bucket, row.part, bytes(row.blob)) for row in frame.collect()]
            return [batch_of(found)]

        found: Sequence[pa.RecordBatch] = self._run(what, job)
        return found

    def write(self, what: str, over: Over, *stages: Stage, schema: pa.Schema, folder: Path) -> Path:
        from pyspark.sql.pandas.types import from_arrow_schema

        target = folder / "data"

        def job() -> None:
            self._plan(over, stages, from_arrow_schema(schema)).write.parquet(address(target))

        self._run(what, job)
        _tidy(target)
        return target

    def _plan(self, over: Over, stages: Sequence[Stage], last: Any) -> Any:
        self.files.check_unchanged()
        first, frame = self._first(over, stages[0].task)
        for number, stage in enumerate(stages):
            task = _SameCode(Sealed(stage.task if number else first), code_hash())
            frame = frame.mapInArrow(task, last if number + 1 == len(stages) else _BLOBS)
            if number + 1 < len(stages):
                if stage.given:
                    frame = frame.unionAll(self._given(stage))
                frame = _shuffled(frame, stage.buckets)
        return frame

    def _first(self, over: Over, task: Task) -> tuple[Task, Any]:
        """The first task, and the numbers that it works on: of blocks, or of pieces of the input."""
        if over.count:
            return task, self._numbers(over.count)
        parallel = int(self.session.sparkContext.defaultParallelism)
        # workers have other working folders
        own = tuple(replace(file, path=file.path.absolute()) for file in self.files.files)
        files = replace(self.files, files=own)
        shares = files.shares(min(_SHARE, -(-self.rows // (2 * parallel))))
        return _OfFiles(task, files, shares, over.columns), self._numbers(len(shares))

    def _given(self, stage: Stage) -> Any:
        import pyarrow as pa

        table = pa.Table.from_batches([batch_of(stage.given)], blob_schema())
        return self.session.createDataFrame(table, _BLOBS)

    def _numbers(self, count: int) -> Any:
        # a table without rows has no shares, and work that nobody has is still done once
        frame = self.session.range(0, count, 1, max(count, 1))
        return frame.withColumnRenamed("id", NUMBER)

    def _run(self, what: str, job: Callable[[], Any], undo: Callable[[], None] | None = None) -> Any:
        """Carry a job out, tell how far it is, and cancel it where the one who is told says so.

        Args:
            undo: what is to be done after a job that was cancelled.
        """
        context = self.session.sparkContext
        found: list[Any] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                context.setJobGroup(_GROUP, what, interruptOnCancel=True)
                found.append(job())
            except BaseException as error:
                failed.append(error)

        from pyspark import InheritableThread

        thread = InheritableThread(target=work, daemon=True)
        thread.start()

        def stop() -> None:
            context.cancelJobGroup(_GROUP)
            thread.join(_PATIENCE)
            if undo is not None:
                undo()

        try:
            with stoppable(stop):
                while thread.is_alive():
                    thread.join(_LOOK)
                    self._tell(what, *_progress(context))
        except BaseException:
            stop()
            raise
        if failed:
            raise failure(failed[0], what, self._log)
        return found[0]


def _shuffled(frame: Any, buckets: int) -> Any:
    """Blobs of a bucket in one task."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.repartitionById(buckets, F.col("bucket"))


def _progress(context: Any) -> tuple[int, int]:
    """How many tasks of the running stages are done, and how many there are."""
    tracker = context.statusTracker()
    done = total = 0
    for number in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(number)
        if stage is not None:
            done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return done, max(total, 1)


def try_folder(session: Any, out: Path) -> None:
    """Refuse a place that driver and workers do not share, before anything but numbers is written there."""
    trial = snapshot_folder(out)
    parts = int(session.sparkContext.defaultParallelism)
    try:
        session.range(0, parts, 1, parts).write.parquet(address(trial / FROZEN))
        if sum(parquet_rows(path) for path in (trial / FROZEN).glob("*.parquet")) != parts:
            raise OutputError("workers-write-another-than-driver-sees", parent=trial.parent)
    finally:
        give_up(trial)


def _tidy(folder: Path) -> None:
    """Files of a release are called by their number; what Spark leaves beside them goes."""
    for path in folder.iterdir():
        if not path.name.startswith("part-"):
            path.unlink()
    for number, path in enumerate(sorted(folder.glob("part-*.parquet"))):
        path.rename(folder / f"part-{number:05}.parquet")


@contextlib.contextmanager
def spark_failures(session: Any, log_folder: Path) -> Iterator[None]:
    """What Spark raises, as one sentence and the path of a log."""
    try:
        yield
    except (KeyboardInterrupt, ShoalError):
        raise
    except Exception as error:
        raise failure(error, "freezing the input", log_folder / "shoal-spark.log") from None


def failure(error: BaseException, what: str, log: Path | None) -> BaseException:
    """An error of a job as one sentence; all of it goes to a log."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, ShoalError)):
        return error
    facts: dict[str, Any] = {"what": what, "reason": _reason(error)}
    if log is not None:
        with contextlib.suppress(OSError):
            private_file(log).write_text("".join(traceback.format_exception(error)), "utf-8")
            return OutputError("spark-failed-see-log", **facts, log=log)
    return OutputError("spark-failed", **facts)


def _reason(error: BaseException) -> str:
    """The line of a failure that says most: the last of a Python traceback in a task, or the first there is."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(_TELLING)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    chosen = (told or causes or [java_words(error)])[-1]
    return _OWN.sub("", chosen)[:400].rstrip(".")
