"""What the cross-moment paper prints: nothing comes in, its numbers leave, digits as they stand there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Table 1: plain Laplace noise, log2 SSE at ε = 1, 1.2, 1.4, 1.6, 1.8, 2
TABLE_1: Mapping[str, tuple[str, ...]] = {
    "Census 2": ("47.68", "47.16", "46.71", "46.33", "45.99", "45.68"),
    "Census 3": ("49.13", "48.60", "48.16", "47.77", "47.44", "47.14"),
    "Census 4": ("49.97", "49.44", "49.00", "48.61", "48.27", "47.97"),
    "EIA 2": ("60.28", "59.75", "59.30", "58.92", "58.58", "58.27"),
    "EIA 3": ("61.45", "60.93", "60.48", "60.09", "59.76", "59.46"),
    "EIA 4": ("62.87", "62.34", "61.89", "61.50", "61.16", "60.86"),
}

# what a throw-away prototype expects for Table 1 at ε = 1
PROTOTYPE_TABLE_1: Mapping[str, str] = {
    "Census 2": "47.69",
    "Census 3": "49.13",
    "Census 4": "49.97",
    "EIA 2": "60.31",
    "EIA 3": "61.49",
    "EIA 4": "62.90",
}


class KMin(NamedTuple):
    """A printed size from which a method beats another."""

    where: str
    data: str
    method: str
    base: str
    epsilon: float
    printed: str
    about: str = ""


_FIRST_ORDER = (
    ("Census 2", "283", "167"),
    ("Census 3", "400", "239"),
    ("Census 4", "510", "350"),
    ("EIA 2", "736", "491"),
    ("EIA 3", "959", "608"),
    ("EIA 4", "1050", "689"),
)
K_MIN: tuple[KMin, ...] = (
    *(
        KMin(f"Figure {figure}", data, "xm-3", "xm-1", epsilon, text)
        for data, one, two in _FIRST_ORDER
        for epsilon, text, figure in (
            (1.0, one, 7 if data.startswith("Census") else 9),
            (2.0, two, 8 if data.startswith("Census") else 10),
        )
    ),
    KMin("Figure 8", "Census 3", "xm-12", "xm-1", 2.0, "370"),
    KMin("Figure 8", "Census 4", "xm-12", "xm-1", 2.0, "493"),
    KMin("Figure 9", "EIA 2", "xm-2", "xm-3", 1.0, "469"),
    KMin("Figure 9", "EIA 2", "xm-12", "xm-1", 1.0, "1000", "about"),
    KMin("Figure 12", "Census 4", "xm-21", "xm-20", 1.0, "364"),
    KMin("Figure 12", "EIA 4", "xm-21", "xm-20", 1.0, "1000", "close to"),
    KMin("Figure 13", "Census 4", "xm-21", "xm-20", 2.0, "351"),
    KMin("Figure 13", "Census 4", "xm-24", "xm-20", 2.0, "364"),
    KMin("Figure 13", "EIA 4", "xm-21", "xm-20", 2.0, "800", "around"),
    KMin("Figure 13", "EIA 4", "xm-24", "xm-20", 2.0, "800", "around"),
)

# how much smaller k_min is at ε = 2 than at ε = 1, in per cent
REDUCTIONS: Mapping[str, str] = {"Census 2": "40.99", "Census 3": "40.25", "Census 4": "31.37"}
# how much larger k_min is for EIA than for Census, in per cent
INCREASES: Mapping[str, str] = {"EIA 2": "39.40", "EIA 3": "41.71", "EIA 4": "48.57"}


def first_order(data: str, epsilon: float) -> float:
    """The printed k from which order 1 beats order 0 with MDAV.

    >>> first_order("EIA 3", 2.0)
    608.0
    """
    return next(
        float(one.printed) for one in K_MIN if (one.data, one.epsilon, one.method) == (data, epsilon, "xm-3")
    )
