"""Ctrl-C in the middle: status 130, one line, and nothing on disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import run

GOOD = "age\n" + "".join(f"{20 + i}\n" for i in range(30))
WORDS = ["protect", "data.csv", "--method", "mdav-dp", "--epsilon", "1", "--k", "3", "--domain", "age=0:120"]
OUT = ["--out", "deep/out", "--internal", "other/internal.html"]

# a stage of the work each; the last two are in the middle of writing
PLACES = [
    "shoal.io.text_files.read_delimited",
    "shoal.mechanisms.partition_stage.PartitionStage.run",
    "shoal.noise.families.discrete_laplace",
    "shoal.release.bundle.write",
    "shoal.report.internal_report",
]


def last_line(text: str) -> str:
    """Before it there may be a word about noise that drowns so small a table."""
    return text.splitlines(keepends=True)[-1]


@pytest.mark.parametrize("place", PLACES)
def test_interrupted_in_a_stage(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(GOOD)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if place.endswith("PartitionStage.run"):
        monkeypatch.setattr("shoal.mechanisms.clusters.partition_group", interrupt)
    else:
        monkeypatch.setattr(place, interrupt)
    assert run([*WORDS, *OUT]) == 130
    printed = capsys.readouterr()
    assert (printed.out, last_line(printed.err)) == ("", "shoal: interrupted, nothing was written.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


LEDGER = ["--ledger", "ledger.sqlite", "--dataset", "people"]


@pytest.mark.parametrize(
    ("place", "stays"),
    [
        ("shoal.release.publication.prepare", ""),
        (
            "shoal.release.publication.carry_out",
            " The privacy budget charged to data set 'people' (ε = 1) stays charged.",
        ),
        (
            "shoal.release.bundle.write",
            " The privacy budget charged to data set 'people' (ε = 1) stays charged.",
        ),
    ],
)
def test_interrupted_after_the_charge_the_line_says_that_it_stays(
    place: str,
    stays: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(GOOD)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupt)
    one_column = [word.replace("mdav-dp", "ranking-dp") for word in WORDS] + ["--type", "age=integer"]
    assert run([*one_column, *OUT, *LEDGER]) == 130
    assert last_line(capsys.readouterr().err) == f"shoal: interrupted, nothing was written.{stays}\n"
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger.sqlite")}
    assert left == {"data.csv"}


def test_failure_after_the_internal_report_takes_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(GOOD)

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("shoal.io.files.os.rename", refuse)
    assert run([*WORDS, *OUT]) == 2
    assert last_line(capsys.readouterr().err) == "shoal: cannot write 'deep/out': Input/output error.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


_WAITING = """
import sys, time
import shoal.release.bundle
from shoal.cli import run

write = shoal.release.bundle.write

def slow_write(*arguments):
    write(*arguments)
    print("half way", flush=True)
    time.sleep(600)

shoal.release.bundle.write = slow_write
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("ledger", "stays"), [([], ""), (LEDGER, " The privacy budget charged to the ledger stays charged.")]
)
def test_a_real_signal_while_the_bundle_is_half_written(
    ledger: list[str], stays: str, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text(GOOD)
    with subprocess.Popen(
        [sys.executable, "-c", _WAITING, *WORDS, *OUT, *ledger],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        assert list((tmp_path / "deep").glob(".out.partial-*/data.csv"))
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=300)
    assert process.returncode == 130
    assert last_line(complaint) == f"shoal: interrupted, nothing was written.{stays}\n"
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith("ledger.sqlite")}
    assert left == {"data.csv"}
