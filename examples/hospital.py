"""A hospital extract with several stays per patient, made from random numbers: `python examples/hospital.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

PATIENTS, STAYS, MOST = 9_000, 20_000, 30
REGIONS = ["north", "east", "south", "west", "centre", "coast"]
DEPARTMENTS = ["medicine", "surgery", "cardiology", "oncology", "psychiatry", "geriatrics"]
OUTCOMES = ["home", "rehabilitation", "nursing home", "died"]
SCHEMA = """\
[[attribute]]
name = "patient"
kind = "nominal"
role = "unit"
called = "patient"
type = "text"
bound = { rows = 3 }

[[attribute]]
name = "age"
role = "quasi-identifier"
lo = 0
hi = 100
source = "common knowledge"

[[attribute]]
name = "region"
kind = "nominal"
role = "quasi-identifier"
values = ["north", "east", "south", "west", "centre", "coast"]
source = "common knowledge"

[[attribute]]
name = "admission"
lo = 1
hi = 365
source = "common knowledge"

[[attribute]]
name = "department"
kind = "nominal"
values = ["medicine", "surgery", "cardiology", "oncology", "psychiatry", "geriatrics"]
source = "questionnaire"

[[attribute]]
name = "emergency"
kind = "nominal"
type = "text"
values = ["yes", "no"]
source = "questionnaire"

[[attribute]]
name = "days"
lo = 0
hi = 60
source = "questionnaire"

[[attribute]]
name = "cost"
lo = 0
hi = 40000
source = "questionnaire"

[[attribute]]
name = "outcome"
kind = "nominal"
values = ["home", "rehabilitation", "nursing home", "died"]
source = "questionnaire"

[[rule]]
keep = 'department = "geriatrics" -> age > 75'
source = "questionnaire"
"""


def stays(patients: int = PATIENTS, rows: int = STAYS, seed: int = 41) -> pd.DataFrame:
    """Stays in random order: patients have 1 to 30 each, and those with many are older and stay longer.

    `admission` is the day of the year.

    >>> found = stays(90, 200)
    >>> len(found), found["patient"].nunique(), int(found["patient"].value_counts().max()) <= MOST
    (200, 90, True)
    """
    random = np.random.default_rng(seed)
    frailty = random.gamma(0.25, 1.0, patients)
    counts = np.ones(patients, dtype=np.int64)
    for _ in range(rows - patients):
        open_ = np.where(counts < MOST, frailty, 0.0)
        counts[random.choice(patients, p=open_ / open_.sum())] += 1
    who = np.repeat(np.arange(patients), counts)
    ill = np.minimum(frailty, 4.0)[who] / 4
    age = np.clip(random.normal(48, 22, patients)[who] + 18 * ill, 0, 100).astype(np.int64)
    region = random.choice(REGIONS, patients, p=[0.25, 0.2, 0.2, 0.15, 0.12, 0.08])[who]
    old = (age > 75).astype(np.float64)
    weights = np.column_stack(
        [np.full(who.size, 3.0), 2.5 - 1.5 * ill, 1 + age / 60, 0.6 + ill, 1.4 - age / 100, 2.5 * old]
    )
    department = _drawn(random, weights)
    days = np.minimum(random.gamma(1.5, 1.6 + 2 * ill + 2 * (department == 5)), 60).astype(np.int64)
    emergency = np.where(random.random(who.size) < 0.3 + 0.25 * ill, "yes", "no")
    cost = np.minimum(900 + 620 * days + random.gamma(2, 500 + 900 * (department == 1)), 40_000).astype(
        np.int64
    )
    ends = np.column_stack(
        [np.full(who.size, 8.0), 0.4 + 1.2 * (department == 1), 0.2 + 1.5 * old, 0.1 + 0.6 * ill]
    )
    found = pd.DataFrame(
        {
            "patient": [f"P{number:05d}" for number in random.permutation(patients)[who]],
            "age": age,
            "region": region,
            "department": np.array(DEPARTMENTS)[department],
            "emergency": emergency,
            "days": days,
            "cost": cost,
            "outcome": np.array(OUTCOMES)[_drawn(random, ends)],
            "admission": 0,
        }
    )
    # stays of a patient tend to become longer during the year
    later = np.lexsort((days + random.normal(0, 2, who.size), who))
    on = random.integers(1, 366, who.size)
    found.loc[later, "admission"] = on[np.lexsort((on, who))]
    return found.sample(frac=1, random_state=seed).reset_index(drop=True)


def _drawn(random: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """One column number for each row, with these weights."""
    shares = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.minimum((random.random(len(weights))[:, None] > shares).sum(axis=1), weights.shape[1] - 1)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    stays().to_csv(folder / "stays.csv", index=False)
    (folder / "hospital.toml").write_text(SCHEMA, "utf-8")
    print(f"Written to {folder}: stays.csv ({STAYS:,} stays of {PATIENTS:,} patients) and hospital.toml.")


if __name__ == "__main__":
    main()
