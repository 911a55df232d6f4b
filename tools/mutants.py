"""Mutation testing: run mutants of seven parts of the package against that part's tests.

    python -m tools.mutants draw                  # 60 mutants with the seed below, written to tools/mutants.json
    python -m tools.mutants redraw                # replaces listed mutants whose line no longer exists
    python -m tools.mutants run [--out FILE]      # every mutant of the list against its tests, and a table

The list is drawn once. After code has moved the same list runs again: a mutant is found by its function's name and its
line, in the file it came from, in what `--moved OLD=NEW` says (files, folders, tests), or wherever else in the package
both occur once. It runs outside CI: an hour or more on one core.

Each mutant works in its own copy of the tree. Its limit is one of processor time, as other work on the machine
says nothing about the tests; five times as much elapsed time is allowed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from tools.mutations import Mutant, mutants, mutated

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "mutants.json"
SEED, NUMBER = 17, 60
PACKAGE = "src/shoal"
# parts of a checkout that the tests may need
_COPIED = ("src", "tests", "benchmarks", "papers", "tools", "docs", "results", "examples")
Outcome = Literal["killed", "survived", "timeout", "lost"]


@dataclass(frozen=True)
class Room:
    """A part of the package and the tests that cover it.

    Attributes:
        sources: Files, or folders of which every module counts, from the root of the checkout.
        tests: Arguments for pytest.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: Mapping[str, Room] = {
    "noise": Room((f"{PACKAGE}/noise",), ("tests/noise",)),
    "sensitivity": Room(
        (
            f"{PACKAGE}/mechanisms/sensitivity.py",
            f"{PACKAGE}/mechanisms/moments/statistics.py",
        ),
        (
            "tests/mechanisms/test_sensitivity.py",
            "tests/mechanisms/test_local_sensitivity.py",
            "tests/mechanisms/moments",
        ),
    ),
    "partition": Room((f"{PACKAGE}/partition",), ("tests/partition",)),
    "mask": Room(
        (f"{PACKAGE}/mechanisms/clusters.py",),
        (
            "tests/mechanisms",
            "--ignore=tests/mechanisms/kanonymity",
            "--ignore=tests/mechanisms/suppression",
            "tests/release/test_release.py",
        ),
    ),
    "statement": Room(
        (
            f"{PACKAGE}/privacy/statement.py",
            f"{PACKAGE}/privacy/verdict.py",
            f"{PACKAGE}/mechanisms/method.py",
        ),
        (
            "tests/privacy/test_statement.py",
            "tests/privacy/test_three_parts.py",
            "tests/mechanisms/test_noise_rule.py",
            "tests/mechanisms/test_conformance.py",
        ),
    ),
    "ledger": Room((f"{PACKAGE}/ledger",), ("tests/ledger",)),
    "reading": Room((f"{PACKAGE}/io",), ("tests/io/test_io.py", "tests/io/test_statfiles.py")),
}


def draw(root: Path, seed: int, number: int) -> list[Mutant]:
    """Draw mutants, from all parts in turn, at most one per line."""
    queues = _shuffled(root, seed)
    drawn: list[Mutant] = []
    while len(drawn) < number and any(queues.values()):
        drawn += [queue.pop() for queue in queues.values() if queue]
    return sorted(drawn[:number])


def redraw(root: Path, seed: int, known: Sequence[Mutant]) -> list[Mutant]:
    """The same mutants; one whose line no longer exists is replaced by another of its part."""
    kept = [one for one in known if place(root, one, {})]
    taken = {(one.path, one.text) for one in known}
    queues = {
        room: [one for one in queue if (one.path, one.text) not in taken]
        for room, queue in _shuffled(root, seed).items()
    }
    return sorted([*kept, *(queues[one.room].pop() for one in known if one not in kept)])


def _shuffled(root: Path, seed: int) -> dict[str, list[Mutant]]:
    """By part, one mutant of each line in random order."""
    generator = random.Random(seed)
    queues = {}
    for name, room in ROOMS.items():
        found = [one for path in _files(root, room.sources) for one in mutants(name, root, path)]
        generator.shuffle(found)
        queues[name] = list({(one.path, one.line): one for one in found}.values())
    return queues


def _files(root: Path, sources: Sequence[str]) -> list[str]:
    found = []
    for source in sources:
        path = root / source
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(root).as_posix() for path in found]


def moved(path: str, moves: Mapping[str, str]) -> str:
    """The new location of a path after files and folders were moved; the longest matching entry counts.

    >>> moved("src/shoal/io/files.py", {"src/shoal/io": "src/shoal/reading"})
    'src/shoal/reading/files.py'
    """
    for old in sorted(moves, key=len, reverse=True):
        if path == old or path.startswith(f"{old}/"):
            return moves[old] + path.removeprefix(old)
    return path


