"""Spark and the local engine release the same rows, despite retries, and failures give one sentence."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.engines.runner import Over, TaskStage
from shoal.io.binary_files import frozen
from shoal.noise.entropy import Keyed

from . import retried
from .equality import BOUNDED, check_equal, stays
from .spark_session import ROOT, need_java, session

pytestmark = pytest.mark.system
DOMAINS = {"a": (0, 1000), "b c": ("-5.00", "5.00")}
N = 6000
SCHEMA = shoal.Schema.from_dict(
    {
        "attribute": [
            {"name": "a", "role": "quasi-identifier"},
            {"name": "b c", "role": "confidential", "lo": "-5.00", "hi": "5.00"},
        ]
    }
)
STEPPED = shoal.Schema.from_dict(
    {
        "attribute": [{"name": "a", "lo": 0, "hi": 1000}, {"name": "b c", "lo": "-5.00", "hi": "5.00"}],
        "step": [{"recode": "a", "breaks": [-1, 100, 500, 1000]}, {"top": "b c", "at": 2}],
    }
)


def people(folder: Path) -> Path:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.integers(0, 1000, N), "b c": np.clip(rng.normal(size=N), -5, 5).round(2)})
    place = folder / "my täble"
    place.mkdir()
    for part in range(3):
        parquet.write_table(
            table.slice(2000 * part, 2000), place / f"part {part}.parquet", row_group_size=500
        )
    return place


def test_a_session_on_this_machine(tmp_path: Path) -> None:
    data = people(tmp_path)
    with session("local[2]") as spark:
        for method, more in (
            ("ranking-dp", {"k": 20}),
            ("pairs-dp", {}),
            ("xm-24", {"k": 20}),
            ("swap-ranking", {"k": 20, "schema": SCHEMA, "epsilon": None, "domains": None}),
            ("tree-dp", {"schema": STEPPED, "domains": None}),
            ("laplace", {}),
        ):
            asked: dict[str, Any] = {"method": method, "epsilon": 1, "domains": DOMAINS, "seed": 4, **more}
            here = shoal.publish(data, out=tmp_path / f"local {method}", engine="local", **asked)
            there = shoal.publish(data, out=tmp_path / f"spark {method}", engine="spark", **asked)
            assert there.engine == "spark"
            assert there.release.statement == here.release.statement
            assert sorted(path.name for path in there.folder.iterdir()) == [
                *("data", "log.toml"),
                *(["measurements.json"] if method in ("pairs-dp", "tree-dp") else []),
                *("method.toml", "report.html", "statement.json"),
            ]
            assert there.release.measurements == here.release.measurements
            ours = parquet.read_table(there.folder / "data")
            assert there.release.data.count() == ours.num_rows == there.release.internal["rows_released"]
            assert ours.equals(parquet.read_table(here.folder / "data.parquet"))
        frame = spark.read.parquet(str(data / "part 1.parquet")).where("a > 100")
        release = shoal.protect(frame, work=tmp_path / "frame", **asked)
        assert release.data.count() == frame.count()
        assert not list(tmp_path.glob(".frame.input*"))
        with pytest.raises(shoal.OptionError, match="work is missing"):
            shoal.protect(frame, **asked)
        with pytest.raises(shoal.InputError, match="lie outside 0:10"):
            shoal.protect(frame, work=tmp_path / "no", **{**asked, "domains": {"a": (0, 10)}})
        assert not (tmp_path / "no").exists()
        assert not list(tmp_path.glob(".no.input*"))
        told: list[str] = []

        def stop(what: str, done: int, total: int) -> None:
            told.append(what)
            if what == "writing rows":
                raise shoal.CancelledError("stopped.")

        with pytest.raises(shoal.CancelledError):
            shoal.publish(data, out=tmp_path / "stopped", engine="spark", progress=stop, **asked)
        assert "looking at the records" in told
        broken = data / "part 2.parquet"
        broken.write_bytes(broken.read_bytes()[:200] + bytes(400) + broken.read_bytes()[600:])
        with pytest.raises(
            shoal.OutputError,
            match=r"^Spark failed while .*: '.*part 2\.parquet' cannot be read as .*shoal-spark\.log', which may",
        ):
            shoal.publish(data, out=tmp_path / "broken", engine="spark", **asked)
        assert (tmp_path / "shoal-spark.log").stat().st_mode & 0o777 == 0o600
    left = {
        path.name
        for path in tmp_path.iterdir()
        if "partial" in path.name or path.name in ("stopped", "broken")
    }
    assert not left


def released_rows(spark: Any, data: Path, out: Path, source: Keyed | None, kill: bool) -> pa.Table:
    """Noise for clusters, written by stages of which the last is slow, an executor killed in it if asked for."""
    from shoal.engines.spark import SparkRunner

    runner = SparkRunner(spark, frozen(data))
    pause = 2.0
    draw = TaskStage(partial(retried.noisy_clusters, source=source), retried.BUCKETS)
    last = TaskStage(partial(retried.slow_rows, pause=pause))
    schema = pa.schema([("row", pa.int64()), ("noise", pa.int64())])
    killed = threading.Event()

    def watch(what: str, done: int, total: int) -> None:
        # some buckets of the result are done, others still need what the killed executor held
        if kill and not killed.is_set() and total == retried.BUCKETS and done >= 3:
            executors = _executors()
            os.kill(executors[0], signal.SIGKILL)
            killed.set()

    runner.watched(watch)
    out.mkdir()
    runner.write("writing", Over(("a",)), draw, last, schema=schema, folder=out)
    assert killed.is_set() == kill
    return parquet.read_table(out / "data")


def _executors() -> list[int]:
    """Executors that this process's session started."""
    found = []
    mine = os.getpid()
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in words:
                found.append(int(entry.name))

    def ours(process: int) -> bool:
        while process > 1:
            if process == mine:
                return True
            process = parents.get(process, 0)
        return False

    return sorted(filter(ours, found))


