"""Compare the speed of `shoal.risk` with the statistical offices' reference tool: write results/risk-speed.md.

python -m benchmarks.risk [--out results/risk-speed.md]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.workers import machine_words
from tools.offices import KEYS6, adult, generated
from tools.public_data import data_folder
from tools.results import RESULTS, put

PAGE = RESULTS / "risk-speed.md"
GENERATED_KEYS = tuple(f"k{place}" for place in range(1, 7))
BEST_OF = 3


@dataclass(frozen=True)
class Task:
    """One call, and where the reference's seconds and a figure of its result are stored.

    Attributes:
        words: what is measured.
        stored: the entry of the stored timings.
        figure: the number of it that the result is compared with.
        own: the same number of our result.
        options: of `shoal.risk`.
    """

    words: str
    stored: str
    figure: str
    own: Callable[[shoal.Risk], float]
    options: dict[str, Any]


def tasks(name: str) -> list[Task]:
    survey = {"weight": "w", "household": "hid"}
    return [
        Task(
            "fk, Fk, individual, global and household risk",
            f"{name}_measure_risk_hid",
            "hier_ER",
            lambda found: found.household_expected or 0.0,
            {**survey, "special": False},
        ),
        Task(
            "the same and SUDA2",
            f"{name}_suda2",
            "sum",
            lambda found: float(np.sum(found.suda)) if found.suda is not None else 0.0,
            survey,
        ),
        Task(
            "the same and l-diversity",
            f"{name}_ldiversity",
            "mean_entropy",
            lambda found: float(found.diversity["sens"].entropy.mean()),
            {**survey, "sensitive": ["sens"]},
        ),
    ]


def with_sensitive(table: pa.Table) -> pa.Table:
    """The sensitive column of the stored timings: 1 + row number mod 7."""
    return table.append_column("sens", pa.array(1 + np.arange(1, table.num_rows + 1) % 7))


def with_gaps(table: pa.Table) -> pa.Table:
    """Keys of Adult with a missing value in one row of ten, as in the stored timings."""
    row = np.arange(1, table.num_rows + 1)
    for place, name in enumerate(KEYS6, start=1):
        gone = (row + 3 * place) % 60 == 0
        values = pa.array(table[name].to_numpy(), mask=gone)
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def measured(table: pa.Table, keys: tuple[str, ...], options: dict[str, Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of processor time, the least of some runs, and the result."""
    clocks, processors = [], []
    for _ in range(BEST_OF):
        clock, processor = time.perf_counter(), time.process_time()
        found = shoal.risk(table, keys, **options)
        clocks.append(time.perf_counter() - clock)
        processors.append(time.process_time() - processor)
    return min(clocks), min(processors), found


def report() -> str:
    folder = data_folder() / "offices"
    stored = json.loads((folder / "results_timings.json").read_text("utf-8"))
    stored |= json.loads((folder / "results_timings2.json").read_text("utf-8"))
    # compiled code is loaded first
    shoal.risk(generated(1000), GENERATED_KEYS, weight="w", household="hid")
    tables = {
        "a30": ("Adult, 30,162 x 6", KEYS6, with_sensitive(adult())),
        "g1e5": ("generated, 100,000 x 6", GENERATED_KEYS, with_sensitive(generated(100_000))),
        "g1e6": ("generated, 1,000,000 x 6", GENERATED_KEYS, with_sensitive(generated(1_000_000))),
    }
    lines = []
    for name, (title, keys, table) in tables.items():
        for task in tasks(name):
            clock, processor, found = measured(table, keys, task.options)
            entry = stored[task.stored]
            theirs, mine = entry[task.figure], task.own(found)
            lines.append(
                f"| {title} | {task.words} | {clock:.2f} | {processor:.2f} | {entry['sec']:.2f} | "
                f"{mine:.8g} | {theirs:.8g} |"
            )
    gaps = stored["freqCalc_with_missing_a30_10pct"]
    clock, processor, found = measured(with_gaps(tables["a30"][2]), KEYS6, {"special": False})
    lines.append(
        f"| {tables['a30'][0]}, gaps in 1 of 10 rows | fk with wildcards, individual risk | {clock:.2f} | "
        f"{processor:.2f} | {gaps['sec']:.2f} | {found.fk.sum():.8g} | {gaps['sum_fk']:.8g} |"
    )
    return "\n".join(
        [
            "# Speed of the disclosure risk",
            "",
            f"Written by `python -m benchmarks.risk` on {datetime.date.today()}, {machine_words()}, load "
            f"{os.getloadavg()[0]:.1f}. Seconds of whole calls of `shoal.risk` on a table in memory, the least of "
            f"{BEST_OF}; every line does all of the lines before it that have the same table. The reference is "
            "sdcMicro 5.8.1: seconds of one function (`measure_risk` with households, `suda2`, `ldiversity`, "
            "`freqCalc`) as they are stored; on which machine is not. The last two columns are one figure of both "
            "results: expected records by households, sum of the SUDA scores, mean entropy l, sum of fk.",
            "",
            "| table | measured | seconds | processor | reference | figure | reference |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=PAGE)
    out = parser.parse_args().out
    put(out, report())
    print(f"Written to {out}.")


if __name__ == "__main__":
    main()
