"""Throughput of the query server, every question charged and stored durably, beside the bare cost of a commit.

    python -m benchmarks.ledger [--rounds 5] [--seconds 4] [--out docs/ledger.md]

Writes what stands between the markers of docs/ledger.md. Bare commits and questions take turns, so that a ratio
compares what happened within seconds of each other.
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
from shoal.query.ledger import Charge, Deposit, GroupCommit, Register, open_ledger
from shoal.query.server.folder import TOKENS_FILE, Settings, write_dataset
from shoal.query.server.tokens import new_token
from shoal.survey import survey, survey_schema

BEGIN, END = "<!-- throughput: begin -->", "<!-- throughput: end -->"
CONNECTIONS = 64
PACED_CONNECTIONS = 512
AT_ONCE = 16
# about as long as the entry of a charge
ROW = "x" * 500


@dataclass(frozen=True)
class Round:
    """Per second: bare commits, spends of the ledger alone, questions one and sixteen per request; processor times."""

    bare: float
    ledger: float
    single: float
    many: float
    processor_single: float
    processor_many: float


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


@contextlib.contextmanager
def serving(folder: Path, address: str, *, pace: float, processes: int) -> Iterator[tuple[int, str]]:
    """`shoal serve` as a process of its own; its process number and address."""
    words = ["serve", "--data", str(folder), "--ledger", address, "--port", "0", "--rate", "0", "--quiet"]
    words += ["--processes", str(processes)]
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", *words, "--pace", str(pace)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        yield process.pid, process.stderr.readline().partition(" on ")[2].partition(" ")[0]
    finally:
        process.terminate()
        process.wait()


def asked(url: str, token: str, connections: int, seconds: float, at_once: int = 1) -> tuple[int, float]:
    """Questions answered and seconds, by a load generator in a process of its own."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.load",
        url,
        token,
        str(connections),
        str(seconds),
        str(at_once),
    ]
    done = json.loads(
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=seconds + 120).stdout
    )
    if set(done["statuses"]) != {"200"}:
        raise RuntimeError(f"not every question was answered: {done['statuses']}")
    return done["statuses"]["200"], done["seconds"]


def processor_seconds(process: int) -> float:
    """Processor time that a process and its children used so far."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    own = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for child in children)


def measure(
    bare: Callable[[], float], folder: Path, address: str, processes: int, rounds: int, seconds: float
) -> tuple[list[Round], float]:
    """Rounds in which bare commits, the ledger alone and the server take turns; and the rate with the default pace."""
    token = (folder / "token").read_text()
    found = []

    def rates(process: int, url: str, connections: int, at_once: int) -> tuple[float, float]:
        used = processor_seconds(process)
        count, elapsed = asked(url, token, connections, seconds, at_once)
        return count / elapsed, (processor_seconds(process) - used) / count

    with serving(folder, address, pace=0, processes=processes) as (process, url):
        asked(url, token, CONNECTIONS, 1.0)
        for _ in range(rounds):
            first = bare()
            single, processor_single = rates(process, url, CONNECTIONS, 1)
            second = bare()
            many, processor_many = rates(process, url, CONNECTIONS // AT_ONCE, AT_ONCE)
            alone = ledger_alone(address, seconds / 2)
            mean = (first + 2 * second + bare()) / 4
            found.append(Round(mean, alone, single, many, processor_single, processor_many))
    with serving(folder, address, pace=0.1, processes=processes) as (_, url):
        asked(url, token, PACED_CONNECTIONS, 1.0)
        count, elapsed = asked(url, token, PACED_CONNECTIONS, seconds)
    return found, count / elapsed


def make_folder(folder: Path) -> None:
    settings = Settings(ceiling=Fraction(10**6), description="The demo survey.")
    write_dataset(folder / "survey", settings, survey_schema(), survey())
    (folder / "token").write_text(new_token(folder / TOKENS_FILE, "load", "analyst"))


def table(rounds: int, seconds: float) -> str:
    """The section, measured now."""
    results = {}
    several = max(2, os.cpu_count() or 2)
    with tempfile.TemporaryDirectory() as name, temporary_postgres() as postgres:
        for database in ("SQLite", "PostgreSQL"):
            folder = Path(name) / database
            folder.mkdir()
            make_folder(folder)
            if database == "SQLite":
                address, bare = str(folder / "ledger.sqlite"), lambda f=folder: bare_sqlite(f, seconds / 4)
            else:
                address, bare = postgres, lambda: bare_postgres(postgres, seconds / 4)
            for processes in (1, several):
                results[database, processes] = measure(bare, folder, address, processes, rounds, seconds)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = [
        f"Written by `python -m benchmarks.ledger --rounds {rounds} --seconds {seconds:g}` on {datetime.date.today()}, "
        f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {loop_words()}. The machine was shared with other work "
        f"(load {os.getloadavg()[0]:.1f} on average at the end). Medians of {rounds} rounds; the ratio is the median "
        "of the ratios within a round.",
        "",
        "| database | processes | bare commits /s | ledger alone, spends /s | questions /s | questions / bare commit "
        f"| questions /s, {AT_ONCE} per request | questions / bare commit | at pace 0.1 /s "
        "| processor time per question |",
        "| --- |" + " ---: |" * 9,
    ]
    for (database, processes), (found, paced) in results.items():
        middle = {
            field: statistics.median(getattr(one, field) for one in found) for field in Round.__annotations__
        }
        single, many = (statistics.median(getattr(o, f) / o.bare for o in found) for f in ("single", "many"))
        lines.append(
            f"| {database} | {processes} | {middle['bare']:,.0f} | {middle['ledger']:,.0f} | {middle['single']:,.0f} | "
            f"**{single:.2f}** | {middle['many']:,.0f} | **{many:.2f}** | {paced:,.0f} | "
            f"{middle['processor_single'] * 1e6:,.0f} and {middle['processor_many'] * 1e6:,.0f} µs |"
        )
    return "\n".join(lines)


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
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "ledger.md")
    arguments = parser.parse_args()
    page = arguments.out.read_text("utf-8")
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    section = table(arguments.rounds, arguments.seconds)
    arguments.out.write_text(f"{head}{BEGIN}\n\n{section}\n\n{END}{tail}", "utf-8")
    print(section)


if __name__ == "__main__":
    main()
