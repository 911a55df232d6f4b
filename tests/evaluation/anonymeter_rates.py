"""Run by anonymeter's own interpreter: attack the tables of a folder, and print counts of successes as JSON.

It needs older versions of numpy and pyarrow than Shoal, so `make test-all` gives it an environment of its own.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

MODES = {"one column": "univariate", "several columns": "multivariate"}


def read(path: Path, numbers: list[str]) -> pd.DataFrame:
    return pd.read_csv(path).astype(dict.fromkeys(numbers, float))


def evaluator(attack: str, original, released, control, numbers, attacks):  # type: ignore[no-untyped-def]
    columns = list(released.columns)
    if attack == "linkability":
        half = (len(columns) + 1) // 2
        parts = (columns[:half], columns[half:])
        made = LinkabilityEvaluator(
            original, released, parts, n_attacks=attacks, n_neighbors=1, control=control
        )
        return made.evaluate(n_jobs=1)
    if attack in MODES:
        made = SinglingOutEvaluator(
            original, released, n_attacks=attacks, control=control, seed=5, max_attempts=200_000
        )
        return made.evaluate(mode=MODES[attack])
    made = InferenceEvaluator(
        original,
        released,
        aux_cols=[column for column in columns if column != attack],
        secret=attack,
        regression=attack in numbers,
        n_attacks=attacks,
        control=control,
    )
    return made.evaluate(n_jobs=1)


def main(folder: Path) -> None:
    warnings.filterwarnings("ignore")
    asked = json.loads((folder / "asked.json").read_text())
    counts = []
    for release, attack in asked["cases"]:
        np.random.seed(7)
        released = read(folder / f"{release}.csv", [])
        numbers = [column for column in asked["numbers"] if column in released]
        released = released.astype(dict.fromkeys(numbers, float))
        original, control = (
            read(folder / f"{name}.csv", numbers)[list(released.columns)] for name in ("original", "control")
        )
        found = evaluator(attack, original, released, control, numbers, asked["attacks"]).results()
        counts.append([int(found.n_success), int(found.n_control)])
    print(json.dumps(counts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
