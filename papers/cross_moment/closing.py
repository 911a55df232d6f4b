"""Claims of the setting, abstract and conclusions, judged by the curves, and errors of section 5."""

from __future__ import annotations

import math
from collections.abc import Mapping

from papers.cross_moment.curves import FIRST_ORDER, SECOND_ORDER, Curves, nearly
from papers.cross_moment.measure import SETS, expected_plain_noise, matrix
from papers.cross_moment.printed import INCREASES, first_order
from papers.desk import Desk
from papers.study import Erratum, Section, counted
from papers.texts import judging, numbering, printed_errors, wording

number = numbering("cross_moment/texts")

judge = judging("cross_moment/texts")
heading = wording("cross_moment/texts")

# strategy 1 and strategy 2 of the same method; 3 and 21 are the same as 6 and 22
_STRATEGIES = (("xm-4", "xm-5"), ("xm-3", "xm-7"), ("xm-10", "xm-11"), ("xm-12", "xm-13"))
_RANKED_STRATEGIES = (("xm-21", "xm-23"), ("xm-25", "xm-26"))


def data_section(desk: Desk) -> Section:
    census, eia = desk.table("census.csv"), desk.table("eia.csv")
    numeric = ["UTILITYID", *(name for name in eia.column_names if name.endswith(("REVENUE", "SALES")))]
    outside = _negative(desk)
    return Section(
        *heading("data", sum(outside.values())),
        [
            number("records-census", census.num_rows),
            number("records-eia", eia.num_rows),
            number("records-eia-text", eia.num_rows),
            number("attributes-census", census.num_columns),
            number("numerical-attributes-eia", len(numeric)),
            *(number("negative-values", count, name) for name, count in outside.items() if count),
        ],
    )


def _negative(desk: Desk) -> dict[str, int]:
    """How many values of each column of EIA 4 lie below its domain."""
    names = SETS["EIA 4"].columns
    below = (matrix(desk.file("eia.csv"), names) < 0).sum(axis=0)
    return dict(zip(names, below.tolist(), strict=True))


def section(curves: Curves, releases: Mapping[str, tuple[float, float, str]]) -> Section:
    large, both = _large_sizes(curves)
    numbered = [f"xm-{number}" for number in range(1, 27)]
    drawn = [releases[name][0] < releases["xm-1"][0] for name in (*FIRST_ORDER, *SECOND_ORDER)]
    strategies = [
        point[one] < point[two]
        for one, two in _STRATEGIES
        for point in curves.each(tuple(SETS), (1.0, 2.0), (one, two))
    ] + [
        point[one] < point[two]
        for one, two in _RANKED_STRATEGIES
        for point in curves.each(("Census 4", "EIA 4"), (1.0, 2.0), (one, two))
    ]
    return Section(
        "Abstract, contributions and conclusions",
        claims=[
            judge("medium-large-clusters-1", [*large, *drawn], counted(large), counted(drawn)),
            judge("such-sizes-approach-may", [*both, *drawn], counted(both), counted(drawn)),
            judge("26-configurations-two-them", (name in releases for name in numbered)),
            judge("mean-may-deserve-more", nearly(not hit for hit in strategies), counted(strategies)),
            judge("epsilon-1-2-usual", "not tested"),
            judge("whether-such-sizes-suit", "not tested"),
        ],
    )


def _large_sizes(curves: Curves) -> tuple[list[bool], list[bool]]:
    """At large sizes, whether some method with moments is better than method 1, and than the means of clusters of the
    next smaller size measured, without noise."""
    moments = (*FIRST_ORDER, *SECOND_ORDER)
    better, both = [], []
    for data in SETS:
        least = 216 if data.startswith("Census") else 512
        for epsilon in (1.0, 2.0):
            points = curves.each((data,), (epsilon,), ("xm-1", "xm-b1", *moments))
            for k, smaller, point in zip(curves.ks(data)[1:], points, points[1:], strict=False):
                if k >= least:
                    lowest = min(point[name] for name in moments)
                    better.append(lowest < point["xm-1"])
                    both.append(lowest < smaller["xm-b1"])
    return better, both


def errata(desk: Desk) -> list[Erratum]:
    """Printed errors of section 5."""
    wrong = matrix(desk.file("census.csv"), ("FICA", "FEDTAX"))
    right = matrix(desk.file("census.csv"), SETS["Census 2"].columns)
    as_text, as_file = (math.log2(expected_plain_noise(one, 1.0)) for one in (wrong, right))
    ratios = [
        100 * (first_order(data, 1.0) / first_order(data.replace("EIA", "Census"), 1.0) - 1)
        for data in INCREASES
    ]
    below = _negative(desk)
    return printed_errors(
        "cross_moment/texts",
        {
            "section-5-3-domains": (
                ", ".join(f"{count} of {name}" for name, count in below.items() if count),
            ),
            "section-5-3-figure": (as_text, as_file),
            "section-5-5-comparison": (100 * (1 - 43.5 / 47.68), 100 * (1 - 2 ** (43.5 - 47.68))),
            "section-5-5-figure": (", ".join(f"{ratio:.0f}%" for ratio in ratios),),
        },
        part="closing",
    )
