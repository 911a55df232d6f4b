"""The Spark engine: run a release on a Spark session, with private folders, remote file systems and tables in parts."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.runner import (
    BATCH,
    NUMBER,
    Delivered,
    Over,
    Sealed,
    Task,
    TaskStage,
    batch_of,
    blob_schema,
)
from shoal.engines.staging import (
    check_room,
    check_room_at,
    claim,
    give_up,
    remove_abandoned,
    session_folder,
    snapshot_folder,
)
from shoal.errors import (
    CancelledError,
    ExposedWarning,
    InputError,
    OptionError,
    OutputError,
    ShoalError,
    needs_extra,
)
from shoal.io import (
    Frozen,
    Piece,
    finished,
    frozen,
    not_an_address,
    parquet_rows,
    private_file,
    refuse_log,
    refuse_logged,
    stoppable,
    unfinished,
)
from shoal.progress import Progress, silent

if TYPE_CHECKING:
    import pyarrow as pa


# the folder of the released files in a bundle, and the marker that Spark's writer leaves in it
_DATA = "data"
_SUCCESS = "_SUCCESS"
# permissions of a folder being written, and of a complete one
_CLOSED, _OPEN = "700", "755"
_PATTERN = re.compile(r"([\[\]{}*?\\])")
_UNTOLD = (1 << 63) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Remote:
    """The destination of a bundle on a file system of the session.

    Attributes:
        made: the folder on this machine in which the bundle is prepared.
        aside: the address that it is copied to before it is renamed.
    """

    session: Any
    address: str
    made: Path
    aside: str

    def check(self) -> None:
        """Refuse an address that cannot be reached or that already exists."""
        try:
            taken = self._files.exists(self._target)
        except Exception as error:
            raise OutputError("spark-cannot-reach", address=self.address, reason=java_words(error)) from None
        if taken:
            raise OutputError("remote-exists-already", address=self.address)

    def free(self) -> int:
        """Free bytes on the file system; one that does not report any is assumed to have enough."""
        there = self._target.getParent()
        try:
            while not self._files.exists(there):
                there = there.getParent()
            # a view of several file systems does not know their sizes
            behind = self._files.resolvePath(there)
            return int(behind.getFileSystem(self._settings).getStatus(behind).getRemaining())
        except Exception:
            return _UNTOLD

    def missing(self) -> list[Any]:
        """The folders above the address that do not exist yet, topmost first."""
        found, above = [], self._target.getParent()
        while above is not None and not self._files.exists(above):
            found.append(above)
            above = above.getParent()
        return found

    def try_out(self, parts: int) -> None:
        """Rehearse every step of a delivery, with as many workers as there are parts, and remove the traces."""
        missing, renamed = self.missing(), f"{self.aside}-renamed"
        try:
            self._begin()
            self.session.range(0, parts, 1, parts).write.parquet(f"{self.aside}/{_DATA}")
            with tempfile.NamedTemporaryFile(dir=self.made.parent, prefix=f".{self.made.name}.") as one:
                self._copy(Path(one.name))
            self._end(parts)
            self._rename(renamed)
        finally:
            self.remove(missing, self.aside, renamed)

    def copy(self, data: Path, rows: int) -> None:
        """Copy the bundle with these data to a place beside its address."""
        self._begin()
        self._read(f"file://{data.absolute()}").write.parquet(f"{self.aside}/{_DATA}")
        for document in sorted(path for path in data.parent.iterdir() if path != data):
            self._copy(document)
        self._end(rows)

    def put_in_place(self, begun: threading.Event) -> None:
        """Rename the copy to its address; `begun` is set once something of it may exist there."""
        self.check()
        begun.set()
        self._rename(self.address)
        inside = self._path(f"{self.address}/{self._path(self.aside).getName()}")
        if self._files.exists(inside):
            # another release got there first: an existing folder would be moved into
            begun.clear()
            self._files.delete(inside, True)
            self.check()
        self._open(self.address)

    def remove(self, missing: Sequence[Any], *addresses: str) -> None:
        """Remove what was written, and the parent folders that were created for it."""
        for address in addresses:
            with contextlib.suppress(Exception):
                self._files.delete(self._path(address), True)
        for folder in missing:
            with contextlib.suppress(Exception):
                self._files.delete(folder, False)

    def read(self) -> Any:
        return self._read(f"{self.address}/{_DATA}")

    def _begin(self) -> None:
        """Create the folder to copy into, readable by its owner only."""
        place, rights = self._path(self.aside), self._rights(_CLOSED)
        if not self._files.mkdirs(place, rights):
            raise OutputError("no-folder-can-made-beside", address=self.address)
        self._files.setPermission(place, rights)
        # if this process is killed, the Java process still terminates
        self._files.deleteOnExit(place)

    def _copy(self, document: Path) -> None:
        here, there = self._path(f"file://{document.absolute()}"), self._path(f"{self.aside}/{document.name}")
        self._files.copyFromLocalFile(False, False, here, there)

    def _end(self, rows: int) -> None:
        """Check that everything arrived."""
        self._files.delete(self._path(f"{self.aside}/{_DATA}/{_SUCCESS}"), False)
        if (there := self._read(f"{self.aside}/{_DATA}").count()) != rows:
            raise OutputError("rows-missing-at-address", there=there, rows=rows, aside=self.aside)

    def _rename(self, address: str) -> None:
        place = self._path(self.aside)
        if not self._files.rename(place, self._path(address)):
            raise OutputError("address-not-renamed", aside=self.aside, address=address)
        self._files.cancelDeleteOnExit(place)

    def _open(self, address: str) -> None:
        """Open the complete and renamed bundle to other readers."""
        self._files.setPermission(self._path(address), self._rights(_OPEN))

    @property
    def _target(self) -> Any:
        return self._path(self.address)

    @property
    def _files(self) -> Any:
        return self._target.getFileSystem(self._settings)

    @property
    def _settings(self) -> Any:
        """The settings of the session's own writer."""
        return self.session._jsparkSession.sessionState().newHadoopConf()

    def _path(self, address: str) -> Any:
        return _path(self.session, address)

    def _rights(self, rights: str) -> Any:
        return self.session.sparkContext._jvm.org.apache.hadoop.fs.permission.FsPermission(rights)

    def _read(self, address: str) -> Any:
        return self.session.read.parquet(literally(address))


