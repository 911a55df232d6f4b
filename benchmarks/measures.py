"""Time and memory of measuring a large release in memory and in parts; writes its own section of docs/scale.md.

    python -m benchmarks.measures run --rows 1e6 --rows 1e7    # adds to results/measures_recorded.jsonl
    python -m benchmarks.measures page                         # the section between its two marks

Every cell is a separate process. Processor time is that of all its processes together, memory the largest sum of
their memory at one time, imports and compilation included.
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

import numpy as np

from benchmarks.engines import _sampled, make_table
from tools.results import DOCS, RESULTS, between

RECORDED = RESULTS / "measures_recorded.jsonl"
PAGE = DOCS / "scale.md"
WORK = ("evaluate", "check", "report")
ENGINES = ("memory", "local", "spark")


@dataclass(frozen=True)
class Cell:
    """One measurement."""

    engine: str
    work: str
    rows: int
    cpu: float
    seconds: float
    peak: int
    machine: str


def make_release(original: Path, bundle: Path) -> None:
    """A bundle of the table as an engine writes it: its documents are those of a small release."""
    import pyarrow as pa
    from pyarrow import parquet

    import shoal
    from benchmarks.engines import DOMAINS

    opened = parquet.ParquetFile(original)
    few = pa.Table.from_batches([next(opened.iter_batches(1000))])
    shoal.publish(few, out=bundle, method="tree-dp", epsilon=1, domains=DOMAINS)
    (bundle / "data.parquet").unlink()
    with parquet.ParquetWriter(bundle / "data.parquet", opened.schema_arrow) as writer:
        for group in range(opened.num_row_groups):
            random = np.random.default_rng([8, group])
            columns = []
            for name, (low, high) in DOMAINS.items():
                values = opened.read_row_group(group, [name])[name].to_numpy()
                moved = values + random.integers(-(high // 50) - 1, high // 50 + 2, values.size)
                columns.append(np.clip(moved, low, high).astype(np.int32))
            writer.write_table(pa.table(columns, schema=opened.schema_arrow))


def measure(engine: str, work: str, rows: int, folder: Path) -> Cell:
    """One cell."""
    original, bundle = folder / f"{rows}.parquet", folder / f"release-{rows}"
    if not original.exists():
        make_table(original, rows)
    if not bundle.exists():
        make_release(original, bundle)
    data = str(bundle / "data.parquet")
    with tempfile.TemporaryDirectory(dir=folder) as made:
        words = {
            "evaluate": ["evaluate", str(original), str(bundle), "--json"],
            "check": ["check", data, "--quasi", "age,hours", "--confidential", "income", "--json"],
            "report": ["report", str(bundle), "--original", str(original), "--out", f"{made}/page.html"],
        }[work]
        more = ["--master", "local[2]", "--conf", f"spark.local.dir={made}"] if engine == "spark" else []
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "shoal", *words, "--engine", engine, *more],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": made},
        )
        largest = 0
        # what a process had when it was last seen: those that end in between are not lost
        last: dict[int, float] = {}
        while process.poll() is None:
            cpu, held = _sampled(process.pid)
            last |= cpu
            largest = max(largest, held)
            time.sleep(0.1)
        seconds = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"{engine} {work} {rows:,}: the process ended with {process.returncode}.")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return Cell(engine, work, rows, round(sum(last.values()), 2), round(seconds, 2), largest, machine)


def recorded() -> list[Cell]:
    """The last measurement of every cell."""
    found: dict[tuple[str, str, int], Cell] = {}
    for line in RECORDED.read_text("utf-8").splitlines() if RECORDED.exists() else ():
        cell = Cell(**json.loads(line))
        found[cell.engine, cell.work, cell.rows] = cell
    return list(found.values())


def block() -> str:
    """The section of the page, between its marks."""
    cells = recorded()
    lines = [
        "A table of four integer columns and a release of it. Each cell gives the processor time of all processes "
        "together in seconds, with start-up, and their peak memory. Written by `python -m benchmarks.measures` "
        f"({cells[0].machine if cells else 'nothing recorded'}, other work running at the same time). "
        "Empty cells were not measured.",
        "",
        "| rows | command | memory | local | Spark |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rows in sorted({cell.rows for cell in cells}):
        for work in WORK:
            found = {(c.engine): c for c in cells if (c.work, c.rows) == (work, rows)}
            if found:
                shown = [
                    f"{found[one].cpu:,.0f} s, {found[one].peak / 1e9:.2f} GB" if one in found else ""
                    for one in ENGINES
                ]
                lines.append(f"| {rows:,} | `shoal {work}` | {' | '.join(shown)} |")
    return "\n".join(lines)


def write_block() -> None:
    """Put the section between the markers of the page."""
    PAGE.write_text(between(PAGE.read_text("utf-8"), "measures", block()), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--rows", action="append", type=float, required=True)
    run.add_argument("--engine", action="append", choices=ENGINES)
    run.add_argument("--work", action="append", choices=WORK)
    run.add_argument("--folder", type=Path, help="for tables; removed by nobody")
    commands.add_parser("page")
    told = parser.parse_args()
    if told.command == "page":
        write_block()
        return
    with tempfile.TemporaryDirectory() as made:
        folder = told.folder or Path(made)
        for rows in told.rows:
            for work in told.work or WORK:
                for engine in told.engine or ENGINES[:2]:
                    found = measure(engine, work, int(rows), folder)
                    with RECORDED.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(found)) + "\n")
                    print(
                        f"{work:9} {engine:7} {int(rows):>12,} {found.cpu:,.0f} s cpu, {found.seconds:,.0f} s, "
                        f"{found.peak / 1e6:,.0f} MB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
