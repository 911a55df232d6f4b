"""Compare estimated with measured processor time, for every family of methods on tables of several sizes.

python -m benchmarks.estimates [--quick] [--into results/benchmarks.md]

Every row is a separate process, as a command is: one-time loading is not counted, neither before nor after.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from shoal.columns.attribute import Attribute
from shoal.columns.schema import Schema
from shoal.io import read
from shoal.progress import silent
from shoal.release.bundle import ReleaseReview, save_bundle
from shoal.release.estimate import estimate, estimate_in_parts
from shoal.release.in_parts.run import carry_out_on_engine
from shoal.release.protection import Preparation, carry_out, prepare
from shoal.release.publication import Delivery, opened
from shoal.survey import survey, survey_schema
from shoal.workers import machine_words
from tools.results import put

HEADING = "## Estimates of time"
# threads of linear algebra that wait for each other on a busy machine take processor time without doing anything
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_DP: dict[str, Any] = {"epsilon": 1}
_K: dict[str, Any] = {"k": 5}
# method, settings, table, rows
CASES: tuple[tuple[str, dict[str, Any], str, tuple[int, ...]], ...] = (
    ("pairs-dp", _DP, "survey", (8_000, 60_000, 1_000_000)),
    ("tree-dp", _DP, "survey", (60_000, 1_000_000)),
    ("laplace", _DP, "survey", (60_000, 1_000_000)),
    ("ranking-dp", _DP, "survey", (60_000, 1_000_000)),
    ("optimal-dp", _DP, "survey", (8_000, 400_000)),
    ("idp-cbls", _DP, "survey", (400_000,)),
    ("insensitive-dp", _DP, "survey", (60_000, 400_000)),
    ("mdav-dp", _DP, "survey", (30_000, 120_000)),
    ("mdav-dp", {"epsilon": 1, "k": 10}, "amounts", (30_000, 100_000, 500_000)),
    ("xm-2", {"epsilon": 1, "k": 10}, "amounts", (60_000, 200_000)),
    ("k-anonymity", _K, "survey", (8_000, 60_000)),
    ("swap-mdav", _K, "survey", (8_000, 20_000)),
    ("swap-ranking", _K, "survey", (60_000, 1_000_000)),
    ("anatomy", _K, "survey", (8_000, 50_000)),
    ("t-closeness", {}, "survey", (8_000, 30_000)),
    ("suppress", _K, "survey", (8_000, 60_000, 400_000)),
    ("laplace", _DP, "files", (200_000, 1_000_000)),
    ("ranking-dp", _DP, "files", (200_000, 1_000_000)),
    ("tree-dp", _DP, "files", (1_000_000,)),
    ("pairs-dp", _DP, "files", (1_000_000,)),
    ("swap-ranking", _K, "files", (1_000_000,)),
    # other tables and settings
    ("mdav-dp", {"epsilon": 1, "k": 4}, "points", (70_000, 900_000)),
    ("pairs-dp", _DP, "points", (25_000, 700_000)),
    ("tree-dp", _DP, "points", (700_000,)),
    ("insensitive-dp", {"epsilon": 1, "k": 30}, "points", (150_000,)),
    ("xm-9", {"epsilon": 1, "k": 20}, "points", (300_000,)),
    ("suppress", {"k": 20}, "survey", (150_000,)),
    ("k-anonymity", {"k": 8}, "points", (40_000,)),
)
_WHAT = {"survey": "", "amounts": " (numbers)", "points": " (points)", "files": " (engine local)"}


def amounts(n: int) -> pa.Table:
    """Eight heavy-tailed columns, somewhat correlated."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=n)
    return pa.table(
        {f"c{j}": np.minimum(np.exp(9 + common + rng.normal(size=n)).round(2), 1e7) for j in range(8)}
    )


def points(n: int) -> pa.Table:
    """Three measurements around some centres, and a code."""
    rng = np.random.default_rng(2)
    centre = rng.integers(0, 40, size=n)
    at = rng.uniform(100, 900, size=(40, 3))[centre] + rng.normal(scale=25, size=(n, 3))
    columns: dict[str, Any] = {f"p{j}": np.clip(at[:, j], 0, 1000).round().astype(np.int64) for j in range(3)}
    return pa.table({**columns, "code": (centre % 6).astype(np.int64)})


