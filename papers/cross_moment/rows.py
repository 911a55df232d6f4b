"""Claims about covariances, judged by whole rows of releases matched by assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.cross_moment.curves import Curves, median_error
from papers.cross_moment.measure import EIA, SETS, Cell, Floats, cell, cell_results, matrix
from papers.desk import Desk
from papers.study import Claim, Section, counted
from papers.texts import judging, wording

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_BASELINES = ("xm-b2", "xm-b3", "xm-b4", "xm-b5")
_DATA = ("Census 2", "Census 4", "EIA 2", "EIA 4")
_BASELINE_SIZES: Mapping[str, tuple[int, ...]] = {"Census": (100, 300), "EIA": (100, 400)}
_QUICK_BASELINE_SIZES: Mapping[str, tuple[int, ...]] = {"Census": (100,), "EIA": (100,)}
_BASELINE_RUNS, _QUICK_BASELINE_RUNS = 5, 2
# where the text says something about covariances; the time grows with the cube of k
_MASKED: Mapping[str, tuple[int, ...]] = {"Census 2": (300, 500), "Census 4": (300, 450), "EIA 2": (500, 800)}
_QUICK_MASKED: Mapping[str, tuple[int, ...]] = {"Census 2": (350,), "EIA 2": (500,)}
_METHODS = ("xm-1", "xm-2", "xm-3")
_RUNS, _QUICK_RUNS = 20, 4
# what "important differences" of log2 SSE are more than, and "extremely similar" errors less
_APART = 0.3


@dataclass(frozen=True)
class Rows:
    """log2 SSE with whole rows assigned; sizes of the baselines, and of the masked methods by data set."""

    found: Mapping[Cell, Floats]
    baseline_sizes: Mapping[str, tuple[int, ...]]
    masked: Mapping[str, tuple[int, ...]]
    correlations: Mapping[str, float]

    def median(self, data: str, method: str, k: int, epsilon: float = 1.0) -> float:
        return float(np.median(self.found[cell(data, method, k, epsilon, "assignment")]))

    def error(self, data: str, method: str, k: int, epsilon: float = 1.0) -> float:
        return median_error(self.found[cell(data, method, k, epsilon, "assignment")])

    def gain(self, data: str, pure: str, variances: str) -> list[float]:
        """How much larger the error is without covariances, at every size measured."""
        sizes = self.baseline_sizes[data.split()[0]] if pure.startswith("xm-b") else self.masked[data]
        return [self.median(data, variances, k) - self.median(data, pure, k) for k in sizes]


def wanted(desk: Desk) -> dict[Cell, int]:
    """Every point, and how often it is measured."""
    sizes, masked = _sizes(desk)
    plain, noisy = (_QUICK_BASELINE_RUNS, _QUICK_RUNS) if desk.quick else (_BASELINE_RUNS, _RUNS)
    found = {
        cell(data, name, k, 1.0, "assignment"): plain
        for data in _DATA
        for k in sizes[data.split()[0]]
        for name in _BASELINES
    }
    for data, ks in masked.items():
        found |= {cell(data, name, k, 1.0, "assignment"): noisy for k in ks for name in _METHODS[1:]}
    return found


def rows_of(desk: Desk, found: Mapping[str, Any]) -> Rows:
    """The errors from what was measured."""
    correlations = {}
    for data in ("Census 2", "EIA 2"):
        original = matrix(desk.file(SETS[data].file), SETS[data].columns)
        correlations[data] = float(np.asarray(np.corrcoef(original.T))[0, 1])
    return Rows(cell_results(found, wanted(desk)), *_sizes(desk), correlations)


def _sizes(desk: Desk) -> tuple[Mapping[str, tuple[int, ...]], Mapping[str, tuple[int, ...]]]:
    if desk.quick:
        return _QUICK_BASELINE_SIZES, _QUICK_MASKED
    return _BASELINE_SIZES, _MASKED


def section(rows: Rows, curves: Curves) -> Section:
    runs = {values.size for values in rows.found.values()}
    return Section(
        *heading("covariances-whole-rows-matched", min(runs), max(runs)),
        more=_tables(rows, curves),
        claims=_claims(rows, curves),
    )


def _tables(rows: Rows, curves: Curves) -> str:
    lines = [
        "| data | k | B2 (covariances) | B3 (variances) | B4 (covariances) | B5 (variances) |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for data in _DATA:
        for k in rows.baseline_sizes[data.split()[0]]:
            cells = " | ".join(f"{rows.median(data, name, k):.2f}" for name in _BASELINES)
            lines.append(f"| {data} | {k} | {cells} |")
    lines += [
        "",
        "| data | k | method 1 | method 2, rank | method 3, rank | method 2, assignment | method 3, assignment |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for data, sizes in rows.masked.items():
        for k in sizes:
            ranked = [f"{np.median(curves.found[cell(data, name, k, 1.0)]):.2f}" for name in _METHODS]
            assigned = [
                f"{rows.median(data, name, k):.2f} ± {rows.error(data, name, k):.2f}" for name in _METHODS[1:]
            ]
            lines.append(f"| {data} | {k} | " + " | ".join([*ranked, *assigned]) + " |")
    return "\n".join(lines)


def _claims(rows: Rows, curves: Curves) -> list[Claim]:
    plain = {data: [*rows.gain(data, "xm-b2", "xm-b3"), *rows.gain(data, "xm-b4", "xm-b5")] for data in _DATA}
    eia = [value for data in ("EIA 2", "EIA 4") for value in plain[data]]
    census = [value for data in ("Census 2", "Census 4") for value in plain[data]]
    masked = {data: rows.gain(data, "xm-2", "xm-3") for data in rows.masked}
    ranked = [
        abs(point[pure] - point[variances])
        for pure, variances in (("xm-b2", "xm-b3"), ("xm-b4", "xm-b5"))
        for point in curves.each(EIA, (1.0,), (pure, variances))
    ]
    return [
        judge(
            "eia-baselines-covariances-b2",
            [*(value > _APART for value in eia), *(abs(value) < _APART for value in census)],
            min(eia),
            max(eia),
            min(census),
            max(census),
            rows.correlations["EIA 2"],
            rows.correlations["Census 2"],
            _APART,
            counted(value > _APART for value in eia),
            counted(abs(value) < _APART for value in census),
            float(np.median(ranked)),
        ),
        judge(
            "eia-2-epsilon-1",
            (value > 0 for value in masked["EIA 2"]),
            _gains(rows, "EIA 2", masked["EIA 2"]),
        ),
        judge(
            "where-columns-depend-each",
            (
                value > 0 if data.startswith("EIA") else value < 0
                for data, gains in masked.items()
                for value in gains
            ),
            "; ".join(f"{data} {_gains(rows, data, masked[data])}" for data in masked),
        ),
    ]


def _gains(rows: Rows, data: str, gains: list[float]) -> str:
    return ", ".join(f"{value:+.2f} (k = {k})" for k, value in zip(rows.masked[data], gains, strict=True))
