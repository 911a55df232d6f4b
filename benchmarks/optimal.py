"""Measure the gain of optimal partitions over the best fixed k, and their speed: write results/optimal.md.

python -m benchmarks.optimal [--runs 200] [--out results/optimal.md]
"""

from __future__ import annotations

import argparse
import datetime
import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import shoal
from shoal.partition import best_k, expected_error, optimal, ranking
from shoal.privacy.accountant import split_budget
from tools.public_data import data_folder
from tools.results import RESULTS, put

DATA = data_folder()
CENSUS_4 = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
ROWS = 1_000_000


def census() -> pa.Table:
    return csv.read_csv(DATA / "census.csv")


def domain_width(x: NDArray[np.int64]) -> Fraction:
    """The papers' domain, 0 to 1.5 times the maximum."""
    return Fraction(int(x.max())) * 3 / 2


def attribute_rows(table: pa.Table) -> list[tuple[str, int, float, float, float, int, int, int]]:
    """Per attribute at ε = 1: name, best k, errors of the best k, of k = 50 and of the optimum, and its clusters."""
    found = []
    for name in table.column_names:
        x = table[name].to_numpy()
        width = domain_width(x)
        k = best_k(x, width, 1)
        made = optimal(x, width, 1)
        fixed, fifty = (expected_error(x, ranking(x, size), width, 1) for size in (k, 50))
        own = expected_error(x, made, width, 1)
        found.append((name, k, fixed, fifty, own, len(made), int(made.sizes.min()), int(made.sizes.max())))
    return found


def census_4(table: pa.Table, split: str) -> tuple[int, float, float, float]:
    """Best common k at ε = 1 and its expected error, that of the best k of each attribute, that of the optimum."""
    columns = [table[name].to_numpy() for name in CENSUS_4]
    widths = [domain_width(x) for x in columns]
    shares = split_budget(Fraction(1), CENSUS_4, widths, split)
    known = list(zip(columns, widths, shares, strict=True))

    def total(k: int) -> float:
        return sum(expected_error(x, ranking(x, k), width, share) for x, width, share in known)

    k = min(range(1, table.num_rows + 1), key=total)
    each = sum(
        expected_error(x, ranking(x, best_k(x, width, share)), width, share) for x, width, share in known
    )
    own = sum(expected_error(x, optimal(x, width, share), width, share) for x, width, share in known)
    return k, total(k), each, own


def simulated(table: pa.Table, runs: int, **options: object) -> tuple[float, float]:
    """Mean squared error of releases over all rows and attributes, and its standard error."""
    original = _matrix(table)
    errors = [
        ((original - _matrix(release.aligned)) ** 2).sum()
        for release in (
            shoal.protect(table, columns=CENSUS_4, epsilon=1, domain_from_data=1.5, seed=seed, **options)
            for seed in range(runs)
        )
    ]
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(runs))


def _matrix(table: pa.Table) -> NDArray[np.float64]:
    return np.stack([table[name].to_numpy() for name in CENSUS_4], axis=1).astype(np.float64)


def speed_rows() -> list[tuple[str, float, float, int]]:
    """Processor seconds of a value sort and of the optimal partition of a million values, best of three."""
    rng = np.random.default_rng(0)
    shapes = {
        "uniform integers": rng.integers(0, 2**20, ROWS),
        "heavy-tailed integers": np.minimum(rng.lognormal(9, 2, ROWS), 2**20).astype(np.int64),
        "100 different integers": rng.integers(0, 100, ROWS),
        "normal floats": rng.normal(size=ROWS),
    }
    optimal(shapes["normal floats"][:10_000], 10, 1)
    found = []
    for name, x in shapes.items():
        width = 1.5 * float(np.ptp(x))
        times = []
        for _ in range(3):
            started = time.process_time()
            np.sort(x)
            between = time.process_time()
            made = optimal(x, width, 1)
            times.append((between - started, time.process_time() - between))
        sort, own = (min(column) for column in zip(*times, strict=True))
        found.append((name, sort, own, len(made)))
    return found


def report(runs: int) -> str:
    table = census()
    # compiled code is loaded first, so that hundreds of releases take it
    speeds = speed_rows()
    rows = attribute_rows(table)
    gains = [1 - own / fixed for _, _, fixed, _, own, *_ in rows]
    against_fifty = [1 - own / fifty for _, _, _, fifty, own, *_ in rows]
    lines = [
        "# Gain of optimal-dp",
        "",
        f"Written by `python -m benchmarks.optimal --runs {runs}` on {datetime.date.today()}, {os.cpu_count()} cores, "
        f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory.",
        "",
        "Expected squared error in closed form, Σ_C [ SSE(C) + 2 (W/ε)² / |C| ], noise before clipping. Census has "
        f"{table.num_rows:,} records; domains are 0 to 1.5 times the maximum, as an experiment. The best fixed k is "
        "found by `shoal.partition.best_k` and so looks at the records, as the optimal partition does; both claim "
        "`dp-given-partition` at most.",
        "",
        "## One attribute at a time",
        "",
        "ε = 1 for each attribute by itself, minimum cluster size 3.",
        "",
        "| attribute | best fixed k | its error | optimal error | gain | gain over k = 50 | clusters | their sizes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (name, k, fixed, _, own, count, low, high), gain, more in zip(
        rows, gains, against_fifty, strict=True
    ):
        lines.append(
            f"| {name} | {k} | {fixed:.4g} | {own:.4g} | {gain:.1%} | {more:.1%} | {count} | {low} to {high} |"
        )
    lines += [
        f"| mean | | | | **{np.mean(gains):.1%}** | {np.mean(against_fifty):.1%} | | |",
        "",
        "## Four attributes together",
        "",
        f"{', '.join(CENSUS_4)} at ε = 1, shared by `split`. The closed form beside the mean error of {runs} releases "
        "(unrounded values, ± standard error), with clipping to the domain as in a release and without.",
        "",
        "| split | partition | closed form | gain | releases, not clipped | releases | gain |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for split in ("equal", "proportional", "optimal"):
        k, fixed, each, own = census_4(table, split)
        measured = {}
        for name, options in (("ranking-dp", {"k": k}), ("optimal-dp", {})):
            for clip in (False, True):
                measured[name, clip] = simulated(table, runs, method=name, split=split, clip=clip, **options)
        (a, da), (b, db) = measured["ranking-dp", False], measured["ranking-dp", True]
        (c, dc), (d, dd) = measured["optimal-dp", False], measured["optimal-dp", True]
        lines += [
            f"| {split} | best common k = {k} | {fixed:.4g} | | {a:.3g} ± {da:.1g} | {b:.3g} ± {db:.1g} | |",
            f"| {split} | best k of each | {each:.4g} | {1 - each / fixed:.1%} | | | |",
            f"| {split} | optimal | {own:.4g} | **{1 - own / fixed:.1%}** | {c:.3g} ± {dc:.1g} | {d:.3g} ± {dd:.1g} | "
            f"{1 - d / b:.1%} |",
        ]
    lines += [
        "",
        "## Speed",
        "",
        f"{ROWS:,} values, ε = 1, width 1.5 times the range: seconds of processor time on one core, best of three, "
        "with sorting and labels. The machine was shared with other work; the sort was measured beside it.",
        "",
        "| values | numpy value sort | optimal partition | clusters |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {sort:.3f} s | {own:.2f} s | {count:,} |" for name, sort, own, count in speeds),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS / "optimal.md")
    arguments = parser.parse_args()
    put(arguments.out, report(arguments.runs))
