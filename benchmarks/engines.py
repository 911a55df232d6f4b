"""Rows per second and core, and memory, of the three engines, for docs/scale.md.

    python -m benchmarks.engines run --rows 1e6 --rows 1e7     # adds to results/engines_recorded.jsonl
    python -m benchmarks.engines run --rows 1e8 --engine local
    python -m benchmarks.engines page                          # the figures of docs/scale.md from what is recorded

Every cell is a separate process that first releases a small table, so that compilation and the start of a session
are not counted. Processor time is that of all its processes together, Java included; memory is the largest sum of
their memory at one time, shared pages counted once for each process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.results import RESULTS

RECORDED = RESULTS / "engines_recorded.jsonl"
METHODS = ("laplace", "ranking-dp", "tree-dp", "pairs-dp")
ENGINES = ("memory", "local", "spark")
DOMAINS = {"age": (0, 120), "income": (0, 200_000), "hours": (0, 100), "rent": (0, 10_000)}
_WARM = 200_000
_GROUP = 1 << 17
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    engine: str
    method: str
    rows: int
    cpu: float
    seconds: float
    peak: int
    machine: str

    @property
    def rate(self) -> float:
        return self.rows / self.cpu


def make_table(path: Path, rows: int) -> None:
    """Four columns of skewed whole numbers, written a row group at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.int32()) for name in DOMAINS])
    aside = path.with_suffix(".partial")
    with parquet.ParquetWriter(aside, schema) as writer:
        for number, first in enumerate(range(0, rows, _GROUP)):
            random, size = np.random.default_rng([7, number]), min(_GROUP, rows - first)
            age = np.clip(random.normal(45, 20, size), 0, 120)
            income = np.minimum(random.lognormal(10, 0.9, size), 200_000)
            hours = np.where(random.random(size) < 0.4, 40, random.integers(0, 100, size))
            rent = np.minimum(income / 30 + random.exponential(300, size), 10_000)
            columns = [np.asarray(column).astype(np.int32) for column in (age, income, hours, rent)]
            writer.write_table(pa.table(columns, schema=schema))
    aside.rename(path)


def work(engine: str, method: str, data: Path, warm: Path, out: Path, mark: Path, conf: list[str]) -> None:
    """The process of a cell: a small release, then the one that is measured between two marks."""
    import shoal

    arguments: dict[str, Any] = {"method": method, "epsilon": 1, "domains": DOMAINS, "engine": engine}
    if method == "ranking-dp":
        arguments["k"] = 50
    if engine == "spark":
        arguments |= {"master": "local[2]", "conf": conf}
    shoal.publish(warm, out=out / "warm", **arguments)
    mark.write_text("begin")
    started = time.perf_counter()
    shoal.publish(data, out=out / "released", **arguments)
    mark.write_text(json.dumps({"seconds": time.perf_counter() - started}))
    # processes must be there to be counted
    time.sleep(1.5)


def _sampled(session: int) -> tuple[dict[int, float], int]:
    """Processor seconds of every process of a session, and the bytes they hold together."""
    cpu: dict[int, float] = {}
    held = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            # its own time, and that of children that are gone
            cpu[int(entry.name)] = sum(map(int, fields[11:15])) / _TICKS
            held += int((entry / "statm").read_text().split()[1]) * _PAGE
        except (OSError, ValueError, IndexError):
            continue
    return cpu, held


def measure(engine: str, method: str, rows: int, folder: Path) -> Cell:
    """One cell."""
    data, warm = folder / f"{rows}.parquet", folder / "warm.parquet"
    for path, size in ((data, rows), (warm, min(rows, _WARM))):
        if not path.exists():
            make_table(path, size)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        mark = Path(out) / "mark"
        conf = ["spark.driver.memory=2g", f"spark.local.dir={out}"]
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.engines", "cell", engine, method),
                *(str(data), str(warm), out, str(mark), *conf),
            ],
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        begun: float | None = None
        largest, total = 0, 0.0
        # what a process had when it was last seen: those that end in between are not lost
        last: dict[int, float] = {}
        end: dict[str, float] = {}
        while process.poll() is None:
            cpu, held = _sampled(process.pid)
            last |= cpu
            text = mark.read_text() if mark.exists() else ""
            if text == "begin" and begun is None:
                begun = sum(last.values())
            if begun is not None:
                largest = max(largest, held)
            if text.startswith("{") and not end:
                end, total = json.loads(text), sum(last.values())
            time.sleep(0.2)
        if process.returncode or begun is None or not end:
            raise SystemExit(f"{engine} {method} {rows:,}: the process ended with {process.returncode}.")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return Cell(engine, method, rows, round(total - begun, 2), round(end["seconds"], 2), largest, machine)


def recorded() -> list[Cell]:
    """The last measurement of every cell."""
    found: dict[tuple[str, str, int], Cell] = {}
    for line in RECORDED.read_text("utf-8").splitlines() if RECORDED.exists() else ():
        cell = Cell(**json.loads(line))
        found[cell.engine, cell.method, cell.rows] = cell
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--rows", action="append", type=float, required=True)
    run.add_argument("--engine", action="append", choices=ENGINES)
    run.add_argument("--method", action="append", choices=METHODS)
    run.add_argument("--folder", type=Path, help="for tables; removed by nobody")
    commands.add_parser("page")
    cell = commands.add_parser("cell")
    for name in ("engine", "method", "data", "warm", "out", "mark"):
        cell.add_argument(name)
    cell.add_argument("conf", nargs="*")
    told = parser.parse_args()
    if told.command == "cell":
        paths = [Path(getattr(told, name)) for name in ("data", "warm", "out", "mark")]
        work(told.engine, told.method, *paths, told.conf)
    elif told.command == "page":
        from benchmarks.engines_page import write_page

        write_page(recorded())
    else:
        with tempfile.TemporaryDirectory() as made:
            folder = told.folder or Path(made)
            for rows in told.rows:
                for engine in told.engine or ENGINES:
                    for method in told.method or METHODS:
                        found = measure(engine, method, int(rows), folder)
                        with RECORDED.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(asdict(found)) + "\n")
                        print(
                            f"{engine:7} {method:11} {int(rows):>12,} {found.rate:>10,.0f} rows/s/core "
                            f"{found.peak / 1e6:,.0f} MB {found.seconds:,.0f} s",
                            flush=True,
                        )


if __name__ == "__main__":
    main()