def place(root: Path, mutant: Mutant, moves: Mapping[str, str]) -> tuple[Path, str] | None:
    """The file that holds the mutant's line now, and its text with the change made; None if it is nowhere."""
    first = root / moved(mutant.path, moves)
    if first.exists() and (text := mutated(first.read_text("utf-8"), mutant)) is not None:
        return first, text
    elsewhere = [
        (path, text)
        for path in sorted((root / PACKAGE).rglob("*.py"))
        if (text := mutated(path.read_text("utf-8"), mutant)) is not None
    ]
    return elsewhere[0] if len(elsewhere) == 1 else None


def tests_of(root: Path, mutant: Mutant, moves: Mapping[str, str]) -> list[str]:
    """The part's tests, those named after the mutant's module first."""
    tests = [moved(test, moves) for test in ROOMS[mutant.room].tests]
    stem = Path(mutant.path).stem.removeprefix("_kernels_")
    near = sorted(
        path.relative_to(root).as_posix()
        for test in tests
        for path in (root / test).rglob(f"test*{stem}*.py")
        if (root / test).is_dir()
    )
    return [*near, *tests]


def run_tests(tree: Path, tests: Sequence[str], limit: int) -> tuple[Outcome, float]:
    """The outcome of pytest on a tree, and its duration."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
    )
    try:
        status = process.wait(5 * limit)
    except subprocess.TimeoutExpired:
        status = -signal.SIGXCPU
    finally:
        # the tests start child processes, which a killed pytest leaves behind
        _end(process)
    took = time.monotonic() - started
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout", took
    return "survived" if status == 0 else "killed", took


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def copied(root: Path, to: Path) -> Path:
    """A copy of what the tests need, with compiled kernels and times of change."""
    to.mkdir(parents=True)
    for name in _COPIED:
        if (root / name).exists():
            shutil.copytree(root / name, to / name)
    for file in root.iterdir():
        if file.is_file() and not file.name.startswith("."):
            shutil.copy2(file, to)
    return to


def outcomes(
    drawn: Iterable[Mutant], moves: Mapping[str, str], limit: int
) -> Iterator[tuple[Mutant, Outcome, float]]:
    """Each mutant with the outcome of its tests."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        clean = copied(ROOT, Path(folder, "clean"))
        for mutant in drawn:
            tree = copied(clean, Path(folder, "mutant"))
            found = place(tree, mutant, moves)
            if found is None:
                yield mutant, "lost", 0.0
            else:
                found[0].write_text(found[1], "utf-8")
                yield mutant, *run_tests(tree, tests_of(tree, mutant, moves), limit)
            shutil.rmtree(tree)


def report(found: Iterable[tuple[Mutant, Outcome, float]], out: TextIO) -> None:
    """One line for each mutant as soon as it is known, then the number detected in each part."""
    counts: Counter[tuple[str, Outcome]] = Counter()
    for number, (mutant, outcome, took) in enumerate(found, 1):
        counts[mutant.room, outcome] += 1
        where = f"{mutant.path}:{mutant.line} {mutant.function}"
        print(f"{number:3} {outcome:8} {took:4.0f} s  {mutant.room:11} {where}", file=out)
        print(f"{'':22}{mutant.text}\n{'':22}{mutant.changed}", file=out, flush=True)
    names: tuple[Outcome, ...] = ("killed", "survived", "timeout", "lost")
    print(f"\n{'':12}" + "".join(f"{name:>10}" for name in names), file=out)
    for room in [*ROOMS, "all"]:
        row = [sum(n for (r, o), n in counts.items() if o == name and room in (r, "all")) for name in names]
        print(f"{room:12}" + "".join(f"{count:10}" for count in row), file=out, flush=True)


def write(drawn: Iterable[Mutant]) -> None:
    rows = [json.dumps(one.to_dict(), ensure_ascii=False) for one in drawn]
    LIST.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=("draw", "redraw", "run"))
    parser.add_argument("--out", type=Path, help="file for the table; default: the terminal")
    parser.add_argument(
        "--moved", action="append", default=[], metavar="OLD=NEW", help="a path that has moved"
    )
    parser.add_argument("--limit", type=int, default=60, help="seconds of processor time for a mutant")
    parser.add_argument("--room", choices=list(ROOMS), help="only the mutants of this part")
    arguments = parser.parse_args()
    if arguments.job == "draw":
        write(draw(ROOT, SEED, NUMBER))
        return
    known = [Mutant(**row) for row in json.loads(LIST.read_text("utf-8"))]
    if arguments.job == "redraw":
        write(redraw(ROOT, SEED, known))
        return
    drawn = [mutant for mutant in known if arguments.room in (None, mutant.room)]
    moves = dict(pair.split("=", 1) for pair in arguments.moved)
    with arguments.out.open("w", encoding="utf-8") if arguments.out else sys.stdout as out:
        report(outcomes(drawn, moves, arguments.limit), out)


if __name__ == "__main__":
    main()
