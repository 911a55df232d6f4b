"""A table for Spark: paths or a DataFrame and a session come in, a runner over an input that stays as it is leaves.

A DataFrame is a plan, and a plan that is computed twice can give two tables: it is written to Parquet first, and the
release is made of what was written.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import OptionError, OutputError, needs_extra
from shoal.io.parquet_files import frozen
from shoal.progress import Progress

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


def spark_runner(
    data: Any,
    out: Path | None,
    master: str | None = None,
    conf: Sequence[str] = (),
    tell: Progress | None = None,
) -> SparkRunner:
    """A runner for a DataFrame of Spark, or for the path of a Parquet file or of a folder of them.

    Raises:
        OptionError: the session is one of Spark Connect; the input is a Delta table; a setting is not KEY=VALUE.
        InputError: there is no such file.
        MissingExtraError: Spark is not installed.
    """
    with needs_extra("spark", "engine 'spark' needs"):
        import pyspark  # noqa: F401
    from shoal.release.engines.spark import SparkRunner, spark_failures

    if isinstance(data, (str, Path)):
        path = str(data)
        if "://" in path:
            raise OptionError(
                f"engine 'spark' reads '{path}' through a DataFrame: pass spark.read.parquet('{path}') to "
                "shoal.protect, with work=."
            )
        if (Path(path) / "_delta_log").is_dir():
            raise OptionError(
                f"engine 'spark' works on files that stay as they are, and '{path}' is a Delta table: pass a pinned "
                "version, spark.read.format('delta').option('versionAsOf', N).load(...), to shoal.protect with work=."
            )
        files = frozen(path)
        return SparkRunner(_session(master, conf), files, log=_log_beside(out))
    _refuse_connect(data)
    if out is None:
        raise OptionError(
            "work is missing: a Spark DataFrame is released into a folder, name one with work=."
        )
    # the frame is computed once, beside where the release will be
    snapshot = snapshot_place(out)
    try:
        with spark_failures(data.sparkSession, snapshot.parent):
            data.write.parquet(str(snapshot))
        return SparkRunner(data.sparkSession, frozen(snapshot), snapshot, _log_beside(out))
    except BaseException:
        shutil.rmtree(snapshot, ignore_errors=True)
        raise


def _log_beside(out: Path | None) -> Path | None:
    return None if out is None else out.absolute().parent / "shoal-spark.log"


def snapshot_place(out: Path) -> Path:
    """Where the input of a release into `out` is frozen; what an earlier attempt left there is removed."""
    place = out.absolute().parent / f".{out.name}.input"
    shutil.rmtree(place, ignore_errors=True)
    return place


def _refuse_connect(frame: Any) -> None:
    if ".connect." in type(frame).__module__:
        raise OptionError(
            "engine 'spark' is not for Spark Connect: its client cannot cancel a job and clean up after it, nor say "
            "why a task failed; use a session of the cluster itself (spark-submit)."
        )


def _session(master: str | None, conf: Sequence[str]) -> Any:
    """The running session, or a new one."""
    from pyspark.sql import SparkSession

    told = dict(_pair(text) for text in conf)
    running = SparkSession.getActiveSession()
    if running is not None and master is None:
        return running
    # workers run the Python of this environment
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("shoal")
    address = master or told.pop("spark.master", None) or os.environ.get("MASTER") or _MASTER
    settings = {**_USUAL, **(_ALONE if address.startswith("local") else {}), **told}
    if address.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.master(address).getOrCreate()
    except Exception as error:
        raise OutputError(
            f"Spark does not start at '{address}': {_first_line(error)}. It needs Java 17 or later (JAVA_HOME)."
        ) from None
    session.sparkContext.setLogLevel("ERROR")
    return session


def _pair(text: str) -> tuple[str, str]:
    key, equal, value = text.partition("=")
    if not equal or not key.startswith("spark."):
        raise OptionError(f"conf '{text}' is not a setting of Spark: write it as spark.executor.memory=4g.")
    return key, value


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")
