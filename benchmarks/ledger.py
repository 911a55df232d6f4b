"""Throughput of the query server with every question charged and stored durably, compared with bare commits.

    python -m benchmarks.ledger [--rounds 5] [--seconds 4] [--before COMMIT] [--out docs/ledger.md]

Replaces the text between the markers of docs/ledger.md. Bare commits and questions take turns, so that a ratio
compares measurements within seconds of each other. With `--before` an earlier commit is measured in the same way.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.postgres import temporary_postgres
from shoal.io.common import dumps
from shoal.ledger import Charge, Deposit, GroupCommit, Register, open_ledger
from shoal.query.server.folder import TOKENS_FILE, DatasetSettings, write_dataset
from shoal.query.server.state import new_token
from shoal.survey import survey, survey_schema

BEGIN, END = "<!-- throughput: begin -->", "<!-- throughput: end -->"
HERE = Path(__file__).parents[1]
CONNECTIONS = 64
ANALYSTS = 8
AT_ONCE = 16
PACE = 0.1
# about as long as the entry of a charge
ROW = "x" * 500


@dataclass(frozen=True)
class Load:
    """What a load generator met: questions per second, and the median and 95th percentile of the waits in seconds."""

    rate: float
    wait: float
    wait_95: float


@dataclass(frozen=True)
class Round:
    """Per second: bare commits and spends of the ledger alone; then the server, answers at once and at deadlines."""

    bare: float
    ledger: float
    single: Load
    many: Load
    paced: Load
    alone: Load


def bare_sqlite(folder: Path, seconds: float) -> float:
    """Commits per second of one row each, write-ahead log, full sync."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (number INTEGER PRIMARY KEY, text TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t (text) VALUES (?)", (ROW,))
        connection.execute("COMMIT")

    try:
        return repeated(commit, seconds)
    finally:
        connection.close()


def bare_postgres(address: str, seconds: float) -> float:
    """The same in PostgreSQL, over its unix socket."""
    import psycopg

    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS t (number SERIAL PRIMARY KEY, text TEXT)")
        connection.commit()

        def commit() -> None:
            connection.execute("INSERT INTO t (text) VALUES (%s)", (ROW,))
            connection.commit()

        return repeated(commit, seconds)


def repeated(work: Callable[[], None], seconds: float) -> float:
    began = time.perf_counter()
    count = 0
    while time.perf_counter() < began + seconds:
        work()
        count += 1
    return count / (time.perf_counter() - began)


def ledger_alone(address: str, seconds: float, threads: int = 16) -> float:
    """Spends per second, each with its answer stored, by threads that share transactions."""
    ledger = open_ledger(address)
    ledger.register(Register("alone", "replace-one", None))
    group = GroupCommit(ledger)
    counts: list[int] = []
    deadline = time.perf_counter() + seconds

    def client(name: str) -> None:
        count = 0
        while time.perf_counter() < deadline:
            key = f"{time.time_ns()}-{count}"
            receipt = group.call(Charge("alone", name, '{"kind":"count"}', Fraction(1, 1000), key=key))
            group.call(Deposit("alone", receipt.charge, name, ROW))
            count += 1
        counts.append(count)

    began = time.perf_counter()
    workers = [threading.Thread(target=client, args=(f"t{i}",)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - began
    group.close()
    ledger.close()
    return sum(counts) / elapsed


def at_real_time(priority: int) -> None:
    """Let this process, and those that it starts, go before all ordinary work; needs the rights of root."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))


@contextlib.contextmanager
def serving(
    folder: Path, address: str, *, pace: float, processes: int, source: Path | None, priority: int = 0
) -> Iterator[str]:
    """`shoal serve` as a process of its own, of this checkout or of another; its address.

    Args:
        priority: at real time, above that of who asks; 0 for that of this process.
    """
    words = ["serve", "--data", str(folder), "--ledger", address, "--port", "0", "--rate", "0", "--quiet"]
    words += ["--processes", str(processes), "--pace", str(pace)]
    place = {} if source is None else {"PYTHONPATH": str(source / "src")}
    before = ["chrt", "--rr", str(priority)] if priority else []
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "shoal", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **place},
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().partition(" on ")[2].partition(" ")[0]
    finally:
        process.terminate()
        process.wait()


def asked(url: str, tokens: str, connections: int, seconds: float, at_once: int = 1) -> Load:
    """What a load generator in a process of its own meets."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.load",
        url,
        tokens,
        str(connections),
        str(seconds),
        str(at_once),
    ]
    done = json.loads(
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=seconds + 120).stdout
    )
    if set(done["statuses"]) != {"200"}:
        raise RuntimeError(f"not every question was answered: {done['statuses']}")
    return Load(done["statuses"]["200"] / done["seconds"], done["wait"], done["wait_95"])


