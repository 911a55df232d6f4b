"""Figure 14: the drawing of the eigen form's curves, and the claims about it."""

from __future__ import annotations

import itertools

import numpy as np

from papers.cross_moment.coefficients import best
from papers.cross_moment.curves import EIGEN, FIRST_ORDER, SECOND_ORDER, Curves, nearly
from papers.cross_moment.figures import eigen_figure
from papers.cross_moment.measure import CENSUS, EIA, SETS
from papers.study import Claim, Section, counted
from papers.texts import judging, wording

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_ALL = tuple(SETS)
_JOINT, _SEPARATE = ("xm-14", "xm-17"), ("xm-15", "xm-16", "xm-18", "xm-19")


def section(curves: Curves) -> Section:
    return Section(
        *heading("eigen-form-figure-14", curves.runs), figures=[eigen_figure(curves)], claims=_claims(curves)
    )


def _claims(curves: Curves) -> list[Claim]:
    points = curves.each(_ALL, (2.0,), ("xm-1", *EIGEN))
    worse = [min(point[name] for name in EIGEN) > point["xm-1"] for point in points]
    fifteen = best([{name: point[name] for name in EIGEN} for point in points], ("xm-15",))
    separate = [
        max(point[name] for name in _SEPARATE) < min(point[name] for name in _JOINT) for point in points
    ]
    worst = _worst_of_all(curves)
    strategies = {
        order: [point[one] < point[two] for point in points]
        for order, one, two in ((1, "xm-15", "xm-16"), (2, "xm-18", "xm-19"))
    }
    both = [*strategies[1], *strategies[2]]
    gaps = {(data, name): _gap(curves, data, name) for data in SETS for name in EIGEN}
    order = [
        gaps[few, name] < gaps[more, name]
        for name in EIGEN
        for sets in (CENSUS, EIA)
        for few, more in itertools.pairwise(sets)
    ]
    ways = curves.each(_ALL, (2.0,), ("xm-2", "xm-14", "xm-15", "xm-16"))
    dearer = [point["xm-2"] >= min(point[name] for name in ("xm-14", "xm-15", "xm-16")) for point in ways]
    coefficients = [
        min(point[name] for name in (*FIRST_ORDER, *SECOND_ORDER)) < min(point[name] for name in EIGEN)
        for point in curves.each(_ALL, (2.0,), (*FIRST_ORDER, *SECOND_ORDER, *EIGEN))
    ]
    matched = [
        point[one] < point[two]
        for point in curves.each(_ALL, (2.0,), ("xm-2", "xm-8", "xm-14", "xm-17"))
        for one, two in (("xm-2", "xm-14"), ("xm-8", "xm-17"))
    ]
    return [
        judge("method-1-causes-less", nearly(worse), counted(worse)),
        judge("method-15-m-1", fifteen),
        judge("all-methods-mask-separately", separate),
        judge("methods-14-17-give", worst),
        judge("strategy-1-gives-more", nearly(both), counted(strategies[1]), counted(strategies[2])),
        judge(
            "gap-between-method-1", order, ", ".join(f"{gaps[data, 'xm-15']:.2f} ({data})" for data in SETS)
        ),
        judge(
            "coefficients-cost-substantially-less",
            [*coefficients, *matched],
            counted(coefficients),
            counted(matched),
        ),
        judge("any-dp-version-eigen", dearer),
    ]


def _worst_of_all(curves: Curves) -> list[bool]:
    methods = ("xm-1", *FIRST_ORDER, *SECOND_ORDER, *EIGEN)
    return [
        max(point, key=lambda name: point[name]) in _JOINT for point in curves.each(_ALL, (2.0,), methods)
    ]


def _gap(curves: Curves, data: str, name: str) -> float:
    return float(np.mean(curves.medians(data, name, 2.0) - curves.medians(data, "xm-1", 2.0)))
