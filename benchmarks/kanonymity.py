"""Time the k-anonymity family of methods on a synthetic table of a million records.

python -m benchmarks.kanonymity [--quick] [--into results/benchmarks.md]
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import shoal
from shoal.io import write
from tools.results import put

HEADING = "## The k-anonymity family"


def people(n: int) -> pa.Table:
    """Five columns that an intruder may know and a confidential one."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": rng.integers(18, 98, n),
            "sex": rng.choice(["female", "male"], n),
            "region": rng.integers(0, 20, n),
            "education": rng.integers(0, 5, n),
            "household": rng.integers(1, 8, n),
            "income": np.round(rng.lognormal(10, 1, n), 2),
        }
    )


def amounts(n: int) -> pa.Table:
    """Six heavy-tailed columns, all confidential."""
    rng = np.random.default_rng(1)
    return pa.table({f"c{j}": np.round(rng.lognormal(9, 2, n), 2) for j in range(6)})


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def table(quick: bool = False) -> str:
    """The measurements as markdown."""
    n = 100_000 if quick else 1_000_000
    rows: list[tuple[str, float, float]] = []
    known, secret = people(n), amounts(n)
    quasi = known.column_names[:-1]
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "people.csv", Path(folder) / "out"
        write(known, path)
        rows.append(
            (
                "`shoal.check`, k, l, both t and risks, 6 columns in memory",
                *timed(lambda: shoal.check(known, quasi, ["income"])),
            )
        )
        rows.append(("the same from a CSV file", *timed(lambda: shoal.check(path, quasi, ["income"]))))
        options = {"method": "swap-ranking", "k": 50, "columns": secret.column_names}
        made: list[shoal.Release] = []
        rows.append(
            (
                "`swap-ranking`, 6 columns swapped",
                *timed(lambda: made.append(shoal.protect(secret, **options))),
            )
        )
        rows.append(("writing its bundle (Parquet)", *timed(lambda: made[0].save(out))))
    lines = [
        f"{n:,} records, measured on {datetime.date.today()}; seconds by the clock and of processor time.",
        "",
        "| work | s | processor s |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {clock:.1f} | {processor:.1f} |" for name, clock, processor in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records")
    parser.add_argument("--into", type=Path, help="replace the section of this page")
    arguments = parser.parse_args()
    measured = table(arguments.quick)
    if arguments.into is None:
        print(measured)
        return
    page = arguments.into.read_text("utf-8")
    before, _, rest = page.partition(f"{HEADING}\n")
    after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
    put(arguments.into, f"{before.rstrip()}\n\n{HEADING}\n\n{measured}{after and chr(10)}{after}")


if __name__ == "__main__":
    main()
