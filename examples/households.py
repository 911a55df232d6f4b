"""A survey of households with several persons, made from random numbers: `python examples/households.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

HOUSEHOLDS, MOST = 8_000, 8
REGIONS = ["north", "east", "south", "west"]
RELATIONS = ["reference person", "partner", "child", "other"]
WORK = ["child", "in education", "employed", "unemployed", "retired", "other"]
SCHEMA = """\
[[attribute]]
name = "household"
kind = "nominal"
role = "unit"
called = "household"
type = "integer"
max_rows = 8

[[attribute]]
name = "region"
kind = "nominal"
values = ["north", "east", "south", "west"]
source = "common knowledge"

[[attribute]]
name = "income"
lo = 0
hi = 200000
step = 100
source = "questionnaire"

[[attribute]]
name = "owner"
kind = "nominal"
type = "text"
values = ["yes", "no"]
source = "questionnaire"

[[attribute]]
name = "relation"
kind = "ordinal"
ordered = ["reference person", "partner", "child", "other"]
source = "questionnaire"

[[attribute]]
name = "age"
role = "quasi-identifier"
lo = 0
hi = 100
source = "common knowledge"

[[attribute]]
name = "sex"
kind = "nominal"
type = "text"
values = ["female", "male"]
source = "questionnaire"

[[attribute]]
name = "work"
kind = "nominal"
values = ["child", "in education", "employed", "unemployed", "retired", "other"]
source = "questionnaire"
"""


def persons(households: int = HOUSEHOLDS, seed: int = 41) -> pd.DataFrame:
    """Persons in random order; the income of a household is equal in all its rows.

    >>> found = persons(100)
    >>> found["household"].nunique(), int(found["household"].value_counts().max()) <= MOST
    (100, True)
    >>> int(found.groupby("household")["income"].nunique().max())
    1
    """
    random = np.random.default_rng(seed)
    rows = []
    for name in random.permutation(households):
        region = random.choice(4, p=[0.35, 0.25, 0.25, 0.15])
        head = int(np.clip(random.gamma(9, 6), 19, 98))
        sex = int(random.random() < 0.5)
        people = [(0, head, sex)]
        if random.random() < (0.35 if head < 28 else 0.68 if head < 75 else 0.4):
            people.append((1, int(np.clip(head + random.normal(-1, 4), 18, 98)), 1 - sex))
        expected = (1.4 if len(people) > 1 else 0.45) * (24 < head < 56)
        people += [
            (2, int(np.clip(head - random.normal(31, 5), 0, 30)), int(random.random() < 0.5))
            for _ in range(min(random.poisson(expected), 5))
        ]
        if random.random() < 0.05:
            people.append((3, int(random.integers(18, 95)), int(random.random() < 0.5)))
        earned, made = 0.0, []
        for relation, age, own in people:
            work = _work(random, age)
            earned += {2: 1.0, 3: 0.35, 4: 0.6}.get(work, 0.1 if age >= 18 else 0.0)
            made.append((relation, age, own, work))
        income = int(np.clip(22_000 * (0.3 + earned) * random.lognormal(0, 0.45), 0, 199_900)) // 100 * 100
        owner = "yes" if random.random() < 0.25 + 0.4 * (income > 35_000) + 0.2 * (head > 55) else "no"
        rows += [(name, region, income, owner, *one) for one in made]
    found = pd.DataFrame(
        rows, columns=["household", "region", "income", "owner", "relation", "age", "sex", "work"]
    )
    found["region"] = np.array(REGIONS)[found["region"]]
    found["relation"] = np.array(RELATIONS)[found["relation"]]
    found["sex"] = np.array(["female", "male"])[found["sex"]]
    found["work"] = np.array(WORK)[found["work"]]
    return found.sample(frac=1, random_state=seed).reset_index(drop=True)


def _work(random: np.random.Generator, age: int) -> int:
    if age < 7:
        return 0
    if age < 25:
        return 1 if random.random() < (1.0 if age < 16 else 0.9 - 0.09 * (age - 16)) else 2
    if age > 66:
        return 4
    return int(
        random.choice([2, 3, 4, 5], p=[0.76, 0.06, 0.04 + 0.14 * (age > 58), 0.14 - 0.14 * (age > 58)])
    )


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    found = persons()
    found.to_csv(folder / "persons.csv", index=False)
    (folder / "households.toml").write_text(SCHEMA, "utf-8")
    print(
        f"Written to {folder}: persons.csv ({len(found):,} persons in {HOUSEHOLDS:,} households) and households.toml."
    )


if __name__ == "__main__":
    main()
