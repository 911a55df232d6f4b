"""Compare local suppression with the statistical offices' reference tool: suppressed cells, bounds and seconds.

python -m benchmarks.suppression [--quick] [--into docs/suppression.md]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.io import read
from shoal.mechanisms.suppression.bound import Keys
from shoal.mechanisms.suppression.search import fewest
from shoal.mechanisms.suppression.wildcard import Wish, emptied
from shoal.partition.groups import coded
from tools.offices import KEYS4, KEYS6, adult, generated
from tools.public_data import data_folder

START, END = "<!-- figures of benchmarks.suppression -->", "<!-- end of figures -->"
GENERATED = tuple(f"k{number}" for number in range(1, 7))

Codes = NDArray[np.int64]


def codes_of(table: pa.Table, names: tuple[str, ...]) -> Codes:
    whole = read(table)
    return np.stack([coded(whole, name).codes + 1 for name in names], axis=1)


def reference() -> dict[str, tuple[int, float]]:
    """Cells and seconds of the reference tool, by run."""
    found = json.loads((data_folder() / "offices" / "results_suppression.json").read_text("utf-8"))
    return {
        name: (one["total"], one["sec"]) for name, one in found.items() if "total" in one and "sec" in one
    }


def rows(quick: bool) -> list[list[str]]:
    known = reference()
    cases: list[tuple[str, str, pa.Table, tuple[str, ...], int]] = [
        ("Adult, 5,000 rows", f"a5_K{len(keys)}_k{k}", adult(5000), keys, k)
        for keys in (KEYS4, KEYS6)
        for k in (3, 5)
    ]
    if not quick:
        cases += [("Adult, 30,162 rows", f"a30_K6_k{k}", adult(), KEYS6, k) for k in (3, 5)]
        cases.append(("generated, 100,000 rows", "g1e5_k3", generated(100_000), GENERATED, 3))
    # compiled once, outside of the seconds
    emptied(np.array([[1, 1], [1, 2]]), Wish(2), np.array([0, 1]))
    found = []
    for name, stored, table, names, k in cases:
        codes = codes_of(table, names)
        sizes = [int(np.unique(codes[:, column]).size) for column in range(len(names))]
        order = np.argsort(-np.array(sizes), kind="stable")
        start = time.process_time()
        loose = int(emptied(codes, Wish(k), order).sum())
        loose_seconds = time.process_time() - start
        important = codes[:, order[::-1]]
        keys = Keys(important, np.ones(len(names)))
        start = time.process_time()
        made = fewest(keys, k)
        seconds = time.process_time() - start
        after = np.where(keys.cells(made.masks), 0, important)
        smallest = int(np.unique(after, axis=0, return_counts=True)[1].min())
        cells, took = known.get(stored, (0, 0.0))
        found.append(
            [
                name,
                str(len(names)),
                str(k),
                f"{made.cost:,.0f}",
                f"{made.bound:,.0f}",
                str(smallest),
                f"{seconds:.1f}",
                f"{loose:,}",
                f"{loose_seconds:.1f}",
                f"{cells:,}" if cells else "not finished",
                f"{took:.1f}" if cells else "over 180",
            ]
        )
    return found


def section(quick: bool) -> str:
    heads = ["table", "keys", "k", "cells", "at least", "k found", "s", "wildcard", "s", "reference", "s"]
    lines = [
        f"Measured on {date.today().isoformat()} with {os.cpu_count()} cores, by `python -m benchmarks.suppression`. "
        "*Cells* is the number of cells that `suppress` empties under its claim, *at least* a lower bound for any "
        "method. *Wildcard* is the number with `missing_as=wildcard`, *reference* the stored result of sdcMicro 5.8.1 "
        "for the same table and the same meaning of empty cells. *s* is processor time in seconds, for the reference "
        "as stored.",
        "",
        "| " + " | ".join(heads) + " |",
        "|" + " --- |" * len(heads),
        *("| " + " | ".join(one) + " |" for one in rows(quick)),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5,000 rows only")
    parser.add_argument("--into", type=Path, help="the page to write the figures to")
    asked = parser.parse_args()
    text = section(asked.quick)
    if asked.into is None:
        print(text)
        return
    page = asked.into.read_text("utf-8")
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    asked.into.write_text(f"{before}{START}\n{text}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
