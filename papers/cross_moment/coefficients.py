"""Figures 7 to 10: drawings of the coefficient form's curves, and the claims about them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from papers.cross_moment.curves import (
    BASELINES,
    COEFFICIENTS,
    FIRST_ORDER,
    MDAV_BASELINES,
    SECOND_ORDER,
    Curves,
)
from papers.cross_moment.figures import coefficient_figures
from papers.cross_moment.measure import CENSUS, EIA, SETS
from papers.study import Claim, Section, counted
from papers.texts import judging, wording

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

_BOTH = (1.0, 2.0)
# all covariances and variances only, otherwise the same method; 3 is the same as 6
_PURE = (("xm-2", "xm-3"), ("xm-4", "xm-6"), ("xm-5", "xm-7"))
# masked jointly and separately (strategy 1), otherwise the same method
_JOINT = (("xm-2", "xm-4"), ("xm-8", "xm-10"), ("xm-9", "xm-12"))
# "much more slowly" means: by at least this share
_MUCH = 0.25


def section(curves: Curves) -> Section:
    return Section(
        *heading("coefficients-mdav-figures-7", curves.runs),
        figures=coefficient_figures(curves),
        claims=[*_on_census(curves), *_between_orders(curves), *_on_eia(curves), *_ways_of_masking(curves)],
    )


def best(points: Sequence[dict[str, float]], methods: Sequence[str]) -> list[bool]:
    """At which points one of these methods has the least error."""
    return [min(point, key=lambda name: point[name]) in methods for point in points]


def _rises(values: np.ndarray) -> float:
    return float((np.diff(values) > 0).mean())


def _on_census(curves: Curves) -> list[Claim]:
    rising = [_rises(curves.medians(data, name, 1.0)) for data in CENSUS for name in MDAV_BASELINES]
    ends = {
        (data, name): curves.medians(data, name, 1.0)
        for data in CENSUS
        for name in (*FIRST_ORDER, *SECOND_ORDER)
    }
    falls = [float(values[0] - values[-1]) for values in ends.values()]
    extra = [
        float(noisy - plain)
        for data in CENSUS
        for noisy, plain in zip(
            curves.medians(data, "xm-1", 1.0), curves.medians(data, "xm-b1", 1.0), strict=True
        )
    ]
    first = best(curves.each(CENSUS, (1.0,), FIRST_ORDER), ("xm-3",))
    again = best(curves.each(CENSUS, (2.0,), (*FIRST_ORDER, *SECOND_ORDER)), ("xm-3",))
    gaps = {
        (pure, variances): [
            float(np.mean(curves.medians(data, pure, 1.0) - curves.medians(data, variances, 1.0)))
            for data in CENSUS
        ]
        for pure, variances in _PURE
    }
    lower = [
        float(one - two)
        for data in SETS
        for name in COEFFICIENTS[1:]
        for one, two in zip(curves.medians(data, name, 1.0), curves.medians(data, name, 2.0), strict=True)
    ]
    return [
        judge("without-noise-error-grows", (share > 0.5 for share in rising), 100 * float(np.mean(rising))),
        judge("noise-m-1-2", (fall > 1 for fall in falls), min(falls), max(falls)),
        judge("m-0-noise-costs", (value < 0.1 for value in extra), max(extra), min(extra)),
        judge("census-epsilon-1-methods", first),
        judge("census-epsilon-2-methods", again),
        judge(
            "methods-variances-only-gain",
            (more > less for found in gaps.values() for less, more in pairwise(found)),
            ", ".join(CENSUS),
            "; ".join(
                f"method {pure[3:]} is worse than {variances[3:]} by {', '.join(f'{gap:.2f}' for gap in found)}"
                for (pure, variances), found in gaps.items()
            ),
        ),
        judge("epsilon-2-errors-smaller", (value > 0 for value in lower), float(np.median(lower))),
    ]


def _between_orders(curves: Curves) -> list[Claim]:
    def gains(sets: Sequence[str], epsilon: float) -> list[float]:
        """How much the best of order 1 is better than the best of order 2, point by point."""
        points = curves.each(sets, (epsilon,), (*FIRST_ORDER, *SECOND_ORDER))
        return [
            min(point[name] for name in SECOND_ORDER) - min(point[name] for name in FIRST_ORDER)
            for point in points
        ]

    census, eia = gains(CENSUS, 1.0), gains(EIA, 1.0)
    twelve = {
        (data, epsilon): best(curves.each((data,), (epsilon,), SECOND_ORDER), ("xm-12",))
        for data in SETS
        for epsilon in _BOTH
    }
    variances = [
        hit
        for data in SETS
        for epsilon in _BOTH
        for hit in best(curves.each((data,), (epsilon,), SECOND_ORDER), ("xm-9", "xm-12"))
    ]
    census_twelve = [hit for (data, _), hits in twelve.items() if data in CENSUS for hit in hits]
    eia_twelve = [hit for (data, _), hits in twelve.items() if data in EIA for hit in hits]
    apart = [
        abs(point["xm-9"] - point["xm-12"]) for point in curves.each(tuple(SETS), _BOTH, ("xm-9", "xm-12"))
    ]
    large = _at_the_end(curves)
    other = [*census, *eia, *gains(CENSUS, 2.0), *gains(EIA[1:], 2.0)]
    other += [gain for k, gain in zip(curves.ks("EIA 2"), gains(EIA[:1], 2.0), strict=True) if k < 900]
    return [
        judge("census-epsilon-1-best", (gain > 0 for gain in census), float(np.median(census))),
        judge("census-method-12-variances", census_twelve, float(np.median(apart)), counted(variances)),
        judge("eia-method-12-best", eia_twelve),
        judge("eia-epsilon-1-method", (gain > 0 for gain in eia), float(np.median(eia))),
        judge("few-columns-k-about", large[1], large[0]),
        judge("all-other-cases-m", (gain > 0 for gain in other)),
    ]


def _at_the_end(curves: Curves) -> tuple[str, list[bool]]:
    """EIA 2, ε = 2, at the measured size nearest to 1000."""
    ks = curves.ks("EIA 2")
    place = int(np.argmin([abs(k - 1000) for k in ks]))
    two, three, eight, twelve = (
        float(curves.medians("EIA 2", name, 2.0)[place]) for name in ("xm-2", "xm-3", "xm-8", "xm-12")
    )
    words = (
        f"EIA 2, k = {ks[place]}: method 2 {two:.2f}, method 3 {three:.2f}, method 8 {eight:.2f}, "
        f"method 12 {twelve:.2f}"
    )
    return words, [eight < two, twelve < three]


def _on_eia(curves: Curves) -> list[Claim]:
    place = 0
    census, eia = (curves.medians(data, "xm-b1", 1.0) for data in ("Census 2", "EIA 2"))
    shared = [k for k in curves.ks("Census 2") if k in curves.ks("EIA 2")]
    k = shared[place]
    apart = float(eia[curves.ks("EIA 2").index(k)] - census[curves.ks("Census 2").index(k)])
    methods = (*FIRST_ORDER, *SECOND_ORDER)
    slopes = {(data, name): _fall_per_doubling(curves, data, name) for data in SETS for name in methods}
    slower = [
        slopes[f"EIA {number}", name] / slopes[f"Census {number}", name]
        for number in (2, 3, 4)
        for name in methods
    ]
    third = {epsilon: best(curves.each(EIA[1:], (epsilon,), FIRST_ORDER), ("xm-3",)) for epsilon in _BOTH}
    return [
        judge("error-microaggregation-much-larger", [apart > 0, apart < 2 * 1.92], k, apart),
        judge(
            "errors-all-methods-fall",
            [*(ratio < 1 for ratio in slower), *(ratio <= 1 - _MUCH for ratio in slower)],
            ", ".join(f"{slopes[data, 'xm-3']:.2f} ({data})" for data in SETS),
            counted(ratio < 1 for ratio in slower),
            counted(ratio <= 1 - _MUCH for ratio in slower),
        ),
        judge("eia-3-eia-4", third[1.0]),
        judge("otherwise-what-seen-eia", third[2.0]),
    ]


def _fall_per_doubling(curves: Curves, data: str, name: str) -> float:
    ks, values = np.log2(curves.ks(data)), curves.medians(data, name, 1.0)
    return float(-np.polyfit(ks, values, 1)[0])


def _ways_of_masking(curves: Curves) -> list[Claim]:
    above = [
        float(noisy - plain)
        for data in SETS
        for epsilon in _BOTH
        for name in COEFFICIENTS
        for noisy, plain in zip(
            curves.medians(data, name, epsilon), curves.medians(data, BASELINES[name], epsilon), strict=True
        )
    ]
    gains = {
        (joint, separate): [
            point[joint] - point[separate] for point in curves.each(tuple(SETS), _BOTH, (joint, separate))
        ]
        for joint, separate in _JOINT
    }
    return [
        judge("baseline-least-error-method", (value > 0 for value in above), min(above), max(above)),
        judge(
            "masked-jointly-mean-gets",
            (gain > 0 for found in gains.values() for gain in found),
            ", ".join(
                f"{counted(gain > 0 for gain in found)} points (method {separate[3:]} against {joint[3:]})"
                for (joint, separate), found in gains.items()
            ),
        ),
    ]
