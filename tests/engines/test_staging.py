"""Working files of an engine: private, removed when abandoned, and limited in size."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
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
from shoal.io.binary_files import ROW, frozen

ASKED: dict[str, Any] = {"method": "laplace", "epsilon": 1, "domains": {"age": (0, 9)}}


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "in.parquet"
    parquet.write_table(pa.table({"age": [1, 2, 3] * 20}), path)
    return path


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def owned(folder: Path, **facts: Any) -> Path:
    """A folder that says that another process works in it."""
    mark = folder / "owner.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), **facts}))
    return folder


def dead() -> int:
    made = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    return int(made.stdout)


def test_claimed_folders_are_closed_to_others(tmp_path: Path) -> None:
    snapshot, session = staging.snapshot_folder(tmp_path / "new" / "out"), staging.session_folder(tmp_path)
    staging.claim(tmp_path / "work")
    for folder in (snapshot, session, tmp_path / "work"):
        assert rights(folder) == 0o700
        assert rights(folder / "owner.json") == 0o600
    for folder in (snapshot, session, tmp_path / "work"):
        staging.give_up(folder)
    assert not list(tmp_path.iterdir())


def test_folders_of_killed_runs_are_removed_by_the_next_one(data: Path, tmp_path: Path) -> None:
    snapshots = {
        name: staging.snapshot_folder(tmp_path / "another")
        for name in ("dead", "alive", "elsewhere", "silent")
    }
    gone = dead()
    owned(snapshots["dead"], process=gone)
    owned(snapshots["elsewhere"], process=gone, machine="another machine")
    owned(snapshots["silent"], process=gone, machine="another machine")
    mark = snapshots["silent"] / "owner.json"
    os.utime(mark, (mark.stat().st_mtime - 3 * staging._LEASE,) * 2)
    shoal.publish(data, out=tmp_path / "out", engine="local", **ASKED)
    left = {name for name, folder in snapshots.items() if folder.exists()}
    assert left == {"alive", "elsewhere"}
    for folder in snapshots.values():
        staging.give_up(folder)


def test_a_living_process_shows_that_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = staging.snapshot_folder(tmp_path / "out")
    mark = snapshot / "owner.json"
    os.utime(mark, (0, 0))
    beats = iter([None, KeyboardInterrupt])

    def wait(_: float) -> None:
        if (told := next(beats)) is not None:
            raise told

    monkeypatch.setattr(staging.threading, "Event", lambda: SimpleNamespace(wait=wait))
    with pytest.raises(KeyboardInterrupt):
        staging._beat()
    assert mark.stat().st_mtime > 1e9
    staging.give_up(snapshot)


def test_folders_of_killed_sessions_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    left = owned(staging.session_folder(tmp_path), process=dead())
    (tmp_path / "shoal-spark-theirs").mkdir()
    (tmp_path / "shoal-spark-link").symlink_to(left)
    staging.give_up(staging.session_folder(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shoal-spark-link", "shoal-spark-theirs"]


def test_what_lies_between_stages_is_closed_while_a_release_is_made(data: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def look(what: str, done: int, total: int) -> None:
        for folder in tmp_path.glob(".out.partial-*/.work"):
            seen.extend([rights(folder), rights(folder.parent)])

    shoal.publish(data, out=tmp_path / "out", engine="local", progress=look, **ASKED)
    assert set(seen) == {0o700}
    assert rights(tmp_path / "out") == 0o755


def test_a_full_disk_is_told_before_the_charge(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shoal.cli import run

    ledger = str(tmp_path / "ledger.sqlite")
    assert run(["ledger", "open", ledger, "people", "--epsilon", "10"]) == 0
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(staging.shutil, "disk_usage", lambda _: usage._replace(free=1679))
    with pytest.raises(
        shoal.OutputError, match=r"the disk of '.*' has .* GB free, .*: free some space, or choose another"
    ):
        shoal.publish(data, out=tmp_path / "out", engine="local", ledger=ledger, dataset="people", **ASKED)
    capsys.readouterr()
    assert run(["ledger", "export", ledger]) == 0
    assert '"kind": "release"' not in capsys.readouterr().out
    assert not list(tmp_path.glob("*out*"))
    # 60 values, 28 bytes each
    monkeypatch.setattr(staging.shutil, "disk_usage", lambda _: usage._replace(free=1680))
    shoal.publish(data, out=tmp_path / "out", engine="local", ledger=ledger, dataset="people", **ASKED)


def test_small_files_share_a_task_and_batches_stay_those_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    sizes = [3, 4, 500, 1, 2, 2, 90, 5]
    for number, size in enumerate(sizes):
        table = pa.table({"age": np.arange(size)})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=200)
    files = frozen(folder)
    shares = files.shares(100)
    assert [sum(piece.rows for piece in share) for share in shares] == [7, 200, 200, 100, 100]
    assert len(files.shares(10**6)) == 1
    whole = list(files.batches(["age"], 64))
    for size in (1, 100, 10**6):
        parted = [
            batch
            for share in files.shares(size)
            for piece in share
            for batch in files.piece(piece, ["age"], 64)
        ]
        assert len(parted) == len(whole)
        assert all(one.equals(other) for one, other in zip(parted, whole, strict=True))
    assert pa.Table.from_batches(whole)[ROW].to_pylist() == list(range(sum(sizes)))


@pytest.mark.parametrize("out", ["s3a://bucket/out", "hdfs://name:9000/out", Path("gs://bucket/out")])
@pytest.mark.parametrize("engine", ["memory", "local", None])
def test_an_address_as_the_place_of_a_release_is_for_spark(
    out: Any, engine: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        shoal.OutputError,
        match=r"'\w+://.*/out' is an address, .*: use engine=spark, or name a folder and copy the bundle",
    ):
        shoal.publish(data, out=out, engine=engine, **ASKED)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_addresses_of_this_machine_are_folders(data: Path, tmp_path: Path) -> None:
    made = shoal.publish(data, out=f"file://{tmp_path}/a%20b", engine="local", **ASKED)
    assert made.folder == tmp_path / "a%20b"
    with pytest.raises(shoal.OutputError, match="'file://elsewhere/out' names another machine"):
        shoal.publish(data, out="file://elsewhere/out", engine="local", **ASKED)
    with pytest.raises(shoal.OutputError, match=r"internal report .* must stay on this machine"):
        shoal.publish(data, out=tmp_path / "new", internal="s3a://b/internal.html", engine="local", **ASKED)
    with pytest.raises(shoal.OptionError, match="staging applies only when out is an address"):
        shoal.publish(data, out=tmp_path / "new", staging=tmp_path, engine="local", **ASKED)
    with pytest.raises(shoal.OptionError, match=r"staging folder '.*/none' does not exist"):
        shoal.publish(data, out="s3a://b/out", staging=tmp_path / "none", engine="spark", **ASKED)
    release = shoal.protect(data, **ASKED)
    with pytest.raises(shoal.OutputError, match="'s3a://b/out' is an address"):
        release.save("s3a://b/out")
    assert release.save(f"file://{tmp_path}/saved") == tmp_path / "saved"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a%20b", "in.parquet", "saved"]
