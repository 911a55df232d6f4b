"""Compare individual ranking with its lower bound on time, and release a large table from Parquet to Parquet."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.partition import ranking
from shoal.partition.base import stable_order

K = 50
_SLOW_COLUMNS = 2


def columns(n: int, shape: str, count: int) -> list[NDArray[np.int64]]:
    """Lattice positions of a few attributes."""
    rng = np.random.default_rng(7)
    if shape == "uniform":
        return [rng.integers(0, 2**20, n) for _ in range(count)]
    if shape == "heavy-tailed":
        return [np.minimum(rng.lognormal(9, 2, n), 2**20).astype(np.int64) for _ in range(count)]
    return [rng.integers(0, 100, n) for _ in range(count)]


def floor_seconds(column: NDArray[np.int64], order: NDArray[np.int64]) -> float:
    """Sort the values, fetch them in rank order, write them back in input order: less cannot be done."""
    started = time.process_time()
    np.sort(column)
    out = np.empty_like(column)
    out[order] = column[order]
    return time.process_time() - started


def compare(n: int, shape: str, count: int) -> tuple[float, float, float]:
    """Seconds for `count` columns: the floor, Shoal's ranking, numpy's stable argsort with the same labels.

    The last is slow: it is measured on two columns and scaled up.
    """
    floor = own = plain = 0.0
    for number, column in enumerate(columns(n, shape, count)):
        order = stable_order(column)
        floor += floor_seconds(column, order)
        started = time.process_time()
        made = ranking(column, K)
        own += time.process_time() - started
        if number < _SLOW_COLUMNS:
            started = time.process_time()
            labels = np.empty(n, dtype=np.int64)
            labels[np.argsort(column, kind="stable")] = np.repeat(np.arange(len(made)), made.sizes)
            plain += (time.process_time() - started) * count / _SLOW_COLUMNS
            assert np.array_equal(labels, made.labels)
    return floor, own, plain


_CHILD = """
import resource, sys, time
from pathlib import Path
from shoal.io import read_columnwise
from shoal.release.columnwise import carry_out_columnwise
from shoal.release.protection import prepare
columns = sys.argv[3].split(",")
started = time.perf_counter()
table = read_columnwise(Path(sys.argv[1]))
prepared = prepare(table, method="ranking-dp", epsilon=1, k=50, domains={c: (0, 1048576) for c in columns})
carry_out_columnwise(prepared, Path(sys.argv[2]))
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def through_files(n: int, count: int) -> tuple[float, float]:
    """Seconds and peak gigabytes of a process that protects an n x count Parquet file column by column."""
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        names = [f"c{i}" for i in range(count)]
        path = Path(folder) / "big.parquet"
        schema = pa.schema([(name, pa.int64()) for name in names])
        rng = np.random.default_rng(1)
        piece = 1 << 20
        with parquet.ParquetWriter(path, schema) as writer:
            for start in range(0, n, piece):
                rows = min(piece, n - start)
                writer.write_table(
                    pa.table({name: rng.integers(0, 2**20, rows) for name in names}, schema=schema)
                )
        command = [sys.executable, "-c", _CHILD, str(path), str(Path(folder) / "out"), ",".join(names)]
        seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(seconds), float(peak)


def table(quick: bool = False) -> str:
    """The measurements as markdown."""
    sizes = (100_000, 1_000_000) if quick else (1_000_000, 10_000_000)
    lines = [
        f"Individual ranking, k = {K}: seconds of processor time for ten columns of lattice integers, one thread. "
        "The floor is a sort of the values plus one gather and one scatter.",
        "",
        "| rows | shape | floor s | Shoal s | Shoal / floor | numpy argsort s | argsort / Shoal |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    growth: dict[str, list[float]] = {}
    for shape in ("uniform", "heavy-tailed", "duplicates"):
        for n in sizes:
            floor, own, plain = compare(n, shape, 10)
            growth.setdefault(shape, []).append(own)
            lines.append(
                f"| {n:,} | {shape} | {floor:.2f} | {own:.2f} | {own / floor:.2f} | {plain:.2f} | {plain / own:.1f} |"
            )
    exponents = ", ".join(
        f"{shape} {np.log(times[1] / times[0]) / np.log(sizes[1] / sizes[0]):.2f}"
        for shape, times in growth.items()
    )
    lines += ["", f"Growth exponent between the two sizes: {exponents}.", ""]
    n, count = (2_000_000, 4) if quick else (100_000_000, 4)
    seconds, peak = through_files(n, count)
    lines += [
        f"`ranking-dp` from Parquet to Parquet, {n:,} x {count}, column by column: {seconds:.0f} s, "
        f"peak memory {peak:.2f} GB (the table itself has {n * count * 8 / 1e9:.2f} GB).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    print(table(parser.parse_args().quick))


if __name__ == "__main__":
    main()
