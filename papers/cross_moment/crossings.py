"""The k from which moments reduce the error: every published size next to ours, and Figure 11."""

from __future__ import annotations

import itertools
import math

import numpy as np

from papers.cross_moment.curves import Curves
from papers.cross_moment.figures import k_min_figure
from papers.cross_moment.measure import CENSUS, EIA, SETS
from papers.cross_moment.printed import INCREASES, K_MIN, REDUCTIONS, KMin, first_order
from papers.study import Claim, Number, Section, counted
from papers.texts import judging, wording

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

# the sizes that a throw-away prototype found for Census 2, match=rank
_PROTOTYPE = (
    KMin("prototype", "Census 2", "xm-3", "xm-1", 1.0, "270"),
    KMin("prototype", "Census 2", "xm-3", "xm-1", 2.0, "160"),
)
_WHY = (
    "two nearly parallel curves with jumps where the number of clusters changes; the paper says neither how many "
    "runs it "
    "shows, nor at which k, nor how rows were matched"
)


def section(curves: Curves) -> Section:
    return Section(
        *heading("k-moments-pay-off"),
        [*(_number(curves, one) for one in (*K_MIN, *_PROTOTYPE)), *_ratios(curves)],
        _covariances(curves),
        [k_min_figure(curves)],
        _claims(curves),
    )


def _number(curves: Curves, one: KMin) -> Number:
    found = curves.k_min(one.data, one.method, one.epsilon, one.base)
    why = _WHY if math.isfinite(found) else f"never up to k = {curves.ks(one.data)[-1]}; {_WHY}"
    number = one.method.removeprefix("xm-")
    base = one.base.removeprefix("xm-")
    about = f" ({one.about} in print)" if one.about else ""
    return Number(
        one.where,
        f"{one.data}, ε = {one.epsilon:g}, method {number} against {base}{about}",
        one.printed,
        found,
        curves.k_min_error(one.data, one.method, one.epsilon, one.base),
        why,
    )


def _ratios(curves: Curves) -> list[Number]:
    """The per cents that the text derives from its sizes."""
    found = []
    for data, text in REDUCTIONS.items():
        one, two = (_known(curves, data, epsilon) for epsilon in (1.0, 2.0))
        errors = [curves.k_min_error(data, "xm-3", epsilon) for epsilon in (1.0, 2.0)]
        error = 100 * two / one * float(np.hypot(errors[0] / one, errors[1] / two))
        found.append(
            Number(
                "section 5.5, Figure 8",
                f"{data}, how many per cent smaller k_min is at ε = 2",
                text,
                100 * (1 - two / one),
                error,
                "follows from the two sizes above",
            )
        )
    for data, text in INCREASES.items():
        census = data.replace("EIA", "Census")
        ours = 100 * (_known(curves, data, 1.0) / _known(curves, census, 1.0) - 1)
        printed = 100 * (first_order(data, 1.0) / first_order(census, 1.0) - 1)
        found.append(
            Number(
                "section 5.5, Figure 9",
                f"{data}, how many per cent larger k_min is than on {census}, ε = 1",
                text,
                ours,
                0.0,
                f"print contradicts itself: its own sizes give {printed:.0f}%",
            )
        )
    return found


def _known(curves: Curves, data: str, epsilon: float) -> float:
    """A size to calculate with: beyond those measured, the largest."""
    return min(curves.k_min(data, "xm-3", epsilon), float(curves.ks(data)[-1]))


def _covariances(curves: Curves) -> str:
    lines = [
        "With all covariances (method 2) instead of variances only (method 3):",
        "",
        "| data | ε = 1, method 3 | method 2 | ε = 2, method 3 | method 2 |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for data in SETS:
        sizes = [curves.k_min(data, name, epsilon) for epsilon in (1.0, 2.0) for name in ("xm-3", "xm-2")]
        cells = ["never" if math.isinf(size) else f"{size:.0f}" for size in sizes]
        lines.append(f"| {data} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _claims(curves: Curves) -> list[Claim]:
    found = {
        (data, epsilon): curves.k_min(data, "xm-3", epsilon) for data in SETS for epsilon in curves.epsilons
    }
    overtaken = [math.isfinite(found[data, epsilon]) for data in SETS for epsilon in (1.0, 2.0)]
    steps = [
        found[data, small] >= found[data, large]
        for data in SETS
        for small, large in zip(curves.epsilons, curves.epsilons[1:], strict=False)
    ]
    ends = [found[data, 1.0] > found[data, 2.0] for data in SETS]
    columns = [
        found[few, epsilon] <= found[more, epsilon]
        for sets in (CENSUS, EIA)
        for few, more in itertools.pairwise(sets)
        for epsilon in (1.0, 2.0)
    ]
    second = {
        (data, epsilon): curves.k_min(data, "xm-12", epsilon) for data in CENSUS for epsilon in (1.0, 2.0)
    }
    only = [math.isfinite(second["Census 2", 1.0]), *(math.isinf(second[data, 1.0]) for data in CENSUS[1:])]
    later = [math.isfinite(second[data, 2.0]) for data in CENSUS[1:]]
    eia = {data: curves.k_min(data, "xm-12", 1.0) for data in EIA}
    return [
        judge("there-size-moments-cause", overtaken),
        judge("k-min-grows-number", columns),
        judge("larger-epsilon-smaller-clusters", steps, counted(ends)),
        judge("these-sizes-reasonably-practical", "not tested"),
        judge(
            "order-2-beats-order",
            [*only, *later],
            ", ".join(f"{_size(size)} ({data}, ε = {epsilon:g})" for (data, epsilon), size in second.items()),
        ),
        judge(
            "eia-epsilon-1-method-12",
            [math.isfinite(eia["EIA 2"]), math.isinf(eia["EIA 3"]), math.isinf(eia["EIA 4"])],
            ", ".join(f"{_size(size)} ({data})" for data, size in eia.items()),
        ),
    ]


def _size(size: float) -> str:
    return "never" if math.isinf(size) else f"from k = {size:.0f} on"
