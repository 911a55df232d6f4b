"""Spark's files on disk: private, at absolute addresses of this file system, removed after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.engines import staging
from shoal.engines.runner import Over
from shoal.engines.spark import SparkRunner, _private
from shoal.errors import ExposedWarning
from shoal.io.binary_files import frozen

from .spark_session import ROOT, need_java, session

pytestmark = pytest.mark.system
ASKED: dict[str, Any] = {"method": "laplace", "epsilon": 1, "domains": {"a": (0, 1000)}, "seed": 4}
# a driver that is killed in the middle of a release of a DataFrame
DRIVER = """
import sys, time, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import shoal
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.range(3000).selectExpr("id % 1000 as a")

def stop(what, done, total):
    if what == "looking at the records":
        print("here", flush=True)
        time.sleep(600)

shoal.protect(frame, work=sys.argv[1], method="laplace", epsilon=1, domains={"a": (0, 1000)}, progress=stop)
"""


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def environment(**more: str) -> dict[str, str]:
    kept = {"PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {**os.environ, **kept, **more}


def many(folder: Path, files: int, rows: int) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(2)
    for number in range(files):
        parquet.write_table(pa.table({"a": rng.integers(0, 1000, rows)}), folder / f"{number:05}.parquet")
    return folder


@pytest.mark.slow
def test_a_killed_driver_leaves_a_closed_snapshot_that_the_next_run_removes(tmp_path: Path) -> None:
    need_java()
    place = tmp_path / "work"
    place.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(place / "first")],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "here\n"
        (snapshot,) = place.glob(".first.input-*")
        assert rights(snapshot) == 0o700
        assert list((snapshot / "data").glob("*.parquet"))
        data = tmp_path / "in.parquet"
        parquet.write_table(pa.table({"a": [1, 2, 3]}), data)
        shoal.publish(data, out=place / "second", engine="local", **ASKED)
        assert snapshot.exists()
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    assert snapshot.exists()
    shoal.publish(data, out=place / "third", engine="local", **ASKED)
    assert sorted(path.name for path in place.iterdir()) == ["second", "third"]


@pytest.mark.slow
def test_files_of_a_session_are_closed_and_a_killed_one_leaves_none_for_long(tmp_path: Path) -> None:
    need_java()
    for name in ("tmp", "work"):
        (tmp_path / name).mkdir()
    data = many(tmp_path / "in", 3, 2000)
    command = [
        *(sys.executable, "-m", "shoal", "protect", str(data), "--engine", "spark", "--master", "local[2]"),
        *("--method", "ranking-dp", "--epsilon", "1", "--k", "50", "--domain", "a=0:1000"),
        *("--out", str(tmp_path / "work" / "out")),
    ]
    around = environment(SPARK_LOCAL_DIRS=str(tmp_path / "tmp"))
    driver = subprocess.Popen(command, env=around, stderr=subprocess.DEVNULL, start_new_session=True)
    while not list((tmp_path / "tmp").glob("shoal-spark-*/blockmgr-*/*/shuffle_*")):
        assert driver.poll() is None
        time.sleep(0.02)
    (folder,) = (tmp_path / "tmp").iterdir()
    assert folder.name.startswith("shoal-spark-")
    assert rights(folder) == 0o700
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert list(folder.glob("blockmgr-*/*/shuffle_*"))
    again = subprocess.run(command, env=around, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert not list((tmp_path / "tmp").iterdir())
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["out"]


def test_folders_and_files_of_a_session_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a [b] {c}*"
    place.mkdir()
    data = many(tmp_path / "in", 300, 20)
    # nothing listens there: whoever asks for it waits, and fails
    with session("local[2]", spark__hadoop__fs__defaultFS="hdfs://127.0.0.1:1") as spark:
        # workers, and Java, have another working folder
        monkeypatch.chdir(place)
        frame = spark.read.parquet(f"file://{data}")
        seen: set[int] = set()

        def look(what: str, done: int, total: int) -> None:
            seen.update(rights(folder) for folder in Path().glob(".frame.input-*"))

        with pytest.warns(
            ExposedWarning, match=r"in '/tmp.*', where others can read it .* permissions 0700\.$"
        ):
            release = shoal.protect(frame, work="frame", progress=look, **ASKED)
        assert seen == {0o700}
        assert release.data.count() == 6000
        with pytest.warns(ExposedWarning):
            made = shoal.publish(Path("../in"), out="spark", engine="spark", **ASKED)
        assert made.release.data.count() == 6000
        here = shoal.publish(Path("../in"), out="local", engine="local", **ASKED)
        ours = parquet.read_table(place / "spark" / "data")
        # noise of records follows the files, and not the tasks that read them
        assert ours.equals(parquet.read_table(place / "local" / "data.parquet"))
        assert here.release.statement == made.release.statement
        tasks = SparkRunner(spark, frozen(data))._first(Over(("a",)), lambda batches: batches)[1]
        assert tasks.rdd.getNumPartitions() == 4

        monkeypatch.setattr(staging.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.warns(ExposedWarning), pytest.raises(shoal.OutputError, match="GB free"):
            shoal.publish(data, out=place / "full", engine="spark", **ASKED)
        monkeypatch.undo()

        (data / "_delta_log").mkdir()
        with pytest.raises(shoal.InputError, match="is a Delta table"):
            shoal.protect(frame.where("a > 3"), work=place / "no", **ASKED)
        with pytest.raises(
            shoal.OptionError, match=r"use .*, or a table in memory \(frame\.toArrow\(\)\)\.$"
        ):
            shoal.protect(frame, work=place / "no", **{**ASKED, "method": "mdav-dp"})
        private = tmp_path / "private"
        private.mkdir(mode=0o700)
        assert _private(private / "below")
        assert not _private(Path("/tmp"))
    assert sorted(path.name for path in place.iterdir()) == ["frame", "local", "spark"]
