"""Long work on the command line: dry runs, files that stay on disk, and Ctrl-C at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from shoal import cli
from shoal.release import publication as command

DOMAINS = ["--domain", "a=0:1000", "--domain", "b=0.0:1.0"]


@pytest.fixture
def big(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "big.parquet"
    parquet.write_table(pa.table({"a": rng.integers(0, 1000, 3000), "b": rng.random(3000)}), path)
    return path


def test_a_dry_run_says_what_would_happen_and_writes_nothing(
    big: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        cli.run(["protect", str(big), "--method", "ranking-dp", "--epsilon", "1", *DOMAINS, "--dry-run"]) == 0
    )
    printed = capsys.readouterr().out
    assert "Would release 3,000 rows of a, b with ranking-dp, in memory." in printed
    assert "Expected: about" in printed
    assert "Nothing was written." in printed
    assert [p.name for p in tmp_path.iterdir()] == ["big.parquet"]


def test_a_dry_run_as_json(big: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "protect",
        str(big),
        "--method",
        "mdav-dp",
        "--epsilon",
        "1",
        *DOMAINS,
        "--dry-run",
        "--json",
    ]
    assert cli.run(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows"] == 3000
    assert printed["statement"]["model"] == "dp-given-partition"
    assert printed["estimate"]["seconds"] > 0
    assert printed["engine"] == "memory"
    large = ["--method", "ranking-dp", "--engine", "local"]
    assert cli.run([*arguments[:2], *large, *arguments[4:]]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "local"


@pytest.mark.parametrize("method", ["ranking-dp", "xm-21"])
def test_a_large_parquet_file_is_worked_through_in_parts_by_itself(
    method: str, big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command with the same seed gives the same rows on both paths."""
    options = ["--method", method, "--epsilon", "1", *DOMAINS, "--seed", "5"]
    assert cli.run(["protect", str(big), *options, "--out", str(tmp_path / "memory")]) == 0
    monkeypatch.setattr("shoal.release.publication._LARGE", 1000)
    # a frame of the whole table would be a mistake here
    monkeypatch.setattr(
        "shoal.io.files._read_path", lambda path: pytest.fail("the table was loaded as a whole")
    )
    assert cli.run(["protect", str(big), *options, "--out", str(tmp_path / "disk")]) == 0
    first, second = (parquet.read_table(tmp_path / name / "data.parquet") for name in ("memory", "disk"))
    assert first.schema.equals(second.schema)
    # rows have an order of their own
    order = [("a", "ascending"), ("b", "ascending")]
    assert first.sort_by(order).equals(second.sort_by(order))


def test_a_long_run_is_announced(
    big: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_WORTH_AN_ESTIMATE", 10)
    monkeypatch.setattr("shoal.cli.protect._LONG_SECONDS", 0)
    options = ["--method", "ranking-dp", "--epsilon", "1", *DOMAINS, "--out", str(tmp_path / "out")]
    assert cli.run(["protect", str(big), *options]) == 0
    assert "This will take about" in capsys.readouterr().err


_BUSY = """
import sys, time
import shoal.mechanisms.clusters as clusters
import numpy as np
from shoal.cli import run
from pathlib import Path

def busy(*arguments):
    Path(sys.argv[1]).touch()
    # one call that does not return to the interpreter for a long time, like a sort of a large column
    np.sort(np.random.default_rng(0).random(30_000_000))
    time.sleep(600)

if sys.argv[2] == "partition":
    clusters.partition_group = busy
else:
    import shoal.report
    shoal.report.public_report = busy
sys.exit(run(sys.argv[3:]))
"""


@pytest.mark.parametrize("stage", ["partition", "writing"])
def test_ctrl_c_in_the_middle_of_compiled_work_ends_it_and_leaves_nothing(
    big: Path, tmp_path: Path, stage: str
) -> None:
    script = tmp_path / "busy.py"
    script.write_text(_BUSY)
    begun = tmp_path / "begun"
    target = tmp_path / "target"
    target.mkdir()
    options = ["--method", "mdav-dp", "--epsilon", "1", *DOMAINS, "--out", str(target / "out")]
    options += ["--internal", str(target / "internal.html")]
    process = subprocess.Popen(
        [sys.executable, str(script), str(begun), stage, "protect", str(big), *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    deadline = time.monotonic() + 600
    while not begun.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert begun.exists()
    process.send_signal(signal.SIGINT)
    # left alone, it would go on for more than ten minutes
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert stderr.strip() == "shoal: interrupted, nothing was written."
    assert list(target.iterdir()) == []