def torn(table: pa.Table) -> int:
    """Clusters that are out with two different noises."""
    rows, noise = (table[name].to_numpy() for name in ("row", "noise"))
    order = np.argsort(rows)
    assert (rows[order] == np.arange(rows.size)).all()
    by_cluster = noise[order].reshape(-1, retried.CLUSTER)
    return int((by_cluster != by_cluster[:, :1]).any(axis=1).sum())


def digest(table: pa.Table) -> str:
    ordered = table.sort_by("row").combine_chunks()
    return hashlib.sha256(b"".join(batch.serialize() for batch in ordered.to_batches())).hexdigest()


def test_rows_of_units_that_are_bounded_are_those_in_memory(tmp_path: Path) -> None:
    """A unit's rows lie in several files' row groups, which several workers read."""
    subject = stays(tmp_path)
    with session("local[2]"):
        for method in BOUNDED:
            check_equal(subject, method, "spark", tmp_path)


@pytest.mark.slow
def test_a_killed_executor_changes_nothing_and_fresh_entropy_would_tear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"a": np.arange(40_000)}), data, row_group_size=5000)
    settings = {
        "spark__speculation": "true",
        # Spark would notice that the second draw differs, and give up: safe, but no release
        "spark__sql__shuffle__orderIndependentChecksum__enabled": "false",
        "spark__sql__shuffle__orderIndependentChecksum__enableFullRetryOnMismatch": "false",
        "spark__sql__shuffle__orderIndependentChecksum__enableQueryLevelRollbackOnMismatch": "false",
    }
    with session("local-cluster[2,1,1024]", **settings) as spark:
        key = Keyed(bytes(range(32)))
        plain = released_rows(spark, data, tmp_path / "plain", key, kill=False)
        killed = released_rows(spark, data, tmp_path / "killed", key, kill=True)
        assert torn(plain) == torn(killed) == 0
        assert digest(plain) == digest(killed)
        # the control: without the seal, and with the system's entropy
        monkeypatch.setattr("shoal.engines.spark.Sealed", lambda task: task)
        control = released_rows(spark, data, tmp_path / "control", None, kill=True)
        assert torn(control) > 0


def command_line(data: Path, out: Path, ledger: Path | None = None) -> tuple[list[str], dict[str, str]]:
    """`shoal protect` on a session of its own, and the environment for it."""
    charge = [] if ledger is None else ["--ledger", str(ledger), "--dataset", "people"]
    words = [
        *("--engine", "spark", "--master", "local[2]", "--method", "tree-dp", "--epsilon", "1"),
        *("--domain", "a=0:1000", "--domain", "b c=-5.00:5.00", "--columns", "a", "--columns", "b c"),
    ]
    command = [sys.executable, "-m", "shoal", "protect", str(data), *words, "--out", str(out), *charge]
    return command, {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def wait_for(pattern: str, folder: Path, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + 600
    while not list(folder.glob(pattern)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interruption_cancels_the_job_and_leaves_nothing(tmp_path: Path) -> None:
    need_java()
    command, environment = command_line(people(tmp_path), tmp_path / "out")
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    wait_for(".out.partial-*/data/_temporary", tmp_path, process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted, nothing was written" in told
    time.sleep(5)
    assert [path.name for path in tmp_path.iterdir()] == ["my täble"]


@pytest.mark.slow
def test_a_killed_driver_leaves_the_charge_and_nothing_else(tmp_path: Path) -> None:
    need_java()
    command, environment = command_line(people(tmp_path), tmp_path / "out", tmp_path / "ledger.sqlite")
    shoal_ledger = [sys.executable, "-m", "shoal", "ledger"]
    opened = ["open", str(tmp_path / "ledger.sqlite"), "people", "--epsilon", "10"]
    subprocess.run([*shoal_ledger, *opened], env=environment, check=True, capture_output=True)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(".out.partial-*/.work/owner.json", tmp_path, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(tmp_path.glob(".out.partial-*"))
    assert not (tmp_path / "out").exists()
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert not list(tmp_path.glob(".out.partial-*"))
    exported = [*shoal_ledger, "export", str(tmp_path / "ledger.sqlite")]
    entries = subprocess.run(exported, env=environment, capture_output=True, text=True).stdout.splitlines()
    # both were charged: the one that was killed may have been seen
    assert sum('"kind": "release"' in entry for entry in entries) == 2
