"""The example of section 5.5: B1 and method 6 on Census 2 with three ways of matching, next to the published values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from papers.cross_moment.curves import median_error
from papers.cross_moment.measure import SETS, Cell, Floats, log_errors
from papers.desk import Desk, Task
from papers.study import Number, Section
from papers.texts import judging, numbering, wording

number = numbering("cross_moment/texts")

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_RUNS = {"rank": 200, "none": 200, "assignment": 120}
_QUICK_RUNS = {"rank": 60, "none": 60, "assignment": 60}
# pieces of an expensive cell, so that all processes share it
_PIECE = 15


def section(desk: Desk, found: Mapping[str, Any]) -> Section:
    runs = _number_of_runs(desk)
    baseline = float(_values(desk, found, "baseline")[0])
    rank, assigned, drawn = (
        _values(desk, found, f"match={match}") for match in ("rank", "assignment", "none")
    )
    quartiles = np.quantile(rank, [0.25, 0.75])
    why = "rows as drawn are in no order: their error is that of two independent draws, and cannot be what was printed"
    return Section(
        *heading(
            "example-text-more-privacy",
            ", ".join(f"{runs[match]} runs ({match})" for match in ("rank", "assignment", "none")),
            quartiles[0],
            quartiles[1],
        ),
        [
            number("b1-census-2-k", baseline),
            _number("section 5.5", "method 6, k = 390, ε = 2, match=rank", "34.9", rank),
            _number("section 5.5", "the same, match=assignment", "34.9", assigned),
            _number("section 5.5", "the same, match=none", "34.9", drawn, why),
            number("b1-k-100", baseline),
            _number("prototype, Census 2", "method 6, k = 390, ε = 2, match=rank", "34.85", rank),
            _number("prototype, Census 2", "the same, match=assignment", "34.97", assigned),
        ],
        claims=[
            judge(
                "win-win-k-390",
                (float(np.median(values)) < baseline for values in (rank, assigned, drawn)),
                np.median(rank),
                np.median(assigned),
                baseline,
                np.median(drawn),
                _share(rank, baseline),
                _share(assigned, baseline),
            )
        ],
    )


def tasks(desk: Desk) -> dict[str, Task]:
    """Runs of the baseline and of method 6 in pieces."""
    file = desk.file(SETS["Census 2"].file)
    wanted: dict[str, Task] = {
        "example, baseline": partial(log_errors, file, Cell("Census 2", "xm-b1", 100, None, "none"), 1)
    }
    for match, number in _number_of_runs(desk).items():
        one = Cell("Census 2", "xm-6", 390, 2.0, match)
        for first in range(0, number, _PIECE):
            last = min(first + _PIECE, number)
            wanted[f"example, {one.key}, runs {first} to {last}"] = partial(
                log_errors, file, one, last - first, first
            )
    return wanted


def _number_of_runs(desk: Desk) -> Mapping[str, int]:
    return _QUICK_RUNS if desk.quick else _RUNS


def _values(desk: Desk, found: Mapping[str, Any], words: str) -> Floats:
    return np.concatenate([found[key] for key in tasks(desk) if words in key])


def _number(where: str, what: str, printed: str, values: Floats, why: str = "") -> Number:
    return Number(where, what, printed, float(np.median(values)), median_error(values), why, logarithm=True)


def _share(values: Floats, baseline: float) -> str:
    return f"{100 * (values < baseline).mean():.0f}%"
