"""Reproduction of chapter 3 of the thesis, probabilistic k-anonymity, on Census and EIA."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np

from papers.desk import Desk, Task
from papers.plots import COLOURS, Curve, Panel, panels
from papers.study import Erratum, Figure, Number, Section, Series, Study
from papers.texts import printed_errors, wording
from papers.thesis.chapter3_claims import claims, text_claims
from papers.thesis.chapter3_facts import K, census_facts, variable_sizes
from papers.thesis.chapter3_print import CHANGES, METHODS, PROTOTYPE_RANKING, RUNS, SIZES, cells, filled
from papers.thesis.chapter3_runs import FILES, Matrix, changes, experiment, single_runs

heading = wording("thesis/chapter3")

_EDITION = "slightly other clusters than in print, see above"
_TABLES = {"MDAV-ID": "Table 3.7", "MDAV-SWAP": "Table 3.8", "IR-SWAP": "Table 3.9"}
_MEANS = {"Census": "Table 3.10", "EIA": "Table 3.11"}
# correlations that print got wrong, by method and place from 0
_MISPRINTS: Mapping[tuple[str, int, int], str] = {
    ("original", 8, 11): "a misprint: a zero is lost, .070",
    ("IR-SWAP", 5, 7): "a misprint: the minus sign; Table 3.6 has .13 there, and no run comes near -.12",
    ("MDAV-SWAP", 9, 12): "likely a misprint for .77: its neighbours in the row are .76 and .81",
}


@dataclass(frozen=True)
class Effort:
    """How often each method runs, and the sizes at which the slow one does."""

    swaps: int
    rankings: int
    singles: int
    census_sizes: Sequence[int]
    eia_sizes: Sequence[int]
    variable_sizes: Sequence[int]

    @classmethod
    def of(cls, desk: Desk) -> Effort:
        if desk.quick:
            return cls(10, 30, 12, (25, 100, 300), (100, 200, 300), (10,))
        return cls(30, 200, 60, SIZES, SIZES, (3, 5, 10))

    def sizes(self, name: str, method: str) -> Sequence[int]:
        if method != "MDAV-SWAP":
            return SIZES
        return self.census_sizes if name == "Census" else self.eia_sizes

    def runs(self, method: str) -> int:
        return self.rankings if method == "IR-SWAP" else self.swaps

    def places(self) -> list[tuple[str, str, int]]:
        """Data set, method and k of everything that tables 3.10 and 3.11 print and this effort covers."""
        return [(name, method, k) for name in FILES for method in METHODS for k in self.sizes(name, method)]


@dataclass(frozen=True)
class Mean:
    """Mean over runs, and its standard error; 0 where nothing is drawn."""

    value: float
    deviation: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))

    def error(self, printed_runs: int) -> float:
        """Of the difference to a printed mean of so many runs."""
        return self.deviation * math.sqrt(1 / self.runs + 1 / printed_runs)


# data set, method, k -> mean and standard deviation of |change|
Measured = dict[tuple[str, str, int], tuple[Mean, Mean]]


def study(desk: Desk) -> Study:
    effort = Effort.of(desk)
    for file in FILES.values():
        desk.file(file)
    measured = desk.measure("chapter 3", _tasks(desk, effort))
    found = {
        place: (Mean.of([run[0] for run in runs]), Mean.of([run[1] for run in runs]))
        for place in effort.places()
        for runs in [measured[_key(*place, effort)]]
    }
    backwards = {
        k: fmean(run[0] for run in measured[f"thesis 3, backwards {k} {effort.rankings}"]) for k in SIZES
    }
    by_method = {method: measured[f"thesis 3, correlations {method} {effort.singles}"] for method in METHODS}
    sizes = {k: measured[f"thesis 3, variable sizes {k}"] for k in effort.variable_sizes}
    census, eia = experiment(desk.data, "Census"), experiment(desk.data, "EIA")
    losses = {"Census": census.total_loss, "EIA": eia.total_loss}
    means = {place: mean.value for place, (mean, _) in found.items()}
    runs = {method: fmean(by_method[method]["changes"]) for method in METHODS}
    return Study(
        *heading("about"),
        [
            Section(
                *heading("chapter-3-correlations-execution", effort.singles),
                [*_original(census.values), *_singles(by_method)],
            ),
            Section(
                *heading("chapter-3-change-correlations", effort.swaps, effort.rankings),
                [*_numbers(found, backwards), *_prototype(found)],
                figures=[_figure(found, losses)],
                claims=list(claims(means, runs, losses)),
            ),
            Section(
                *heading("chapter-3-model-text"), claims=list(text_claims(measured["thesis 3, facts"], sizes))
            ),
        ],
        _errata(),
        [_series(found)],
    )


def _key(name: str, method: str, k: int, effort: Effort) -> str:
    return f"thesis 3, {name} {method} {k} {effort.runs(method)}"


def _tasks(desk: Desk, effort: Effort) -> dict[str, Task]:
    """Everything that is measured. IR-SWAP also on Census read from its end: equal values in the other order."""
    tasks: dict[str, Task] = {
        _key(name, method, k, effort): partial(changes, desk.data, name, method, k, effort.runs(method))
        for name, method, k in effort.places()
    }
    for k in SIZES:
        tasks[f"thesis 3, backwards {k} {effort.rankings}"] = partial(
            changes, desk.data, "Census", "IR-SWAP", k, effort.rankings, backwards=True
        )
    for method in METHODS:
        tasks[f"thesis 3, correlations {method} {effort.singles}"] = partial(
            single_runs, desk.data, method, K, effort.singles
        )
    for k in effort.variable_sizes:
        tasks[f"thesis 3, variable sizes {k}"] = partial(variable_sizes, desk.data, k)
    return {**tasks, "thesis 3, facts": partial(census_facts, desk.data)}


def _original(values: Matrix) -> list[Number]:
    found = np.asarray(np.corrcoef(values.T))
    return [
        Number(
            "Table 3.6",
            f"A{row + 1}, A{column + 1}",
            text,
            float(found[row, column]),
            why=_MISPRINTS.get(("original", row, column), ""),
        )
        for row, column, text in cells("original")
    ]


def _singles(by_method: Mapping[str, Any]) -> list[Number]:
    numbers = []
    for method, table in _TABLES.items():
        mean, deviation = by_method[method]["mean"], by_method[method]["deviation"]
        runs = len(by_method[method]["changes"])
        for row, column, text in cells(method):
            drawn = 0.0 if row == column else deviation[row][column]
            why = (
                _EDITION
                if method == "MDAV-ID"
                else "farther from the mean than three of its standard deviations"
            )
            numbers.append(
                Number(
                    table,
                    f"A{row + 1}, A{column + 1}",
                    text,
                    mean[row][column],
                    Mean(0.0, drawn, runs).error(printed_runs=1) if drawn else 0.0,
                    _MISPRINTS.get((method, row, column), why),
                )
            )
    return numbers


def _numbers(found: Measured, backwards: Mapping[int, float]) -> list[Number]:
    numbers = []
    for (name, method, k), both in found.items():
        for what, text, mean in zip(
            ("mean", "standard deviation"), CHANGES[name][method][SIZES.index(k)], both, strict=True
        ):
            numbers.append(
                Number(
                    _MEANS[name],
                    f"{method}, k = {k}, {what}",
                    filled(text),
                    mean.value,
                    mean.error(RUNS),
                    _why(name, method, backwards.get(k)),
                )
            )
    return numbers


def _prototype(found: Measured) -> list[Number]:
    """How many runs the prototype averaged is not known: it is taken to be as many as in print."""
    means = {k: found["EIA", "IR-SWAP", k][0] for k in PROTOTYPE_RANKING}
    return [
        Number(
            "a throw-away prototype",
            f"EIA, IR-SWAP, k = {k}, mean",
            text,
            means[k].value,
            means[k].error(RUNS),
            "how many runs the prototype averaged is not known",
        )
        for k, text in PROTOTYPE_RANKING.items()
    ]


def _why(name: str, method: str, backwards: float | None) -> str:
    if name == "EIA":
        return "chance: one of many cells more than three standard errors away"
    if method == "IR-SWAP":
        return (
            "print does not say in which order equal values are ranked, and A8 to A13 repeat many; with the file read "
            f"backwards the mean is {backwards:.2g}"
        )
    return _EDITION


def _figure(found: Measured, losses: Mapping[str, float]) -> Figure:
    shown = []
    for name in FILES:
        curves = []
        for method, colour in zip(METHODS, COLOURS, strict=False):
            sizes = [k for one, other, k in found if (one, other) == (name, method)]
            curves.append(Curve(method, sizes, [found[name, method, k][0].value for k in sizes], colour))
        level = Curve("no correlation left", [0], [losses[name]], COLOURS[4], dashed=True)
        shown.append(Panel(name, [*curves, level]))
    title = "Mean change of correlations by group size"
    return Figure("thesis-3-changes", f"{title} (Tables 3.10 and 3.11).", panels(title, shown))


def _series(found: Measured) -> Series:
    return Series(
        "thesis-3-changes",
        ("data", "method", "k", "mean", "standard_error", "deviation", "runs"),
        [
            (*place, mean.value, mean.deviation / math.sqrt(mean.runs), spread.value, mean.runs)
            for place, (mean, spread) in found.items()
        ],
    )


def _errata() -> list[Erratum]:
    return printed_errors("thesis/chapter3")
