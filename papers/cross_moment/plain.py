"""Table 1: plain Laplace noise on the data sets, next to the published values and the closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from papers.cross_moment.curves import Curves
from papers.cross_moment.measure import (
    CENSUS,
    EPSILONS,
    SETS,
    Floats,
    expected_plain_noise,
    matrix,
    plain_noise,
)
from papers.cross_moment.printed import PROTOTYPE_TABLE_1, TABLE_1
from papers.desk import Desk, Task
from papers.study import Claim, Number, Section
from papers.texts import judging, numbering, wording

number = numbering("cross_moment/texts")

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_RUNS, _QUICK_RUNS = 60, 10


def section(desk: Desk, found: Mapping[str, Any], curves: Curves) -> Section:
    drawn = {place: np.array(found[key]) for place, key in _keys(desk).items()}
    return Section(
        *heading("table-1-plain-laplace", _number_of_runs(desk), _explanation(desk)),
        [*_rows(drawn), *_prototype(desk), *_extremes(drawn, curves)],
        _closed_form(desk),
        claims=_claims(drawn, curves),
    )


def tasks(desk: Desk) -> dict[str, Task]:
    """Runs at every ε of every data set."""
    return {
        key: partial(
            plain_noise, desk.file(SETS[data].file), SETS[data].columns, epsilon, _number_of_runs(desk)
        )
        for (data, epsilon), key in _keys(desk).items()
    }


def _keys(desk: Desk) -> dict[tuple[str, float], str]:
    return {
        (data, epsilon): f"plain noise, {data}, ε={epsilon:g}, runs={_number_of_runs(desk)}"
        for data in SETS
        for epsilon in EPSILONS
    }


def _number_of_runs(desk: Desk) -> int:
    return _QUICK_RUNS if desk.quick else _RUNS


def _rows(drawn: Mapping[tuple[str, float], Floats]) -> list[Number]:
    found = []
    for data, printed in TABLE_1.items():
        for epsilon, text in zip(EPSILONS, printed, strict=True):
            sums = drawn[data, epsilon]
            error = sums.std(ddof=1) / np.sqrt(sums.size) / sums.mean() / np.log(2)
            found.append(
                Number(
                    "Table 1",
                    f"{data}, ε = {epsilon:g}",
                    text,
                    float(np.log2(sums.mean())),
                    float(error),
                    "print is 0.04 below the closed form for EIA throughout, see above"
                    if data.startswith("EIA")
                    else "",
                    logarithm=True,
                )
            )
    return found


def _explanation(desk: Desk) -> str:
    original = matrix(desk.file("eia.csv"), SETS["EIA 4"].columns)
    records = len(original)
    distinct = len(np.unique(original, axis=0))
    filled = int((original != 0).any(axis=1).sum())
    return (
        f"and EIA is lower in print by 0.03 to 0.05 at every ε and number of columns, as if {distinct:,} records "
        "(the distinct "
        f"ones; log2 of the ratio {np.log2(distinct / records):.3f}) or {filled:,} (those that are not all zero; "
        f"{np.log2(filled / records):.3f}) had been counted instead of {records:,}"
    )


def _prototype(desk: Desk) -> list[Number]:
    return [
        Number(
            "prototype, Table 1",
            f"{data}, ε = 1, closed form",
            text,
            float(np.log2(_expected(desk, data, 1.0))),
            logarithm=True,
        )
        for data, text in PROTOTYPE_TABLE_1.items()
    ] + [
        number(
            "epsilon-1-epsilon-2",
            float(np.log2(_expected(desk, data, 1.0) / _expected(desk, data, 2.0))),
            data,
        )
        for data in SETS
    ]


def _expected(desk: Desk, data: str, epsilon: float) -> float:
    return expected_plain_noise(matrix(desk.file(SETS[data].file), SETS[data].columns), epsilon)


def _closed_form(desk: Desk) -> str:
    lines = [
        "log2 of the closed form (printed):",
        "",
        "| ε | " + " | ".join(SETS) + " |",
        "| ---: |" + " ---: |" * len(SETS),
    ]
    for place, epsilon in enumerate(EPSILONS):
        cells = [f"{np.log2(_expected(desk, data, epsilon)):.3f} ({TABLE_1[data][place]})" for data in SETS]
        lines.append(f"| {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _census(curves: Curves) -> list[float]:
    """Medians of methods 1 to 13 at all points of Figure 7."""
    return [
        float(np.median(runs))
        for one, runs in curves.found.items()
        if one.data in CENSUS and one.epsilon == 1.0 and int(one.method.removeprefix("xm-")) <= 13
    ]


def _extremes(drawn: Mapping[tuple[str, float], Floats], curves: Curves) -> list[Number]:
    """The worst and the best case that section 5.5 quotes for Figure 7."""
    census = _census(curves)
    plain = float(np.log2(drawn["Census 2", 1.0].mean()))
    sizes = curves.ks("Census 2")
    why = f"depends on the sizes shown, which print does not list (here k = {sizes[0]} to {sizes[-1]})"
    per_cent = f"per cent of {plain:.2f}, and print's own numbers give {100 * (1 - 43.5 / 47.68):.2f}; {why}"
    return [
        number("largest-log2-sse-figure", max(census), why),
        number("per-cent-below-plain", 100 * (1 - max(census) / plain), per_cent),
        number("per-cent-below-plain-noise", 100 * (1 - min(census) / plain), why),
    ]


def _claims(drawn: Mapping[tuple[str, float], Floats], curves: Curves) -> list[Claim]:
    gaps = [
        float(np.log2(drawn[one.data, one.epsilon].mean()) - np.median(runs))
        for one, runs in curves.found.items()
        if one.epsilon is not None
    ]
    census = _census(curves)
    plain = float(np.log2(drawn["Census 2", 1.0].mean()))
    worst, best = (100 * (1 - end(census) / plain) for end in (max, min))
    # every value has noise of scale d·W/ε
    wide = {columns: math.sqrt(2) * columns for columns in (2, 3, 4)}
    return [
        judge(
            "masking-single-records-adds",
            (ratio > 1 for ratio in wide.values()),
            ", ".join(f"{ratio:.1f} with {columns} columns" for columns, ratio in wide.items()),
        ),
        judge("plain-noise-worst-case", (gap > 0 for gap in gaps), min(gaps), max(gaps)),
        judge(
            "census-epsilon-1-moments",
            (value < plain - 1 for value in census),
            min(census),
            max(census),
            plain,
        ),
        judge(
            "sse-falls-8-39",
            [abs(worst - 8.39) < 1, abs(best - 25.67) < 1, 2 ** (max(census) - plain) > 0.9],
            worst,
            best,
            100 * (1 - 2 ** (max(census) - plain)),
        ),
    ]
