"""Figures 12 and 13: drawings of the curves of individual ranking, and the claims about them."""

from __future__ import annotations

import math

import numpy as np

from papers.cross_moment.curves import Curves, names
from papers.cross_moment.figures import ranking_figures
from papers.study import Claim, Section
from papers.texts import judging, wording

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_DATA = ("Census 4", "EIA 4")
_FIRST, _SECOND = names((21, 22, 23)), names((24, 25, 26))


def section(curves: Curves) -> Section:
    return Section(
        *heading("individual-ranking-figures-12"), figures=ranking_figures(curves), claims=_claims(curves)
    )


def _claims(curves: Curves) -> list[Claim]:
    one = {
        (data, name, epsilon): curves.k_min(data, name, epsilon, "xm-20")
        for data in _DATA
        for name in (*_FIRST, *_SECOND)
        for epsilon in (1.0, 2.0)
    }
    worse = [
        min(point[name] for name in _SECOND) - min(point[name] for name in _FIRST)
        for point in curves.each(_DATA, (1.0,), (*_FIRST, *_SECOND))
    ]
    room = {data: curves.medians(data, "xm-21", 1.0) - curves.medians(data, "xm-b7", 1.0) for data in _DATA}
    last = {data: float(gap[-1]) for data, gap in room.items()}
    smaller = [one[data, name, 2.0] <= one[data, name, 1.0] for data in _DATA for name in (*_FIRST, *_SECOND)]
    others = [name for name in (*_FIRST, *_SECOND) if name != "xm-21"]
    return [
        judge(
            "census-4-epsilon-1",
            [
                math.isfinite(one["Census 4", "xm-21", 1.0]),
                *(math.isinf(one["Census 4", name, 1.0]) for name in others),
            ],
            _size(one["Census 4", "xm-21", 1.0]),
            ", ".join(f"{name[3:]} {_size(one['Census 4', name, 1.0])}" for name in others),
        ),
        judge(
            "methods-mask-separately-22",
            [False, *(_median_gap(curves, name, "xm-21") > 0 for name in ("xm-23", "xm-25", "xm-26"))],
            _median_gap(curves, "xm-23", "xm-21"),
            _median_gap(curves, "xm-25", "xm-21"),
            _median_gap(curves, "xm-26", "xm-21"),
        ),
        judge(
            "eia-4-epsilon-1",
            [math.isfinite(one["EIA 4", "xm-21", 1.0]), 850 <= one["EIA 4", "xm-21", 1.0] <= 1150],
            _size(one["EIA 4", "xm-21", 1.0]),
        ),
        judge("mean-variance-clearly-better", (value > 0 for value in worse), float(np.median(worse))),
        judge(
            "baselines-census-4-show",
            [*(room["Census 4"] > 0), last["EIA 4"] < last["Census 4"]],
            min(room["Census 4"]),
            max(room["Census 4"]),
            ", ".join(f"{gap:.1f} ({data}, k = {curves.ks(data)[-1]})" for data, gap in last.items()),
        ),
        judge("epsilon-2-sizes-moments", smaller),
        judge(
            "eia-4-epsilon-2",
            (math.isfinite(min(one["EIA 4", name, 2.0] for name in group)) for group in (_FIRST, _SECOND)),
            _size(one["EIA 4", "xm-21", 2.0]),
            _size(one["EIA 4", "xm-24", 2.0]),
            _size(one["EIA 4", "xm-25", 2.0]),
        ),
        judge("number-columns-effect-microaggregation", "holds"),
    ]


def _median_gap(curves: Curves, worse: str, better: str) -> float:
    return float(
        np.median([point[worse] - point[better] for point in curves.each(_DATA, (1.0,), (worse, better))])
    )


def _size(size: float) -> str:
    return "never" if math.isinf(size) else f"from k = {size:.0f} on"
