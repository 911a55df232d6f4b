"""Bundles at addresses that only Spark reaches: complete or absent, tried before the charge, never lost after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.engines.spark import Remote
from shoal.journal import Journal

from .spark_session import ROOT, need_java, session

pytestmark = [pytest.mark.system, pytest.mark.filterwarnings("ignore::shoal.errors.ExposedWarning")]
ASKED: dict[str, Any] = {"method": "tree-dp", "epsilon": 1, "domains": {"a": (0, 1000)}, "seed": 4}
BUNDLE = ["data", "log.toml", "measurements.json", "method.toml", "report.html", "statement.json"]


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def people(path: Path, rows: int = 3000) -> Path:
    rng = np.random.default_rng(3)
    parquet.write_table(pa.table({"a": rng.integers(0, 1000, rows)}), path, row_group_size=1000)
    return path


def mounts(behind: Path, name: str = "far") -> dict[str, str]:
    """Settings that have viewfs://far/data lie in a folder; Java keeps what it once found under a name."""
    return {
        f"spark.hadoop.fs.viewfs.mounttable.{name}.link./data": f"file://{behind}",
        "spark.hadoop.fs.defaultFS": f"viewfs://{name}/",
    }


def mounted(behind: Path, name: str = "far") -> dict[str, str]:
    return {key.replace(".", "__"): value for key, value in mounts(behind, name).items()}


def places(folder: Path) -> tuple[Path, Path]:
    """What lies behind the addresses, and where bundles are made."""
    behind, staging = folder / "behind", folder / "staging"
    behind.mkdir()
    staging.mkdir()
    return behind, staging


def names(folder: Path) -> list[str]:
    """What is in a folder; sums that the file system behind keeps aside."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".crc")


def charges(ledger: Path, capsys: pytest.CaptureFixture[str]) -> int:
    capsys.readouterr()
    assert run(["ledger", "export", str(ledger)]) == 0
    return capsys.readouterr().out.count('"kind": "release"')


def test_bundles_at_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    behind, staging = places(tmp_path)
    data, ledger = people(tmp_path / "in.parquet"), tmp_path / "ledger.sqlite"
    assert run(["ledger", "open", str(ledger), "people", "--epsilon", "100"]) == 0
    charged: dict[str, Any] = {**ASKED, "ledger": str(ledger), "dataset": "people"}
    here = shoal.publish(data, out=tmp_path / "here", engine="local", **ASKED)

    def refused(words: str, out: str, **more: Any) -> None:
        before = charges(ledger, capsys)
        with pytest.raises(shoal.OutputError, match=words):
            shoal.publish(data, out=out, engine="spark", staging=staging, **{**charged, **more})
        assert charges(ledger, capsys) == before
        assert names(staging) in ([], ["shoal-spark.log"])

    with session(
        "local[2]", **{key.replace(".", "__"): value for key, value in mounts(behind).items()}
    ) as spark:
        seen: set[int] = set()

        def look(what: str, done: int, total: int) -> None:
            for folder in (*behind.glob("a b/.*.partial-*"), *staging.glob("shoal-*")):
                seen.add(folder.stat().st_mode & 0o777)

        address = "viewfs://far/data/a b/r[1]"
        internal = tmp_path / "internal.html"
        made = shoal.publish(
            data,
            out=address,
            engine="spark",
            staging=staging,
            internal=internal,
            progress=look,
            **charged,
        )
        assert made.folder == address
        assert names(behind / "a b") == ["r[1]"]
        assert names(behind / "a b" / "r[1]") == BUNDLE
        assert seen == {0o700}
        assert (behind / "a b" / "r[1]").stat().st_mode & 0o777 == 0o755
        assert internal.stat().st_mode & 0o777 == 0o600
        assert names(staging) == []
        assert made.release.data.count() == made.release.internal["rows_released"]
        assert made.release.statement == here.release.statement
        bundle = shoal.Bundle.load(behind / "a b" / "r[1]")
        ours, theirs = (
            parquet.read_table(folder).sort_by("a")
            for folder in (behind / "a b" / "r[1]" / "data", tmp_path / "here" / "data.parquet")
        )
        assert ours.equals(theirs)
        assert bundle.statement == here.release.statement
        assert all(name.startswith("part-") for name in names(behind / "a b" / "r[1]" / "data"))

        # a frame, and a folder of this machine under a default file system that is another
        frame = spark.read.parquet(f"file://{data}")
        released = shoal.protect(frame, work="viewfs:///data/frame", staging=staging, **ASKED)
        assert released.data.count() == released.internal["rows_released"]
        assert (
            shoal.publish(data, out=f"file://{tmp_path}/plain", engine="spark", **ASKED).folder
            == tmp_path / "plain"
        )
        assert names(tmp_path / "plain") == BUNDLE

        refused(r"'viewfs://far/data/a b/r\[1\]' already exists: name a new folder", address)
        refused("Spark cannot reach 'nosuch://b/x': .*No FileSystem for scheme", "nosuch://b/x")
        refused("Spark cannot reach 's3a://b/x': .*S3AFileSystem not found", "s3a://b/x")
        refused("'viewfs://far/' is an entire file system", "viewfs://far/")
        # the top of a view takes no files
        refused("Spark failed while trying to write to 'viewfs://far/top'", "viewfs://far/top")
        refused(
            "internal report .* must stay on this machine", "viewfs://far/data/x", internal="s3a://b/i.html"
        )
        with monkeypatch.context() as patched:
            patched.setattr(Remote, "free", lambda _: 1000)
            refused("the disk of 'viewfs://far/data/full' has 0.0 GB free", "viewfs://far/data/full")
        with monkeypatch.context() as patched:
            patched.setattr(Remote, "_end", lambda *_: (_ for _ in ()).throw(RuntimeError("quota exceeded")))
            refused("trying to write to .*/new/x': quota exceeded", "viewfs://far/data/new/x")
        assert names(behind) == ["a b", "frame"]

        # what fails once the budget is spent: the copy itself, and its last step
        for step in ("copy", "_rename"):
            with monkeypatch.context() as patched:
                _broken_after_the_trial(patched, step)
                before = charges(ledger, capsys)
                with pytest.raises(
                    shoal.OutputError,
                    match=r"cannot be copied to '.*/new/x'.* The bundle is kept in '.*shoal-x-\w+': copy .* stays",
                ):
                    shoal.publish(
                        data,
                        out="viewfs://far/data/new/x",
                        engine="spark",
                        staging=staging,
                        internal=tmp_path / f"kept{step}.html",
                        **charged,
                    )
            assert charges(ledger, capsys) == before + 1
            (kept,) = staging.glob("shoal-x-*")
            assert names(kept) == BUNDLE
            assert kept.stat().st_mode & 0o777 == 0o700
            assert (tmp_path / f"kept{step}.html").exists()
            assert parquet.read_table(kept / "data").sort_by("a").equals(theirs)
            assert any(str(kept) in place.read_text() for place in Journal.open(ledger=ledger).places)
            assert names(behind) == ["a b", "frame"]
            kept.rename(tmp_path / f"kept{step}")

        def stop(what: str, done: int, total: int, *, at: str) -> None:
            if what == at:
                raise shoal.CancelledError("stopped.")

        for at in ("copying the bundle", "putting the bundle in place"):
            with pytest.raises(shoal.CancelledError):
                shoal.publish(
                    data,
                    out="viewfs://far/data/new/x",
                    engine="spark",
                    staging=staging,
                    internal=tmp_path / "stopped.html",
                    progress=partial(stop, at=at),
                    **ASKED,
                )
            assert names(behind) == ["a b", "frame"]
            assert names(staging) in ([], ["shoal-spark.log"])
            assert not (tmp_path / "stopped.html").exists()


def _broken_after_the_trial(patched: pytest.MonkeyPatch, step: str) -> None:
    whole = getattr(Remote, step)
    tried: list[str] = []

    def breaking(self: Remote, *args: Any) -> None:
        if step == "_rename" and not tried:
            tried.append("yes")
            return whole(self, *args)
        whole(self, *args)
        raise OSError("the line is dead")

    patched.setattr(Remote, step, breaking)


def test_two_releases_to_one_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is there between the last look and the renaming of the first: both are whole afterwards."""
    behind, staging = places(tmp_path)
    data = people(tmp_path / "in.parquet")
    with session("local[2]", **mounted(behind, "other")):
        rename = Remote._rename

        def late(self: Remote, address: str) -> None:
            if address == self.address:
                (behind / "x").mkdir()
                (behind / "x" / "theirs").write_text("whole")
            rename(self, address)

        monkeypatch.setattr(Remote, "_rename", late)
        with pytest.raises(shoal.OutputError, match=r"cannot be copied to .* kept in"):
            shoal.publish(data, out="viewfs://other/data/x", engine="spark", staging=staging, **ASKED)
    assert names(behind) == ["x"]
    assert names(behind / "x") == ["theirs"]
    (kept,) = staging.glob("shoal-x-*")
    assert names(kept) == BUNDLE