def measure(
    bare: Callable[[], float],
    folder: Path,
    address: str,
    processes: int,
    rounds: int,
    seconds: float,
    source: Path | None,
) -> list[Round]:
    """Rounds in which bare commits, the ledger alone and the server take turns."""
    tokens = (folder / "tokens").read_text()
    one = tokens.split(",")[0]
    found = []
    settings = {"processes": processes, "source": source}
    for _ in range(rounds):
        first = bare()
        with serving(folder, address, pace=0, **settings) as url:
            asked(url, tokens, CONNECTIONS, 0.5)
            single = asked(url, tokens, CONNECTIONS, seconds)
            second = bare()
            many = asked(url, tokens, CONNECTIONS // AT_ONCE, seconds, AT_ONCE)
        with serving(folder, address, pace=PACE, **settings) as url:
            asked(url, tokens, CONNECTIONS, 0.5)
            paced = asked(url, tokens, CONNECTIONS, seconds)
            alone = asked(url, one, 1, seconds)
        ledger = ledger_alone(address, seconds / 2)
        found.append(Round((first + 2 * second + bare()) / 4, ledger, single, many, paced, alone))
    return found


def make_folder(folder: Path) -> None:
    """The demo survey, with terms that older versions read as well, and the tokens of several analysts."""
    settings = DatasetSettings(ceiling=Fraction(10**6), description="The demo survey.")
    write_dataset(folder / "survey", settings, survey_schema(), survey())
    (folder / "survey" / "dataset.toml").write_text(dumps({"ceiling": "1000000"}))
    tokens = [new_token(folder / TOKENS_FILE, f"load{number}", "analyst") for number in range(ANALYSTS)]
    (folder / "tokens").write_text(",".join(tokens))


@contextlib.contextmanager
def checked_out(commit: str | None) -> Iterator[dict[str, Path | None]]:
    """This checkout, and the files of an earlier commit beside it."""
    if commit is None:
        yield {"now": None}
        return
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(place), commit], check=True, cwd=HERE
        )
        try:
            yield {"before": place, "now": None}
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], check=True, cwd=HERE)


def table(rounds: int, seconds: float, before: str | None) -> str:
    """The section, measured now."""
    results = {}
    several = max(2, os.cpu_count() or 2)
    with (
        tempfile.TemporaryDirectory() as name,
        temporary_postgres() as postgres,
        checked_out(before) as sources,
    ):
        for database in ("SQLite", "PostgreSQL"):
            for version, source in sources.items():
                folder = Path(name) / f"{database}-{version}"
                folder.mkdir()
                make_folder(folder)
                if database == "SQLite":
                    address, bare = (
                        str(folder / "ledger.sqlite"),
                        lambda f=folder: bare_sqlite(f, seconds / 4),
                    )
                else:
                    address, bare = postgres, lambda: bare_postgres(postgres, seconds / 4)
                for processes in (1, several):
                    results[database, processes, version] = measure(
                        bare, folder, address, processes, rounds, seconds, source
                    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    option = "" if before is None else f" --before {before}"
    lines = [
        f"Written by `python -m benchmarks.ledger --rounds {rounds} --seconds {seconds:g}{option}` on "
        f"{datetime.date.today()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {loop_words()}. The machine was "
        f"shared with other work (load {os.getloadavg()[0]:.1f} on average at the end). Medians of {rounds} rounds; "
        f"the ratio is the median of the ratios within a round. Waits are the median and the 95th percentile. "
        f"{CONNECTIONS} connections of {ANALYSTS} analysts"
        + ("" if before is None else f"; *before* is the commit {before}")
        + ".",
        "",
        "| database | processes | version | bare commits /s | ledger alone, charges /s | at once: queries /s | "
        f"queries / bare commit | wait, ms | {AT_ONCE} per request: queries /s | at pace {PACE:g}: queries /s "
        "| wait, ms | one client: wait, ms |",
        "| --- | ---: | --- |" + " ---: |" * 9,
    ]
    for (database, processes, version), found in results.items():
        lines.append(f"| {database} | {processes} | {version} | " + " | ".join(cells(found)) + " |")
    return "\n".join(lines)


def cells(found: list[Round]) -> list[str]:
    """The numbers of one row of the table."""

    def middle(of: Callable[[Round], float]) -> float:
        return statistics.median(of(one) for one in found)

    def waits(of: Callable[[Round], Load]) -> str:
        return f"{middle(lambda r: of(r).wait) * 1e3:,.0f}, {middle(lambda r: of(r).wait_95) * 1e3:,.0f}"

    return [
        f"{middle(lambda r: r.bare):,.0f}",
        f"{middle(lambda r: r.ledger):,.0f}",
        f"{middle(lambda r: r.single.rate):,.0f}",
        f"**{middle(lambda r: r.single.rate / r.bare):.2f}**",
        waits(lambda r: r.single),
        f"{middle(lambda r: r.many.rate):,.0f}",
        f"{middle(lambda r: r.paced.rate):,.0f}",
        waits(lambda r: r.paced),
        waits(lambda r: r.alone),
    ]


def loop_words() -> str:
    """Which HTTP parser the server found, since it matters."""
    try:
        import httptools  # noqa: F401
    except ModuleNotFoundError:
        return "HTTP parsed by h11"
    return "HTTP parsed by httptools"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--before", metavar="COMMIT")
    parser.add_argument("--out", type=Path, default=HERE / "docs" / "ledger.md")
    arguments = parser.parse_args()
    page = arguments.out.read_text("utf-8")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    section = table(arguments.rounds, arguments.seconds, arguments.before)
    arguments.out.write_text(f"{head}{BEGIN}\n\n{section}\n\n{END}{tail}", "utf-8")
    print(section)


if __name__ == "__main__":
    main()
