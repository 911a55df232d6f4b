"""Intervals from releases of public tables contain the truth, for every family of statistics."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.interval_coverage import TABLES, judged, one_run, truth_of
from shoal.inference.calibration import WeightCalibration

SETS = 8
# families with fewer numbers are judged together with the others only
MANY = 60


def measured(name: str, cell: str) -> pd.DataFrame:
    """The intervals of statistics that follow from the columns, for some data sets of a table."""
    population = TABLES[name]()
    wanted = list(population.statistics())
    truth = truth_of(population, wanted)
    lines: list[dict[str, Any]] = []
    for turn in range(SETS):
        found = one_run(population, cell, 31_000 + turn, [text for _, text in wanted])
        lines += [
            {"name": label, "truth": truth[label], "family": label.partition("(")[0], **one}
            for label, one in found.items()
            if one["estimate"] is not None and "(intercept)" not in label
        ]
    return judged(pd.DataFrame(lines))


def worst(lines: pd.DataFrame) -> float:
    """The lowest coverage: of all numbers, or of a family of many."""
    families = lines.groupby("family").covered.agg(["mean", "size"])
    return float(min([lines.covered.mean(), *families["mean"][families["size"] >= MANY]]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "cell"), [("adult", "5000, ε 1"), ("people", "5000, ε 1")])
def test_intervals_of_a_public_table_contain_the_truth(name: str, cell: str) -> None:
    """Nominally 95%; about 60 numbers of 8 data sets are strongly correlated, which is why 90 is asked for."""
    assert worst(measured(name, cell)) >= 0.90


@pytest.mark.slow
def test_the_check_sees_intervals_that_ignore_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = WeightCalibration.uncertainty

    def sampled_only(self: WeightCalibration, *arguments: Any, **options: Any) -> Any:
        found = honest(self, *arguments, **options)
        return dataclasses.replace(found, noise=np.zeros(found.noise.size))

    monkeypatch.setattr(WeightCalibration, "uncertainty", sampled_only)
    assert worst(measured("adult", "5000, ε 1")) < 0.90
