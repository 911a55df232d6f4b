"""Files about the original records: readable by their owner only, whatever the umask and whatever was there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import shoal
from shoal.cli import run
from shoal.engines import runner
from shoal.engines.runner import LocalRunner
from shoal.engines.staging import claim
from shoal.io.binary_files import frozen
from shoal.io.common import private_file, private_folder, private_text

DOMAINS = {"a": (0, 100), "b": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def people(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"a": rng.integers(0, 101, rows), "b": rng.random(rows)})


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def assert_private(*paths: Path) -> None:
    found = {path.name: oct(mode(path)) for path in paths}
    assert found == {path.name: oct(0o700 if path.is_dir() else 0o600) for path in paths}


def test_a_new_file_and_one_that_was_there_become_private(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("before")
    old.chmod(0o644)
    private_text(old, "after")
    private_file(tmp_path / "new")
    assert old.read_text() == "after"
    assert_private(old, tmp_path / "new")
    with pytest.raises(FileExistsError):
        private_file(old, new=True)


def test_folders_that_are_made_are_private_and_others_stay_as_they_are(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(0o755)
    private_folder(there / "one" / "two")
    assert_private(there / "one", there / "one" / "two")
    assert mode(there) == 0o755


def test_an_internal_report_is_private_and_the_bundle_is_not(tmp_path: Path) -> None:
    internal = tmp_path / "new" / "deep" / "internal.html"
    shoal.publish(people(), domains=DOMAINS, epsilon=1, out=tmp_path / "out", internal=internal)
    assert_private(internal, internal.parent, internal.parent.parent)
    assert mode(tmp_path / "out") == 0o755
    assert {mode(path) for path in (tmp_path / "out").iterdir()} == {0o644}
    release = shoal.protect(people(), domains=DOMAINS, epsilon=1)
    release.save(tmp_path / "again", tmp_path / "saved" / "internal.html")
    assert_private(tmp_path / "saved" / "internal.html", tmp_path / "saved")


def test_a_page_with_an_original_is_private_and_one_of_a_bundle_alone_is_not(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    shoal.publish(people(), domains=DOMAINS, epsilon=1, out=tmp_path / "out")
    with_it, alone = tmp_path / "with.html", tmp_path / "alone.html"
    original = ["--original", str(tmp_path / "people.csv")]
    assert run(["report", str(tmp_path / "out"), *original, "--out", str(with_it)]) == 0
    assert run(["report", str(tmp_path / "out"), "--out", str(alone)]) == 0
    assert_private(with_it)
    assert mode(alone) == 0o644


def test_what_a_tuning_writes_is_private_also_over_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "tuned"

    def tune() -> None:
        shoal.tune(people(), epsilon=1, methods=["laplace"], domains=DOMAINS, out=folder, seeds=1)

    tune()
    written = list(folder.iterdir())
    assert len(written) > 2
    assert_private(folder, *written)
    for path in written:
        path.chmod(0o644)
    tune()
    assert_private(*folder.iterdir())


def test_risks_of_records_and_held_out_records_are_private(tmp_path: Path) -> None:
    found = shoal.risk(people(), quasi_identifiers="a")
    found.save(tmp_path / "risk.csv")
    people().to_csv(tmp_path / "people.csv", index=False)
    rest, control = tmp_path / "rest.csv", tmp_path / "control.csv"
    assert (
        run(["hold-out", str(tmp_path / "people.csv"), "--rest", str(rest), "--control", str(control)]) == 0
    )
    assert_private(tmp_path / "risk.csv", rest, control)


def test_spills_of_the_local_engine_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_WAITING", 0)
    table = people(2000)
    path = tmp_path / "people.parquet"
    table.to_parquet(path, index=False)
    seen: set[tuple[str, int]] = set()
    flush = runner._Buckets._flush

    def watched(self: runner._Buckets) -> None:
        flush(self)
        assert self._folder is not None
        work = self._folder.parent
        for spilled in (work, self._folder, *self._folder.iterdir(), *work.glob("owner.json")):
            seen.add(("folder" if spilled.is_dir() else "file", mode(spilled)))

    monkeypatch.setattr(runner._Buckets, "_flush", watched)
    shoal.publish(
        path, domains=DOMAINS, method="ranking-dp", k=5, epsilon=1, out=tmp_path / "out", engine="local"
    )
    assert seen == {("folder", 0o700), ("file", 0o600)}
    assert parquet.read_metadata(tmp_path / "out" / "data.parquet").num_rows == 2000


def test_a_claimed_folder_is_private(tmp_path: Path) -> None:
    claim(tmp_path / "aside" / ".work")
    assert_private(
        tmp_path / "aside", tmp_path / "aside" / ".work", tmp_path / "aside" / ".work" / "owner.json"
    )


def test_a_runner_works_in_a_private_folder(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    people().to_parquet(path, index=False)
    with LocalRunner(frozen(path)).working_in(tmp_path / "work"):
        assert_private(tmp_path / "work")
