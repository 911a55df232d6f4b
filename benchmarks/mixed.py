"""Time the reading of tables with text columns and the measuring of mixed releases, on synthetic tables.

python -m benchmarks.mixed [--quick]
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.evaluation import evaluate
from shoal.io import read, write
from shoal.workers import machine_words as machine

NOMINAL, NUMERIC = 9, 6


def table(n: int) -> pa.Table:
    """Names with 3 to 43 different values, and heavy-tailed amounts."""
    rng = np.random.default_rng(7)
    names = {f"name{j}": rng.choice([f"value {i}" for i in range(3 + 5 * j)], n) for j in range(NOMINAL)}
    return pa.table(names | {f"amount{j}": rng.lognormal(3, 1, n) for j in range(NUMERIC)})


def masked(original: pa.Table, changed: float) -> pa.Table:
    """A share of the names replaced by others of their column, and noise of that share of the scale on the amounts."""
    rng = np.random.default_rng(8)
    columns: dict[str, Any] = {}
    for name in original.column_names:
        values = original[name].to_numpy(zero_copy_only=False)
        if name.startswith("name"):
            columns[name] = np.where(rng.random(values.size) < changed, rng.permutation(values), values)
        else:
            columns[name] = values + rng.laplace(0, 100 * changed**2, values.size) if changed else values
    return pa.table(columns)


def release_of(original: pa.Table, changed: float) -> SimpleNamespace:
    """What `evaluate` looks at in a release whose rows have an original."""
    data = masked(original, changed)
    domains = {f"amount{j}": (0.0, 4000.0) for j in range(NUMERIC)}
    return SimpleNamespace(
        data=data, aligned=data, columns=tuple(data.column_names), domains=domains, kept=None
    )


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    done = work()
    return time.process_time() - started, done


def reading(n: int, folder: Path) -> list[str]:
    lines = []
    made = table(n)
    for ending in ("csv", "parquet", "dta", "sav"):
        path = folder / f"table.{ending}"
        written, _ = seconds(lambda path=path: write(made, path))  # type: ignore[misc]
        found, _ = seconds(lambda path=path: read(path))  # type: ignore[misc]
        lines.append(f"| {ending} | {n:,} | {written:.1f} | {found:.1f} |")
        path.unlink()
    return lines


def measuring(n: int) -> list[str]:
    original = table(n)
    evaluate(original.slice(0, 50), release_of(original.slice(0, 50), 0.1))  # compile
    lines = []
    for changed in (0.0, 0.1, 0.5, 0.9):
        release = release_of(original, changed)
        spent, found = seconds(lambda release=release: evaluate(original, release))  # type: ignore[misc]
        lines.append(
            f"| {changed:.0%} | {n:,} | {found.risk['record_linkage_rows']:,} | {found.risk['record_linkage']:.1f} | "
            f"{spent:.1f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    print(f"{datetime.date.today()}, {machine()}; {NOMINAL} columns of text, {NUMERIC} of numbers.\n")
    print("| file | rows | written, s | read, s |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        print(*reading(n, Path(folder)), sep="\n")
    print(
        "\n| names changed | rows | rows linked | linked % | evaluated, s |\n| --- | --- | --- | --- | --- |"
    )
    print(*measuring(n // 10), sep="\n")


if __name__ == "__main__":
    main()
