"""Compare the splits of ε under `mdav-dp` by their mean losses on several tables.

python -m benchmarks.mdav_split [--seeds 5]
"""

from __future__ import annotations

import argparse
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.survey import survey, survey_schema

SPLITS = ("equal", "proportional", "optimal")
KS = (25, 100, 250)
Case = tuple[pa.Table, dict[str, Any]]


def cases() -> dict[str, Case]:
    """Tables whose columns have units of their own, and one whose columns share a unit."""
    rng = np.random.default_rng(7)
    amounts = rng.lognormal(3, 0.8, (4000, 4)) @ np.array(
        [[1, 0.5, 0.3, 0], [0, 1, 0.4, 0.2], [0, 0, 1, 0.6], [0, 0, 0, 1]]
    )
    alike = pa.table({name: np.minimum(amounts[:, j], 400.0) for j, name in enumerate("abcd")})
    people, schema = survey(4000), survey_schema()
    return {
        "survey: age, income, rent": (people, {"schema": schema, "columns": ["age", "income", "rent"]}),
        "survey: age, hours, education, income": (
            people,
            {"schema": schema, "columns": ["age", "hours per week", "education", "income"]},
        ),
        "four amounts in one unit": (alike, {"domains": {name: (0.0, 400.0) for name in "abcd"}}),
    }


def losses(case: Case, split: str, k: int, seeds: int) -> tuple[float, float]:
    """The largest shift of a mean in its spread, and the mean squared error over the variance, on average."""
    table, declared = case
    shifts, errors = [], []
    for seed in range(seeds):
        release = shoal.protect(table, method="mdav-dp", epsilon="1", k=k, split=split, seed=seed, **declared)
        utility = shoal.evaluate(table, release).utility
        shifts.append(utility["mean_shift_max"])
        errors.append(utility["normalised_sse"])
    return fmean(shifts), fmean(errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    print("| table | k | " + " | ".join(f"{split}: shift, error" for split in SPLITS) + " |")
    print("| --- | --- |" + " --- |" * len(SPLITS))
    for name, case in cases().items():
        for k in KS:
            found = [losses(case, split, k, seeds) for split in SPLITS]
            print(f"| {name} | {k} | " + " | ".join(f"{a:.2f}, {b:.2f}" for a, b in found) + " |", flush=True)


if __name__ == "__main__":
    main()