def command_line(data: Path, behind: Path, staging: Path) -> tuple[list[str], dict[str, str]]:
    settings = [word for pair in mounts(behind).items() for word in ("--conf", "=".join(pair))]
    command = [
        *(sys.executable, "-m", "shoal", "protect", str(data), "--engine", "spark", "--master", "local[2]"),
        *("--method", "tree-dp", "--epsilon", "1", "--domain", "a=0:1000", "--out", "viewfs://far/data/out"),
        *("--staging", str(staging), *settings),
    ]
    return command, {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def test_the_command_line(tmp_path: Path) -> None:
    need_java()
    behind, staging = places(tmp_path)
    command, environment = command_line(people(tmp_path / "in.parquet"), behind, staging)
    made = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "Written to viewfs://far/data/out." in made.stdout
    assert names(behind / "out") == BUNDLE
    assert names(staging) == []
    again = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert again.returncode == 2
    assert "already exists: name a new folder" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_while_a_bundle_is_copied_leaves_nothing_there(tmp_path: Path, ending: int) -> None:
    need_java()
    behind, staging = places(tmp_path)
    command, environment = command_line(people(tmp_path / "in.parquet", 2_000_000), behind, staging)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    # the copy begins once the bundle is made: what was there before belongs to the trial
    while not (list(staging.glob("shoal-out-*")) and list(behind.glob(".out.partial-*/data"))):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(ending)
    _, told = process.communicate(timeout=120)
    deadline = time.monotonic() + 60
    while names(behind) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert names(behind) == []
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted, nothing was written" in told
        assert names(staging) == []
    else:
        # whoever was charged for it finds it
        (kept,) = staging.glob("shoal-out-*")
        assert names(kept) == BUNDLE
