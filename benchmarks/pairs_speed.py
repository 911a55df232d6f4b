"""Speed of drawing rows in pairs-dp, as ratios within one run.

python -m benchmarks.pairs_speed [--rows 1000000] [--columns 10] [--runs 3] [--before OTHER/src]

Latent normals are compared with the same draws one by one, by exact quantiles; drawing in threads with drawing in one.
With `--before`, whole releases by another copy of the package alternate with those of this one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

import shoal
from shoal import workers
from shoal.kernels import compiled
from shoal.mechanisms.pairs._kernels import place_latent, truncated_normal, uniform
from shoal.numbers import Floats, Integers

SOURCES = Path(shoal.__file__).parents[1]
_STEP = np.uint64(0x9E3779B97F4A7C15)
# one release in a process of its own, so that both copies start alike
RELEASE = """
import json, sys, time
import numpy as np, pandas as pd, shoal
def release(rows, columns):
    random = np.random.default_rng(0)
    weights = random.normal(size=(columns, columns)) * 0.4 + np.eye(columns)
    values = np.clip(random.normal(size=(rows, columns)) @ weights.T * 15 + 50, 0, 100)
    table = pd.DataFrame(values, columns=[f"c{i}" for i in range(columns)])
    started, processor = time.perf_counter(), time.process_time()
    shoal.protect(table, domains={name: (0.0, 100.0) for name in table}, epsilon=1, seed=1)
    return time.perf_counter() - started, time.process_time() - processor
release(70_000, 3)
print(json.dumps(release(int(sys.argv[1]), int(sys.argv[2]))))
"""


@compiled(keep=False)
def one_by_one(
    codes: NDArray[np.uint8],
    columns: Integers,
    cuts: Floats,
    root: Floats,
    precision: Floats,
    sweeps: int,
    seed: Any,
) -> Floats:
    """Latent normals row by row, each by the quantile of its truncated normal distribution."""
    rows, number = codes.shape[0], columns.size
    found, own, state = np.zeros((rows, number)), np.zeros(number), seed
    for r in range(rows):
        for sweep in range(sweeps + 1):
            for k in range(number):
                code, mean = codes[r, columns[k]], 0.0
                for j in range(k if sweep == 0 else number):
                    if sweep == 0:
                        mean += root[k, j] * own[j]
                    elif j != k:
                        mean -= precision[k, j] * found[r, j] / precision[k, k]
                spread = root[k, k] if sweep == 0 else 1 / math.sqrt(precision[k, k])
                state += _STEP
                found[r, k] = truncated_normal(mean, spread, cuts[k, code], cuts[k, code + 1], uniform(state))
                own[k] = (found[r, k] - mean) / spread
    return found


def fastest(work: Callable[[], Any], runs: int) -> float:
    """Processor seconds of the fastest run, after one that compiles."""
    work()
    taken = []
    for _ in range(runs):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def latent_normals(rows: int, columns: int, runs: int) -> None:
    random = np.random.default_rng(0)
    weights = random.normal(size=(columns, columns)) * 0.4 + np.eye(columns)
    covariance = weights @ weights.T
    spread = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(spread, spread)
    inner = ndtri(np.arange(1, 16) / 16)
    latent = random.multivariate_normal(np.zeros(columns), correlations, rows)
    codes = np.searchsorted(inner, latent).astype(np.uint8)
    cuts = np.tile(np.concatenate(([-8.0], inner, [8.0])), (columns, 1))
    given = (codes, np.arange(columns), cuts, np.linalg.cholesky(correlations), np.linalg.inv(correlations))
    slow = fastest(lambda: one_by_one(*given, 10, np.uint64(1)), runs)
    fast = fastest(lambda: place_latent(*given, 10, np.uint64(1)), runs)
    print(
        f"latent normals of {rows:,} x {columns}: {slow / fast:.1f} times as fast as one by one ({fast:.3f} s)"
    )


def threads(rows: int, columns: int) -> None:
    random = np.random.default_rng(0)
    values = np.clip(random.normal(50, 15, (rows, columns)), 0, 100)
    table = pd.DataFrame(values, columns=[f"c{i}" for i in range(columns)])
    found, seconds = [], []
    for cores in (1, workers.available_cores()):
        with mock.patch.object(workers, "available_cores", lambda cores=cores: cores):
            started = time.perf_counter()
            made = shoal.protect(table, domains=dict.fromkeys(table, (0.0, 100.0)), epsilon=1, seed=1)
            seconds.append(time.perf_counter() - started)
            found.append(made.data)
    assert found[0].equals(found[1])
    print(
        f"release of {rows:,} x {columns} in threads: {seconds[0] / seconds[1]:.2f} times as fast, equal bytes"
    )


def beside(before: Path, rows: int, columns: int, runs: int) -> None:
    taken: dict[Path, list[tuple[float, float]]] = {before.resolve(): [], SOURCES: []}
    for _ in range(runs):
        for sources, times in taken.items():
            command = [sys.executable, "-c", RELEASE, str(rows), str(columns)]
            environment = {**os.environ, "PYTHONPATH": str(sources), "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            times.append(tuple(json.loads(done.stdout)))
    (old_wall, old_processor), (wall, processor) = (
        [min(times) for times in zip(*found, strict=True)] for found in taken.values()
    )
    print(
        f"release of {rows:,} x {columns}: wall {old_wall:.2f} s before, {wall:.2f} s now, {old_wall / wall:.2f} times "
        f"as fast; processor {old_processor:.2f} s and {processor:.2f} s, {old_processor / processor:.2f} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--before", type=Path, help="the folder src of another copy of the package")
    arguments = parser.parse_args()
    latent_normals(1 << 16, arguments.columns, arguments.runs)
    threads(arguments.rows, arguments.columns)
    if arguments.before is not None:
        beside(arguments.before, arguments.rows, arguments.columns, arguments.runs)


if __name__ == "__main__":
    main()
