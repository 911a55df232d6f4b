"""Protect the complete Adult table with examples/adult.toml, and write results/adult.md.

python -m benchmarks.adult [--runs 5] [--out results/adult.md]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import csv

import shoal
from shoal.mechanisms.tree import intervals
from shoal.workers import machine_words as machine
from tools.public_data import data_folder
from tools.results import RESULTS, put

DATA = data_folder()
SCHEMA = Path(__file__).parents[1] / "examples" / "adult.toml"
METHODS = ("insensitive-dp", "ranking-dp", "tree-dp", "laplace", "mdav-dp")
# what the quality table compares: a method, and whether values of small domains may be counted one by one
COMPARED = {
    "tree-dp": ("tree-dp", True),
    "tree-dp, cut points only": ("tree-dp", False),
    "insensitive-dp": ("insensitive-dp", True),
    "ranking-dp": ("ranking-dp", True),
    "laplace": ("laplace", True),
}
NUMBERS = ("age", "capital_gain", "capital_loss", "hours_per_week")


def timed(method: str) -> tuple[float, float, float, str]:
    """Elapsed and processor seconds, MiB of memory and the promise of one run of the command on the whole file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "shoal", "protect", str(DATA / "adult.csv"), "--schema", str(SCHEMA)]
        command += ["--method", method, "--epsilon", "1", "--out", f"{folder}/out"]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        elapsed = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # the largest of all children so far: the first run is the smallest of them
    promise = next(line for line in done.stdout.splitlines() if line.startswith("Differential privacy"))
    return elapsed, used, after.ru_maxrss / 1024, promise


def complete_rows() -> pa.Table:
    """The rows without missing values, as most papers use them."""
    return csv.read_csv(
        DATA / "adult.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)
    ).drop_null()


def total_variation(one: list[Any], other: list[Any]) -> float:
    """Half the sum of the differences of relative frequencies."""
    first, second = Counter(one), Counter(other)
    return sum(abs(first[v] / len(one) - second[v] / len(other)) for v in first | second) / 2


def quality(table: pa.Table, method: str, runs: int, *, counted: bool) -> Mapping[str, float]:
    """Means over runs: total variation of every column of few values, distance of the others in parts of the domain."""
    schema = shoal.Schema.load(SCHEMA)
    found: dict[str, list[float]] = {}
    for seed in range(runs):
        with contextlib.ExitStack() as stack:
            if not counted:
                stack.enter_context(mock.patch.object(intervals.Layout, "counts_values", return_value=False))
            release = shoal.protect(table, schema, method, epsilon=1, seed=seed)
        for name, (lo, hi) in release.domains.items():
            before, after = table[name].to_pylist(), release.data[name].to_pylist()
            if name in NUMBERS:
                moved = np.abs(np.sort(before) - np.sort(after)).mean() / (hi - lo)
            else:
                moved = total_variation(before, after)
            found.setdefault(name, []).append(float(moved))
    return {name: float(np.mean(each)) for name, each in found.items()}


def report(runs: int) -> str:
    times = {method: timed(method) for method in METHODS}
    table = complete_rows()
    measured = {
        name: quality(table, method, runs, counted=counted) for name, (method, counted) in COMPARED.items()
    }
    columns = list(measured["tree-dp"])
    lines = [
        "# The Adult table",
        "",
        f"Written by `python -m benchmarks.adult --runs {runs}` on {datetime.date.today()}, {machine()}.",
        "",
        "Adult (UCI, the census of 1994) has 32,561 rows and 15 columns: numbers, an order, names with and without a "
        "taxonomy, and 2,399 rows with a gap. `examples/adult.toml` says what "
        "is public about it: values and ranges of its documentation, roles, and the taxonomies of four columns. "
        "`fnlwgt` is a weight and is not released.",
        "",
        "In a clone of the repository:",
        "",
        "```console",
        "$ shoal protect datasets/adult.csv.gz --schema examples/adult.toml --method tree-dp "
        "--epsilon 1 --out release",
        "...",
        "Differential privacy of the original records, with ε = 1 per row (replace-one, the number of records is "
        "public).",
        "...",
        "note: column 'fnlwgt' is not released: its role is weight; ...",
        "...",
        "Written to release: data.csv.gz, log.toml, method.toml, report.html, statement.json.",
        "```",
        "",
        "The file as UCI offers it has no header, a blank after each comma and `?` for a gap. One line makes a table "
        "of it, and `--na '?'` says what a gap looks like (two lines stand for `adult.data` here):",
        "",
        "```console",
        "$ cat > adult.data <<'END'",
        "41, Private, 100000, Bachelors, 13, Divorced, Sales, Unmarried, White, Female, 0, 0, 40, United-States, <=50K",
        "29, ?, 200000, HS-grad, 9, Never-married, ?, Own-child, Black, Male, 0, 0, 20, ?, <=50K",
        "END",
        "$ (echo age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"
        "capital_gain,capital_loss,hours_per_week,native_country,income; sed 's/, /,/g' adult.data) > adult.csv",
        "```",
        "",
        "## Time",
        "",
        "The whole command on all rows, ε = 1, missing names as a category of their own, from start to written bundle. "
        "The machine was shared with other work, so elapsed seconds are upper bounds.",
        "",
        "| method | claim | elapsed | processor |",
        "| --- | --- | ---: | ---: |",
        *(
            f"| `{method}` | {_claim(sentence)} | {elapsed:.1f} s | {used:.1f} s |"
            for method, (elapsed, used, _, sentence) in times.items()
        ),
        "",
        f"None took more than {max(memory for _, _, memory, _ in times.values()):.0f} MiB of memory.",
        "",
        "## What is kept",
        "",
        f"The {table.num_rows:,} rows without gaps, ε = 1 over 14 columns, means of {runs} runs. Columns of few "
        "values: total variation between original and released frequencies (0 is the same, 1 is nothing in common). "
        f"{', '.join(NUMBERS)}: mean distance of sorted values, in parts of the domain. `tree-dp` counts the values of "
        "small domains one by one; the second column shows it without that.",
        "",
        "| column | " + " | ".join(COMPARED) + " |",
        "| --- |" + " ---: |" * len(COMPARED),
        *(
            f"| {name} | " + " | ".join(f"{measured[each][name]:.3f}" for each in COMPARED) + " |"
            for name in columns
        ),
        "",
        "One ε of 1 shared by 14 columns leaves little for each. Noise on single records (`laplace`) and on many small "
        "clusters drowns names as it drowns numbers; counts of values do not. Only `ranking-dp` here promises less "
        "than differential privacy of the original records.",
        "",
    ]
    return "\n".join(lines)


def _claim(sentence: str) -> str:
    return "given the partition" if "given the partition" in sentence else "of the original records"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "adult.md")
    arguments = parser.parse_args()
    put(arguments.out, report(arguments.runs))
