"""Figures 12 and 13: curves of individual ranking come in; drawings and the statements about them leave."""

from __future__ import annotations

import math

import numpy as np

from papers.cross_moment.curves import Curves, names
from papers.cross_moment.figures import ranking_figures
from papers.study import Claim, Section, counted, judged

_DATA = ("Census 4", "EIA 4")
_FIRST, _SECOND = names((21, 22, 23)), names((24, 25, 26))


def section(curves: Curves) -> Section:
    return Section(
        "Individual ranking (Figures 12 and 13)",
        "Every column is clustered by itself (`ranking`, the rest in the middle) and has a quarter of ε. In print, "
        "method 21 "
        "is far better than method 22. By the paper's own Algorithms 1 to 3 they are one method: a column by itself "
        "has one "
        "mean and one variance, and masked jointly or with weights (0.5, 0.5) each of the two has half of the "
        "column's ε. "
        "Shoal's `xm-21` and `xm-22` give the same rows for the same seed; the printed difference cannot be "
        "reproduced.",
        figures=ranking_figures(curves),
        claims=_claims(curves),
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
        Claim(
            "section 5.5, Figure 12",
            "Census 4, ε = 1: method 21 is the only one that beats order 0 (method 20), slightly and for k > 364",
            f"method 21 overtakes method 20 {_size(one['Census 4', 'xm-21', 1.0])}; others: "
            + ", ".join(f"{name[3:]} {_size(one['Census 4', name, 1.0])}" for name in others),
            judged(
                [
                    math.isfinite(one["Census 4", "xm-21", 1.0]),
                    *(math.isinf(one["Census 4", name, 1.0]) for name in others),
                ]
            ),
        ),
        Claim(
            "section 5.5, Figure 12",
            "the methods that mask separately (22, 23, 25, 26) cost much more utility than method 21",
            "method 22 is method 21: no difference at any point. Method 23 is worse by "
            f"{_median_gap(curves, 'xm-23', 'xm-21'):.2f}, 25 by {_median_gap(curves, 'xm-25', 'xm-21'):.2f}, 26 by "
            f"{_median_gap(curves, 'xm-26', 'xm-21'):.2f} in log2 (medians of all points at ε = 1)",
            judged(
                [False, *(_median_gap(curves, name, "xm-21") > 0 for name in ("xm-23", "xm-25", "xm-26"))]
            ),
        ),
        Claim(
            "section 5.5, Figure 12",
            "EIA 4, ε = 1: method 21 beats method 20 only for k close to 1000",
            f"method 21 overtakes method 20 {_size(one['EIA 4', 'xm-21', 1.0])}",
            judged([math.isfinite(one["EIA 4", "xm-21", 1.0]), 850 <= one["EIA 4", "xm-21", 1.0] <= 1150]),
        ),
        Claim(
            "section 5.5, Figures 12(c, d)",
            "mean and variance are clearly better than mean, variance and skewness",
            f"ε = 1: the best of order 1 is better at {counted(value > 0 for value in worse)} points, by "
            f"{float(np.median(worse)):+.2f} in the median",
            judged(value > 0 for value in worse),
        ),
        Claim(
            "section 5.5, Figures 12(c, d)",
            "the baselines of Census 4 show that there is room for improvement: with more records the noise might "
            "vanish",
            f"method 21 is above B7 by {min(room['Census 4']):.1f} to {max(room['Census 4']):.1f} in log2. Larger "
            "tables allow larger k: the gap at the largest k is "
            + ", ".join(f"{gap:.1f} ({data}, k = {curves.ks(data)[-1]})" for data, gap in last.items()),
            judged([*(room["Census 4"] > 0), last["EIA 4"] < last["Census 4"]]),
        ),
        Claim(
            "section 5.5, Figure 13",
            "at ε = 2 the sizes from which moments pay off are smaller than at ε = 1",
            f"not larger for {counted(smaller)} methods and data sets",
            judged(smaller),
        ),
        Claim(
            "section 5.5, Figure 13",
            "EIA 4, ε = 2: the best methods for m = 1 and m = 2 beat order 0 from k of about 800 on",
            f"method 21 {_size(one['EIA 4', 'xm-21', 2.0])}, method 24 {_size(one['EIA 4', 'xm-24', 2.0])}, method 25 "
            f"{_size(one['EIA 4', 'xm-25', 2.0])}",
            judged(
                math.isfinite(min(one["EIA 4", name, 2.0] for name in group)) for group in (_FIRST, _SECOND)
            ),
        ),
        Claim(
            "section 5.5",
            "the number of columns has no effect on microaggregation by individual ranking",
            "clusters of a column do not depend on the others (`tests/mechanisms/test_moments.py`, column by "
            "column); the "
            "noise does: "
            "each column has ε/d",
            "holds",
        ),
    ]


def _median_gap(curves: Curves, worse: str, better: str) -> float:
    return float(
        np.median([point[worse] - point[better] for point in curves.each(_DATA, (1.0,), (worse, better))])
    )


def _size(size: float) -> str:
    return "never" if math.isinf(size) else f"from k = {size:.0f} on"
