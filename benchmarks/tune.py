"""Measure the quality and the time of choices by `shoal tune` on Census: write results/tuning-quality.md.

python -m benchmarks.tune [--many 100] [--out results/tuning-quality.md]
"""

from __future__ import annotations

import argparse
import datetime
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

import shoal
from shoal.io import read
from shoal.noise import Seeded
from shoal.progress import silent
from shoal.release.protection import prepare
from shoal.tuning.grid import Row, Setting
from shoal.workers import machine_words as machine
from tools.public_data import data_folder
from tools.results import RESULTS, put

DATA = data_folder()
PAGE = RESULTS / "tuning-quality.md"
COLUMNS = ("FEDTAX", "POTHVAL", "INTVAL", "FICA")
METHODS = ("laplace", "mdav-dp", "ranking-dp", "optimal-dp", "idp-cbls", "insensitive-dp")
PROCESSES = 2


def tuned(table: pa.Table, **options: Any) -> tuple[shoal.Tuning, float]:
    """A tuning of Census-4 at ε = 1 and the seconds it took."""
    arguments = {
        "methods": METHODS,
        "columns": COLUMNS,
        "domain_from_data": 1.5,
        "workers": PROCESSES,
        **options,
    }
    started = time.perf_counter()
    found = shoal.tune(table, None, "1", **arguments)
    return found, time.perf_counter() - started


def best_of(found: shoal.Tuning, method: str) -> Row:
    return next(row for row in found.rows if row.setting.method == method)


def simulated(table: pa.Table, setting: Setting, runs: int) -> tuple[float, float]:
    """Squared error over the variance, mean of the columns, of so many releases: its mean and standard error."""
    prepared = prepare(
        read(table), None, setting.method, "1", setting.k, columns=COLUMNS, domain_from_data=1.5
    )
    method, described = prepared.method, prepared.described
    frozen = method.freeze(described, prepared.plan, silent)
    truth = {name: described.original(name) for name in COLUMNS}
    errors = np.empty(runs)
    for seed in range(runs):
        account = method.account(prepared.plan, Seeded(seed))
        made = method.run_frozen(described, prepared.plan, account, silent, frozen)
        lost = [((made.values[name] - x) ** 2).mean() / x.var() for name, x in truth.items()]
        errors[seed] = np.mean(lost)
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(runs))


def report(many: int) -> str:
    table = csv.read_csv(DATA / "census.csv")
    n = table.num_rows
    # compiled kernels are loaded once before anything is timed
    tuned(table, ks=[50], seeds=1)
    grid, seconds = tuned(table)
    fast, fast_seconds = tuned(table, fast=True)
    every, every_seconds = tuned(table, fast=True, ks=range(3, n // 2 + 1))
    marginal, _ = tuned(table, utility="wasserstein")
    precise, precise_seconds = tuned(table, utility="wasserstein", seeds=many)
    runs = len(grid.rows) * grid.seeds
    lines = [
        "# Quality of tune",
        "",
        f"Written by `python -m benchmarks.tune --many {many}` on {datetime.date.today()}, {machine()}.",
        "",
        f"Census, {n:,} records, {', '.join(COLUMNS)}, domains 0 to 1.5 times the maximum, ε = 1: {len(METHODS)} "
        f"methods, ten sizes k from 3 to {n // 2} (`laplace` has none), {grid.seeds} seeds, {PROCESSES} processes. "
        "Times depend on the machine and on what else it does.",
        "",
        "| | settings | runs | seconds | choice | loss |",
        "| --- | ---: | ---: | ---: | --- | ---: |",
        _line("`shoal tune`", grid, runs, seconds),
        _line("`shoal tune --fast`", fast, 0, fast_seconds),
        _line(f"exhaustive: every k from 3 to {n // 2}, closed form", every, 0, every_seconds),
        "",
        "Loss is the expected squared error over the variance, mean of the columns, clipping included. The choice of "
        f"`shoal tune` loses **{_gap(grid, every):.1%}** more than the best of all {len(every.rows):,} settings.",
        "",
        "## Method by method",
        "",
        "The best of the ten sizes beside the best of all sizes. Ten sizes lie a factor of 1.8 apart; "
        "`--ks` takes finer ones.",
        "",
        "| method | claim | best of ten | its loss | best of all | its loss | gap | mean of "
        f"{10 * many:,} releases |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for method in METHODS:
        ten, best = best_of(grid, method), best_of(every, method)
        assert ten.loss is not None
        assert best.loss is not None
        mean, error = simulated(table, ten.setting, 10 * many)
        lines.append(
            f"| {method} | {ten.model} | {ten.setting.k or '-'} | {ten.loss} | {best.setting.k or '-'} | {best.loss} | "
            f"{ten.loss.mean / best.loss.mean - 1:.1%} | {mean:.4g} ± {error:.1g} |"
        )
    lines += [
        "",
        "The last column is measured on releases of the best of ten, ± standard error: the closed form is right.",
        "",
        "## By a measure without closed form",
        "",
        f"Ranked by the Wasserstein distance, the choice from {marginal.seeds} seeds beside that from {many} "
        f"({precise_seconds:.0f} seconds): what it loses in truth is read off the {many} seeds.",
        "",
        "| | choice | loss with its own seeds | loss with many seeds |",
        "| --- | --- | ---: | ---: |",
    ]
    truth = {row.setting: row.loss for row in precise.rows}
    for name, found in ((f"{marginal.seeds} seeds", marginal), (f"{many} seeds", precise)):
        row = found.best_row
        assert row is not None
        lines.append(f"| {name} | {row.setting} | {row.loss} | {truth[row.setting]} |")
    chosen, least = (truth[found.best] for found in (marginal, precise) if found.best is not None)
    assert chosen is not None
    assert least is not None
    lines += [
        "",
        f"The choice from {marginal.seeds} seeds loses **{chosen.mean / least.mean - 1:.1%}** more.",
        "",
    ]
    return "\n".join(lines)


def _line(name: str, found: shoal.Tuning, runs: int, seconds: float) -> str:
    row = found.best_row
    assert row is not None
    return f"| {name} | {len(found.rows)} | {runs} | {seconds:.0f} | {row.setting} | {row.loss} |"


def _gap(found: shoal.Tuning, every: shoal.Tuning) -> float:
    mine, theirs = found.best_row, every.best_row
    assert mine is not None
    assert mine.loss is not None
    assert theirs is not None
    assert theirs.loss is not None
    return mine.loss.mean / theirs.loss.mean - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=100, help="seeds of the long runs")
    parser.add_argument("--out", type=Path, default=PAGE)
    arguments = parser.parse_args()
    put(arguments.out, report(arguments.many))
    print(f"Written to {arguments.out}.")


if __name__ == "__main__":
    main()
