"""Tables for Spark, paths or DataFrames, frozen so that they stay as they are, and the sessions that work on them.

A DataFrame is a plan, and a plan that is computed twice can give two tables: it is written to Parquet first, and the
release is made of what was written.

What a session keeps between stages holds private values. A session that is started here keeps it in a folder of its
own that nobody else can look into; of any other session the caller is told where it keeps its files.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import ExposedWarning, OptionError, OutputError, needs_extra
from shoal.io.binary_files import frozen, refuse_log, refuse_logged
from shoal.release.engines.remote import Remote, java_words, remote
from shoal.release.engines.staging import give_up, remove_abandoned, session_folder, snapshot_folder

if TYPE_CHECKING:
    from shoal.release.engines.spark import SparkRunner

# Settings that a session gets unless the caller says otherwise.
_USUAL = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# What a session of ours has on one machine; a cluster has its own address.
_ALONE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_MASTER = "local[*]"
# the variable that names a session's folders
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
    """A runner for a DataFrame of Spark, or for the path of a Parquet file or of a folder of them.

    Args:
        out: where the bundle goes, a folder or an address; that is made in `staging`.
        empty: take a table without rows.

    Raises:
        OptionError: the session is one of Spark Connect; a setting is not KEY=VALUE.
        InputError: there is no such file, or it is one of a table whose log says which rows are still there.
        OutputError: nothing can be put at the address, or workers do not share the folder that a frame is frozen in.
        MissingExtraError: Spark is not installed.
    """
    with needs_extra("spark", "engine 'spark' needs"):
        import pyspark  # noqa: F401
    from shoal.release.engines.spark import FROZEN, SparkRunner, address, spark_failures, try_folder

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
    # the frame is computed once, beside where the release will be
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
    """The address of a bundle, where it has one, and the folder that it is made in."""
    place = remote(session, out, staging) if isinstance(out, str) else None
    folder = out if isinstance(out, Path) else None if place is None else place.made
    if folder is not None:
        remove_abandoned(folder)
    return place, folder


def _log_beside(out: Path | None) -> Path | None:
    return None if out is None else out.absolute().parent / "shoal-spark.log"


def _refuse_logged(frame: Any) -> None:
    """Refuse a plan that reads the files of a table past its log, which says what of them was deleted."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            continue
        relation = leaf.relation()
        if relation.getClass().getSimpleName() != "HadoopFsRelation":
            continue
        location = relation.location()
        if location.getClass().getSimpleName() != "InMemoryFileIndex":
            # who reads through the log has an index of its own
            continue
        roots = location.rootPaths()
        for root in (roots.apply(number) for number in range(roots.size())):
            if root.toUri().getScheme() == "file":
                refuse_logged(Path(root.toUri().getPath()))
            else:
                refuse_log(root.toString(), partial(_there, frame.sparkSession, root))


def _there(session: Any, folder: Any, pattern: str) -> bool:
    """Whether a folder of any file system that Spark knows holds a file of such a name."""
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
    """New private folders for the files of a session, in the folders that it would have kept them in."""
    bases = [Path(base.strip()) for base in (os.environ.get(_FOLDERS) or named).split(",") if base.strip()]
    try:
        return [session_folder(base) for base in bases or [Path(tempfile.gettempdir())]]
    except OSError as error:
        raise OutputError("no-private-folder-session-files-can", reason=error) from None


def _ended(session: Any, folders: Sequence[Path]) -> None:
    """The process ends: so does its session, and what it kept."""
    with contextlib.suppress(Exception):
        session.stop()
    for folder in folders:
        give_up(folder)


def _warn(session: Any) -> None:
    """Say where a session keeps private values that others can read."""
    from shoal.release.engines.spark import local_folders

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
    """Whether a folder, or one above it, is closed to others."""
    return any(
        above.exists() and not above.stat().st_mode & 0o077
        for above in (folder.absolute(), *folder.absolute().parents)
    )


def _pair(text: str) -> tuple[str, str]:
    key, equal, value = text.partition("=")
    if not equal or not key.startswith("spark."):
        raise OptionError("conf-not-setting-spark", option="conf", text=text)
    return key, value
