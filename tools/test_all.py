"""`make test-all`: run all tests, one group after another, and summarise the results.

    python -m tools.test_all [--workers N] [--only GROUP ...] [--thorough] [--log FOLDER]

Groups continue when one fails; the exit status says whether any did. Every test is recorded when it ends, with its CPU
seconds, in FOLDER/GROUP.tsv: a run that was cut short loses nothing. Tests that measure time run last, when no
other test does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOWEST = 25


@dataclass(frozen=True, slots=True)
class Group:
    """Tests that run together.

    Attributes:
        chosen: an expression of markers.
        paths: their location, if restricted.
        workers: by default the number of cores.
        floor: fewer collected tests than this fail the group.
    """

    chosen: str
    paths: tuple[str, ...] = ()
    workers: int | None = None
    floor: int = 0


def groups(floor: int, thorough: bool = False) -> Mapping[str, Group]:
    """The groups in running order: those that `make test` does not run first, those that must run alone last."""
    but = "" if thorough else " and not thorough"
    return {
        "slow": Group("slow and not papers and not system and not alone" + but, ("tests",)),
        "papers": Group("papers" + but, ("papers", "tests/papers")),
        "system": Group("system" + but, ("tests",)),
        "quick": Group("not slow and not papers and not system", floor=floor),
        "alone": Group("alone" + but, ("tests",), workers=1),
    }


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished test, as recorded."""

    outcome: str
    cpu: float
    wall: float
    name: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a group: pytest's exit status, its last line, elapsed seconds and those of all its processes."""

    status: int
    said: str
    wall: float
    cpu: float
    tests: Sequence[Ended]

    @property
    def words(self) -> str:
        found = Counter(test.outcome for test in self.tests)
        told = ", ".join(
            f"{found[what]} {what}" for what in ("failed", "error", "passed", "skipped") if found[what]
        )
        return f"{told or 'no test'} in {_minutes(self.wall)}, {_minutes(self.cpu)} of CPU"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def noted(log: Path) -> list[Ended]:
    """The tests of a log, in the order in which they ended."""
    if not log.is_file():
        return []
    lines = [line.split("\t", 3) for line in log.read_text("utf-8").splitlines()]
    return [Ended(outcome, float(cpu), float(wall), name) for outcome, cpu, wall, name in lines]


def command(group: Group, workers: int, profile: str, log: Path) -> list[str]:
    number = group.workers or workers
    words = [
        sys.executable,
        "-m",
        "pytest",
        *group.paths,
        "-m",
        group.chosen,
        "--hypothesis-profile",
        profile,
    ]
    words += ["--log-tests", str(log)]
    if number > 1:
        words += ["-n", str(number), "--dist", "worksteal"]
    return [*words, "--collected-floor", str(group.floor)] if group.floor else words


def run(name: str, group: Group, workers: int, profile: str, folder: Path) -> Outcome:
    """Run a group; the output of pytest is shown and kept."""
    log = folder / f"{name}.tsv"
    log.unlink(missing_ok=True)
    began, before = time.monotonic(), os.times()
    said = ""
    with (folder / f"{name}.txt").open("w", encoding="utf-8") as kept:
        words = command(group, workers, profile, log)
        print(f"== {name}: {' '.join(words[1:])}", flush=True)
        with subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                kept.write(line)
                kept.flush()
                said = line.strip() or said
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return Outcome(process.returncode, said, time.monotonic() - began, cpu, noted(log))


def summary(outcomes: Mapping[str, Outcome]) -> list[str]:
    """A line a group, the slowest tests, and those that failed."""
    tests = [test for outcome in outcomes.values() for test in outcome.tests]
    lines = [f"== the {SLOWEST} tests that took most (seconds of CPU, seconds)"]
    lines += [
        f"{test.cpu:8.1f} {test.wall:8.1f} {test.name}"
        for test in sorted(tests, key=lambda test: -test.cpu)[:SLOWEST]
    ]
    lines += ["== groups"]
    lines += [
        f"{name:8} {outcome.words}"
        + (f" (exit status {outcome.status}: {outcome.said})" if outcome.status else "")
        for name, outcome in outcomes.items()
    ]
    whole = Outcome(
        max(outcome.status for outcome in outcomes.values()),
        "",
        sum(outcome.wall for outcome in outcomes.values()),
        sum(outcome.cpu for outcome in outcomes.values()),
        tests,
    )
    lines += [f"{'all':8} {whole.words}"]
    lines += [f"{test.outcome.upper()} {test.name}" for test in tests if test.outcome in ("failed", "error")]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run all tests, group by group.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--floor", type=int, default=0, help="fail if fewer quick tests are collected")
    parser.add_argument(
        "--thorough", action="store_true", help="the thorough tests too, and all in full size"
    )
    parser.add_argument("--only", nargs="+", default=None, help="these groups")
    parser.add_argument(
        "--log", type=Path, default=None, help="a folder for what pytest said and every test that ended"
    )
    asked = parser.parse_args(arguments)
    known = groups(asked.floor, asked.thorough)
    wanted = asked.only or list(known)
    if unknown := sorted({*wanted} - {*known}):
        parser.error(f"unknown group {unknown[0]}: there are {', '.join(known)}")
    folder = asked.log or Path(tempfile.mkdtemp(prefix="shoal-test-all-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"== every test that ends is noted in {folder}", flush=True)
    outcomes = {}
    for name in wanted:
        outcomes[name] = run(
            name, known[name], asked.workers, "thorough" if asked.thorough else "whole", folder
        )
        print(f"== {name}: {outcomes[name].words}", flush=True)
    print("\n".join(summary(outcomes)))
    return 1 if any(outcome.status for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