def remote(session: Any, address: str, staging: Path | None) -> Remote:
    """The destination of a bundle that is prepared in a new folder in `staging`, by default the temporary folder.

    Raises:
        OutputError: nothing can be written there.
    """
    try:
        target = _path(session, address)
    except Exception as error:
        raise OutputError("is-no-address", address=address, reason=java_words(error)) from None
    if target.isRoot():
        raise OutputError("whole-file-system", address=address)
    token = secrets.token_hex(4)
    made = (staging or Path(tempfile.gettempdir())).absolute() / f"shoal-{target.getName()}-{token}"
    aside = f"{target.getParent()}/.{target.getName()}.partial-{token}"
    found = Remote(session, target.toString(), made, aside)
    found.check()
    return found


def literally(address: str) -> str:
    """Escape an address for functions that read glob patterns."""
    return _PATTERN.sub(r"\\\1", address)


def java_words(error: BaseException) -> str:
    """The message of a Java error, without the stack trace."""
    thrown = getattr(error, "java_exception", None)
    text = str(error) if thrown is None else str(thrown.toString())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:400].rstrip(".")


def _path(session: Any, address: str) -> Any:
    return session.sparkContext._jvm.org.apache.hadoop.fs.Path(address)


# the folder of files in that of a snapshot
FROZEN = "data"
_BLOBS = "bucket int, part int, blob binary"
_GROUP = "shoal"
# prefixes of the lines that say why a task failed
_TELLING = ("RuntimeError:", "shoal.errors.", "MemoryError", "OSError:", "pyarrow.lib.")
_OWN = re.compile(r"^shoal\.errors\.\w+: ")
# seconds between two progress checks of a job
_LOOK = 0.5
# seconds that a cancelled job has to end
_PATIENCE = 60
_MOST_SHARDS = 32
# approximate number of input rows per task
_SHARE = 1 << 19


@dataclass(frozen=True, slots=True)
class _SameCode:
    """A task that refuses to run with code other than the driver's: a replaced worker may load newer files."""

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
    """A task whose worker reads its share of the input itself: passing records through Java costs twice as much.

    Batches are those of the files, whatever the shares: noise does not depend on how files are distributed.

    Attributes:
        files: the input, by paths that every worker knows.
        shares: the parts of the input; a worker is given their numbers.
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
    """A hash of the package's source code on this machine."""
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
    """A folder of this file system as an address, independent of Spark's default file system and working folder."""
    return f"file://{path.absolute()}"