def prepared(method: str, settings: dict[str, Any], table: str, rows: int) -> Preparation:
    if table == "survey":
        return prepare(read(survey(rows)), survey_schema(), method=method, missing="drop", **settings)
    if table == "points":
        names = ["p0", "p1", "p2", "code"]
        declared = Schema(
            tuple(
                Attribute(
                    name, role="quasi-identifier", lo=0, hi=5 if name == "code" else 1000, type="integer"
                )
                for name in names
            )
        )
        return prepare(read(points(rows)), declared, method=method, **settings)
    made = amounts(rows)
    names = made.column_names
    facts = {"domains": dict.fromkeys(names, (0, 10**7)), "types": dict.fromkeys(names, "decimal:2")}
    return prepare(read(made), method=method, **facts, **settings)


def written(of: Preparation) -> float:
    """Processor seconds of a release, bundle included."""
    started = time.process_time()
    release = carry_out(of)
    with tempfile.TemporaryDirectory() as folder:
        save_bundle(release, Path(folder) / "bundle", None, release.format)
    return time.process_time() - started


def measure(method: str, settings: dict[str, Any], table: str, rows: int) -> dict[str, Any]:
    """One line of the table."""
    if table == "files":
        return measure_in_parts(method, settings, rows)
    of = prepared(method, settings, table, rows)
    columns = len(of.described.columns)
    started = time.process_time()
    expected = estimate(of)
    probing = time.process_time() - started
    seconds = written(of)
    return {
        "method": method,
        "size": f"{of.described.n:,} x {columns}{_WHAT[table]}",
        "estimated": expected.seconds,
        "measured": seconds,
        "probing": probing,
    }


def measure_in_parts(method: str, settings: dict[str, Any], rows: int) -> dict[str, Any]:
    """The same for the local engine, which works through a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        parquet.write_table(survey(rows), file, row_group_size=200_000)
        delivery = Delivery(Path(folder) / "out", engine="local", noted=False)
        asked: dict[str, Any] = {"schema": survey_schema(), "method": method, "missing": "drop", **settings}
        source = opened(file, delivery, **asked)
        of = prepare(source.table, **asked)
        assert source.runner is not None
        started = time.process_time()
        expected = estimate_in_parts(of, source.runner)
        probing = time.process_time() - started
        look = ReleaseReview(source.runner, False, False, silent)
        started = time.process_time()
        carry_out_on_engine(of, source.runner, Path(folder) / "out", None, silent, look)
        return {
            "method": method,
            "size": f"{of.described.n:,} x {len(of.described.columns)}{_WHAT['files']}",
            "estimated": expected.seconds,
            "measured": time.process_time() - started,
            "probing": probing,
        }


def table(quick: bool = False) -> str:
    """The measurements as markdown."""
    lines = [
        "`python -m benchmarks.estimates`: seconds of processor time that a release takes with its bundle, as "
        "`--dry-run` estimates them from made-up rows, and measured, "
        f"on {datetime.date.today()}, {machine_words()}. The tables are the demo survey, one of amounts where it "
        "says numbers, and one of places and a code where it says points; "
        "with engine local the survey is a Parquet file, and its estimate goes the engine's own way. Linear algebra "
        "has one thread. The last column is what the estimate itself took, with code that is loaded for it. A ratio "
        "outside 0.5 to 2 is in bold.",
        "",
        "| method | rows x columns | estimated s | measured s | estimated / measured | estimate took s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for method, settings, name, sizes in CASES:
        for rows in sizes[:1] if quick else sizes:
            command = [sys.executable, "-m", "benchmarks.estimates", "--case"]
            case = json.dumps([method, settings, name, rows])
            done = subprocess.run(
                [*command, case],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, **_ONE_THREAD},
            )
            found = json.loads(done.stdout)
            ratio = found["estimated"] / found["measured"]
            shown = f"{ratio:.2f}" if 0.5 <= ratio <= 2 else f"**{ratio:.2f}**"
            lines.append(
                f"| `{method}` | {found['size']} | {found['estimated']:.2f} | {found['measured']:.2f} | {shown} | "
                f"{found['probing']:.1f} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest size of each method")
    parser.add_argument("--into", type=Path, help="replace the section of this page")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case is not None:
        print(json.dumps(measure(*json.loads(arguments.case))))
        return
    found = table(arguments.quick)
    if arguments.into is None:
        print(found)
        return
    page = arguments.into.read_text("utf-8")
    before, _, rest = page.partition(f"{HEADING}\n")
    after = rest[rest.index("\n## ") + 1 :] if "\n## " in rest else ""
    put(arguments.into, f"{before.rstrip()}\n\n{HEADING}\n\n{found}{after and chr(10)}{after}")


if __name__ == "__main__":
    main()