def local_folders(session: Any) -> list[Path]:
    """Local folders in which a session keeps intermediate results."""
    context = session.sparkContext
    found = context._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(context._jsc.sc().conf())
    return [Path(folder) for folder in found]


class SparkRunner:
    """Run stages on a Spark session.

    Attributes:
        files: the input, readable by every worker under the same path.
        snapshot: the folder in which the input was frozen for this release; removed afterwards.
        log: where Spark's complete error output is written.
        remote: the bundle's destination, if that is an address.
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
        """Equal for files with the same rows: a frame is frozen into new files every time."""
        if self.snapshot is None:
            return self.files.fingerprint()
        names = ", ".join(f"`{name.replace('`', '``')}`" for name in self.schema.names)
        frame = self._reading(self.snapshot / FROZEN)
        # sums do not depend on the order of rows; two sums with different seeds rarely collide by chance
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
        """Check that local disks can hold intermediate results and that every worker can write to `out`.

        A remote destination of the bundle is checked in the same way.
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
        """A frame that reads the bundle copied to its address; a failed or interrupted copy is removed."""
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

    def collect(self, what: str, over: Over, *stages: TaskStage) -> Sequence[pa.RecordBatch]:
        def job() -> Sequence[pa.RecordBatch]:
            frame = self._plan(over, stages, _BLOBS)
            found = [(row.bucket, row.part, bytes(row.blob)) for row in frame.collect()]
            return [batch_of(found)]

        found: Sequence[pa.RecordBatch] = self._run(what, job)
        return found

    def write(self, what: str, over: Over, *stages: TaskStage, schema: pa.Schema, folder: Path) -> Path:
        from pyspark.sql.pandas.types import from_arrow_schema

        target = folder / "data"

        def job() -> None:
            self._plan(over, stages, from_arrow_schema(schema)).write.parquet(address(target))

        self._run(what, job)
        _tidy(target)
        return target

    def _plan(self, over: Over, stages: Sequence[TaskStage], last: Any) -> Any:
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
        """The first task, and the numbers it works on: blocks, or pieces of the input."""
        if over.count:
            return task, self._numbers(over.count)
        parallel = int(self.session.sparkContext.defaultParallelism)
        # workers have other working folders
        own = tuple(replace(file, path=file.path.absolute()) for file in self.files.files)
        files = replace(self.files, files=own)
        shares = files.shares(min(_SHARE, -(-self.rows // (2 * parallel))))
        return _OfFiles(task, files, shares, over.columns), self._numbers(len(shares))

    def _given(self, stage: TaskStage) -> Any:
        import pyarrow as pa

        table = pa.Table.from_batches([batch_of(stage.given)], blob_schema())
        return self.session.createDataFrame(table, _BLOBS)

    def _numbers(self, count: int) -> Any:
        # a table without rows has no shares, but the task must still run once
        frame = self.session.range(0, count, 1, max(count, 1))
        return frame.withColumnRenamed("id", NUMBER)

    def _run(self, what: str, job: Callable[[], Any], undo: Callable[[], None] | None = None) -> Any:
        """Run a job, report progress, and cancel the job if the callback asks for it.

        Args:
            undo: called after a cancelled job.
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
    """Bring the blobs of a bucket together in one task."""
    from pyspark.sql import functions as F  # noqa: N812

    return frame.repartitionById(buckets, F.col("bucket"))


def _progress(context: Any) -> tuple[int, int]:
    """Number of finished tasks of the running stages, and their total."""
    tracker = context.statusTracker()
    done = total = 0
    for number in tracker.getActiveStageIds():
        stage = tracker.getStageInfo(number)
        if stage is not None:
            done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return done, max(total, 1)


def try_folder(session: Any, out: Path) -> None:
    """Refuse a folder that driver and workers do not share, before anything but numbers is written there."""
    trial = snapshot_folder(out)
    parts = int(session.sparkContext.defaultParallelism)
    try:
        session.range(0, parts, 1, parts).write.parquet(address(trial / FROZEN))
        if sum(parquet_rows(path) for path in (trial / FROZEN).glob("*.parquet")) != parts:
            raise OutputError("workers-write-another-than-driver-sees", parent=trial.parent)
    finally:
        give_up(trial)


def _tidy(folder: Path) -> None:
    """Name the files of a release by number; remove Spark's other files."""
    for path in folder.iterdir():
        if not path.name.startswith("part-"):
            path.unlink()
    for number, path in enumerate(sorted(folder.glob("part-*.parquet"))):
        path.rename(folder / f"part-{number:05}.parquet")


@contextlib.contextmanager
def spark_failures(session: Any, log_folder: Path) -> Iterator[None]:
    """Report a Spark error as one sentence with the path of a log."""
    try:
        yield
    except (KeyboardInterrupt, ShoalError):
        raise
    except Exception as error:
        raise failure(error, "freezing the input", log_folder / "shoal-spark.log") from None


def failure(error: BaseException, what: str, log: Path | None) -> BaseException:
    """A job's error as one sentence; the complete error goes to a log."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, ShoalError)):
        return error
    facts: dict[str, Any] = {"what": what, "reason": _reason(error)}
    if log is not None:
        with contextlib.suppress(OSError):
            private_file(log).write_text("".join(traceback.format_exception(error)), "utf-8")
            return OutputError("spark-failed-see-log", **facts, log=log)
    return OutputError("spark-failed", **facts)


def _reason(error: BaseException) -> str:
    """The most informative line of a failure: the last of a Python traceback in a task, or else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(_TELLING)]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    chosen = (told or causes or [java_words(error)])[-1]
    return _OWN.sub("", chosen)[:400].rstrip(".")


# Defaults that a session gets unless the caller overrides them.
_USUAL = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Settings of a local session created by Shoal; a cluster has its own address.
_ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_MASTER = "local[*]"
# the environment variable that names a session's folders
_FOLDERS = "SPARK_LOCAL_DIRS"


def spark_runner(
    data: Any,
    out: Path | str | None,
    master: str | None = None,
    conf: Sequence[str] = (),
    *,
    staging: Path | None = None,
    empty: bool = False,
) -> SparkRunner:
    """A runner for a Spark DataFrame, a Parquet file, or a folder of Parquet files.

    Args:
        out: the destination of the bundle, a folder or an address; an address's bundle is prepared in `staging`.
        empty: accept a table without rows.

    Raises:
        OptionError: the session is one of Spark Connect; a setting is not KEY=VALUE.
        InputError: there is no such file, or it belongs to a table whose log decides which rows are current.
        OutputError: the address cannot be written, or workers do not share the folder into which a frame is frozen.
        MissingExtraError: Spark is not installed.
    """
    with needs_extra("spark", "engine 'spark' needs"):
        import pyspark  # noqa: F401

    if isinstance(data, (str, Path)):
        path = str(data)
        if "://" in path:
            raise OptionError("engine-spark-reads-through-dataframe", option="engine", path=path)
        files = frozen(path, empty=empty)
        session = _session(master, conf)
        place, folder = _place(session, out, staging)
        return SparkRunner(session, files, log=_log_beside(folder), remote=place)
    _refuse_connect(data)
    if out is None:
        raise OptionError("work-missing-spark-dataframe-released-into", option="work")
    _refuse_logged(data)
    session = data.sparkSession
    _warn(session)
    place, folder = _place(session, out, staging)
    assert folder is not None
    with spark_failures(session, folder.absolute().parent):
        try_folder(session, folder)
    # the frame is computed once, beside the destination of the release
    snapshot = snapshot_folder(folder)
    try:
        with spark_failures(session, snapshot.parent):
            data.write.parquet(address(snapshot / FROZEN))
        files = frozen(snapshot / FROZEN, empty=empty)
        return SparkRunner(session, files, snapshot, _log_beside(folder), place)
    except BaseException:
        give_up(snapshot)
        raise


def _place(session: Any, out: Path | str | None, staging: Path | None) -> tuple[Remote | None, Path | None]:
    """The address of a bundle, if it has one, and the folder in which it is prepared."""
    place = remote(session, out, staging) if isinstance(out, str) else None
    folder = out if isinstance(out, Path) else None if place is None else place.made
    if folder is not None:
        remove_abandoned(folder)
    return place, folder


def _log_beside(out: Path | None) -> Path | None:
    return None if out is None else out.absolute().parent / "shoal-spark.log"


def _refuse_logged(frame: Any) -> None:
    """Refuse a plan that reads a table's files and bypasses the log, which records deleted rows."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            continue
        relation = leaf.relation()
        if relation.getClass().getSimpleName() != "HadoopFsRelation":
            continue
        location = relation.location()
        if location.getClass().getSimpleName() != "InMemoryFileIndex":
            # a plan that reads through the log has an index of its own
            continue
        roots = location.rootPaths()
        for root in (roots.apply(number) for number in range(roots.size())):
            if root.toUri().getScheme() == "file":
                refuse_logged(Path(root.toUri().getPath()))
            else:
                refuse_log(root.toString(), partial(_there, frame.sparkSession, root))


def _there(session: Any, folder: Any, pattern: str) -> bool:
    """Whether a folder of any file system that Spark knows holds a file of this name."""
    context = session.sparkContext
    files = folder.getFileSystem(context._jsc.hadoopConfiguration())
    found = files.globStatus(context._jvm.org.apache.hadoop.fs.Path(folder, pattern))
    return found is not None and len(found) > 0


def _refuse_connect(frame: Any) -> None:
    if ".connect." in type(frame).__module__:
        raise OptionError("engine-spark-not-spark-connect", option="engine")


def _session(master: str | None, conf: Sequence[str]) -> Any:
    """The running session, or a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    told = dict(_pair(text) for text in conf)
    running = SparkSession.getActiveSession()
    if running is not None and master is None:
        _warn(running)
        return running
    # workers run the Python of this environment
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("shoal")
    address = master or told.pop("spark.master", None) or os.environ.get("MASTER") or _MASTER
    settings = {**_USUAL, **(_ALONE if address.startswith("local") else {}), **told}
    if address.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folders: list[Path] = []
    if SparkContext._active_spark_context is None:
        folders = _own_folders(settings.pop("spark.local.dir", ""))
        settings["spark.local.dir"] = ",".join(map(str, folders))
    for key, value in settings.items():
        builder = builder.config(key, value)
    # Spark takes the folders of its environment before those of its settings
    named = os.environ.pop(_FOLDERS, None) if folders else None
    try:
        session = builder.master(address).getOrCreate()
    except Exception as error:
        for folder in folders:
            give_up(folder)
        raise OutputError("spark-does-not-start", address=address, reason=java_words(error)) from None
    finally:
        if named is not None:
            os.environ[_FOLDERS] = named
    if folders:
        atexit.register(_ended, session, folders)
    session.sparkContext.setLogLevel("ERROR")
    _warn(session)
    return session


def _own_folders(named: str) -> list[Path]:
    """New private folders for a session's files, inside the folders it would otherwise use."""
    bases = [Path(base.strip()) for base in (os.environ.get(_FOLDERS) or named).split(",") if base.strip()]
    try:
        return [session_folder(base) for base in bases or [Path(tempfile.gettempdir())]]
    except OSError as error:
        raise OutputError("no-private-folder-session-files-can", reason=error) from None


def _ended(session: Any, folders: Sequence[Path]) -> None:
    """At process exit: end the session and remove its files."""
    with contextlib.suppress(Exception):
        session.stop()
    for folder in folders:
        give_up(folder)


def _warn(session: Any) -> None:
    """Warn where a session keeps private values that others can read."""

    context = session.sparkContext
    if context.getConf().get("spark.io.encryption.enabled", "false") == "true":
        return
    if not context.master.startswith("local"):
        warnings.warn(ExposedWarning("workers-expose", master=context.master), stacklevel=2)
        return
    for folder in local_folders(session):
        if not _private(folder):
            warnings.warn(ExposedWarning("session-exposes", folder=folder), stacklevel=2)


def _private(folder: Path) -> bool:
    """Whether a folder, or one above it, is closed to other users."""
    return any(
        above.exists() and not above.stat().st_mode & 0o077
        for above in (folder.absolute(), *folder.absolute().parents)
    )


def _pair(text: str) -> tuple[str, str]:
    key, equal, value = text.partition("=")
    if not equal or not key.startswith("spark."):
        raise OptionError("conf-not-setting-spark", option="conf", text=text)
    return key, value
